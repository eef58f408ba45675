// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resident memory of a running card, from the kernel's accounting.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use anyhow::{Context, Result};

/// Parts of a process's resident memory in MiB (`/proc/PID/status`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resident {
    /// VmRSS: total.
    pub total: f64,
    /// RssAnon: anonymous memory.
    pub own: f64,
    /// RssShmem: pages of the memory shared with the VMM that the process itself has touched.
    pub shared: f64,
}

/// Host memory used by a card, in MiB.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    /// The process's resident memory.
    pub resident: Resident,
    /// Pages of local memory and GGTT, including those touched only by other processes.
    pub backing: f64,
}

impl MemoryUse {
    /// The total; shared pages that are resident in the process are counted only in `backing`.
    pub fn total(&self) -> f64 {
        self.resident.total - self.resident.shared + self.backing
    }
}

/// Parses the text of `/proc/PID/status`; its numbers are in KiB.
pub fn resident(status: &str) -> Option<Resident> {
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    };
    Some(Resident { total: mib("VmRSS")?, own: mib("RssAnon")?, shared: mib("RssShmem")? })
}

/// Memory of the running card that is a child of this process.
pub fn of_the_card() -> Result<MemoryUse> {
    let parent = format!("PPid:\t{}", std::process::id());
    let processes = fs::read_dir("/proc").context("/proc cannot be read")?;
    // Processes may start and exit during the scan.
    let mut cards = processes.flatten().filter_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        if !status.lines().any(|line| line == parent) {
            return None;
        }
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let serves = arguments.split(|byte| *byte == 0).nth(1) == Some(b"serve");
        serves.then(|| Some(MemoryUse { resident: resident(&status)?, backing: backing(&entry.path()).ok()? }))?
    });
    cards.next().context("no running card process found")
}

/// Size in MiB of the card's memfds that the process (`/proc/PID`) has open, each counted once.
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
