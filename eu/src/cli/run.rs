// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu run`.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arctic_eu::exec::ThreadStatus;
use arctic_eu::launch::{GroupStatus, Hang, Launch, Outcome, Report, printf_text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::capture;
use super::launch::{self, Input, describe};

/// Exit status if the kernel was not executed to its end.
pub const INCOMPLETE: u8 = 3;
/// Exit status after accesses outside of a buffer or of local memory.
pub const OUTSIDE: u8 = 4;
/// Groups of which a report of a hang names the threads.
const NAMED_GROUPS: usize = 4;
/// Exit status if a captured walker has left other memory than on the card.
pub const DIFFERENT: u8 = 5;

/// Executes a kernel of a zebin for all work items, and writes the buffers that `--save` names to files; or executes a captured walker
/// with its memory, and compares the memory with what the card has left.
///
/// Exit status: 0 if all accesses were valid, 1 for an error before the launch or of a file, 3 if the kernel was not
/// executed to its end, 4 after accesses outside of a buffer or of local memory, 5 if a captured walker leaves other memory than it
/// did on the card.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    launch: launch::LaunchOptions,
    /// Writes a buffer or image to a file after the run
    #[arg(long = "save", value_name = "NAME=FILE")]
    save: Vec<String>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

/// Why a run is not valid.
pub struct Failure {
    /// Exit status.
    pub status: u8,
    /// Reason and place, without a prefix.
    pub message: String,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let zebin = match self.launch.input()? {
            Input::Zebin(zebin) => zebin,
            Input::Capture(_) if !self.save.is_empty() => {
                return Err("error: --save is for zebins: the buffers of a captured walker have no names".into());
            }
            Input::Capture(capture) => return capture::run(&capture, &self.launch, self.json),
        };
        let launch = self.launch.launch(&zebin)?;
        let saves = self.saves(&launch)?;
        let start = Instant::now();
        let report = run_with_progress(&launch, !self.json);
        let time = start.elapsed();
        let printed = launch.printf.map(|address| printf_text(&launch.space, address));
        if let (Some(text), false) = (&printed, self.json) {
            super::print(text)?;
        }
        for (name, file) in saves {
            if let Some(bytes) = launch.buffer(name) {
                super::write(file, &bytes)?;
            }
        }
        let failure = failure(&launch, &report);
        if self.json {
            let document = document(&launch, &report, time, failure.as_ref(), printed);
            super::print(&format!("{document:#}\n"))?;
        } else {
            eprintln!("{}", summary(&launch, &report, time));
            if let Some(Failure { message, .. }) = &failure {
                eprintln!("error: {message}");
            }
        }
        Ok(failure.map_or(ExitCode::SUCCESS, |failure| ExitCode::from(failure.status)))
    }

    /// The buffers and images to write after the run, with their files. The kernel has all of them.
    fn saves(&self, launch: &Launch) -> Result<Vec<(&str, &Path)>, String> {
        let mut saves = Vec::new();
        for text in &self.save {
            let (name, file) =
                text.split_once('=').ok_or_else(|| format!("error: --save {text}: expected NAME=FILE"))?;
            let known: Vec<&str> = launch.buffers.iter().map(|(name, ..)| name.as_str()).collect();
            if !known.contains(&name) {
                let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(format!("error: no buffer or image `{name}`: the kernel has {list}"));
            }
            saves.push((name, Path::new(file)));
        }
        Ok(saves)
    }
}

/// The result for `--json`.
fn document(
    launch: &Launch,
    report: &Report,
    time: Duration,
    failure: Option<&Failure>,
    printed: Option<String>,
) -> serde_json::Value {
    json!({
        "kernel": launch.name,
        "status": if failure.is_some() { "failed" } else { "complete" },
        "error": failure.map(|failure| &failure.message),
        "groups": report.groups,
        "threads_per_group": launch.threads(),
        "simd": launch.simd(),
        "instructions": report.instructions,
        "seconds": time.as_secs_f64(),
        "outside": report.outside,
        "printf": printed,
    })
}

/// Runs the launch; `show` selects a progress bar on standard error.
fn run_with_progress(launch: &Launch, show: bool) -> Report {
    let total: u64 = launch.groups().iter().map(|count| u64::from(*count)).product();
    let bar = GroupBar::new(total, show);
    launch.run(&|done| bar.set(done))
}

/// A progress bar of groups, which runs of less than a second do not show. It is cleared when it is dropped.
pub struct GroupBar {
    bar: ProgressBar,
    start: Instant,
}

impl GroupBar {
    /// A bar of so many groups on standard error, if `show`.
    pub fn new(total: u64, show: bool) -> GroupBar {
        let target = if show { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} groups, {eta} left") {
            bar.set_style(style);
        }
        GroupBar { bar, start: Instant::now() }
    }

    /// So many groups have ended.
    pub fn set(&self, done: u64) {
        if self.start.elapsed() > Duration::from_secs(1) {
            self.bar.set_position(done);
        }
    }
}

impl Drop for GroupBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn summary(launch: &Launch, report: &Report, time: Duration) -> String {
    let rate = report.instructions as f64 / time.as_secs_f64().max(1e-9) / 1e6;
    format!(
        "{}: {} groups of {} threads, SIMD{}: {} instructions in {:.3} s, {rate:.1} million instructions per second",
        launch.name,
        report.groups,
        launch.threads(),
        launch.simd(),
        report.instructions,
        time.as_secs_f64()
    )
}

/// Names groups that have no place on the card, for which the others may wait.
fn waiting(launch: &Launch, report: &Report) -> String {
    let total = launch.groups().iter().fold(1, |total: u64, count| total.saturating_mul((*count).into()));
    let resident = launch.resident();
    let waiting = total.saturating_sub(report.groups).saturating_sub(resident);
    if waiting == 0 {
        return String::new();
    }
    format!(
        ". If it waits for another group: {resident} groups are resident at once, as --resident or the card's threads and local \
         memory allow, and {waiting} wait for one of them to end"
    )
}

/// The threads of a group by what they do.
fn threads_of(status: &GroupStatus) -> String {
    let what = |status| match status {
        ThreadStatus::Runs => ("runs", "run"),
        ThreadStatus::AtBarrier => ("waits at the barrier", "wait at the barrier"),
        ThreadStatus::AtPair => ("waits for the other thread of its pair", "wait for the other threads of their pairs"),
        ThreadStatus::Ended => ("has ended", "have ended"),
    };
    let mut parts = Vec::new();
    for kind in [ThreadStatus::Runs, ThreadStatus::AtBarrier, ThreadStatus::AtPair, ThreadStatus::Ended] {
        let numbers: Vec<usize> = (0..).zip(&status.threads).filter(|(_, of)| **of == kind).map(|(n, _)| n).collect();
        // Consecutive numbers, with the first and the last of each run.
        let mut runs: Vec<[usize; 2]> = Vec::new();
        for number in &numbers {
            match runs.last_mut() {
                Some([_, last]) if *last + 1 == *number => *last = *number,
                _ => runs.push([*number; 2]),
            }
        }
        let runs: Vec<String> = runs
            .iter()
            .map(|[first, last]| if first == last { first.to_string() } else { format!("{first} to {last}") })
            .collect();
        let (one, many) = what(kind);
        match numbers.len() {
            0 => {}
            1 => parts.push(format!("thread {} {one}", runs.join(", "))),
            _ => parts.push(format!("threads {} {many}", runs.join(", "))),
        }
    }
    parts.join("; ")
}

/// What the groups of a hang do, one in a line.
fn unfinished(report: &Report) -> String {
    let mut text = String::new();
    for status in report.unfinished.iter().take(NAMED_GROUPS) {
        let [x, y, z] = status.group;
        text += &format!("\n  group {x},{y},{z}: {}", threads_of(status));
    }
    let others = report.unfinished.len().saturating_sub(NAMED_GROUPS);
    if others > 0 {
        text += &format!("\n  and {others} other groups that have begun and not ended");
    }
    text
}

fn failure(launch: &Launch, report: &Report) -> Option<Failure> {
    let (status, reason, at) = match &report.outcome {
        Outcome::Fault(kind, at) => (INCOMPLETE, kind.to_string(), at),
        Outcome::Hang(Hang::Limit, at) => {
            let limit = launch.settings().limit;
            let reason =
                format!("a thread does not end within {limit} instructions: set a higher --limit if that is too few");
            (INCOMPLETE, reason + &waiting(launch, report), at)
        }
        Outcome::Hang(Hang::Total, at) => {
            let limit = launch.settings().total_limit;
            let reason = format!("the run does not end within {limit} instructions: set a higher --limit-all");
            (INCOMPLETE, reason + &waiting(launch, report), at)
        }
        Outcome::Hang(Hang::Barrier, at) => {
            (INCOMPLETE, "threads of a group wait for a barrier that will never complete".to_owned(), at)
        }
        Outcome::Complete => {
            let count = report.outside;
            let reason = format!(
                "{count} accesses outside of a buffer or of local memory; loads gave 0, stores were dropped. The first:"
            );
            (OUTSIDE, reason, report.first_outside.as_ref()?)
        }
    };
    Some(Failure { status, message: format!("{reason}\n{}{}", describe(launch, at), unfinished(report)) })
}
