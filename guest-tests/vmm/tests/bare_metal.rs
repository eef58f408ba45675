// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of PF and VFs with a bare-metal guest: a freestanding C program drives the card through VM exits, ioeventfds,
//! irqfds and memslots of KVM. Each test selects a guest test case on the guest's command line. The guest checks its
//! results and ends the VM with an exit code; the test checks the host's counters.
//!
//! The guest counts the register accesses that it makes, and the card counts those that it receives. Equal counts show
//! that writes to ioeventfd registers caused no trapped access, that no access to a mapped range was trapped, and that
//! no access was lost.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod common;

use std::process::ExitCode;
use std::sync::Arc;

use arctic_gpu::{PciDevice, VirtualCard, card_file};
use arctic_vmm::CardConfig;
use arctic_vmm::agent::Agent;
use vm_memory::GuestMemoryMmap;

fn main() -> ExitCode {
    common::main(tests![
        enumeration_and_sizing,
        pf_lifecycle,
        vf_lifecycle,
        all_vfs,
        memory_above_4_gib,
        two_vcpus,
        bar_relocation,
        reconfiguration_races_with_accesses,
        random_accesses,
        measurements,
    ])
}

/// Result of a guest test case: the card and guest memory, which hold the counters, and the guest's output.
struct After {
    card: Arc<VirtualCard>,
    memory: Arc<GuestMemoryMmap>,
    text: String,
}

fn run(theme: &str, cpus: u8) -> After {
    run_with(theme, cpus, common::card())
}

fn run_with(theme: &str, cpus: u8, card: Option<CardConfig>) -> After {
    let (machine, transcript) = common::machine(theme, theme, cpus, card);
    let (card, memory) = (machine.card().expect("a card").clone(), machine.memory().clone());
    let text = common::pass(theme, machine, &transcript);
    After { card, memory, text }
}

impl After {
    /// Checks that the guest used the first `functions` functions, and that only accesses that require a trap were
    /// trapped. The other functions must have had no trapped accesses except to configuration space.
    fn assert_only_required_traps(&self, functions: usize) {
        for (number, function) in (0..).zip(&self.card.functions()[..functions]) {
            let (trapped, did) = (function.trapped(), Agent::accesses(&self.memory, number));
            let name = function.name();
            assert!(did.events > 50 && did.reads > 0 && did.writes > 0, "{name}: {did:?}");
            assert_eq!(
                (trapped.of("register_reads"), trapped.of("register_writes")),
                (did.reads, did.writes),
                "{name}: {trapped:?}"
            );
            assert_eq!(trapped.of("doorbells"), did.pages, "{name}: {trapped:?}");
            assert_eq!((trapped.of("ggtt"), trapped.of("local_memory")), (0, 0), "{name}: {trapped:?}");
        }
        for function in &self.card.functions()[functions..] {
            let trapped = function.trapped();
            assert_eq!(trapped.total() - trapped.config(), 0, "{}: {trapped:?}", function.name());
        }
    }

    /// Returns the number of interrupts of a function that the guest's vCPUs have handled. The VMM injects them only
    /// through the function's irqfd.
    fn interrupts(&self, function: u64) -> u64 {
        Agent::interrupts_in(&self.memory, 0x40 + function as u8)
    }
}

/// Contract A.1..A.4: bridges, the PF's identity, capabilities, BAR sizes, SR-IOV and VF Resizable BAR; then address
/// assignment. Registers do not respond before memory decoding is enabled.
fn enumeration_and_sizing() {
    let after = run("enumerate", 1);
    assert!(after.text.contains("BARs: GTTMMADR 16 MiB, LMEM 2048 MiB"), "{}", after.text);
    let trapped = after.card.pf().trapped();
    assert_eq!(
        (trapped.of("register_reads"), trapped.of("register_writes")),
        (1, 0),
        "only the read after memory decoding is enabled reaches the card: {trapped:?}"
    );
}

/// Contract B.4, B.6, B.9, B.10: firmware, mailbox, messages, batches on each engine class, MSIs that wake a halted
/// CPU, MSI vector, mask and enable, D3hot. Firmware load, messages and batches are repeated after a Function Level
/// Reset and after a bus reset.
fn pf_lifecycle() {
    let after = run("pf", 1);
    after.assert_only_required_traps(1);
    // Three runs of 226 batches each, for which the guest waits individually. The MSI of one of the first few may be
    // coalesced with the MSI of a G2H message.
    assert!((600..1500).contains(&after.interrupts(0)), "{} MSIs", after.interrupts(0));
    assert_eq!(after.interrupts(1), 0);
}

/// Contract C.1..C.5, D.4, D.5, D.7: two VFs are provisioned by GuC VF-configuration KLVs, GGTT entries and the LMTT,
/// driven with memory-based interrupts, checked for isolation, reset by FLR with the PF's driver, and disabled. The
/// sequence runs twice.
fn vf_lifecycle() {
    let after = run("vf", 1);
    after.assert_only_required_traps(3);
    // VF 1 has four driver runs of 74 batches each, VF 2 has two. The MSI of one of the first few may be coalesced with
    // the MSI of a G2H message.
    assert!(after.interrupts(1) >= 4 * 70 && after.interrupts(2) >= 2 * 70);
}

/// Contract A.3, D.1: the maximum number of VFs, all on the PF's bus by ARI; each executes a batch. They use 63
/// interrupts, 126 ioeventfds and 126 memslots.
fn all_vfs() {
    let profile = card_file::load("flex170-63vf").unwrap().flex().unwrap();
    let after = run_with("many", 1, Some(CardConfig { profile, vfs: 63 }));
    assert!(after.text.contains("many: 63 VFs"), "{}", after.text);
    for vf in 1..=63 {
        assert!(after.interrupts(vf) > 0, "VF {vf}");
    }
    let others: u64 = after.card.functions().iter().map(|function| function.trapped().of("ggtt")).sum();
    assert_eq!(others, 0);
}

/// The card accesses RAM below and above 4 GiB: seqno writes of rings, stores by batches, and memory-based interrupts.
fn memory_above_4_gib() {
    for theme in ["pf high", "vf high"] {
        run(theme, 1);
    }
}

/// Two vCPUs access one function's registers, then separate functions.
fn two_vcpus() {
    let after = run("two", 2);
    after.assert_only_required_traps(3);
}

/// BARs are moved to other, invalid and overlapping addresses; NumVFs is invalid; accesses have all widths. The guest
/// must not be able to crash the VMM.
fn bar_relocation() {
    let after = run("moves", 1);
    assert_eq!(common::panics(&after.card), 0);
}

/// A vCPU toggles VF Enable and memory decoding, moves BARs, and resets a VF and the PF, while another vCPU accesses
/// them.
fn reconfiguration_races_with_accesses() {
    let after = run("races", 2);
    assert_eq!(common::panics(&after.card), 0);
}

/// Random accesses to configuration spaces, registers and memory, from one vCPU and from two, must not crash the VMM
/// or the card, and the card must work after a reset by the guest. `ARCTIC_SEED` sets the seed.
fn random_accesses() {
    let first = std::env::var("ARCTIC_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    for (seed, cpus) in (first..).zip([1, 2]) {
        let after = run(&format!("chaos seed={seed}"), cpus);
        assert_eq!(common::panics(&after.card), 0);
    }
}

/// The benchmark reports all measurements. A write to mapped local memory or to a mapped GGTT entry takes less than a
/// tenth of the time of a VM exit.
fn measurements() {
    let ticks = common::measure("measurements", 3);
    let [exit, local, entry] = [0, 7, 8].map(|number| ticks[number]);
    assert!(ticks.iter().all(|ticks| *ticks > 0.0));
    assert!(local < exit / 10.0 && entry < exit / 10.0, "{ticks:?}");
}
