// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Timestamps: the GT's counter, the engines' counters, and the context clocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arctic_sriov::number::{high, low};

use super::{Gt, SideEffect};
use crate::host::Timebase;
use crate::registers::{Access, ClockRegister, Unit, XeHpg};
use crate::residency::{Awake, Residency};
use crate::topology::EngineId;

/// Bit of [`ContextClock::state`] that is set while a context is on the engine.
const RUNNING: u64 = 1 << 32;
/// Bit of [`ContextClock::state`] that is set while a kernel is executed: the clock does not follow the card's time.
const HELD: u64 = 1 << 33;

/// Bits of an engine's RING_TIMESTAMP (contract E.7).
const RING_TIMESTAMP_MASK: u64 = 0xf_ffff_ffff;

/// Context timestamp of one engine as read by MMIO: ticks of the timestamp counter that the context has run. While a kernel
/// is executed, the clock advances by the time that its instructions take on the hardware. While the clock of an engine runs,
/// the GT stays out of RC6. Only the engine modifies it; any thread may read it.
pub struct ContextClock {
    /// [`RUNNING`] and [`HELD`], and in bits 31:0 global ticks minus context ticks while running and not held, or else the
    /// context ticks.
    state: AtomicU64,
    engine: EngineId,
    timebase: Timebase,
    residency: Arc<Residency>,
}

impl ContextClock {
    pub(super) fn new(engine: EngineId, timebase: Timebase, residency: Arc<Residency>) -> Self {
        ContextClock { state: AtomicU64::new(0), engine, timebase, residency }
    }

    /// Sets the context's ticks to `context_ticks` at global tick `now`. The clock continues from there if it runs.
    pub fn set(&self, now: u64, context_ticks: u32) {
        let mode = self.state.load(Ordering::Relaxed) & (RUNNING | HELD);
        let ticks = if mode == RUNNING { low(now).wrapping_sub(context_ticks) } else { context_ticks };
        self.state.store(mode | u64::from(ticks), Ordering::Release);
    }

    /// Lets the clock of a running context stand from global tick `now` on, but for [`ContextClock::advance`].
    pub fn hold(&self, now: u64) {
        if self.state.load(Ordering::Relaxed) & HELD == 0 {
            let ticks = self.read(|| now);
            self.state.store(RUNNING | HELD | u64::from(ticks), Ordering::Release);
        }
    }

    /// Advances a clock that stands.
    pub fn advance(&self, ticks: u32) {
        let state = self.state.load(Ordering::Relaxed);
        let sum = low(state).wrapping_add(ticks);
        self.state.store(state & (RUNNING | HELD) | u64::from(sum), Ordering::Release);
    }

    /// Lets a clock that stands run from global tick `now` on.
    pub fn release(&self, now: u64) {
        let state = self.state.load(Ordering::Relaxed);
        if state & HELD != 0 {
            self.state.store(RUNNING | u64::from(low(now).wrapping_sub(low(state))), Ordering::Release);
        }
    }

    /// Starts counting from 0 at global tick `now`; calls `wake` if the GT leaves RC6.
    fn start(&self, now: u64, wake: impl FnOnce()) {
        let before = self.state.swap(RUNNING | u64::from(low(now)), Ordering::AcqRel);
        if before & RUNNING == 0 {
            self.residency.set(Awake::Engine(self.engine), true, self.timebase.nanoseconds(now), wake);
        }
    }

    /// Stops at global tick `now` and returns the context's ticks.
    pub fn stop(&self, now: u64) -> u32 {
        let ticks = self.read(|| now);
        let before = self.state.swap(u64::from(ticks), Ordering::AcqRel);
        if before & RUNNING != 0 {
            self.residency.set(Awake::Engine(self.engine), false, self.timebase.nanoseconds(now), || ());
        }
        ticks
    }

    /// The context's ticks at the global tick that `now` returns. The state is loaded first: the engine may start the
    /// clock at any time, and the difference to a start that is later than `now` would be negative.
    pub fn read(&self, now: impl FnOnce() -> u64) -> u32 {
        let state = self.state.load(Ordering::Acquire);
        let now = now();
        if state & (RUNNING | HELD) == RUNNING { low(now).wrapping_sub(low(state)) } else { low(state) }
    }
}

impl Gt {
    /// Current value of the timestamp counter.
    pub fn timestamp(&self) -> u64 {
        self.generation.timebase.ticks(self.clock.now())
    }

    /// The context timestamp of `engine`.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn context_clock(&self, engine: EngineId) -> &ContextClock {
        &self.context_clocks[engine.index()]
    }

    /// Starts the context clock of `engine` at 0 and wakes the GT. Called when the engine restores a context.
    pub fn start_context_clock(&self, engine: EngineId) {
        self.context_clock(engine).start(self.timestamp(), || self.restore_engines());
        self.note_activity();
    }

    /// Stops the context clock of `engine` at global tick `now`. Returns the context's ticks.
    pub fn stop_context_clock(&self, engine: EngineId, now: u64) -> u32 {
        let ticks = self.context_clock(engine).stop(now);
        self.note_activity();
        ticks
    }
}

impl Unit<XeHpg, Gt> for ClockRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        let half = |value: u64| if access.ordinal() == 0 { low(value) } else { high(value) };
        match self {
            ClockRegister::Timestamp => half(gt.timestamp()),
            ClockRegister::PowerTimestamp => half(gt.oa_time()),
            ClockRegister::RingTimestamp => half(gt.timestamp() & RING_TIMESTAMP_MASK),
            ClockRegister::ContextTimestamp => {
                access.decoded.engine.map_or(0, |engine| gt.context_clock(engine).read(|| gt.timestamp()))
            }
        }
    }

    /// The counters are read-only.
    fn write(&self, _: &Gt, _: Access<'_>, _: u32) -> Option<SideEffect> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::XE_HPG_ENGINES;

    fn clock() -> ContextClock {
        let engine = XE_HPG_ENGINES.all().next().unwrap();
        ContextClock::new(engine, crate::generation::XE_HPG.timebase, Arc::default())
    }

    /// A reader whose thread does not run between its two accesses, while the engine starts the next context or loads
    /// the timestamp of one. A context that has not run yet must not have 2^32 - 1 ticks.
    #[test]
    fn a_clock_that_starts_during_a_read_does_not_run_backwards() {
        let clock = clock();
        clock.start(100, || ());
        let restarted = |now| {
            clock.stop(1000);
            clock.start(1001, || ());
            now
        };
        assert_eq!(clock.read(|| restarted(990)), 890, "the context that ran at that time");
        assert_eq!(clock.read(|| 1005), 4);
        let loaded = |now| {
            clock.set(1100, 7);
            now
        };
        assert_eq!(clock.read(|| loaded(1050)), 49);
        assert_eq!(clock.read(|| 1101), 8);
    }

    #[test]
    fn ticks_are_set_while_the_clock_runs_and_while_it_is_stopped() {
        let clock = clock();
        clock.set(1000, 7);
        assert_eq!(clock.read(|| 5000), 7, "stopped");
        clock.start(6000, || ());
        assert_eq!(clock.read(|| 6001), 1, "a start counts from 0");
        clock.set(6002, u32::MAX);
        assert_eq!((clock.read(|| 6003), clock.stop(6004)), (0, 1));
        assert_eq!(clock.read(|| 9000), 1);
    }

    #[test]
    fn a_held_clock_advances_by_what_is_added() {
        let clock = clock();
        clock.start(100, || ());
        clock.hold(150);
        assert_eq!(clock.read(|| 1000), 50);
        clock.advance(7);
        clock.hold(5000);
        assert_eq!(clock.read(|| 6000), 57, "held already");
        clock.release(7000);
        assert_eq!(clock.read(|| 7010), 67);
        clock.release(8000);
        assert_eq!(clock.read(|| 8000), 1057, "not held");
        clock.hold(9000);
        clock.set(9500, 3);
        assert_eq!((clock.read(|| 9900), clock.stop(9999), clock.read(|| 10_000)), (3, 3, 3));
        clock.start(10_000, || ());
        assert_eq!(clock.read(|| 10_004), 4, "the next context's clock runs");
    }
}
