// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the compute pipeline: the engines that have them, their state, ranges of groups, post-sync operations.

use super::kernels::*;
use super::*;

/// Stores register 200.
const STORE_HIGH_REGISTER: &str = "
(W)     mov (1|M0) r200.0<1>:ud 0x7:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W)     send.ugm (1|M0) null r12 r200:1 0x0 0x08000584
";

/// STATE_COMPUTE_MODE with threads of 256 registers, or of 128.
fn compute_mode(large: bool) -> [u32; 2] {
    [0x6105_0000, 0x8000_0000 | u32::from(large) << 15]
}

/// CFE_STATE.
pub(super) fn front_end(scratch: u32, threads: u32) -> [u32; 6] {
    [0x7200_0004, scratch, 0, threads << 16 | 0x8800, 0, 0]
}

/// MI_LOAD_REGISTER_IMM of an engine register.
fn load(register: u32, value: u32) -> [u32; 3] {
    [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, register, value]
}

/// Adds a post-sync operation to a walker.
fn post_sync(walker: &mut [u32], operation: u32, address: u64, value: u64) {
    let words = [operation, address as u32, (address >> 32) as u32, value as u32, (value >> 32) as u32];
    walker[26..31].copy_from_slice(&words);
}

#[test]
fn other_engines_do_not_execute_walkers() {
    proves!(
        EU_001,
        "render and compute engines execute a walker in a user's batch; media engines skip it and its state by their \
        lengths, and the copy engine does not decode them"
    );
    for class in CLASSES {
        let mut bench = EngineBench::new(class);
        let context = bench.kernel_context(0, STORE, 1, &target(DATA));
        assert_eq!((bench.submit(context), bench.get(DATA)), (Outcome::Complete, 7), "{class:?}");
        assert_eq!(bench.engine.counters().privilege_violations, 0);
    }
    for class in [EngineClass::VideoDecode, EngineClass::VideoEnhance] {
        let mut bench = EngineBench::new(class);
        let context = bench.kernel_context(0, STORE, 1, &target(DATA));
        bench.emit(context, &store(VA + DATA + 4, 9));
        assert_eq!(bench.submit(context), Outcome::Complete, "{class:?}");
        assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (0, 9), "{class:?}");
        let skipped: u64 = bench.engine.counters().skipped.by_name().values().sum();
        assert_eq!((skipped, bench.engine.counters().walkers.walkers), (2, 0), "{class:?}");
    }
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.kernel_context(0, STORE, 1, &target(DATA));
    assert!(matches!(bench.submit(context), Outcome::Halted(Halt::IllegalCommand { header: 0x6101_0014, .. })));
}

#[test]
fn large_register_files_are_selected_by_the_compute_mode() {
    proves!(
        [EU_003, EU_073],
        "a kernel uses register 200 if 256 registers are selected when its walker starts; otherwise its thread ends \
        and is counted"
    );
    for large in [true, false, true] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.write(KERNELS, &kernel(STORE_HIGH_REGISTER));
        let walker = walker(KERNELS, 1, &target(DATA));
        // What is selected behind the walker does not matter.
        let commands = [&instruction_base(VA)[..], &compute_mode(large), &walker, &compute_mode(!large)].concat();
        assert_eq!(bench.batch(&commands), Outcome::Complete);
        let faults = bench.engine.counters().walkers.executed.faults;
        assert_eq!((bench.get(DATA), faults), if large { (7, 0) } else { (0, 1) });
    }
}

#[test]
fn the_scratch_handle_is_in_r0_and_the_maximum_of_threads_changes_nothing() {
    proves!(
        EU_004,
        "threads have bits 31:10 of the handle in r0.5, also in a later batch of the context; with any maximum number \
        of threads all groups are executed"
    );
    for threads in [0x40, 0xffff, 1] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.write(KERNELS, &kernel(&threads::dump(0, 1)));
        bench.write(BATCH, &[&instruction_base(VA)[..], &front_end(0x1234_5400, threads), &[END]].concat());
        let context = bench.context(0);
        bench.emit(context, &start(VA + BATCH));
        assert_eq!(bench.submit(context), Outcome::Complete);
        bench.write(BATCH, &[&walker(KERNELS, 3, &target(DATA))[..], &[END]].concat());
        bench.emit(context, &start(VA + BATCH));
        bench.put(context.image(0x03), 0x0009_0008);
        assert_eq!(bench.submit(context), Outcome::Complete);
        for group in 0..3 {
            assert_eq!(bench.get(DATA + u64::from(group) * 0x1000 + 20) & !0x3ff, 0x1234_5400);
            assert_eq!(bench.get(DATA + u64::from(group) * 0x1000 + 4), group);
        }
    }
}

#[test]
fn pipe_control_waits_for_the_threads_before_it() {
    proves!(
        EU_009,
        "the post-sync write and the interrupt of PIPE_CONTROL, with and without a stall, follow all stores of the two walkers \
        before it"
    );
    for stall in [0, PIPE_CS_STALL] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.engine.unit = ComputeUnit::with_costs(50, 50);
        bench.listen(Function::PF);
        bench.write(KERNELS, &kernel(COUNT));
        let [low, high] = target(DATA);
        let walker = walker(KERNELS, 2, &[low, high, 40]);
        let tag = [PIPE_CONTROL | 4, PIPE_WRITE | FLUSH_NOTIFY | stall, (VA + DATA) as u32 + 8, 0, 0x77, 0];
        let commands = [&instruction_base(VA)[..], &walker, &walker, &tag, &store(VA + DATA + 16, 1), &[END]].concat();
        bench.write(BATCH, &commands);
        let context = bench.context(0);
        bench.emit(context, &start(VA + BATCH));
        bench.begin(context);
        let mut before = 0;
        while bench.engine.step(&bench.gt, 1000) == Outcome::More {
            let counted = bench.get(DATA);
            assert!(counted == 160 || (bench.get(DATA + 8), bench.get(DATA + 16)) == (0, 0), "{counted}");
            assert!(counted == 160 || bench.msis.take().is_empty());
            before += u32::from(counted < 160);
        }
        assert!(before > 5, "{before}");
        assert_eq!([0, 8, 16].map(|at| bench.get(DATA + at)), [160, 0x77, 1]);
        assert_eq!(bench.msis.take(), [Function::PF]);
    }
}

#[test]
fn state_changes_apply_to_later_walkers() {
    proves!(
        EU_010,
        "a long walker is followed by another instruction base and another scratch handle: it is executed with what it \
        began with, also after its context has left the engine, and the next walker with the new state"
    );
    for leaves in [false, true] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.engine.unit = ComputeUnit::with_costs(50, 50);
        let other = KERNELS + 0x10_0000;
        bench.write(KERNELS, &kernel(COUNT));
        bench.write(other, &kernel(STORE));
        let [low, high] = target(DATA);
        let first = walker(KERNELS, 2, &[low, high, 50]);
        let second = walker(KERNELS, 1, &target(DATA + 8));
        let bases = [instruction_base(VA), instruction_base(VA + 0x10_0000)];
        let commands = [&bases[0][..], &first, &bases[1], &front_end(1 << 10, 1), &second, &[END]].concat();
        bench.write(BATCH, &commands);
        let context = bench.context(0);
        bench.emit(context, &start(VA + BATCH));
        bench.begin(context);
        let mut steps = 0;
        while bench.engine.step(&bench.gt, 1000) == Outcome::More {
            assert!(bench.get(DATA + 8) == 0 || bench.get(DATA) == 100);
            steps += 1;
            if leaves && steps < 8 {
                bench.leave();
                bench.begin(context);
            }
        }
        assert_eq!((bench.get(DATA), bench.get(DATA + 8), steps > 5), (100, 7, true), "{steps}");
    }
}

#[test]
fn ray_tracing_state_is_accepted() {
    proves!(EU_011, "3DSTATE_BTD is not skipped, and the walker behind it is executed");
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.write(KERNELS, &kernel(STORE));
    let state = [0x6106_0004, 0x1234_5678, 2, 3, 4, 5];
    let commands = [&instruction_base(VA)[..], &state, &walker(KERNELS, 1, &target(DATA))].concat();
    assert_eq!((bench.batch(&commands), bench.get(DATA)), (Outcome::Complete, 7));
    assert!(bench.engine.counters().skipped.by_name().is_empty());
}

#[test]
fn commands_behind_a_wait_are_fetched_after_it() {
    proves!(
        EU_013,
        "while a batch waits at a semaphore, a walker is written behind the wait: it is executed when the wait is over"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.write(KERNELS, &kernel(STORE));
    let first = [&instruction_base(VA)[..], &[mi::ARB_CHECK | 0x101], &wait(1, VA + DATA, 2)].concat();
    let behind = BATCH + 4 * first.len() as u64;
    bench.write(BATCH, &first);
    bench.write(behind, &[0; 64]);
    bench.write(behind + 64 * 4, &[&store(VA + DATA + 8, 1)[..], &[END]].concat());
    let context = bench.context(0);
    bench.emit(context, &start(VA + BATCH));
    assert_eq!((bench.submit(context), bench.run()), (Outcome::Waiting, Outcome::Waiting));
    bench.write(behind, &walker(KERNELS, 1, &target(DATA + 4)));
    assert_eq!(bench.run(), Outcome::Waiting);
    bench.put(DATA, 2);
    assert_eq!((bench.run(), bench.get(DATA + 4), bench.get(DATA + 8)), (Outcome::Complete, 7, 1));
}

#[test]
fn states_alternate_with_semaphores() {
    proves!(
        EU_014,
        "two contexts with different instruction bases and scratch handles alternate on an engine, each waiting for the \
        other: each of 100 walkers is executed with the state of its context"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    let contexts = [0, 1].map(|number: u64| {
        let at = KERNELS + 0x10_0000 * number;
        let value = 5 + number as u32;
        bench.write(at, &kernel(&STORE.replace("0x7:ud", &format!("{value:#x}:ud"))));
        let mut commands = [&instruction_base(VA + 0x10_0000 * number)[..], &front_end(value << 10, 9)].concat();
        for round in 0..50_u32 {
            commands.extend(wait(4, VA + DATA, round * 2 + number as u32));
            commands.extend(walker(KERNELS, 1, &target(DATA + 0x100 + u64::from(round) * 8 + 4 * number)));
            commands.extend(store(VA + DATA, round * 2 + number as u32 + 1));
        }
        commands.push(END);
        bench.write(BATCH + number * 0x8000, &commands);
        let context = bench.context(number);
        bench.emit(context, &start(VA + BATCH + number * 0x8000));
        context
    });
    let mut ended = [false; 2];
    for turn in 0..400 {
        let number = turn % 2;
        if ended[number] {
            continue;
        }
        bench.begin(contexts[number]);
        let mut outcome = bench.run();
        if outcome == Outcome::Waiting {
            bench.engine.request_preemption();
            outcome = bench.run();
        }
        ended[number] = outcome == Outcome::Complete;
    }
    assert_eq!(ended, [true; 2]);
    for round in 0..50 {
        let stored = [0, 4].map(|at| bench.get(DATA + 0x100 + round * 8 + at));
        assert_eq!(stored, [5, 6], "{round}");
    }
}

#[test]
fn empty_ranges_run_nothing_and_post_sync_operations_follow() {
    proves!(
        [EU_022, EU_028],
        "a walker with an empty range in one dimension, or with no threads, ends without a thread; its post-sync \
        operation is executed. A range that does not begin at 0 ends before the field of its dimension"
    );
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.write(KERNELS, &kernel(STORE));
    // Words of the walker, and the number of its groups.
    let cases: [(&[(usize, u32)], u64); 6] = [
        (&[(7, 0)], 0),
        (&[(8, 2), (11, 2)], 0),
        (&[(9, 3), (12, 5)], 0),
        (&[(23, 0)], 0),
        (&[(7, 3), (8, 4), (10, 1), (11, 2)], 4),
        (&[(7, 9), (10, 8)], 1),
    ];
    for (changes, groups) in cases {
        let before = bench.engine.counters().walkers.executed;
        bench.put64(DATA + 8, 0);
        let mut words = walker(KERNELS, 1, &target(DATA));
        changes.iter().for_each(|(at, value)| words[*at] = *value);
        post_sync(&mut words, 1, VA + DATA + 8 | 0xffff << 48, 0x1122_3344_5566_7788);
        assert_eq!(bench.batch(&[&instruction_base(VA)[..], &words].concat()), Outcome::Complete);
        let after = bench.engine.counters().walkers.executed;
        assert_eq!((after.groups - before.groups, after.threads - before.threads), (groups, groups), "{changes:?}");
        assert_eq!(bench.get64(DATA + 8), 0x1122_3344_5566_7788, "{changes:?}");
    }
}

#[test]
fn walkers_without_meaning_end_or_are_refused() {
    proves!(
        EU_028,
        "reserved values are an instruction error, and a kernel without translation a page fault; the engine executes \
        the next context afterwards"
    );
    let illegal =
        [(4, 3 << 30), (4, 1 << 26 | 6 << 22), (4, 1 << 26 | 7 << 22), (4, 2 << 5), (23, 8 << 16 | 1), (23, 129)];
    for (at, value) in illegal {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.write(KERNELS, &kernel(STORE));
        let mut words = walker(KERNELS, 1, &target(DATA));
        words[at] = value;
        let outcome = bench.batch(&[&instruction_base(VA)[..], &words].concat());
        assert!(
            matches!(outcome, Outcome::Halted(Halt::IllegalCommand { header: 0x7208_0025, .. })),
            "{at} {value:#x}"
        );
        assert_eq!(bench.engine.counters().walkers.executed.threads, 0);
        bench.engine.reset(&bench.gt);
        let next = bench.kernel_context(1, STORE, 1, &target(DATA));
        assert_eq!((bench.submit(next), bench.get(DATA)), (Outcome::Complete, 7));
    }
    let mut bench = EngineBench::new(EngineClass::Compute);
    let outcome = bench.batch(&[&instruction_base(0x7000_0000_0000)[..], &walker(0x40, 1, &[])].concat());
    assert!(matches!(outcome, Outcome::Halted(Halt::Fault(fault)) if fault.address == 0x7000_0000_0040), "{outcome:?}");
}

#[test]
fn immediates_follow_the_end_of_all_threads() {
    proves!(EU_025, "the qword of a post-sync operation is written when all threads have ended, not before");
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.engine.unit = ComputeUnit::with_costs(50, 50);
    bench.write(KERNELS, &kernel(COUNT));
    let [low, high] = target(DATA);
    let mut words = walker(KERNELS, 3, &[low, high, 30]);
    post_sync(&mut words, 1, VA + DATA + 8, 0x1122_3344_5566_7788);
    bench.write(BATCH, &[&instruction_base(VA)[..], &words, &[END]].concat());
    let context = bench.context(0);
    bench.emit(context, &start(VA + BATCH));
    bench.begin(context);
    while bench.engine.step(&bench.gt, 1000) == Outcome::More {
        assert!(bench.get64(DATA + 8) == 0 || bench.get(DATA) == 90);
    }
    assert_eq!((bench.get(DATA), bench.get64(DATA + 8)), (90, 0x1122_3344_5566_7788));
}

#[test]
fn timestamps_of_a_walker_have_the_rate_of_the_card() {
    proves!(
        [EU_025, EU_093],
        "start and end by the context's time, which follows the executed instructions, and by the card's, which are apart \
        by the time that the walker has taken, at 19.2 MHz; a timestamp that is 1 is written as 2"
    );
    for groups in [0, 3] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        bench.engine.unit = ComputeUnit::with_costs(50, 50);
        // One tick.
        bench.clock.advance(53);
        bench.write(KERNELS, &kernel(COUNT));
        let [low, high] = target(DATA);
        let mut words = walker(KERNELS, groups, &[low, high, 30]);
        post_sync(&mut words, 3, VA + DATA + 16, 0);
        bench.write(DATA + 16, &[1; 4]);
        bench.write(BATCH, &[&instruction_base(VA)[..], &words, &[END]].concat());
        let context = bench.context(0);
        bench.emit(context, &start(VA + BATCH));
        bench.begin(context);
        let mut steps = 0;
        while bench.engine.step(&bench.gt, 1000) == Outcome::More {
            assert_eq!(bench.get(DATA + 24), 1, "the end");
            bench.clock.advance(1_000_000);
            steps += 1;
        }
        assert_eq!(steps > 3, groups > 0);
        let [context_start, card_start, context_end, card_end] = [16, 20, 24, 28].map(|at| bench.get(DATA + at));
        let ticks = steps * 19_200;
        assert_eq!((card_start, card_end), (2, if groups == 0 { 2 } else { 1 + ticks }));
        let executed = bench.engine.counters().walkers.executed;
        let longest = executed.instructions / u64::from(groups.max(1));
        let context_ticks = bench.gt.eu_rates.ticks(1, longest, executed.instructions);
        assert_eq!(u64::from(context_end - context_start), context_ticks);
        assert_eq!(context_ticks > 3, groups > 0);
        assert!(context_start != 1 && context_end != 1);
    }
}

#[test]
fn the_copy_engine_waits_for_a_timestamp_packet() {
    proves!(EU_025, "a batch of the copy engine that waits until the end of the context's time is not 1 continues");
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut copy = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::Copy, 0).unwrap());
    bench.write(DATA + 16, &[1; 4]);
    let waiting = bench.context(1);
    bench.emit(waiting, &[&wait(5, VA + DATA + 24, 1)[..], &store(VA + DATA + 4, 9)].concat());
    copy.load(&bench.gt, waiting.load());
    assert_eq!(copy.step(&bench.gt, 100), Outcome::Waiting);
    bench.write(KERNELS, &kernel(STORE));
    let mut words = walker(KERNELS, 1, &target(DATA));
    post_sync(&mut words, 3, VA + DATA + 16, 0);
    assert_eq!(bench.batch(&[&instruction_base(VA)[..], &words].concat()), Outcome::Complete);
    assert_eq!((copy.step(&bench.gt, 100), bench.get(DATA + 4)), (Outcome::Complete, 9));
}

#[test]
fn predicated_walkers_are_skipped() {
    proves!(
        EU_026,
        "with the predicate enable and a clear result, neither a thread runs nor the post-sync operation is executed; \
        with a set result, and without the enable, both are"
    );
    for class in CLASSES {
        for (enable, result, executed) in [(1, 0, false), (1, 1, true), (0, 0, true)] {
            let mut bench = EngineBench::new(class);
            bench.write(KERNELS, &kernel(STORE));
            let mut words = walker(KERNELS, 1, &target(DATA));
            words[0] |= enable << 8;
            post_sync(&mut words, 1, VA + DATA + 8, 9);
            let commands = [&instruction_base(VA)[..], &load(0x418, result), &words].concat();
            assert_eq!(bench.batch(&commands), Outcome::Complete);
            let expected = if executed { (1, 7, 9) } else { (0, 0, 0) };
            let threads = bench.engine.counters().walkers.executed.threads;
            assert_eq!((threads, bench.get(DATA), bench.get(DATA + 8)), expected, "{class:?} {enable} {result}");
        }
    }
}

#[test]
fn numbers_of_groups_come_from_registers() {
    proves!(
        EU_027,
        "with the indirect enable the ends of the range are the values that a user's batch has loaded into the three \
        registers of its engine"
    );
    for class in CLASSES {
        let mut bench = EngineBench::new(class);
        bench.write(KERNELS, &kernel(&threads::dump(0, 1)));
        let mut words = walker(KERNELS, 1, &target(DATA));
        words[0] |= 1 << 10;
        let registers = [load(0x500, 3), load(0x504, 1), load(0x508, 2)].concat();
        let commands = [&instruction_base(VA)[..], &registers, &words].concat();
        assert_eq!(bench.batch(&commands), Outcome::Complete);
        assert_eq!(bench.engine.counters().walkers.executed.groups, 6);
        for (x, z) in [(0, 0), (2, 1)] {
            let at = DATA + x * 0x1000 + z * 0x1_0000;
            assert_eq!((u64::from(bench.get(at + 4)), u64::from(bench.get(at + 28))), (x, z));
        }
        // Without the enable, the fields count.
        words[0] &= !(1 << 10);
        assert_eq!(bench.batch(&[&instruction_base(VA)[..], &words].concat()), Outcome::Complete);
        assert_eq!(bench.engine.counters().walkers.executed.groups, 7);
    }
}
