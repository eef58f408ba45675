// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time of contexts with kernels, and totals of kernels.

use arctic_base::status::{KernelCounts, KernelStatus};
use arctic_eu::exec::KindCounts;
use arctic_fidelity::proves;

use super::kernels::{ALONE_AT_BARRIER, ENDLESS, KERNELS, STORE, target};
use super::*;
use crate::compute::WalkerCounts;

const SECOND: u64 = 1_000_000_000;

impl EngineBench {
    fn context_ticks(&self) -> u32 {
        self.gt.context_clock(self.engine.id()).read(|| self.gt.timestamp())
    }

    fn kernel_ticks(&self) -> u64 {
        let instructions = self.engine.counters().walkers.executed.instructions;
        self.gt.eu_rates.ticks(1, instructions, instructions)
    }
}

/// While a kernel is executed, the context's time follows its instructions, and the card's time before and after it.
#[test]
fn context_time_follows_the_instructions_of_kernels() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.kernel_context(0, ENDLESS, 1, &[]);
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    let first = bench.kernel_ticks();
    for _ in 0..3 {
        bench.clock.advance(SECOND);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        assert_eq!(u64::from(bench.context_ticks()), bench.kernel_ticks());
    }
    assert!(first > 0 && bench.kernel_ticks() > 3 * first);
    let ticks = bench.kernel_ticks();
    bench.leave();
    bench.clock.advance(SECOND);
    assert_eq!(u64::from(bench.get(context.image(0x23))), ticks, "CTX_TIMESTAMP of the image");
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    assert_eq!(u64::from(bench.context_ticks()), bench.kernel_ticks(), "it goes on");
    bench.engine.reset(&bench.gt);

    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.kernel_context(0, STORE, 1, &target(DATA));
    bench.begin(context);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA), 7);
    assert!(bench.get(context.image(0x23)) <= 1, "a few instructions");
}

#[test]
fn a_deadlock_counts_by_the_time_of_the_card() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let context = bench.kernel_context(0, ALONE_AT_BARRIER, 1, &[]);
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Spinning);
    let before = u64::from(bench.context_ticks());
    for seconds in 1..4 {
        bench.clock.advance(SECOND);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Spinning);
        assert_eq!(u64::from(bench.context_ticks()) - before, seconds * bench.gt.generation.timebase.hz());
    }
}

/// Each function has the totals of its own kernels; the engine shows the kernel that it executes.
#[test]
fn kernels_are_counted_by_function() {
    for vf in [0, 3] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.give(Function::new(vf).unwrap());
        let id = bench.engine.id();
        let other = Function::new(7).unwrap();
        let three = bench.kernel_context(0, STORE, 3, &target(DATA));
        assert_eq!((bench.submit(three), bench.get(DATA)), (Outcome::Complete, 7));
        let counts = bench.gt.kernels(bench.function).counts();
        assert_eq!(counts, KernelCounts { walkers: 1, groups: 3, instructions: 3 * 4, faults: 0 });
        assert_eq!(bench.gt.engine_kernel(id).status(), None);

        let endless = bench.kernel_context(1, ENDLESS, 1, &[]);
        bench.begin(endless);
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        let instructions = bench.gt.kernels(bench.function).counts().instructions - counts.instructions;
        let kernel = KernelStatus { address: VA + KERNELS + 0x1000, groups: 0, instructions };
        assert_eq!(bench.gt.engine_kernel(id).status(), Some(kernel));
        bench.engine.reset(&bench.gt);

        let outside = bench.kernel_context(2, STORE, 1, &[0x1000, 0x7000]);
        bench.begin(outside);
        assert_eq!(bench.gt.engine_kernel(id).status(), None, "the next context has none yet");
        assert!(matches!(bench.run(), Outcome::Halted(Halt::Fault(_))));
        assert_eq!(bench.gt.kernels(bench.function).counts().faults, 1);
        assert_eq!(bench.gt.kernels(other).counts(), KernelCounts::default());
    }
}

/// The engine has totals by kind of instruction.
#[test]
fn instructions_are_counted_by_kind() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let three = bench.kernel_context(0, STORE, 3, &target(DATA));
    assert_eq!(bench.submit(three), Outcome::Complete);
    let WalkerCounts { groups, threads, instructions, kinds, .. } = bench.engine.counters().walkers.executed;
    assert_eq!((groups, threads, instructions), (3, 3, 3 * 4));
    assert_eq!(
        kinds,
        KindCounts { messages: 3 * 2, channels: 3 * 2, accesses: [3 * 2, 0, 0, 0, 0], ..KindCounts::default() }
    );
}

/// OAG's counters of all contexts, and OAR's of one: of kernels with known instructions.
#[test]
fn counters_of_observation_follow_the_kernels() {
    proves!(
        [V13_243, V13_244, V13_245],
        "A4 and the flexible counters have what the kernels of all contexts have executed, A4, A19 and A20 without OAG's enable too; \
        a context's report has its own threads, atomics and barriers, and the accesses to shared local memory of all contexts"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    // A7 counts messages, A8 control; A19 and A20 the same.
    for register in [0xe458, 0xe65c] {
        bench.gt.write(register, 0x200_1002);
    }
    let run = |bench: &mut EngineBench, number: u64| {
        let context = bench.kernel_context(number, STORE, 3, &target(DATA));
        assert_eq!(bench.submit(context), Outcome::Complete);
    };
    let counter = |bench: &EngineBench, n: u32| bench.gt.read(0xd980 + 8 * n);
    run(&mut bench, 0);
    let counters = [4, 7, 8, 19, 20].map(|n| counter(&bench, n));
    assert_eq!(counters, [3, 0, 0, 6, 0], "OAG is disabled: the free-running ones");
    bench.gt.write(0x2b28, 1);
    bench.gt.write(0xdaf4, 5 << 2 | 1);
    run(&mut bench, 1);
    let counters = [4, 7, 8, 19, 20].map(|n| counter(&bench, n));
    assert_eq!(counters, [6, 6, 0, 12, 0]);
    assert_eq!([0xda80, 0xda88, 0xda8c].map(|register| bench.gt.read(register)), [6, 0, 0], "A32, A34, A35");

    // A context that counts, between two reports.
    let context = bench.kernel_context(2, STORE, 3, &target(DATA));
    let report = |n: u64| [MI_REPORT_PERF_COUNT | 2, (VA + DATA + 0x400 + 256 * n) as u32, 0, 1];
    let setup = [MI_LOAD_REGISTER_IMM | 3, 0x2960, 11, 0x2360, 1];
    let dwords = u64::from(bench.get(context.image(0x07)) / 4);
    let ring: Vec<u32> = (0..dwords).map(|dword| bench.get(context.at + 4 * dword)).collect();
    let commands = [&setup[..], &report(0), &ring, &report(1)].concat();
    bench.put(context.image(0x07), 0);
    bench.emit(context, &commands);
    assert_eq!(bench.submit(context), Outcome::Complete);
    let at = |n: u64, dword: u64| bench.get(DATA + 0x400 + 256 * n + 4 * dword);
    let delta = |counter: u64| at(1, 4 + counter) - at(0, 4 + counter);
    assert_eq!([4, 7, 8, 30, 31, 34, 35].map(delta), [3, 6, 0, 0, 0, 0, 0]);
    assert_eq!(at(0, 8), 0, "nothing of the other contexts");
}
