// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest work`: runs every check on every engine, draws the test card and writes the report.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::checks::observation::streams;
use super::checks::{COPY_ENGINES, CheckEnvironment, EVERY_ENGINE, FENCES_IN_MEMORY, TOGETHER};
use super::device::{Device, Engine};
use super::gen6;
use super::gen6::checks::Found;
use super::info;
use super::picture;
use super::report::{self, CheckResult, WorkReport};
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
    let mut report = WorkReport {
        kernel: report::kernel_release(),
        card: None,
        ok: false,
        picture_sha256: None,
        results: Vec::new(),
    };
    let finished = checks(work, &mut report);
    if let Err(error) = &finished {
        let what = "setup".to_owned();
        let detail = format!("{error:#}");
        let failed = CheckResult { engine: "all".into(), what, detail, ..CheckResult::default() };
        record(&mut report, failed);
    }
    report.ok = !report.results.is_empty() && report.results.iter().all(|outcome| outcome.ok);
    let count = |kind: fn(&&CheckResult) -> bool| report.results.iter().filter(kind).count();
    let (failed, skipped) = (count(|outcome| !outcome.ok), count(|outcome| outcome.skipped));
    println!("{} passed, {failed} failed, {skipped} not applicable", report.results.len() - failed - skipped);
    if let Some(path) = &work.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

/// The engines of the work, or an error if there are none.
fn selected(work: &Work, device: &Device) -> Result<Vec<Engine>> {
    let mut engines = device.engines()?;
    engines.retain(|engine| engine.name().starts_with(&work.engine));
    anyhow::ensure!(!engines.is_empty(), "no engine has a name that starts with {:?}", work.engine);
    Ok(engines)
}

fn checks(work: &Work, report: &mut WorkReport) -> Result<()> {
    let device = Device::open(work.device.as_deref())?;
    report.card = Some(info::card(&device)?);
    match device.address_spaces() {
        true => checks_of_cards(work, &device, report),
        false => checks_of_integrated_gpus(work, device, report),
    }
}

fn checks_of_cards(work: &Work, device: &Device, report: &mut WorkReport) -> Result<()> {
    let env = CheckEnvironment {
        device,
        timeout: Duration::from_secs(work.timeout),
        reference_clock: reference_clock(device)?,
    };
    let engines = selected(work, device)?;
    let wanted = |what: &str| what.contains(&work.only);

    for engine in &engines {
        let copying: &[_] = if engine.copies() { &COPY_ENGINES } else { &[] };
        let in_memory: &[_] = if device.driver == Driver::Xe { &FENCES_IN_MEMORY } else { &[] };
        for (what, check) in EVERY_ENGINE.iter().chain(in_memory).chain(copying) {
            if wanted(what) {
                record(report, timed(engine.name(), what, || check(&env, *engine).map(Found::Passed)));
            }
        }
    }
    for (what, check) in TOGETHER {
        if wanted(what) && engines.len() > 1 {
            record(report, timed("all".into(), what, || check(&env, &engines).map(Found::Passed)));
        }
    }
    // xe's streams. On i915, IGT's `perf` reads those of that driver.
    if device.driver == Driver::Xe && wanted("observation") && engines.iter().any(|engine| engine.class == 0) {
        record(report, timed("all".into(), "observation", || streams(&env, &engines).map(Found::Passed)));
    }
    draw(work, &engines, report, |engine| picture::draw(device, engine, env.timeout))
}

fn checks_of_integrated_gpus(work: &Work, device: Device, report: &mut WorkReport) -> Result<()> {
    use gen6::checks::{APERTURE, COPY_ENGINES, EVERY_ENGINE, RENDER_ENGINES, TOGETHER};

    let (device, timeout) = (&device, Duration::from_secs(work.timeout));
    let parser = gen6::gem::has_parser(device)?;
    let env = gen6::checks::CheckEnvironment { device, timeout, reference_clock: reference_clock(device)?, parser };
    let engines = selected(work, device)?;
    let wanted = |what: &str| what.contains(&work.only);

    for engine in &engines {
        let rendering: &[_] = if engine.has_pipe_control() { &RENDER_ENGINES } else { &[] };
        let copying: &[_] = if engine.copies() { &COPY_ENGINES } else { &[] };
        for (what, check) in EVERY_ENGINE.iter().chain(rendering).chain(copying) {
            if wanted(what) {
                record(report, timed(engine.name(), what, || check(&env, *engine)));
            }
        }
    }
    for (group, checks) in [("all", TOGETHER.as_slice()), ("aperture", &APERTURE)] {
        for (what, check) in checks.iter().filter(|(what, _)| wanted(what)) {
            record(report, timed(group.into(), what, || check(&env, &engines)));
        }
    }
    draw(work, &engines, report, |engine| gen6::picture::draw(device, engine, timeout))
}

fn reference_clock(device: &Device) -> Result<u32> {
    Ok(device.gts()?.first().context("the driver reports no GT")?.reference_clock)
}

/// Draws the test card on the first copy engine, if the work includes a picture.
fn draw(
    work: &Work,
    engines: &[Engine],
    report: &mut WorkReport,
    draw: impl FnOnce(Engine) -> Result<(Vec<u8>, usize, usize)>,
) -> Result<()> {
    let (Some(path), Some(engine)) = (&work.picture, engines.iter().find(|engine| engine.copies())) else {
        return Ok(());
    };
    let mut sha256 = None;
    let outcome = timed(engine.name(), "test card", || {
        let (pixels, operations, batches) = draw(*engine)?;
        report::write_atomically(path, &pixels).with_context(|| format!("write {}", path.display()))?;
        let checksum = testcard::checksum(&pixels);
        sha256 = Some(checksum.to_string());
        testcard::verify(&pixels)?;
        Ok(Found::Passed(format!("{operations} fills and copies in {batches} batches, SHA-256 {checksum}")))
    });
    report.picture_sha256 = sha256;
    record(report, outcome);
    Ok(())
}

fn timed(engine: String, what: &str, check: impl FnOnce() -> Result<Found>) -> CheckResult {
    let start = Instant::now();
    let result = check();
    let seconds = start.elapsed().as_secs_f64();
    let (ok, skipped, detail) = match result {
        Ok(Found::Passed(detail)) => (true, false, detail),
        Ok(Found::NotApplicable(reason)) => (true, true, reason),
        Err(error) => (false, false, format!("{error:#}")),
    };
    CheckResult { engine, what: what.to_owned(), ok, skipped, detail, seconds }
}

fn record(report: &mut WorkReport, outcome: CheckResult) {
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
        assert_eq!(crate::main(args.map(Into::into).to_vec()), ExitCode::FAILURE);
        let report: WorkReport = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!report.ok && report.card.is_none() && !report.kernel.is_empty());
        assert_eq!((report.results.len(), report.results[0].what.as_str()), (1, "setup"));
        assert!(report.results[0].detail.contains("DRM_IOCTL_VERSION"), "{}", report.results[0].detail);
    }
}
