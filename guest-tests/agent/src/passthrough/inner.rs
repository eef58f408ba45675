// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! An inner guest: QEMU with KVM and a VF by vfio-pci, and the lines that the guest's init writes to a virtio port (see
//! `image/passthrough-inner.sh`).

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::qmp::Monitor;
use super::state::{DeliveredTwice, State};
use super::{INITRD, KERNEL, QEMU};
use crate::kernel_log;
use crate::report::{CheckResult, WorkReport};

/// Memory of an inner guest in MiB.
pub(super) const MEMORY: u32 = 384;
/// PCI address of the VF in an inner guest, except behind a root port.
const VF_SLOT: &str = "10.0";
/// Polling interval for lines of an inner guest.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// Arguments of the inner guest's kernel. Only warnings are printed, since the serial port is slow; mitigations of
/// processor vulnerabilities would only cost time under emulation.
const ARGUMENTS: &str = "console=ttyS0,115200 loglevel=5 panic=1 tsc=reliable no_timer_check mitigations=off";
/// Number of passed checks per line of progress.
const PROGRESS: usize = 20;
/// The controller of the control port, with registers in I/O space. QEMU's emulation of SVM leaves the type of the last
/// exception in EXITINTINFO after it has been delivered, so KVM takes a write to a register in memory that follows a page
/// fault for one during the delivery, and ends the guest (KVM internal error, suberror 3).
const CONTROL: &str = "virtio-serial-pci,disable-legacy=off,disable-modern=on";
/// Files of an inner guest that are kept.
const FILES: [&str; 4] = ["console", "control", "qemu", "state"];
/// ID of the VF in the inner guest's QEMU.
pub(super) const VF: &str = "vf";
/// ID of the root port above it, if it can be unplugged.
pub(super) const PORT: &str = "root-port";

/// Time limit of each command to QEMU's monitor about a guest that makes no progress.
const STATE_LIMIT: Duration = Duration::from_secs(5);

/// The memory of an inner guest. Huge pages shorten its start: QEMU maps each page behind the IOMMU with a request of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Preallocated from hugetlbfs.
    HugePages,
    /// Anonymous, with transparent huge pages.
    Transparent,
}

impl Memory {
    /// QEMU's option for a backend with the ID `memory`.
    fn backend(self) -> String {
        match self {
            Self::HugePages => format!(
                "memory-backend-file,id=memory,size={MEMORY}M,mem-path={},prealloc=on,share=on",
                super::HUGE_PAGES
            ),
            Self::Transparent => format!("memory-backend-ram,id=memory,size={MEMORY}M"),
        }
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::HugePages => "hugetlbfs",
            Self::Transparent => "transparent huge pages",
        })
    }
}

/// What an inner guest does after it has loaded xe and worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// It powers off.
    Work,
    /// It repeats short work until it is killed.
    Rounds,
    /// Its VF is behind a root port. It waits until the VF has been unplugged and added again, and works again.
    Unplug,
}

impl Task {
    /// The word by which the guest's init knows it.
    fn word(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Rounds => "rounds",
            Self::Unplug => "unplug",
        }
    }
}

/// Configuration of an inner guest.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// Name of its files, without `/`.
    pub name: String,
    /// PCI address of the VF in the outer guest.
    pub address: String,
    /// Its memory.
    pub memory: Memory,
    /// Its task.
    pub task: Task,
    /// Its work: the checks with this text in their names; all if it is empty.
    pub only: &'static str,
    /// Clock parameters for its kernel, which are the outer guest's.
    pub clock: String,
}

impl Config {
    fn device(&self) -> Vec<String> {
        let vf = format!("vfio-pci,host={},id={VF}", self.address);
        match self.task {
            Task::Unplug => vec![format!("pcie-root-port,id={PORT},slot=1,addr={VF_SLOT}"), format!("{vf},bus={PORT}")],
            Task::Work | Task::Rounds => vec![format!("{vf},addr={VF_SLOT}")],
        }
    }

    /// QEMU's arguments, with the inner guest's files in `folder`.
    fn arguments(&self, folder: &Path) -> Vec<String> {
        let file = |what: &str| self.file(folder, what).display().to_string();
        let append = format!("{ARGUMENTS} {} task={} only={}", self.clock, self.task.word(), self.only);
        let mut arguments: Vec<String> = [
            "-machine",
            "q35,memory-backend=memory",
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-smp",
            "1",
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
            // As for the outer guest: the BARs of the VF need more address space than QEMU's default.
            "-global",
            "q35-pcihost.pci-hole64-size=4T",
            "-kernel",
            KERNEL,
            "-initrd",
            INITRD,
        ]
        .map(str::to_owned)
        .into();
        arguments.extend(["-m".into(), format!("{MEMORY}M"), "-object".into(), self.memory.backend()]);
        arguments.extend(["-append".into(), append]);
        arguments.extend(["-serial".into(), format!("file:{}", file("console"))]);
        arguments.extend(["-chardev".into(), format!("file,id=control,path={}", file("control"))]);
        arguments.extend(["-device", CONTROL, "-device", "virtserialport,chardev=control"].map(str::to_owned));
        arguments.extend(["-qmp".into(), format!("unix:{},server=on,wait=off", file("monitor"))]);
        for device in self.device() {
            arguments.extend(["-device".into(), device]);
        }
        arguments
    }

    fn file(&self, folder: &Path, what: &str) -> PathBuf {
        folder.join(format!("inner-{}-{what}", self.name))
    }
}

/// Gives the calling thread, and those that it creates, the policy SCHED_IDLE. A thread that wakes up waits for the end
/// of the running task's slice ([`super::SLICE`]), except that it preempts a task of this policy. xe clears a VF's memory
/// after a reset in some hundred jobs, and gives the VF up after 5 s (xe: pf_get_default_timeout), so its threads must not
/// wait for an inner guest in each job.
fn yield_to_kernel_threads() -> io::Result<()> {
    // The kernel's struct sched_param. musl's has other members, and its sched_setscheduler fails with ENOSYS.
    let priority: libc::c_int = 0;
    // SAFETY: the system call only reads the structure, during the call; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The lines that an inner guest has written.
#[derive(Debug, Default)]
pub(super) struct Control {
    lines: Vec<String>,
}

impl Control {
    /// Takes the text of the control file so far. Returns the complete lines that are new.
    fn take(&mut self, text: &str) -> Vec<String> {
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<String> = complete.lines().map(|line| line.trim_end().to_owned()).collect();
        let new = lines.get(self.lines.len()..).unwrap_or_default().to_vec();
        self.lines.extend(new.iter().cloned());
        new
    }

    /// Returns the rest of every line that starts with `word`.
    fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(move |line| {
            let rest = line.strip_prefix(word)?;
            (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
        })
    }

    fn has(&self, word: &str) -> bool {
        self.all(word).next().is_some()
    }
}

/// A running inner guest. Dropping it kills QEMU, and copies the guest's files if that was requested.
pub(super) struct Inner {
    config: Config,
    folder: PathBuf,
    save: Option<PathBuf>,
    qemu: Child,
    control: Control,
    started: Instant,
    /// When it wrote its latest line, or was started.
    latest: Instant,
    /// Number of checks so far.
    checks: usize,
}

impl Inner {
    /// Starts QEMU with its files in `folder`, which are copied to `save` when the guest has ended.
    pub fn start(config: Config, folder: &Path, save: Option<&Path>) -> Result<Self> {
        // A step that is repeated must not read the lines of the guest before.
        for what in FILES {
            let _ = fs::remove_file(config.file(folder, what));
        }
        let messages = File::create(config.file(folder, "qemu"))?;
        let mut command = Command::new(QEMU);
        command.args(config.arguments(folder)).stdin(Stdio::null()).stdout(messages.try_clone()?).stderr(messages);
        // SAFETY: the closure makes one system call, and allocates nothing.
        unsafe { command.pre_exec(yield_to_kernel_threads) };
        let qemu = command.spawn().with_context(|| format!("{QEMU} cannot be started"))?;
        let (folder, save) = (folder.to_owned(), save.map(Path::to_owned));
        let started = Instant::now();
        Ok(Self { config, folder, save, qemu, control: Control::default(), started, latest: started, checks: 0 })
    }

    fn text(&self, what: &str) -> String {
        let bytes = fs::read(self.config.file(&self.folder, what)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads new lines and prints the guest's progress.
    fn read(&mut self) {
        for line in self.control.take(&self.text("control")) {
            self.latest = Instant::now();
            let (word, _) = line.split_once(' ').unwrap_or((&line, ""));
            let what = match word {
                "up" => "is up",
                "xe" => "has loaded xe",
                "report" => "has worked",
                "gone" => "has lost its VF",
                "back" => "has its VF again",
                "ok" => {
                    self.checks += 1;
                    if !self.checks.is_multiple_of(PROGRESS) {
                        continue;
                    }
                    &format!("has passed {} checks", self.checks)
                }
                _ => continue,
            };
            println!("  inner guest {} {what} after {:.1} s", self.config.name, self.started.elapsed().as_secs_f64());
        }
    }

    /// Blocks until the guest has written a line that starts with `word`. Fails if it writes no line for `limit`.
    pub fn wait_for(&mut self, word: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while !self.poll(word, start, limit)? {
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Reads new lines. Returns whether one that starts with `word` has been written. Fails if the guest has not written
    /// it and has ended, or has written no line for `limit`, counted from `start` at the earliest.
    pub fn poll(&mut self, word: &str, start: Instant, limit: Duration) -> Result<bool> {
        // Before the lines are read, so that those written before the exit are found.
        let running = self.check_running();
        self.read();
        if self.control.has(word) {
            return Ok(true);
        }
        running?;
        if self.latest.max(start).elapsed() >= limit {
            let state = State::capture(self.qemu.id(), self.monitor(STATE_LIMIT));
            // The run has failed already.
            let _ = fs::write(self.config.file(&self.folder, "state"), &state.text);
            if state.delivered_twice() {
                return Err(DeliveredTwice { guest: self.config.name.clone() }.into());
            }
            bail!("no line {word:?}, nor another, within {} s: {}", limit.as_secs(), self.last_words());
        }
        Ok(false)
    }

    /// Fails if QEMU has ended.
    pub fn check_running(&mut self) -> Result<()> {
        match self.qemu.try_wait()? {
            Some(status) => bail!("QEMU has ended ({status}): {}", self.last_words()),
            None => Ok(()),
        }
    }

    /// The last message of QEMU or of the guest's kernel.
    fn last_words(&self) -> String {
        let last = |text: String| text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        last(self.text("qemu")).or_else(|| last(self.text("console"))).unwrap_or_else(|| "no message".into())
    }

    /// Connects to QEMU's monitor.
    pub fn monitor(&self, limit: Duration) -> Result<Monitor> {
        Monitor::connect(&self.config.file(&self.folder, "monitor"), limit)
    }

    /// Kills QEMU with SIGKILL. Returns when it has ended, and the kernel has closed the VF.
    pub fn kill(&mut self) -> Result<()> {
        self.qemu.kill()?;
        self.qemu.wait()?;
        Ok(())
    }

    /// Blocks until the guest has ended, at most for `limit`.
    pub fn finish(&mut self, limit: Duration) -> Result<()> {
        self.wait_for("end", limit)?;
        let start = Instant::now();
        while self.qemu.try_wait()?.is_none() {
            if start.elapsed() >= limit {
                bail!("QEMU has not ended {} s after its guest's last line", limit.as_secs());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Returns the checks so far. The guest must have worked `rounds` times.
    pub fn checks(&self, rounds: usize) -> Result<Vec<CheckResult>> {
        outcomes(&self.config.name, &self.control, &self.text("console"), rounds)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Both fail if QEMU has already ended.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        for what in FILES {
            if let Some(folder) = &self.save {
                // The results do not depend on the copies, and a guest that did not start has not all files.
                let _ =
                    fs::copy(self.config.file(&self.folder, what), self.config.file(folder, &format!("{what}.log")));
            }
        }
    }
}

/// Returns the checks of the inner guest `name`, which has worked in `rounds` rounds.
fn outcomes(name: &str, control: &Control, console: &str, rounds: usize) -> Result<Vec<CheckResult>> {
    let own = |what: &str, problem: Option<String>, detail: String, seconds: f64| CheckResult {
        engine: name.to_owned(),
        what: what.to_owned(),
        ok: problem.is_none(),
        detail: problem.unwrap_or(detail),
        seconds,
        ..CheckResult::default()
    };
    let probe = control.all("xe").next().context("xe was not loaded")?;
    let probed = (probe.split(' ').next() != Some("0")).then(|| format!("modprobe xe ended with status {probe}"));
    let mut all = vec![own("xe", probed, "probed".into(), 0.0)];
    let reports: Vec<&str> = control.all("report").collect();
    anyhow::ensure!(reports.len() == rounds, "{} of {rounds} reports of work", reports.len());
    for text in reports {
        let report: WorkReport = serde_json::from_str(text).context("the report of work cannot be parsed")?;
        anyhow::ensure!(!report.results.is_empty(), "the report of work is empty");
        all.extend(report.results);
    }
    let messages: u64 =
        control.all("msi").flat_map(|line| line.split_whitespace()).filter_map(|count| count.parse::<u64>().ok()).sum();
    let silent = (messages == 0).then(|| "the VF raised no MSI".to_owned());
    all.push(own("msi", silent, format!("{messages} MSIs"), 0.0));
    let taint = control.all("taint").last().and_then(|mask| mask.parse::<u64>().ok());
    let tainted = (taint != Some(kernel_log::FORCE_PROBE_TAINT)).then(|| format!("the taint mask is {taint:?}"));
    all.push(own("taint", tainted, String::new(), 0.0));
    let problems = kernel_log::problems(console, None);
    let first = problems.first().map(|problem| format!("{} unexpected lines, first: {}", problems.len(), problem.line));
    all.push(own("kernel log", first, String::new(), 0.0));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(task: Task) -> Config {
        Config {
            name: "vf1".into(),
            address: "0000:00:01.1".into(),
            memory: Memory::Transparent,
            task,
            only: "stores",
            clock: "lpj=4".into(),
        }
    }

    fn report(ok: bool) -> String {
        let result =
            CheckResult { engine: "rcs0".into(), what: "stores".into(), ok, seconds: 0.1, ..CheckResult::default() };
        let report = WorkReport {
            kernel: "7.2".into(),
            card: None,
            ok,
            picture_sha256: None,
            results: vec![result.clone(), result],
        };
        format!("report {}", serde_json::to_string(&report).unwrap())
    }

    #[test]
    fn arguments_name_the_vf_and_the_task() {
        let plain = config(Task::Work).arguments(Path::new("/tmp")).join(" ");
        assert!(plain.contains("-device vfio-pci,host=0000:00:01.1,id=vf,addr=10.0"), "{plain}");
        assert!(plain.contains("lpj=4 task=work only=stores") && plain.contains("memory-backend-ram"), "{plain}");
        assert!(
            plain.contains("-serial file:/tmp/inner-vf1-console -chardev file,id=control,path=/tmp/inner-vf1-control")
        );
        let unplug =
            Config { memory: Memory::HugePages, ..config(Task::Unplug) }.arguments(Path::new("/tmp")).join(" ");
        assert!(
            unplug.contains("id=root-port,slot=1,addr=10.0 -device vfio-pci,host=0000:00:01.1,id=vf,bus=root-port"),
            "{unplug}"
        );
        assert!(unplug.contains("task=unplug") && unplug.contains("mem-path=/dev/hugepages"), "{unplug}");
    }

    #[test]
    fn only_complete_lines_are_taken_once() {
        let mut control = Control::default();
        assert_eq!(control.take("up 1.2\r\nxe 0"), ["up 1.2"]);
        assert_eq!(control.take("up 1.2\r\nxe 0 3.4\r\n"), ["xe 0 3.4"]);
        assert_eq!(control.take("up 1.2\r\nxe 0 3.4\r\n"), [""; 0]);
        assert!(control.has("xe") && !control.has("x"));
    }

    #[test]
    fn each_problem_of_an_inner_guest_fails_one_check() {
        let good = format!("up 1\nxe 0 2\n{}\nmsi 7\ntaint 64\nend\n", report(true));
        let failed = |text: &str, console: &str| {
            let mut control = Control::default();
            control.take(text);
            let all = outcomes("vf1", &control, console, 1).unwrap();
            all.into_iter().filter(|outcome| !outcome.ok).map(|outcome| outcome.what).collect::<Vec<_>>()
        };
        assert_eq!(failed(&good, ""), [""; 0]);
        assert_eq!(failed(&good.replace("xe 0", "xe 1"), ""), ["xe"]);
        assert_eq!(failed(&good.replace(&report(true), &report(false)), ""), ["stores", "stores"]);
        assert_eq!(failed(&good.replace("msi 7", "msi 0 0"), ""), ["msi"]);
        assert_eq!(failed(&good.replace("taint 64", "taint 512"), ""), ["taint"]);
        assert_eq!(failed(&good, "[ 9.0] xe 0000:00:10.0: [drm] *ERROR* no\n"), ["kernel log"]);
        assert_eq!(failed(&good, "[ 9.0] executable axe: timed out\n"), [""; 0], "no line of xe");
        let mut control = Control::default();
        control.take(&good);
        assert_eq!(outcomes("vf1", &control, "", 2).unwrap_err().to_string(), "1 of 2 reports of work");
    }
}
