// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels of a function that is saved and restored: no instruction of a group is executed twice or left out.

use std::sync::atomic::{AtomicBool, Ordering};

use arctic_device_model::card::function_state::SavedFunction;
use arctic_device_model::state::RestoreError;
use arctic_device_model::topology::EngineClass;
use arctic_fidelity::proves;
use arctic_test_support::document::Sections;
use arctic_test_support::kernels::{COUNT, kernel};
use arctic_test_support::mi;
use arctic_test_support::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use arctic_test_support::vfs::bench::*;

use super::{DONE, VALUE, bench, copy_memory, done, pause, restore, resume, save, through_bytes, with};

/// Offset of the code of a context.
const CODE: u64 = at::SCRATCH + 0x1000;
/// Offset of the dword that the kernel of a context counts in.
pub const COUNTER: u64 = at::SCRATCH + 0x200;

/// Offset of the system routine from the code of its context.
const ROUTINE: u32 = 0x800;

/// As [`COUNT`], by exceptions: the system routine counts them.
const RAISE: &str = "
(W)     or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x1000:ud
(W)     mov (1|M0) r10.0<1>:ud 0x1:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W)     mov (1|M0) r14.0<1>:ud r1.2<0;1,0>:ud
LOOP:
        illegal
(W)     add (1|M0) r14.0<1>:d r14.0<0;1,0>:d -1:w
(W)     cmp (1|M0) (ne)f0.0 null<1>:d r14.0<0;1,0>:d 0:w
(W&f0.0) jmpi LOOP
";
const COUNT_EXCEPTION: &str = "
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x0800058C
(W)     add (1|M0) cr0.2<1>:ud cr0.2<0;1,0>:ud 0x10:ud
(W)     and (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x7FFFFF:ud
(W)     and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x7FFFFFFD:ud
";

/// Submits a context with a walker of so many groups of four threads, each of which counts to `count`, by this kernel, or by the
/// exceptions of one. It writes [`VALUE`] at the end.
pub fn submit_counting(vf: &mut Vf, id: u32, class: EngineClass, text: &str, groups: u32, count: u32) {
    let (code, counter) = (CODE + u64::from(id) * 0x1000, vf.base() + COUNTER + u64::from(id) * 8);
    vf.write_words(code, &kernel(text));
    vf.write_words(code + u64::from(ROUTINE), &kernel(COUNT_EXCEPTION));
    let bases = Bases { instruction: vf.base() + code, ..Bases::default() };
    let inline = Some([counter as u32, (counter >> 32) as u32, count, 0, 0, 0, 0, 0]);
    let walker = Walker { threads: 4, groups: [groups, 1, 1], inline, ..Walker::of(0) };
    let store = mi::store_data_imm(vf.global(DONE + u64::from(id) * 4), VALUE);
    let sip = [0x6102_0001, ROUTINE, 0];
    let state = [&state_base_address(&bases)[..], &state_compute_mode(false), &cfe_state(0), &sip].concat();
    vf.write_words(Vf::batch(id), &[&state[..], &walker.words(), &[mi::BATCH_BUFFER_END]].concat());
    let jump = vf.jump(id);
    vf.submit(id, class, &[&jump[..], &store].concat());
}

/// Returns the bench of `target`, with the paused and saved function of `source`.
fn moved(source: &VfBench, mut target: VfBench, saved: &SavedFunction) -> VfBench {
    pause(&target, ATTACKER);
    copy_memory(source, &target, saved);
    restore(&target, ATTACKER, &through_bytes(saved)).unwrap();
    assert_eq!(save(&target, ATTACKER), *saved);
    let rings = source.attacker.state().rings;
    target.attacker.state_mut().rings = rings;
    target
}

/// A VF with kernels on two engines moves from card to card and back at any time, by messages and by mapped memory.
#[test]
fn groups_in_flight_go_on_on_another_card() {
    proves!(
        [EU_061, EU_070],
        "a group in flight of a saved function goes on where it was, in the system routine too: no instruction is executed twice"
    );
    for mapped in [true, false] {
        let mut source = bench(mapped);
        source.attacker_up();
        let (groups, counts) = (3, [60_000, 6_000]);
        submit_counting(&mut source.attacker, 0, EngineClass::Compute, COUNT, groups, counts[0]);
        submit_counting(&mut source.attacker, 1, EngineClass::Render, RAISE, groups, counts[1]);
        let (mut moves, mut in_flight) = (0, 0);
        while moves < 40 && !(done(&source.attacker, 0) && done(&source.attacker, 1)) {
            source.work(1 + moves % 3);
            pause(&source, ATTACKER);
            let saved = save(&source, ATTACKER);
            let flying = source.card.gt().parked.count(ATTACKER);
            in_flight += flying;
            source = moved(&source, bench(mapped), &saved);
            assert_eq!(source.card.gt().parked.count(ATTACKER), flying);
            resume(&source, ATTACKER);
            moves += 1;
        }
        source.until("the kernels", 50_000, |bench| (0..2).all(|id| done(&bench.attacker, id)));
        for (id, count) in (0..).zip(counts) {
            assert_eq!(source.attacker.peek(COUNTER + id * 8), groups * 4 * count, "mapped {mapped}, context {id}");
        }
        assert!(moves > 8 && in_flight > 8, "mapped {mapped}: {moves} moves, {in_flight} groups in flight");
        assert_eq!(source.card.panics(), 0);
    }
}

/// The same with workers whose clusters help the engines: several groups of a walker are in flight.
#[test]
fn groups_of_clusters_go_on_on_another_card() {
    proves!([EU_070, EU_072], "groups that clusters execute are saved too: no instruction is executed twice");
    let mut source = bench(true);
    source.attacker_up();
    let (groups, count) = (120, 4000);
    submit_counting(&mut source.attacker, 0, EngineClass::Compute, COUNT, groups, count);
    submit_counting(&mut source.attacker, 1, EngineClass::Render, COUNT, groups, count / 2);
    let (mut moves, mut most) = (0, 0);
    while moves < 60 && !(done(&source.attacker, 0) && done(&source.attacker, 1)) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Acquire) {
                        source.card.step();
                    }
                });
            }
            source.work(2 + moves % 5);
            stop.store(true, Ordering::Release);
        });
        pause(&source, ATTACKER);
        let saved = save(&source, ATTACKER);
        let mut document = Sections::of(&saved.to_bytes());
        if let Some(walkers) = document.find(b"KWLK") {
            let len = walkers.len();
            let groups = |index| u32::from_le_bytes(walkers.at(index)[56..].try_into().unwrap()) as usize;
            most = (0..len).map(groups).fold(most, usize::max);
        }
        source = moved(&source, bench(true), &saved);
        resume(&source, ATTACKER);
        moves += 1;
    }
    source.until("the kernels", 50_000, |bench| (0..2).all(|id| done(&bench.attacker, id)));
    for (id, count) in [(0, count), (1, count / 2)] {
        assert_eq!(source.attacker.peek(COUNTER + id * 8), groups * 4 * count, "context {id}");
    }
    assert!(moves > 4 && most > 1, "{moves} moves, at most {most} groups of a walker in flight");
    assert_eq!(source.card.panics(), 0);
}

/// Saved groups that no function can have are refused, and leave nothing in flight.
#[test]
fn groups_that_are_none_are_refused() {
    let mut bench = bench(true);
    bench.attacker_up();
    submit_counting(&mut bench.attacker, 0, EngineClass::Compute, COUNT, 2, 100_000);
    bench.work(4);
    pause(&bench, ATTACKER);
    let good = through_bytes(&save(&bench, ATTACKER));
    assert_eq!(bench.card.gt().parked.count(ATTACKER), 1);
    // Page, ticket and instructions of the walker.
    for (offset, value) in [(0, 1), (0, 0x100_0000), (8, 0), (32, u64::MAX >> 1)] {
        let saved = with(&good, |document| document.get(b"KWLK").put(0, offset, u64::to_le_bytes(value)));
        assert!(restore(&bench, ATTACKER, &saved.unwrap()).is_err(), "{offset} {value:#x}");
        assert_eq!(bench.card.gt().parked.count(ATTACKER), 0, "{offset}");
    }
    let twice = with(&good, |document| {
        for tag in [b"KWLK", b"KGRP", b"KBYT"] {
            let body = &mut document.get(tag).body;
            *body = body.repeat(2);
        }
    });
    let error = restore(&bench, ATTACKER, &twice.unwrap()).unwrap_err();
    assert_eq!(error, RestoreError::Invalid { unit: "kernels", what: "a context twice" });
    let refused = |change: &dyn Fn(&mut Sections)| with(&good, change).unwrap_err().to_string();
    let short = refused(&|document| document.get(b"KBYT").body.truncate(100));
    assert_eq!(short, "invalid saved state of kernels: a group without its bytes");
    let long = refused(&|document| document.get(b"KBYT").body.push(0));
    assert_eq!(long, "invalid saved state of kernels: what belongs to no walker");
    let without = refused(&|document| document.get(b"KWLK").put(0, 56, [9, 0, 0, 0]));
    assert_eq!(without, "invalid saved state of kernels: a walker without its groups");
    restore(&bench, ATTACKER, &good).unwrap();
    resume(&bench, ATTACKER);
    bench.until("the kernel", 50_000, |bench| done(&bench.attacker, 0));
    assert_eq!(bench.attacker.peek(COUNTER), 800_000);
}
