//! One guest's life: the parts made ready, card and machine started together, their events, their orderly end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::cache::Cache;
use crate::card::{Card, CardReport};
use crate::image::{self, Extra};
use crate::interrupt;
use crate::parts::{self, Own, Parts};
use crate::process::{self, LOOK};
use crate::progress::Progress;
use crate::qemu::{Event, Machine, Port, Running, log_file};

/// What all scenarios ask for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `arctic` program: serves the card, and is installed in the guest.
    pub program: PathBuf,
    /// The user's own parts.
    pub own: Own,
    /// The card's file or name, as `arctic serve --card` takes it; `None` boots without a card.
    pub card: Option<String>,
    /// Folder with `i915/dg2_guc_70.bin`; without one the program writes its stand-in.
    pub firmware: Option<PathBuf>,
    /// Guest memory in MiB.
    pub memory: u32,
    /// Further kernel arguments.
    pub append: String,
    /// Host folder to mount on /share.
    pub share: Option<PathBuf>,
    /// How long a stage of a run may take.
    pub limit: Duration,
    /// Where logs go; a new folder in the cache if `None`.
    pub log: Option<PathBuf>,
}

impl Options {
    /// The defaults with `program` as the card's server.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            own: Own::default(),
            card: Some("flex170".into()),
            firmware: None,
            memory: 2048,
            append: String::new(),
            share: None,
            limit: Duration::from_secs(120),
            log: None,
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
    /// The host's side of the guest's /mnt.
    pub results: PathBuf,
    image: Option<File>,
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
        let results = folder.join("results");
        fs::create_dir_all(&results).with_context(|| format!("{} cannot be made", results.display()))?;
        let folder = fs::canonicalize(folder)?;
        let results = folder.join("results");
        Ok(Self { options, parts, cache, folder, results, image: None })
    }

    /// Builds the image that the next lives boot: `job` is what their init runs, `tests` further IGT programs.
    pub fn build_image(&mut self, job: String, tests: &[String], progress: &dyn Progress) -> Result<()> {
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
            job,
            tests: tests.iter().cloned().collect(),
            share: self.options.share.is_some(),
        };
        image::build(&self.parts, &extra, &self.cache, &mut image, progress)?;
        self.image = Some(image);
        Ok(())
    }

    /// Starts the card and a guest with it. `number` counts the run's lives from 1.
    pub fn start(&self, number: u32) -> Result<Life> {
        let image = self.image.as_ref().context("no image has been built")?;
        // A socket's path is limited to 107 bytes, so not in the cache.
        let root =
            Some(Path::new("/tmp")).filter(|folder| folder.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned);
        let sockets = tempfile::Builder::new().prefix("arctic-").tempdir_in(root).context("no temporary folder")?;
        let card = match &self.options.card {
            Some(card) => {
                let log = log_file(&self.folder, "card", number);
                Some(Card::start(&self.options.program, card, sockets.path(), &log)?)
            }
            None => None,
        };
        let socket = card.as_ref().map(Card::socket);
        let console = log_file(&self.folder, "console", number);
        let messages = log_file(&self.folder, "qemu", number);
        let machine = Machine {
            qemu: &self.parts.qemu,
            kernel: &self.parts.kernel,
            image,
            memory: self.options.memory,
            card: socket.as_deref(),
            results: &self.results,
            share: self.options.share.as_deref(),
            append: &self.options.append,
            console: &console,
            messages: &messages,
        };
        let running = machine.start()?;
        Ok(Life {
            running,
            card,
            _sockets: sockets,
            console,
            messages,
            started: Instant::now(),
            limit: self.options.limit,
        })
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

/// A card with a guest on it. Dropping it ends both and removes their sockets.
pub struct Life {
    // Dropped in this order: the machine before the card that it talks to, both before their folder.
    running: Running,
    card: Option<Card>,
    _sockets: TempDir,
    /// The whole kernel log.
    pub console: PathBuf,
    messages: PathBuf,
    started: Instant,
    limit: Duration,
}

impl Life {
    /// Waits for what happens next, at most until `deadline`.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Happening> {
        loop {
            interrupt::check()?;
            match self.running.events.recv_timeout(LOOK) {
                Ok(event) => return Ok(Happening::Event(event)),
                Err(RecvTimeoutError::Disconnected) => return Ok(Happening::End),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(card) = &mut self.card {
                card.check()?;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Happening::Silence);
            }
        }
    }

    /// Waits until init is about to start the job; returns the seconds since the start of QEMU.
    pub fn until_ready(&mut self) -> Result<f64> {
        let deadline = self.started + self.limit;
        loop {
            match self.next(Some(deadline))? {
                Happening::Event(Event { port: Port::Control, bytes }) if bytes.starts_with(b"ready") => {
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

    /// Ends the machine if it has not ended by itself, then stops the card and returns its report.
    pub fn stop(mut self) -> Result<Option<CardReport>> {
        self.running.process.stop(Duration::from_secs(1))?;
        self.card.take().map(Card::stop).transpose()
    }
}
