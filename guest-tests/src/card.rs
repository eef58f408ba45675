//! The card under test as a process of its own: `arctic serve`, started, watched, stopped, its report read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::interrupt;
use crate::process::Child;
use crate::qemu::CARD_ADDRESS;

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// What `arctic serve` leaves in `report.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CardReport {
    /// Trapped accesses by region.
    #[serde(default)]
    pub trapped: BTreeMap<String, u64>,
    /// Registers that were touched and are not modelled.
    #[serde(default)]
    pub unmodelled: Vec<Unmodelled>,
    /// What engines skipped or did in part, by engine and name.
    #[serde(default)]
    pub undone: BTreeMap<String, u64>,
}

/// A register that a driver touched and the card lacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unmodelled {
    /// Offset in the register window.
    pub offset: u64,
    /// Its name, where one is known.
    #[serde(default)]
    pub name: Option<String>,
    /// How often it was read.
    #[serde(default)]
    pub reads: u64,
    /// How often it was written.
    #[serde(default)]
    pub writes: u64,
    /// Why its absence is right; without one the run fails.
    #[serde(default)]
    pub reason: Option<String>,
}

impl CardReport {
    /// All trapped accesses together.
    pub fn trapped_total(&self) -> u64 {
        self.trapped.values().sum()
    }

    /// The unmodelled registers that nobody has given a reason for.
    pub fn unexplained(&self) -> impl Iterator<Item = &Unmodelled> {
        self.unmodelled.iter().filter(|register| register.reason.as_ref().is_none_or(|reason| reason.is_empty()))
    }
}

/// Which functions of the card there are, and who holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Functions {
    /// The physical function alone.
    #[default]
    Physical,
    /// One guest holds the physical function and this many virtual functions.
    Together(u8),
    /// A guest holds the physical function and a bare face of each virtual function; each of these works in a guest of
    /// its own.
    Split(u8),
    /// The card's program provisions this many virtual functions itself; each has a guest of its own.
    Provisioned(u8),
}

impl Functions {
    /// How many virtual functions there are.
    pub fn vfs(self) -> u8 {
        match self {
            Self::Physical => 0,
            Self::Together(vfs) | Self::Split(vfs) | Self::Provisioned(vfs) => vfs,
        }
    }

    /// What `arctic serve` has to be told.
    fn arguments(self) -> Vec<String> {
        let vfs = || vec!["--vfs".to_owned(), self.vfs().to_string()];
        let further: &[&str] = match self {
            Self::Physical => return Vec::new(),
            Self::Together(_) => &["--pf-address", CARD_ADDRESS],
            Self::Split(_) => &["--split"],
            Self::Provisioned(_) => &["--provision", "config"],
        };
        vfs().into_iter().chain(further.iter().map(ToString::to_string)).collect()
    }

    /// The sockets that a guest with the physical function connects to, in the order of its functions; none if the
    /// card's program plays the physical function.
    pub fn physical_sockets(self) -> Vec<String> {
        let behind = |suffix: &str| {
            let vfs = (1..=self.vfs()).map(|vf| format!("vf{vf}{suffix}.sock"));
            std::iter::once("pf.sock".to_owned()).chain(vfs).collect()
        };
        match self {
            Self::Physical | Self::Together(_) => behind(""),
            Self::Split(_) => behind("-face"),
            Self::Provisioned(_) => Vec::new(),
        }
    }

    /// The virtual functions that have guests of their own.
    pub fn apart(self) -> std::ops::RangeInclusive<u8> {
        let last = match self {
            Self::Physical | Self::Together(_) => 0,
            Self::Split(vfs) | Self::Provisioned(vfs) => vfs,
        };
        1..=last
    }

    /// The socket of virtual function `vf` for a guest of its own.
    pub fn virtual_socket(vf: u8) -> String {
        format!("vf{vf}.sock")
    }

    /// Every socket that the card listens on.
    fn sockets(self) -> Vec<String> {
        self.physical_sockets().into_iter().chain(self.apart().map(Self::virtual_socket)).collect()
    }
}

/// Host memory of a process in bytes, from `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The process's own: its heap and stacks (RssAnon).
    pub own: u64,
    /// Shared with guests: local memory, tables and what it touched of the guests' memory (RssShmem).
    pub shared: u64,
}

impl Memory {
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
        };
        Some(Self { own: field("RssAnon")?, shared: field("RssShmem")? })
    }
}

/// A running card.
pub struct Card {
    process: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl Card {
    /// Starts `program serve --card card --dir folder` with `functions` and waits until it takes connections; its
    /// messages go to `log`, and with `trace` everything that it does to a capture. `folder` must be short: a socket's path is limited to 107 bytes.
    pub fn start(
        program: &Path,
        card: &str,
        functions: Functions,
        folder: &Path,
        log: &Path,
        trace: Option<&Path>,
    ) -> Result<Self> {
        let messages = File::create(log).with_context(|| format!("{} cannot be made", log.display()))?;
        let mut command = Command::new(program);
        command.arg("serve").args(["--card", card, "--dir"]).arg(folder).args(functions.arguments());
        if let Some(trace) = trace {
            command.arg("--trace").arg(trace);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(messages);
        let mut process = Child::spawn(&mut command, "the card")?;
        let stdout = process.inner().stdout.take().context("the card has no stdout")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            // The receiver goes after the first line; the pipe is read on so that the card never blocks on it.
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let mut card = Self { process, folder: folder.to_owned(), log: log.to_owned() };
        let start = Instant::now();
        let sockets: Vec<PathBuf> = functions.sockets().into_iter().map(|name| folder.join(name)).collect();
        // The first line on stdout says that the sockets listen.
        loop {
            interrupt::check()?;
            match lines.recv_timeout(Duration::from_millis(50)) {
                Ok(_) if sockets.iter().all(|socket| socket.exists()) => return Ok(card),
                Ok(_) | Err(RecvTimeoutError::Timeout) if start.elapsed() < START_LIMIT => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // Its own message says why, and names the file that was wrong.
                    card.process.wait(Duration::from_secs(1))?;
                    bail!("{}", card.last_message());
                }
                _ => bail!("the card did not start within {} s", START_LIMIT.as_secs()),
            }
        }
    }

    /// The host memory that the card's process holds now, if the kernel tells.
    pub fn memory(&mut self) -> Option<Memory> {
        Memory::parse(&fs::read_to_string(format!("/proc/{}/status", self.process.inner().id())).ok()?)
    }

    /// Fails if the card's process is gone.
    pub fn check(&mut self) -> Result<()> {
        match self.process.ended()? {
            Some(status) => bail!("the card's process ended early ({status}): {}", self.last_message()),
            None => Ok(()),
        }
    }

    /// Stops the card and reads its report.
    pub fn stop(mut self) -> Result<CardReport> {
        self.check()?;
        if self.process.stop(STOP_LIMIT)?.is_none() {
            bail!("the card's process did not end within {} s of SIGTERM", STOP_LIMIT.as_secs());
        }
        let path = self.folder.join("report.json");
        let text =
            fs::read_to_string(&path).with_context(|| format!("the card left no report ({})", self.last_message()))?;
        serde_json::from_str(&text).context("the card's report cannot be understood")
    }

    fn last_message(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        line.trim().trim_start_matches("arctic: ").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A stand-in for the program: a script that gets `serve --card CARD --dir DIR`.
    fn program(folder: &Path, script: &str) -> PathBuf {
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_card_reports_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let report =
            r#"{"trapped":{"bar0":7,"config":2},"unmodelled":[{"offset":4,"reads":1,"reason":"x"},{"offset":8}]}"#;
        let script = format!(
            "trap 'echo \\'{report}\\' > $5/report.json; exit 0' TERM\n: > $5/pf.sock\necho ready\n\
             while :; do sleep 0.02; done"
        )
        .replace("\\'", "'\\''");
        let program = program(folder.path(), &script);
        let card =
            Card::start(&program, "flex170", Functions::Physical, folder.path(), &folder.path().join("log"), None)
                .unwrap();
        let report = card.stop().unwrap();
        assert_eq!(report.trapped_total(), 9);
        assert_eq!(report.unexplained().map(|register| register.offset).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn each_arrangement_has_its_arguments_and_sockets() {
        assert_eq!((Functions::Physical.arguments(), Functions::Physical.sockets()), (vec![], vec!["pf.sock".into()]));
        let together = Functions::Together(2);
        assert_eq!(together.arguments(), ["--vfs", "2", "--pf-address", CARD_ADDRESS]);
        assert_eq!(together.sockets(), ["pf.sock", "vf1.sock", "vf2.sock"]);
        let split = Functions::Split(2);
        assert_eq!(split.arguments(), ["--vfs", "2", "--split"]);
        assert_eq!(split.physical_sockets(), ["pf.sock", "vf1-face.sock", "vf2-face.sock"]);
        assert_eq!(split.sockets(), ["pf.sock", "vf1-face.sock", "vf2-face.sock", "vf1.sock", "vf2.sock"]);
        let provisioned = Functions::Provisioned(1);
        assert_eq!(provisioned.arguments(), ["--vfs", "1", "--provision", "config"]);
        assert_eq!((provisioned.physical_sockets(), provisioned.sockets()), (vec![], vec!["vf1.sock".into()]));
    }

    #[test]
    fn memory_is_read_from_the_processs_status() {
        let status = "Name:\tarctic\nVmRSS:\t   90 kB\nRssAnon:\t   12 kB\nRssFile:\t 8 kB\nRssShmem:\t    70 kB\n";
        assert_eq!(Memory::parse(status), Some(Memory { own: 12 << 10, shared: 70 << 10 }));
        assert_eq!(Memory::parse("Name:\tarctic\n"), None);
    }

    #[test]
    fn a_card_that_refuses_says_why_in_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo 'arctic: bad.toml line 3: no such key' >&2; exit 2");
        let error =
            Card::start(&program, "bad.toml", Functions::Physical, folder.path(), &folder.path().join("log"), None)
                .err()
                .unwrap();
        assert_eq!(error.to_string(), "bad.toml line 3: no such key");
    }
}
