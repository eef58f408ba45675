// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu run`.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arctic_eu::launch::{Hang, Launch, Outcome, Report, printf_text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::launch::{self, describe};

/// Executes a kernel of a zebin for all work items, and writes its buffers to files.
///
/// Exit status: 0, 3 if a kernel could not be executed to its end, 4 after accesses outside of a buffer.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    launch: launch::Options,
    /// Writes a buffer or image to a file after the run
    #[arg(long = "save", value_name = "NAME=FILE")]
    save: Vec<String>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let zebin = self.launch.zebin()?;
        let launch = self.launch.launch(&zebin)?;
        for text in &self.save {
            let name =
                text.split_once('=').map(|(name, _)| name).ok_or_else(|| format!("error: `{text}` is no NAME=FILE"))?;
            if !launch.buffers.iter().any(|(found, ..)| found == name) {
                let known: Vec<&str> = launch.buffers.iter().map(|(name, ..)| name.as_str()).collect();
                return Err(format!("error: no buffer {name} to save: the kernel has {}", known.join(", ")));
            }
        }
        let start = Instant::now();
        let report = with_progress(&launch, self.json);
        let time = start.elapsed();
        if let Some(address) = launch.printf {
            let text = printf_text(&launch.space, address);
            if !self.json {
                super::print(&text)?;
            }
        }
        for text in &self.save {
            if let Some((name, file)) = text.split_once('=')
                && let Some(bytes) = launch.buffer(name)
            {
                super::write(Path::new(file), &bytes)?;
            }
        }
        let failure = failure(&launch, &report);
        if self.json {
            let status = failure.as_ref().map_or("complete", |_| "failed");
            let document = json!({
                "kernel": launch.name,
                "status": status,
                "error": failure,
                "groups": report.groups,
                "threads_per_group": launch.threads(),
                "simd": launch.simd(),
                "instructions": report.instructions,
                "seconds": time.as_secs_f64(),
                "outside": report.outside,
                "printf": launch.printf.map(|address| printf_text(&launch.space, address)),
            });
            super::print(&format!("{document:#}\n"))?;
        } else {
            eprintln!("{}", summary(&launch, &report, time));
            if let Some(message) = &failure {
                eprintln!("{message}");
            }
        }
        Ok(match (&report.outcome, report.outside) {
            (Outcome::Complete, 0) => ExitCode::SUCCESS,
            (Outcome::Complete, _) => ExitCode::from(4),
            _ => ExitCode::from(3),
        })
    }
}

fn with_progress(launch: &Launch, quiet: bool) -> Report {
    let total: u64 = launch.groups().iter().map(|count| u64::from(*count)).product();
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    if quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} groups, {eta} left") {
        bar.set_style(style);
    }
    let start = Instant::now();
    let report = launch.run(&|done| {
        // Short runs have no bar.
        if start.elapsed() > Duration::from_secs(1) {
            bar.set_position(done);
        }
    });
    bar.finish_and_clear();
    report
}

fn summary(launch: &Launch, report: &Report, time: Duration) -> String {
    let rate = report.instructions as f64 / time.as_secs_f64().max(1e-9) / 1e6;
    format!(
        "{}: {} groups of {} threads, SIMD{}: {} instructions in {:.3} s, {rate:.1} million a second",
        launch.name,
        report.groups,
        launch.threads(),
        launch.simd(),
        report.instructions,
        time.as_secs_f64()
    )
}

fn failure(launch: &Launch, report: &Report) -> Option<String> {
    match &report.outcome {
        Outcome::Fault(kind, at) => Some(format!("error: {kind}\n{}", describe(launch, at))),
        Outcome::Hang(Hang::Limit, at) => Some(format!(
            "error: a thread does not end within {} instructions: set a higher --limit if that is too few\n{}",
            launch.settings().limit,
            describe(launch, at)
        )),
        Outcome::Hang(Hang::Barrier, at) => Some(format!(
            "error: a group waits for a barrier that its other threads do not reach\n{}",
            describe(launch, at)
        )),
        Outcome::Complete => {
            let at = report.first_outside.as_ref()?;
            Some(format!(
                "error: {} accesses outside of a buffer or of local memory; loads gave 0, stores were dropped. The first:\n{}",
                report.outside,
                describe(launch, at)
            ))
        }
    }
}
