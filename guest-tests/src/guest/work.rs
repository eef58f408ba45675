// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest work`: runs every check on every engine, draws the test card and writes the report.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::checks::{Bench, COPY_ENGINES, EVERY_ENGINE, FENCES_IN_MEMORY, TOGETHER};
use super::device::{Device, Engine};
use super::info;
use super::picture;
use super::report::{self, Outcome, Report};
use crate::driver::Driver;
use crate::testcard;

/// The checks to run and the files for the results.
#[derive(Debug, clap::Args)]
pub struct Work {
    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the test card and write its raw XRGB8888 pixels to FILE
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
    /// Run only on engines with this name prefix, such as "bcs" or "vcs1"
    #[arg(long, value_name = "PREFIX", default_value = "")]
    engine: String,
    /// Run only checks with this text in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Seconds that one batch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
}

/// Runs the checks, prints a line per check and writes the files. Returns true if all checks passed.
pub fn run(work: &Work) -> Result<bool> {
    let mut report =
        Report { kernel: report::kernel_release(), card: None, ok: false, picture_sha256: None, results: Vec::new() };
    let finished = checks(work, &mut report);
    if let Err(error) = &finished {
        let what = "setup".to_owned();
        let failed = Outcome { engine: "all".into(), what, ok: false, detail: format!("{error:#}"), seconds: 0.0 };
        record(&mut report, failed);
    }
    report.ok = !report.results.is_empty() && report.results.iter().all(|outcome| outcome.ok);
    let passed = report.results.iter().filter(|outcome| outcome.ok).count();
    println!("{passed} passed, {} failed", report.results.len() - passed);
    if let Some(path) = &work.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

fn checks(work: &Work, report: &mut Report) -> Result<()> {
    let device = Device::open(work.device.as_deref())?;
    report.card = Some(info::card(&device)?);
    let reference_clock = device.gts()?.first().context("the driver reports no GT")?.reference_clock;
    let bench = Bench { device: &device, timeout: Duration::from_secs(work.timeout), reference_clock };
    let all = device.engines()?;
    let engines: Vec<Engine> = all.iter().copied().filter(|engine| engine.name().starts_with(&work.engine)).collect();
    anyhow::ensure!(!engines.is_empty(), "no engine has a name that starts with {:?}", work.engine);
    let wanted = |what: &str| what.contains(&work.only);

    for engine in &engines {
        let copying: &[_] = if engine.copies() { &COPY_ENGINES } else { &[] };
        let in_memory: &[_] = if device.driver == Driver::Xe { &FENCES_IN_MEMORY } else { &[] };
        for (what, check) in EVERY_ENGINE.iter().chain(in_memory).chain(copying) {
            if wanted(what) {
                record(report, timed(engine.name(), what, || check(&bench, *engine)));
            }
        }
    }
    for (what, check) in TOGETHER {
        if wanted(what) && engines.len() > 1 {
            record(report, timed("all".into(), what, || check(&bench, &engines)));
        }
    }
    if let (Some(path), Some(engine)) = (&work.picture, engines.iter().find(|engine| engine.copies())) {
        let mut sha256 = None;
        let outcome = timed(engine.name(), "test card", || {
            let (pixels, operations, batches) = picture::draw(&device, *engine, bench.timeout)?;
            report::write_atomically(path, &pixels).with_context(|| format!("write {}", path.display()))?;
            let checksum = testcard::checksum(&pixels);
            sha256 = Some(checksum.to_string());
            testcard::verify(&pixels)?;
            Ok(format!("{operations} fills and copies in {batches} batches, SHA-256 {checksum}"))
        });
        report.picture_sha256 = sha256;
        record(report, outcome);
    }
    Ok(())
}

fn timed(engine: String, what: &str, check: impl FnOnce() -> Result<String>) -> Outcome {
    let start = Instant::now();
    let result = check();
    let seconds = start.elapsed().as_secs_f64();
    let ok = result.is_ok();
    let detail = result.unwrap_or_else(|error| format!("{error:#}"));
    Outcome { engine, what: what.to_owned(), ok, detail, seconds }
}

fn record(report: &mut Report, outcome: Outcome) {
    println!("{}", outcome.line());
    report.results.push(outcome);
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;

    /// Without a card, the program must fail and record the failure in its report.
    #[test]
    fn a_card_that_cannot_be_opened_is_reported() {
        let path = std::env::temp_dir().join(format!("arctic-no-card-{}.json", std::process::id()));
        let file = path.to_str().unwrap();
        let args = ["work", "--device", "/dev/null", "--out", file];
        assert_eq!(crate::guest::main(args.map(Into::into).to_vec()), ExitCode::FAILURE);
        let report: Report = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!report.ok && report.card.is_none() && !report.kernel.is_empty());
        assert_eq!((report.results.len(), report.results[0].what.as_str()), (1, "setup"));
        assert!(report.results[0].detail.contains("DRM_IOCTL_VERSION"), "{}", report.results[0].detail);
    }
}
