// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Formats a boot report as text: the components, one line per engine with the passed checks, and every failure in
//! full.

use std::fmt;

use super::{BootReport, compute};
use crate::card::{Walkers, access_lines};
use crate::clocks;
use crate::report::{TestResult, Verdict};
use crate::skipped;

impl fmt::Display for BootReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: &str| match value.is_empty() {
            true => Ok(()),
            false => writeln!(out, "{name:<11} {value}"),
        };
        line("guest", &format!("Linux {}, up after {:.1} s", self.kernel, self.boot_seconds))?;
        let seen = self.guest_card.as_ref().map(|card| {
            let memory = match card.vram_bytes {
                0 => "no local memory".to_owned(),
                bytes => format!("{} MiB of local memory", bytes >> 20),
            };
            format!(": {} revision {}, {memory}", card.pci_id, card.revision)
        });
        line("card", &format!("{}{}", self.card, seen.unwrap_or_default()))?;
        line("probe", &format!("{:.1} s for modprobe {}", self.probe_seconds, self.driver))?;
        let of_the_card = |module: &&String| self.driver.of_the_card().iter().any(|prefix| module.starts_with(prefix));
        let modules: Vec<&str> = self.modules.iter().filter(of_the_card).map(String::as_str).collect();
        line("drivers", &modules.join(" "))?;
        line("engines", &self.engines.join(" "))?;
        for (group, passed, seconds) in passed(&self.results).into_iter().filter(|(group, ..)| !has_line(group)) {
            line(&format!("  {group}"), &format!("passed {} ({seconds:.2} s)", passed.join(", ")))?;
        }
        compute::write_lines(&self.compute, &mut line)?;
        for of in &self.walkers {
            let function = if of.function == 0 { "pf".to_owned() } else { format!("vf{}", of.function) };
            let Walkers { walkers, groups, instructions, faults, .. } = of;
            let text = format!("{walkers} walkers, {groups} groups, {instructions} instructions, {faults} faults");
            line("walkers", &format!("{function}: {text}"))?;
        }
        for step in &self.steps {
            line("  step", &step.line())?;
        }
        for vf in &self.vfs {
            line(&format!("  vf{}", vf.number), &vf.to_string())?;
        }
        for phase in &self.phases {
            line("time", &format!("{:>6.1} s  {}", phase.seconds, phase.what))?;
        }
        if !self.vfs.is_empty() {
            line("time", &format!("{:>6.1} s  in all, the card's start and every guest's end included", self.seconds))?;
        }
        line("memory", &self.memory.map_or(String::new(), |memory| memory.to_string()))?;
        // The lines of steps and kernels have their failures.
        let has_line = |result: &TestResult| result.test.starts_with("step: ") || compute::has_line(&result.test);
        for result in self.results.iter().filter(|result| result.result != Verdict::Pass && !has_line(result)) {
            line("", &result.to_string())?;
        }
        for clock in &self.clocks {
            line("clock", &clock.to_string())?;
        }
        line("host", &self.host_load.summary())?;
        for (heading, text) in access_lines(&self.trapped, &self.unmodelled) {
            line(heading, &text)?;
        }
        let undone: u64 = self.undone.values().sum();
        line("state only", &format!("{undone} commands of {} kinds skipped or done in part", self.undone.len()))?;
        line("skipped", &skipped::line(&self.skipped_commands, self.integrated).unwrap_or_default())?;
        let versions: Vec<String> = self.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        line("versions", &versions.join(", "))?;
        line("note", self.compute_note.as_deref().unwrap_or_default())?;
        line("log", &self.log.to_string())?;
        let picture = self.picture.as_ref();
        line("picture", &picture.map_or(String::new(), |path| format!("{path}, as the host draws it")))?;
        line("", clocks::inconclusive(&self.clocks).as_deref().unwrap_or_default())?;
        writeln!(out, "{}", self.totals)
    }
}

/// Returns whether the results of a group are part of a VF's line or of the lines of the steps.
fn has_line(group: &str) -> bool {
    group == "step"
        || group.starts_with("compute ")
        || group.strip_prefix("vf").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// The passed checks by engine (host-side checks as group `checks`), with the total seconds of each group.
fn passed(results: &[TestResult]) -> Vec<(&str, Vec<&str>, f64)> {
    let mut groups: Vec<(&str, Vec<&str>, f64)> = Vec::new();
    for result in results.iter().filter(|result| result.result == Verdict::Pass) {
        let (group, name) = result.test.split_once(": ").unwrap_or(("checks", &result.test));
        match groups.iter_mut().find(|(known, ..)| *known == group) {
            Some((_, names, seconds)) => {
                names.push(name);
                *seconds += result.seconds;
            }
            None => groups.push((group, vec![name], result.seconds)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::{MemoryReport, Phase, VfLine};
    use crate::card::Unmodelled;
    use crate::report::Totals;
    use crate::skipped::Skipped;

    /// One line per VF, then times and memory; individual results of a VF appear only if they failed.
    #[test]
    fn each_virtual_function_has_one_line() {
        let vf = |number: u8| VfLine { number, ok: true, lmem_bytes: 128 << 20, ..VfLine::default() };
        let memory = crate::card::Memory::default();
        let report = BootReport {
            results: ["vf1: work", "vf2: work", "vf2 rcs0: stores", "vfs enabled"]
                .map(|name| TestResult::new(name, Verdict::Pass, "", 0.5))
                .into(),
            vfs: vec![vf(1), vf(2)],
            phases: vec![Phase { what: "2 virtual functions enabled".into(), seconds: 3.25 }],
            memory: Some(MemoryReport { before: memory, with_vfs: memory, own_by_vf: 1 << 19, shared_by_vf: 0 }),
            seconds: 20.0,
            ..BootReport::default()
        };
        let text = report.to_string();
        assert_eq!(text.matches("local memory 128 MiB").count(), 2, "{text}");
        assert!(text.contains("  checks    passed vfs enabled (0.50 s)\n"), "{text}");
        assert!(text.contains("time           3.2 s  2 virtual functions enabled\n"), "{text}");
        assert!(text.contains("memory      512 KiB a virtual function"), "{text}");
        assert!(!text.contains("passed work") && text.contains("  20.0 s  in all"), "{text}");
    }

    /// One line per step, and none for it among the checks.
    #[test]
    fn each_step_has_one_line() {
        let step = arctic_guest_agent::report::StepReport {
            name: "inner guest with vf1".into(),
            ok: true,
            seconds: 20.0,
            detail: "81 checks, 2477 MSIs".into(),
            ..Default::default()
        };
        let results = vec![TestResult::new("step: inner guest with vf1", Verdict::Pass, "", 20.0)];
        let text = BootReport { results, steps: vec![step], ..BootReport::default() }.to_string();
        assert!(text.contains("  step      ok   inner guest with vf1: 81 checks, 2477 MSIs (20.0 s)\n"), "{text}");
        assert_eq!(text.matches("inner guest").count(), 1, "{text}");
    }

    #[test]
    fn summary_lists_passed_checks_briefly_and_failures_in_full() {
        let mut results: Vec<TestResult> = ["guest", "rcs0: stores", "rcs0: mi_math", "taint"]
            .map(|name| TestResult::new(name, Verdict::Pass, "", 0.25))
            .into();
        results.push(TestResult::new("bcs0: fills", Verdict::Fail, "byte 4: expected 1, got 0", 1.0));
        let unmodelled = vec![Unmodelled { offset: 0x4_2000, reads: 3, ..Unmodelled::default() }];
        let totals = Totals::of(&results);
        let report = BootReport {
            results,
            totals,
            unmodelled,
            modules: vec!["drm".into(), "xe".into()],
            walkers: vec![Walkers { function: 2, walkers: 3, groups: 40, instructions: 5000, faults: 1 }],
            skipped_commands: vec![Skipped {
                origin: "user".into(),
                command: "3DPRIMITIVE".into(),
                count: 2,
                ..Skipped::default()
            }],
            ..BootReport::default()
        };
        let text = report.to_string();
        for line in [
            "drivers     xe\n",
            "  checks    passed guest, taint (0.50 s)\n",
            "  rcs0      passed stores, mi_math (0.50 s)\n",
            "byte 4: expected 1, got 0\n",
            "walkers     vf2: 3 walkers, 40 groups, 5000 instructions, 1 faults\n",
            "skipped     2 commands of user contexts were not executed: 3DPRIMITIVE 2; results",
            "0x042000 unnamed: 3 reads, 0 writes, no reason given\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
        assert!(text.ends_with("\n4 passed, 1 failed, 0 skipped\n"), "{text}");
    }
}
