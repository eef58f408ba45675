//! Engine time: what time slices, execution quanta, preemption timeouts and the watchdog count.
//!
//! The card's clock goes on while the host does not run the card's workers. A context makes no progress in that time and
//! cannot reach an arbitration point, so that a deadline in it would reset engines because the host is busy. Engine time
//! advances by the steps of one engine alone. What a guest reads as a timestamp is the card's clock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Most that one step counts, in nanoseconds: a step is less than a millisecond of work (rule 8 of the design); what it
/// takes beyond that the host has taken from it.
const STEP: u64 = 1_000_000;
/// Most that counts between two steps of an engine that has commands to execute, in nanoseconds: a worker comes back to
/// it in less.
const BETWEEN_STEPS: u64 = 100_000;
/// Most that counts between two looks at an engine whose context waits, in nanoseconds. A wait occupies the engine, and
/// the longest pause between two looks is as long ([`super::attention`]).
const BETWEEN_LOOKS: u64 = 1_000_000;

/// The time of one engine, from 0 on. It is written under the engine's lock and read by any thread.
#[derive(Default)]
pub struct EngineClock {
    /// Engine time up to `since`, in nanoseconds.
    ran: AtomicU64,
    /// When the last step, or the pause after it, began, in nanoseconds of the card's clock.
    since: AtomicU64,
    /// How much of the time from `since` on counts at most, in nanoseconds.
    most: AtomicU64,
}

impl EngineClock {
    /// Engine time at the last beginning or end of a step, in nanoseconds; never goes backwards. An engine with nothing
    /// loaded has the time of its last step.
    pub fn time(&self) -> u64 {
        self.ran.load(Ordering::Acquire)
    }

    /// Engine time at `now` of the card's clock, for the thread that has the engine's lock.
    pub fn at(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.time().saturating_add(passed.min(self.most.load(Ordering::Relaxed)))
    }

    /// A context is loaded at `now`: what passed before does not count. The caller has the engine's lock, here and below.
    pub(super) fn load(&self, now: u64) {
        self.since.store(now, Ordering::Relaxed);
        self.most.store(BETWEEN_STEPS, Ordering::Relaxed);
    }

    /// A step begins.
    pub(super) fn begin_step(&self, now: u64) {
        self.count(now, STEP);
    }

    /// A step ends, at which the context `waits` for memory to change, or does not.
    pub(super) fn end_step(&self, now: u64, waits: bool) {
        self.count(now, if waits { BETWEEN_LOOKS } else { BETWEEN_STEPS });
    }

    /// Counts up to `now`; of what follows, `most` counts at most.
    fn count(&self, now: u64, most: u64) {
        self.ran.store(self.at(now), Ordering::Release);
        self.since.store(now, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
    }

    /// A step of `duration` ns, of which all counts.
    #[cfg(test)]
    pub fn run(&self, duration: u64) {
        self.ran.fetch_add(duration, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Issue point 7 (c): steps count, and what the host takes from them or between them does not.
    #[test]
    fn steps_count() {
        let clock = EngineClock::default();
        clock.load(50 * MS);
        assert_eq!(clock.time(), 0, "nothing was loaded");
        clock.begin_step(50 * MS + 1000);
        assert_eq!(clock.at(50 * MS + 3000), 3000, "within the step");
        clock.end_step(50 * MS + 201_000, false);
        assert_eq!(clock.time(), 201_000);
        // Held up for 100 ms between two steps, and for as long within one.
        clock.begin_step(150 * MS);
        assert_eq!(clock.time(), 301_000);
        clock.end_step(250 * MS, false);
        assert_eq!(clock.time(), MS + 301_000);
    }

    /// A wait counts from look to look.
    #[test]
    fn waits_count_from_look_to_look() {
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
        assert_eq!(clock.time(), 10 * MS, "a late look counts no more");
    }

    /// What passes while nothing is loaded does not count.
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
