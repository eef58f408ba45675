//! What a guest's accesses of the card cost under KVM, beside what an exit and an ioeventfd cost there at all: lines of a
//! name, a colon and a number, which `cargo bench` of the workspace reads.

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    let Some(ticks) = common::measure("bench", 200) else { return };
    for ((name, _), ticks) in common::REPORTS.iter().zip(&ticks) {
        println!("ticks of {name}: {ticks:.0}");
    }
    let of = |wanted: &str| {
        let found = common::REPORTS.iter().position(|(name, _)| *name == wanted);
        found.map_or(f64::NAN, |number| ticks[number])
    };
    for (name, bare) in [
        ("register read", "exit"),
        ("register write", "exit"),
        ("hot register write", "ioeventfd that nobody hears"),
        ("doorbell", "ioeventfd that a thread hears"),
    ] {
        println!("{name} / {bare}: {:.3}", of(name) / of(bare));
    }
}
