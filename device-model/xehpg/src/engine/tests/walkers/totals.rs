// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time of contexts with kernels, and totals of kernels.

use arctic_base::status::{KernelCounts, KernelStatus};
use arctic_eu::exec::KindCounts;

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
    assert_eq!(kinds, KindCounts { messages: 3 * 2, channels: 3 * 2, ..KindCounts::default() });
}
