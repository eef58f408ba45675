// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares the guest's clock with the host's. A run in a guest with a wrong clock rate is inconclusive, because all
//! timeouts of the kernel, the driver and the tests are wrong by the same factor.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Exit status of an inconclusive run; `git bisect run` skips such a commit.
pub const INCONCLUSIVE: u8 = 125;
/// Permitted difference of the clocks, as a fraction of the host's time.
const TOLERANCE: f64 = 0.05;
/// Permitted error in seconds from the transport delay of two readings; dominant in runs of a few seconds.
const TRANSPORT: f64 = 0.2;
/// Readings within this time of the first or last reading form a group; the least delayed reading of a group is used.
const GROUP: Duration = Duration::from_secs(1);
/// Maximum number of readings kept at each end.
const KEPT: usize = 16;
/// Minimum span in seconds for a comparison.
const SHORTEST: f64 = 1.0;

/// One reading: the guest's clock in seconds, and the time at which the host received it.
type Reading = (f64, Instant);

/// Readings of one guest's clock (CLOCK_BOOTTIME, which includes time spent suspended).
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    first: Vec<Reading>,
    last: VecDeque<Reading>,
    /// Seconds for which the guest was stopped, by the host's clock; its own has not run then.
    stopped: f64,
}

impl Clocks {
    /// Adds the guest's `seconds`, received at `at`. Negative and non-finite values are ignored.
    pub fn add(&mut self, seconds: f64, at: Instant) {
        if !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        let begins = self.first.first().is_none_or(|(_, first)| at.saturating_duration_since(*first) <= GROUP);
        if begins && self.first.len() < KEPT {
            self.first.push((seconds, at));
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((seconds, at));
    }

    /// Handles a line of the control port: `clock SECONDS`. Other lines are ignored.
    pub fn record(&mut self, line: &str, at: Instant) {
        if let Some(seconds) = line.strip_prefix("clock ").and_then(|rest| rest.trim().parse::<f64>().ok()) {
            self.add(seconds + self.stopped, at);
        }
    }

    /// The guest was stopped by the host for this time.
    pub fn stopped(&mut self, duration: Duration) {
        self.stopped += duration.as_secs_f64();
    }

    /// Compares the clock of the guest called `guest` with the host's. Returns `None` if its readings span less than a
    /// second.
    pub fn compare(&self, guest: impl Into<String>) -> Option<Comparison> {
        let origin = self.first.first()?.1;
        let end = self.last.back()?.1;
        let host = |at: Instant| at.saturating_duration_since(origin).as_secs_f64();
        let prompt = |a: &&Reading, b: &&Reading| (host(a.1) - a.0).total_cmp(&(host(b.1) - b.0));
        let first = self.first.iter().min_by(prompt)?;
        let lasts = self.last.iter().filter(|(_, at)| end.saturating_duration_since(*at) <= GROUP);
        let last = lasts.min_by(prompt)?;
        let host_seconds = host(last.1) - host(first.1);
        (host_seconds >= SHORTEST).then(|| Comparison::new(guest.into(), last.0 - first.0, host_seconds))
    }
}

/// Elapsed time by a guest's clock and by the host's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The guest: `pf`, `vf1`… in a run of several guests; `guest` and a number for the successive guests of an IGT
    /// run.
    pub guest: String,
    /// Seconds by the guest's clock.
    pub guest_seconds: f64,
    /// Seconds by the host's clock.
    pub host_seconds: f64,
    /// Whether the clocks differ by more than 5 %, which makes the run inconclusive.
    pub differ: bool,
}

impl Comparison {
    fn new(guest: String, guest_seconds: f64, host_seconds: f64) -> Self {
        let differ = (guest_seconds - host_seconds).abs() > (TOLERANCE * host_seconds).max(TRANSPORT);
        Self { guest, guest_seconds, host_seconds, differ }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guest, guest_seconds, host_seconds, .. } = self;
        let percent = (guest_seconds / host_seconds - 1.0) * 100.0;
        write!(out, "{guest}: {guest_seconds:.2} s by its clock, {host_seconds:.2} s by the host's ({percent:+.1} %)")
    }
}

/// The message that a run is inconclusive, with the first clock that differs; `None` if none differs.
pub fn inconclusive(clocks: &[Comparison]) -> Option<String> {
    let wrong = clocks.iter().find(|comparison| comparison.differ)?;
    Some(format!("inconclusive: the clocks of guest and host differ by more than {} %: {wrong}", TOLERANCE * 100.0))
}

/// Error of an inconclusive run without a report: the text of [`inconclusive`], added as context to the error that
/// ended the run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongClock(pub String);

/// Returns [`INCONCLUSIVE`] if one of `clocks` differs from the host's, else `status`.
pub fn exit_status(clocks: &[Comparison], status: u8) -> u8 {
    if clocks.iter().any(|comparison| comparison.differ) { INCONCLUSIVE } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest clock that runs `rate` times as fast as the host's, read three times at each end of a span of `seconds`
    /// s. The last reading arrives `delay` s late.
    fn run(rate: f64, seconds: f64, delay: f64) -> Option<Comparison> {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        for begin in [0.0, seconds] {
            for (index, late) in [0.0, 0.0, if begin > 0.0 { delay } else { 0.0 }].into_iter().enumerate() {
                let host = begin + 0.4 * index as f64;
                clocks.record(&format!("clock {:.2}", 4.0 + host * rate), start + Duration::from_secs_f64(host + late));
            }
        }
        clocks.compare("guest")
    }

    #[test]
    fn clocks_may_differ_by_five_percent() {
        for (rate, differ) in [(1.0, false), (1.04, false), (0.96, false), (1.06, true), (0.94, true), (29.8, true)] {
            let comparison = run(rate, 20.0, 0.0).unwrap();
            assert_eq!(comparison.differ, differ, "{comparison}");
            assert!((comparison.guest_seconds - rate * comparison.host_seconds).abs() < 0.02, "{comparison}");
        }
    }

    /// A guest that was stopped for a part of the run has a clock that stood still meanwhile.
    #[test]
    fn a_stopped_guest_has_no_wrong_clock() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        for (stopped, differ) in [(6, false), (0, true), (3, true)] {
            let mut clocks = Clocks::default();
            clocks.record("clock 4.0", start);
            clocks.stopped(second * stopped);
            clocks.record("clock 14.0", start + second * 16);
            assert_eq!(clocks.compare("guest").unwrap().differ, differ, "{stopped} s");
        }
    }

    /// Delayed readings do not make a guest's clock appear slow, and a short run tolerates the transport delay.
    #[test]
    fn transport_delay_is_not_a_clock_difference() {
        assert!(!run(1.0, 6.0, 0.5).unwrap().differ);
        assert!(!run(1.08, 1.5, 0.0).unwrap().differ);
        assert!(run(2.0, 2.0, 0.0).unwrap().differ);
        assert_eq!(run(1.0, 0.1, 0.0), None);
    }

    #[test]
    fn input_of_a_guest_is_bounded_and_checked() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        for line in ["clock nan", "clock inf", "clock -1", "clock", "clock x", "ready 4"] {
            clocks.record(line, start);
        }
        assert_eq!(clocks.compare("guest"), None);
        for number in 0..10_000_u32 {
            clocks.add(f64::from(number), start + Duration::from_millis(number.into()));
        }
        assert!(clocks.first.len() <= KEPT && clocks.last.len() <= KEPT);
        assert!(clocks.compare("guest").unwrap().differ);
    }

    /// Exit status 125 overrides the status of the checks; the message has both times.
    #[test]
    fn a_run_with_a_wrong_clock_is_inconclusive() {
        let comparison = |guest: &str, seconds: f64| Comparison::new(guest.into(), seconds, 10.0);
        let good = [comparison("pf", 10.1), comparison("vf1", 9.9)];
        assert_eq!((exit_status(&good, 0), exit_status(&good, 1), inconclusive(&good)), (0, 1, None));
        let bad = [comparison("pf", 10.1), comparison("vf1", 298.0)];
        assert_eq!((exit_status(&bad, 0), exit_status(&bad, 1), exit_status(&bad, 7)), (125, 125, 125));
        let line = inconclusive(&bad).unwrap();
        assert_eq!(
            line,
            "inconclusive: the clocks of guest and host differ by more than 5 %: \
             vf1: 298.00 s by its clock, 10.00 s by the host's (+2880.0 %)"
        );
    }
}
