//! A VMM that needs KVM, judged on hosts whose KVM cannot run Linux: in a machine that QEMU emulates with AMD's
//! virtualization (SVM, nested paging), so that KVM works in it, the VMM boots a guest of its own, whose xe judges the
//! card. The host hears both on one console.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::image::nested::{self, Extra};
use crate::kernel_log;
use crate::parts::{self, Own, Parts};
use crate::process::Child;
use crate::progress::Progress;
use crate::tsc;

/// Where the card is in the inner guest.
pub const CARD_ADDRESS: &str = "0000:01:00.0";
/// A processor that QEMU emulates together with its virtualization.
const PROCESSOR: &str = "EPYC,+svm,+npt";
/// One: of two that QEMU emulates side by side, each with its virtualization, one in three runs ended in a triple fault, now
/// of the outer kernel, now of the inner one, and neither said a word before. The inner guest has two all the same, as
/// threads of the VMM.
const PROCESSORS: &str = "1";
/// Memory of the outer machine in MiB: the images, and the inner guest.
const MEMORY: u32 = 2048;
/// What the outer machine says first.
const OUTER: &str = "outer";

/// What the two machines said.
#[derive(Debug)]
pub struct Outcome {
    /// Both consoles.
    pub log: String,
    /// Where it is kept.
    pub folder: PathBuf,
    /// How long it took.
    pub took: Duration,
    vfs: u8,
}

/// Attempts in all. An emulated processor's kernel now and then panics before anything of ours runs (see [`crate::boot`]),
/// and QEMU's emulation of virtualization now and then ends its machine without a word from either kernel. What a VMM does
/// wrong is another matter: the outer machine outlives it and tells its status.
const ATTEMPTS: u32 = 3;

/// Runs the proof. `limit` bounds each attempt.
pub fn run(extra: &Extra<'_>, limit: Duration, progress: &dyn Progress) -> Result<Outcome> {
    crate::interrupt::install();
    let cache = Cache::open()?;
    let parts = parts::obtain(&Own::default(), &cache, progress)?;
    let folder = cache.new_run("nested")?;
    let mut image = tempfile::NamedTempFile::new_in(&folder)?;
    progress.say("building the images of a guest within a guest");
    nested::build(&parts, extra, image.as_file_mut())?;
    let start = Instant::now();
    for attempt in 1..=ATTEMPTS {
        progress.say("booting a machine with KVM, and in it the VMM's guest; this takes about two minutes");
        let console = folder.join("console.log");
        let ended = boot(&parts, image.path(), &console, limit)?;
        let log = String::from_utf8_lossy(&fs::read(&console)?).into_owned();
        let outcome = Outcome { log, folder: folder.clone(), took: start.elapsed(), vfs: extra.vfs };
        if attempt < ATTEMPTS && outcome.is_the_emulators(ended) {
            progress.say("the outer machine did not come up, or was gone before its VMM; once more");
            continue;
        }
        if !ended {
            bail!("the proof took longer than {} s (its log: {})", limit.as_secs(), console.display());
        }
        return Ok(outcome);
    }
    bail!("the outer machine did not come up (its log: {})", folder.display())
}

/// Boots the outer machine and waits for its end; says whether it came in time.
fn boot(parts: &Parts, image: &Path, console: &Path, limit: Duration) -> Result<bool> {
    let mut command = parts.qemu.command();
    command.args(["-machine", "q35", "-accel", "tcg", "-cpu", PROCESSOR, "-smp", PROCESSORS, "-m"]);
    command.arg(format!("{MEMORY}M"));
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-kernel"]);
    command.arg(&parts.kernel.image).arg("-initrd").arg(image);
    // The outer kernel keeps quiet unless something is wrong with it: the console is for the inner one.
    let clock = tsc::arguments(tsc::host_khz(), parts.kernel.hz);
    command.args([
        "-append",
        format!("console=ttyS0,115200 loglevel=4 panic=1 tsc=reliable no_timer_check {clock}").trim(),
    ]);
    let path = console.display().to_string().replace(',', ",,");
    command.args(["-chardev", &format!("file,id=console,path={path}"), "-serial", "chardev:console"]);
    let messages = File::create(console.with_file_name("qemu.log"))?;
    command.stdin(Stdio::null()).stdout(messages.try_clone()?).stderr(messages);
    // Dropped, it is ended.
    let mut machine = Child::spawn(&mut command, "QEMU")?;
    Ok(machine.wait(limit).context("the machine cannot be waited for")?.is_some())
}

impl Outcome {
    /// Whether the outer machine itself failed: it never came up, or has `ended` while its VMM ran, without a word of its
    /// kernel. Neither tells anything of VMM and card.
    fn is_the_emulators(&self, ended: bool) -> bool {
        let complaint = ["Oops", "BUG:", "Call Trace", "Kernel panic"].iter().any(|word| self.log.contains(word));
        self.told(OUTER).is_none() || ended && self.told("vmm").is_none() && !complaint
    }

    /// The words behind `proof: what`, if that was said.
    pub fn told(&self, what: &str) -> Option<&str> {
        let lines = self.log.lines().filter_map(|line| line.trim_end().strip_prefix("proof: "));
        lines.filter_map(|line| line.strip_prefix(what)?.strip_prefix(' ')).next()
    }

    /// All that is wrong: steps that failed or were not reached, complaints of the kernels.
    pub fn problems(&self) -> Vec<String> {
        let mut steps = vec!["xe", "work"];
        if self.vfs != 0 {
            steps.extend(["vfs first", "vfs-gone first", "vfs second", "vfs-gone second"]);
        }
        steps.push("vmm");
        let mut problems = Vec::new();
        for step in steps {
            match self.told(step).and_then(|words| words.split(' ').next()) {
                Some("0") => {}
                Some(status) => problems.push(format!("{step} ended with status {status}")),
                None => problems.push(format!("{step} was not reached")),
            }
        }
        let taint = self.told("taint").and_then(|taint| taint.parse().ok());
        if taint != Some(kernel_log::TAINT_ALLOWED) {
            problems.push(format!("the inner kernel's taint is {taint:?}"));
        }
        let interrupts = self.told("msi").unwrap_or_default();
        if interrupts.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).sum::<u64>() == 0 {
            problems.push("the card never interrupted by MSI".into());
        }
        problems.extend(kernel_log::problems(&self.log, CARD_ADDRESS).into_iter().map(|problem| problem.line));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "proof: outer 9.5\nproof: inner 9.9\nproof: cpus 2\nproof: xe 0 15\nproof: work 0 48\n\
        proof: msi 2330 \nproof: taint 64\nproof: vmm 0\n";

    fn outcome(log: &str, vfs: u8) -> Outcome {
        Outcome { log: log.replace('\n', "\r\n"), folder: PathBuf::new(), took: Duration::ZERO, vfs }
    }

    #[test]
    fn every_step_has_to_be_told_and_to_succeed() {
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

    /// A machine that is gone while its VMM runs says nothing of it; one whose VMM has failed, or that complains, does.
    #[test]
    fn only_the_emulators_own_failures_are_tried_again() {
        let cut = "proof: outer 9.5\nproof: inner 9.9\nok   bcs0   timestamp\n";
        assert!(outcome(cut, 0).is_the_emulators(true) && outcome("[ 0.1] Oops\n", 0).is_the_emulators(true));
        assert!(!outcome(cut, 0).is_the_emulators(false), "it hangs");
        for said in ["proof: vmm 101\n", "[ 12.0] Kernel panic - not syncing\n", "[ 12.0] BUG: unable to handle\n"] {
            assert!(!outcome(&(cut.to_owned() + said), 0).is_the_emulators(true), "{said}");
        }
    }

    /// Both inits are texts that a shell can read.
    #[test]
    fn a_shell_understands_both_inits() {
        for text in [include_str!("image/nested-outer.sh"), include_str!("image/nested-inner.sh")] {
            assert!(std::process::Command::new("sh").args(["-n", "-c", text]).status().unwrap().success());
        }
    }
}
