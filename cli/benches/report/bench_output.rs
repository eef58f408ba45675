// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parser of the output of the benches that the report runs: lines `NAME: NUMBER` or `NAME  NUMBER`, and `skipped: REASON` of a
//! bench that cannot measure on this host.

use anyhow::{Result, ensure};

/// A value with details, or `None` with the reason.
pub type Finding = (Option<f64>, String);

/// Fails unless there is a value for each of `rows` rows, so that no target is left out of the report.
pub fn one_for_each_row(findings: Vec<Finding>, rows: usize) -> Result<Vec<Finding>> {
    ensure!(findings.len() == rows, "{} values were measured for {rows} rows", findings.len());
    Ok(findings)
}

/// The value that the bench printed for `name`, or why there is none.
pub fn value(text: &str, name: &str) -> Finding {
    let skipped = || text.lines().find_map(|line| line.strip_prefix("skipped: "));
    match number(text, name) {
        Some(number) => (Some(number), String::new()),
        None => (None, skipped().map_or_else(|| format!("the bench printed no number for {name:?}"), str::to_owned)),
    }
}

/// The first number after `name` in `text`.
fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([':', ' ']).split_whitespace().next()?.parse().ok()
}
