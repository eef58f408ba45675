//! What the card was asked for: trapped accesses by region, and the registers that it lacks.

use std::collections::BTreeMap;
use std::fmt;

use arctic_device_model::registers::Touches;
use serde::Serialize;

/// The report that `arctic serve` leaves as `report.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the card.
    pub card: String,
    /// Accesses that the VMM could not do by itself, by region.
    pub trapped: BTreeMap<String, u64>,
    /// Registers that were touched and are not modelled, by offset.
    pub unmodelled: Vec<Unmodelled>,
}

/// A register that the card lacks.
#[derive(Debug, Serialize)]
pub struct Unmodelled {
    /// Offset in GTTMMADR; `u32::MAX` for all those beyond the number that is kept apart.
    pub offset: u32,
    /// Name, where one is known.
    pub name: Option<String>,
    /// How often it was read.
    pub reads: u64,
    /// How often it was written.
    pub writes: u64,
    /// Why it is right that it is absent, where that is known.
    pub reason: Option<String>,
}

impl Report {
    /// From the card's counters; `u32::MAX` among the unmodelled offsets stands for the rest.
    pub fn new(card: &str, trapped: BTreeMap<String, u64>, unmodelled: BTreeMap<u32, Touches>) -> Self {
        let unmodelled = unmodelled.into_iter().map(|(offset, touches)| Unmodelled {
            offset,
            name: (offset == u32::MAX).then(|| "others".into()),
            reads: touches.reads,
            writes: touches.writes,
            reason: None,
        });
        Report { card: card.into(), trapped, unmodelled: unmodelled.collect() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u64 = self.trapped.values().sum();
        let parts: Vec<_> = self.trapped.iter().map(|(region, count)| format!("{region} {count}")).collect();
        writeln!(f, "trapped accesses: {total} ({})", parts.join(", "))?;
        if self.unmodelled.is_empty() {
            return writeln!(f, "unmodelled registers: none");
        }
        writeln!(f, "unmodelled registers: {}", self.unmodelled.len())?;
        for register in &self.unmodelled {
            let Unmodelled { offset, name, reads, writes, reason } = register;
            let name = name.as_ref().map_or(String::new(), |name| format!(" {name}"));
            let reason = reason.as_deref().unwrap_or("no reason known");
            writeln!(f, "  {offset:#08x}{name} read {reads}, written {writes}: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_tells_every_register_that_is_missing() {
        let touches = |reads, writes| Touches { reads, writes };
        let unmodelled = BTreeMap::from([(0x44_0000, touches(2, 0)), (u32::MAX, touches(0, 9))]);
        let report = Report::new("Flex", BTreeMap::from([("config".into(), 3), ("ggtt".into(), 4)]), unmodelled);
        let text = report.to_string();
        assert!(text.starts_with("trapped accesses: 7 (config 3, ggtt 4)\n"), "{text}");
        assert!(text.contains("0x440000 read 2, written 0: no reason known"), "{text}");
        assert!(text.contains("others read 0, written 9"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["trapped"]["config"], 3);
        assert_eq!(json["unmodelled"][0]["offset"], 0x44_0000);
        assert_eq!(json["unmodelled"][1]["name"], "others");
    }
}
