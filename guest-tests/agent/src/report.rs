// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! JSON reports that the guest writes for the host: the card's properties and the result of every check.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The result of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The test passed.
    Pass,
    /// The test failed, hung, crashed or does not exist.
    Fail,
    /// The test reported a skip.
    Skip,
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// `binary@subtest`, or the name of a scenario's check.
    pub test: String,
    /// The test's result.
    pub result: Verdict,
    /// The test's explanation; empty for a pass without a message.
    pub reason: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Error and warning lines of the drivers during the test.
    pub dmesg: Vec<String>,
    /// The host's load, if the test failed on an overloaded host. It does not affect the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overload: Option<String>,
}

impl TestResult {
    /// A result without log lines.
    pub fn new(test: impl Into<String>, result: Verdict, reason: impl Into<String>, seconds: f64) -> Self {
        Self { test: test.into(), result, reason: reason.into(), seconds, dmesg: Vec::new(), overload: None }
    }
}

impl std::fmt::Display for TestResult {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = match self.result {
            Verdict::Pass => "pass",
            Verdict::Fail => "FAIL",
            Verdict::Skip => "skip",
        };
        write!(out, "{verdict}  {:<48} {:>7.2} s", self.test, self.seconds)?;
        if !self.reason.is_empty() {
            write!(out, "  {}", self.reason)?;
        }
        self.overload.as_ref().map_or(Ok(()), |load| write!(out, "  [{load}]"))
    }
}

/// One check on one engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// `rcs0`, `bcs0`…, or `all` for a check that uses several engines.
    pub engine: String,
    /// Short name of the check.
    pub what: String,
    /// Whether the GPU's results were as expected.
    pub ok: bool,
    /// Whether the check does not apply to the card.
    #[serde(default)]
    pub skipped: bool,
    /// On success, statistics; on failure, the expected value, the value found and its location; the reason if the check
    /// does not apply.
    pub detail: String,
    /// Duration in seconds by the guest's clock, including the work on the CPU.
    pub seconds: f64,
}

/// The card as seen by the guest's user space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardInfo {
    /// PCI vendor and device ID, `8086:56c0`.
    pub pci_id: String,
    /// PCI revision.
    pub revision: u8,
    /// Usable local memory in bytes; 0 if there is none.
    pub vram_bytes: u64,
    /// GuC submission interface version reported by the uAPI, if available.
    pub guc_submission: Option<String>,
    /// Version of the GuC firmware file in use, from debugfs, if readable.
    pub guc_firmware: Option<String>,
    /// Engines exposed to user space.
    pub engines: Vec<String>,
    /// GGTT address space of a VF in bytes; absent on the PF.
    #[serde(default)]
    pub ggtt_bytes: Option<u64>,
}

/// The result of `arctic guest vfs`: the VFs in the same guest as their PF.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VfsReport {
    /// Requested number of VFs.
    pub count: u8,
    /// Whether there were no problems.
    pub ok: bool,
    /// Why the VFs could not be enabled or disabled.
    pub problem: Option<String>,
    /// Seconds that the kernel took to enable or disable the VFs, including the probes of their drivers.
    pub change_seconds: f64,
    /// Seconds until all VFs had completed their work.
    pub work_seconds: f64,
    /// One entry per VF.
    pub vfs: Vec<VfReport>,
}

/// One VF.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VfReport {
    /// VF number, from 1.
    pub number: u8,
    /// Its PCI address in the guest.
    pub address: String,
    /// The name of its render node.
    pub node: String,
    /// Duration of its driver's probe in seconds.
    pub probe_seconds: f64,
    /// GGTT address space in bytes.
    pub ggtt_bytes: Option<u64>,
    /// Usable local memory in bytes.
    pub lmem_bytes: u64,
    /// Number of GuC context IDs.
    pub contexts: Option<u32>,
    /// Number of doorbells.
    pub doorbells: Option<u32>,
    /// Engines exposed to user space.
    pub engines: Vec<String>,
    /// The engines that completed the store, copy and fence, one of each class.
    pub worked: Vec<String>,
    /// Duration of its work in seconds.
    pub work_seconds: f64,
    /// The first problem, if any.
    pub problem: Option<String>,
}

impl VfsReport {
    /// Returns all problems, one string per problem.
    pub fn problems(&self) -> Vec<String> {
        let of_one = |vf: &VfReport| Some(format!("vf{}: {}", vf.number, vf.problem.as_ref()?));
        self.problem.clone().into_iter().chain(self.vfs.iter().filter_map(of_one)).collect()
    }
}

/// The result of `arctic guest rounds`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// Number of correct rounds.
    pub rounds: u64,
    /// Their duration in seconds.
    pub seconds: f64,
    /// The problem of the first failed round, if any.
    pub problem: Option<String>,
}

/// The report of a program with steps: `arctic guest passthrough`, `arctic guest migrate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepsReport {
    /// Whether all steps ran and every check passed.
    pub ok: bool,
    /// The steps in order of execution.
    pub steps: Vec<StepReport>,
}

/// One step of such a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Name of the step.
    pub name: String,
    /// Whether it ran to its end and every check passed.
    pub ok: bool,
    /// Duration in seconds by the clock of the guest that reports.
    pub seconds: f64,
    /// Numbers of interest.
    pub detail: String,
    /// The first problem, if any.
    pub problem: Option<String>,
    /// Why the step ran twice: an inner guest was stopped by the emulator.
    #[serde(default)]
    pub repeated: Option<String>,
    /// Its checks, including those of inner guests.
    pub checks: Vec<CheckResult>,
}

impl StepReport {
    /// One line of human-readable output.
    pub fn line(&self) -> String {
        let verdict = if self.ok { "ok  " } else { "FAIL" };
        format!("{verdict} {self}")
    }
}

impl std::fmt::Display for StepReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.name)?;
        match self.problem.as_ref().unwrap_or(&self.detail).as_str() {
            "" => {}
            detail => write!(out, ": {detail}")?,
        }
        if self.repeated.is_some() {
            out.write_str(", repeated once")?;
        }
        write!(out, " ({:.1} s)", self.seconds)
    }
}

/// The report of `arctic guest work`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkReport {
    /// Kernel release of the guest.
    pub kernel: String,
    /// The card; absent if it could not be opened.
    pub card: Option<CardInfo>,
    /// Whether every result is ok and there is at least one.
    pub ok: bool,
    /// SHA-256 of the test card's pixels as read by the guest, if it was drawn.
    pub picture_sha256: Option<String>,
    /// All results in order of execution.
    pub results: Vec<CheckResult>,
}

impl CheckResult {
    /// The outcome as a result named `name`.
    pub fn result(&self, name: String) -> TestResult {
        let verdict = match (self.ok, self.skipped) {
            (true, false) => Verdict::Pass,
            (true, true) => Verdict::Skip,
            (false, _) => Verdict::Fail,
        };
        TestResult::new(name, verdict, self.detail.clone(), self.seconds)
    }

    /// One line of human-readable output.
    pub fn line(&self) -> String {
        let verdict = match (self.ok, self.skipped) {
            (true, false) => "ok  ",
            (true, true) => "skip",
            (false, _) => "FAIL",
        };
        format!("{verdict} {:<6} {:<18} {:>7.3} s  {}", self.engine, self.what, self.seconds, self.detail)
    }
}

/// Writes `value` as JSON; a concurrent reader sees either no file or the complete file.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Writes `bytes` to a temporary file next to `path`, syncs it and renames it to `path`.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = fs::File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// The guest's kernel release as printed by `uname -r`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_read_back_from_its_file() {
        let report = WorkReport {
            kernel: "7.2.12".into(),
            card: Some(CardInfo {
                pci_id: "8086:56c0".into(),
                revision: 8,
                vram_bytes: 16 << 30,
                guc_submission: Some("1.26.0".into()),
                guc_firmware: None,
                engines: vec!["rcs0".into(), "bcs0".into()],
                ggtt_bytes: None,
            }),
            ok: false,
            picture_sha256: None,
            results: vec![CheckResult {
                engine: "rcs0".into(),
                what: "stores".into(),
                detail: "byte 0x40: expected 1, got 0".into(),
                seconds: 0.25,
                ..CheckResult::default()
            }],
        };
        let path = std::env::temp_dir().join(format!("arctic-report-{}.json", std::process::id()));
        write_json(&path, &report).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(serde_json::from_str::<WorkReport>(&text).unwrap(), report);
        assert!(text.contains("\"what\": \"stores\""));
        assert!(report.results[0].line().starts_with("FAIL rcs0   stores"));
    }
}
