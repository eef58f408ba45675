// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of a boot in which the guest's program has steps: VFs that are passed on to inner guests, or migrated.

use std::fs;

use anyhow::{Context, Result};
use arctic_guest_agent::report::StepsReport;

use super::BootReport;
use super::checks::{self, Evidence, check};
use super::job::STEPS_REPORT;
use super::multi_guest;
use crate::card::Functions;
use crate::guest_process::{GuestSpec, Options};

/// Fails if the host has too little memory for a guest with inner guests.
pub(super) fn check_memory(options: &Options) -> Result<()> {
    let Functions::Passthrough(_) = options.functions else { return Ok(()) };
    let memory = options.memory.unwrap_or(GuestSpec::only(options.functions).memory);
    multi_guest::host_memory().map_or(Ok(()), |total| multi_guest::fits(1, memory, total))
}

/// Adds a result for each step, and those of the host's checks.
pub(super) fn evaluate(report: &mut BootReport, evidence: &Evidence<'_>) {
    let guest = evidence.guest;
    let problems = guest.problems.iter().chain(&guest.lost).cloned().collect();
    report.results.push(evidence.check("guest", problems, guest.boot_seconds));
    let probed = checks::probe(evidence);
    report.results.push(evidence.check(&format!("{} probe", evidence.driver), probed, guest.probe_seconds()));
    match steps(evidence) {
        Ok(reported) => {
            let failed = reported.steps.iter().any(|step| !step.ok);
            for step in &reported.steps {
                let problem = step.problem.clone().into_iter().collect();
                report.results.push(check(&format!("step: {}", step.name), problem, step.seconds));
            }
            // A run that ended early has no failed step, or did not reach the last one.
            let status = guest.status.map_or("without a status".to_owned(), |status| format!("with status {status}"));
            let early =
                (!failed && (!reported.ok || guest.status != Some(0))).then(|| format!("the job ended {status}"));
            report.results.push(check("steps", early.into_iter().collect(), 0.0));
            report.steps = reported.steps;
        }
        Err(error) => report.results.push(check("steps", vec![format!("{error:#}")], 0.0)),
    }
    report.results.push(checks::log_is_clean(evidence));
    report.results.push(evidence.check("taint", checks::taint(evidence), 0.0));
}

fn steps(evidence: &Evidence<'_>) -> Result<StepsReport> {
    let path = evidence.results.join(STEPS_REPORT);
    let text = fs::read_to_string(path).context("the guest has not run all steps")?;
    serde_json::from_str(&text).context("the guest's report of the steps cannot be parsed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::checks::Role;
    use crate::boot::serial::Guest;
    use crate::devices::Place;
    use crate::driver::Driver;
    use crate::report::Verdict;
    use arctic_guest_agent::report::{StepReport, write_json};

    const LOG: &str = "\
[    3.5] xe 0000:00:01.0: [drm] GT0: Using GuC firmware from i915/dg2_guc_70.bin version 70.44.1
[    3.6] xe 0000:00:01.0: [drm] Running in SR-IOV PF mode
[    3.9] [drm] Initialized xe 1.1.0 for 0000:00:01.0 on minor 0
";

    /// Returns the failed results of a guest that wrote `report` and ended with `status`.
    fn failed(report: Option<&StepsReport>, status: i32) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(report) = report {
            write_json(&folder.path().join(STEPS_REPORT), report).unwrap();
        }
        let guest = Guest { probe: Some((3.0, 6.0, 0)), taint: Some(64), status: Some(status), ..Guest::default() };
        let evidence = Evidence {
            name: "",
            driver: Driver::Xe,
            role: Role::Physical { vfs: 2 },
            place: Place::FIRST,
            guest: &guest,
            log: LOG,
            results: folder.path(),
            own_kernel: false,
            mei_gsc: true,
            compute: &[],
        };
        let mut all = BootReport::default();
        evaluate(&mut all, &evidence);
        let failed = all.results.into_iter().filter(|result| result.result == Verdict::Fail);
        failed.map(|result| result.test).collect()
    }

    #[test]
    fn each_step_and_an_early_end_are_results() {
        let step = |name: &str, problem: Option<&str>| StepReport {
            name: name.into(),
            ok: problem.is_none(),
            problem: problem.map(str::to_owned),
            ..StepReport::default()
        };
        let good = StepsReport { ok: true, steps: vec![step("one", None), step("two", None)] };
        assert_eq!(failed(Some(&good), 0), [""; 0]);
        let bad = StepsReport { ok: false, steps: vec![step("one", None), step("two", Some("no"))] };
        assert_eq!(failed(Some(&bad), 1), ["step: two"]);
        assert_eq!(failed(Some(&StepsReport { ok: false, ..good.clone() }), 1), ["steps"]);
        assert_eq!(failed(Some(&good), 1), ["steps"]);
        assert_eq!(failed(None, 1), ["steps"]);
    }
}
