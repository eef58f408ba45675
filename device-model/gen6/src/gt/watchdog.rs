// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The watchdog of each engine: a counter that sends an interrupt at a threshold and begins anew (IVB-085..087).
//!
//! It counts units of 640 ns. The document's other clock, csclk, has no frequency there, and counts in the same units.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Gt;
use crate::registers::engine::{WATCHDOG_CONTROL, WATCHDOG_STOP, WATCHDOG_THRESHOLD};
use crate::registers::interrupt::WATCHDOG_INTERRUPT;
use crate::topology::EngineId;

/// Unit of the counter in ns.
const UNIT: u64 = 640;
/// Shortest time between two looks at the watchdog in ns, whatever its threshold is.
const SHORTEST: u64 = 20_000;

/// State of a watchdog, beside its registers.
#[derive(Default)]
pub(super) struct Watchdog {
    /// Time of the counter's last 0 that has been seen, in ns of [`Gt::now`] plus 1; 0 if it does not count.
    pub(super) since: AtomicU64,
}

impl Watchdog {
    pub(super) fn stop(&self) {
        self.since.store(0, Ordering::Release);
    }
}

impl Gt {
    /// The control of the watchdog was written, which starts or stops it.
    pub(super) fn set_watchdog(&self, engine: EngineId) {
        let watchdog = &self.activity(engine).watchdog;
        match WATCHDOG_STOP.get(self.engine_value(engine, WATCHDOG_CONTROL)) {
            0 if watchdog.since.load(Ordering::Acquire) == 0 => {
                watchdog.since.store(self.now().saturating_add(1), Ordering::Release);
            }
            1 => watchdog.stop(),
            _ => {}
        }
    }

    /// Time since the counter was 0, and the time that it counts until it is 0 again, in ns; `None` if it does not count.
    fn watchdog(&self, engine: EngineId) -> Option<(u64, u64)> {
        let since = self.activity(engine).watchdog.since.load(Ordering::Acquire).checked_sub(1)?;
        let threshold = u64::from(self.engine_value(engine, WATCHDOG_THRESHOLD)).max(1);
        Some((self.now().saturating_sub(since), threshold.saturating_mul(UNIT)))
    }

    /// Returns whether the watchdog counts.
    pub fn watchdog_counts(&self, engine: EngineId) -> bool {
        self.activity(engine).watchdog.since.load(Ordering::Acquire) != 0
    }

    /// PR_CTR: the counter.
    pub(super) fn watchdog_counter(&self, engine: EngineId) -> u32 {
        let value = self.watchdog(engine).and_then(|(time, period)| time.checked_rem(period));
        value.map_or(0, |time| u32::try_from(time / UNIT).unwrap_or(u32::MAX))
    }

    /// Sends the interrupt of a watchdog that has expired. Returns the time in ns of [`Gt::now`] when it expires next, if it
    /// counts.
    pub fn poll_watchdog(&self, engine: EngineId) -> Option<u64> {
        let (time, period) = self.watchdog(engine)?;
        let now = self.now();
        let counted = time.checked_rem(period).unwrap_or(0);
        if counted != time {
            let zero = now.saturating_sub(counted).saturating_add(1);
            self.activity(engine).watchdog.since.store(zero, Ordering::Release);
            self.interrupt_by_engine(engine, WATCHDOG_INTERRUPT);
        }
        Some(now.saturating_add(period.saturating_sub(counted).max(SHORTEST)))
    }
}
