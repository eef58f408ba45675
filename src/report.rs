//! What the card was asked for: trapped accesses by region, the registers that it lacks, the commands it only skips.

use std::collections::BTreeMap;
use std::fmt;

use arctic_device_model::report::{self, TouchedRegister};
use serde::Serialize;

/// The report that `arctic serve` leaves as `report.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the card.
    pub card: String,
    /// Accesses that the VMM could not do by itself, by region.
    pub trapped: BTreeMap<String, u64>,
    /// Registers that were touched and are not modelled, by offset.
    pub unmodelled: Vec<TouchedRegister>,
    /// Registers that were touched while their wake domain slept; the access went through.
    pub asleep: Vec<TouchedRegister>,
    /// What engines skipped or did in part, by engine and name: 3D and media commands.
    pub undone: BTreeMap<String, u64>,
}

impl Report {
    /// The device model's report, with the accesses of `regions` that never reach it.
    pub fn new(card: &str, model: report::Report, regions: &[(&str, u64)]) -> Self {
        let own = [
            ("register_reads", model.trapped.register_reads),
            ("register_writes", model.trapped.register_writes),
            ("ggtt", model.trapped.ggtt),
            ("doorbells", model.trapped.doorbells),
        ];
        let trapped = own.iter().chain(regions).map(|(name, count)| ((*name).into(), *count)).collect();
        let report::Report { unmodelled, asleep, undone, .. } = model;
        Report { card: card.into(), trapped, unmodelled, asleep, undone }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.trapped.values().sum();
        let parts: Vec<_> = self.trapped.iter().map(|(region, count)| format!("{region} {count}")).collect();
        writeln!(f, "trapped accesses: {total} ({})", parts.join(", "))?;
        let touched = |f: &mut fmt::Formatter<'_>, what: &str, registers: &[TouchedRegister]| {
            writeln!(f, "{what}: {}", if registers.is_empty() { "none".into() } else { registers.len().to_string() })?;
            registers.iter().try_for_each(|TouchedRegister { offset, name, reads, writes, reason }| {
                let name = name.as_ref().map_or(String::new(), |name| format!(" {name}"));
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                writeln!(f, "  {offset:#08x}{name} read {reads}, written {writes}{reason}")
            })
        };
        touched(f, "unmodelled registers", &self.unmodelled)?;
        touched(f, "registers touched asleep", &self.asleep)?;
        let undone: u64 = self.undone.values().sum();
        writeln!(f, "commands skipped or done in part: {undone} of {} kinds", self.undone.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Design rule 10: nothing that the card lacks is silent.
    #[test]
    fn the_report_tells_everything_that_is_missing() {
        let touched = |offset, reads, writes, reason| TouchedRegister { offset, name: None, reads, writes, reason };
        let model = report::Report {
            unmodelled: vec![touched(0x44_0000, 2, 0, None), touched(0x2b28, 0, 9, Some("not counted"))],
            undone: BTreeMap::from([("rcs0 3DSTATE_VS: state only".into(), 4)]),
            ..report::Report::default()
        };
        let report = Report::new("Flex", model, &[("config", 3)]);
        let text = report.to_string();
        assert!(
            text.starts_with(
                "trapped accesses: 3 (config 3, doorbells 0, ggtt 0, register_reads 0, register_writes 0)\n"
            ),
            "{text}"
        );
        assert!(text.contains("0x440000 read 2, written 0\n"), "{text}");
        assert!(text.contains("0x002b28 read 0, written 9: not counted\n"), "{text}");
        assert!(text.contains("registers touched asleep: none\n"), "{text}");
        assert!(text.ends_with("done in part: 4 of 1 kinds\n"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["trapped"]["config"], 3);
        assert_eq!(json["unmodelled"][0]["offset"], 0x44_0000);
        assert_eq!(json["unmodelled"][0].get("reason"), None);
    }
}
