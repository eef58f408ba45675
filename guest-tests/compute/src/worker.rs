// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The process that uses the drivers: it opens the device and runs the cases, and reports each step as a line of JSON.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::cases::{Api, Case, PICTURE};
use crate::level_zero::{Dispatch, LevelZero};
use crate::opencl::{Code, Launched, OpenCl};
use crate::problem::Problem;
use crate::report::{DeviceInfo, KernelReport, PciAddress, Verdict};

/// A step of the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A part of the preparation has ended.
    Stage {
        /// Its name.
        name: String,
        /// Its duration in seconds.
        seconds: f64,
    },
    /// The device was opened.
    Device(DeviceInfo),
    /// A case begins.
    Begin(String),
    /// A case has ended.
    End(KernelReport),
    /// The device cannot be used.
    Problem(String),
}

/// What the worker runs.
pub struct Job {
    /// PCI address of the device; the first one if `None`.
    pub address: Option<PciAddress>,
    /// Directory of the programs' binaries.
    pub kernels: PathBuf,
    /// File for the picture.
    pub picture: Option<PathBuf>,
    /// The cases.
    pub cases: Vec<&'static Case>,
}

/// Runs `job` and writes an event per line to `events`.
pub fn run(job: &Job, events: &mut impl Write) -> Result<()> {
    let mut worker = Worker { job, events, opencl: None, level_zero: None };
    if let Err(error) = worker.cases() {
        worker.send(&Event::Problem(format!("{error:#}")))?;
    }
    // Without destructors: a driver in trouble may wait for ever in them.
    std::mem::forget((worker.opencl.take(), worker.level_zero.take()));
    Ok(())
}

struct Worker<'a, W: Write> {
    job: &'a Job,
    events: &'a mut W,
    opencl: Option<OpenCl>,
    level_zero: Option<LevelZero>,
}

impl<W: Write> Worker<'_, W> {
    fn send(&mut self, event: &Event) -> Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        self.events.write_all(&line)?;
        Ok(self.events.flush()?)
    }

    fn cases(&mut self) -> Result<()> {
        let start = Instant::now();
        let (opencl, device) = OpenCl::open(self.job.address)?;
        self.opencl = Some(opencl);
        self.send(&Event::Stage {
            name: "OpenCL's device and context".into(),
            seconds: start.elapsed().as_secs_f64(),
        })?;
        self.send(&Event::Device(device))?;
        for case in &self.job.cases {
            self.send(&Event::Begin(case.name.into()))?;
            let report = self.case(case);
            self.send(&Event::End(report))?;
        }
        Ok(())
    }

    fn case(&mut self, case: &Case) -> KernelReport {
        let start = Instant::now();
        let problems = case.problems.list();
        let mut report = KernelReport {
            name: case.name.into(),
            what: case.what.into(),
            api: case.api.to_string(),
            items: problems.iter().map(|problem| problem.items() as u64).sum(),
            ..KernelReport::default()
        };
        match self.launch(case, &problems) {
            Ok(launches) => {
                report.device_seconds = Some(launches.iter().map(|(launched, _)| launched.device.as_secs_f64()).sum());
                let checked = check(&problems, &launches);
                report.verdict = if checked.is_ok() { Verdict::Right } else { Verdict::Wrong };
                report.detail = checked.err().unwrap_or_default();
                let picture = launches.first().filter(|_| case.name == PICTURE);
                let stored = picture.map(|(launched, _)| self.store(launched));
                if let Some(Err(error)) = stored {
                    report.verdict = Verdict::Failed;
                    report.detail = format!("{error:#}");
                }
            }
            Err(error) => {
                report.verdict = Verdict::Failed;
                report.detail = format!("{error:#}");
            }
        }
        report.seconds = start.elapsed().as_secs_f64();
        report
    }

    /// Runs the launches of a case. Returns the results of each, and what the kernel printed.
    fn launch(&mut self, case: &Case, problems: &[Problem]) -> Result<Vec<(Launched, String)>> {
        let binary = || {
            let path = self.job.kernels.join(case.program.binary());
            fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))
        };
        match case.api {
            Api::OpenCl | Api::OpenClSource => {
                let bytes = if case.api == Api::OpenCl { binary()? } else { Vec::new() };
                let code = match case.api {
                    Api::OpenCl => Code::Binary(&bytes),
                    _ => Code::Source(case.program.source),
                };
                let opencl = self.opencl.as_ref().context("OpenCL was not opened")?;
                let program = opencl.program(code, case.program.options)?;
                let launch = |problem: &Problem| {
                    let run = || opencl.run(&program, problem).with_context(|| problem.to_string());
                    if problem.printed.is_empty() { Ok((run()?, String::new())) } else { captured(run) }
                };
                problems.iter().map(launch).collect()
            }
            Api::LevelZero | Api::LevelZeroIndirect => {
                let binary = binary()?;
                if self.level_zero.is_none() {
                    self.level_zero = Some(LevelZero::open(self.job.address)?);
                }
                let level_zero = self.level_zero.as_ref().context("Level Zero was not opened")?;
                let indirect = case.api == Api::LevelZeroIndirect;
                let dispatch = if indirect { Dispatch::Indirect } else { Dispatch::Direct };
                let launch = |problem| Ok((level_zero.run(&binary, dispatch, problem)?, String::new()));
                problems.iter().map(launch).collect()
            }
        }
    }

    /// Stores the picture for the host.
    fn store(&self, launched: &Launched) -> Result<()> {
        let (Some(path), Some(pixels)) = (&self.job.picture, launched.outputs.first()) else { return Ok(()) };
        fs::write(path, pixels).with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// Compares the results of each launch with what is expected. Returns the first difference, with its launch if there are
/// several.
fn check(problems: &[Problem], launches: &[(Launched, String)]) -> Result<(), String> {
    let checked = problems.iter().zip(launches).map(|(problem, (launched, printed))| {
        problem.check(&launched.outputs, printed).map_err(|difference| (problem, difference))
    });
    let mut wrong = checked.filter_map(Result::err);
    let Some((problem, difference)) = wrong.next() else { return Ok(()) };
    match problems.len() {
        1 => Err(difference),
        all => Err(format!("{} of {all} launches wrong, first {problem}: {difference}", 1 + wrong.count())),
    }
}

/// Runs `run` with the process's stdout in a file, and returns what was written there. The driver prints what kernels print to
/// stdout.
fn captured(run: impl FnOnce() -> Result<Launched>) -> Result<(Launched, String)> {
    let mut file: File = tempfile::tempfile().context("no temporary file for what the kernel prints")?;
    let stdout = rustix::io::dup(rustix::stdio::stdout())?;
    rustix::stdio::dup2_stdout(&file)?;
    let launched = run();
    // SAFETY: flushes all streams of the C library.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    rustix::stdio::dup2_stdout(&stdout)?;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok((launched?, text))
}

/// Time since the start of the guest's kernel in seconds.
pub fn uptime() -> Option<f64> {
    fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse().ok()
}

/// The time that a case may take. A compiler takes longer than any of the kernels.
pub fn limit(case: &Case, limit: Duration) -> Duration {
    if case.api == Api::OpenClSource { limit * 3 / 2 } else { limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a host without the drivers, the worker reports why it cannot run.
    #[test]
    fn a_missing_driver_is_reported() {
        let job = Job {
            address: "ffff:ff:1f.7".parse().ok(),
            kernels: PathBuf::new(),
            picture: None,
            cases: crate::cases::CASES.iter().collect(),
        };
        let mut lines = Vec::new();
        run(&job, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(matches!(&events[..], [Event::Problem(_)]), "{events:?}");
    }

    #[test]
    fn a_compiler_has_more_time() {
        let limit = |name| super::limit(crate::cases::named(name).unwrap(), Duration::from_secs(60)).as_secs();
        assert_eq!((limit("vadd"), limit("source")), (60, 90));
        assert!(uptime().is_some_and(|seconds| seconds > 0.0));
    }
}
