// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of a boot. They evaluate the guest's reports, its kernel log and the card's report.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use arctic_guest_agent::report::{CardInfo, WorkReport};

use super::BootReport;
use super::compute::{self, Target};
use super::job::{PICTURE, WORK_REPORT};
use super::serial::Guest;
use crate::card::CardReport;
use crate::devices::Place;
use crate::driver::Driver;
use crate::kernel_log;
use crate::report::{TestResult, Verdict};
use crate::testcard;

/// What xe must log at probe with the address of the function: on a PF with VFs enabled, and on a VF.
const PROVIDER: &str = "Running in SR-IOV PF mode";
const VIRTUAL: &str = "Running in SR-IOV VF mode";
/// Out-of-tree or unsigned modules (TAINT_OOT_MODULE, TAINT_UNSIGNED_MODULE) are allowed with a user-supplied kernel.
const OWN_MODULES_TAINT: u64 = 1 << 12 | 1 << 13;

/// The function at the card's PCI address in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No card.
    NoCard,
    /// The PF, with `vfs` VFs enabled.
    Physical { vfs: u8 },
    /// A VF; the PF is not assigned to this guest.
    Virtual,
    /// An integrated GPU.
    Integrated,
}

/// Input of the checks of one guest.
pub(super) struct Evidence<'a> {
    /// The guest's name if the run has several guests, used as a prefix of its results; else empty.
    pub name: &'a str,
    /// The guest's driver for the card.
    pub driver: Driver,
    /// The function assigned to the guest.
    pub role: Role,
    /// Where the function is in the guest.
    pub place: Place,
    /// The guest's state as reported on its control port.
    pub guest: &'a Guest,
    /// The complete kernel log.
    pub log: &'a str,
    /// Host directory that is mounted on the guest's /mnt.
    pub results: &'a Path,
    /// Whether the kernel is user-supplied.
    pub own_kernel: bool,
    /// The functions on which the guest ran kernels instead of the usual work.
    pub compute: &'a [Target],
    /// Whether the kernel has the module `mei_gsc`, with which hotplug loads `mei` and `mei_me`.
    pub mei_gsc: bool,
}

impl Evidence<'_> {
    /// Returns the name of check `what`, unique among the results of the run.
    fn named(&self, what: &str) -> String {
        match self.name {
            "" => what.to_owned(),
            name => format!("{name}: {what}"),
        }
    }

    pub(super) fn check(&self, what: &str, problems: Vec<String>, seconds: f64) -> TestResult {
        check(&self.named(what), problems, seconds)
    }
}

/// Reads a guest's complete kernel log.
pub(super) fn console_text(console: &Path) -> Result<String> {
    let log = fs::read(console).with_context(|| format!("{} cannot be read", console.display()))?;
    Ok(String::from_utf8_lossy(&log).into_owned())
}

/// Adds the results of all checks of one guest to `report`. Returns the card's properties as reported by that guest.
pub(super) fn check_guest(report: &mut BootReport, evidence: &Evidence<'_>) -> Option<CardInfo> {
    let guest = evidence.guest;
    let mut card = None;
    let problems = guest.problems.iter().chain(&guest.lost).cloned().collect();
    report.results.push(evidence.check("guest", problems, guest.boot_seconds));
    if evidence.role != Role::NoCard {
        report.results.push(evidence.check(
            &format!("{} probe", evidence.driver),
            probe(evidence),
            guest.probe_seconds(),
        ));
        match evidence.compute {
            [] => match work(evidence) {
                Ok(work) => card = add_work(report, evidence, work),
                Err(error) => report.results.push(evidence.check("work", vec![format!("{error:#}")], 0.0)),
            },
            targets => compute::evaluate(report, evidence, targets),
        }
    }
    if let Role::Physical { .. } = evidence.role {
        report.results.push(evidence.check("hotplug", hotplug(evidence), 0.0));
    }
    let draws = matches!(evidence.role, Role::Physical { .. } | Role::Integrated) && evidence.compute.is_empty();
    if draws {
        let problems = match picture(evidence, &report.log) {
            Ok(path) => {
                report.picture = Some(path.into());
                Vec::new()
            }
            Err(error) => vec![format!("{error:#}")],
        };
        report.results.push(evidence.check("picture", problems, 0.0));
        report.engines = card.as_ref().map(|card| card.engines.clone()).unwrap_or_default();
        report.guest_card.clone_from(&card);
    }
    report.results.push(log_is_clean(evidence));
    report.results.push(evidence.check("taint", taint(evidence), 0.0));
    card
}

/// Checks that the guest's kernel log has no unexpected lines.
pub(super) fn log_is_clean(evidence: &Evidence<'_>) -> TestResult {
    let lines: Vec<String> = kernel_log::problems(evidence.log, Some(&evidence.place.address(0)))
        .into_iter()
        .map(|problem| problem.line)
        .collect();
    let first = lines.first().map(|line| format!("{} unexpected lines, first: {line}", lines.len()));
    TestResult { dmesg: lines, ..evidence.check("kernel log", first.into_iter().collect(), 0.0) }
}

/// Checks that every register that a driver accessed is modelled or has a documented reason for not being modelled.
pub(super) fn registers(card: &CardReport) -> TestResult {
    let unexplained =
        card.unexplained().map(|register| format!("{:#x} is not modelled, no reason given", register.offset));
    check("registers", unexplained.collect(), 0.0)
}

/// Returns a result that fails if there are `problems`.
pub(super) fn check(name: &str, problems: Vec<String>, seconds: f64) -> TestResult {
    let verdict = if problems.is_empty() { Verdict::Pass } else { Verdict::Fail };
    TestResult::new(name, verdict, problems.join("; "), seconds)
}

pub(super) fn probe(evidence: &Evidence<'_>) -> Vec<String> {
    let driver = evidence.driver;
    let address = evidence.place.address(0);
    let mut required = driver.probed(&address);
    if let Role::Physical { .. } = evidence.role {
        required.extend(driver.probed_physical(&address, evidence.mei_gsc));
    }
    match evidence.role {
        Role::NoCard | Role::Integrated | Role::Physical { vfs: 0 } => {}
        Role::Physical { .. } => required.push(vec![&address, PROVIDER]),
        Role::Virtual => required.push(vec![&address, VIRTUAL]),
    }
    let required: Vec<&[&str]> = required.iter().map(Vec::as_slice).collect();
    let missing = kernel_log::missing(evidence.log, &required);
    let mut problems: Vec<String> =
        missing.iter().map(|words| format!("no log line contains {}", words.join(" and "))).collect();
    match evidence.guest.probe {
        Some((_, _, 0)) => {}
        Some((_, _, status)) => problems.insert(0, format!("modprobe {driver} exited with status {status}")),
        None => problems.insert(0, format!("modprobe {driver} did not finish")),
    }
    problems
}

fn hotplug(evidence: &Evidence<'_>) -> Vec<String> {
    let expected = evidence.driver.hotplugged().iter().filter(|name| evidence.mei_gsc || !name.starts_with("mei"));
    let absent = expected.filter(|name| !evidence.guest.modules.iter().any(|module| module == *name));
    absent.map(|name| format!("{name} is not loaded")).collect()
}

fn work(evidence: &Evidence<'_>) -> Result<WorkReport> {
    let text =
        fs::read_to_string(evidence.results.join(WORK_REPORT)).context("the guest has written no work report")?;
    serde_json::from_str(&text).context("the guest's work report cannot be parsed")
}

/// Adds the results of the checks that the guest itself ran. Returns the card's properties as reported by the guest.
fn add_work(report: &mut BootReport, evidence: &Evidence<'_>, work: WorkReport) -> Option<CardInfo> {
    for outcome in &work.results {
        let engine = match evidence.name {
            "" => outcome.engine.clone(),
            name => format!("{name} {}", outcome.engine),
        };
        report.results.push(outcome.result(format!("{engine}: {}", outcome.what)));
    }
    // A nonzero exit status of the job fails the run even if the report has no failure.
    match evidence.guest.status {
        Some(0) if work.ok => {}
        status if work.results.iter().all(|outcome| outcome.ok) => {
            let exit = status.map_or("reported no exit status".into(), |status| format!("exited with status {status}"));
            report.results.push(evidence.check("work", vec![format!("the guest's job {exit}")], 0.0));
        }
        _ => {}
    }
    work.card
}

/// Compares the guest's picture with the host's rendering and saves it as a PNG in `folder`.
fn picture(evidence: &Evidence<'_>, folder: &Path) -> Result<std::path::PathBuf> {
    let raw = evidence.results.join(PICTURE);
    let pixels = fs::read(&raw).context("the guest's picture cannot be read")?;
    let path = folder.join("testcard.png");
    // A wrong picture is saved as well, as a diagnostic aid.
    let saved = testcard::save_png(&path, &pixels).with_context(|| format!("{} cannot be written", path.display()));
    testcard::verify(&pixels)?;
    saved?;
    fs::remove_file(&raw).with_context(|| format!("{} cannot be removed", raw.display()))?;
    Ok(path)
}

pub(super) fn taint(evidence: &Evidence<'_>) -> Vec<String> {
    let allowed = kernel_log::FORCE_PROBE_TAINT | if evidence.own_kernel { OWN_MODULES_TAINT } else { 0 };
    match evidence.guest.taint {
        Some(taint) if taint & !allowed == 0 => Vec::new(),
        Some(taint) => vec![format!("taint mask {taint:#x}, allowed {allowed:#x}")],
        None => vec!["the guest did not report its taint mask".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arctic_guest_agent::report::{CheckResult, write_json};

    const LOG: &str = "\
[    3.5] xe 0000:00:01.0: [drm] GT0: Using GuC firmware from i915/dg2_guc_70.bin version 70.44.1\r
[    3.9] [drm] Initialized xe 1.1.0 for 0000:00:01.0 on minor 0\r
";

    fn good_guest() -> Guest {
        let modules = Driver::Xe.hotplugged().iter().map(|name| name.to_string()).collect();
        Guest { probe: Some((3.0, 6.0, 0)), modules, taint: Some(64), status: Some(0), ..Guest::default() }
    }

    fn good_results(folder: &Path) {
        let outcome = |what: &str| CheckResult {
            engine: "rcs0".into(),
            what: what.into(),
            ok: true,
            seconds: 0.1,
            ..CheckResult::default()
        };
        let card = CardInfo {
            pci_id: "8086:56c0".into(),
            revision: 8,
            vram_bytes: 16 << 30,
            guc_submission: None,
            guc_firmware: None,
            engines: vec!["rcs0".into()],
            ggtt_bytes: None,
        };
        let results = vec![outcome("stores"), outcome("mi_math")];
        let report = WorkReport { kernel: "7.2".into(), card: Some(card), ok: true, picture_sha256: None, results };
        write_json(&folder.join(WORK_REPORT), &report).unwrap();
        fs::write(folder.join(PICTURE), testcard::render()).unwrap();
    }

    /// Returns the names of the checks that fail with this guest, log and card after `change` has modified the result
    /// files.
    fn failed(guest: &Guest, log: &str, card: &CardReport, change: impl Fn(&Path)) -> Vec<String> {
        failed_as(Role::Physical { vfs: 0 }, guest, log, card, change)
    }

    fn failed_as(role: Role, guest: &Guest, log: &str, card: &CardReport, change: impl Fn(&Path)) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        good_results(folder.path());
        change(folder.path());
        let mut report = BootReport { log: folder.path().to_owned().into(), ..BootReport::default() };
        let results = folder.path();
        let place = if role == Role::Integrated { Place::INTEGRATED } else { Place::FIRST };
        let (name, driver, own_kernel, mei_gsc) = ("", Driver::Xe, false, true);
        let evidence = Evidence { name, driver, role, place, guest, log, results, own_kernel, mei_gsc, compute: &[] };
        check_guest(&mut report, &evidence);
        report.results.push(registers(card));
        let failed = report.results.into_iter().filter(|result| result.result == Verdict::Fail);
        failed.map(|result| result.test).collect()
    }

    #[test]
    fn good_run_passes_all_checks() {
        assert_eq!(failed(&good_guest(), LOG, &CardReport::default(), |_| ()), [""; 0]);
    }

    /// On a VF, the log line for loaded firmware, mei_gsc and a picture are not required, but the log line for VF mode
    /// is. On a PF with VFs, the log line for PF mode is required.
    #[test]
    fn vf_skips_pf_only_checks_and_requires_vf_mode() {
        let guest = Guest { modules: vec!["xe".into()], ..good_guest() };
        let log = "xe 0000:00:01.0: [drm] Running in SR-IOV VF mode\n[drm] Initialized xe 1.1.0 for 0000:00:01.0 on minor 0\n";
        let no_picture = |folder: &Path| fs::remove_file(folder.join(PICTURE)).unwrap();
        let card = CardReport::default();
        assert_eq!(failed_as(Role::Virtual, &guest, log, &card, no_picture), [""; 0]);
        assert_eq!(failed_as(Role::Virtual, &guest, LOG, &card, no_picture), ["xe probe"]);
        assert_eq!(failed_as(Role::Physical { vfs: 1 }, &good_guest(), LOG, &card, |_| ()), ["xe probe"]);
        assert_eq!(
            failed_as(
                Role::Physical { vfs: 1 },
                &good_guest(),
                &format!("{LOG}{}", log.replace("VF mode", "PF mode")),
                &card,
                |_| ()
            ),
            [""; 0]
        );
    }

    /// Of an integrated GPU, the probe at its own address, work, a picture and a clean log are required, but no module
    /// besides the driver.
    #[test]
    fn an_integrated_gpu_is_probed_at_its_address_and_works() {
        let guest = Guest { modules: vec!["i915".into()], taint: Some(0), ..good_guest() };
        let log = "[drm] Initialized xe 1.1.0 for 0000:00:02.0 on minor 0\n";
        let card = CardReport::default();
        let nothing = |_: &Path| ();
        assert_eq!(failed_as(Role::Integrated, &guest, log, &card, nothing), [""; 0]);
        assert_eq!(failed_as(Role::Integrated, &guest, LOG, &card, nothing), ["xe probe"]);
        let no_work = |folder: &Path| fs::remove_file(folder.join(WORK_REPORT)).unwrap();
        assert_eq!(failed_as(Role::Integrated, &guest, log, &card, no_work), ["work"]);
        let no_picture = |folder: &Path| fs::remove_file(folder.join(PICTURE)).unwrap();
        assert_eq!(failed_as(Role::Integrated, &guest, log, &card, no_picture), ["picture"]);
        let error = format!("{log}foo 0000:00:02.0: *ERROR* bar\n");
        assert_eq!(failed_as(Role::Integrated, &guest, &error, &card, nothing), ["kernel log"]);
    }

    #[test]
    fn result_names_are_prefixed_with_the_guest_name() {
        let folder = tempfile::tempdir().unwrap();
        good_results(folder.path());
        let mut report = BootReport::default();
        let guest = good_guest();
        let evidence = Evidence {
            name: "vf2",
            driver: Driver::Xe,
            role: Role::Virtual,
            place: Place::FIRST,
            guest: &guest,
            log: "",
            results: folder.path(),
            own_kernel: false,
            mei_gsc: true,
            compute: &[],
        };
        assert!(check_guest(&mut report, &evidence).is_some());
        let names: Vec<&str> = report.results.iter().map(|result| result.test.as_str()).collect();
        assert_eq!(
            names,
            ["vf2: guest", "vf2: xe probe", "vf2 rcs0: stores", "vf2 rcs0: mi_math", "vf2: kernel log", "vf2: taint"]
        );
    }

    /// Debian's 6.1 has no `mei_gsc`: hotplug has no reason to load `mei` and `mei_me`, and i915 loads no HuC firmware.
    #[test]
    fn kernel_without_mei_gsc_is_expected_to_load_i915_and_guc_firmware_only() {
        const OLD: &str = "\
[   26.5] i915 0000:00:01.0: [drm] GuC firmware i915/dg2_guc_70.bin version 70.53.0\r
[   26.5] i915 0000:00:01.0: [drm] GuC submission enabled\r
[   26.5] i915 0000:00:01.0: [drm] GuC SLPC enabled\r
[   26.7] [drm] Initialized i915 1.6.0 20201103 for 0000:00:01.0 on minor 0\r
";
        let problems = |modules: &[&str], log: &str, mei_gsc| {
            let guest = Guest { modules: modules.iter().map(|name| (*name).to_owned()).collect(), ..good_guest() };
            let role = Role::Physical { vfs: 0 };
            let (guest, results) = (&guest, Path::new(""));
            let (name, driver, place, own_kernel) = ("", Driver::I915, Place::FIRST, true);
            let evidence =
                Evidence { name, driver, role, place, guest, log, results, own_kernel, mei_gsc, compute: &[] };
            [hotplug(&evidence), probe(&evidence)].concat()
        };
        assert_eq!(problems(&["i915"], OLD, false), [""; 0]);
        assert_eq!(problems(&[], OLD, false), ["i915 is not loaded"]);
        assert_eq!(problems(&["i915"], &OLD.replace("submission", ""), false).len(), 1);
        assert_eq!(
            problems(&["i915", "mei", "mei_me"], OLD, true),
            ["mei_gsc is not loaded", "no log line contains 0000:00:01.0 and HuC firmware i915/dg2_huc_gsc.bin"]
        );
    }

    #[test]
    fn each_failure_is_reported_by_its_check() {
        let card = CardReport::default();
        let nothing = |_: &Path| ();
        let log = format!("{LOG}[ 4.0] xe 0000:00:01.0: [drm] *ERROR* no\n");
        assert_eq!(failed(&good_guest(), &log, &card, nothing), ["kernel log"]);
        assert_eq!(failed(&good_guest(), "", &card, nothing), ["xe probe"]);
        assert_eq!(failed(&Guest { taint: Some(64 | 512), ..good_guest() }, LOG, &card, nothing), ["taint"]);
        assert_eq!(failed(&Guest { taint: None, ..good_guest() }, LOG, &card, nothing), ["taint"]);
        assert_eq!(failed(&Guest { probe: Some((1.0, 2.0, 1)), ..good_guest() }, LOG, &card, nothing), ["xe probe"]);
        assert_eq!(failed(&Guest { modules: vec!["xe".into()], ..good_guest() }, LOG, &card, nothing), ["hotplug"]);
        assert_eq!(failed(&Guest { status: Some(1), ..good_guest() }, LOG, &card, nothing), ["work"]);
        assert_eq!(failed(&Guest { lost: Some("it crashed".into()), ..good_guest() }, LOG, &card, nothing), ["guest"]);
        let unmodelled = vec![crate::card::Unmodelled { offset: 0x1234, ..Default::default() }];
        assert_eq!(failed(&good_guest(), LOG, &CardReport { unmodelled, ..card.clone() }, nothing), ["registers"]);
        let no_work = |folder: &Path| fs::remove_file(folder.join(WORK_REPORT)).unwrap();
        assert_eq!(failed(&good_guest(), LOG, &card, no_work), ["work"]);
        let wrong_pixel = |folder: &Path| {
            let mut pixels = testcard::render();
            pixels[0] ^= 1;
            fs::write(folder.join(PICTURE), pixels).unwrap();
        };
        assert_eq!(failed(&good_guest(), LOG, &card, wrong_pixel), ["picture"]);
        assert_eq!(
            failed(&good_guest(), LOG, &card, |folder| fs::remove_file(folder.join(PICTURE)).unwrap()),
            ["picture"]
        );
    }
}
