// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers that several workers execute.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::Function;
use arctic_device_model::topology::EngineClass;
use arctic_device_model::workers::Workers;
use arctic_fidelity::proves;
use arctic_test_support::kernels::{COUNT, kernel};
use arctic_test_support::mi;
use arctic_test_support::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::Time;

const CODE: u64 = at::SCRATCH + 0x1000;
const RESULTS: u64 = at::SCRATCH + 0x8000;
const DONE: u64 = at::SCRATCH + 0x100;
const VALUE: u32 = 0x600d;

/// A group counts to the number in r1.2 in a register, then stores its number times 3, and the number of its hardware thread, at the
/// address in the inline data plus 8 for each group before it.
const STORE: &str = "
(W)     mov (1|M0) r14.0<1>:ud r1.2<0;1,0>:ud
LOOP:
(W)     add (1|M0) r14.0<1>:d r14.0<0;1,0>:d -1:w
(W)     cmp (1|M0) (ne)f0.0 null<1>:d r14.0<0;1,0>:d 0:w
(W&f0.0) jmpi LOOP
(W)     shl (1|M0) r15.0<1>:ud r0.1<0;1,0>:ud 0x3:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W)     add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud r15.0<0;1,0>:ud
(W)     mul (1|M0) r10.0<1>:ud r0.1<0;1,0>:ud 0x3:uw
(W)     and (1|M0) r10.1<1>:ud r0.5<0;1,0>:ud 0x3ff:ud
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x02009584
";

fn bench() -> VfBench {
    VfBench::with(true, Some(QUOTA), Time::real())
}

fn wait(what: &str, until: impl Fn() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not end");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Submits a walker of so many groups of one thread with `text`. It writes [`VALUE`] at the end.
fn submit(vf: &mut Vf, text: &str, groups: u32, to: u64, count: u32) {
    vf.write_words(CODE, &kernel(text));
    let bases = Bases { instruction: vf.base() + CODE, ..Bases::default() };
    let inline = Some([to as u32, (to >> 32) as u32, count, 0, 0, 0, 0, 0]);
    let walker = Walker { threads: 1, groups: [groups, 1, 1], inline, ..Walker::of(0) };
    let store = mi::store_data_imm(vf.global(DONE), VALUE);
    let state = [&state_base_address(&bases)[..], &state_compute_mode(false), &cfe_state(0)].concat();
    vf.write_words(Vf::batch(0), &[&state[..], &walker.words(), &[mi::BATCH_BUFFER_END]].concat());
    let jump = vf.jump(0);
    vf.submit(0, EngineClass::Compute, &[&jump[..], &store].concat());
}

/// Each group is executed once, by its engine or by a cluster, and some are executed by clusters.
#[test]
fn each_group_is_executed_once() {
    proves!(
        EU_072,
        "with several workers, each group of a walker is executed once, and the walker ends after all of them"
    );
    let mut bench = bench();
    bench.attacker.up();
    let _workers = Workers::start(bench.card.clone(), 3, "").unwrap();
    let vf = &mut bench.attacker;
    let groups = 1500;
    let mut by_clusters = 0;
    for round in 0..6 {
        vf.poke(DONE, 0);
        for group in 0..groups {
            vf.poke(RESULTS + group * 8, 0);
        }
        let to = vf.base() + RESULTS;
        submit(vf, STORE, groups as u32, to, 600);
        wait("the walker", || vf.peek(DONE) == VALUE);
        let mut wrong = Vec::new();
        for group in 0..groups {
            let [found, thread] = [0, 4].map(|half| vf.peek(RESULTS + group * 8 + half));
            if u64::from(found) != group * 3 {
                wrong.push((group, found));
            }
            by_clusters += u32::from(thread >= 128);
        }
        assert!(wrong.is_empty(), "round {round}: {} wrong: {:?}", wrong.len(), wrong.first());
    }
    assert!(by_clusters > 0, "no group was executed by a cluster");
    assert_eq!(bench.card.panics(), 0);
}

#[test]
fn stores_are_counted_with_one_worker_and_with_three() {
    proves!(V13_246, "A37 has the stores of all groups of a walker to device memory, with and without clusters");
    let mut bench = bench();
    bench.attacker.up();
    let card = bench.card.clone();
    let a37 = || {
        let mut units = [0; 4];
        card.read(Function::PF, 0, 0xdb28, &mut units);
        u32::from_le_bytes(units)
    };
    for (offset, value) in [(0x8718, 3 << 29), (0x2b28, 1), (0xdaf4, 5 << 2 | 1)] {
        bench.card.write(Function::PF, 0, offset, &u32::to_le_bytes(value));
    }
    let vf = &mut bench.attacker;
    let groups = 1500;
    let written = [1, 3].map(|workers| {
        let _workers = Workers::start(bench.card.clone(), workers, "").unwrap();
        let before = a37();
        for _ in 0..3 {
            vf.poke(DONE, 0);
            submit(vf, STORE, groups, vf.base() + RESULTS, 600);
            wait("the walker", || vf.peek(DONE) == VALUE);
        }
        a37() - before
    });
    assert!(written[0].abs_diff(written[1]) <= 1, "{written:?}");
    assert!(written[0] >= 3 * groups * 8 / 128, "{written:?}");
}

/// After a reset of the function, no cluster executes its kernel.
#[test]
fn a_reset_ends_the_work_of_clusters() {
    proves!(EU_072, "a reset waits for clusters: they change nothing of the function's memory afterwards");
    for _ in 0..8 {
        let mut bench = bench();
        bench.attacker.up();
        let _workers = Workers::start(bench.card.clone(), 3, "").unwrap();
        let vf = &mut bench.attacker;
        let counter = vf.base() + RESULTS;
        submit(vf, COUNT, 5000, counter, 1_000_000);
        wait("the first groups", || vf.peek(RESULTS) > 2000);
        bench.card.reset_function(ATTACKER);
        let after = bench.attacker.peek(RESULTS);
        thread::sleep(Duration::from_millis(5));
        assert_eq!(bench.attacker.peek(RESULTS), after);
        assert_eq!(bench.card.panics(), 0);
    }
}
