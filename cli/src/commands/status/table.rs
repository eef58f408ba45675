// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of a card as a table.

use std::fmt;

use arctic_gpu::Topology;
use arctic_gpu::card::status::{FunctionStatus, Status, name_of};
use arctic_gpu::gpu::{EngineStatus, KernelCounts, KernelStatus, PowerStatus, StreamStatus};

use super::super::layout::wrap;

const MIB: u64 = 1 << 20;

/// Formats a size given in bytes, in MiB rounded up; "-" if it is 0 or not known.
fn size(bytes: Option<u64>) -> String {
    match bytes {
        None | Some(0) => "-".into(),
        Some(bytes) => format!("{} MiB", bytes.div_ceil(MIB)),
    }
}

/// Formats a limit; "-" if it is 0 or not known. For the PF, 0 means no limit. For a VF, 0 contexts means not provisioned,
/// and an execution quantum of 0 means no limit.
fn limit(value: Option<u32>, unit: &str) -> String {
    value.filter(|value| *value != 0).map_or_else(|| "-".into(), |value| format!("{value}{unit}"))
}

/// A column of the table of functions.
struct Column {
    title: &'static str,
    /// Width on a terminal that is too narrow for columns of [`WIDTH`].
    width: usize,
    /// Columns with lower ranks are left out first if the terminal is narrower still.
    rank: u8,
    /// Whether the card's family reports what the column shows: if not for any function, the table omits the column.
    known: fn(&FunctionStatus) -> bool,
    cell: fn(&FunctionStatus) -> String,
}

/// The columns behind those for name and state.
const COLUMNS: [Column; 10] = [
    Column {
        title: "POWER",
        width: 5,
        rank: 8,
        known: |_| true,
        cell: |function| if function.enabled { function.power_state.clone() } else { "-".into() },
    },
    Column {
        title: "LMEM",
        width: 9,
        rank: 9,
        known: |function| function.gpu.quota.is_some(),
        cell: |function| size(function.gpu.quota.as_ref().map(|quota| quota.local_memory)),
    },
    Column {
        title: "GGTT",
        width: 8,
        rank: 4,
        known: |function| function.gpu.quota.is_some(),
        cell: |function| size(function.gpu.quota.as_ref().map(|quota| quota.ggtt_size)),
    },
    Column {
        title: "CONTEXTS",
        width: 8,
        rank: 6,
        known: |function| function.gpu.contexts.is_some(),
        cell: |function| {
            let most = limit(function.gpu.quota.as_ref().map(|quota| quota.contexts.count), "");
            format!("{}/{most}", function.gpu.contexts.unwrap_or(0))
        },
    },
    Column {
        title: "QUANTUM",
        width: 7,
        rank: 3,
        known: |function| function.gpu.quota.is_some(),
        cell: |function| limit(function.gpu.quota.as_ref().map(|quota| quota.scheduling.exec_quantum_ms), " ms"),
    },
    Column {
        title: "ENG TIME",
        width: 9,
        rank: 7,
        known: |function| function.gpu.engine_time_ns.is_some(),
        cell: |function| {
            let time: u64 = function.gpu.engine_time_ns.iter().flatten().map(|(_, time)| time).sum();
            format!("{:.2} s", time as f64 / 1e9)
        },
    },
    Column {
        title: "TRAPPED",
        width: 8,
        rank: 2,
        known: |_| true,
        cell: |function| function.trapped.total().to_string(),
    },
    Column {
        title: "HOST MEM",
        width: 9,
        rank: 1,
        known: |_| true,
        cell: |function| size(Some(function.memory_bytes)),
    },
    Column {
        title: "SKIPPED",
        width: 7,
        rank: 5,
        known: |function| function.gpu.skipped_user_commands.is_some(),
        cell: |function| function.gpu.skipped_user_commands.unwrap_or(0).to_string(),
    },
    Column {
        title: "IN CTXS",
        width: 7,
        rank: 0,
        known: |function| function.gpu.skipped_contexts.is_some(),
        cell: |function| function.gpu.skipped_contexts.unwrap_or(0).to_string(),
    },
];

/// Width of a column behind those for name and state, without the space before it.
const WIDTH: usize = 9;
/// Widths of the columns for name and state.
const NAME: usize = 9;
const STATE: usize = 10;

/// The table of a snapshot.
pub struct Table<'s> {
    pub status: &'s Status,
    /// Number of columns of the terminal; `None` for a pipe.
    pub terminal: Option<usize>,
}

impl Table<'_> {
    /// Returns the columns with their widths, and the titles of those that are left out because the terminal is too narrow.
    fn columns(&self) -> (Vec<(&'static Column, usize)>, Vec<&'static str>) {
        let known = |column: &&Column| self.status.functions.iter().any(column.known);
        let mut columns: Vec<_> = COLUMNS.iter().filter(known).map(|column| (column, WIDTH)).collect();
        let mut omitted = Vec::new();
        let Some(terminal) = self.terminal else { return (columns, omitted) };
        let room = terminal.saturating_sub(NAME + 1 + STATE);
        let needed = |columns: &[(&Column, usize)]| columns.iter().map(|(_, width)| 1 + width).sum::<usize>();
        if needed(&columns) > room {
            columns.iter_mut().for_each(|(column, width)| *width = column.width);
        }
        while needed(&columns) > room
            && let Some((n, _)) = columns.iter().enumerate().min_by_key(|(_, (column, _))| column.rank)
        {
            omitted.push(columns.remove(n).0.title);
        }
        (columns, omitted)
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { status, terminal } = self;
        let Status { card, topology, enabled_vfs, total_vfs, .. } = status;
        let resident = status.resident_bytes / MIB;
        let line = |f: &mut fmt::Formatter<'_>, text: &str| {
            let mut wrapped = String::new();
            wrap(&mut wrapped, text, ["", "  "], terminal.unwrap_or(usize::MAX));
            f.write_str(&wrapped)
        };
        let vfs = match total_vfs {
            0 => format!("{card}: no VFs"),
            _ => format!("{card}, {topology}: {enabled_vfs} of {total_vfs} VFs enabled"),
        };
        line(f, &format!("{vfs}, up {:.0} s, {resident} MiB resident", status.uptime_seconds))?;
        let (columns, omitted) = self.columns();
        let row = |f: &mut fmt::Formatter<'_>, name: &str, state: &str, cell: &dyn Fn(&Column) -> String| {
            let cells: String = columns.iter().map(|(column, width)| format!(" {:>width$}", cell(column))).collect();
            writeln!(f, "{}", format!("{name:<NAME$} {state:<STATE$}{cells}").trim_end())
        };
        row(f, "FUNCTION", "STATE", &|column| column.title.to_owned())?;
        for function in &status.functions {
            // In this topology the card performs the tasks of the PF driver.
            let itself = function.number() == 0 && topology == Topology::Provisioned.name();
            let state = if itself { "built-in" } else { function.state() };
            row(f, &function.name(), state, &|column| (column.cell)(function))?;
        }
        if !omitted.is_empty() {
            line(f, &format!("not shown on this terminal: {}", omitted.join(", ")))?;
        }
        let ran = status.functions.iter().filter_map(|function| Some((function.name(), function.gpu.kernels?)));
        for (name, counts) in ran.filter(|(_, counts)| !counts.is_zero()) {
            let KernelCounts { walkers, groups, instructions, faults } = counts;
            line(
                f,
                &format!(
                    "kernels of {name}: {walkers} walkers, {groups} groups, {instructions} instructions, {faults} faults"
                ),
            )?;
        }
        let engine = |EngineStatus { engine, function, kernel, .. }: &EngineStatus| {
            let kernel = kernel.map_or_else(String::new, |KernelStatus { address, groups, instructions }| {
                format!(" (kernel {address:#x}: {groups} groups, {instructions} instructions)")
            });
            format!("{engine} {}{kernel}", function.map_or_else(|| "-".into(), name_of))
        };
        let engines: Vec<_> = status.engines.iter().map(engine).collect();
        line(f, &format!("engines: {}", engines.join(", ")))?;
        if let Some(StreamStatus { unit, enabled, period_ns, bytes, written, lost }) = &status.stream {
            let timer = period_ns.map_or(String::new(), |ns| format!(" every {:.1} us", ns as f64 / 1e3));
            let state = if *enabled { format!("reports of {bytes} bytes{timer}") } else { "off".into() };
            line(f, &format!("stream: {unit}, {state}, {written} written, {lost} lost"))?;
        }
        if let Some(PowerStatus { mhz, requested_mhz, rc6_ns }) = status.power {
            let now = if mhz == 0 { "RC6".into() } else { format!("{mhz} MHz") };
            line(f, &format!("power: {now}, requested {requested_mhz} MHz, {:.1} s in RC6", rc6_ns as f64 / 1e9))?;
        }
        let version = |(name, version): (&String, &Option<String>)| {
            format!("{name} {}", version.as_deref().unwrap_or("not loaded"))
        };
        let firmware: Vec<_> = status.firmware.iter().map(version).collect();
        if firmware.is_empty() { Ok(()) } else { line(f, &format!("firmware: {}", firmware.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use arctic_gpu::gpu::Quota;

    use super::*;

    /// A VF is shown as "in reset" in every state of an FLR. The FLR also clears Bus Master Enable, so the state in the
    /// GuC takes precedence over "no driver".
    #[test]
    fn every_flr_state_is_shown_as_in_reset() {
        for name in ["emptying", "reset_pending", "resetting", "clearing"] {
            for bus_master in [false, true] {
                let function: FunctionStatus = serde_json::from_value(serde_json::json!({
                    "function": 1, "state": name, "enabled": true, "connected": true, "power_state": "D0",
                    "bus_master": bus_master, "guest_sections": 0, "trapped": {}, "memory_bytes": 0,
                }))
                .unwrap();
                assert_eq!(function.state(), "in reset", "{name}, bus mastering: {bus_master}");
            }
        }
    }

    #[test]
    fn the_table_lists_resources_by_function() {
        let mut status: Status = serde_json::from_str(
            r#"{"card": "Flex", "topology": "split", "uptime_seconds": 7.2, "total_vfs": 2, "enabled_vfs": 1,
                "resident_bytes": 104857600, "firmware": {"guc": "70.53.0"},
                "stream": {"unit": "OAG", "enabled": true, "period_ns": 853333, "bytes": 256, "written": 12, "lost": 1},
                "engines": [{"engine": "rcs0", "function": 1, "context": 33,
                             "kernel": {"address": 4096, "groups": 2, "instructions": 99}}, {"engine": "bcs0"}],
                "functions": [
                {"function": 1, "contexts": 4, "on": ["rcs0"], "engine_time_ns": {"render": 1000000000, "copy": 500000000},
                 "engine_resets": 0, "cat_errors": 0, "skipped_user_commands": 12, "skipped_contexts": 2,
                 "kernels": {"walkers": 3, "groups": 40, "instructions": 5000, "faults": 1},
                 "enabled": true, "connected": true, "power_state": "D0", "bus_master": true, "guest_sections": 3,
                 "trapped": {"config": 1, "register_reads": 2, "register_writes": 0, "doorbells": 0, "ggtt": 0,
                             "local_memory": 0}, "memory_bytes": 4194304},
                {"function": 2, "contexts": 0, "on": [], "engine_time_ns": {}, "quota": {"local_memory": 1048576},
                 "enabled": false, "connected": false, "power_state": "D0", "bus_master": false,
                 "guest_sections": 0, "trapped": {"config": 0}, "memory_bytes": 0}]}"#,
        )
        .unwrap();
        let mut quota = Quota { local_memory: 256 << 20, ggtt_size: 64 << 20, ..Quota::default() };
        quota.contexts.count = 2048;
        quota.scheduling.exec_quantum_ms = 16;
        status.functions[0].gpu.quota = Some(quota);
        let text = Table { status: &status, terminal: None }.to_string();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "Flex, split: 1 of 2 VFs enabled, up 7 s, 100 MiB resident");
        assert_eq!(lines[2], "vf1 working D0 256 MiB 64 MiB 4/2048 16 ms 1.50 s 3 4 MiB 12 2");
        assert_eq!(lines[3], "vf2 absent - 1 MiB - 0/- - 0.00 s 0 - 0 0", "a VF that is not enabled has a quota");
        assert_eq!(
            lines[4..],
            [
                "kernels of vf1: 3 walkers, 40 groups, 5000 instructions, 1 faults",
                "engines: rcs0 vf1 (kernel 0x1000: 2 groups, 99 instructions), bcs0 -",
                "stream: OAG, reports of 256 bytes every 853.3 us, 12 written, 1 lost",
                "firmware: guc 70.53.0"
            ]
        );
        let again: Status = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
        assert_eq!(again, status);
        for (columns, omitted) in
            [(120, None), (107, None), (80, Some("IN CTXS, HOST MEM, TRAPPED")), (50, Some("IN CTXS"))]
        {
            let text = Table { status: &status, terminal: Some(columns) }.to_string();
            assert!(text.lines().all(|line| line.len() <= columns), "{columns}: {text}");
            let line = text.lines().find_map(|line| line.strip_prefix("not shown on this terminal: "));
            assert_eq!(line.is_some(), omitted.is_some(), "{columns}: {text}");
            assert!(line.is_none_or(|line| line.starts_with(omitted.unwrap())), "{columns}: {text}");
        }
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
        let text = Table { status: &status, terminal: None }.to_string();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "HD Graphics: no VFs, up 7 s, 0 MiB resident");
        assert_eq!(lines[1..3], ["FUNCTION STATE POWER TRAPPED HOST MEM", "pf working D3hot 1 4 MiB"]);
        assert_eq!(lines[3..], ["engines: rcs0 pf, bcs0 -"], "no firmware");
    }
}
