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

/// Context timestamp of one engine as read by MMIO: ticks of the timestamp counter that the context has run. While the
/// clock of an engine runs, the GT stays out of RC6. Only the engine modifies it; any thread may read it.
pub struct ContextClock {
    /// Bit 32 is set while the clock runs. Bits 31:0 hold global ticks minus context ticks while running, and the
    /// context ticks while stopped.
    state: AtomicU64,
    engine: EngineId,
    timebase: Timebase,
    residency: Arc<Residency>,
}

impl ContextClock {
    pub(super) fn new(engine: EngineId, timebase: Timebase, residency: Arc<Residency>) -> Self {
        ContextClock { state: AtomicU64::new(0), engine, timebase, residency }
    }

    /// Continues from `context_ticks` at global tick `now`.
    pub fn set(&self, now: u64, context_ticks: u32) {
        let since = low(now).wrapping_sub(context_ticks);
        self.state.store(self.running() | u64::from(since), Ordering::Release);
    }

    fn running(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & RUNNING
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
        let ticks = self.read(now);
        let before = self.state.swap(u64::from(ticks), Ordering::AcqRel);
        if before & RUNNING != 0 {
            self.residency.set(Awake::Engine(self.engine), false, self.timebase.nanoseconds(now), || ());
        }
        ticks
    }

    /// The context's ticks at global tick `now`.
    pub fn read(&self, now: u64) -> u32 {
        let state = self.state.load(Ordering::Acquire);
        if state & RUNNING != 0 { low(now).wrapping_sub(low(state)) } else { low(state) }
    }
}

/// See [`ContextClock`].
const RUNNING: u64 = 1 << 32;

/// Bits of an engine's RING_TIMESTAMP (contract E.7).
const RING_TIMESTAMP: u64 = 0xf_ffff_ffff;

impl Gt {
    /// Current value of the timestamp counter.
    pub fn timestamp(&self) -> u64 {
        self.generation.timebase.ticks(self.clock.now())
    }

    /// Starts the context clock of `engine` at 0 and wakes the GT. Called when the engine starts a context.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn start_context_clock(&self, engine: EngineId) {
        self.context_clocks[engine.index()].start(self.timestamp(), || self.restore_engines());
    }
}

impl Unit<XeHpg, Gt> for ClockRegister {
    type Effect = SideEffect;

    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        let half = |value: u64| if access.ordinal() == 0 { low(value) } else { high(value) };
        match self {
            ClockRegister::Timestamp => half(gt.timestamp()),
            ClockRegister::RingTimestamp => half(gt.timestamp() & RING_TIMESTAMP),
            ClockRegister::ContextTimestamp => {
                access.decoded.engine.map_or(0, |engine| gt.context_clocks[engine.index()].read(gt.timestamp()))
            }
        }
    }

    /// The counters are read-only.
    fn write(&self, _: &Gt, _: Access<'_>, _: u32) -> Option<SideEffect> {
        None
    }
}
