//! The guest's clock against the host's. A run in a guest whose clock has another rate shows nothing: each timeout of
//! kernel, driver and test is too short or too long by the same factor.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Exit status of a run that is inconclusive; `git bisect run` skips such a commit.
pub const INCONCLUSIVE: u8 = 125;
/// How far the clocks may differ, in parts of the host's time.
const TOLERANCE: f64 = 0.05;
/// What the way of two readings to the host may add or take away, in seconds: all that counts in a run of a few seconds.
const TRANSPORT: f64 = 0.2;
/// Readings within this time of the first or the last one stand for the same moment; the least delayed one is taken.
const GROUP: Duration = Duration::from_secs(1);
/// Most readings kept at each end.
const KEPT: usize = 16;
/// A shorter run compares nothing.
const SHORTEST: f64 = 1.0;

/// One reading: the guest's clock in seconds, and when the host received it.
type Reading = (f64, Instant);

/// Readings of one guest's clock (CLOCK_BOOTTIME, so that a suspended guest is no slow one).
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    first: Vec<Reading>,
    last: VecDeque<Reading>,
}

impl Clocks {
    /// Takes in the guest's `seconds`, received at `at`. Values that no clock shows are left out.
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

    /// Takes in a line of the control port: `clock SECONDS`. Other lines are left alone.
    pub fn hear(&mut self, line: &str, at: Instant) {
        if let Some(seconds) = line.strip_prefix("clock ").and_then(|rest| rest.trim().parse().ok()) {
            self.add(seconds, at);
        }
    }

    /// Compares the clocks of the guest called `guest` over its life; `None` if its readings span less than a second.
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

/// How a guest's clock and the host's ran over the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The guest: `pf`, `vf1`… of several, `guest` and its number for the lives of an IGT run.
    pub guest: String,
    /// Seconds by the guest's clock.
    pub guest_seconds: f64,
    /// Seconds by the host's.
    pub host_seconds: f64,
    /// Whether they differ by more than 5 %: the run is inconclusive.
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

/// The line that says that a run is inconclusive, with the first clock that differs; `None` if none does.
pub fn inconclusive(clocks: &[Comparison]) -> Option<String> {
    let wrong = clocks.iter().find(|comparison| comparison.differ)?;
    Some(format!("inconclusive: the clocks of guest and host differ by more than {} %: {wrong}", TOLERANCE * 100.0))
}

/// A run without a report that is inconclusive, too: the text of [`inconclusive`], as context of what ended the run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongClock(pub String);

/// The exit status of a run with these `clocks` that would otherwise end with `status`.
pub fn exit_status(clocks: &[Comparison], status: u8) -> u8 {
    if clocks.iter().any(|comparison| comparison.differ) { INCONCLUSIVE } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest whose clock runs `rate` times as fast as the host's, and which reads it three times at each end of `seconds`
    /// s; the very last reading is `delay` s on its way.
    fn run(rate: f64, seconds: f64, delay: f64) -> Option<Comparison> {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        for begin in [0.0, seconds] {
            for (index, late) in [0.0, 0.0, if begin > 0.0 { delay } else { 0.0 }].into_iter().enumerate() {
                let host = begin + 0.4 * index as f64;
                clocks.hear(&format!("clock {:.2}", 4.0 + host * rate), start + Duration::from_secs_f64(host + late));
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

    /// What delays single readings does not look like a slow guest, and in a short run the way itself is allowed for.
    #[test]
    fn delays_on_the_way_are_no_difference() {
        assert!(!run(1.0, 6.0, 0.5).unwrap().differ);
        assert!(!run(1.08, 1.5, 0.0).unwrap().differ);
        assert!(run(2.0, 2.0, 0.0).unwrap().differ);
        assert_eq!(run(1.0, 0.1, 0.0), None);
    }

    #[test]
    fn what_a_guest_sends_is_bounded_and_checked() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        for line in ["clock nan", "clock inf", "clock -1", "clock", "clock x", "ready 4"] {
            clocks.hear(line, start);
        }
        assert_eq!(clocks.compare("guest"), None);
        for number in 0..10_000_u32 {
            clocks.add(f64::from(number), start + Duration::from_millis(number.into()));
        }
        assert!(clocks.first.len() <= KEPT && clocks.last.len() <= KEPT);
        assert!(clocks.compare("guest").unwrap().differ);
    }

    /// The status says that the run shows nothing, whether its checks passed or failed; the line has both times.
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
