// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest rounds`: repeats a store, a copy and a fence on an engine of each class while other guests use the
//! same card.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::checks::CheckEnvironment;
use super::checks::smoke::{brief, one_of_each_class};
use super::device::Device;
use super::report::{self, Rounds as Report};

/// Interval between progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// The stop condition and the file for the result.
#[derive(Debug, clap::Args)]
pub struct StressLoop {
    /// Continue until FILE exists; at least one round is run
    #[arg(long, value_name = "FILE")]
    until: PathBuf,
    /// Write the result to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seconds that one batch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
}

/// Runs rounds until the file exists or a round fails. Returns true if all rounds passed.
pub fn run(rounds: &StressLoop) -> Result<bool> {
    let mut report = Report::default();
    let start = Instant::now();
    report.problem = go_round(rounds, &mut report).err().map(|error| format!("{error:#}"));
    report.seconds = start.elapsed().as_secs_f64();
    match &report.problem {
        None => println!("{} rounds, {:.1} s", report.rounds, report.seconds),
        Some(problem) => println!("FAIL round {}: {problem}", report.rounds + 1),
    }
    if let Some(path) = &rounds.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.problem.is_none())
}

fn go_round(rounds: &StressLoop, report: &mut Report) -> Result<()> {
    let device = Device::open(None)?;
    let engines = one_of_each_class(&device.engines()?);
    let env = CheckEnvironment { device: &device, timeout: Duration::from_secs(rounds.timeout), reference_clock: 0 };
    let mut last_progress = Instant::now();
    loop {
        for (engine, outcome) in brief(&env, &engines, report.rounds)? {
            outcome.with_context(|| engine.name())?;
        }
        report.rounds += 1;
        if rounds.until.exists() {
            return Ok(());
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            println!("round {} completed", report.rounds);
        }
    }
}
