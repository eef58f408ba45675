// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! When a failed write is repeated, reported and given up. Pure state: no threads, no I/O; the caller passes the time.

use std::time::{Duration, Instant};

use super::window::WindowError;

/// Time for which writes are attempted without success before a new trigger is required.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The last failure of a series of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Index of the VF in `Placement`.
    pub vf: usize,
    pub error: WindowError,
}

/// A series of attempts. It ends with a success or a trigger.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// Number of triggers when it began.
    triggers: u64,
    deadline: Instant,
    /// Number of failures.
    failures: u32,
    /// Pause after the next failure.
    pause: Duration,
    failure: Option<Failure>,
    reported: bool,
}

impl Series {
    /// A series that begins at `now`, after `triggers` triggers.
    pub fn new(triggers: u64, now: Instant) -> Self {
        let deadline = now.checked_add(TIMEOUT).unwrap_or(now);
        Series { triggers, deadline, failures: 0, pause: FIRST_PAUSE, failure: None, reported: false }
    }

    /// The series continues, unless there have been more triggers since it began.
    pub fn continues(&self, triggers: u64) -> bool {
        self.triggers == triggers
    }

    /// When an attempt that has not ended must end.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns whether no further attempt must begin.
    pub fn is_over(&self, now: Instant) -> bool {
        self.failure.is_some() && now > self.deadline
    }

    /// Records a failed attempt. Returns the pause before the next one. A search that the deadline stopped is not the
    /// cause if an attempt has failed before.
    pub fn fail(&mut self, failure: Failure) -> Duration {
        if self.failure.is_none() || failure.error != WindowError::Stopped {
            self.failure = Some(failure);
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        pause
    }

    /// Returns the last failure if it must be reported now: once in a series, and only if its VF is `withheld`, because
    /// other VFs can be used. The first failure may be due to a change that the VMM has not processed yet, so it is
    /// reported only if no further attempt follows.
    pub fn report(&mut self, now: Instant, withheld: impl FnOnce(usize) -> bool) -> Option<Failure> {
        let failure = self.failure.filter(|_| !self.reported && (self.failures > 1 || self.is_over(now)))?;
        self.reported = withheld(failure.vf);
        self.reported.then_some(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfio_user::DmaError;

    const REFUSED: Failure = Failure { vf: 1, error: WindowError::Dma(DmaError::Refused(19)) };
    const NO_EFFECT: Failure = Failure { vf: 2, error: WindowError::NoEffect };
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn attempts_are_repeated_at_growing_intervals_until_the_deadline() {
        let start = Instant::now();
        let mut series = Series::new(7, start);
        assert!(series.continues(7) && !series.continues(8));
        assert!(!series.is_over(start + 2 * TIMEOUT), "the first attempt");
        let pauses: Vec<_> = (0..10).map(|_| series.fail(REFUSED).as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(series.deadline(), start + TIMEOUT);
        assert!(!series.is_over(start + TIMEOUT) && series.is_over(start + TIMEOUT + MS));
    }

    /// A refusal withholds the VF at once, and is reported when it is repeated.
    #[test]
    fn a_repeated_failure_is_reported_once() {
        let now = Instant::now();
        let mut series = Series::new(0, now);
        assert_eq!(series.report(now, |_| true), None, "nothing has failed");
        series.fail(NO_EFFECT);
        assert_eq!(series.report(now, |_| true), None, "the VMM may not be ready");
        series.fail(REFUSED);
        assert_eq!(series.report(now, |vf| vf == REFUSED.vf), Some(REFUSED));
        series.fail(REFUSED);
        assert_eq!(series.report(now, |_| true), None);
        assert_eq!(series.report(now + 2 * TIMEOUT, |_| true), None, "already reported");
    }

    /// If the writes to a VF are confirmed without effect, or not answered, the VF is withheld when the attempts end, and is
    /// reported then.
    #[test]
    fn a_vf_that_becomes_withheld_at_the_end_is_reported_then() {
        let now = Instant::now();
        let late = now + TIMEOUT + MS;
        let mut series = Series::new(0, now);
        for _ in 0..20 {
            series.fail(NO_EFFECT);
            assert_eq!(series.report(now, |_| false), None, "it can be used");
        }
        assert_eq!(series.report(late, |vf| vf == NO_EFFECT.vf), Some(NO_EFFECT));
        assert_eq!(series.report(late, |_| true), None);
        let mut single = Series::new(0, now);
        single.fail(REFUSED);
        single.fail(Failure { vf: 3, error: WindowError::Stopped });
        assert_eq!(single.report(late, |_| true), Some(REFUSED), "the cause is not the deadline");
        let mut slow = Series::new(0, now);
        slow.fail(Failure { vf: 3, error: WindowError::Stopped });
        let stopped = slow.report(late, |_| true).map(|failure| failure.error);
        assert_eq!(stopped, Some(WindowError::Stopped), "one attempt that took all the time");
        let mut disabled = Series::new(0, now);
        disabled.fail(REFUSED);
        assert_eq!(disabled.report(late, |_| false), None, "no VF reads all ones");
    }
}
