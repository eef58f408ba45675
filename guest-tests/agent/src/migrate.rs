// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest migrate`: enables virtual functions, saves the first one, gives it another range of the GGTT, restores and
//! resumes it, by the files that xe's PF driver has in debugfs (`xe_sriov_pf_debugfs.c`, `xe_tile_sriov_pf_debugfs.c`). The
//! function's driver, which is in the same guest, recovers from the migration; the program that uses it is stopped
//! meanwhile, as the processors of a guest of its own would be.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::checks::CheckEnvironment;
use super::checks::smoke::{brief, one_of_each_class};
use super::device::Device;
use super::report::{self, StepReport, StepsReport};
use super::sysfs::Sysfs;
use crate::pci_address::CARD_ADDRESS;

/// What the VF's driver logs when it has recovered, and when it has not (`xe_gt_sriov_vf.c`).
const RECOVERED: &str = "migration recovery ended";
const FAILED: &str = "migration recovery failed";
/// Time for the recovery.
const RECOVERY: Duration = Duration::from_secs(30);
/// Polling interval of the kernel log.
const POLL: Duration = Duration::from_millis(2);
/// Time that the load has to be on the engines before a migration.
const BUSY: Duration = Duration::from_millis(300);
/// Largest piece of a stream that is written at once.
const PIECE: usize = 1 << 20;

/// The function that is migrated.
const VF: u8 = 1;
/// What each function is provisioned with: file and value. The GGTT has room for a further range.
const GGTT_QUOTA: (&str, &str) = ("tile0/ggtt_quota", "268435456");
const QUOTAS: [(&str, &str); 4] = [
    GGTT_QUOTA,
    ("tile0/vram_quota", "100663296"),
    ("tile0/gt0/contexts_quota", "256"),
    ("tile0/gt0/doorbells_quota", "4"),
];

/// How many functions, and how often.
#[derive(Debug, clap::Args)]
pub struct Migrate {
    /// Number of virtual functions to enable. The first one is migrated, the others work on. The card has at least one more, which
    /// takes the range of the GGTT that the first one leaves
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=62))]
    vfs: u8,
    /// Number of migrations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// PCI address of the physical function
    #[arg(long, value_name = "ADDRESS", default_value = CARD_ADDRESS)]
    pf: String,
    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Times of a migration in seconds by the guest's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Until the PF driver has seen that the function is paused.
    pause: f64,
    /// Until the stream is read.
    save: f64,
    /// Until the stream is written and applied.
    restore: f64,
    /// Bytes of the stream.
    bytes: usize,
}

/// Migrates the function, and prints and reports a step for each migration. Returns true if all were right, and so was the work of
/// all functions.
pub fn run(migrate: &Migrate) -> Result<bool> {
    let mut steps = Vec::new();
    let done = Migration::begin(migrate, &mut steps).and_then(|migration| migration.run(migrate, &mut steps));
    if let Err(error) = done {
        // That of the step that has not ended.
        let name = if steps.is_empty() { "virtual functions".to_owned() } else { format!("step {}", steps.len() + 1) };
        add(&mut steps, StepReport { name, problem: Some(format!("{error:#}")), ..StepReport::default() });
    }
    let report = StepsReport { ok: steps.iter().all(|step| step.ok), steps };
    if let Some(path) = &migrate.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

/// Adds a step and prints its line.
fn add(steps: &mut Vec<StepReport>, step: StepReport) {
    println!("{}", step.line());
    steps.push(step);
}

/// The functions with their work.
struct Migration {
    sysfs: Sysfs,
    files: Files,
    /// PCI address and render node of each function.
    nodes: Vec<(String, PathBuf)>,
    loads: Vec<BusyFunction>,
}

impl Migration {
    /// Enables the functions and keeps them busy.
    fn begin(migrate: &Migrate, steps: &mut Vec<StepReport>) -> Result<Migration> {
        let begin = Instant::now();
        let (sysfs, files) = (Sysfs::default(), Files::new(&migrate.pf));
        for (vf, (name, value)) in (1..=migrate.vfs).flat_map(|vf| QUOTAS.map(|quota| (vf, quota))) {
            files.put(vf, name, value)?;
        }
        sysfs.set_vfs(&migrate.pf, migrate.vfs)?;
        let mut nodes = Vec::new();
        for vf in 1..=migrate.vfs {
            let address = sysfs.virtual_function(&migrate.pf, vf);
            let address = address.with_context(|| format!("virtual function {vf} did not appear"))?;
            let node = sysfs.render_node(&address).with_context(|| format!("xe does not drive {address}"))?;
            nodes.push((address, Path::new("/dev/dri").join(node)));
        }
        let loads = nodes.iter().map(|(_, node)| BusyFunction::start(node)).collect::<Result<Vec<_>>>()?;
        let (name, seconds) = ("virtual functions enabled and busy".to_owned(), begin.elapsed().as_secs_f64());
        add(steps, StepReport { name, ok: true, seconds, ..StepReport::default() });
        Ok(Migration { sysfs, files, nodes, loads })
    }

    fn run(mut self, migrate: &Migrate, steps: &mut Vec<StepReport>) -> Result<()> {
        let mut log = KernelLog::open()?;
        for number in 1..=migrate.rounds {
            let begin = Instant::now();
            let detail = self.migrate(migrate.vfs + 1, number % 2 == 1, &mut log)?;
            let (name, seconds) = (format!("migration {number}"), begin.elapsed().as_secs_f64());
            add(steps, StepReport { name, ok: true, seconds, detail, ..StepReport::default() });
        }
        let begin = Instant::now();
        for load in self.loads {
            load.end()?;
        }
        for (address, node) in &self.nodes {
            works(node).with_context(|| format!("{address} after the migrations"))?;
        }
        self.sysfs.set_vfs(&migrate.pf, 0)?;
        let (name, seconds) = ("results of all functions".to_owned(), begin.elapsed().as_secs_f64());
        add(steps, StepReport { name, ok: true, seconds, ..StepReport::default() });
        Ok(())
    }

    /// Migrates the first function. Returns figures.
    fn migrate(&mut self, spare: u8, takes: bool, log: &mut KernelLog) -> Result<String> {
        let (Some((address, _)), Some(load)) = (self.nodes.first(), self.loads.first_mut()) else {
            bail!("there is no virtual function");
        };
        let before = self.files.range(address)?;
        let stopped = load.stop()?;
        let Times { pause, save, restore, bytes } = self.files.migrate(VF, spare, takes)?;
        let begin = Instant::now();
        log.wait()?;
        let recovery = begin.elapsed().as_secs_f64();
        let range = self.files.range(address)?;
        ensure!(range != before, "the range of the GGTT is {before}, as before");
        load.go_on(stopped)?;
        Ok(format!(
            "{bytes} bytes, pause {pause:.3} s, save {save:.2} s, restore {restore:.2} s, recovery {recovery:.3} s, GGTT {range}"
        ))
    }
}

/// A store, a copy and a fence on an engine of each class.
fn works(node: &Path) -> Result<()> {
    let device = Device::open(Some(node))?;
    let engines = one_of_each_class(&device.engines()?);
    let env = CheckEnvironment { device: &device, timeout: Duration::from_secs(20), reference_clock: 0 };
    for (engine, outcome) in brief(&env, &engines, 0)? {
        outcome.with_context(|| engine.name())?;
    }
    Ok(())
}

/// The driver's files.
struct Files {
    folder: PathBuf,
    debugfs: PathBuf,
}

impl Files {
    fn new(pf: &str) -> Files {
        let debugfs = PathBuf::from("/sys/kernel/debug/dri");
        Files { folder: debugfs.join(pf).join("sriov"), debugfs }
    }

    fn of(&self, vf: u8, name: &str) -> PathBuf {
        self.folder.join(format!("vf{vf}")).join(name)
    }

    fn put(&self, vf: u8, name: &str, value: &str) -> Result<()> {
        let path = self.of(vf, name);
        fs::write(&path, value).with_context(|| format!("write of {value} to {}", path.display()))
    }

    fn get(&self, vf: u8, name: &str) -> Result<Vec<u8>> {
        let path = self.of(vf, name);
        fs::read(&path).with_context(|| format!("read of {}", path.display()))
    }

    /// The range of the GGTT that the function's driver uses.
    fn range(&self, address: &str) -> Result<String> {
        let path = self.debugfs.join(address).join("tile0/gt0/vf/self_config");
        let text = fs::read_to_string(&path).with_context(|| format!("read of {}", path.display()))?;
        let range = text.lines().find_map(|line| line.trim().strip_prefix("GGTT range:"));
        Ok(range.with_context(|| format!("no range of the GGTT in {text:?}"))?.trim().to_owned())
    }

    /// Saves the function, moves it, restores and resumes it. `takes`: its old range is given to the spare function; otherwise that
    /// gives back the one that it has.
    fn migrate(&self, vf: u8, spare: u8, takes: bool) -> Result<Times> {
        let (quota, bytes) = GGTT_QUOTA;
        let begin = Instant::now();
        let mut last = 0.0;
        let mut since = || {
            let now = begin.elapsed().as_secs_f64();
            now - std::mem::replace(&mut last, now)
        };
        self.put(vf, "pause", "1")?;
        let pause = since();
        self.put(vf, "save", "1")?;
        let stream = self.get(vf, "migration_data")?;
        // Ends the save: an error if not all of it was read.
        self.get(vf, "save")?;
        let save = since();
        // The driver gives out the highest range that is free.
        let of_spare = if takes { bytes } else { "0" };
        for (function, value) in [(vf, "0"), (spare, of_spare), (vf, bytes)] {
            self.put(function, quota, value)?;
        }
        self.put(vf, "restore", "1")?;
        let path = self.of(vf, "migration_data");
        let mut file = OpenOptions::new().write(true).open(&path)?;
        for piece in stream.chunks(PIECE) {
            file.write_all(piece).with_context(|| format!("write of {}", path.display()))?;
        }
        drop(file);
        self.get(vf, "restore")?;
        let restore = since();
        self.put(vf, "resume", "1")?;
        Ok(Times { pause, save, restore, bytes: stream.len() })
    }
}

/// A program that keeps all engines of a function busy.
struct BusyFunction(Child);

/// The program is stopped.
struct Stopped;

impl BusyFunction {
    fn start(node: &Path) -> Result<BusyFunction> {
        let device = Device::open(Some(node))?;
        let loads: Vec<String> = device.engines()?.iter().map(|engine| format!("{}=80", engine.name())).collect();
        // By its name: the image has a script that runs it by the loader of its libraries.
        let mut command = Command::new("arctic");
        command.args(["guest", "load", "--until-eof", "--device"]).arg(node).args(loads);
        let mut load = BusyFunction(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?);
        thread::sleep(Duration::from_secs(2));
        load.runs()?;
        Ok(load)
    }

    /// Fails if the program has ended.
    fn runs(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the program that uses the function has ended: {status}"),
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.0), signal).context("the program that uses the function cannot be signalled")
    }

    fn stop(&mut self) -> Result<Stopped> {
        thread::sleep(BUSY);
        self.runs()?;
        self.signal(Signal::STOP)?;
        Ok(Stopped)
    }

    fn go_on(&mut self, Stopped: Stopped) -> Result<()> {
        self.signal(Signal::CONT)?;
        thread::sleep(BUSY);
        self.runs()
    }

    /// Lets the program end. It fails if one of its batches has not ended well.
    fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        ensure!(status.success(), "the program that uses the function: {status}");
        Ok(())
    }
}

impl Drop for BusyFunction {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.signal(Signal::CONT);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kernel's log from now on.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Result<KernelLog> {
        let path = "/dev/kmsg";
        let mut options = OpenOptions::new();
        let file =
            options.read(true).custom_flags(libc::O_NONBLOCK).open(path).with_context(|| format!("open {path}"))?;
        let mut log = KernelLog(file);
        while log.line()?.is_some() {}
        Ok(log)
    }

    /// The next line, if there is one.
    fn line(&mut self) -> Result<Option<String>> {
        let mut bytes = [0; 8192];
        match self.0.read(&mut bytes) {
            Ok(read) => Ok(Some(String::from_utf8_lossy(&bytes[..read]).into_owned())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            // Lines were overwritten.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => Ok(Some(String::new())),
            Err(error) => Err(error).context("read of the kernel's log"),
        }
    }

    /// Waits until the function's driver has recovered.
    fn wait(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < RECOVERY {
            match self.line()? {
                Some(line) if line.contains(RECOVERED) => return Ok(()),
                Some(line) if line.contains(FAILED) => bail!("the function's driver: {}", line.trim()),
                Some(_) => {}
                None => thread::sleep(POLL),
            }
        }
        bail!("the function's driver has not logged `{RECOVERED}` within {} s", RECOVERY.as_secs())
    }
}
