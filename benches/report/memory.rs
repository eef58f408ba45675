//! Resident memory of a running card, as the kernel counts it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result};

/// Parts of a process's resident memory in MiB (`/proc/PID/status`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident {
    /// VmRSS: all of it.
    pub total: f64,
    /// RssAnon: its own memory.
    pub own: f64,
    /// RssShmem: what it has touched itself of the memory that it shares with the VMM.
    pub shared: f64,
}

/// What a card costs the host, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The process's resident memory.
    pub resident: Resident,
    /// Pages behind local memory and GGTT, whoever has touched them.
    pub backing: f64,
}

impl Held {
    /// All of it; shared pages that are resident in the process are among the backing's.
    pub fn total(&self) -> f64 {
        self.resident.total - self.resident.shared + self.backing
    }
}

/// Reads the text of `/proc/PID/status`; its numbers are in KiB.
pub fn resident(status: &str) -> Option<Resident> {
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    };
    Some(Resident { total: mib("VmRSS")?, own: mib("RssAnon")?, shared: mib("RssShmem")? })
}

/// What the card holds that this process has started and that is still running.
pub fn of_the_card() -> Result<Held> {
    let parent = format!("PPid:\t{}", std::process::id());
    let processes = fs::read_dir("/proc").context("/proc cannot be read")?;
    // Processes come and go while they are looked at.
    let mut cards = processes.flatten().filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        if !status.lines().any(|line| line == parent) {
            return None;
        }
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let serves = arguments.split(|byte| *byte == 0).nth(1) == Some(b"serve");
        serves.then(|| Some(Held { resident: resident(&status)?, backing: backing(&entry.path()).ok()? }))?
    });
    cards.next().context("the card's process is not there")
}

/// MiB of the files in memory that the process (`/proc/PID`) has open, each counted once.
fn backing(process: &Path) -> io::Result<f64> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(process.join("fd"))?.flatten() {
        let target = fs::read_link(entry.path())?;
        if target.to_string_lossy().starts_with("/memfd:arctic-") {
            let file = fs::metadata(entry.path())?;
            files.insert((file.dev(), file.ino()), file.blocks() * 512);
        }
    }
    Ok(files.values().sum::<u64>() as f64 / f64::from(1 << 20))
}
