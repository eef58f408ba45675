// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The host's part in the migrations of a VF that has a guest of its own: it stops the processors of that guest on request of the
//! PF's guest, continues them, and waits until the VF's driver has recovered.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arctic_guest_agent::migrate::{CONTINUE, FAILED, RECOVERED, RECOVERY, STOP, request_files};

use super::checks::check;
use super::serial::Follower;
use crate::guest_process::RunningGuest;
use crate::report::TestResult;

/// The requests of the PF's guest.
#[derive(Debug)]
pub(super) struct Requests {
    /// Directory in which they appear.
    folder: PathBuf,
    state: State,
    /// Number of stops.
    stops: u32,
    /// Number of recoveries.
    recovered: u32,
    problem: Option<String>,
}

/// State of the VF's guest.
#[derive(Clone, Copy, Debug)]
enum State {
    Running,
    /// Its kernel log ended there when it was stopped.
    Stopped {
        since: Instant,
        log: u64,
    },
    /// Its driver has not said yet that it has recovered.
    Recovering {
        since: Instant,
        log: u64,
    },
}

impl Requests {
    /// Requests that appear in `folder`.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            // Of an earlier run in the same directory.
            if [STOP, CONTINUE].iter().any(|request| name.to_string_lossy().starts_with(&format!("{request}-"))) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Requests { folder: folder.to_owned(), state: State::Running, stops: 0, recovered: 0, problem: None })
    }

    /// Carries out what is requested for the VF's guest, if there is something. A request that cannot be carried out stays, and the
    /// PF's guest gives up.
    pub(super) fn carry_out(&mut self, guest: &mut RunningGuest, follower: &mut Follower) {
        if self.problem.is_none()
            && let Err(error) = self.step(guest, follower)
        {
            self.problem = Some(format!("{error:#}"));
        }
    }

    fn step(&mut self, guest: &mut RunningGuest, follower: &mut Follower) -> Result<()> {
        match self.state {
            State::Running if self.requested(STOP, self.stops + 1) => {
                guest.monitor().context("the guest has no monitor")?.stop()?;
                let log = fs::metadata(&guest.console).map_or(0, |metadata| metadata.len());
                self.state = State::Stopped { since: Instant::now(), log };
                self.stops += 1;
                self.done(STOP)
            }
            State::Stopped { since, log } if self.requested(CONTINUE, self.stops) => {
                guest.monitor().context("the guest has no monitor")?.cont()?;
                follower.stopped(since.elapsed());
                follower.enter("finish its work");
                self.state = State::Recovering { since: Instant::now(), log };
                Ok(())
            }
            State::Recovering { since, log } => {
                if recovered(&text_from(&guest.console, log)?, since.elapsed())? {
                    self.recovered += 1;
                    self.state = State::Running;
                    self.done(CONTINUE)?;
                }
                Ok(())
            }
            State::Running | State::Stopped { .. } => Ok(()),
        }
    }

    fn requested(&self, name: &str, number: u32) -> bool {
        self.folder.join(request_files(name, number).0).exists()
    }

    fn done(&self, name: &str) -> Result<()> {
        let path = self.folder.join(request_files(name, self.stops).1);
        fs::write(&path, []).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// The result for a VF that is to recover `rounds` times.
    pub(super) fn result(&self, rounds: u32) -> TestResult {
        let few = (self.recovered != rounds).then(|| format!("{} recoveries, not {rounds}", self.recovered));
        check("vf1: recoveries", self.problem.clone().or(few).into_iter().collect(), 0.0)
    }
}

/// Whether the VF's driver says in `log` that it has recovered; an error if it says that it has not, or nothing after too long.
fn recovered(log: &str, elapsed: Duration) -> Result<bool> {
    if let Some(line) = log.lines().find(|line| line.contains(FAILED)) {
        anyhow::bail!("the driver of VF 1: {}", line.trim());
    }
    let recovered = log.contains(RECOVERED);
    anyhow::ensure!(
        recovered || elapsed < RECOVERY,
        "the driver of VF 1 has not logged `{RECOVERED}` within {} s",
        RECOVERY.as_secs()
    );
    Ok(recovered)
}

/// What a file has from an offset on.
fn text_from(path: &Path, offset: u64) -> Result<String> {
    let unreadable = || format!("{} cannot be read", path.display());
    let mut file = File::open(path).with_context(unreadable)?;
    file.seek(SeekFrom::Start(offset)).with_context(unreadable)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).with_context(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_found_in_the_log() {
        let second = Duration::from_secs(1);
        let line = "[   12.3] xe 0000:00:01.0: [drm] Tile0: GT0: VF migration recovery ended\n";
        assert!(recovered(line, second).unwrap());
        assert!(!recovered("[   12.3] xe: something else", second).unwrap());
        let error = recovered("", RECOVERY).unwrap_err().to_string();
        assert!(error.contains("within 30 s"), "{error}");
        let error = recovered(&line.replace(RECOVERED, FAILED), second).unwrap_err().to_string();
        assert!(error.contains(FAILED), "{error}");
    }

    #[test]
    fn each_migration_has_a_recovery() {
        let folder = tempfile::tempdir().unwrap();
        let (request, _) = request_files(STOP, 1);
        fs::write(folder.path().join(&request), []).unwrap();
        fs::write(folder.path().join("steps.json"), []).unwrap();
        let mut requests = Requests::new(folder.path()).unwrap();
        assert!(!requests.requested(STOP, 1), "a request of an earlier run");
        assert!(folder.path().join("steps.json").exists());
        fs::write(folder.path().join(request), []).unwrap();
        assert!(requests.requested(STOP, 1) && !requests.requested(STOP, 2) && !requests.requested(CONTINUE, 1));
        requests.recovered = 2;
        assert!(requests.result(2).reason.is_empty());
        assert_eq!(requests.result(3).reason, "2 recoveries, not 3");
        requests.problem = Some("no".into());
        assert_eq!(requests.result(2).reason, "no");
    }
}
