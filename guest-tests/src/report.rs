//! Results as people and programs read them: one shape for every scenario.

use serde::{Deserialize, Serialize};

/// How one test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The test itself said so.
    Pass,
    /// It failed, hung, crashed or does not exist.
    Fail,
    /// The test declined, in its own words.
    Skip,
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// `binary@subtest`, or a scenario's own name for a check.
    pub test: String,
    /// How it ended.
    pub result: Verdict,
    /// Why, in the test's own words; empty where it passed without remark.
    pub reason: String,
    /// How long it took.
    pub seconds: f64,
    /// Error and warning lines of the drivers that it caused.
    pub dmesg: Vec<String>,
}

/// The totals of a list of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were skipped.
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

impl TestResult {
    /// A result without log lines.
    pub fn new(test: impl Into<String>, result: Verdict, reason: impl Into<String>, seconds: f64) -> Self {
        Self { test: test.into(), result, reason: reason.into(), seconds, dmesg: Vec::new() }
    }
}

impl std::fmt::Display for TestResult {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self.result {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "skip",
        };
        write!(out, "{verdict}  {:<48} {:>7.2} s", self.test, self.seconds)?;
        match self.reason.is_empty() {
            true => Ok(()),
            false => write!(out, "  {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
