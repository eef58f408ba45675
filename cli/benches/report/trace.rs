// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parser of the card's log with `RUST_LOG=arctic_gpu=trace`: register accesses, and the accesses per submission.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// One trapped access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Whether it is a write.
    pub write: bool,
    /// Region: BAR number, 7 for configuration space.
    pub region: u32,
    /// Offset in the region.
    pub offset: u64,
}

/// Parses one line of the log; `None` for lines other than an access of the PF (function 0):
/// `[TRACE arctic_gpu::card::function] 0: read 0:0x190008 = [01, 00, 00, 00]`
pub fn access(line: &str) -> Option<Access> {
    let (_, text) = line.split_once("arctic_gpu::card::function] 0: ")?;
    let (verb, rest) = text.split_once(' ')?;
    let write = match verb {
        "read" => false,
        "write" => true,
        _ => return None,
    };
    let (place, _) = rest.split_once(" = ")?;
    let (region, offset) = place.split_once(":0x")?;
    let region = if region == "config" { 7 } else { region.parse().ok()? };
    Some(Access { write, region, offset: u64::from_str_radix(offset, 16).ok()? })
}

/// Number of occurrences of each access.
pub type Counts = BTreeMap<Access, u64>;

/// Counts the accesses between consecutive reads of register `mark`; the number of phases is the number of marks minus
/// one.
pub fn phases(log: &str, mark: u64) -> Vec<Counts> {
    let mark = Access { write: false, region: 0, offset: mark };
    let mut phases: Vec<Counts> = Vec::new();
    for access in log.lines().filter_map(access) {
        if access == mark {
            phases.push(Counts::new());
        } else if let Some(phase) = phases.last_mut() {
            *phase.entry(access).or_default() += 1;
        }
    }
    // The accesses after the last mark belong to no phase.
    phases.pop();
    phases
}

/// Accesses per submission, from two phases that differ only in the number of submissions; accesses made once per phase
/// cancel out. Accesses with no difference are omitted.
pub fn per_submission(few: (u32, &Counts), many: (u32, &Counts)) -> Result<BTreeMap<Access, f64>> {
    let more = many.0.checked_sub(few.0).filter(|more| *more > 0);
    let more = more.context("the second phase is not longer than the first")?;
    ensure!(many.1.values().sum::<u64>() > few.1.values().sum(), "more submissions did not cause more accesses");
    let accesses: std::collections::BTreeSet<&Access> = few.1.keys().chain(many.1.keys()).collect();
    let count = |counts: &Counts, access| counts.get(access).copied().unwrap_or(0) as f64;
    let each =
        accesses.into_iter().map(|access| (*access, (count(many.1, access) - count(few.1, access)) / f64::from(more)));
    Ok(each.filter(|(_, each)| *each != 0.0).collect())
}
