//! Regions of shared memory: local memory (VRAM), the GGTT's half of GTTMMADR, what virtual functions map.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard};

use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, FileOffset, VolatileMemory, VolatileSlice};
use vmm_sys_util::fallocate::{FallocateMode, fallocate};
use vmm_sys_util::seek_hole::SeekHole;

/// A region of shared memory that the card and a VMM both map: local memory, or the GGTT's half of GTTMMADR.
pub struct SharedRegion {
    map: MmapRegion,
    file: Option<Backing>,
}

/// The file behind a region.
struct Backing {
    file: File,
    /// Where the region starts in it.
    start: u64,
    /// The same file once more, for the search for holes, which moves the descriptor's position.
    search: Mutex<File>,
}

impl Backing {
    fn search(&self) -> MutexGuard<'_, File> {
        self.search.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Bytes that a copy from region to region moves at a time.
const PIECE: usize = 64 << 10;

impl SharedRegion {
    /// Maps the first `len` bytes of `file` (sparse; pages come into being when touched).
    pub fn from_file(file: File, len: usize) -> io::Result<Self> {
        Self::from_file_at(file, 0, len)
    }

    /// Maps `len` bytes of `file` from byte `offset` on, a multiple of the page size.
    pub fn from_file_at(file: File, offset: u64, len: usize) -> io::Result<Self> {
        let backing = Backing { file: file.try_clone()?, start: offset, search: Mutex::new(file.try_clone()?) };
        let map = MmapRegion::from_file(FileOffset::new(file, offset), len).map_err(io::Error::other)?;
        Ok(SharedRegion { map, file: Some(backing) })
    }

    /// Anonymous memory of `len` bytes, for tests and for a card that nobody maps.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        Ok(SharedRegion { map: MmapRegion::new(len).map_err(io::Error::other)?, file: None })
    }

    /// Bytes in the region.
    pub fn len(&self) -> u64 {
        self.map.size() as u64
    }

    /// True for a region of no bytes.
    pub fn is_empty(&self) -> bool {
        self.map.size() == 0
    }

    /// Bytes `[offset, offset + len)`, or `None` where they are not all inside.
    pub fn slice(&self, offset: u64, len: usize) -> Option<VolatileSlice<'_>> {
        self.map.get_slice(usize::try_from(offset).ok()?, len).ok()
    }

    /// Bytes from `offset` on, at most `len`, or `None` where not even one is inside.
    pub fn slice_up_to(&self, offset: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let rest = self.len().checked_sub(offset).filter(|rest| *rest > 0)?;
        self.slice(offset, len.min(usize::try_from(rest).unwrap_or(usize::MAX)))
    }

    /// The first byte in `range` that may hold something; everything before it is a hole, which reads as zeros and takes
    /// no memory. Without a file, or where it cannot tell, the first of the range.
    pub fn first_data(&self, range: &Range<u64>) -> Option<u64> {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return None;
        }
        let Some(backing) = &self.file else { return Some(range.start) };
        match backing.search().seek_data(backing.start + range.start) {
            Ok(found) => Some((found? - backing.start).max(range.start)).filter(|first| *first < range.end),
            Err(_) => Some(range.start),
        }
    }

    /// The next run of bytes in `range` that may hold something.
    pub fn next_data(&self, range: Range<u64>) -> Option<Range<u64>> {
        let first = self.first_data(&range)?;
        let end = range.end.min(self.len());
        let Some(backing) = &self.file else { return Some(first..end) };
        Some(match backing.search().seek_hole(backing.start + first) {
            Ok(Some(found)) => first..(found - backing.start).clamp(first + 1, end),
            _ => first..end,
        })
    }

    /// Runs of bytes in `range` that may hold something, in order.
    pub fn data(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut rest = range;
        std::iter::from_fn(move || {
            let run = self.next_data(rest.clone())?;
            rest.start = run.end;
            Some(run)
        })
    }

    /// Makes `range` read as zeros; what is behind whole pages of it goes back to the host.
    pub fn clear(&self, range: Range<u64>) {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return;
        }
        let len = range.end - range.start;
        let punched = self.file.as_ref().is_some_and(|backing| {
            fallocate(&backing.file, FallocateMode::PunchHole, true, backing.start + range.start, len).is_ok()
        });
        if !punched {
            self.write_zeros(range);
        }
    }

    /// Makes `range` read as zeros in the way that is cheapest: holes at its start stay holes, the rest is overwritten, or
    /// given back to the host if the bytes are not expected to be used soon (`release`). Tells how many bytes that was;
    /// `None` where there is no file, and nothing was done.
    pub fn zero(&self, range: Range<u64>, release: bool) -> Option<u64> {
        self.file.as_ref()?;
        let Some(first) = self.first_data(&range) else { return Some(0) };
        let rest = first..range.end;
        let held = rest.end - rest.start;
        if release {
            self.clear(rest)
        } else {
            self.write_zeros(rest)
        }
        Some(held)
    }

    fn write_zeros(&self, range: Range<u64>) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut at = range.start;
        while at < range.end {
            let n = (range.end - at).min(ZEROS.len() as u64) as usize;
            if let Some(slice) = self.slice(at, n) {
                // The slice has just the length.
                let _ = slice.write_slice(&ZEROS[..n], 0);
            }
            at += n as u64;
        }
    }

    /// Copies `len` bytes from `from` on to `at` of `to`, which reads as zeros there: holes stay holes. Through the files
    /// where there are some, so that no page is mapped for it.
    pub fn copy_to(&self, from: u64, to: &SharedRegion, at: u64, len: u64) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        for run in self.data(from..from.saturating_add(len)) {
            let mut done = run.start;
            while done < run.end {
                let n = (run.end - done).min(PIECE as u64) as usize;
                self.read_at(done, &mut piece[..n])?;
                if piece[..n].iter().any(|byte| *byte != 0) {
                    to.write_at(at + (done - from), &piece[..n])?;
                }
                done += n as u64;
            }
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        match &self.file {
            Some(backing) => backing.file.read_exact_at(data, backing.start + offset),
            None => {
                let slice = self.slice(offset, data.len()).ok_or(io::ErrorKind::InvalidInput)?;
                slice.read_slice(data, 0).map_err(io::Error::other)
            }
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let slice = self.slice(offset, data.len()).ok_or(io::ErrorKind::InvalidInput)?;
        match &self.file {
            Some(backing) => backing.file.write_all_at(data, backing.start + offset),
            None => slice.write_slice(data, 0).map_err(io::Error::other),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use vmm_sys_util::tempfile::TempFile;

    use super::*;

    /// A sparse region behind a file.
    pub fn sparse(len: usize) -> SharedRegion {
        // In memory, as the card's own files are; a host without it has a file.
        let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
        file.set_len(len as u64).unwrap();
        SharedRegion::from_file(file, len).unwrap()
    }

    fn bytes(region: &SharedRegion, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        region.slice(at, len).unwrap().read_slice(&mut data, 0).unwrap();
        data
    }

    /// Holes are found, stay holes in a copy, and come back where a range is cleared; with a file and without.
    #[test]
    fn holes() {
        const MIB: u64 = 1 << 20;
        for (from, to) in
            [(sparse(4 << 20), sparse(4 << 20)), (sparse(4 << 20), SharedRegion::anonymous(4 << 20).unwrap())]
        {
            from.slice(MIB + 5, 3).unwrap().write_slice(&[1, 2, 3], 0).unwrap();
            from.slice(3 * MIB, 1).unwrap().write_slice(&[4], 0).unwrap();
            let runs: Vec<_> = from.data(0..4 * MIB).collect();
            assert_eq!(runs, [MIB..MIB + 4096, 3 * MIB..3 * MIB + 4096]);
            assert_eq!(from.next_data(0..MIB), None);
            from.copy_to(0, &to, MIB, 3 * MIB).unwrap();
            assert_eq!(bytes(&to, 2 * MIB, 8), [0, 0, 0, 0, 0, 1, 2, 3]);
            from.copy_to(3 * MIB, &to, 0, MIB).unwrap();
            assert_eq!(bytes(&to, 0, 2), [4, 0]);
            if to.file.is_some() {
                assert_eq!(to.data(0..4 * MIB).count(), 2);
            }
            to.clear(MIB..3 * MIB);
            // Before the bytes are looked at: that makes pages of them.
            if to.file.is_some() {
                assert_eq!(to.next_data(1..4 * MIB), Some(1..4096));
                assert_eq!(to.next_data(4096..4 * MIB), None);
            }
            assert_eq!((bytes(&to, 2 * MIB, 8), bytes(&to, 0, 1)), (vec![0; 8], vec![4]));
            // Outside: nothing happens.
            to.clear(5 * MIB..6 * MIB);
            assert_eq!(to.next_data(4 * MIB..5 * MIB), None);
            assert!(from.copy_to(3 * MIB, &to, 4 * MIB - 1, MIB).is_err());
        }
    }
}
