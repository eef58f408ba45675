// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory with a log of writes, as a VMM has it that migrates: the log must have each page that the card has changed.

use std::fs::File;
use std::sync::{Arc, Mutex};

use rustix::fs::{MemfdFlags, memfd_create};
use vm_memory::bitmap::{AtomicBitmap, Bitmap};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MmapRegion};

/// Granularity of the log in bytes.
const PAGE: usize = 4096;

/// Memory that the card accesses through one mapping, which logs writes, and the guest through another one, which does not.
/// When it is dropped, it panics if a page that the card has changed is not in the log.
pub struct LoggedRam {
    /// The card's mapping.
    pub card: Arc<GuestMemoryMmap<AtomicBitmap>>,
    guest: GuestMemoryMmap,
    start: u64,
    /// What the guest has written: without accesses of the card, the contents of the memory.
    written: Mutex<Vec<u8>>,
}

impl LoggedRam {
    /// `len` bytes of memory at the guest address `start`.
    pub fn new(start: u64, len: usize) -> LoggedRam {
        let file = File::from(memfd_create("ram", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(len as u64).unwrap();
        let range = || [(GuestAddress(start), len, Some(FileOffset::new(file.try_clone().unwrap(), 0)))];
        LoggedRam {
            card: Arc::new(GuestMemoryMmap::from_ranges_with_files(range()).unwrap()),
            guest: GuestMemoryMmap::from_ranges_with_files(range()).unwrap(),
            start,
            written: Mutex::new(vec![0; len]),
        }
    }

    /// Reads as the guest.
    pub fn read(&self, address: u64, data: &mut [u8]) {
        self.guest.read_slice(data, GuestAddress(address)).unwrap();
    }

    /// Writes as the guest.
    pub fn write(&self, address: u64, data: &[u8]) {
        self.guest.write_slice(data, GuestAddress(address)).unwrap();
        let at = (address - self.start) as usize;
        self.written.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
    }

    /// Empties the log, and takes what the memory has now as its contents before the changes that it logs. `end_steps` returns
    /// when the steps of the card that are in progress have ended: a mark may precede its write by the rest of a step.
    pub fn restart(&self, end_steps: impl FnOnce()) {
        MmapRegion::bitmap(self.card.iter().next().unwrap()).reset();
        end_steps();
        self.read(self.start, &mut self.written.lock().unwrap());
    }

    /// Pages that the card has changed and that are not in the log, by address.
    pub fn not_logged(&self) -> Vec<u64> {
        let written = self.written.lock().unwrap();
        let region = self.card.iter().next().unwrap();
        let mut now = [0; PAGE];
        let mut missing = Vec::new();
        for (at, page) in (0..).step_by(PAGE).zip(written.chunks(PAGE)) {
            let address = self.start + at as u64;
            self.read(address, &mut now[..page.len()]);
            // A mark precedes its write, so it is there if the write is.
            if now[..page.len()] != *page && !region.bitmap().dirty_at(at) {
                missing.push(address);
            }
        }
        missing
    }
}

impl Drop for LoggedRam {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let missing = self.not_logged();
            assert!(missing.is_empty(), "the card has changed pages that are not in the log of writes: {missing:x?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_pages_without_a_mark_are_found() {
        let ram = LoggedRam::new(0x10_0000, 4 * PAGE);
        ram.write(0x10_1000, &[1, 2, 3]);
        ram.card.write_slice(&[4], GuestAddress(0x10_2fff)).unwrap();
        assert_eq!(ram.not_logged(), Vec::<u64>::new());
        ram.guest.write_slice(&[5], GuestAddress(0x10_3000)).unwrap();
        assert_eq!(ram.not_logged(), [0x10_3000]);
        ram.card.write_slice(&[5], GuestAddress(0x10_3001)).unwrap();
        assert_eq!(ram.not_logged(), Vec::<u64>::new());
        ram.restart(|| ());
        assert_eq!(ram.not_logged(), Vec::<u64>::new());
        ram.guest.write_slice(&[6], GuestAddress(0x10_2fff)).unwrap();
        assert_eq!(ram.not_logged(), [0x10_2000], "the log is empty");
        ram.restart(|| ());
    }
}
