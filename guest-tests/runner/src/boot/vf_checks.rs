// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The VFs in a boot's report: one line per VF, times, and host memory per VF.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arctic_guest_agent::report::{CardInfo, Rounds, VfReport, VfsReport};
use serde::Serialize;

use super::BootReport;
use super::checks::{Evidence, check};
use super::job::{BEFORE, ROUNDS_REPORT, STEPS, WORKED};
use crate::card::Memory;
use crate::kernel_log;
use crate::report::{TestResult, Verdict};

/// One VF of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VfLine {
    /// VF number, from 1.
    pub number: u8,
    /// Whether all its checks passed.
    pub ok: bool,
    /// PCI address in its guest.
    pub address: String,
    /// Seconds from QEMU's start to init, if the VF has a separate guest.
    pub boot_seconds: Option<f64>,
    /// Duration of its driver's probe in seconds; of `modprobe xe` in a separate guest.
    pub probe_seconds: f64,
    /// GGTT address space in bytes.
    pub ggtt_bytes: Option<u64>,
    /// Local memory in bytes.
    pub lmem_bytes: u64,
    /// The engines that executed work.
    pub engines: Vec<String>,
    /// Number of passed checks.
    pub passed: usize,
    /// Duration of its work in seconds.
    pub work_seconds: f64,
    /// The first problem, if any.
    pub problem: Option<String>,
}

/// Duration of one phase of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Name of the phase.
    pub what: String,
    /// Its duration in seconds.
    pub seconds: f64,
}

/// Host memory of the card's server process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryReport {
    /// Before any VF was enabled.
    pub before: Memory,
    /// After the VFs had completed their work, while still enabled.
    pub with_vfs: Memory,
    /// Growth of the process's private memory per VF.
    pub own_by_vf: u64,
    /// Growth of the shared memory per VF.
    pub shared_by_vf: u64,
}

/// Memory at the marks of a run, and host time between the marks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    before: Option<Memory>,
    worked: Option<Memory>,
    begun: Option<Instant>,
    took: Option<Duration>,
}

impl Marks {
    /// Records the memory of the card's server process at mark `name`: the latest sample for `BEFORE`, the largest for
    /// `WORKED`.
    pub(super) fn take(&mut self, name: &str, memory: Option<Memory>) {
        match name {
            BEFORE => {
                self.before = memory;
                self.begun = Some(Instant::now());
            }
            WORKED => {
                self.took = self.begun.map(|begun| begun.elapsed());
                let most = |memory: Memory| match self.worked {
                    Some(known) if known.own + known.shared > memory.own + memory.shared => known,
                    _ => memory,
                };
                self.worked = memory.map(most).or(self.worked);
            }
            _ => {}
        }
    }

    /// Returns the time between the marks by the host's clock. A guest's clock can be wrong on a busy host, because the
    /// guest kernel calibrates the clock while it boots.
    pub(super) fn phase(&self, vfs: u8) -> Option<Phase> {
        let what = format!("until {vfs} virtual functions were enabled, probed and had worked, by the host's clock");
        Some(Phase { what, seconds: self.took?.as_secs_f64() })
    }

    /// Returns the memory use of `vfs` VFs; `None` if a sample is missing or `vfs` is 0.
    pub(super) fn report(&self, vfs: u8) -> Option<MemoryReport> {
        let (before, with_vfs) = (self.before?, self.worked?);
        let by_vf = |before: u64, after: u64| after.saturating_sub(before).checked_div(vfs.into());
        Some(MemoryReport {
            before,
            with_vfs,
            own_by_vf: by_vf(before.own, with_vfs.own)?,
            shared_by_vf: by_vf(before.shared, with_vfs.shared)?,
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(results: &Path, file: &str) -> Result<T> {
    let text = fs::read_to_string(results.join(file)).with_context(|| format!("the guest wrote no {file}"))?;
    serde_json::from_str(&text).with_context(|| format!("the guest's {file} cannot be parsed"))
}

/// Adds the results of every step for VFs in the same guest as their PF, and one line per VF from the first step.
pub(super) fn together(
    report: &mut BootReport,
    evidence: &Evidence<'_>,
    vfs: u8,
    marks: &Marks,
    steps: &[(&str, &str, bool)],
) {
    for (index, (what, file, there)) in steps.iter().enumerate() {
        let step = match read::<VfsReport>(evidence.results, file) {
            Ok(step) => step,
            Err(error) => {
                report.results.push(check(&format!("vfs {what}"), vec![format!("{error:#}")], 0.0));
                continue;
            }
        };
        report.results.push(check(
            &format!("vfs {what}"),
            step.problem.clone().into_iter().collect(),
            step.change_seconds,
        ));
        report.phases.push(Phase { what: format!("{vfs} virtual functions {what}"), seconds: step.change_seconds });
        if !there {
            continue;
        }
        report.phases.push(Phase { what: "all of them at work".into(), seconds: step.work_seconds });
        let round = if index == 0 { "work" } else { "work again" };
        for vf in &step.vfs {
            let problem: Vec<String> = vf.problem.clone().into_iter().collect();
            report.results.push(check(&format!("vf{}: {round}", vf.number), problem, vf.work_seconds));
        }
        if index == 0 {
            report.phases.extend(marks.phase(vfs));
            report.vfs = step.vfs.iter().map(line).collect();
        }
    }
    let unseen: Vec<String> = (1..=vfs)
        .map(|vf| evidence.place.address(vf))
        .filter(|address| !kernel_log::missing(evidence.log, &[&["Initialized xe", address]]).is_empty())
        .map(|address| format!("no log line contains Initialized xe and {address}"))
        .collect();
    report.results.push(check("vf probes", unseen, report.vfs.iter().map(|vf| vf.probe_seconds).sum()));
    missing(report, vfs);
    report.memory = marks.report(vfs);
}

fn line(vf: &VfReport) -> VfLine {
    VfLine {
        number: vf.number,
        ok: vf.problem.is_none(),
        address: vf.address.clone(),
        boot_seconds: None,
        probe_seconds: vf.probe_seconds,
        ggtt_bytes: vf.ggtt_bytes,
        lmem_bytes: vf.lmem_bytes,
        engines: vf.worked.clone(),
        passed: vf.worked.len(),
        work_seconds: vf.work_seconds,
        problem: vf.problem.clone(),
    }
}

/// Adds the results of the PF guest of a run with separate VF guests.
pub(super) fn provider(report: &mut BootReport, evidence: &Evidence<'_>) {
    change(report, evidence, STEPS[0]);
    disabled(report, evidence);
    rounds(report, evidence, "rounds beside the others");
}

/// Adds the result of the PF guest's last step, which disables the VFs.
pub(super) fn disabled(report: &mut BootReport, evidence: &Evidence<'_>) {
    change(report, evidence, STEPS[1]);
}

/// Adds the result of a step that enables or disables the VFs.
fn change(report: &mut BootReport, evidence: &Evidence<'_>, (what, file, _): (&str, &str, bool)) {
    let (problems, seconds) = match read::<VfsReport>(evidence.results, file) {
        Ok(step) => (step.problems(), step.change_seconds),
        Err(error) => (vec![format!("{error:#}")], 0.0),
    };
    report.results.push(check(&format!("{}: vfs {what}", evidence.name), problems, seconds));
    report.phases.push(Phase { what: format!("virtual functions {what}"), seconds });
}

/// Adds the result of the work that a guest repeated.
pub(super) fn rounds(report: &mut BootReport, evidence: &Evidence<'_>, name: &str) {
    let (problems, seconds) = match read::<Rounds>(evidence.results, ROUNDS_REPORT) {
        Ok(rounds) => (rounds.problem.into_iter().collect(), rounds.seconds),
        Err(error) => (vec![format!("{error:#}")], 0.0),
    };
    report.results.push(check(&format!("{}: {name}", evidence.name), problems, seconds));
}

/// Adds the line of a VF in a separate guest, summarised from the results from index `before`.
pub(super) fn apart(report: &mut BootReport, evidence: &Evidence<'_>, vf: u8, before: usize, card: Option<CardInfo>) {
    let results = &report.results[before..];
    let failed = results.iter().find(|result| result.result == Verdict::Fail);
    let problem = failed.map(|result: &TestResult| format!("{}: {}", result.test, result.reason));
    let card = card.as_ref();
    report.vfs.push(VfLine {
        number: vf,
        ok: problem.is_none(),
        address: evidence.place.address(0),
        boot_seconds: Some(evidence.guest.boot_seconds),
        probe_seconds: evidence.guest.probe_seconds(),
        ggtt_bytes: card.and_then(|card| card.ggtt_bytes),
        lmem_bytes: card.map_or(0, |card| card.vram_bytes),
        engines: card.map(|card| card.engines.clone()).unwrap_or_default(),
        passed: results.iter().filter(|result| result.result == Verdict::Pass).count(),
        work_seconds: results.iter().filter(|result| result.test.contains(": ")).map(|result| result.seconds).sum(),
        problem,
    });
}

/// Adds a failed result for every VF without a line, and sorts the lines by VF number.
pub(super) fn missing(report: &mut BootReport, vfs: u8) {
    for number in 1..=vfs {
        if report.vfs.iter().all(|line| line.number != number) {
            report.results.push(check(&format!("vf{number}: work"), vec!["the VF never appeared".into()], 0.0));
        }
    }
    report.vfs.sort_by_key(|line| line.number);
}

impl std::fmt::Display for VfLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(problem) = &self.problem {
            return write!(out, "FAIL  {problem}");
        }
        if let Some(seconds) = self.boot_seconds {
            write!(out, "up after {seconds:.1} s, ")?;
        }
        write!(out, "probed in {:.2} s, ", self.probe_seconds)?;
        if let Some(ggtt) = self.ggtt_bytes {
            write!(out, "GGTT {} MiB, ", ggtt >> 20)?;
        }
        let passed = match self.boot_seconds {
            Some(_) => format!("{} checks passed", self.passed),
            None => "worked".to_owned(),
        };
        // A guest that runs kernels reports neither.
        if self.lmem_bytes != 0 {
            write!(out, "local memory {} MiB, ", self.lmem_bytes >> 20)?;
        }
        write!(out, "{passed} ")?;
        if !self.engines.is_empty() {
            write!(out, "on {} ", self.engines.join(" "))?;
        }
        write!(out, "({:.2} s)", self.work_seconds)
    }
}

impl std::fmt::Display for MemoryReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} KiB a virtual function of the card's process's own ({:.1} MiB with all of them), {} KiB of what it shares \
             with guests",
            self.own_by_vf >> 10,
            self.with_vfs.own as f64 / f64::from(1 << 20),
            self.shared_by_vf >> 10
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(own: u64, shared: u64) -> Option<Memory> {
        Some(Memory { own: own << 20, shared: shared << 20 })
    }

    #[test]
    fn memory_is_what_it_grew_by_virtual_function() {
        let mut marks = Marks::default();
        assert_eq!(marks.report(4), None);
        marks.take(BEFORE, memory(10, 100));
        marks.take(WORKED, memory(18, 500));
        marks.take(WORKED, memory(12, 120));
        marks.take(WORKED, None);
        let report = marks.report(4).unwrap();
        assert_eq!((report.own_by_vf, report.shared_by_vf), (2 << 20, 100 << 20));
        assert!(
            report.to_string().starts_with("2048 KiB a virtual function of the card's process's own (18.0 MiB"),
            "{report}"
        );
        assert_eq!(marks.report(0), None);
    }

    #[test]
    fn line_lists_properties_and_results_of_a_vf() {
        let vf = VfReport {
            number: 7,
            address: "0000:00:01.7".into(),
            probe_seconds: 0.5,
            ggtt_bytes: Some(56 << 20),
            lmem_bytes: 128 << 20,
            worked: vec!["rcs0".into(), "bcs0".into()],
            work_seconds: 0.08,
            ..VfReport::default()
        };
        let wanted = "probed in 0.50 s, GGTT 56 MiB, local memory 128 MiB, worked on rcs0 bcs0 (0.08 s)";
        assert_eq!(line(&vf).to_string(), wanted);
        let kernels =
            VfLine { number: 1, boot_seconds: Some(8.25), passed: 29, work_seconds: 14.0, ..VfLine::default() };
        assert_eq!(kernels.to_string(), "up after 8.2 s, probed in 0.00 s, 29 checks passed (14.00 s)");
        let broken = VfReport { problem: Some("rcs0: store".into()), ..vf };
        assert!(!line(&broken).ok);
        assert_eq!(line(&broken).to_string(), "FAIL  rcs0: store");
    }

    #[test]
    fn a_function_without_a_line_fails_the_run() {
        let mut report = BootReport { vfs: vec![VfLine { number: 2, ..VfLine::default() }], ..BootReport::default() };
        missing(&mut report, 3);
        let names: Vec<&str> = report.results.iter().map(|result| result.test.as_str()).collect();
        assert_eq!(names, ["vf1: work", "vf3: work"]);
    }
}
