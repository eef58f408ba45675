// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests a VMM that needs KVM on hosts without usable KVM. QEMU emulates a VM with AMD virtualisation (SVM, nested
//! paging), in which KVM is usable. The VMM runs in that VM and boots a guest, in which xe is loaded and tests run on
//! the card. Both consoles are captured in one log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::artifacts::{self, Own, Parts};
use crate::cache::Cache;
use crate::image::nested::{self, Extra};
use crate::kernel_log;
use crate::path;
use crate::process::Child;
use crate::progress::Progress;
use crate::tsc;

/// PCI address of the card in the inner guest.
pub const CARD_ADDRESS: &str = "0000:01:00.0";
/// A CPU model for which QEMU emulates virtualisation.
const PROCESSOR: &str = "EPYC,+svm,+npt";
/// One CPU: with two emulated CPUs with virtualisation, one in three runs ended in a triple fault of the outer or the
/// inner kernel without a preceding message. The inner guest nevertheless has two vCPUs, as threads of the VMM.
const PROCESSORS: &str = "1";
/// Memory of the outer VM in MiB, for the images and the inner guest.
const MEMORY: u32 = 2048;
/// Keyword of the outer VM's first `proof:` line.
const OUTER: &str = "outer";

/// The result of a nested run.
#[derive(Debug)]
pub struct NestedOutcome {
    /// Output of both consoles.
    pub log: String,
    /// Directory of the logs.
    pub folder: PathBuf,
    /// Duration of the run.
    pub took: Duration,
    vfs: u8,
}

/// Maximum number of attempts. The kernel of an emulated CPU occasionally panics during boot (see [`crate::boot`]), and
/// QEMU's emulation of virtualisation occasionally ends its VM without a message from either kernel. A failure of the
/// VMM is not retried: the outer VM survives it and reports the VMM's exit status.
const ATTEMPTS: u32 = 3;

/// Runs the test. `limit` applies to each attempt.
pub fn run(extra: &Extra<'_>, limit: Duration, progress: &dyn Progress) -> Result<NestedOutcome> {
    crate::interrupt::install();
    let cache = Cache::open()?;
    let parts = artifacts::obtain(&Own::default(), &cache, progress)?;
    let folder = cache.new_run("nested")?;
    let mut image = tempfile::NamedTempFile::new_in(&folder)?;
    progress.print_line("building the images for nested virtualisation");
    nested::build(&parts, extra, image.as_file_mut())?;
    let start = Instant::now();
    for attempt in 1..=ATTEMPTS {
        progress.print_line("booting a VM with KVM and, nested in it, the VMM's guest; this takes about two minutes");
        let console = folder.join("console.log");
        let ended = boot(&parts, image.path(), &console, limit)?;
        let log = String::from_utf8_lossy(&fs::read(&console)?).into_owned();
        let outcome = NestedOutcome { log, folder: folder.clone(), took: start.elapsed(), vfs: extra.vfs };
        if attempt < ATTEMPTS && outcome.is_the_emulators(ended) {
            progress.print_line("the outer VM did not boot, or ended before its VMM; trying again");
            continue;
        }
        if !ended {
            bail!("the nested run took longer than {} s (its log: {})", limit.as_secs(), console.display());
        }
        return Ok(outcome);
    }
    bail!("the outer VM did not boot (its log: {})", folder.display())
}

/// Boots the outer VM and blocks until it exits, at most for `limit`. Returns whether it exited.
fn boot(parts: &Parts, image: &Path, console: &Path, limit: Duration) -> Result<bool> {
    let mut command = parts.qemu.command();
    command.args(["-machine", "q35", "-accel", "tcg", "-cpu", PROCESSOR, "-smp", PROCESSORS, "-m"]);
    command.arg(format!("{MEMORY}M"));
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-kernel"]);
    command.arg(&parts.kernel.image).arg("-initrd").arg(image);
    // Limits the outer kernel's messages to warnings, since the inner kernel uses the same console.
    let clock = tsc::arguments(tsc::host_khz(), parts.kernel.hz);
    command.args([
        "-append",
        format!("console=ttyS0,115200 loglevel=4 panic=1 tsc=reliable no_timer_check {clock}").trim(),
    ]);
    command.arg("-chardev").arg(path::in_option("file,id=console,path=", console, ""));
    command.args(["-serial", "chardev:console"]);
    let messages = File::create(console.with_file_name("qemu.log"))?;
    command.stdin(Stdio::null()).stdout(messages.try_clone()?).stderr(messages);
    // The VM is terminated when `machine` is dropped.
    let mut machine = Child::spawn(&mut command, "QEMU")?;
    Ok(machine.wait(limit).context("cannot wait for the VM")?.is_some())
}

impl NestedOutcome {
    /// Returns whether the outer VM itself failed: it did not boot, or it has `ended` before its VMM without an error
    /// from either kernel. Neither case is a result of the VMM or the card.
    fn is_the_emulators(&self, ended: bool) -> bool {
        let complaint = ["Oops", "BUG:", "Call Trace", "Kernel panic"].iter().any(|word| self.log.contains(word));
        self.proof(OUTER).is_none() || ended && self.proof("vmm").is_none() && !complaint
    }

    /// Returns the rest of the first line `proof: what …`, if there is one.
    pub fn proof(&self, what: &str) -> Option<&str> {
        let lines = self.log.lines().filter_map(|line| line.trim_end().strip_prefix("proof: "));
        lines.filter_map(|line| line.strip_prefix(what)?.strip_prefix(' ')).next()
    }

    /// Returns all problems: steps that failed or were not reached, and errors in the kernel logs.
    pub fn problems(&self) -> Vec<String> {
        let mut steps = vec!["xe", "work"];
        if self.vfs != 0 {
            steps.extend(["vfs first", "vfs-gone first", "vfs second", "vfs-gone second"]);
        }
        steps.push("vmm");
        let mut problems = Vec::new();
        for step in steps {
            match self.proof(step).and_then(|words| words.split(' ').next()) {
                Some("0") => {}
                Some(status) => problems.push(format!("{step} ended with status {status}")),
                None => problems.push(format!("{step} was not reached")),
            }
        }
        let taint = self.proof("taint").and_then(|taint| taint.parse().ok());
        if taint != Some(kernel_log::FORCE_PROBE_TAINT) {
            problems.push(format!("the inner kernel's taint is {taint:?}"));
        }
        let interrupts = self.proof("msi").unwrap_or_default();
        if interrupts.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).sum::<u64>() == 0 {
            problems.push("the card raised no MSI".into());
        }
        problems.extend(kernel_log::problems(&self.log, Some(CARD_ADDRESS)).into_iter().map(|problem| problem.line));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "proof: outer 9.5\nproof: inner 9.9\nproof: cpus 2\nproof: xe 0 15\nproof: work 0 48\n\
        proof: msi 2330 \nproof: taint 64\nproof: vmm 0\n";

    fn outcome(log: &str, vfs: u8) -> NestedOutcome {
        NestedOutcome { log: log.replace('\n', "\r\n"), folder: PathBuf::new(), took: Duration::ZERO, vfs }
    }

    #[test]
    fn every_step_is_required_to_succeed() {
        assert_eq!(outcome(GOOD, 0).problems(), Vec::<String>::new());
        assert_eq!(outcome(GOOD, 2).problems().len(), 4, "no VFs");
        for (before, after) in [
            ("work 0", "work 1"),
            ("proof: xe", "xe"),
            ("taint 64", "taint 576"),
            ("msi 2330", "msi 0 0"),
            ("vmm 0", "vmm 101"),
            ("proof: outer", "[ 4.0] xe 0000:01:00.0: [drm] *ERROR* no\nproof: outer"),
        ] {
            assert_eq!(outcome(&GOOD.replace(before, after), 0).problems().len(), 1, "{after}");
        }
    }

    /// A run in which the outer VM ends before its VMM is inconclusive, unless the VMM failed or a kernel reported an
    /// error.
    #[test]
    fn only_the_emulators_own_failures_are_tried_again() {
        let cut = "proof: outer 9.5\nproof: inner 9.9\nok   bcs0   timestamp\n";
        assert!(outcome(cut, 0).is_the_emulators(true) && outcome("[ 0.1] Oops\n", 0).is_the_emulators(true));
        assert!(!outcome(cut, 0).is_the_emulators(false), "it hangs");
        for output in ["proof: vmm 101\n", "[ 12.0] Kernel panic - not syncing\n", "[ 12.0] BUG: unable to handle\n"] {
            assert!(!outcome(&(cut.to_owned() + output), 0).is_the_emulators(true), "{output}");
        }
    }

    /// Both init scripts have valid shell syntax.
    #[test]
    fn a_shell_understands_both_inits() {
        for text in [include_str!("image/nested-outer.sh"), include_str!("image/nested-inner.sh")] {
            assert!(std::process::Command::new("sh").args(["-n", "-c", text]).status().unwrap().success());
        }
    }
}
