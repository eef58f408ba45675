// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest flr`: resets a virtual function repeatedly. After each reset, checks that the function responds again
//! and that sampled pages of its local memory read as zero.

use std::fs::OpenOptions;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::mapping::Mapping;
use super::sysfs::Sysfs;
use crate::pci_address::CARD_ADDRESS;

/// Stride of the writes in bytes. One qword per page makes every page present; the cost of clearing depends on the
/// number of present pages.
const PAGE: usize = 4096;
/// Offsets of the VF's mailbox and notification register in GTTMMADR (xe: regs/xe_guc_regs.h, VF_SW_FLAG and
/// GUC_HOST_INTERRUPT).
const MAILBOX: usize = 0x19_0240;
const GUC_HOST_INTERRUPT: usize = 0x19_01f0;
/// VF2GUC_VF_RESET, and the header of the GuC's success response (xe: abi/guc_actions_sriov_abi.h).
const VF_RESET: u32 = 0x5507;
const SUCCESS: u32 = 0xf000_0000;
/// The GuC's busy response, and the mask of the origin and type of a response.
const BUSY: u32 = 0xb000_0000;
const TYPE: u32 = 0xf000_0000;
/// One of this many pages is checked after each reset.
const CHECKED: usize = 16;
/// Number of mappings of the memory. Each is written by its own thread, since writing dominates a cycle on a loaded
/// host.
const PARTS: usize = 2;
/// Polling interval for the GuC's response.
const POLL: Duration = Duration::from_millis(5);
/// Interval between progress lines.
const PROGRESS: Duration = Duration::from_secs(2);

/// The function to reset, the number of resets, and the amount of memory to be cleared.
#[derive(Debug, clap::Args)]
pub struct Flr {
    /// Number of resets of VF 1
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Number of virtual functions to enable; the PF's driver divides local memory among them
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u8).range(1..=63))]
    vfs: u8,
    /// MiB of the VF's local memory to write before each reset; at most the VF's quota
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16384))]
    mib: u32,
    /// Seconds within which the VF must respond after a reset
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// PCI address of the physical function
    #[arg(long, value_name = "ADDRESS", default_value = CARD_ADDRESS)]
    pf: String,
}

/// Runs the resets and prints a summary. Fails at the first reset after which the VF does not respond or its memory is
/// not cleared.
pub fn run(flr: &Flr) -> Result<()> {
    let sysfs = Sysfs::default();
    sysfs.set_autoprobe(&flr.pf, false)?;
    sysfs.set_vfs(&flr.pf, flr.vfs)?;
    let address = sysfs.virtual_function(&flr.pf, 1).context("VF 1 did not appear")?;
    let map = |bar: &str, offset: usize, len: usize| {
        let path = sysfs.device(&address).join(bar);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let mapped = file.and_then(|file| Mapping::new(&file, offset as u64, len));
        mapped.with_context(|| format!("cannot map {len} bytes at {offset:#x} of {}", path.display()))
    };
    let registers = map("resource0", 0, MAILBOX + PAGE)?;
    let part = ((flr.mib as usize) << 20) / PARTS;
    let mut memory = (0..PARTS).map(|index| map("resource2", index * part, part)).collect::<Result<Vec<_>>>()?;
    let reset = sysfs.device(&address).join("reset");
    let timeout = Duration::from_secs(flr.timeout);
    let (mut longest, mut shown) = (Duration::ZERO, Instant::now());
    for number in 1..=flr.count {
        let took =
            cycle(&registers, &mut memory, &reset, number, timeout).with_context(|| format!("reset {number}"))?;
        longest = longest.max(took);
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            println!("{number} of {} resets, the longest {:.2} s", flr.count, longest.as_secs_f64());
        }
    }
    println!("{} resets of a VF with {} MiB written, the longest {:.2} s", flr.count, flr.mib, longest.as_secs_f64());
    sysfs.set_vfs(&flr.pf, 0)
}

/// Writes every page of `memory`, resets the function and returns the time until it responded. Fails if it does not
/// respond within `timeout` or a sampled page is then not zero.
fn cycle(
    registers: &Mapping,
    memory: &mut [Mapping],
    reset: &Path,
    number: u32,
    timeout: Duration,
) -> Result<Duration> {
    thread::scope(|scope| {
        for (index, part) in memory.iter_mut().enumerate() {
            scope.spawn(move || fill(part, pattern(number, index)));
        }
    });
    for (index, part) in memory.iter().enumerate() {
        let last = part.len() - PAGE;
        let kept = part.read_u64(last) == pattern(number, index) | last as u64;
        ensure!(kept, "the VF's local memory does not retain written data");
    }
    registers.write_u32(MAILBOX, 0);
    let start = Instant::now();
    std::fs::write(reset, "1").with_context(|| format!("cannot write {}", reset.display()))?;
    loop {
        let response = registers.read_u32(MAILBOX);
        if response == SUCCESS {
            break;
        }
        ensure!(start.elapsed() < timeout, "no response from the GuC within {timeout:?}: mailbox {response:#010x}");
        // A request sent before the end of the reset is lost and is repeated, as in xe (xe_gt_sriov_vf.c).
        if response & TYPE != BUSY & TYPE && response != VF_RESET {
            registers.write_u32(MAILBOX, VF_RESET);
            registers.write_u32(GUC_HOST_INTERRUPT, 1);
        }
        thread::sleep(POLL);
    }
    let took = start.elapsed();
    for (index, part) in memory.iter().enumerate() {
        if let Some(at) = pages_to_check(part, number).find(|at| part.read_u64(*at) != 0) {
            let value = part.read_u64(at);
            anyhow::bail!("local memory at {:#x} holds {value:#x} after the reset", index * part.len() + at);
        }
    }
    Ok(took)
}

/// The value that cycle `number` writes to the first page of a part. The other pages get this value plus their offset.
fn pattern(number: u32, part: usize) -> u64 {
    (u64::from(number) << 40) | ((part as u64) << 36) | 1
}

/// Writes one qword to every page of `part`.
fn fill(part: &mut Mapping, pattern: u64) {
    (0..part.len()).step_by(PAGE).for_each(|at| part.write_u64(at, pattern | at as u64));
}

/// Offsets of one in [`CHECKED`] pages and of the last page. Reading a released page costs the host as much as writing
/// it, so each cycle checks a different subset of the pages.
fn pages_to_check(part: &Mapping, number: u32) -> impl Iterator<Item = usize> + use<> {
    let pages = (0..part.len()).step_by(PAGE);
    pages.skip(number as usize % CHECKED).step_by(CHECKED).chain([part.len() - PAGE])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers a function that responds successfully, one that clears only the first of two parts, and one without a
    /// success response.
    #[test]
    fn a_reset_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, offset: usize, len: usize| {
            let path = folder.path().join(name);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
            let end = (offset + len) as u64;
            file.set_len(file.metadata().unwrap().len().max(end)).unwrap();
            Mapping::new(&file, offset as u64, len).unwrap()
        };
        let registers = || file("resource0", 0, MAILBOX + PAGE);
        let part = |index: usize| file("resource2", index * 2 * PAGE, 2 * PAGE);
        let reset = folder.path().join("reset");
        let checked = |mailbox: u32, cleared: usize| {
            thread::scope(|scope| {
                // The card: after the notification it clears memory, then responds.
                let card = scope.spawn(|| {
                    let registers = registers();
                    while registers.read_u32(GUC_HOST_INTERRUPT) == 0 {
                        thread::yield_now();
                    }
                    (0..cleared).for_each(|index| part(index).write(&[0; 2 * PAGE]));
                    registers.write_u32(GUC_HOST_INTERRUPT, 0);
                    registers.write_u32(MAILBOX, mailbox);
                });
                let result = cycle(&registers(), &mut [part(0), part(1)], &reset, 3, Duration::from_millis(200));
                card.join().unwrap();
                result.map(drop).map_err(|error| error.to_string())
            })
        };
        assert_eq!(checked(SUCCESS, 2), Ok(()));
        assert_eq!(std::fs::read_to_string(&reset).unwrap(), "1");
        assert_eq!(checked(SUCCESS, 1).unwrap_err(), "local memory at 0x3000 holds 0x31000001001 after the reset");
        let unanswered = checked(0xe000_0000, 2).unwrap_err();
        assert!(unanswered.contains("no response"), "{unanswered}");
    }
}
