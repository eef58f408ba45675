// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The current state of a card, as a JSON document.

mod quantity;

use std::collections::BTreeMap;
use std::fs;

use arctic_device_model::gpu::{self, EngineStatus, FunctionState, PowerStatus, StreamStatus};
use serde::{Deserialize, Serialize};

pub use self::quantity::{Kind, QUANTITIES, Quantity, Unit};
use super::VirtualCard;
use super::function::CardFunction;
use crate::pci::{Function, PciDevice};
use crate::report::TrappedCounts;

/// A snapshot of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// Name of the card.
    pub card: String,
    /// Name of the [`Topology`](super::Topology): "native", "together", "split" or "provisioned".
    pub topology: String,
    /// Seconds since the card was powered on.
    pub uptime_seconds: f64,
    /// TotalVFs of the SR-IOV capability.
    pub total_vfs: u8,
    /// Number of virtual functions that are enabled.
    pub enabled_vfs: u8,
    /// Resident set size of the process in bytes, including mapped guest memory.
    pub resident_bytes: u64,
    /// The functions: the PF, then the VFs by number.
    pub functions: Vec<FunctionStatus>,
    /// The engines that are not fused off.
    pub engines: Vec<EngineStatus>,
    /// Versions of the running firmware, by micro-controller: `guc` on a Flex card, null until its driver has loaded it.
    #[serde(default)]
    pub firmware: BTreeMap<String, Option<String>>,
    /// The stream of counters; absent if there has been none since power-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamStatus>,
    /// Frequency and sleep; absent if the card's family does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerStatus>,
}

/// A snapshot of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionStatus {
    /// What the card's family reports of the function, beside the other values in the document.
    #[serde(flatten)]
    pub gpu: gpu::FunctionStatus,
    /// Whether the function is enabled.
    pub enabled: bool,
    /// Whether a VMM is connected to its socket; always for a function in the VMM's process.
    pub connected: bool,
    /// Its power state: "D0" or "D3hot".
    pub power_state: String,
    /// Whether its driver has enabled bus mastering.
    pub bus_master: bool,
    /// Number of guest memory regions that its VMM has mapped for DMA.
    pub guest_sections: usize,
    /// Trapped accesses so far.
    pub trapped: TrappedCounts,
    /// Host memory allocated for its BARs, in bytes.
    pub memory_bytes: u64,
    /// Interrupts that it has sent.
    #[serde(default)]
    pub interrupts: u64,
    /// Its resets: by FLR, or by its machine.
    #[serde(default)]
    pub resets: u64,
}

impl VirtualCard {
    /// Returns a snapshot of the card's state.
    pub fn status(&self) -> Status {
        let gpu = self.shared.gpu.status();
        let function = |member: &CardFunction| {
            let number = member.number().number();
            let known = gpu.functions.iter().find(|of| of.function == number);
            let unknown = || gpu::FunctionStatus { function: number, ..gpu::FunctionStatus::default() };
            FunctionStatus {
                gpu: known.cloned().unwrap_or_else(unknown),
                enabled: member.enabled(),
                connected: member.connected(),
                power_state: member.port.config().power_state().name().into(),
                bus_master: member.port.bus_master(),
                guest_sections: member.guest_sections(),
                trapped: member.trapped.counts(),
                memory_bytes: member.allocated(),
                interrupts: member.port.interrupts(),
                resets: member.resets(),
            }
        };
        Status {
            card: self.name.clone(),
            topology: self.shared.topology.name().into(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            total_vfs: self.total_vfs(),
            enabled_vfs: self.shared.gpu.vfs().map_or(0, |vfs| vfs.enabled_vfs()),
            resident_bytes: resident_bytes(),
            functions: self.functions.iter().map(|member| function(member)).collect(),
            engines: gpu.engines,
            firmware: gpu.firmware,
            stream: gpu.stream,
            power: gpu.power,
        }
    }
}

/// Resident set size of this process in bytes; 0 if /proc is not mounted.
fn resident_bytes() -> u64 {
    /// Unit of `statm` on this architecture, in bytes.
    const PAGE: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0).saturating_mul(PAGE)
}

impl FunctionStatus {
    /// The function's number; 0 is the PF.
    pub fn number(&self) -> u8 {
        self.gpu.function
    }

    /// What it does, in a word or two: "absent" while VF Enable is not set for the VF, "no driver" while bus mastering is
    /// disabled, which a driver enables when it binds.
    pub fn state(&self) -> &'static str {
        use FunctionState::{Clearing, Emptying, FixUp, Paused, ResetPending, Resetting, Running, Stopped};
        match (self.enabled, self.connected, self.gpu.state) {
            (false, _, _) => "absent",
            (true, false, _) => "no client",
            (true, true, Some(Paused { .. })) => "paused",
            (true, true, Some(FixUp)) => "moved",
            (true, true, Some(Stopped)) => "stopped",
            (true, true, Some(Emptying | ResetPending | Resetting | Clearing)) => "in reset",
            (true, true, Some(Running) | None) if !self.bus_master => "no driver",
            (true, true, Some(Running) | None) if self.gpu.on.is_empty() => "idle",
            (true, true, Some(Running) | None) => "working",
        }
    }

    /// Name of the function: "pf", "vf1".
    pub fn name(&self) -> String {
        name_of(self.number())
    }
}

/// Name of the function with this number, which may come from a document: "pf", "vf1"; "?" if no function has it.
pub fn name_of(number: u8) -> String {
    Function::new(number).map_or_else(|| "?".into(), |function| function.to_string())
}
