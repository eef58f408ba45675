// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of PF and VFs in a bare-metal VM: a freestanding C guest drives the card through real exits, ioeventfds,
//! irqfds and memslots of KVM. Each test selects a theme of the guest by its command line. The guest checks its
//! observations and ends the VM with an exit code; the test checks the host's counters.
//!
//! The guest counts the register accesses that it makes, and the card counts those that it receives. Equal counts show
//! that doorbells were delivered only as events, that no mapped range was trapped, and that no access was lost.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

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
        enables_and_disables_beside_accesses,
        accesses_at_random,
        measurements,
    ])
}

/// The counters of host and guest after a theme.
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
    /// Checks that the first `functions` functions were used through registers, events and memory, and that only those
    /// accesses were trapped that must be.
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

    /// Returns the number of a function's interrupts that the guest's CPUs have taken. The VMM sends them only through
    /// the function's irqfd.
    fn interrupts(&self, function: u64) -> u64 {
        Agent::interrupts_in(&self.memory, 0x40 + function as u8)
    }
}

/// Contract A.1..A.4: bridges, the PF's identity, capabilities, BAR sizes, SR-IOV and VF Resizable BAR; then address
/// assignment, before which registers do not respond.
fn enumeration_and_sizing() {
    let after = run("enumerate", 1);
    assert!(after.text.contains("BARs: GTTMMADR 16 MiB, LMEM 2048 MiB"), "{}", after.text);
    let trapped = after.card.pf().trapped();
    assert_eq!(
        (trapped.register_reads, trapped.register_writes),
        (1, 0),
        "only one read, which checks that registers respond: {trapped:?}"
    );
}

/// Contract B.4, B.6, B.9, B.10: firmware, mailbox, messages, batches on each engine class, MSIs that wake a halted
/// CPU, MSI vector, mask and enable, D3hot. Firmware load, messages and batches are repeated after a Function Level
/// Reset and after a bus reset.
fn pf_life() {
    let after = run("pf", 1);
    after.only_what_must_is_trapped(1);
    // Three runs of 226 batches each, for which the guest waits individually. The MSI of one of the first few may be
    // coalesced with the MSI of a message.
    assert!((600..1500).contains(&after.interrupts(0)), "{} MSIs", after.interrupts(0));
    assert_eq!(after.interrupts(1), 0);
}

/// Contract C.1..C.5, D.4, D.5, D.7: two VFs are provisioned by messages and tables, driven with memory-based
/// interrupts, checked for isolation, reset by FLR with the PF's driver, and disabled. The sequence runs twice.
fn vf_life() {
    let after = run("vf", 1);
    after.only_what_must_is_trapped(3);
    // VF 1 has four driver runs of 74 batches each, VF 2 has two. The MSI of one of the first few may be coalesced with
    // the MSI of a message.
    assert!(after.interrupts(1) >= 4 * 70 && after.interrupts(2) >= 2 * 70);
}

/// Contract A.3, D.1: the maximum number of VFs, all on the PF's bus by ARI, each driven once: 63 interrupts, 126
/// ioeventfds, 126 memslots.
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

/// The card accesses RAM below and above 4 GiB: seqnos of rings, stores of batches, and memory-based interrupts.
fn memory_above_4_gib() {
    for theme in ["pf high", "vf high"] {
        run(theme, 1);
    }
}

/// Two vCPUs access one function's registers, then separate functions.
fn two_processors() {
    let after = run("two", 2);
    after.only_what_must_is_trapped(3);
}

/// BARs at other addresses, at invalid addresses and overlapping; invalid numbers of VFs; accesses of all widths. The
/// guest must not be able to crash the VMM.
fn bars_that_move() {
    let after = run("moves", 1);
    assert_eq!(after.card.model().panics(), 0);
}

/// VFs, decoding, BARs and the whole card are reconfigured and reset while another vCPU accesses them.
fn enables_and_disables_beside_accesses() {
    let after = run("races", 2);
    assert_eq!(after.card.model().panics(), 0);
}

/// Random accesses to configuration spaces, registers and memory, from one CPU and from two, crash neither VMM nor
/// card, and the card works after a reset by the guest. `ARCTIC_SEED` sets the seed.
fn accesses_at_random() {
    let first = std::env::var("ARCTIC_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    for (seed, cpus) in (first..).zip([1, 2]) {
        let after = run(&format!("chaos seed={seed}"), cpus);
        assert_eq!(after.card.model().panics(), 0);
    }
}

/// The benchmark reports all measurements, and mapped memory causes no exits.
fn measurements() {
    let ticks = common::measure("measurements", 3);
    let [exit, local, entry] = [0, 7, 8].map(|number| ticks[number]);
    assert!(ticks.iter().all(|ticks| *ticks > 0.0));
    assert!(local < exit / 10.0 && entry < exit / 10.0, "{ticks:?}");
}
