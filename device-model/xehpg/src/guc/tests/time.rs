// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time sharing of the engines among functions, with real command streamers and a manual clock.

use super::turns::{MS, SchedulerBench, id, image};
use super::*;
use crate::generation::XE_HPG;
use crate::guc::functions::share::Priority;

const ARB_CHECK: u32 = 0x05 << 23;
const STORE: [u32; 4] = [0x20 << 23 | 1 << 22 | 2, 0, 0, 1];
/// Offset of the dword that a context's commands poll or write.
const CELL: u64 = 0x3800;

/// Behaviour of an endless batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loop {
    /// Only loops; can be preempted.
    Yields,
    /// Writes memory; can be preempted.
    Works,
    /// Writes memory without an arbitration point.
    Never,
}

impl SchedulerBench {
    /// Writes a ring that jumps into an endless batch.
    fn endless(&mut self, function: u8, local: u16, member: u64, kind: Loop) {
        let at = image(function, local, member);
        let mut batch: Vec<u32> = Vec::new();
        if kind != Loop::Never {
            batch.push(ARB_CHECK);
        }
        if kind != Loop::Yields {
            batch.extend([STORE[0], (at + CELL) as u32, 0, 1]);
        }
        batch.extend([0x31 << 23 | 1, (at + 0x3000) as u32, 0]);
        self.program(function, local, member, &[0x31 << 23 | 1, (at + 0x3000) as u32, 0]);
        for (n, dword) in (0u64..).zip(batch) {
            self.poke(at + 0x3000 + n * 4, dword);
        }
    }

    /// Writes an image with a ring of 64 bytes that begins with `commands`.
    fn program(&mut self, function: u8, local: u16, member: u64, commands: &[u32]) {
        let at = image(function, local, member);
        for n in 0..16 {
            self.poke(at + 0x2000 + n * 4, commands.get(n as usize).copied().unwrap_or(0));
        }
        for (n, dword) in (0u64..).zip(XE_HPG.blank_image()) {
            self.poke(at + 0x1000 + n * 4, dword);
        }
        for (register, value) in [(3, 0x0009_0009), (5, 0), (7, 0), (9, (at + 0x2000) as u32), (0xb, 1)] {
            self.poke(at + 0x1000 + register * 4, value);
        }
    }

    /// Registers and enables a context with an endless batch.
    fn spin(&mut self, function: u8, local: u16, class: EngineClass, mask: u32, kind: Loop) {
        self.register(function, local, class, mask, 1);
        self.endless(function, local, 0, kind);
        self.enable(function, local, 1);
    }

    /// Runs the GuC and the engines like the card's workers, in steps of `step` ns, until the clock reaches `until`.
    /// Returns the time that each function was on each engine. If a context is reset, its image is rewritten and the
    /// context is enabled again immediately.
    fn work(&mut self, until: u64, step: u64, kinds: &[Loop]) -> Vec<[u64; 64]> {
        let engines: Vec<EngineId> = self.engines.present().collect();
        let mut used = vec![[0; 64]; crate::topology::MAX_ENGINES];
        while self.clock.now() < until {
            for (function, message) in self.step() {
                if message[0] == 0x9000_1008 {
                    let local = message[1] as u16;
                    self.endless(function, local, 0, kinds[usize::from(function)]);
                    self.enable(function, local, 1);
                }
            }
            let now = self.clock.now();
            for id in &engines {
                let mut engine = self.engines.lock(*id);
                let Some(load) = engine.loaded() else { continue };
                used[id.index()][load.function.index()] += step;
                if self.engines.next_poll(*id) > now {
                    continue;
                }
                let outcome = engine.step(&self.gt, 8);
                drop(engine);
                let report = match outcome {
                    Outcome::More => {
                        self.engines.set_runnable(*id, true);
                        false
                    }
                    Outcome::Waiting | Outcome::Spinning => self.engines.back_off(*id, now, self.engines.changes()),
                    _ => {
                        self.engines.set_runnable(*id, false);
                        true
                    }
                };
                if report {
                    self.engines.report(EngineReport { engine: *id, load, outcome, skipped: None });
                }
            }
            self.clock.advance(step);
        }
        used
    }
}

fn on(used: &[[u64; 64]], engine: &str) -> [u64; 64] {
    used[engine_named(engine).index()]
}

fn assert_near(value: u64, wanted: u64, percent: u64, what: &str) {
    assert!(value.abs_diff(wanted) * 100 <= wanted * percent, "{what}: {value}, wanted {wanted}");
}

/// Issue point 6: busy VFs with equal quanta get equal time, within five percent over twenty rotations.
#[test]
fn equal_quanta_give_equal_time() {
    for (count, kind) in [(2, Loop::Works), (7, Loop::Works), (31, Loop::Works), (7, Loop::Yields), (31, Loop::Yields)]
    {
        let mut bench = SchedulerBench::new();
        for function in 1..=count {
            bench.share(function, 4 * MS, 4 * MS, Priority::Low);
            bench.spin(function, 0, EngineClass::Render, 1, kind);
        }
        let time = 20 * u64::from(count) * 4 * MS;
        let used = bench.work(bench.clock.now() + time, 100_000, &[kind; 64]);
        for function in 1..=count {
            let part = on(&used, "rcs0")[usize::from(function)];
            assert_near(part, time / u64::from(count), 5, &format!("{function} of {count} {kind:?}"));
        }
    }
}

/// Issue point 6: a VF with contexts that never yield is reset each time and charged for its overruns; it gets no more
/// than its share, regardless of its number of contexts.
#[test]
fn context_that_never_yields_gets_at_most_its_share() {
    let mut bench = SchedulerBench::new();
    let mut kinds = [Loop::Works; 64];
    kinds[3] = Loop::Never;
    for function in 1..=4 {
        bench.share(function, 8 * MS, MS, Priority::Low);
        bench.spin(function, 0, EngineClass::Copy, 1, kinds[usize::from(function)]);
    }
    for local in 1..6 {
        bench.spin(3, local, EngineClass::Copy, 1, Loop::Never);
    }
    let time = 100 * 4 * 8 * MS;
    let used = on(&bench.work(bench.clock.now() + time, 100_000, &kinds), "bcs0");
    assert_near(used[3], time / 4, 5, "a function that never yields");
    for function in [1, 2, 4] {
        assert_near(used[function], time / 4, 5, "a function that yields");
    }
}

/// K.5 EXEC_QUANTUM: twice the quantum gives twice the time.
#[test]
fn a_double_quantum_is_double_time() {
    let mut bench = SchedulerBench::new();
    for (function, quantum) in [(0, 16 * MS), (1, 8 * MS), (2, 8 * MS)] {
        bench.share(function, quantum, 8 * MS, Priority::Low);
        bench.spin(function, 0, EngineClass::Compute, 1, Loop::Works);
    }
    let used = on(&bench.work(bench.clock.now() + 20 * 32 * MS, 100_000, &[Loop::Works; 64]), "ccs0");
    for (function, part) in [(0, 320), (1, 160), (2, 160)] {
        assert_near(used[function], part * MS, 5, "by quantum");
    }
}

/// K.5 SCHED_IF_IDLE: idle VFs keep their turns, so that the share of the busy ones does not change. Without the
/// policy, the busy ones get all of the time.
#[test]
fn sched_if_idle_decides_whether_idle_functions_keep_turns() {
    for (strict, part) in [(true, 4), (false, 1)] {
        let mut bench = SchedulerBench::new();
        for function in 0..8 {
            bench.share(function, 4 * MS, 4 * MS, Priority::Low);
        }
        bench.scheduler.set_strict(strict);
        for function in [2, 5] {
            bench.spin(function, 0, EngineClass::Copy, 1, Loop::Works);
        }
        let time = 20 * 8 * 4 * MS;
        let used = on(&bench.work(bench.clock.now() + time, 100_000, &[Loop::Works; 64]), "bcs0");
        for function in [2, 5] {
            assert_near(used[function], time / 2 / part, 5, &format!("strict {strict}"));
        }
    }
}

/// K.5 SCHED_PRIORITY high: the function gets the next turn after each turn of another function; no function is
/// starved.
#[test]
fn a_high_function_is_next() {
    let mut bench = SchedulerBench::new();
    for (function, priority) in [(1, Priority::Low), (2, Priority::Low), (3, Priority::High)] {
        bench.share(function, 4 * MS, 4 * MS, priority);
        bench.spin(function, 0, EngineClass::Copy, 1, Loop::Works);
    }
    let used = on(&bench.work(bench.clock.now() + 400 * 4 * MS, 100_000, &[Loop::Works; 64]), "bcs0");
    for (function, part) in [(1, 400), (2, 400), (3, 800)] {
        assert_near(used[function], part * MS, 6, "by priority");
    }
}

/// A function does not keep its turn if all of its contexts wait for a memory change.
#[test]
fn a_waiting_context_yields_its_timeslice() {
    let mut bench = SchedulerBench::new();
    for function in 1..=2 {
        bench.share(function, 16 * MS, 16 * MS, Priority::Low);
    }
    bench.spin(1, 0, EngineClass::Copy, 1, Loop::Works);
    bench.register(2, 0, EngineClass::Copy, 1, 1);
    let cell = image(2, 0, 0) + CELL;
    // MI_SEMAPHORE_WAIT: polls until the dword is 7.
    bench.program(2, 0, 0, &[0x1c << 23 | 1 << 22 | 1 << 15 | 4 << 12 | 3, 7, cell as u32, 0, 0]);
    bench.enable(2, 0, 1);
    let start = bench.clock.now();
    let used = on(&bench.work(start + 400 * MS, 100_000, &[Loop::Works; 64]), "bcs0");
    assert!(used[1] > 350 * MS, "{} of 400 ms", used[1] / MS);
    bench.poke(cell, 7);
    bench.work(start + 440 * MS, 100_000, &[Loop::Works; 64]);
    bench.with(2, |scheduler, turn| scheduler.set_mode(turn, id(2, 0), false)).unwrap();
    let head = bench.with(2, |_, turn| turn.own().read_u32(Space::Ggtt, image(2, 0, 0) + 0x1014)).unwrap();
    assert_eq!(head, 64, "it continued after the wait");
}

/// Contract F.5 with several functions: parallel contexts of two functions and contexts with one member of two others
/// all get their turns. None waits indefinitely for an adjacent instance.
#[test]
fn parallel_contexts_take_turns_too() {
    let mut bench = SchedulerBench::new();
    for function in 1..=4 {
        bench.share(function, 4 * MS, 4 * MS, Priority::Low);
    }
    for function in [1, 2] {
        bench.register(function, 0, EngineClass::VideoDecode, 0b01, 2);
        bench.endless(function, 0, 0, Loop::Works);
        bench.endless(function, 0, 1, Loop::Works);
        bench.enable(function, 0, 2);
    }
    bench.spin(3, 0, EngineClass::VideoDecode, 0b01, Loop::Works);
    bench.spin(4, 0, EngineClass::VideoDecode, 0b10, Loop::Works);
    let time = 20 * 16 * MS;
    let used = bench.work(bench.clock.now() + time, 100_000, &[Loop::Works; 64]);
    let (first, second) = (on(&used, "vcs0"), on(&used, "vcs2"));
    for function in 1..=4 {
        let most = first[function].max(second[function]);
        assert_near(most, time / 4, 6, &format!("function {function}"));
    }
    assert_eq!((first[4], second[3]), (0, 0));
    assert_near(first[1], second[1], 1, "both members");
}

/// Issue point 7 (c): on a host that delays the workers by 60 ms before every step of the GuC or an engine, preemptible
/// contexts get their turns and time slices and are not reset; those that never yield are.
#[test]
fn delayed_workers_cause_no_reset_of_preemptible_contexts() {
    const HELD_UP: u64 = 60 * MS;
    for (kind, resets) in [(Loop::Works, false), (Loop::Never, true)] {
        let mut bench = SchedulerBench::new();
        for function in 1..=2 {
            bench.share(function, MS, MS, Priority::Low);
            for local in 0..2 {
                bench.spin(function, local, EngineClass::Copy, 1, kind);
            }
        }
        let mut rounds = [0; 3];
        for _ in 0..3_000 {
            let used = bench.work(bench.clock.now() + HELD_UP, HELD_UP, &[kind; 64]);
            (0..3).for_each(|function| rounds[function] += on(&used, "bcs0")[function] / HELD_UP);
            bench.step();
            bench.clock.advance(HELD_UP);
        }
        for function in 1..=2 {
            assert!(resets || rounds[function] > 1_300, "{rounds:?}");
            let tally = bench.scheduler.tally(numbered(function as u8));
            assert_eq!(tally.engine_resets > 0, resets, "{kind:?}: {tally:?}");
        }
    }
}

/// A context that is alone on an engine is preempted immediately when another function has work. It does not start a
/// new turn first.
#[test]
fn context_alone_is_preempted_when_another_function_has_work() {
    let mut bench = SchedulerBench::new();
    for function in 1..=2 {
        bench.share(function, 16 * MS, 16 * MS, Priority::Low);
    }
    bench.spin(1, 0, EngineClass::Copy, 1, Loop::Works);
    let start = bench.clock.now();
    bench.work(start + 100 * MS, 100_000, &[Loop::Works; 64]);
    bench.spin(2, 0, EngineClass::Copy, 1, Loop::Works);
    bench.work(start + 101 * MS, 100_000, &[Loop::Works; 64]);
    assert_eq!(bench.runs("bcs0"), Some((2, 0)));
}

/// If no VF has work, the PF's contexts are not preempted, regardless of the quanta.
#[test]
fn pf_is_not_preempted_while_no_vf_has_work() {
    let mut bench = SchedulerBench::new();
    for function in 0..8 {
        bench.share(function, MS, MS, Priority::Low);
    }
    bench.spin(0, 0, EngineClass::Copy, 1, Loop::Never);
    let start = bench.clock.now();
    let used = on(&bench.work(start + 200 * MS, 100_000, &[Loop::Never; 64]), "bcs0");
    assert_eq!((used[0], bench.deadline), (200 * MS, None));
}

/// Contract K.6, 0x550D: one array element per function, the PF first, with ticks on each engine, a stamp while the
/// function runs, and its share of the time by its quantum (IGT: xe_pmu, fn-engine-activity-load).
#[test]
fn engine_activity_of_functions() {
    let mut bench = SchedulerBench::new();
    let (metadata, records) = (SCRATCH, SCRATCH + 0x1000);
    for (function, quantum) in [(0, 64 * MS), (1, 32 * MS), (2, 32 * MS)] {
        bench.share(function, quantum, 8 * MS, Priority::Low);
    }
    let buffers = (3, metadata, records);
    bench.with(0, |s, turn| s.activity.set_functions(&mut turn.own(), &s.functions, buffers)).unwrap();
    let peek = |bench: &mut SchedulerBench, at| bench.with(0, |_, turn| turn.own().read_u32(Space::Ggtt, at)).unwrap();
    let record = |function: u64| records + function * 0x2000 + 3 * 32 * 16;
    bench.step();
    for (function, part) in [(0, 0x4000), (1, 0x2000), (2, 0x2000)] {
        assert_eq!(peek(&mut bench, metadata + function * 16), 19_200_000);
        assert_eq!(peek(&mut bench, record(function)) >> 16, part);
    }
    let changes = |bench: &mut SchedulerBench| [0, 1, 2, 3].map(|function| peek(bench, metadata + function * 16 + 8));
    let before = changes(&mut bench);
    bench.start(1, 0, EngineClass::Copy, 1);
    bench.step();
    bench.pass(3 * MS);
    bench.start(2, 0, EngineClass::Copy, 1);
    bench.step();
    let after = changes(&mut bench);
    assert_eq!([0, 1, 2, 3].map(|n| before[n] != after[n]), [false, true, false, false]);
    assert_eq!(peek(&mut bench, record(1) + 8), 0);
    assert_ne!(peek(&mut bench, record(1) + 4), 0);
    bench.pass(29 * MS);
    bench.step();
    bench.end("bcs0", Outcome::Preempted);
    bench.step();
    assert_eq!([4, 8].map(|at| peek(&mut bench, record(1) + at)), [0, 32 * 19_200]);
    assert_ne!(peek(&mut bench, record(2) + 4), 0, "the next one runs");
    bench.pass(5 * MS);
    bench.end("bcs0", Outcome::Complete);
    bench.step();
    assert_eq!([4, 8].map(|at| peek(&mut bench, record(2) + at)), [0, 5 * 19_200]);
    assert_eq!(peek(&mut bench, record(0) + 8), 0);
    // Functions beyond the size of the driver's buffer are not recorded.
    bench.start(3, 0, EngineClass::Copy, 1);
    bench.step();
    assert_eq!(peek(&mut bench, record(3)), 0);
}

/// Statistics of a function: contexts, their engines, time, resets, faults.
#[test]
fn statistics_of_a_function_are_counted() {
    let mut bench = SchedulerBench::new();
    bench.start(1, 4, EngineClass::Copy, 1);
    bench.start(1, 5, EngineClass::Render, 1);
    bench.step();
    let (bcs, rcs) = (engine_named("bcs0"), engine_named("rcs0"));
    assert_eq!(bench.scheduler.running(bcs), Some(id(1, 4)));
    // Busy time uses the card's clock, even while the host does not run the engines' steps.
    bench.clock.advance(2 * MS);
    let now = bench.gt.timestamp();
    assert_eq!(bench.scheduler.functions[numbered(1)].activity.busy(rcs, now), 2 * 19_200, "also while it runs");
    bench.end("rcs0", Outcome::Halted(Halt::Fault(FAULT)));
    bench.step();
    let tally = bench.scheduler.tally(numbered(1));
    assert_eq!((tally.contexts, tally.engine_resets, tally.cat_errors), (2, 1, 1));
    assert_eq!(bench.scheduler.running(rcs), None);
    bench.with(1, |scheduler, turn| scheduler.deregister(turn, id(1, 5))).unwrap();
    assert_eq!(bench.scheduler.tally(numbered(1)).contexts, 1);
    bench.with(0, |scheduler, turn| scheduler.drop_function(turn, numbered(1)));
    let tally = bench.scheduler.tally(numbered(1));
    assert_eq!((tally.contexts, tally.engine_resets), (0, 1));
    assert_eq!(bench.scheduler.tally(numbered(2)), Default::default());
}

/// A VF's own policies do not extend its turn: neither an unlimited preemption timeout, nor a disable requested before
/// or after the end of its turn.
#[test]
fn policies_of_a_vf_do_not_extend_its_turn() {
    for when in 0..3 {
        let mut bench = SchedulerBench::new();
        for function in 1..=2 {
            bench.share(function, 4 * MS, MS, Priority::Low);
        }
        bench.register(1, 0, EngineClass::Copy, 1, 1);
        let id = id(1, 0);
        bench.scheduler.set_policies(id, &[0x2001_0001, 0, 0x2002_0001, 0, 0x2003_0001, 0]).unwrap();
        bench.endless(1, 0, 0, Loop::Never);
        bench.enable(1, 0, 1);
        bench.spin(2, 0, EngineClass::Copy, 1, Loop::Works);
        let start = bench.clock.now();
        let disable = |bench: &mut SchedulerBench| {
            bench.with(1, |scheduler, turn| scheduler.set_mode(turn, id, false)).unwrap();
        };
        bench.work(start + 2 * MS, 100_000, &[Loop::Works; 64]);
        assert_eq!(bench.runs("bcs0"), Some((1, 0)));
        if when == 1 {
            disable(&mut bench);
        }
        bench.work(start + 6 * MS, 100_000, &[Loop::Works; 64]);
        if when == 2 {
            disable(&mut bench);
        }
        bench.work(start + 26 * MS, 100_000, &[Loop::Works; 64]);
        assert_eq!(bench.runs("bcs0"), Some((2, 0)), "case {when}");
    }
}
