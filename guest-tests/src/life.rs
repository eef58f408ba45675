//! The card and the lives of the guests on it: the parts made ready, card and machines started, their events, their
//! orderly end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::cache::Cache;
use crate::card::{Card, CardReport, Functions, Memory};
use crate::driver::Driver;
use crate::image::{self, Extra};
use crate::interrupt;
use crate::parts::{self, Own, Parts};
use crate::process::{self, LOOK};
use crate::progress::Progress;
use crate::qemu::{Event, Machine, Port, Running, log_file};
use crate::tsc;

/// What all scenarios ask for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `arctic` program: serves the card, and is installed in the guest.
    pub program: PathBuf,
    /// The user's own parts.
    pub own: Own,
    /// The card's file or name, as `arctic serve --card` takes it; `None` boots without a card.
    pub card: Option<String>,
    /// The card's functions, and who holds them.
    pub functions: Functions,
    /// The guests' driver for the card.
    pub driver: Driver,
    /// Folder with `i915/dg2_guc_70.bin`; without one the program writes its stand-in.
    pub firmware: Option<PathBuf>,
    /// Memory of each guest in MiB; if `None`, by what the guest holds.
    pub memory: Option<u32>,
    /// Further kernel arguments.
    pub append: String,
    /// Host folder to mount on /share.
    pub share: Option<PathBuf>,
    /// How long a stage of a run (boot, driver load, work, shutdown) may take.
    pub limit: Duration,
    /// Where logs go; a new folder in the cache if `None`.
    pub log: Option<PathBuf>,
    /// Where the card captures all that it does; nowhere if `None`.
    pub trace: Option<PathBuf>,
}

impl Options {
    /// The defaults with `program` as the card's server.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            own: Own::default(),
            card: Some("flex170".into()),
            functions: Functions::Physical,
            driver: Driver::default(),
            firmware: None,
            memory: None,
            append: String::new(),
            share: None,
            limit: Duration::from_secs(120),
            log: None,
            trace: None,
        }
    }
}

/// Guest memory in MiB for whoever holds the physical function, or one function alone.
const MEMORY: u32 = 2048;
/// What each virtual function in the same guest adds to it.
const MEMORY_OF_A_VF: u32 = 32;
/// Guest memory in MiB where several guests share the host.
pub const MEMORY_OF_MANY: u32 = 1024;

/// A guest's place on the card: what it is called and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// `pf`, `vf1`…; empty for the only guest of a run.
    pub name: String,
    /// The sockets of its functions, from the first on.
    pub sockets: Vec<String>,
    /// Guest memory in MiB unless the user says otherwise.
    pub memory: u32,
}

impl Seat {
    /// The place of the one guest of a run: with the physical function if a guest holds it, else with the first virtual
    /// one.
    pub fn only(functions: Functions) -> Self {
        let sockets = match functions {
            Functions::Provisioned(_) => vec![Functions::virtual_socket(1)],
            _ => functions.physical_sockets(),
        };
        let more = MEMORY_OF_A_VF * (sockets.len() as u32 - 1);
        Self { name: String::new(), sockets, memory: MEMORY + more }
    }

    /// The place of the physical function's guest beside those of virtual functions.
    pub fn physical(functions: Functions) -> Self {
        Self { name: "pf".into(), sockets: functions.physical_sockets(), memory: MEMORY_OF_MANY }
    }

    /// The place of the guest of virtual function `vf` beside others.
    pub fn virtual_function(vf: u8) -> Self {
        Self { name: format!("vf{vf}"), sockets: vec![Functions::virtual_socket(vf)], memory: MEMORY_OF_MANY }
    }

    /// The name of this guest's file or folder `what`.
    pub fn file(&self, what: &str) -> String {
        match self.name.as_str() {
            "" => what.to_owned(),
            name => format!("{what}-{name}"),
        }
    }
}

/// Everything that guests of one run are started from.
pub struct Stand<'a> {
    options: &'a Options,
    /// The parts in use.
    pub parts: Parts,
    cache: Cache,
    /// Where this run's logs are.
    pub folder: PathBuf,
}

impl<'a> Stand<'a> {
    /// Gets the parts and makes the run's folder. `scenario` names it.
    pub fn prepare(options: &'a Options, scenario: &str, progress: &dyn Progress) -> Result<Self> {
        interrupt::install();
        if let Some(share) = options.share.as_ref().filter(|share| !share.is_dir()) {
            bail!("the folder to share, {}, does not exist", share.display());
        }
        let cache = Cache::open()?;
        let parts = parts::obtain(&options.own, &cache, progress)?;
        let folder = match &options.log {
            Some(folder) => folder.clone(),
            None => cache.new_run(scenario)?,
        };
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let folder = fs::canonicalize(folder)?;
        Ok(Self { options, parts, cache, folder })
    }

    /// The guests' driver for the card.
    pub fn driver(&self) -> Driver {
        self.options.driver
    }

    /// The host's side of the /mnt of the guest in `seat`; made if need be.
    pub fn results(&self, seat: &Seat) -> Result<PathBuf> {
        let results = self.folder.join(seat.file("results"));
        fs::create_dir_all(&results).with_context(|| format!("{} cannot be made", results.display()))?;
        Ok(results)
    }

    /// Builds an image for guests to boot: `job` is what their init runs, `tests` further IGT programs.
    pub fn build_image(&self, job: String, tests: &[String], progress: &dyn Progress) -> Result<File> {
        // Without a name: it goes with the last process that has it open, whatever happens.
        let mut image = tempfile::tempfile_in(&self.folder).context("the image cannot be made")?;
        let stand_in = TempDir::with_prefix_in("firmware-", &self.folder)?;
        let firmware = match (&self.options.firmware, &self.options.card) {
            (Some(folder), _) => Some(folder.clone()),
            (None, None) => None,
            (None, Some(_)) => {
                let mut command = Command::new(&self.options.program);
                process::run_lines(
                    command.args(["firmware", "--out"]).arg(stand_in.path()),
                    "arctic firmware",
                    |_| (),
                )?;
                Some(stand_in.path().to_owned())
            }
        };
        let extra = Extra {
            program: Some(self.options.program.clone()),
            firmware,
            driver: self.options.driver,
            job,
            tests: tests.iter().cloned().collect(),
            share: self.options.share.is_some(),
        };
        image::build(&self.parts, &extra, &self.cache, &mut image, progress)?;
        Ok(image)
    }

    /// Starts the card. `number` counts the run's cards from 1.
    pub fn serve(&self, number: u32) -> Result<Server> {
        // A socket's path is limited to 107 bytes, so not in the cache.
        let root =
            Some(Path::new("/tmp")).filter(|folder| folder.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned);
        // Its sockets give access to the guest's memory.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let mut folder = tempfile::Builder::new();
        let sockets = folder.prefix("arctic-").permissions(private).tempdir_in(root).context("no temporary folder")?;
        let card = match &self.options.card {
            Some(card) => {
                let log = log_file(&self.folder, "card", number);
                {
                    let Options { program, functions, trace, .. } = &self.options;
                    Some(Card::start(program, card, *functions, sockets.path(), &log, trace.as_deref())?)
                }
            }
            None => None,
        };
        Ok(Server { card, sockets })
    }

    /// Starts a guest in `seat` with the `image` on the card of `server`. `number` counts the seat's lives from 1.
    pub fn boot(&self, seat: &Seat, server: &Server, image: &File, number: u32) -> Result<Life> {
        let functions = match &server.card {
            Some(_) => seat.sockets.iter().map(|name| server.sockets.path().join(name)).collect(),
            None => Vec::new(),
        };
        let console = log_file(&self.folder, &seat.file("console"), number);
        let messages = log_file(&self.folder, &seat.file("qemu"), number);
        let machine = Machine {
            qemu: &self.parts.qemu,
            kernel: &self.parts.kernel,
            image,
            memory: self.options.memory.unwrap_or(seat.memory),
            functions: &functions,
            results: &self.results(seat)?,
            share: self.options.share.as_deref(),
            driver: self.options.driver,
            tsc_khz: tsc::host_khz(),
            append: &self.options.append,
            console: &console,
            messages: &messages,
        };
        let running = machine.start()?;
        Ok(Life { running, console, messages, started: Instant::now(), limit: self.options.limit })
    }
}

/// A running card with its sockets; or none, for guests without one. Dropping it ends the card and removes its sockets,
/// so it has to be dropped after the machines that talk to it.
pub struct Server {
    // Dropped in this order.
    card: Option<Card>,
    sockets: TempDir,
}

impl Server {
    /// Fails if the card's process is gone.
    pub fn check(&mut self) -> Result<()> {
        self.card.as_mut().map_or(Ok(()), Card::check)
    }

    /// The host memory that the card's process holds now.
    pub fn memory(&mut self) -> Option<Memory> {
        self.card.as_mut()?.memory()
    }

    /// Stops the card and reads its report.
    pub fn stop(mut self) -> Result<Option<CardReport>> {
        self.card.take().map(Card::stop).transpose()
    }
}

/// What [`Life::next`] saw.
#[derive(Debug)]
pub enum Happening {
    /// Something came out of a port.
    Event(Event),
    /// Nothing came for as long as the caller wanted to wait.
    Silence,
    /// The machine has ended, and everything that it said has been told.
    End,
}

/// A guest. Dropping it ends it.
pub struct Life {
    running: Running,
    /// The whole kernel log.
    pub console: PathBuf,
    messages: PathBuf,
    started: Instant,
    limit: Duration,
}

impl Life {
    /// What has happened by now, if anything.
    pub fn poll(&mut self) -> Option<Happening> {
        match self.running.events.try_recv() {
            Ok(event) => Some(Happening::Event(event)),
            Err(TryRecvError::Disconnected) => Some(Happening::End),
            Err(TryRecvError::Empty) => None,
        }
    }

    /// Waits for what happens next, at most until `deadline`. Fails if the card of `server` is gone meanwhile.
    pub fn next(&mut self, server: &mut Server, deadline: Option<Instant>) -> Result<Happening> {
        loop {
            interrupt::check()?;
            match self.running.events.recv_timeout(LOOK) {
                Ok(event) => return Ok(Happening::Event(event)),
                Err(RecvTimeoutError::Disconnected) => return Ok(Happening::End),
                Err(RecvTimeoutError::Timeout) => {}
            }
            server.check()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Happening::Silence);
            }
        }
    }

    /// When the machine was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Waits until init is about to start the job; returns the seconds since the start of QEMU.
    pub fn until_ready(&mut self, server: &mut Server) -> Result<f64> {
        let deadline = self.started + self.limit;
        loop {
            match self.next(server, Some(deadline))? {
                Happening::Event(Event { port: Port::Control, bytes, .. }) if bytes.starts_with(b"ready") => {
                    return Ok(self.started.elapsed().as_secs_f64());
                }
                Happening::Event(_) => {}
                Happening::Silence => {
                    bail!(
                        "the guest did not come up within {} s (its log: {})",
                        self.limit.as_secs(),
                        self.console.display()
                    )
                }
                Happening::End => bail!("the guest ended before it came up: {}", self.last_words()),
            }
        }
    }

    /// The host's end of the interactive console.
    pub fn terminal(&self) -> &std::os::unix::net::UnixStream {
        &self.running.terminal
    }

    /// The whole kernel log so far.
    pub fn console_text(&self) -> String {
        fs::read(&self.console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Why the machine ended, as far as QEMU or the guest's kernel said.
    pub fn last_words(&self) -> String {
        let messages = fs::read_to_string(&self.messages).unwrap_or_default();
        let message = messages.lines().rev().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
        let console = self.console_text();
        let panic = console.lines().find(|line| line.contains("Kernel panic")).map(|line| line.trim().to_owned());
        panic.or(message).unwrap_or_else(|| format!("no reason was given (its log: {})", self.console.display()))
    }

    /// Ends the machine if it has not ended by itself.
    pub fn stop(mut self) -> Result<()> {
        self.running.process.stop(Duration::from_secs(1))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_guest_holds_what_there_is_to_hold() {
        assert_eq!(Seat::only(Functions::Physical).sockets, ["pf.sock"]);
        assert_eq!(Seat::only(Functions::Together(2)).sockets, ["pf.sock", "vf1.sock", "vf2.sock"]);
        assert_eq!(Seat::only(Functions::Provisioned(7)).sockets, ["vf1.sock"]);
        assert!(Seat::only(Functions::Together(63)).memory > Seat::only(Functions::Physical).memory);
    }

    #[test]
    fn guests_side_by_side_have_files_of_their_own() {
        assert_eq!(Seat::only(Functions::Physical).file("console"), "console");
        assert_eq!(Seat::virtual_function(3).file("console"), "console-vf3");
        assert_eq!(Seat::physical(Functions::Split(3)).sockets[3], "vf3-face.sock");
    }
}
