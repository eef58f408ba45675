// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A PCI function, conventional or Express: handles configuration accesses and returns events for the device and the
//! transport.

use std::ops::Range;

use crate::bar::{Bar, BarError, BarKind};
use crate::capability::{
    Capability, ID_ADVANCED_FEATURES, ID_ARI, ID_EXPRESS, ID_MSI, ID_POWER_MANAGEMENT, ID_SRIOV, ID_VENDOR_SPECIFIC,
};
use crate::config::{CONFIG_BYTES, CONVENTIONAL_CONFIG_BYTES, ConfigSpace, Field, LayoutError, Reset};
use crate::event::{Event, Events, PowerState};
use crate::header::{Command, Identity, Status};
use crate::part::{self, PartId};
use crate::register::Register;
use crate::registers::{AfControl, DeviceControl, DeviceStatus, PmControl};
use crate::reverted::RevertedWrites;
use crate::sriov_capability::{Sriov, SriovError, SriovLayout, SriovState, VfBar};

mod changes;
mod intx;
mod msi;

/// PowerState of Power Management Control/Status: D3hot. 0 is D0.
const POWER_D3HOT: u8 = 3;

/// The function cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// Invalid BAR size or register.
    #[error(transparent)]
    Bar(#[from] BarError),
    /// Overlapping or out-of-range configuration space fields.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Invalid SR-IOV configuration.
    #[error(transparent)]
    Sriov(#[from] SriovError),
    /// The card has no virtual functions.
    #[error("the card has no virtual functions")]
    NoVirtualFunctions,
}

/// Returns whether the command register enables the address space of a BAR.
fn space_enabled(command: Command, kind: BarKind) -> bool {
    match kind {
        BarKind::Memory32 { .. } | BarKind::Memory64 { .. } => command.memory_space(),
        BarKind::Io => command.io_space(),
    }
}

/// The command register with the address spaces of `bars` enabled.
fn spaces(bars: &[Bar]) -> Command {
    bars.iter().fold(Command::new(), |command, bar| match bar.kind() {
        BarKind::Memory32 { .. } | BarKind::Memory64 { .. } => command.with_memory_space(true),
        BarKind::Io => command.with_io_space(true),
    })
}

/// A PCI function. It is a PCI Express function if it has the PCI Express capability, and a conventional one otherwise.
pub struct PciFunction {
    pub(crate) config: ConfigSpace,
    pub(crate) bars: Vec<Bar>,
    express: Option<u16>,
    advanced_features: Option<u16>,
    power_management: Option<u16>,
    pub(crate) msi: Option<u16>,
    pub(crate) sriov: Option<Sriov>,
    /// The parts of its saved state, with their bytes in configuration space.
    pub(crate) parts: Vec<(PartId, Range<u16>)>,
    /// Offsets of capabilities that have a different ID in bulk reads, see [`PciFunction::read_config_disguised`].
    disguised: Vec<u16>,
}

impl PciFunction {
    /// A physical function, as [`PciFunction::new`] builds it, with the SR-IOV capabilities if `sriov` specifies at least one
    /// virtual function. They follow `capabilities` in the lists.
    pub fn physical(
        identity: &Identity,
        bars: Vec<Bar>,
        device_specific: &[Field],
        mut capabilities: Vec<Capability>,
        sriov: Option<&SriovLayout>,
    ) -> Result<Self, FunctionError> {
        let sriov = sriov.map(|layout| Sriov::new(layout, identity.device)).transpose()?.flatten();
        let sriov = sriov.map(|(sriov, own)| {
            capabilities.extend(own);
            sriov
        });
        Ok(PciFunction { sriov, ..Self::new(identity, bars, device_specific, &capabilities)? })
    }

    /// Builds a function in its state after a conventional reset. The capability lists follow the order of
    /// `capabilities`.
    pub fn new(
        identity: &Identity,
        bars: Vec<Bar>,
        device_specific: &[Field],
        capabilities: &[Capability],
    ) -> Result<Self, LayoutError> {
        let fields = identity.fields(spaces(&bars)).into_iter().chain(bars.iter().flat_map(Bar::fields));
        let fields = fields.chain(device_specific.iter().copied()).chain(Capability::chain(capabilities));
        Ok(PciFunction {
            config: ConfigSpace::new(fields)?,
            express: Capability::find_standard(capabilities, ID_EXPRESS),
            advanced_features: Capability::find_standard(capabilities, ID_ADVANCED_FEATURES),
            power_management: Capability::find_standard(capabilities, ID_POWER_MANAGEMENT),
            msi: Capability::find_standard(capabilities, ID_MSI),
            bars,
            sriov: None,
            parts: part::all(device_specific, capabilities),
            disguised: [ID_SRIOV, ID_ARI]
                .iter()
                .filter_map(|id| Capability::find_extended(capabilities, *id))
                .collect(),
        })
    }

    /// The same function with other header registers, for a function that implements them only in part: `fields` replace
    /// the bytes that they cover.
    pub fn with_header(mut self, fields: &[Field]) -> Self {
        fields.iter().for_each(|field| self.config.replace(*field));
        self
    }

    /// Reads configuration space, with any width and alignment. Bytes outside the 4096 bytes read 0.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.config.read(offset, data);
    }

    /// Reads configuration space for a client that copies the capability list with one bulk read: reads longer than 4
    /// bytes return SR-IOV and ARI with a vendor-specific ID. All other reads return the true contents.
    ///
    /// QEMU takes one snapshot of all 4096 bytes and removes these two capabilities from the guest's list
    /// (vfio_add_ext_cap). With a vendor-specific ID they stay in the list. QEMU forwards the guest's own reads of 1, 2
    /// or 4 bytes, IDs included, so the guest sees the true IDs. The exception is the dword at 0x100, which QEMU reads
    /// from the snapshot, so neither capability may be located there. The result depends only on the access itself, not
    /// on earlier accesses.
    pub fn read_config_disguised(&self, offset: u64, data: &mut [u8]) {
        self.read_config(offset, data);
        if data.len() <= 4 {
            return;
        }
        for at in &self.disguised {
            for (n, id) in ID_VENDOR_SPECIFIC.to_le_bytes().into_iter().enumerate() {
                let seen =
                    u64::from(*at).saturating_add(n as u64).checked_sub(offset).and_then(|n| usize::try_from(n).ok());
                if let Some(byte) = seen.and_then(|n| data.get_mut(n)) {
                    *byte = id;
                }
            }
        }
    }

    /// Writes configuration space as software does, with any width and alignment. Bytes outside the space are dropped.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        let before = self.controls();
        let slept = self.power_state_bits();
        let registers = self.sriov.as_ref().map(|sriov| sriov.before_write(&self.config));
        // Initiate FLR always reads 0, so it is detected from the written data.
        let flr = self.starts_flr(offset, data);
        self.config.write(offset, data);
        let mut events = Events::default();
        self.revert_unsupported_power_state(slept, &mut events.reverted);
        let woken = slept == POWER_D3HOT && self.power_state() == PowerState::D0 && !self.keeps_state_in_d3hot();
        if let Some((sriov, registers)) = self.sriov.as_ref().zip(registers) {
            sriov.revert_forbidden(&mut self.config, &registers, &mut events.reverted);
        }
        if flr || woken {
            self.reset_config(Reset::FunctionLevel);
            events.push(Event::FunctionLevelReset);
        }
        self.changes(before, &mut events);
        let due = self.take_unmasked();
        if due != 0 {
            events.push(Event::MsiUnmasked(due));
        }
        events
    }

    /// Conventional reset of the function's configuration space (V13-114).
    pub fn reset(&mut self) -> Events {
        self.change(|function| function.reset_config(Reset::Conventional))
    }

    /// Applies a change that is not a guest write and returns the resulting events.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Self)) -> Events {
        let before = self.controls();
        change(self);
        let mut events = Events::default();
        self.changes(before, &mut events);
        events
    }

    /// Both resets clear VF Enable (V13-114, V13-115).
    pub(crate) fn reset_config(&mut self, reset: Reset) {
        self.config.reset(reset);
        if let Some(sriov) = &self.sriov {
            sriov.resize(&mut self.config);
        }
    }

    /// TotalVFs; 0 without the SR-IOV capability.
    pub fn total_vfs(&self) -> u16 {
        self.sriov.as_ref().map_or(0, Sriov::total_vfs)
    }

    /// Number of enabled virtual functions; 0 while VF Enable is clear.
    pub fn vfs_enabled(&self) -> u16 {
        self.sriov.as_ref().map_or(0, |sriov| sriov.vfs(&self.config))
    }

    /// Returns whether the virtual functions decode their BARs: VF Enable and VF MSE are set and this function is in
    /// D0.
    #[cfg(test)]
    pub(crate) fn vf_memory_space(&self) -> bool {
        self.sriov_state().memory_space
    }

    /// Number of virtual functions that decode their BARs if this function is in D0: 0 unless VF Enable and VF MSE are
    /// set.
    pub fn vfs_decoding(&self) -> u16 {
        let state = self.sriov.as_ref().map(|sriov| sriov.state(&self.config, true));
        state.filter(|state| state.memory_space).map_or(0, |state| state.vfs)
    }

    /// The VF BARs, by ascending index, whether decoded or not.
    pub fn vf_bars(&self) -> impl Iterator<Item = VfBar> {
        self.sriov.iter().flat_map(|sriov| sriov.bars(&self.config))
    }

    /// Bus address of BAR `bar` of VF `vf` (1 to TotalVFs), whether decoded or not. The address is low until software
    /// programs the BAR. Returns `None` for an address beyond the end of the address space.
    pub fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        self.vf_bars().find(|found| found.index == bar && vf <= self.total_vfs())?.window(vf)
    }

    fn sriov_state(&self) -> SriovState {
        let awake = self.power_state() == PowerState::D0;
        self.sriov.as_ref().map_or_else(SriovState::default, |sriov| sriov.state(&self.config, awake))
    }

    /// The BARs, by ascending index.
    pub fn bars(&self) -> &[Bar] {
        &self.bars
    }

    /// The BAR with this index.
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.index() == index)
    }

    /// Bus address of the BAR if it is decoded: its address space enabled and the function in D0.
    pub fn decoded(&self, index: u8) -> Option<u64> {
        self.bar(index).filter(|bar| self.decodes(bar)).map(|bar| self.address(bar))
    }

    fn decodes(&self, bar: &Bar) -> bool {
        space_enabled(self.command(), bar.kind()) && self.power_state() == PowerState::D0
    }

    /// Size of configuration space in bytes: 4096 with the PCI Express capability, 256 without.
    pub fn config_bytes(&self) -> u64 {
        if self.express.is_some() { CONFIG_BYTES as u64 } else { CONVENTIONAL_CONFIG_BYTES }
    }

    /// Returns whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.command().bus_master()
    }

    /// Current power state.
    pub fn power_state(&self) -> PowerState {
        if self.power_state_bits() == POWER_D3HOT { PowerState::D3hot } else { PowerState::D0 }
    }

    /// Records a fatal error of the device: sets Fatal Error Detected. Returns whether the function sends the message
    /// ERR_FATAL: fatal error reporting or SERR# is enabled (PCIe 6.2.5). There is no AER capability.
    pub fn record_fatal_error(&mut self) -> bool {
        let Some(express) = self.express else { return false };
        let detected = DeviceStatus::new().with_fatal_error(true);
        self.config.set_register(express, detected, detected);
        let serr = self.command().serr();
        if serr {
            let signaled = Status::new().with_signaled_system_error(true);
            self.config.set_register(0, signaled, signaled);
        }
        serr || self.config.register::<DeviceControl>(express).fatal_error_reporting()
    }

    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    fn qword(&self, at: u16) -> u64 {
        u64::from(self.config.dword(at + 4)) << 32 | u64::from(self.config.dword(at))
    }

    fn address(&self, bar: &Bar) -> u64 {
        // For a BAR with one register, the mask removes the register behind it.
        self.qword(bar.register()) & bar.address_mask()
    }

    fn command(&self) -> Command {
        self.config.register(0)
    }

    fn power_state_bits(&self) -> u8 {
        self.power_management.map_or(0, |at| self.config.register::<PmControl>(at).power_state())
    }

    /// Whether the registers keep their values when the function leaves D3hot.
    fn keeps_state_in_d3hot(&self) -> bool {
        self.power_management.is_none_or(|at| self.config.register::<PmControl>(at).no_soft_reset())
    }

    /// Discards a write of an unsupported power state (D1, D2) (PCI PM 1.2, 3.2.4).
    fn revert_unsupported_power_state(&mut self, before: u8, reverted: &mut RevertedWrites) {
        if let Some(at) = self.power_management
            && !matches!(self.power_state_bits(), 0 | POWER_D3HOT)
        {
            let state = |bits| PmControl::new().with_power_state(bits);
            reverted.revert_register(&mut self.config, "PowerState", at, state(0b11), state(before));
        }
    }

    /// Fails with the place of the power state if `config` has one that is unsupported.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub(crate) fn check_power_state(&self, config: &ConfigSpace) -> Result<(), (PartId, u16)> {
        let Some(at) = self.power_management else { return Ok(()) };
        match config.register::<PmControl>(at).power_state() {
            0 | POWER_D3HOT => Ok(()),
            _ => Err((PartId::Standard(ID_POWER_MANAGEMENT), at + PmControl::AT)),
        }
    }

    /// Returns whether a write sets Initiate FLR of either capability that has it.
    fn starts_flr(&self, offset: u64, data: &[u8]) -> bool {
        let written = |capability: Option<u16>, at: u16| {
            let at = u64::from(capability?.saturating_add(at)).checked_sub(offset)?;
            data.get(usize::try_from(at).ok()?).copied()
        };
        let express = written(self.express, DeviceControl::AT.saturating_add(1));
        express.is_some_and(|high| DeviceControl::from_bits(u16::from(high) << 8).initiate_flr())
            || written(self.advanced_features, AfControl::AT)
                .is_some_and(|low| AfControl::from_bits(low.into()).initiate_flr())
    }
}

#[cfg(test)]
mod tests;
