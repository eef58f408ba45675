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

/// A running card.
pub struct Card {
    process: Child,
    folder: PathBuf,
    log: PathBuf,
}

impl Card {
    /// Starts `program serve --card card --dir folder` and waits until it takes connections; its messages go to `log`.
    /// `folder` must be short: a socket's path is limited to 107 bytes.
    pub fn start(program: &Path, card: &str, folder: &Path, log: &Path) -> Result<Self> {
        let messages = File::create(log).with_context(|| format!("{} cannot be made", log.display()))?;
        let mut command = Command::new(program);
        command.arg("serve").args(["--card", card, "--dir"]).arg(folder);
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
        // The first line on stdout says that the sockets listen.
        loop {
            interrupt::check()?;
            match lines.recv_timeout(Duration::from_millis(50)) {
                Ok(_) if card.socket().exists() => return Ok(card),
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

    /// The physical function's vfio-user socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("pf.sock")
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
        let card = Card::start(&program, "flex170", folder.path(), &folder.path().join("log")).unwrap();
        let report = card.stop().unwrap();
        assert_eq!(report.trapped_total(), 9);
        assert_eq!(report.unexplained().map(|register| register.offset).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn a_card_that_refuses_says_why_in_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo 'arctic: bad.toml line 3: no such key' >&2; exit 2");
        let error = Card::start(&program, "bad.toml", folder.path(), &folder.path().join("log")).err().unwrap();
        assert_eq!(error.to_string(), "bad.toml line 3: no such key");
    }
}
