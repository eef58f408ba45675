//! What a guest's accesses of the card cost under KVM, beside what an exit and an ioeventfd cost there at all: lines of a
//! name, a colon and a number, which `cargo bench` of the workspace reads.

#[path = "../tests/common/mod.rs"]
mod common;

/// Guests that measure, one after the other: how threads fall on the host's processors differs between them, and the
/// median of an odd number says what is usual.
const GUESTS: usize = 5;

fn main() {
    if let Some(why) = arctic_vmm::bare_guest::unable() {
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
        found.unwrap_or_else(|| panic!("nobody measures {wanted}"))
    };
    for (number, (name, _)) in common::REPORTS.iter().enumerate() {
        println!("ticks of {name}: {:.0}", median(guests.iter().map(|ticks| ticks[number]).collect()));
    }
    for (name, bare) in [
        ("register read", "exit"),
        ("register write", "exit"),
        ("hot register write", "ioeventfd that nobody hears"),
        ("doorbell", "ioeventfd that a thread hears"),
    ] {
        let (ours, theirs) = (position(name), position(bare));
        println!("{name} / {bare}: {:.3}", median(guests.iter().map(|ticks| ticks[ours] / ticks[theirs]).collect()));
    }
}
