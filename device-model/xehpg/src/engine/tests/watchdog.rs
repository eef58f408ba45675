// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The watchdog. Expiration raises an event on the PF, and resets the engine in a VF's ring buffer.

use std::cell::Cell;

use super::*;
use crate::generation::XE_HPG;
use crate::host::Clock;
use crate::interrupts::WATCHDOG;
use crate::registers::InterruptRegister;
use crate::registers::power_fields::PerfStatus;
use arctic_fidelity::proves;

const VF: Function = Function::new(2).unwrap();
const STOP: [u32; 3] = [MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x178, 1];

/// Returns a command that starts the watchdog with a threshold in ticks. The register order is that of xe.
fn watch(threshold: u32) -> [u32; 5] {
    [MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x17c, threshold, 0x178, 0]
}

/// Returns a semaphore wait on the PPHWSP for a value that is never written, as emitted by xe.
fn endless(context: Context) -> [u32; 5] {
    [MI_SEMAPHORE_WAIT | GGTT | SEMAPHORE_POLL | 4 << 12 | 3, 0xdead, context.pphwsp() as u32, 0, 0]
}

/// Contract C.6: on a VF, for each engine class, the wait in xe's job ends exactly when the threshold is reached. The
/// engine's registers are reset, the watchdog is stopped, and execution continues after the wait.
#[test]
fn expiration_in_a_vf_ring_buffer_resets_the_engine() {
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::of_vf(class, VF.number());
        let context = bench.context(0);
        bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 1, 0x600, 0x77]);
        bench.emit(context, &watch(100));
        bench.emit(context, &endless(context));
        for (n, offset) in [0x600, 0x178, 0x17c].into_iter().enumerate() {
            bench.emit(context, &store_register(offset, VA + DATA + 4 * n as u64));
        }
        bench.emit(context, &STOP);
        bench.emit(context, &store(VA + DATA + 12, 1));
        bench.put(DATA, 0xffff);
        let started = bench.clock.now();
        assert_eq!(bench.submit(context), Outcome::Waiting);
        assert_eq!(
            bench.engine.wake_at(),
            Some(started + XE_HPG.timebase.nanoseconds(100)),
            "the next step is due at expiration"
        );
        bench.clock.advance(XE_HPG.timebase.nanoseconds(99));
        assert_eq!(bench.run(), Outcome::Waiting);
        bench.clock.advance(XE_HPG.timebase.nanoseconds(2));
        assert_eq!(bench.run(), Outcome::Complete);
        assert_eq!([0, 4, 8, 12].map(|n| bench.get(DATA + n)), [0, 1, 0x15_0000, 1], "{class:?}");
        assert_eq!(bench.engine.counters().watchdog_resets, 1);
        assert_eq!(bench.msis.take(), [], "no interrupt is sent");
    }
}

/// Contract C.6: a wait in the ring buffer does not end if the watchdog is not started, is stopped, or does not reach
/// its threshold.
#[test]
fn a_wait_continues_without_expiration() {
    let preludes: [&[u32]; 4] = [&[0, 0], &watch(0), &watch(u32::MAX), &[&watch(2)[..], &STOP[..]].concat()];
    for prelude in preludes {
        let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
        let context = bench.context(0);
        bench.emit(context, prelude);
        bench.emit(context, &endless(context));
        assert_eq!(bench.submit(context), Outcome::Waiting);
        for _ in 0..1000 {
            bench.clock.advance(1_000_000);
            assert_eq!(bench.run(), Outcome::Waiting, "{prelude:x?}");
        }
    }
}

/// The watchdog does not count scheduling delay of the host. A step adds at most one millisecond.
#[test]
fn a_delayed_step_does_not_expire_the_watchdog() {
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let context = bench.context(0);
    bench.emit(context, &watch(3 * 19_200));
    bench.emit(context, &endless(context));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    for checks in 0..3 {
        let left = (3 - checks) * 1_000_000;
        assert_eq!(bench.engine.wake_at(), Some(bench.clock.now() + left), "after {checks} checks");
        bench.clock.advance(500_000_000);
        let expected = if checks < 2 { Outcome::Waiting } else { Outcome::Complete };
        assert_eq!(bench.run(), expected, "after {checks} checks");
    }
    assert_eq!(bench.engine.counters().watchdog_resets, 1);
}

#[test]
fn timestamps_advance_while_the_engine_is_not_stepped() {
    proves!(V8_214, "timestamps read by a guest follow the card's clock even while the engine is not stepped");
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let context = bench.context(0);
    bench.emit(context, &endless(context));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    let id = bench.engine.id();
    let clocks = |bench: &EngineBench| {
        let [timestamp, context] = [reg::TIMESTAMP, reg::CTX_TIMESTAMP].map(|at| bench.gt.read(bench.base() + at));
        (timestamp, context, bench.gt.engine_clocks[id.index()].time())
    };
    let before = clocks(&bench);
    bench.clock.advance(500_000_000);
    assert_eq!(bench.run(), Outcome::Waiting);
    let after = clocks(&bench);
    assert_eq!((after.0 - before.0, after.1 - before.1), (9_600_000, 9_600_000));
    assert_eq!(after.2 - before.2, 1_000_000, "engine time");
}

#[test]
fn the_watchdog_restarts_after_preemption() {
    proves!(
        [V8_165, V8_167],
        "PR_CTR_CTRL and PR_CTR_THRSH are context state, PR_CTR is not. The watchdog resumes counting when the \
        context resumes"
    );
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let (context, other) = (bench.context(0), bench.context(1));
    bench.emit(context, &watch(100));
    bench.emit(context, &endless(context));
    bench.emit(context, &store(VA + DATA, 1));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    bench.emit(other, &endless(other));
    assert_eq!(bench.submit(other), Outcome::Waiting);
    bench.clock.advance(XE_HPG.timebase.nanoseconds(200));
    assert_eq!((bench.run(), bench.engine.wake_at()), (Outcome::Waiting, None), "no watchdog in the other context");
    bench.engine.reset(&bench.gt);
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.clock.advance(XE_HPG.timebase.nanoseconds(101));
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!(bench.get(DATA), 1);
}

#[test]
fn expiration_on_the_pf_or_in_a_batch_does_not_reset() {
    proves!(
        V8_166,
        "on the PF and in non-privileged batches the wait continues after expiration. Event 6 is raised on the PF \
        if enabled, and the counter restarts"
    );
    for (function, user) in [(Function::PF, false), (Function::PF, true), (VF, true)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.give(function);
        bench.gt.write(bench.base() + reg::GFX_MODE, 0x0008_0008);
        let tree = bench.gt.interrupts_of(function);
        tree.write(InterruptRegister::Enable, 0x19_0030, 0, u32::from(WATCHDOG));
        tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, 1 << 31);
        let context = bench.context(0);
        let mut commands = watch(100).to_vec();
        commands.extend(wait(4, VA + DATA, 1));
        if user {
            bench.write(BATCH, &commands);
            bench.emit(context, &start(VA + BATCH));
        } else {
            bench.emit(context, &commands);
        }
        assert_eq!(bench.submit(context), Outcome::Waiting);
        assert_eq!(bench.msis.take(), []);
        for _ in 0..2 {
            bench.clock.advance(XE_HPG.timebase.nanoseconds(101));
            assert_eq!((bench.run(), bench.run()), (Outcome::Waiting, Outcome::Waiting));
            let expected = if function.is_vf() { vec![] } else { vec![function] };
            assert_eq!(bench.msis.take(), expected, "{function:?} user {user}");
            assert_eq!(bench.engine.wake_at(), None, "no scheduled check");
            if !function.is_vf() {
                let tree = bench.gt.interrupts_of(function);
                tree.write(InterruptRegister::Selector, 0x19_0070, 0, 1 << 15);
                assert_eq!(tree.read(InterruptRegister::Identity, 0), 0x8003_0040);
                tree.write(InterruptRegister::Identity, 0x19_0060, 0, 1 << 31);
                tree.write(InterruptRegister::Bank, 0x19_0018, 0, 1 << 15);
            }
        }
        assert_eq!(bench.engine.counters().watchdog_resets, 0);
    }
}

/// If the watchdog expires repeatedly in a ring buffer, a step performs at most one reset, and the context can be
/// preempted.
#[test]
fn repeated_expiration_remains_preemptible() {
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    let context = bench.context(0);
    let mut round = watch(1).to_vec();
    round.extend(endless(context));
    round.extend([MI_BATCH_BUFFER_START | 1, BATCH as u32, 0]);
    bench.write(BATCH, &round);
    bench.emit(context, &[MI_BATCH_BUFFER_START | 1, BATCH as u32, 0]);
    bench.engine.load(&bench.gt, Load { function: VF, ..context.load() });
    for step in 1..=50 {
        bench.clock.advance(XE_HPG.timebase.nanoseconds(2));
        // The first step starts the watchdog and waits, the second step resets the engine.
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::Waiting);
        bench.clock.advance(XE_HPG.timebase.nanoseconds(2));
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
        assert_eq!(bench.engine.counters().watchdog_resets, step);
    }
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
}

#[test]
fn checks_of_a_wait() {
    proves!(
        V8_120,
        "the condition of an unsatisfied wait is checked every 20 us for the first 320 us, then with delays of a \
        sixteenth of the time waited, at least every millisecond; a step that is not a wait, or waits at another \
        command, starts over"
    );
    let engines = Engines::new(&XE_HPG, |_| true);
    let id = XE_HPG.engines.named("bcs0").unwrap();
    let now = Cell::new(1_000_000);
    let pauses = |n: usize| -> Vec<u64> {
        let next = || {
            engines.back_off(id, now.get(), engines.changes());
            let pause = engines.next_poll(id) - now.get();
            now.set(now.get() + pause);
            pause
        };
        std::iter::repeat_with(next).take(n).collect()
    };
    let young = [20_000; 17];
    assert_eq!(pauses(17), young);
    assert_eq!(pauses(3), [21_250, 22_578, 23_989]);
    let waited = 17 * 20_000 + 21_250 + 22_578 + 23_989;
    assert_eq!(pauses(1), [waited / 16]);
    let more = pauses(100);
    assert!(more.is_sorted());
    assert_eq!(more[80..], [1_000_000; 20]);
    engines.set_runnable(id, true);
    assert_eq!(pauses(17), young);
    engines.wait_at(id, now.get(), 0x1000);
    assert_eq!(pauses(17), young);
    engines.wait_at(id, now.get(), 0x1000);
    assert_eq!(pauses(1), [21_250]);
}

/// The next step of a waiting engine is not deferred past expiration of its watchdog.
#[test]
fn a_step_is_not_deferred_past_expiration() {
    let engines = Engines::new(&XE_HPG, |_| true);
    let id = engines.present().next().unwrap();
    engines.back_off(id, 1000, engines.changes());
    let later = engines.next_poll(id);
    engines.poll_by(id, later + 5);
    assert_eq!(engines.next_poll(id), later);
    engines.poll_by(id, 1104);
    assert_eq!(engines.next_poll(id), 1104);
}

/// Loads a context of the PF that executes `commands` and then waits forever, with execlists enabled.
fn watching(bench: &mut EngineBench, commands: &[u32]) -> Context {
    bench.listen(Function::PF);
    bench.gt.write(bench.base() + reg::GFX_MODE, 0x0008_0008);
    bench.gt.write(bench.base() + reg::PR_CTR, 77);
    assert_eq!(bench.own(reg::PR_CTR), 0, "the counter is read-only");
    let context = bench.context(0);
    bench.emit(context, commands);
    bench.emit(context, &endless(context));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    context
}

/// Advances the clock by `ticks` and steps the engine every millisecond. Returns 1 if a watchdog event was reported,
/// otherwise 0.
fn later(bench: &mut EngineBench, ticks: u64) -> usize {
    const INTERVAL: u64 = 19_200;
    for _ in 0..(ticks - 1) / INTERVAL {
        bench.clock.advance(XE_HPG.timebase.nanoseconds(INTERVAL));
        bench.run();
    }
    bench.clock.advance(XE_HPG.timebase.nanoseconds((ticks - 1) % INTERVAL + 1));
    bench.run();
    // The wait may also be reported.
    let identity = bench.take_identity(Function::PF, bench.engine.id());
    usize::from(identity.is_some_and(|(.., events)| events & WATCHDOG != 0))
}

#[test]
fn control_0_enables_and_1_clears() {
    proves!(
        V8_165,
        "0 in bits 30:0 enables the counter, 1 stops and clears it. The counter is stopped after reset (vol8.md \
        note T4)"
    );
    let bench = EngineBench::new(EngineClass::Copy);
    assert_eq!((bench.own(reg::PR_CTR_CTRL), bench.own(reg::PR_CTR_THRSH)), (1, 0x15_0000));
    for (control, counts) in [(0, 40), (1, 0), (2, 0), (0x7fff_ffff, 0)] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        watching(&mut bench, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x17c, 1000, 0x178, control]);
        later(&mut bench, 40);
        assert_eq!(bench.own(reg::PR_CTR), counts, "{control:#x}");
    }
    let mut bench = EngineBench::new(EngineClass::Copy);
    let context = bench.context(0);
    bench.gt.write(bench.base() + reg::GFX_MODE, 0x0008_0008);
    // One non-privileged batch starts the counter, waits, reads the counter, stops it and reads it again.
    let data = VA + DATA;
    let read = |at: u64| [MI_STORE_REGISTER_MEM | CS_MMIO | 2, 0x190, at as u32, 0];
    let commands = [&watch(1000)[..], &wait(4, data + 16, 1), &read(data), &STOP, &read(data + 4)].concat();
    bench.gt.registers.set(bench.base() + 0x4d0, bench.base() + reg::PR_CTR);
    bench.write(BATCH, &commands);
    bench.put(BATCH + 4 * commands.len() as u64, END);
    bench.emit(context, &start(VA + BATCH));
    bench.put64(DATA, u64::MAX);
    assert_eq!(bench.submit(context), Outcome::Waiting);
    bench.clock.advance(XE_HPG.timebase.nanoseconds(30));
    bench.put(DATA + 16, 1);
    assert_eq!(bench.run(), Outcome::Complete);
    assert_eq!((bench.get(DATA), bench.get(DATA + 4)), (30, 0));
}

#[test]
fn the_counter_has_two_clocks() {
    proves!(
        V8_165,
        "with bit 31 set, the counter counts GPU clocks at the current frequency instead of timestamp ticks"
    );
    for (control, mhz, counts) in [(0, 300, 192), (1 << 31, 300, 3000), (1 << 31, 2050, 20_500), (1 << 31, 0, 0)] {
        let mut bench = EngineBench::new(EngineClass::Render);
        bench.gt.registers.set_fields(PerfStatus::new().with_ratio(mhz * 3 / 50));
        watching(&mut bench, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x17c, 1_000_000, 0x178, control]);
        for _ in 0..10 {
            bench.clock.advance(1000);
            bench.run();
        }
        assert_eq!(bench.own(reg::PR_CTR), counts, "{control:#x} at {mhz} MHz");
    }
    let mut bench = EngineBench::of_vf(EngineClass::Copy, VF.number());
    bench.gt.registers.set_fields(PerfStatus::new().with_ratio(18));
    let context = bench.context(0);
    bench.emit(context, &[MI_LOAD_REGISTER_IMM | CS_MMIO | 3, 0x17c, 3000, 0x178, 1 << 31]);
    bench.emit(context, &endless(context));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    let expires = bench.engine.wake_at().unwrap();
    assert!((10_000..10_200).contains(&expires), "{expires}");
    bench.clock.advance(9_999);
    assert_eq!(bench.run(), Outcome::Waiting);
    bench.clock.advance(expires - 9_999);
    assert_eq!(bench.run(), Outcome::Complete);
}

#[test]
fn the_counter_restarts_at_the_threshold() {
    proves!(
        V8_166,
        "event 6 is raised exactly when the counter reaches the threshold. The counter then restarts at 0. A \
        threshold below the current count is reached after the counter wraps"
    );
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    watching(&mut bench, &watch(100));
    assert_eq!((later(&mut bench, 99), bench.own(reg::PR_CTR)), (0, 99));
    assert_eq!((later(&mut bench, 1), bench.own(reg::PR_CTR)), (1, 0));
    assert_eq!((later(&mut bench, 99), bench.own(reg::PR_CTR)), (0, 99));
    assert_eq!((later(&mut bench, 3), bench.own(reg::PR_CTR)), (1, 2));
    assert_eq!((later(&mut bench, 1000), bench.own(reg::PR_CTR)), (1, 2), "at most one event per step");
    bench.gt.write(bench.base() + reg::PR_CTR_THRSH, 1);
    assert_eq!((later(&mut bench, 50), bench.own(reg::PR_CTR)), (0, 52), "the threshold is below the counter");
    assert_eq!((later(&mut bench, (1 << 32) - 52), bench.own(reg::PR_CTR)), (0, 0));
    assert_eq!(later(&mut bench, 1), 1);
}

#[test]
fn the_counter_runs_only_while_a_context_is_loaded() {
    proves!(
        V8_167,
        "the counter stops while no context is loaded and while execlists are disabled. It is not context state. A \
        switch does not restore an old count, and the next context that uses the counter continues the count"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let other = bench.context(1);
    bench.emit(other, &watch(1000));
    bench.emit(other, &endless(other));
    assert_eq!(bench.submit(other), Outcome::Waiting);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    let context = watching(&mut bench, &watch(1000));
    later(&mut bench, 50);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    bench.clock.advance(XE_HPG.timebase.nanoseconds(300));
    assert_eq!(bench.submit(other), Outcome::Waiting);
    assert_eq!(bench.own(reg::PR_CTR), 50, "stopped while idle");
    later(&mut bench, 20);
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    assert_eq!(bench.submit(context), Outcome::Waiting);
    assert_eq!(later(&mut bench, 5), 0);
    assert_eq!(
        (bench.own(reg::PR_CTR), bench.own(reg::PR_CTR_THRSH)),
        (75, 1000),
        "a switch does not restore the count"
    );
    bench.gt.write(bench.base() + reg::GFX_MODE, 0x0008_0000);
    later(&mut bench, 40);
    assert_eq!(bench.own(reg::PR_CTR), 75, "execlists disabled");
    bench.gt.write(bench.base() + reg::GFX_MODE, 0x0008_0008);
    later(&mut bench, 1);
    assert_eq!(bench.own(reg::PR_CTR), 76);
    // A context that does not use the watchdog clears the counter.
    bench.engine.request_preemption();
    assert_eq!(bench.run(), Outcome::Preempted);
    let third = bench.context(2);
    bench.emit(third, &[0, 0]);
    assert_eq!(bench.submit(third), Outcome::Complete);
    assert_eq!(bench.own(reg::PR_CTR), 0);
}

#[test]
fn control_and_threshold_are_per_context() {
    proves!(V8_165, "two contexts have separate control and threshold settings");
    let mut bench = EngineBench::new(EngineClass::Compute);
    let (context, other) = (bench.context(0), bench.context(1));
    for (context, commands) in [(context, watch(100)), (other, [0x1108_0003, 0x17c, 7, 0x178, 1])] {
        bench.emit(context, &commands);
        bench.emit(context, &endless(context));
    }
    for (context, settings) in [(context, (0, 100)), (other, (1, 7)), (context, (0, 100)), (other, (1, 7))] {
        assert_eq!(bench.submit(context), Outcome::Waiting);
        assert_eq!((bench.own(reg::PR_CTR_CTRL), bench.own(reg::PR_CTR_THRSH)), settings);
        bench.engine.request_preemption();
        assert_eq!(bench.run(), Outcome::Preempted);
    }
}
