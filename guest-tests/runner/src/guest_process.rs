// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's server process and the guests of a run: obtains the components, starts server and VMs, delivers the
//! guests' events, and shuts everything down.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::artifacts::{self, Own, Parts, Suite};
use crate::cache::Cache;
use crate::card::{self, CardProcess, CardReport, Functions, Memory, Served};
use crate::devices::Place;
use crate::driver::Driver;
use crate::image::{self, Extra};
use crate::interrupt;
use crate::monitor::Monitor;
use crate::number::count;
use crate::process::{self, POLL_INTERVAL};
use crate::progress::Progress;
use crate::qemu::{Event, Machine, Port, Running, log_file};
use crate::tsc;
use crate::viommu::{self, Viommu};

/// Options common to all scenarios.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `arctic` program: serves the card and is installed in the guest.
    pub program: PathBuf,
    /// User-supplied components.
    pub own: Own,
    /// Suites with other kernels for the PF's guest, and for the guests of VFs, if these have guests of their own.
    pub apart: Apart,
    /// The card's file or name for `arctic serve --card`; `None` boots without a card.
    pub card: Option<String>,
    /// PCI device ID of the card.
    pub device: u16,
    /// Whether the card is an integrated GPU: drivers bind to it without options.
    pub integrated: bool,
    /// Where the card's functions are in each guest.
    pub place: Place,
    /// Whether QEMU may post writes to the card's BARs.
    pub posted_writes: bool,
    /// The card's functions and their assignment to guests.
    pub functions: Functions,
    /// The guests' driver for the card.
    pub driver: Driver,
    /// Directory with `i915/dg2_guc_70.bin`; if `None`, the program writes placeholder firmware.
    pub firmware: Option<PathBuf>,
    /// Memory of each guest in MiB; if `None`, a default that depends on the guest's functions.
    pub memory: Option<u32>,
    /// Additional kernel arguments.
    pub append: String,
    /// Host directory to mount on /share.
    pub share: Option<PathBuf>,
    /// Time limit of each stage of a run (boot, driver load, work, shutdown).
    pub limit: Duration,
    /// Directory for logs; if `None`, a new directory in the cache.
    pub log: Option<PathBuf>,
    /// File to which the card captures all its events; `None` disables the capture.
    pub trace: Option<PathBuf>,
    /// What the card does with user contexts that have commands it does not execute, `skip` or `fault`; if `None`, its
    /// card file determines it.
    pub unmodelled: Option<String>,
    /// An IOMMU in each guest, which translates the card's functions.
    pub viommu: Option<Viommu>,
    /// Whether the guests have Intel's OpenCL and Level Zero drivers.
    pub compute: bool,
    /// Packages of Debian sid that the root with these drivers has besides.
    pub packages: Vec<String>,
    /// Additional arguments of QEMU, separated by white space.
    pub qemu_arguments: String,
}

/// Kernels of the guests in a run with several guests, if they have another one than [`Options::own`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// The suite with the kernel of the PF's guest.
    pub pf: Option<Suite>,
    /// The suite with the kernel of the VFs' guests.
    pub vfs: Option<Suite>,
}

impl Options {
    /// The defaults with `program` as the server of `card`, a card file or its name; `device` is its PCI device ID.
    pub fn new(program: PathBuf, card: &str, device: u16) -> Self {
        Self {
            program,
            own: Own::default(),
            apart: Apart::default(),
            card: Some(card.into()),
            device,
            integrated: false,
            place: Place::FIRST,
            posted_writes: true,
            functions: Functions::Physical,
            driver: Driver::default(),
            firmware: None,
            memory: None,
            append: String::new(),
            share: None,
            limit: Duration::from_secs(120),
            log: None,
            trace: None,
            unmodelled: None,
            viommu: None,
            compute: false,
            packages: Vec::new(),
            qemu_arguments: String::new(),
        }
    }

    /// Memory in MiB of a guest for which `default` is enough without the drivers of [`Self::compute`].
    pub fn guest_memory(&self, default: u32) -> u32 {
        self.memory.unwrap_or(if self.compute { default + MEMORY_OF_COMPUTE } else { default })
    }

    /// The options of the card's server; `None` without a card.
    pub fn served(&self) -> Option<Served<'_>> {
        Some(Served {
            program: &self.program,
            card: self.card.as_deref()?,
            functions: self.functions,
            place: self.place,
            trace: self.trace.as_deref(),
            unmodelled: self.unmodelled.as_deref(),
            viommu: self.viommu,
        })
    }
}

/// Guest memory in MiB of a guest with the PF, or with a single function.
const MEMORY: u32 = 2048;
/// Additional memory in MiB per VF in the same guest.
const MEMORY_OF_A_VF: u32 = 32;
/// Guest memory in MiB of a guest with inner guests: two of these in huge pages, one in other memory, and the image with
/// QEMU.
const MEMORY_OF_PASSTHROUGH: u32 = 2560;
/// Additional memory in MiB of a guest with OpenCL's drivers: their libraries, and the compiler.
const MEMORY_OF_COMPUTE: u32 = 1024;
/// Memory in MiB of each guest in a run with several guests.
pub const MEMORY_OF_MANY: u32 = 1024;

/// A guest's role in a run: its name and its functions of the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    /// `pf`, `vf1`…; empty for the only guest of a run.
    pub name: String,
    /// The sockets of its functions, first function first.
    pub sockets: Vec<String>,
    /// Default guest memory in MiB.
    pub memory: u32,
}

impl GuestSpec {
    /// The only guest of a run: with the PF, or with the first VF if the card's server process provisions the VFs.
    pub fn only(functions: Functions) -> Self {
        let sockets = match functions {
            Functions::Provisioned(_) => vec![Functions::virtual_socket(1)],
            _ => functions.physical_sockets(),
        };
        let base = if let Functions::Passthrough(_) = functions { MEMORY_OF_PASSTHROUGH } else { MEMORY };
        let more = MEMORY_OF_A_VF * (count(sockets.len()) - 1);
        Self { name: String::new(), sockets, memory: base + more }
    }

    /// The PF guest in a run with separate VF guests.
    pub fn physical(functions: Functions) -> Self {
        Self { name: "pf".into(), sockets: functions.physical_sockets(), memory: MEMORY_OF_MANY }
    }

    /// The guest of VF `vf` in a run with several guests.
    pub fn virtual_function(vf: u8) -> Self {
        Self { name: format!("vf{vf}"), sockets: vec![Functions::virtual_socket(vf)], memory: MEMORY_OF_MANY }
    }

    /// Whether this is the guest of one VF in a run with several guests.
    fn is_vf(&self) -> bool {
        self.name.starts_with("vf")
    }

    /// Returns the name of this guest's file or directory `what`.
    pub fn file(&self, what: &str) -> String {
        match self.name.as_str() {
            "" => what.to_owned(),
            name => format!("{what}-{name}"),
        }
    }
}

/// The resources shared by the guests of one run.
pub struct Setup<'a> {
    options: &'a Options,
    /// The components in use.
    pub parts: Parts,
    /// Those of the VFs' guests, if these may have another kernel.
    vf_parts: Option<Parts>,
    cache: Cache,
    compute: Option<ComputeDrive>,
    /// Directory of this run's logs.
    pub folder: PathBuf,
}

/// The drive with the compute stack.
struct ComputeDrive {
    image: PathBuf,
    versions: BTreeMap<String, String>,
    note: Option<String>,
}

impl<'a> Setup<'a> {
    /// Obtains the components and creates the run's directory, which is named after `scenario`.
    pub fn prepare(options: &'a Options, scenario: &str, progress: &dyn Progress) -> Result<Self> {
        interrupt::install();
        if let Some(share) = options.share.as_ref().filter(|share| !share.is_dir()) {
            bail!("the directory to share, {}, does not exist", share.display());
        }
        let cache = Cache::open()?;
        let of = |suite: Option<Suite>| match suite {
            Some(suite) => {
                let own = Own { kernel: None, modules: None, suite: Some(suite), ..options.own.clone() };
                artifacts::obtain(&own, &cache, progress)
            }
            None => artifacts::obtain(&options.own, &cache, progress),
        };
        let Apart { pf, vfs } = options.apart;
        let parts = of(pf)?;
        let vf_parts = if (pf, vfs) == (None, None) { None } else { Some(of(vfs)?) };
        let compute = match options.compute {
            true => {
                let stack = artifacts::compute(&cache, options.own.newest, &options.packages, progress)?;
                let image = image::compute::obtain(&stack, &parts.tools.busybox, &cache, progress)?;
                Some(ComputeDrive { image, note: stack.note(), versions: stack.versions })
            }
            false => None,
        };
        let folder = match &options.log {
            Some(folder) => folder.clone(),
            None => cache.new_run(scenario)?,
        };
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        let folder = fs::canonicalize(folder)?;
        Ok(Self { options, parts, vf_parts, cache, compute, folder })
    }

    /// The components of the guest in `spec`.
    pub fn parts_of(&self, spec: &GuestSpec) -> &Parts {
        self.vf_parts.as_ref().filter(|_| spec.is_vf()).unwrap_or(&self.parts)
    }

    /// Versions of the components.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = self.parts.versions.clone();
        versions.extend(self.vf_parts.iter().map(|parts| ("kernel of VFs".to_owned(), parts.kernel.release.clone())));
        versions.extend(self.compute.iter().flat_map(|drive| drive.versions.clone()));
        versions
    }

    /// What is to be said about the versions of the compute stack.
    pub fn compute_note(&self) -> Option<&str> {
        self.compute.as_ref()?.note.as_deref()
    }

    /// The guests' driver for the card.
    pub fn driver(&self) -> Driver {
        self.options.driver
    }

    /// Whether the guest passes VFs on to inner guests.
    fn passthrough(&self) -> bool {
        matches!(self.options.functions, Functions::Passthrough(_))
    }

    /// Returns the host directory that is mounted on /mnt of the guest in `spec`, creating it if necessary.
    pub fn results(&self, spec: &GuestSpec) -> Result<PathBuf> {
        let results = self.folder.join(spec.file("results"));
        fs::create_dir_all(&results).with_context(|| format!("{} cannot be created", results.display()))?;
        Ok(results)
    }

    /// Builds a bootable image for the guest in `spec`. `job` is the script that init runs; `tests` names additional IGT programs.
    pub fn build_image(
        &self,
        spec: &GuestSpec,
        job: String,
        tests: &[String],
        progress: &dyn Progress,
    ) -> Result<File> {
        // An unnamed file: it is freed when the last process closes it, even after a crash.
        let mut image = tempfile::tempfile_in(&self.folder).context("the image file cannot be created")?;
        let placeholder = TempDir::with_prefix_in("firmware-", &self.folder)?;
        let firmware = match (&self.options.firmware, &self.options.card) {
            (Some(folder), _) => Some(folder.clone()),
            (None, None) => None,
            (None, Some(_)) => {
                let mut command = Command::new(&self.options.program);
                process::run_lines(
                    command.args(["firmware", "--out"]).arg(placeholder.path()),
                    "arctic firmware",
                    |_| (),
                )?;
                Some(placeholder.path().to_owned())
            }
        };
        let extra = Extra {
            program: Some(self.options.program.clone()),
            firmware,
            driver: self.options.driver,
            forced: (!self.options.integrated).then_some(self.options.device),
            job,
            tests: tests.iter().cloned().collect(),
            share: self.options.share.is_some(),
            passthrough: self.passthrough(),
            compute: self.compute.is_some(),
        };
        image::build(self.parts_of(spec), &extra, &self.cache, &mut image, progress)?;
        Ok(image)
    }

    /// Starts the card's server process, and prints where the card can be watched. `number` counts the servers of the
    /// run, from 1.
    pub fn serve(&self, number: u32, progress: &dyn Progress) -> Result<Server> {
        let server = Server::start(self.options.served(), &log_file(&self.folder, "card", number))?;
        if let Some(folder) = server.folder() {
            progress.print_line(&card::line_of_a_card(folder));
        }
        Ok(server)
    }

    /// Boots a guest in `spec` with the `image` on the card of `server`. `number` counts the boots of the seat, from 1.
    pub fn boot(&self, spec: &GuestSpec, server: &Server, image: &File, number: u32) -> Result<RunningGuest> {
        let functions = match &server.card {
            Some(_) => spec.sockets.iter().map(|name| server.sockets.path().join(name)).collect(),
            None => Vec::new(),
        };
        let requester = Some(server.sockets.path().join(format!("{}.sock", viommu::REQUESTER)));
        let requester = requester.filter(|socket| socket.exists());
        let console = log_file(&self.folder, &spec.file("console"), number);
        let messages = log_file(&self.folder, &spec.file("qemu"), number);
        let machine = Machine {
            qemu: &self.parts.qemu,
            bios: self.parts.uefi.as_deref(),
            kernel: &self.parts_of(spec).kernel,
            image,
            memory: self.options.guest_memory(spec.memory),
            functions: &functions,
            place: self.options.place,
            results: &self.results(spec)?,
            share: self.options.share.as_deref(),
            compute: self.compute.as_ref().map(|drive| drive.image.as_path()),
            driver: self.options.driver,
            device: self.options.device,
            integrated: self.options.integrated,
            posted_writes: self.options.posted_writes,
            passthrough: self.passthrough(),
            viommu: self.options.viommu,
            requester: requester.as_deref(),
            further: &self.options.qemu_arguments,
            monitored: matches!(self.options.functions, Functions::Migrating { split: true, .. }),
            tsc_khz: tsc::host_khz(),
            append: &self.options.append,
            console: &console,
            messages: &messages,
        };
        let running = machine.start()?;
        Ok(RunningGuest { running, console, messages, started: Instant::now(), limit: self.options.limit })
    }
}

/// A running card server with its sockets, or no card for guests without one. Dropping it stops the card and removes
/// its sockets, so it must be dropped after the VMs that are connected to it.
pub struct Server {
    // Fields are dropped in this order.
    card: Option<CardProcess>,
    sockets: TempDir,
}

impl Server {
    /// Starts the server of `served`, with its messages in `log`.
    pub fn start(served: Option<Served<'_>>, log: &Path) -> Result<Self> {
        let sockets = card::sockets()?;
        let card = served.map(|served| CardProcess::start(&served, sockets.path(), log)).transpose()?;
        Ok(Self { card, sockets })
    }

    /// The directory of the card's sockets, if there is a card.
    pub fn folder(&self) -> Option<&Path> {
        self.card.is_some().then(|| self.sockets.path())
    }

    /// Fails if the card's server process has exited.
    pub fn check(&mut self) -> Result<()> {
        self.card.as_mut().map_or(Ok(()), CardProcess::check)
    }

    /// Current host memory of the card's server process.
    pub fn memory(&mut self) -> Option<Memory> {
        self.card.as_mut()?.memory()
    }

    /// Stops the card and reads its report.
    pub fn stop(mut self) -> Result<Option<CardReport>> {
        self.card.take().map(CardProcess::stop).transpose()
    }
}

/// The result of [`RunningGuest::next`].
#[derive(Debug)]
pub enum GuestEvent {
    /// Data from a port.
    Event(Event),
    /// No event before the deadline.
    Silence,
    /// The VM has exited, and all its output has been delivered.
    End,
}

/// A running guest. Dropping it terminates the VM.
pub struct RunningGuest {
    running: Running,
    /// The complete kernel log.
    pub console: PathBuf,
    messages: PathBuf,
    started: Instant,
    limit: Duration,
}

impl RunningGuest {
    /// Returns the next event if one is available. Does not block.
    pub fn poll(&mut self) -> Option<GuestEvent> {
        match self.running.events.try_recv() {
            Ok(event) => Some(GuestEvent::Event(event)),
            Err(TryRecvError::Disconnected) => Some(GuestEvent::End),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Blocks until the next event, at most until `deadline`. Fails if the card's server process exits meanwhile.
    pub fn next(&mut self, server: &mut Server, deadline: Option<Instant>) -> Result<GuestEvent> {
        loop {
            interrupt::check()?;
            match self.running.events.recv_timeout(POLL_INTERVAL) {
                Ok(event) => return Ok(GuestEvent::Event(event)),
                Err(RecvTimeoutError::Disconnected) => return Ok(GuestEvent::End),
                Err(RecvTimeoutError::Timeout) => {}
            }
            server.check()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(GuestEvent::Silence);
            }
        }
    }

    /// Its monitor, if it has one.
    pub fn monitor(&mut self) -> Option<&mut Monitor> {
        self.running.monitor.as_mut()
    }

    /// Time at which the VM was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Blocks until init is about to run the job. Returns the seconds since the start of QEMU.
    pub fn until_ready(&mut self, server: &mut Server) -> Result<f64> {
        let deadline = self.started + self.limit;
        loop {
            match self.next(server, Some(deadline))? {
                GuestEvent::Event(Event { port: Port::Control, bytes, .. }) if bytes.starts_with(b"ready") => {
                    return Ok(self.started.elapsed().as_secs_f64());
                }
                GuestEvent::Event(_) => {}
                GuestEvent::Silence => {
                    bail!(
                        "the guest did not boot within {} s (its log: {})",
                        self.limit.as_secs(),
                        self.console.display()
                    )
                }
                GuestEvent::End => bail!("the guest ended during boot: {}", self.last_words()),
            }
        }
    }

    /// The host's end of the interactive console.
    pub fn terminal(&self) -> &std::os::unix::net::UnixStream {
        &self.running.terminal
    }

    /// Returns the kernel log so far.
    pub fn console_text(&self) -> String {
        fs::read(&self.console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the reason for the VM's exit: the guest's kernel panic, else QEMU's last message.
    pub fn last_words(&self) -> String {
        let messages = fs::read_to_string(&self.messages).unwrap_or_default();
        let message = messages.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
        let console = self.console_text();
        let panic = console.lines().find(|line| line.contains("Kernel panic")).map(|line| line.trim().to_owned());
        panic.or(message).unwrap_or_else(|| format!("unknown reason (its log: {})", self.console.display()))
    }

    /// Terminates the VM if it is still running.
    pub fn stop(mut self) -> Result<()> {
        self.running.process.stop(Duration::from_secs(1))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_guest_has_all_sockets_of_the_topology() {
        assert_eq!(GuestSpec::only(Functions::Physical).sockets, ["pf.sock"]);
        assert_eq!(GuestSpec::only(Functions::Together(2)).sockets, ["pf.sock", "vf1.sock", "vf2.sock"]);
        assert_eq!(GuestSpec::only(Functions::Provisioned(7)).sockets, ["vf1.sock"]);
        assert_eq!(GuestSpec::only(Functions::Passthrough(2)).sockets, ["pf.sock", "vf1.sock", "vf2.sock"]);
        assert!(GuestSpec::only(Functions::Together(63)).memory > GuestSpec::only(Functions::Physical).memory);
    }

    #[test]
    fn each_of_several_guests_has_separate_files() {
        assert_eq!(GuestSpec::only(Functions::Physical).file("console"), "console");
        assert_eq!(GuestSpec::virtual_function(3).file("console"), "console-vf3");
        assert_eq!(GuestSpec::physical(Functions::Split(3)).sockets[3], "vf3-config-only.sock");
    }
}
