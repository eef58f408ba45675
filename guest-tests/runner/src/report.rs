// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Test results, common to all scenarios, with text and JSON output.

pub use arctic_guest_agent::report::{TestResult, Verdict};
use serde::{Deserialize, Serialize};

use crate::host_load::HostLoad;

/// Number of the form of the JSON documents: it increases if a member changes or is removed, not if one is added.
pub const SCHEMA: u32 = 1;

/// The totals of a list of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of passed tests.
    pub passed: usize,
    /// Number of failed tests.
    pub failed: usize,
    /// Number of skipped tests.
    pub skipped: usize,
}

impl Totals {
    /// Counts `results`.
    pub fn of(results: &[TestResult]) -> Self {
        let count = |verdict| results.iter().filter(|result| result.result == verdict).count();
        Self { passed: count(Verdict::Pass), failed: count(Verdict::Fail), skipped: count(Verdict::Skip) }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Lists the failures among `results`, one per line, under a heading. Empty if there are none.
pub fn failures(results: &[TestResult]) -> String {
    let failed: String =
        results.iter().filter(|result| result.result == Verdict::Fail).map(|result| format!("{result}\n")).collect();
    if failed.is_empty() { failed } else { format!("failed:\n{failed}") }
}

/// Adds the host's load to each failure among `results` if the host was overloaded. No verdict changes.
pub fn mark_overload<'a>(results: impl IntoIterator<Item = &'a mut TestResult>, load: &HostLoad) {
    for result in results.into_iter().filter(|result| result.result == Verdict::Fail) {
        result.overload = load.complaint();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_overload_is_printed_with_failures_and_changes_no_verdict() {
        let verdicts = [Verdict::Pass, Verdict::Fail, Verdict::Skip];
        let mut results = verdicts.map(|verdict| TestResult::new("a@b", verdict, "no answer", 0.5));
        let before = results.clone();
        let quiet = HostLoad { pressure: Some(40.0), load: 1.5, cores: 2, ..HostLoad::default() };
        mark_overload(&mut results, &quiet);
        assert_eq!(results, before);
        mark_overload(&mut results, &HostLoad { overloaded: true, pressure: Some(97.0), load: 13.0, ..quiet });
        assert_eq!((&results[0], &results[2], results[1].result), (&before[0], &before[2], Verdict::Fail));
        let line = results[1].to_string();
        assert!(line.ends_with("no answer  [host overloaded: CPU pressure 97 %, load 13.0 on 2 cores]"), "{line}");
        assert_eq!(Totals::of(&results), Totals::of(&before));
    }

    #[test]
    fn failures_are_repeated_at_the_end() {
        let result = |test: &str, verdict| TestResult::new(test, verdict, "why", 0.5);
        let mut results = vec![result("a@b", Verdict::Pass), result("a@c", Verdict::Skip)];
        assert_eq!(failures(&results), "");
        results.extend(["a@d", "a@e"].map(|test| result(test, Verdict::Fail)));
        let failed_lines = failures(&results);
        let lines: Vec<&str> =
            failed_lines.lines().map(|line| line.split("  ").nth(1).unwrap_or(line).trim()).collect();
        assert_eq!(lines, ["failed:", "a@d", "a@e"]);
    }

    #[test]
    fn totals_and_json_have_the_promised_words() {
        let results = [
            TestResult::new("a@b", Verdict::Pass, "", 0.5),
            TestResult::new("a@c", Verdict::Skip, "no such engine", 0.1),
        ];
        assert_eq!(Totals::of(&results).to_string(), "1 passed, 0 failed, 1 skipped");
        let json = serde_json::to_value(&results[1]).unwrap();
        let wanted = serde_json::json!({"test": "a@c", "result": "skip", "reason": "no such engine", "seconds": 0.1, "dmesg": []});
        assert_eq!(json, wanted);
    }
}
