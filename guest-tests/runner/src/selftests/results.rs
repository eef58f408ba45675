// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Results of i915's self-tests in its kernel log, and the list of expected failures.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// The outcome of a subtest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubtestResult {
    /// The subtest returned 0, also if it does not apply to this card.
    Passed,
    /// The subtest returned an error: a negative errno.
    Failed(i32),
    /// The subtest printed nothing for five minutes.
    Stuck,
}

/// A subtest with its outcome. If it ran more than once, because another subtest of its suite failed, the first run
/// that did not pass counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Subtest {
    /// Name of the suite, such as `intel_lrc_live_selftests`.
    pub suite: String,
    /// Name of the subtest.
    pub name: String,
    /// Its outcome.
    pub outcome: SubtestResult,
    /// Duration in seconds of the guest's clock, in the run that counts.
    pub seconds: f64,
}

/// Returns the subtests in the kernel logs of successive loads of i915.
pub fn subtests(logs: &[String]) -> Vec<Subtest> {
    let mut order = Vec::new();
    let mut found: BTreeMap<(String, String), Subtest> = BTreeMap::new();
    let mut end = |test: Subtest| {
        let key = (test.suite.clone(), test.name.clone());
        match found.get(&key) {
            None => order.push(key.clone()),
            Some(earlier) if earlier.outcome != SubtestResult::Passed => return,
            Some(_) => {}
        }
        found.insert(key, test);
    };
    for log in logs {
        let mut current: Option<(Subtest, f64)> = None;
        let mut now = 0.0;
        for line in log.lines() {
            let (time, text) = timed(line).unwrap_or((now, line));
            now = time;
            if let Some(running) = text.strip_prefix("i915: Running ") {
                if let Some((test, start)) = current.take() {
                    end(Subtest { seconds: now - start, ..test });
                }
                if let Some((suite, name)) = running.trim().split_once('/') {
                    let (suite, name) = (suite.to_owned(), name.to_owned());
                    current = Some((Subtest { suite, name, outcome: SubtestResult::Passed, seconds: 0.0 }, now));
                }
            } else if let Some((test, _)) = &mut current {
                if let Some(error) = failure(text, test) {
                    test.outcome = SubtestResult::Failed(error);
                } else if text == format!("arctic: {} is stuck", test.name) {
                    test.outcome = SubtestResult::Stuck;
                }
            }
        }
        if let Some((test, start)) = current {
            end(Subtest { seconds: now - start, ..test });
        }
    }
    order.iter().filter_map(|key| found.remove(key)).collect()
}

/// Splits `[   12.345678] text`.
fn timed(line: &str) -> Option<(f64, &str)> {
    let (time, text) = line.strip_prefix('[')?.split_once("] ")?;
    Some((time.trim().parse().ok()?, text))
}

/// Returns the error of the line `i915/SUITE: NAME failed with error -22`.
fn failure(text: &str, test: &Subtest) -> Option<i32> {
    let rest = text.strip_prefix("i915/")?.strip_prefix(&test.suite)?.strip_prefix(": ")?.strip_prefix(&test.name)?;
    rest.strip_prefix(" failed with error ")?.trim().parse().ok()
}

/// The list of expected failures: lines `SUBMISSION SUBTEST REASON`, comments with #.
#[derive(Clone, Debug, Default)]
pub struct Expected(Vec<(String, String, String)>);

impl Expected {
    /// Parses a list. Each line must give a reason.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, char::is_whitespace).map(str::trim);
            match (words.next(), words.next(), words.next()) {
                (Some(submission), Some(test), Some(reason)) if !reason.is_empty() => {
                    lines.push((submission.to_owned(), test.to_owned(), reason.to_owned()));
                }
                _ => bail!("line {}: expected `SUBMISSION SUBTEST REASON`, found `{line}`", number + 1),
            }
        }
        Ok(Self(lines))
    }

    /// Returns the reason for which `test` is expected to fail with `submission`.
    pub fn reason(&self, submission: &str, test: &str) -> Option<&str> {
        let line = self.0.iter().find(|(mode, name, _)| mode == submission && name == test);
        line.map(|(_, _, reason)| reason.as_str())
    }
}

/// Returns one line per subtest, and whether no subtest failed that is not expected to.
pub fn evaluate(subtests: &[Subtest], submission: &str, expected: &Expected) -> (Vec<String>, bool) {
    let mut fine = true;
    let lines = subtests.iter().map(|test| {
        let reason = expected.reason(submission, &test.name);
        let result = match (&test.outcome, reason) {
            (SubtestResult::Passed, None) => "ok".into(),
            (SubtestResult::Passed, Some(_)) => "ok, although a failure is expected".into(),
            (outcome, Some(reason)) => format!("expected {}: {reason}", text(outcome)),
            (outcome, None) => {
                fine = false;
                format!("FAILED: {}", text(outcome))
            }
        };
        format!("{submission} {}/{} ({:.1} s): {result}", test.suite, test.name, test.seconds)
    });
    (lines.collect(), fine)
}

fn text(outcome: &SubtestResult) -> String {
    match outcome {
        SubtestResult::Passed => "pass".into(),
        SubtestResult::Failed(error) => format!("error {error}"),
        SubtestResult::Stuck => "no progress for 300 s".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "\
[   10.000000] i915: Performing live selftests with st_random_seed=0x1 st_timeout=500
[   10.500000] i915: Running gt_engines
[   10.500000] i915: Running live_engine_pm_selftests/live_engine_timestamps
[   10.600000] rcs0 elapsed:41ns, CTX_TIMESTAMP:530ns, RING_TIMESTAMP:530ns
[   10.750000] i915: Running live_engine_pm_selftests/live_engine_busy_stats
[   11.000000] i915/live_engine_pm_selftests: live_engine_busy_stats failed with error -22
[   11.250000] i915 0000:00:01.0: probe with driver i915 failed with error -22
";
    const SECOND: &str = "\
[   20.000000] i915: Running live_engine_pm_selftests/live_engine_timestamps
[   20.100000] i915/live_engine_pm_selftests: live_engine_timestamps failed with error -5
";
    const THIRD: &str = "\
[   30.000000] i915: Running live_engine_pm_selftests/live_engine_pm
arctic: live_engine_pm is stuck
";

    fn tests() -> Vec<Subtest> {
        subtests(&[FIRST.to_owned(), SECOND.to_owned(), THIRD.to_owned()])
    }

    /// The first run of a subtest that did not pass counts; the order is that of the first runs.
    #[test]
    fn subtests_of_several_loads() {
        let found = tests();
        let names: Vec<_> = found.iter().map(|test| (test.name.as_str(), &test.outcome)).collect();
        assert_eq!(names[0], ("live_engine_timestamps", &SubtestResult::Failed(-5)));
        assert_eq!(names[1], ("live_engine_busy_stats", &SubtestResult::Failed(-22)));
        assert_eq!(names[2], ("live_engine_pm", &SubtestResult::Stuck));
        assert_eq!((names.len(), found[1].seconds), (3, 0.5));
    }

    /// Only failures without an entry for the same submission fail the run.
    #[test]
    fn expected_failures_need_a_reason() {
        let list = "# comment\nguc live_engine_timestamps the host\nguc live_engine_pm x\n";
        let expected = Expected::parse(list).unwrap();
        let (lines, fine) = evaluate(&tests(), "guc", &expected);
        assert!(!fine);
        assert!(lines[0].ends_with("expected error -5: the host"), "{lines:?}");
        assert!(lines[1].ends_with("(0.5 s): FAILED: error -22"), "{lines:?}");
        let complete = Expected::parse(&format!("{list}guc live_engine_busy_stats y\n")).unwrap();
        assert!(evaluate(&tests(), "guc", &complete).1 && !evaluate(&tests(), "execlists", &complete).1);
        let error = Expected::parse("guc live_engine_pm").unwrap_err().to_string();
        assert_eq!(error, "line 1: expected `SUBMISSION SUBTEST REASON`, found `guc live_engine_pm`");
    }
}
