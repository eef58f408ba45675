// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engine time, the time base of time slices, execution quanta, preemption timeouts and the watchdog.
//!
//! The card's clock also advances while the host does not schedule the card's workers. During that time a context
//! cannot reach an arbitration point, so a deadline on the card's clock would cause engine resets on a busy host.
//! Engine time advances only with the steps of one engine. Timestamps read by guests use the card's clock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum time charged for one step, in nanoseconds. A step executes for less than a millisecond, so the worker was
/// preempted for the rest of a longer interval.
const STEP: u64 = 1_000_000;
/// Maximum time charged between two steps of an engine that has commands to execute, in nanoseconds. Workers normally
/// step such an engine again sooner.
const BETWEEN_STEPS: u64 = 100_000;
/// Maximum time charged between two steps of an engine with a waiting context, in nanoseconds. A waiting context
/// occupies the engine. Equals the longest delay between two checks of a wait (`arctic_base::wakeup`).
const BETWEEN_POLLS: u64 = 1_000_000;

/// Engine time of one engine, starting at 0. Written with the engine's lock held, read by any thread.
#[derive(Default)]
pub struct EngineClock {
    /// Engine time up to `since`, in nanoseconds.
    ran: AtomicU64,
    /// Start of the last step or of the interval after it, in nanoseconds of the card's clock.
    since: AtomicU64,
    /// Maximum time charged for the interval that starts at `since`, in nanoseconds.
    most: AtomicU64,
}

impl EngineClock {
    /// Returns the engine time at the last start or end of a step, in nanoseconds. Monotonic. Does not advance while no
    /// context is loaded.
    pub fn time(&self) -> u64 {
        self.ran.load(Ordering::Acquire)
    }

    /// Returns the engine time at `now` of the card's clock. The caller must hold the engine's lock.
    pub fn at(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.time().saturating_add(passed.min(self.most.load(Ordering::Relaxed)))
    }

    /// Marks the load of a context at `now`. Earlier time is not charged. The caller must hold the engine's lock, as
    /// for the functions below.
    pub(crate) fn load(&self, now: u64) {
        self.since.store(now, Ordering::Relaxed);
        self.most.store(BETWEEN_STEPS, Ordering::Relaxed);
    }

    /// Marks the start of a step.
    pub(crate) fn begin_step(&self, now: u64) {
        self.count(now, STEP);
    }

    /// Marks the end of a step. `waits` is set if the context waits for memory to change.
    pub(crate) fn end_step(&self, now: u64, waits: bool) {
        self.count(now, if waits { BETWEEN_POLLS } else { BETWEEN_STEPS });
    }

    /// Charges the time up to `now`, and limits the charge for the following interval to `most`.
    fn count(&self, now: u64, most: u64) {
        self.ran.store(self.at(now), Ordering::Release);
        self.since.store(now, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
    }

    /// Charges a step of `duration` ns in full.
    #[cfg(test)]
    pub fn run(&self, duration: u64) {
        self.ran.fetch_add(duration, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Issue point 7 (c): steps are charged, scheduling delay of the host within or between steps is not.
    #[test]
    fn steps_count() {
        let clock = EngineClock::default();
        clock.load(50 * MS);
        assert_eq!(clock.time(), 0, "no context was loaded");
        clock.begin_step(50 * MS + 1000);
        assert_eq!(clock.at(50 * MS + 3000), 3000, "within the step");
        clock.end_step(50 * MS + 201_000, false);
        assert_eq!(clock.time(), 201_000);
        // Delayed for 100 ms between two steps and within one step.
        clock.begin_step(150 * MS);
        assert_eq!(clock.time(), 301_000);
        clock.end_step(250 * MS, false);
        assert_eq!(clock.time(), MS + 301_000);
    }

    /// A wait is charged continuously from one step to the next.
    #[test]
    fn waits_count_from_poll_to_poll() {
        let clock = EngineClock::default();
        clock.load(0);
        let mut now = 0;
        for _ in 0..10 {
            clock.begin_step(now);
            clock.end_step(now, true);
            now += MS;
        }
        assert_eq!(clock.time(), 9 * MS);
        clock.begin_step(1000 * MS);
        assert_eq!(clock.time(), 10 * MS, "a late step is not charged more");
    }

    /// Time without a loaded context is not charged.
    #[test]
    fn an_idle_engine_has_no_time() {
        let clock = EngineClock::default();
        clock.load(0);
        clock.begin_step(0);
        clock.end_step(1000, true);
        clock.load(700 * MS);
        clock.begin_step(700 * MS);
        clock.end_step(700 * MS + 500, false);
        assert_eq!(clock.time(), 1500);
    }
}
