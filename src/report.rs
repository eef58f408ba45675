// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report of a card: trapped accesses by region, accesses to unimplemented registers, commands that are skipped or
//! partly implemented.

use std::collections::BTreeMap;
use std::fmt;

use arctic_device_model::command::Origin;
use arctic_device_model::report::{self, FunctionKernels, SkippedCommands, TouchedRegister};
use serde::{Deserialize, Serialize};

/// Name of the accesses to configuration space.
const CONFIG: &str = "config";

/// The report that `arctic serve` writes to `report.json`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Name of the card.
    pub card: String,
    /// Trapped accesses, by region.
    pub trapped: BTreeMap<String, u64>,
    /// Trapped accesses of each function.
    pub functions: BTreeMap<String, TrappedCounts>,
    /// Unimplemented registers that were accessed, by offset.
    pub unmodelled: Vec<TouchedRegister>,
    /// Registers that were accessed while their forcewake domain was asleep; the access was performed nevertheless.
    pub asleep: Vec<TouchedRegister>,
    /// 3D and media commands that engines skipped or executed partly, by engine and name.
    pub undone: BTreeMap<String, u64>,
    /// The commands among these that were not executed at all, by function and origin.
    pub skipped_commands: Vec<SkippedCommands>,
    /// What the kernels of each function that has begun a walker have executed.
    pub walkers: Vec<FunctionKernels>,
    /// Number of steps of the card that panicked, each because of a bug of the card. The unit that was stepped lost its work.
    pub panics: u64,
}

impl Report {
    /// Combines the device model's report with the accesses of `functions`.
    pub fn new(card: &str, model: report::Report, functions: BTreeMap<String, TrappedCounts>) -> Self {
        let mut trapped = BTreeMap::new();
        for (region, count) in functions.values().flat_map(TrappedCounts::named) {
            *trapped.entry(region.to_owned()).or_default() += count;
        }
        let report::Report { unmodelled, asleep, undone, skipped_commands, walkers, panics } = model;
        Report { card: card.into(), trapped, functions, unmodelled, asleep, undone, skipped_commands, walkers, panics }
    }
}

/// A snapshot of the counters of one function's trapped accesses, by kind: `config`, and those that the card's family
/// distinguishes. For a Flex card: `register_reads`, `register_writes`, `doorbells`, `ggtt`, `local_memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrappedCounts(BTreeMap<String, u64>);

impl TrappedCounts {
    /// The counts of accesses to configuration space, and of the other kinds.
    pub(crate) fn new(config: u64, kinds: impl Iterator<Item = (String, u64)>) -> Self {
        TrappedCounts(kinds.chain([(CONFIG.to_owned(), config)]).collect())
    }

    /// The counts with their names, by name.
    pub fn named(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// The count with this name; 0 if the card has no such kind.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Accesses to configuration space.
    pub fn config(&self) -> u64 {
        self.of(CONFIG)
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.trapped.values().sum();
        let parts: Vec<_> = self.trapped.iter().map(|(region, count)| format!("{region} {count}")).collect();
        writeln!(f, "trapped accesses: {total} ({})", parts.join(", "))?;
        // Omitted if there is only one function, and for functions with only configuration space accesses, because a
        // VMM reads the configuration space of every function.
        let several = self.functions.len() > 1;
        for (name, counts) in self.functions.iter().filter(|(_, counts)| several && counts.total() != counts.config()) {
            let parts = counts.named().filter(|(_, count)| *count != 0);
            let parts: Vec<_> = parts.map(|(region, count)| format!("{region} {count}")).collect();
            writeln!(f, "  {name}: {} ({})", counts.total(), parts.join(", "))?;
        }
        let touched = |f: &mut fmt::Formatter<'_>, what: &str, registers: &[TouchedRegister]| {
            writeln!(f, "{what}: {}", if registers.is_empty() { "none".into() } else { registers.len().to_string() })?;
            registers.iter().try_for_each(|TouchedRegister { offset, name, reads, writes, reason }| {
                let name = name.as_ref().map_or(String::new(), |name| format!(" {name}"));
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                writeln!(f, "  {offset:#08x}{name} read {reads}, written {writes}{reason}")
            })
        };
        touched(f, "unmodelled registers", &self.unmodelled)?;
        touched(f, "registers accessed while asleep", &self.asleep)?;
        let user = || self.skipped_commands.iter().filter(|of| of.origin == Origin::User);
        let total: u64 = user().map(|of| of.count).sum();
        if total != 0 {
            writeln!(
                f,
                "commands of user contexts that were not executed: {total}; results of these programs are not valid"
            )?;
            for SkippedCommands { function, engine, command, count, .. } in user() {
                let name = if *function == 0 { "pf".into() } else { format!("vf{function}") };
                writeln!(f, "  {name} {engine}: {command} {count}")?;
            }
        }
        if self.panics != 0 {
            writeln!(f, "steps that panicked: {}; this is a bug of the card, please report it", self.panics)?;
        }
        let undone: u64 = self.undone.values().sum();
        writeln!(f, "commands skipped or done in part: {undone} of {} kinds", self.undone.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses to unimplemented registers and commands are counted and reported.
    #[test]
    fn report_lists_unmodelled_registers_and_commands() {
        let touched = |offset, reads, writes, reason| TouchedRegister { offset, name: None, reads, writes, reason };
        let model = report::Report {
            unmodelled: vec![touched(0x44_0000, 2, 0, None), touched(0x2b28, 0, 9, Some("not counted"))],
            undone: BTreeMap::from([("rcs0 3DSTATE_VS: state only".into(), 4)]),
            skipped_commands: [(0, Origin::Driver), (1, Origin::User)]
                .map(|(function, origin)| SkippedCommands {
                    function,
                    origin,
                    engine: "rcs0",
                    command: "3DSTATE_VS",
                    count: 2,
                })
                .into(),
            ..report::Report::default()
        };
        let counts = |config| serde_json::from_value(serde_json::json!({"config": config, "doorbells": 0, "ggtt": 1}));
        let functions = [("pf", 3), ("vf1", 2)].map(|(name, config)| (name.to_owned(), counts(config).unwrap()));
        let report = Report::new("Flex", model, BTreeMap::from(functions));
        let text = report.to_string();
        assert!(
            text.starts_with(
                "trapped accesses: 7 (config 5, doorbells 0, ggtt 2)\n  \
                pf: 4 (config 3, ggtt 1)\n  vf1: 3 (config 2, ggtt 1)\n"
            ),
            "{text}"
        );
        assert!(text.contains("0x440000 read 2, written 0\n"), "{text}");
        assert!(text.contains("0x002b28 read 0, written 9: not counted\n"), "{text}");
        assert!(text.contains("registers accessed while asleep: none\n"), "{text}");
        assert!(
            text.contains("not executed: 2; results of these programs are not valid\n  vf1 rcs0: 3DSTATE_VS 2\n"),
            "{text}"
        );
        assert!(text.ends_with("done in part: 4 of 1 kinds\n") && !text.contains("panicked"), "{text}");
        let text = Report { panics: 2, ..report.clone() }.to_string();
        assert!(text.contains("steps that panicked: 2; this is a bug of the card"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["trapped"]["config"], &json["functions"]["vf1"]["config"]), (&5.into(), &2.into()));
        assert_eq!(json["unmodelled"][0]["offset"], 0x44_0000);
        assert_eq!(json["unmodelled"][0].get("reason"), None);
        assert_eq!(
            (&json["skipped_commands"][0]["origin"], &json["skipped_commands"][1]["origin"]),
            (&"driver".into(), &"user".into())
        );
    }
}
