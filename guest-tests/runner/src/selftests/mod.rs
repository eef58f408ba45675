// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The self-tests in the Linux drivers, built into modules of the downloaded kernel and run on the card.

mod build;
mod results;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::cache::Cache;
use crate::interrupt;
use crate::kernel_log;
use crate::process::Child;
use crate::progress::Progress;
pub use results::{Expected, Subtest, SubtestResult, evaluate, subtests};

/// The guest's script.
const RUN: &str = include_str!("run.sh");
/// Guest memory in MiB, kernel log buffer and limit of a run in seconds.
const MEMORY: &str = "4096";
const LOG_BUFFER: &str = "log_buf_len=16M";
const LIMIT: &str = "7200";
/// Exit status of the guest's script if another guest has to continue, and the maximum number of guests of a run.
const CONTINUE: i32 = 10;
const GUESTS: u32 = 12;

/// How i915 submits work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Submission {
    /// By the GuC.
    Guc,
    /// By execlists (`enable_guc=0`). i915 supports only the GuC on this card.
    Execlists,
}

impl Submission {
    /// The name, which expectations use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guc => "guc",
            Self::Execlists => "execlists",
        }
    }

    fn kernel_arguments(self) -> &'static str {
        match self {
            Self::Guc => "",
            Self::Execlists => " i915.enable_guc=0",
        }
    }
}

/// The results of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The subtests, in order.
    pub subtests: Vec<Subtest>,
    /// Kernel log lines that no run may have.
    pub splats: Vec<String>,
    /// Directory of the run's logs.
    pub folder: PathBuf,
}

/// Builds i915 with its self-tests, unless the cache has it, and runs the live self-tests of `groups` (all if empty) on
/// the small card that `arctic` serves. `arctic`'s output is not redirected.
pub fn run(arctic: &Path, submission: Submission, groups: &[String], progress: &dyn Progress) -> Result<Run> {
    interrupt::install();
    let cache = Cache::open()?;
    let built = build::modules(&cache, progress)?;
    let available = build::groups(&fs::read(&built.i915).with_context(|| format!("{}", built.i915.display()))?);
    ensure!(!available.is_empty(), "{} has no live self-tests", built.i915.display());
    if let Some(unknown) = groups.iter().find(|group| !available.iter().any(|(_, name)| name == *group)) {
        let names: Vec<&str> = available.iter().map(|(_, name)| name.as_str()).collect();
        bail!("i915 has no group {unknown}, but {}", names.join(", "));
    }
    let chosen = available.iter().filter(|(_, name)| groups.is_empty() || groups.contains(name));
    let folder = cache.new_run("selftests")?;
    let share = folder.join("share");
    fs::create_dir_all(&share)?;
    fs::write(share.join("run.sh"), RUN)?;
    fs::write(share.join("groups"), chosen.map(|(line, name)| format!("{line} {name}\n")).collect::<String>())?;
    let mut splats = Vec::new();
    for guest in 1.. {
        ensure!(guest <= GUESTS, "{GUESTS} guests did not finish the tests; logs: {}", folder.display());
        let log = folder.join(format!("guest{guest}"));
        let mut command = Command::new(arctic);
        command.args(["boot", "--driver", "i915", "--card", "small", "--memory", MEMORY, "--timeout", LIMIT]);
        command.args(["--append", &format!("{LOG_BUFFER}{}", submission.kernel_arguments())]);
        command.arg("--kernel").arg(&built.image).arg("--modules").arg(&built.modules);
        command.arg("--share").arg(&share).arg("--log").arg(&log);
        command.args(["--run", "sh /share/run.sh"]).stdin(Stdio::null());
        let status = wait(&mut Child::spawn(&mut command, "arctic boot")?)?;
        let console = log.join("console.log");
        let console = fs::read(&console).with_context(|| format!("{} cannot be read", console.display()))?;
        splats.extend(String::from_utf8_lossy(&console).lines().filter(|line| splat(line)).map(str::to_owned));
        match status.code() {
            Some(0) => break,
            Some(CONTINUE) => progress.print_line("i915 cannot be unloaded; another guest continues"),
            _ => bail!("the guest's script failed ({status}); logs: {}", folder.display()),
        }
    }
    Ok(Run { subtests: subtests(&logs(&share.join("log"))?), splats, folder })
}

/// Waits for the child. An interruption terminates it.
fn wait(child: &mut Child) -> Result<ExitStatus> {
    loop {
        if let Err(interrupted) = interrupt::check() {
            child.stop(Duration::from_secs(10))?;
            return Err(interrupted.into());
        }
        if let Some(status) = child.wait(Duration::from_millis(200))? {
            return Ok(status);
        }
    }
}

/// Returns whether a line of the kernel log fails the run. A task that waits in the removal of a wedged i915 is left to
/// the results of the subtests.
fn splat(line: &str) -> bool {
    let pattern = kernel_log::splat(line);
    pattern.is_some_and(|pattern| !["blocked for more than", "Call Trace:"].contains(&pattern))
        || line.contains("GEM_BUG_ON")
}

/// Returns the logs `1.log`, `2.log`… in `folder`.
fn logs(folder: &Path) -> Result<Vec<String>> {
    let mut logs = Vec::new();
    loop {
        let path = folder.join(format!("{}.log", logs.len() + 1));
        match fs::read(&path) {
            Ok(bytes) => logs.push(String::from_utf8_lossy(&bytes).into_owned()),
            Err(_) if !logs.is_empty() => return Ok(logs),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
        }
    }
}
