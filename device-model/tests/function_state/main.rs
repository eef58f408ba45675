// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring a virtual function: its work continues on another card, what is restored is what was saved, and
//! invalid saved state is refused.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod hostile;
mod kernels;
mod moved;
mod refused;

use arctic_device_model::card::function_state::{SavedFunction, SavedMemory};
use arctic_device_model::doorbell::{PAGE_BYTES, WINDOW};
use arctic_device_model::gpu::Gpu;
use arctic_device_model::guc::functions::client::State;
use arctic_device_model::host::Function;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::state::{FormatError, RestoreError, SaveError, Tag};
use arctic_device_model::topology::EngineClass;
use arctic_test_support::ct;
use arctic_test_support::document::{Section, Sections};
use arctic_test_support::mi::{self, Compare};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::{fill, nothing_leaked, snapshot, unharmed};
use arctic_test_support::vfs::world::Time;
use vm_memory::Bytes;

/// Offset of the dword that contexts wait for.
const GO: u64 = at::SCRATCH;
/// Offset of the dword that context n writes, plus 4 n.
const DONE: u64 = at::SCRATCH + 0x100;
/// Value that contexts write.
const VALUE: u32 = 0xcafe;

const ALLOCATE_DOORBELL: u32 = 0x10;
const UPDATE_CONTEXT_POLICIES: u32 = 0x100b;

fn bench(mapped: bool) -> VfBench {
    VfBench::with(mapped, Some(QUOTA), Time::manual())
}

fn state(bench: &VfBench, function: Function) -> Option<State> {
    bench.card.status().functions[function.index()].state
}

fn pause(bench: &VfBench, function: Function) {
    bench.card.function_state(function).set_paused(true).unwrap();
    bench.until("the end of the pause", 5000, |bench| bench.card.function_state(function).is_paused());
}

fn resume(bench: &VfBench, function: Function) {
    bench.card.function_state(function).set_paused(false).unwrap();
}

fn save(bench: &VfBench, function: Function) -> SavedFunction {
    bench.card.function_state(function).save().unwrap()
}

fn restore(bench: &VfBench, function: Function, saved: &SavedFunction) -> Result<(), RestoreError> {
    bench.card.function_state(function).restore(saved)
}

/// Writes saved state to bytes and reads them again, which must give the same bytes.
fn through_bytes(saved: &SavedFunction) -> SavedFunction {
    let bytes = saved.to_bytes();
    let read = SavedFunction::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes(), bytes);
    read
}

/// Submits a context that waits for [`GO`] and then writes [`VALUE`].
fn submit_waiting(vf: &mut Vf, id: u32) {
    let wait = mi::semaphore_wait(vf.global(GO), Compare::Equal, 1);
    let store = mi::store_data_imm(vf.global(DONE + u64::from(id) * 4), VALUE);
    vf.submit(id, EngineClass::Copy, &[&wait[..], &store[..]].concat());
}

fn done(vf: &Vf, id: u32) -> bool {
    vf.peek(DONE + u64::from(id) * 4) == VALUE
}

/// Copies the local memory that contains data, and the guest memory.
fn copy_memory(from: &VfBench, to: &VfBench, saved: &SavedFunction) {
    for run in saved.memory.as_ref().unwrap().frames.data() {
        let mut bytes = vec![0; (run.end - run.start) as usize];
        from.attacker.local.slice(run.start, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
        to.attacker.local.slice(run.start, bytes.len()).unwrap().write_slice(&bytes, 0).unwrap();
    }
    to.guests.of(ATTACKER).fill(&from.guests.of(ATTACKER).bytes());
}

/// A VF is saved while two of its contexts wait and one is idle, and restored on a fresh card. Its contexts run
/// there to completion, its driver goes on with the same CT buffers, and its registers have their values.
#[test]
fn a_vf_continues_on_another_card() {
    for mapped in [true, false] {
        let mut source = bench(mapped);
        source.attacker_up();
        for id in 0..2 {
            submit_waiting(&mut source.attacker, id);
        }
        source.attacker.set(MAILBOX + 4, 0x1234);
        source.work(40);
        assert!(!done(&source.attacker, 0) && !done(&source.attacker, 1));
        pause(&source, ATTACKER);
        let saved = through_bytes(&save(&source, ATTACKER));

        let mut target = bench(mapped);
        pause(&target, ATTACKER);
        copy_memory(&source, &target, &saved);
        restore(&target, ATTACKER, &saved).unwrap();
        target.attacker.state_mut().rings = source.attacker.state().rings;
        assert_eq!(save(&target, ATTACKER), saved);
        target.attacker.poke(GO, 1);
        target.work(40);
        assert!(!done(&target.attacker, 0), "no context runs while the VF is paused");
        resume(&target, ATTACKER);
        target.until("the restored contexts", 5000, |bench| (0..2).all(|id| done(&bench.attacker, id)));
        assert_eq!(target.attacker.get(MAILBOX + 4), 0x1234);
        submit_waiting(&mut target.attacker, 2);
        target.until("a new context", 5000, |bench| done(&bench.attacker, 2));
        assert!(!target.attacker.rings_stopped());
        assert_eq!((source.card.panics(), target.card.panics()), (0, 0));
    }
}

/// Sets up a VF in an arbitrary way.
fn set_up(vf: &mut Vf, random: &mut Random) {
    for id in 0..random.below(8) as u32 {
        submit_waiting(vf, id);
        if random.one_in(2) {
            vf.request(
                UPDATE_CONTEXT_POLICIES,
                &[id, 0x2001_0001, random.below(5000) as u32, 0x2003_0001, random.below(4) as u32],
            );
        }
        if random.one_in(3) {
            vf.request(0x1001, &[id, 0]);
        }
        if random.one_in(3) {
            let page = WINDOW + random.below(1024) * PAGE_BYTES;
            vf.request(ALLOCATE_DOORBELL, &[id, random.below(9) as u32, page as u32, 0, 0]);
        }
    }
    for page in 0..random.below(16) {
        vf.set_global((vf.base() + at::WINDOW.start) / 4096 + page, random.any() & 0x3fff_ffff_f003);
    }
    for register in [MAILBOX + 4, 0x19_0030, 0x19_0034, 0x19_0090, 0x19_0070, 0x19_003c] {
        if random.one_in(2) {
            vf.set(register, random.edge() as u32);
        }
    }
}

/// What is saved, lost by a reset, and restored is saved again unchanged, by all units and through bytes. The same holds
/// for a VF whose range of contexts, doorbells and GGTT begins elsewhere.
#[test]
fn restored_state_saves_to_the_same_state() {
    for (seed, mapped) in (0..24).zip([true, false].into_iter().cycle()) {
        let random = &mut Random::new(seed);
        let mut bench = bench(mapped);
        bench.attacker_up();
        set_up(&mut bench.attacker, random);
        bench.work(random.below(60) as u32);
        pause(&bench, ATTACKER);
        let saved = save(&bench, ATTACKER);
        assert_eq!(save(&bench, ATTACKER), saved, "saving changes nothing");
        assert_eq!(through_bytes(&saved), saved);
        bench.card.reset_function(ATTACKER);
        bench.until("the end of the reset", 60_000, |bench| state(bench, ATTACKER) == Some(State::Running));
        pause(&bench, ATTACKER);
        let fresh = save(&bench, ATTACKER);
        assert_ne!(fresh, saved);
        let neighbour = VICTIMS[1];
        pause(&bench, neighbour);
        for target in [ATTACKER, neighbour] {
            let frames = save(&bench, target).memory.unwrap().frames;
            let memory = saved.memory.clone().map(|memory| SavedMemory { frames, ..memory });
            let saved = SavedFunction { memory, ..saved.clone() };
            restore(&bench, target, &saved).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let again = save(&bench, target);
            assert_eq!(again.placement.ggtt_start, base(target));
            // A driver that is elsewhere has to adapt its addresses.
            assert_eq!(again.placement.fix_up, target != ATTACKER);
            let saved = SavedFunction { placement: again.placement, ..saved };
            assert_eq!(again, saved, "seed {seed}");
        }
        assert_eq!(bench.card.panics(), 0);
    }
}

/// A VF is saved and restored only while it is paused, and only with the quotas of the saved VF. The PF is neither.
#[test]
fn a_running_or_different_vf_is_refused() {
    let mut one = bench(true);
    one.attacker_up();
    let mut running = one.card.function_state(ATTACKER);
    assert_eq!(running.save(), Err(SaveError::Running));
    drop(running);
    pause(&one, ATTACKER);
    let saved = save(&one, ATTACKER);
    resume(&one, ATTACKER);
    assert_eq!(restore(&one, ATTACKER, &saved), Err(RestoreError::Running));
    assert!(one.card.function_state(Function::PF).save().is_err());
    assert!(restore(&one, Function::PF, &saved).is_err());
    let other = Quota { contexts: 63, ..QUOTA };
    let other = VfBench::with(true, Some(other), Time::manual());
    pause(&other, ATTACKER);
    let refused = restore(&other, ATTACKER, &saved);
    assert_eq!(refused, Err(RestoreError::Provisioning { resource: "contexts", saved: 64, here: 63 }));
}

/// Returns saved state with a change of its document.
fn with(saved: &SavedFunction, change: impl FnOnce(&mut Sections)) -> Result<SavedFunction, RestoreError> {
    let mut document = Sections::of(&saved.to_bytes());
    change(&mut document);
    SavedFunction::from_bytes(&document.to_bytes())
}

/// The memory of a restored VF arrives after its state. Until the VF is resumed, the card does not access this memory,
/// although messages wait for the VF; then they are sent.
#[test]
fn memory_is_not_accessed_before_the_vf_is_resumed() {
    let mut source = bench(true);
    source.attacker_up();
    pause(&source, ATTACKER);
    let saved = with(&save(&source, ATTACKER), |document| {
        document.set_dwords(b"WAIT", &[&[2 << 16]]);
        document.set_dwords(b"WAID", &[&[0x9000_1234], &[1]]);
        document.set_dwords(b"TLBI", &[&[5]]);
    });
    let saved = saved.unwrap();

    let mut target = bench(true);
    pause(&target, ATTACKER);
    let garbage = vec![0x5a; LOCAL as usize];
    target.attacker.local.slice(0, garbage.len()).unwrap().write_slice(&garbage, 0).unwrap();
    let guest = target.guests.of(ATTACKER).bytes();
    restore(&target, ATTACKER, &saved).unwrap();
    let [other, _] = &mut target.victims;
    other.up();
    submit_waiting(other, 0);
    target.work(40);
    let mut bytes = vec![0; garbage.len()];
    target.attacker.local.slice(0, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
    assert!(bytes == garbage && target.guests.of(ATTACKER).bytes() == guest, "the paused VF's memory was written");

    target.attacker.local.slice(0, garbage.len()).unwrap().write_slice(&vec![0; garbage.len()], 0).unwrap();
    copy_memory(&source, &target, &saved);
    target.attacker.state_mut().rings = source.attacker.state().rings;
    resume(&target, ATTACKER);
    target.work(40);
    let messages: Vec<_> = std::iter::from_fn(|| target.attacker.take()).map(|message| message[1..].to_vec()).collect();
    assert_eq!(messages, [[0x9000_1234, 1], [0x9000_7001, 5]]);
}

/// A VF that its PF has stopped runs only after a reset: contexts that are restored do not run, even if their doorbells
/// ring.
#[test]
fn a_stopped_vf_does_not_run_what_is_restored() {
    const VF_CONTROL: u32 = 0x5506;
    let mut bench = VfBench::with(true, None, Time::manual());
    bench.attacker_up();
    submit_waiting(&mut bench.attacker, 0);
    bench.attacker.request(ALLOCATE_DOORBELL, &[0, 0, WINDOW as u32, 0, 0]);
    bench.work(40);
    pause(&bench, ATTACKER);
    let saved = save(&bench, ATTACKER);
    assert!(!done(&bench.attacker, 0));
    let stop = |bench: &VfBench| {
        bench.pf.borrow_mut().as_mut().unwrap().request(VF_CONTROL, &[u32::from(ATTACKER.number()), 3]);
        bench.until("the stop", 5000, |bench| state(bench, ATTACKER) == Some(State::Stopped));
    };
    stop(&bench);
    restore(&bench, ATTACKER, &saved).unwrap();
    bench.attacker.poke(GO, 1);
    bench.card.write_gttmmadr(ATTACKER, WINDOW, &[1, 0, 0, 0]);
    bench.work(200);
    assert!(!done(&bench.attacker, 0), "a context of a stopped VF ran");
}

/// Registers that saved state does not contain, because the card that saved it had no such registers, have their reset
/// values afterwards.
#[test]
fn missing_registers_are_reset() {
    let bench = bench(true);
    pause(&bench, ATTACKER);
    let saved = with(&save(&bench, ATTACKER), |document| {
        document.remove(b"REGS");
        document.remove(b"REGE");
    });
    let fresh = save(&bench, ATTACKER);
    bench.attacker.set(MAILBOX + 4, 0x1234);
    assert_ne!(save(&bench, ATTACKER), fresh);
    restore(&bench, ATTACKER, &saved.unwrap()).unwrap();
    assert_eq!(save(&bench, ATTACKER), fresh);
}

/// A later version may have further sections, and longer records in another order. What must be known is refused by name.
#[test]
fn the_state_of_a_later_version_is_restored() {
    let mut bench = bench(true);
    bench.attacker_up();
    submit_waiting(&mut bench.attacker, 0);
    pause(&bench, ATTACKER);
    let saved = save(&bench, ATTACKER);
    let later = |flags| {
        move |document: &mut Sections| {
            for section in document.sections.iter_mut().filter(|section| section.record != 0) {
                let records = (0..section.len()).map(|n| [&*section.at(n), &[7; 20]].concat()).collect::<Vec<_>>();
                (section.body, section.record) = (records.concat(), section.record + 20);
            }
            document.sections.reverse();
            document.sections.push(Section { tag: *b"CCS.", flags, record: 0, body: vec![1; 9] });
        }
    };
    assert_eq!(with(&saved, later(0)), Ok(saved.clone()));
    let error = with(&saved, later(1)).unwrap_err().to_string();
    assert_eq!(error, "the saved state needs section CCS., which this version does not know");
}

/// Each section that must exist is missed by name; what belongs to nothing is refused.
#[test]
fn incomplete_documents_are_refused() {
    let mut bench = bench(true);
    bench.attacker_up();
    submit_waiting(&mut bench.attacker, 0);
    bench.attacker.request(UPDATE_CONTEXT_POLICIES, &[0, 0x2001_0001, 77]);
    bench.work(40);
    pause(&bench, ATTACKER);
    let saved = save(&bench, ATTACKER);
    for tag in [b"IDEN", b"QUOT", b"ITRE", b"CLNT", b"GGTT", b"LMEM"] {
        let error = with(&saved, |document| document.remove(tag)).unwrap_err();
        assert_eq!(error, RestoreError::Format(FormatError::Missing(Tag(*tag))));
    }
    // Without both sections of memory, the PF driver transfers it.
    let without = |document: &mut Sections| {
        for tag in [b"GGTT", b"GGTE", b"LMEM", b"LMRN"] {
            document.remove(tag);
        }
    };
    assert_eq!(with(&saved, without).unwrap().memory, None);
    for tag in [b"CTXS", b"CTXM"] {
        let error = with(&saved, |document| document.remove(tag)).unwrap_err();
        assert!(matches!(error, RestoreError::Invalid { unit: "contexts", .. }), "{error}");
    }
    let error = with(&saved, |document| document.set_dwords(b"WAID", &[&[1]])).unwrap_err();
    assert!(matches!(error, RestoreError::Invalid { unit: "GuC channel", .. }), "{error}");
}

/// A saved VF has at most a few bytes for each context.
#[test]
fn a_context_takes_few_bytes() {
    let mut bench = bench(true);
    bench.attacker_up();
    pause(&bench, ATTACKER);
    let state = |bench: &VfBench| SavedFunction { memory: None, ..save(bench, ATTACKER) }.to_bytes().len();
    let empty = state(&bench);
    assert!(empty <= 1024, "{empty} bytes without contexts");
    resume(&bench, ATTACKER);
    for id in 0..32 {
        submit_waiting(&mut bench.attacker, id);
        bench.attacker.request(UPDATE_CONTEXT_POLICIES, &[id, 0x2001_0001, 77]);
    }
    bench.work(400);
    pause(&bench, ATTACKER);
    let full = state(&bench);
    assert!(full > empty && full <= 1024 + 64 * 32, "{full} bytes with 32 contexts");
}

/// A save reads no page of a GGTT window in which the VF has written nothing: that would allocate it.
#[test]
fn a_save_allocates_no_pages_of_a_ggtt_window() {
    let bench = bench(true);
    let window = &bench.files[ATTACKER.index() + 3];
    pause(&bench, ATTACKER);
    let before = window.held();
    let saved = save(&bench, ATTACKER);
    restore(&bench, ATTACKER, &saved).unwrap();
    assert_eq!((before, window.held()), (0, 0));
}

/// An interrupt identity is the one of a source of its bank.
#[test]
fn an_identity_without_source_is_refused() {
    let bench = bench(true);
    pause(&bench, ATTACKER);
    let saved = save(&bench, ATTACKER);
    let identity = |bank: usize, value: u32| {
        let changed = with(&saved, |document| document.get(b"ITRE").put(0, bank * 16 + 8, value.to_le_bytes()));
        restore(&bench, ATTACKER, &changed.unwrap())
    };
    for (bank, value) in [(0, 0x8000_0000 | 0x7fff_0001), (1, 0x8000_0001), (0, 1)] {
        let invalid = RestoreError::Invalid { unit: "interrupt tree", what: "an identity" };
        assert_eq!(identity(bank, value), Err(invalid), "{value:#x}");
    }
    restore(&bench, ATTACKER, &saved).unwrap();
}

/// A mailbox request that was pending before an FLR is dropped by it: it is not executed afterwards.
#[test]
fn a_reset_drops_pending_requests() {
    let mut bench = bench(true);
    let configured = |bench: &VfBench| bench.card.function_state(ATTACKER).guc().unwrap().client.rings.0.bytes;
    bench.attacker_up();
    assert_ne!(configured(&bench), 0);
    pause(&bench, ATTACKER);
    for (n, dword) in ct::configure(ct::self_cfg::H2G_BYTES, 0x7000).into_iter().enumerate() {
        bench.attacker.set(MAILBOX + 4 * n as u32, dword);
    }
    bench.attacker.set(GUC_HOST_INTERRUPT, 1);
    bench.card.reset_function(ATTACKER);
    bench.until("the end of the reset", 60_000, |bench| state(bench, ATTACKER) == Some(State::Running));
    bench.work(40);
    assert_eq!((configured(&bench), bench.attacker.get(MAILBOX)), (0, 0));
    bench.attacker_up();
}

/// Saved state with arbitrary numbers is refused or restored. The card does not panic, other functions are unharmed,
/// and after an error the VF is empty.
#[test]
fn invalid_state_is_refused() {
    // Trapped, so that the VF's entries in the PF's table are not compared.
    let mut bench = bench(false);
    bench.attacker_up();
    for id in 0..4 {
        submit_waiting(&mut bench.attacker, id);
        bench.attacker.request(ALLOCATE_DOORBELL, &[id, id, (WINDOW + u64::from(id) * PAGE_BYTES) as u32, 0, 0]);
    }
    bench.work(40);
    pause(&bench, ATTACKER);
    let good = save(&bench, ATTACKER);
    fill(&bench);
    let before = snapshot(&bench, true);
    let empty = refused::empty();
    let (mut refused, mut restored) = (0, 0);
    for seed in 0..400 {
        let random = &mut Random::new(seed);
        let changed = with(&good, |document| {
            for _ in 0..=random.below(3) {
                let section = random.below(document.sections.len() as u64) as usize;
                let body = &mut document.sections[section].body;
                let at = random.below(body.len() as u64) as usize;
                match random.below(3) {
                    0 => body[at] ^= 1 << random.below(8),
                    1 => body[at] = random.edge() as u8,
                    _ => {
                        let value = (random.edge() as u32).to_le_bytes();
                        body.iter_mut().skip(at & !3).zip(value).for_each(|(byte, value)| *byte = value);
                    }
                }
            }
        });
        let Ok(saved) = changed else {
            refused += 1;
            continue;
        };
        match restore(&bench, ATTACKER, &saved) {
            Ok(()) => {
                restored += 1;
                resume(&bench, ATTACKER);
                bench.work(4);
                pause(&bench, ATTACKER);
            }
            Err(error) => {
                refused += 1;
                assert!(refused::is_empty(&bench, &empty), "seed {seed}: {error}");
            }
        }
        assert_eq!(bench.card.panics(), 0, "seed {seed}");
    }
    assert!(refused > 20 && restored > 20, "{refused} refused, {restored} restored");
    unharmed(&before, &snapshot(&bench, true));
    nothing_leaked(&bench, true);
    restore(&bench, ATTACKER, &good).unwrap();
}
