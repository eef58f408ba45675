//! The life of PF and VFs on a bare machine: a freestanding guest in C drives the card through real exits, ioeventfds,
//! irqfds and memory slots of KVM. Each test is a theme of the guest's command line; the guest judges what it sees and
//! ends the machine with a code, the test judges what the host saw of it.
//!
//! What the guest does with registers it counts itself, and the card counts what came to it as an access. That both are
//! the same to the last access shows that doorbells came as events only, that nothing mapped was trapped, and that no
//! access was lost.

mod common;

use std::process::ExitCode;
use std::sync::Arc;

use arctic_gpu::{VirtualCard, card_file};
use arctic_vmm::CardConfig;
use arctic_vmm::agent::Agent;
use vm_memory::GuestMemoryMmap;

fn main() -> ExitCode {
    common::main(tests![
        enumeration_and_sizing,
        pf_life,
        vf_life,
        all_vfs,
        memory_above_4_gib,
        two_processors,
        bars_that_move,
        what_comes_and_goes,
        accesses_at_random,
        measurements,
    ])
}

/// What host and guest have counted after a theme.
struct After {
    card: Arc<VirtualCard>,
    memory: Arc<GuestMemoryMmap>,
    text: String,
}

fn run(theme: &str, cpus: u8) -> After {
    run_with(theme, cpus, common::card())
}

fn run_with(theme: &str, cpus: u8, card: Option<CardConfig>) -> After {
    let (machine, said) = common::machine(theme, theme, cpus, card);
    let (card, memory) = (machine.card().expect("a card").clone(), machine.memory().clone());
    let text = common::pass(theme, machine, &said);
    After { card, memory, text }
}

impl After {
    /// The first `functions` functions were used by their registers, events and memory; each access that had to come to
    /// the card came, and no other.
    fn only_what_must_is_trapped(&self, functions: usize) {
        for (number, function) in (0..).zip(&self.card.functions()[..functions]) {
            let (trapped, did) = (function.trapped(), Agent::accesses(&self.memory, number));
            let name = function.name();
            assert!(did.events > 50 && did.reads > 0 && did.writes > 0, "{name}: {did:?}");
            assert_eq!(
                (trapped.register_reads, trapped.register_writes),
                (did.reads, did.writes),
                "{name}: {trapped:?}"
            );
            assert_eq!(trapped.doorbells, did.pages, "{name}: {trapped:?}");
            assert_eq!((trapped.ggtt, trapped.local_memory), (0, 0), "{name}: {trapped:?}");
        }
        for function in &self.card.functions()[functions..] {
            let trapped = function.trapped();
            assert_eq!(trapped.total() - trapped.config, 0, "{}: {trapped:?}", function.name());
        }
    }

    /// Interrupts that the guest's processors took from a function. The VMM has no way to send one but its irqfd.
    fn interrupts(&self, function: u64) -> u64 {
        Agent::interrupts_in(&self.memory, 0x40 + function as u8)
    }
}

/// Contract A.1..A.4: bridges, the PF's identity, capabilities, BARs by size, SR-IOV and VF Resizable BAR; then
/// addresses, after which registers answer, and not before.
fn enumeration_and_sizing() {
    let after = run("enumerate", 1);
    assert!(after.text.contains("BARs: GTTMMADR 16 MiB, LMEM 2048 MiB"), "{}", after.text);
    let trapped = after.card.pf().trapped();
    assert_eq!(
        (trapped.register_reads, trapped.register_writes),
        (1, 0),
        "one read to see that it answers: {trapped:?}"
    );
}

/// Contract B.4, B.6, B.9, B.10: firmware, mailbox, messages, batches on each class of engines, MSIs that wake a halted
/// processor, MSI's rules, D3hot; again after a Function Level Reset, and after a reset of the bus.
fn pf_life() {
    let after = run("pf", 1);
    after.only_what_must_is_trapped(1);
    // Three lives with 226 batches each, which the guest waits for one by one; the first few may come with a message.
    assert!((600..1500).contains(&after.interrupts(0)), "{} MSIs", after.interrupts(0));
    assert_eq!(after.interrupts(1), 0);
}

/// Contract C.1..C.5, D.4, D.5, D.7: two VFs provisioned by messages and tables, driven with interrupts in memory, kept
/// apart, reset by their own capability under the PF's lead, disabled; and all of it again.
fn vf_life() {
    let after = run("vf", 1);
    after.only_what_must_is_trapped(3);
    // VF 1 has four drivers' lives with 74 batches each, VF 2 two; the first few may come with a message.
    assert!(after.interrupts(1) >= 4 * 70 && after.interrupts(2) >= 2 * 70);
}

/// Contract A.3, D.1: as many VFs as there can be, all on the PF's bus by ARI, each driven once: 63 interrupts, 126
/// events, 126 pieces of mapped memory of their own.
fn all_vfs() {
    let profile = card_file::load("flex170-63vf").unwrap();
    let after = run_with("many", 1, Some(CardConfig { profile, vfs: 63 }));
    assert!(after.text.contains("many: 63 VFs"), "{}", after.text);
    for vf in 1..=63 {
        assert!(after.interrupts(vf) > 0, "VF {vf}");
    }
    let others: u64 = after.card.functions().iter().map(|function| function.trapped().ggtt).sum();
    assert_eq!(others, 0);
}

/// The card reaches RAM on both sides of the hole below 4 GiB: rings' seqnos, batches' stores and interrupts in memory.
fn memory_above_4_gib() {
    for theme in ["pf high", "vf high"] {
        run(theme, 1);
    }
}

/// Two vCPUs at one function's registers, then at functions of their own.
fn two_processors() {
    let after = run("two", 2);
    after.only_what_must_is_trapped(3);
}

/// BARs at other places, wrong places and over each other; VFs in wrong numbers; accesses of all widths. No theme of
/// the guest's may harm the VMM.
fn bars_that_move() {
    let after = run("moves", 1);
    assert_eq!(after.card.model().panics(), 0);
}

/// VFs, decoding, BARs and the whole card come and go while another vCPU uses them.
fn what_comes_and_goes() {
    let after = run("races", 2);
    assert_eq!(after.card.model().panics(), 0);
}

/// Accesses at random of configuration spaces, registers and memory, of one processor and of two: neither VMM nor card
/// falls over, and a reset by the guest's own means brings both back. `ARCTIC_SEED` gives another seed.
fn accesses_at_random() {
    let first = std::env::var("ARCTIC_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    for (seed, cpus) in (first..).zip([1, 2]) {
        let after = run(&format!("chaos seed={seed}"), cpus);
        assert_eq!(after.card.model().panics(), 0);
    }
}

/// The bench's measurements come, and what is mapped costs no exit.
fn measurements() {
    let ticks = common::measure("measurements", 3);
    let [exit, local, entry] = [0, 7, 8].map(|number| ticks[number]);
    assert!(ticks.iter().all(|ticks| *ticks > 0.0));
    assert!(local < exit / 10.0 && entry < exit / 10.0, "{ticks:?}");
}
