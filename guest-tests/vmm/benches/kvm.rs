// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Measures the cost of a guest's accesses to the card under KVM, and of a bare exit and a bare ioeventfd for
//! comparison. Prints `NAME: NUMBER` lines, which the workspace's `cargo bench` parses.

// Not in the crate of shared test code, which does not depend on this package.
#[path = "../tests/common/mod.rs"]
mod common;

/// Number of guests, run in sequence; odd, since the median is reported. The placement of threads on the host's CPUs
/// varies between runs.
const GUESTS: usize = 5;

fn main() {
    if let Some(why) = arctic_vmm::elf_guest::unable() {
        println!("skipped: {why}");
        return;
    }
    let guests = [(); GUESTS].map(|()| common::measure("bench", 200));
    let median = |mut of_each: Vec<f64>| {
        of_each.sort_by(f64::total_cmp);
        of_each[GUESTS / 2]
    };
    let position = |wanted: &str| {
        let found = common::REPORTS.iter().position(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("no measurement {wanted}"))
    };
    for (number, (name, _)) in common::REPORTS.iter().enumerate() {
        println!("ticks of {name}: {:.0}", median(guests.iter().map(|ticks| ticks[number]).collect()));
    }
    for (name, baseline) in [
        ("register read", "exit"),
        ("register write", "exit"),
        ("hot register write", "ioeventfd without a waiting thread"),
        ("notification of the GuC", "ioeventfd with a waiting thread"),
    ] {
        let (ours, theirs) = (position(name), position(baseline));
        println!(
            "{name} / {baseline}: {:.3}",
            median(guests.iter().map(|ticks| ticks[ours] / ticks[theirs]).collect())
        );
    }
}
