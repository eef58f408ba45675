// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs the live self-tests of i915 on the card and compares their results with a list of expected failures. This is an
//! example rather than a test because of its run time, and because it builds i915.
//!
//! ```text
//! cargo run --release -p arctic-guest-runner --example selftests -- --submission guc target/release/arctic
//! ```
//!
//! Prints one line per subtest. The exit status is 0 only if every failure is expected and the kernel log has no
//! warning, BUG or GEM_BUG_ON.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use arctic_guest_runner::interrupt::Interrupted;
use arctic_guest_runner::progress::StderrProgress;
use arctic_guest_runner::selftests::{self, Expected, Submission, evaluate};
use clap::Parser;

/// Run i915's live self-tests on the card.
#[derive(Parser)]
struct Arguments {
    /// How i915 submits work
    #[arg(long, value_enum, default_value = "guc")]
    submission: Submission,
    /// List of expected failures, each with its reason
    #[arg(long, default_value = "cli/tests/selftests/i915.txt")]
    expected: PathBuf,
    /// Only this group, such as gt_lrc; may be given several times
    #[arg(long = "group")]
    groups: Vec<String>,
    /// The program arctic
    arctic: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Interrupted>() => ExitCode::from(130),
        Err(error) => {
            eprintln!("selftests: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the run is as expected.
fn run(arguments: &Arguments) -> Result<bool> {
    let path = &arguments.expected;
    let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let expected = Expected::parse(&text).with_context(|| path.display().to_string())?;
    let run = selftests::run(&arguments.arctic, arguments.submission, &arguments.groups, &StderrProgress::default())?;
    let (lines, fine) = evaluate(&run.subtests, arguments.submission.name(), &expected);
    for line in &lines {
        println!("{line}");
    }
    for line in &run.splats {
        println!("kernel log: {line}");
    }
    println!(
        "{} subtests, {} problems in the kernel log; logs: {}",
        lines.len(),
        run.splats.len(),
        run.folder.display()
    );
    Ok(fine && run.splats.is_empty() && !lines.is_empty())
}
