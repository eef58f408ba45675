// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs a command repeatedly on a deliberately overloaded host, to measure it with a small share of each CPU. This is
//! an example rather than a test because of its run time.
//!
//! ```text
//! cargo run --release -p arctic-guest-runner --example loaded_host -- --threads 6 --runs 20 -- \
//!     target/release/arctic boot --vfs 2 --provision config
//! ```
//!
//! Prints one line per run (exit status, seconds, host load), the output of each failed run, and a summary. The exit
//! status is 0 only if every run succeeded.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arctic_guest_runner::clocks::INCONCLUSIVE;
use arctic_guest_runner::host_load::Snapshot;
use arctic_guest_runner::interrupt::{self, Interrupted};
use arctic_guest_runner::process::{Child, POLL_INTERVAL};
use clap::Parser;

/// Grace period for a run to clean up between SIGTERM and SIGKILL.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Run a command repeatedly while busy threads load every core.
#[derive(Parser)]
struct Arguments {
    /// Busy threads per core
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=100))]
    threads: u32,
    /// Number of runs of the command
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds after which a run is terminated and counts as failed
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    timeout: u64,
    /// Run as one of the busy threads
    #[arg(long, hide = true)]
    burn: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "burn")]
    command: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.burn {
        loop {
            std::hint::spin_loop();
        }
    }
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Interrupted>() => ExitCode::from(130),
        Err(error) => {
            let _ = writeln!(io::stderr(), "loaded_host: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. Write errors, such as a closed stdout, are ignored.
fn print_line(line: &str) {
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Returns whether every run succeeded.
fn run(arguments: &Arguments) -> Result<bool> {
    interrupt::install();
    let cores = u32::try_from(thread::available_parallelism()?.get())?;
    // Separate processes: each is killed when its `Child` is dropped or this process dies.
    let program = std::env::current_exe()?;
    let mut busy = Vec::new();
    for _ in 0..arguments.threads * cores {
        busy.push(Child::spawn(Command::new(&program).arg("--burn").stdin(Stdio::null()), "a busy thread")?);
    }
    print_line(&format!("{} busy threads on {cores} cores: {}", busy.len(), arguments.command.join(" ")));
    let (mut failed, mut inconclusive, mut seconds) = (0, 0, Vec::new());
    for number in 1..=arguments.runs {
        let mut output = tempfile::tempfile().context("a temporary file for the output cannot be created")?;
        let load = Snapshot::take();
        let status = once(arguments, &output)?;
        seconds.push(load.seconds());
        let ended = match status.map(|status| status.code()) {
            None => format!("terminated after {} s", arguments.timeout),
            Some(None) => "killed by a signal".into(),
            Some(Some(code)) => format!("exit status {code}"),
        };
        let took = load.seconds();
        print_line(&format!("run {number}/{}: {ended}, {took:.1} s, {}", arguments.runs, load.until_now()));
        if !status.is_some_and(|status| status.success()) {
            failed += 1;
            inconclusive += u32::from(status.and_then(|status| status.code()) == Some(INCONCLUSIVE.into()));
            let mut text = Vec::new();
            output.rewind()?;
            output.read_to_end(&mut text)?;
            String::from_utf8_lossy(&text).lines().for_each(|line| print_line(&format!("    {line}")));
        }
        let dead = busy.iter_mut().map(Child::ended).collect::<Result<Vec<_>>>()?.into_iter().flatten().count();
        ensure!(dead == 0, "{dead} busy threads have exited: the host load was lower than requested");
    }
    let total: f64 = seconds.iter().sum();
    let (least, most) = (seconds.iter().copied().fold(f64::MAX, f64::min), seconds.iter().copied().fold(0.0, f64::max));
    print_line(&format!(
        "{} runs, {} succeeded, {failed} failed ({inconclusive} of them inconclusive), {least:.1} to {most:.1} s, {:.1} s on average",
        arguments.runs,
        arguments.runs - failed,
        total / f64::from(arguments.runs)
    ));
    Ok(failed == 0)
}

/// Runs the command with both output streams redirected to `output`. Returns `None` if it exceeded the time limit.
fn once(arguments: &Arguments, output: &File) -> Result<Option<ExitStatus>> {
    let (program, rest) = arguments.command.split_first().context("no command given")?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = Child::spawn(&mut command, program)?;
    let deadline = Instant::now() + Duration::from_secs(arguments.timeout);
    loop {
        if let Some(status) = child.ended()? {
            return Ok(Some(status));
        }
        let interrupted = interrupt::check();
        if interrupted.is_err() || Instant::now() >= deadline {
            // SIGTERM first, to let the command terminate its children and remove its files.
            child.stop(TIMEOUT)?;
            return interrupted.map(|()| None).map_err(Into::into);
        }
        thread::sleep(POLL_INTERVAL);
    }
}
