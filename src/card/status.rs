// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The current state of a card, as a JSON document and as a table.

use std::fmt;
use std::fs;

use arctic_device_model::gpu::Values;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::function::CardFunction;
use super::{Topology, VirtualCard};
use crate::pci::{Function, PciDevice, function_name};
use crate::report::TrappedCounts;

const MIB: u64 = 1 << 20;

/// A snapshot of a card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// Name of the card.
    pub card: String,
    /// Name of the [`Topology`]: "native", "together", "split" or "provisioned".
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
    /// The engines: the name as `engine`, and the number of the function for which it is executing as `function`, if
    /// any.
    pub engines: Vec<Values>,
    /// Versions of the running firmware, by micro-controller: `guc` on a Flex card, null until its driver has loaded it.
    #[serde(default)]
    pub firmware: Values,
}

/// A snapshot of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FunctionStatus {
    /// What the card's family reports of the function, with the function's number as `function`. On a Flex card: its
    /// state in the GuC, quotas, contexts, time on each engine.
    #[serde(flatten)]
    pub gpu: Values,
    /// Whether the function is enabled.
    pub enabled: bool,
    /// Whether a VMM is connected to its socket.
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
}

impl VirtualCard {
    /// Returns a snapshot of the card's state.
    pub fn status(&self) -> Status {
        let gpu = self.shared.gpu.status();
        let function = |member: &CardFunction| {
            let number = member.number().number();
            let known = gpu.functions.iter().find(|values| values.get("function") == Some(&number.into()));
            let unknown = || Values::from_iter([("function".to_owned(), number.into())]);
            FunctionStatus {
                gpu: known.cloned().unwrap_or_else(unknown),
                enabled: member.enabled(),
                connected: member.connected(),
                power_state: member.port.config().power_state().name().into(),
                bus_master: member.port.bus_master(),
                guest_sections: member.guest_sections(),
                trapped: member.trapped.counts(),
                memory_bytes: member.allocated(),
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

/// Name of the function with this number, which comes from a document; "?" if no function has it.
fn name_of(number: u8) -> String {
    Function::new(number).map_or_else(|| "?".into(), function_name)
}

impl FunctionStatus {
    /// The function's number; 0 is the PF.
    pub fn number(&self) -> u8 {
        u8::try_from(self.value("function")).unwrap_or(0)
    }

    /// The number at `path` in the values of the card's family, such as `quota.local_memory`; 0 if there is none.
    pub fn value(&self, path: &str) -> u64 {
        self.number_at(path).unwrap_or(0)
    }

    /// Returns whether the card's family reports a number at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.number_at(path).is_some()
    }

    fn number_at(&self, path: &str) -> Option<u64> {
        let mut names = path.split('.');
        let first = names.next().and_then(|name| self.gpu.get(name));
        names.fold(first, |value, name| value?.get(name)).and_then(Value::as_u64)
    }

    /// Name of the function: "pf", "vf1".
    pub fn name(&self) -> String {
        name_of(self.number())
    }

    /// Name of the function's state in the card; a state with data is an object with the name as key.
    fn card_state(&self) -> Option<&str> {
        match self.gpu.get("state")? {
            Value::String(name) => Some(name),
            Value::Object(state) => state.keys().next().map(String::as_str),
            _ => None,
        }
    }

    /// Returns the state shown in the table: "absent" while VF Enable is not set for the VF, "no driver" while bus
    /// mastering is disabled, which a driver enables when it binds.
    fn state(&self) -> &'static str {
        let active = self.gpu.get("on").and_then(Value::as_array).is_some_and(|engines| !engines.is_empty());
        match (self.enabled, self.connected, self.card_state()) {
            (false, _, _) => "absent",
            (true, false, _) => "no client",
            (true, true, Some("paused")) => "paused",
            (true, true, Some("stopped")) => "stopped",
            (true, true, Some("emptying" | "reset_pending" | "resetting" | "clearing")) => "in reset",
            (true, true, _) if !self.bus_master => "no driver",
            (true, true, _) => {
                if active {
                    "working"
                } else {
                    "idle"
                }
            }
        }
    }
}

/// Formats a size given in bytes, in MiB rounded up; "-" if it is 0.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".into(),
        bytes => format!("{} MiB", bytes.div_ceil(MIB)),
    }
}

/// Formats a limit; "-" if it is 0. For the PF, 0 means no limit. For a VF, 0 contexts means not provisioned, and an
/// execution quantum of 0 means no limit.
fn limit(value: u64, unit: &str) -> String {
    if value == 0 { "-".into() } else { format!("{value}{unit}") }
}

/// A column of the table of functions.
struct Column {
    title: &'static str,
    /// The value of the card's family that the column shows: without it in any function, the table omits the column.
    value: Option<&'static str>,
    cell: fn(&FunctionStatus) -> String,
}

/// The columns behind those for name and state.
const COLUMNS: [Column; 10] = [
    Column {
        title: "POWER",
        value: None,
        cell: |function| if function.enabled { function.power_state.clone() } else { "-".into() },
    },
    Column { title: "LMEM", value: Some("quota"), cell: |function| size(function.value("quota.local_memory")) },
    Column { title: "GGTT", value: Some("quota"), cell: |function| size(function.value("quota.ggtt_size")) },
    Column {
        title: "CONTEXTS",
        value: Some("contexts"),
        cell: |function| {
            format!("{}/{}", function.value("contexts"), limit(function.value("quota.contexts.count"), ""))
        },
    },
    Column {
        title: "QUANTUM",
        value: Some("quota"),
        cell: |function| limit(function.value("quota.scheduling.exec_quantum_ms"), " ms"),
    },
    Column {
        title: "ENG TIME",
        value: Some("engine_time_ns"),
        cell: |function| {
            let times = function.gpu.get("engine_time_ns").and_then(Value::as_object).into_iter().flatten();
            let time: u64 = times.filter_map(|(_, time)| time.as_u64()).sum();
            format!("{:.2} s", time as f64 / 1e9)
        },
    },
    Column { title: "TRAPPED", value: None, cell: |function| function.trapped.total().to_string() },
    Column { title: "HOST MEM", value: None, cell: |function| size(function.memory_bytes) },
    Column {
        title: "SKIPPED",
        value: Some("skipped_user_commands"),
        cell: |function| function.value("skipped_user_commands").to_string(),
    },
    Column {
        title: "IN CTXS",
        value: Some("skipped_contexts"),
        cell: |function| function.value("skipped_contexts").to_string(),
    },
];

/// Width of a column behind those for name and state, without the space before it.
const WIDTH: usize = 9;

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Status { card, topology, enabled_vfs, total_vfs, .. } = self;
        let resident = self.resident_bytes / MIB;
        match total_vfs {
            0 => write!(f, "{card}: no VFs")?,
            _ => write!(f, "{card}, {topology}: {enabled_vfs} of {total_vfs} VFs enabled")?,
        }
        writeln!(f, ", up {:.0} s, {resident} MiB resident", self.uptime_seconds)?;
        let known = |value: &str| self.functions.iter().any(|function| function.gpu.contains_key(value));
        let columns: Vec<&Column> = COLUMNS.iter().filter(|column| column.value.is_none_or(known)).collect();
        let mut row = |name: &str, state: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!(" {cell:>WIDTH$}")).collect();
            writeln!(f, "{}", format!("{name:<9} {state:<10}{cells}").trim_end())
        };
        row("FUNCTION", "STATE", &columns.iter().map(|column| column.title.to_owned()).collect::<Vec<_>>())?;
        for function in &self.functions {
            // In this topology the card performs the tasks of the PF driver.
            let itself = function.number() == 0 && topology == Topology::Provisioned.name();
            let state = if itself { "built-in" } else { function.state() };
            let cells: Vec<String> = columns.iter().map(|column| (column.cell)(function)).collect();
            row(&function.name(), state, &cells)?;
        }
        let engine = |engine: &Values| {
            let number = engine.get("function").and_then(Value::as_u64).and_then(|number| u8::try_from(number).ok());
            let on = number.map_or_else(|| "-".into(), name_of);
            format!("{} {on}", engine.get("engine").and_then(Value::as_str).unwrap_or("?"))
        };
        let engines: Vec<_> = self.engines.iter().map(engine).collect();
        writeln!(f, "engines: {}", engines.join(", "))?;
        let version =
            |(name, version): (&String, &Value)| format!("{name} {}", version.as_str().unwrap_or("not loaded"));
        let firmware: Vec<_> = self.firmware.iter().map(version).collect();
        match firmware.is_empty() {
            true => Ok(()),
            false => writeln!(f, "firmware: {}", firmware.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_device_model::guc::client::State;
    use arctic_device_model::guc::provisioning::VfConfig;
    use serde_json::json;

    use super::*;

    /// A VF is shown as "in reset" in every state of an FLR. The FLR also clears Bus Master Enable, so the state in the
    /// GuC takes precedence over "no driver".
    #[test]
    fn every_flr_state_is_shown_as_in_reset() {
        for state in [State::Emptying, State::ResetPending, State::Resetting, State::Clearing] {
            for bus_master in [false, true] {
                let gpu = json!({ "function": 1, "state": serde_json::to_value(state).unwrap() });
                let function = FunctionStatus {
                    gpu: gpu.as_object().unwrap().clone(),
                    enabled: true,
                    connected: true,
                    power_state: "D0".into(),
                    bus_master,
                    guest_sections: 0,
                    trapped: TrappedCounts::default(),
                    memory_bytes: 0,
                };
                assert_eq!(function.state(), "in reset", "{state:?}, bus mastering: {bus_master}");
            }
        }
    }

    #[test]
    fn the_table_lists_resources_by_function() {
        let mut status: Status = serde_json::from_str(
            r#"{"card": "Flex", "topology": "split", "uptime_seconds": 7.2, "total_vfs": 2, "enabled_vfs": 1,
                "resident_bytes": 104857600, "firmware": {"guc": "70.53.0"},
                "engines": [{"engine": "rcs0", "function": 1, "context": 33}, {"engine": "bcs0"}],
                "functions": [
                {"function": 1, "contexts": 4, "on": ["rcs0"], "engine_time_ns": {"render": 1000000000, "copy": 500000000},
                 "engine_resets": 0, "cat_errors": 0, "skipped_user_commands": 12, "skipped_contexts": 2,
                 "enabled": true, "connected": true, "power_state": "D0", "bus_master": true, "guest_sections": 3,
                 "trapped": {"config": 1, "register_reads": 2, "register_writes": 0, "doorbells": 0, "ggtt": 0,
                             "local_memory": 0}, "memory_bytes": 4194304},
                {"function": 2, "contexts": 0, "on": [], "engine_time_ns": {}, "quota": {"local_memory": 1048576},
                 "enabled": false, "connected": false, "power_state": "D0", "bus_master": false,
                 "guest_sections": 0, "trapped": {"config": 0}, "memory_bytes": 0}]}"#,
        )
        .unwrap();
        let mut quota = VfConfig { local_memory: 256 << 20, ggtt_size: 64 << 20, ..VfConfig::default() };
        quota.contexts.count = 2048;
        quota.scheduling.exec_quantum_ms = 16;
        status.functions[0].gpu.insert("quota".into(), serde_json::to_value(quota).unwrap());
        let text = status.to_string();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "Flex, split: 1 of 2 VFs enabled, up 7 s, 100 MiB resident");
        assert_eq!(lines[2], "vf1 working D0 256 MiB 64 MiB 4/2048 16 ms 1.50 s 3 4 MiB 12 2");
        assert_eq!(lines[3], "vf2 absent - 1 MiB - 0/- - 0.00 s 0 - 0 0", "a VF that is not enabled has a quota");
        assert_eq!(lines[4..], ["engines: rcs0 vf1, bcs0 -", "firmware: guc 70.53.0"]);
        let again: Status = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
        assert_eq!(again, status);
    }

    /// A family without quotas, contexts and counts of skipped commands has no columns for them.
    #[test]
    fn the_table_has_only_columns_of_the_cards_family() {
        let status: Status = serde_json::from_str(
            r#"{"card": "HD Graphics", "topology": "native", "uptime_seconds": 7.2, "total_vfs": 0, "enabled_vfs": 0,
                "resident_bytes": 0, "engines": [{"engine": "rcs0", "function": 0}, {"engine": "bcs0"}],
                "functions": [
                {"function": 0, "on": ["rcs0"], "enabled": true, "connected": true, "power_state": "D3hot",
                 "bus_master": true, "guest_sections": 3, "trapped": {"config": 1}, "memory_bytes": 4194304}]}"#,
        )
        .unwrap();
        let text = status.to_string();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "HD Graphics: no VFs, up 7 s, 0 MiB resident");
        assert_eq!(lines[1..3], ["FUNCTION STATE POWER TRAPPED HOST MEM", "pf working D3hot 1 4 MiB"]);
        assert_eq!(lines[3..], ["engines: rcs0 pf, bcs0 -"], "no firmware");
    }
}
