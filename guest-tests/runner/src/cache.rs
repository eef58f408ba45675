// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The cache directory. Entries are built in a scratch directory and renamed when complete, by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::interrupt;
use crate::progress::Progress;

/// Number of runs for which logs are kept.
const RUNS_KEPT: usize = 30;

/// The directory that stores components, images and logs across runs.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Exclusive lock for adding entries to the cache, held until dropped.
pub struct Lock {
    _file: File,
    unfinished: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is still held, so no other process adds entries. Leftovers are removed when the lock is next taken.
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}

impl Cache {
    /// Opens `$ARCTIC_CACHE`, else `$XDG_CACHE_HOME/arctic`, else `~/.cache/arctic`, creating it if necessary.
    pub fn open() -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // XDG Base Directory Specification: a relative path is invalid and must be ignored.
        let xdg = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
        let root = variable("ARCTIC_CACHE")
            .or_else(|| xdg.map(|folder| folder.join("arctic")))
            .or_else(|| variable("HOME").map(|folder| folder.join(".cache/arctic")))
            .ok_or_else(|| anyhow!("no cache directory: set ARCTIC_CACHE or HOME"))?;
        Self::at(&root)
    }

    /// Opens the cache at `root`, creating it if necessary.
    pub fn at(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).map_err(|error| unusable(root, &error))?;
        Ok(Self { root: fs::canonicalize(root)? })
    }

    /// Returns the complete entry `name`, if it exists.
    pub fn entry(&self, name: &str) -> Option<PathBuf> {
        Some(self.root.join(name)).filter(|path| path.exists())
    }

    /// Acquires the lock, which excludes other processes until it is dropped. Blocks while another process holds it.
    pub fn lock(&self, progress: &dyn Progress) -> Result<Lock> {
        let path = self.root.join("lock");
        let file = File::create(&path).map_err(|error| unusable(&path, &error))?;
        let mut is_reported = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut is_reported, true) {
                        progress.print_line(&format!(
                            "waiting for another process that is filling {}",
                            self.root.display()
                        ));
                    }
                    interrupt::check()?;
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(TryLockError::Error(error)) => return Err(error).context("the cache cannot be locked"),
            }
        }
        // The lock is held, so an incomplete entry is left over from a killed process.
        let unfinished = self.root.join("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(|| format!("{} cannot be removed", unfinished.display()))?;
        }
        Ok(Lock { _file: file, unfinished })
    }

    /// Builds the entry `name`: `build` fills a new directory, which is renamed to `name` only if `build` succeeds.
    pub fn install(&self, _held: &Lock, name: &str, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let aside = self.scratch()?.join(name);
        fs::create_dir_all(&aside).with_context(|| format!("{} cannot be created", aside.display()))?;
        let entry = self.root.join(name);
        let built = build(&aside).and_then(|()| {
            if let Some(parent) = entry.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::rename(&aside, &entry).with_context(|| format!("{} cannot be renamed into place", entry.display()))
        });
        if built.is_err() {
            // Errors of the cleanup are ignored in favour of the original error; leftovers are removed when the lock is
            // next taken.
            let _ = fs::remove_dir_all(&aside);
        }
        built.map(|()| entry)
    }

    /// The scratch directory for incomplete entries; its contents are removed whenever the lock is taken.
    pub fn scratch(&self) -> Result<PathBuf> {
        let folder = self.root.join("unfinished");
        fs::create_dir_all(&folder).map_err(|error| unusable(&folder, &error))?;
        Ok(folder)
    }

    /// Removes the oldest entries of `folder` until at most `kept` remain.
    pub fn forget_oldest(&self, folder: &str, kept: usize) {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten();
        let mut aged: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        aged.sort();
        for (_, old) in aged.iter().take(aged.len().saturating_sub(kept)) {
            // A concurrent process may remove the same entry.
            let _ = fs::remove_dir_all(old);
        }
    }

    /// Creates the log directory of one run of `scenario`, named after the current time, and removes the oldest such
    /// directories beyond `RUNS_KEPT`.
    pub fn new_run(&self, scenario: &str) -> Result<PathBuf> {
        let runs = self.root.join("runs");
        fs::create_dir_all(&runs).map_err(|error| unusable(&runs, &error))?;
        self.forget_oldest("runs", RUNS_KEPT - 1);
        let folder = runs.join(format!("{}-{scenario}-{}", time_stamp(), std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        Ok(folder)
    }
}

/// The error for a file or directory of the cache that cannot be created, with what to do.
fn unusable(path: &Path, error: &io::Error) -> anyhow::Error {
    let remedy = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space there, or set ARCTIC_CACHE to a directory with space"
        }
        ErrorKind::ReadOnlyFilesystem
        | ErrorKind::PermissionDenied
        | ErrorKind::NotADirectory
        | ErrorKind::NotFound => "set ARCTIC_CACHE, XDG_CACHE_HOME or HOME so that this user may write to the cache",
        _ => return anyhow!("{} in the cache cannot be created: {error}", path.display()),
    };
    anyhow!("{} in the cache cannot be created: {error}; {remedy}", path.display())
}

/// The current UTC time in the form `20261120-140758`.
fn time_stamp() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Converts days since 1970 to a civil date (proleptic Gregorian calendar, 400-year eras that begin on 1 March).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3_600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::NullProgress;

    #[test]
    fn failed_install_leaves_no_entry_and_complete_install_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let lock = cache.lock(&NullProgress).unwrap();
        let failed = cache.install(&lock, "parts/x", |path| {
            fs::write(path.join("half"), "1")?;
            anyhow::bail!("no network")
        });
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        assert!(cache.entry("parts/x").is_none());
        let entry = cache.install(&lock, "parts/x", |path| Ok(fs::write(path.join("whole"), "1")?)).unwrap();
        assert_eq!(cache.entry("parts/x"), Some(entry.clone()));
        assert!(entry.join("whole").exists() && !entry.join("half").exists());
    }

    #[test]
    fn cache_lock_is_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let lock = cache.lock(&NullProgress).unwrap();
        let other = File::create(folder.path().join("lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(lock);
        assert!(other.try_lock().is_ok());
    }

    #[test]
    fn old_runs_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        for number in 0..RUNS_KEPT + 5 {
            fs::create_dir_all(folder.path().join(format!("runs/2000-{number:03}"))).unwrap();
            // Entries are sorted by modification time.
            std::thread::sleep(Duration::from_millis(2));
        }
        let new = cache.new_run("boot").unwrap();
        assert!(new.exists());
        assert_eq!(fs::read_dir(folder.path().join("runs")).unwrap().count(), RUNS_KEPT);
        assert!(!folder.path().join("runs/2000-000").exists());
    }

    #[test]
    fn time_stamps_sort_as_time() {
        let stamp = time_stamp();
        assert_eq!(stamp.len(), 15);
        assert!(stamp.as_str() > "20260101-000000", "{stamp}");
    }
}
