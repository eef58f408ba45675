// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state that is refused, for any reason, leaves a paused VF empty, and any other one as it is.

use arctic_device_model::card::function_state::{SavedFunction, SavedMemory};
use arctic_device_model::gpu::{Document, Gpu, Kind, StateError};
use arctic_device_model::state::RestoreError;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::document::{Section, Sections};
use arctic_test_support::kernels::COUNT;
use arctic_test_support::vfs::bench::*;

use super::kernels::submit_counting;
use super::{bench, pause, resume, save, submit_waiting};

/// A VF with a driver, contexts, a kernel in flight, registers and GGTT entries of its own.
fn busy() -> VfBench {
    let mut bench = bench(true);
    bench.attacker_up();
    for id in 0..2 {
        submit_waiting(&mut bench.attacker, id);
    }
    bench.attacker.request(super::ALLOCATE_DOORBELL, &[0, 0, super::WINDOW as u32, 0, 0]);
    submit_counting(&mut bench.attacker, 2, EngineClass::Compute, COUNT, 2, 100_000);
    bench.attacker.set(MAILBOX + 4, 0x1234);
    bench.work(12);
    bench
}

/// Without what is no state of a driver: parts of local memory that contain data, and where the VF is.
fn comparable(saved: &SavedFunction) -> Sections {
    let mut document = Sections::of(&saved.to_bytes());
    document.remove(b"LMRN");
    document.remove(b"PLAC");
    document
}

/// The state of a paused VF that no driver has used.
pub fn empty() -> Sections {
    let fresh = bench(true);
    pause(&fresh, ATTACKER);
    comparable(&save(&fresh, ATTACKER))
}

/// Returns whether nothing of a driver is left of the paused VF.
pub fn is_empty(bench: &VfBench, empty: &Sections) -> bool {
    comparable(&save(bench, ATTACKER)) == *empty && bench.card.gt().parked.count(ATTACKER) == 0
}

/// Changes the interface version of the VF's driver.
fn use_interface(saved: &mut Sections, minor: u8) {
    let client = saved.get(b"CLNT");
    let flags = client.body[0];
    client.put(0, 0, [1 | flags, 0, 0, 0, 1, minor, 0]);
}

fn restore(bench: &VfBench, saved: &Sections) -> Result<(), StateError> {
    let bytes = saved.to_bytes();
    let document = Document::read(&bytes, Kind::XeHpgFunction)?;
    bench.card.saved_state().unwrap().restore(ATTACKER, &document, &[])
}

/// Each kind of refusal leaves the VF empty. It can be restored afterwards, or be resumed and used by a driver.
#[test]
fn a_refused_vf_is_empty() {
    let empty = &empty();
    let mut bench = busy();
    pause(&bench, ATTACKER);
    let good = Sections::of(&save(&bench, ATTACKER).to_bytes());
    assert!(!is_empty(&bench, empty) && bench.card.gt().parked.count(ATTACKER) == 1);
    type Change = fn(&mut Sections);
    let refusals: &[(&str, Change)] = &[
        ("the saved state is of device 0x1234 revision 0x08, this is device", |it| {
            it.get(b"IDEN").put(0, 0, 0x1234_u16.to_le_bytes());
        }),
        ("the saved function had GGTT bytes 0x", |it| it.get(b"QUOT").put(0, 0, [1; 8])),
        ("the saved function had local memory bytes 0x", |it| it.get(b"QUOT").put(0, 8, [1; 8])),
        ("the saved function had contexts 0x", |it| it.get(b"QUOT").put(0, 16, [1; 4])),
        ("the saved function had doorbells 0x", |it| it.get(b"QUOT").put(0, 20, [1; 4])),
        ("the saved state needs section NEW!, which", |it| {
            it.sections.push(Section { tag: *b"NEW!", flags: 1, record: 0, body: vec![1] });
        }),
        ("the saved state has no section CLNT", |it| it.remove(b"CLNT")),
        ("section QUOT of the saved state is malformed", |it| it.get(b"QUOT").record = 0),
        ("the driver of the saved function uses interface 1.99.0 of the GuC, this one has", |it| {
            use_interface(it, 99);
        }),
        ("invalid saved state of GGTT: the number of pages", |it| it.get(b"GGTT").put(0, 0, [1; 4])),
        ("invalid saved state of local memory: the size", |it| it.get(b"LMEM").put(0, 0, [1; 8])),
        ("invalid saved state of registers: an unknown register", |it| it.get(b"REGS").put(0, 0, [1; 4])),
        ("invalid saved state of interrupt tree: ", |it| it.get(b"ITRE").put(0, 8, 0x7fff_0001_u32.to_le_bytes())),
        ("invalid saved state of contexts: an engine class", |it| it.get(b"CTXS").put(1, 2, [99])),
        ("invalid saved state of doorbells: a doorbell", |it| it.get(b"DBEL").put(0, 4, [1; 4])),
        ("invalid saved state of kernels: a ticket that is none", |it| it.get(b"KWLK").put(0, 8, [0; 8])),
    ];
    for (expected, change) in refusals {
        restore(&bench, &good).unwrap();
        assert!(!is_empty(&bench, empty));
        let mut changed = good.clone();
        change(&mut changed);
        let error = restore(&bench, &changed).err().or_else(|| panic!("restored: {expected}")).unwrap().to_string();
        assert!(error.starts_with(expected), "{error}, not {expected}");
        assert!(is_empty(&bench, empty), "{error}");
    }
    // Without memory, the state is for a PF driver.
    restore(&bench, &good).unwrap();
    let saved = save(&bench, ATTACKER);
    let without = SavedFunction { memory: None, ..saved.clone() };
    let mut state = bench.card.function_state(ATTACKER);
    assert_eq!(state.restore(&without).unwrap_err().to_string(), "the saved state has no section GGTT");
    drop(state);
    assert!(is_empty(&bench, empty));
    resume(&bench, ATTACKER);
    bench.attacker_up();
    submit_waiting(&mut bench.attacker, 0);
    bench.attacker.poke(super::GO, 1);
    bench.until("a new context", 5000, |bench| super::done(&bench.attacker, 0));
    assert_eq!(bench.card.panics(), 0);
}

/// A driver that cannot adapt its addresses is not moved to another range, and leaves nothing there.
#[test]
fn a_driver_that_cannot_move_leaves_an_empty_vf() {
    let empty = &empty();
    let bench = busy();
    pause(&bench, ATTACKER);
    let mut good = Sections::of(&save(&bench, ATTACKER).to_bytes());
    use_interface(&mut good, 26);
    restore(&bench, &good).unwrap();
    good.get(b"PLAC").put(0, 0, 0x20_0000_u64.to_le_bytes());
    let error = restore(&bench, &good).unwrap_err().to_string();
    assert!(error.contains("uses interface 1.26.0 of the GuC and cannot move to another GGTT range"), "{error}");
    assert!(is_empty(&bench, empty));
}

/// A VF that is not paused stays as it is, whatever the state is, and so does one that does not exist.
#[test]
fn a_vf_that_is_not_paused_does_not_change() {
    let bench = busy();
    pause(&bench, ATTACKER);
    let good = save(&bench, ATTACKER);
    let mut other = Sections::of(&good.to_bytes());
    other.get(b"QUOT").put(0, 16, [1; 4]);
    let mut incomplete = other.clone();
    incomplete.remove(b"CLNT");
    resume(&bench, ATTACKER);
    let state = bench.card.saved_state().unwrap();
    for document in [&other, &incomplete] {
        assert!(matches!(restore(&bench, document), Err(StateError::Restore(RestoreError::Running))));
    }
    assert!(matches!(state.empty(ATTACKER), Err(StateError::Restore(RestoreError::Running))));
    pause(&bench, ATTACKER);
    let SavedMemory { frames, .. } = save(&bench, ATTACKER).memory.unwrap();
    let memory = good.memory.clone().map(|memory| SavedMemory { frames, ..memory });
    let contexts = |saved: &SavedFunction| (saved.client.clone(), saved.contexts.clone(), saved.doorbells.clone());
    let now = save(&bench, ATTACKER);
    assert_eq!(contexts(&now), contexts(&good));
    assert_eq!((now.memory, now.registers), (memory, good.registers));
}
