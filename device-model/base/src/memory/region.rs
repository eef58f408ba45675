// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Regions of shared memory: local memory (VRAM), the GGTT half of GTTMMADR, the VFs' regions.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};

use arctic_sriov::number::size;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, FileOffset, VolatileMemory, VolatileSlice};
use vmm_sys_util::fallocate::{FallocateMode, fallocate};
use vmm_sys_util::seek_hole::SeekHole;

use crate::sync::IgnorePoison;

/// A region of shared memory that both the card and a VMM map: local memory, or the GGTT half of GTTMMADR.
pub struct SharedRegion {
    map: MmapRegion,
    file: Option<Backing>,
}

/// The file that backs a region.
struct Backing {
    file: Arc<File>,
    /// Offset of the region in the file.
    start: u64,
    /// Duplicate descriptor for hole searches, which need exclusive access and move the file position.
    search: Mutex<File>,
}

impl Backing {
    fn search(&self) -> MutexGuard<'_, File> {
        self.search.lock().ignore_poison()
    }
}

/// Bytes at the start of a cache line, as the source of large writes. A host's `memcpy` may take twice as long from an
/// address that is not a multiple of 32, and the address of an array on the stack differs from process to process.
#[repr(align(64))]
pub(crate) struct Aligned<const N: usize>(pub [u8; N]);

/// Granularity of zeroing in bytes: at each multiple, the search for the next data restarts.
const ZEROED: u64 = 64 << 10;

impl SharedRegion {
    /// Maps the first `len` bytes of `file` (sparse; pages are allocated on first access).
    pub fn from_file(file: File, len: usize) -> io::Result<Self> {
        Self::from_file_at(file, 0, len)
    }

    /// Maps `len` bytes of `file` at `offset`, which must be a multiple of the page size.
    pub fn from_file_at(file: File, offset: u64, len: usize) -> io::Result<Self> {
        let (search, file) = (Mutex::new(file.try_clone()?), Arc::new(file));
        let map = MmapRegion::from_file(FileOffset::from_arc(file.clone(), offset), len).map_err(io::Error::other)?;
        Ok(SharedRegion { map, file: Some(Backing { file, start: offset, search }) })
    }

    /// Anonymous memory of `len` bytes, for tests and for a card that is not mapped by a VMM.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        Ok(SharedRegion { map: MmapRegion::new(len).map_err(io::Error::other)?, file: None })
    }

    /// Size of the region in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        self.map.size() as u64
    }

    /// Returns whether the size is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.map.size() == 0
    }

    /// Bytes `[offset, offset + len)`, or `None` if they are not completely inside the region.
    #[inline]
    pub fn slice(&self, offset: u64, len: usize) -> Option<VolatileSlice<'_>> {
        self.map.get_slice(usize::try_from(offset).ok()?, len).ok()
    }

    /// At most `len` bytes starting at `offset`, or `None` if `offset` is not inside the region.
    #[inline]
    pub fn slice_up_to(&self, offset: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let rest = self.len().checked_sub(offset).filter(|rest| *rest > 0)?;
        self.slice(offset, len.min(usize::try_from(rest).unwrap_or(usize::MAX)))
    }

    /// The descriptors of the file that backs the region.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.file.iter().flat_map(|backing| [backing.file.as_raw_fd(), backing.search().as_raw_fd()])
    }

    /// Returns whether the region is backed by a file. Only such a region can have holes and release memory to the
    /// host.
    #[inline]
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// The first byte in `range` that may contain data; all bytes before it are in a hole, which reads as zeros and
    /// uses no memory. Returns the start of the range if there is no file or the file does not support the search.
    pub fn first_data(&self, range: &Range<u64>) -> Option<u64> {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return None;
        }
        let Some(backing) = &self.file else { return Some(range.start) };
        match backing.search().seek_data(backing.start.saturating_add(range.start)) {
            Ok(found) => Some(found?.saturating_sub(backing.start).max(range.start)).filter(|first| *first < range.end),
            Err(_) => Some(range.start),
        }
    }

    /// The next run of bytes in `range` that may contain data.
    pub fn next_data(&self, range: Range<u64>) -> Option<Range<u64>> {
        let first = self.first_data(&range)?;
        let end = range.end.min(self.len());
        let Some(backing) = &self.file else { return Some(first..end) };
        Some(match backing.search().seek_hole(backing.start.saturating_add(first)) {
            Ok(Some(found)) => first..found.saturating_sub(backing.start).max(first.saturating_add(1)).min(end),
            _ => first..end,
        })
    }

    /// Runs of bytes in `range` that may contain data, in order.
    pub fn data(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut rest = range;
        std::iter::from_fn(move || {
            let run = self.next_data(rest.clone())?;
            rest.start = run.end;
            Some(run)
        })
    }

    /// Makes `range` read as zeros; releases the memory of whole pages to the host.
    pub fn clear(&self, range: Range<u64>) {
        let range = range.start..range.end.min(self.len());
        if range.is_empty() {
            return;
        }
        let len = range.end.saturating_sub(range.start);
        let punched = self.file.as_ref().is_some_and(|backing| {
            let start = backing.start.saturating_add(range.start);
            fallocate(&*backing.file, FallocateMode::PunchHole, true, start, len).is_ok()
        });
        if !punched {
            self.write_zeros(range);
        }
    }

    /// Makes `range` read as zeros at the lowest cost. Holes are skipped. Data is overwritten, or released to the host
    /// if the bytes are not expected to be used soon (`release`). Returns the approximate number of bytes that were not
    /// holes, or `None` if there is no file and nothing was done.
    pub fn zero(&self, range: Range<u64>, release: bool) -> Option<u64> {
        self.file.as_ref()?;
        if release {
            let Some(first) = self.first_data(&range) else { return Some(0) };
            self.clear(first..range.end);
            return Some(range.end.saturating_sub(first));
        }
        // Searches only for the start of data: to find the end of a run, the host would examine every page up to the
        // next hole.
        let mut rest = range;
        let mut held = 0_u64;
        while let Some(first) = self.first_data(&rest) {
            rest.start = (first / ZEROED).saturating_add(1).saturating_mul(ZEROED).min(rest.end);
            held = held.saturating_add(rest.start.saturating_sub(first));
            self.write_zeros(first..rest.start);
        }
        Some(held)
    }

    fn write_zeros(&self, range: Range<u64>) {
        static ZEROS: Aligned<4096> = Aligned([0; 4096]);
        let mut at = range.start;
        while at < range.end {
            let n = size(range.end.saturating_sub(at).min(ZEROS.0.len() as u64));
            if let Some(slice) = self.slice(at, n) {
                // Cannot fail: the slice has exactly this length.
                let _ = slice.write_slice(ZEROS.0.get(..n).unwrap_or_default(), 0);
            }
            at = at.saturating_add(n as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use vmm_sys_util::tempfile::TempFile;

    use super::*;

    /// A sparse region backed by a file.
    fn sparse(len: usize) -> SharedRegion {
        // In /dev/shm, like the card's own files, or in a regular temporary file if the host has no /dev/shm.
        let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
        file.set_len(len as u64).unwrap();
        SharedRegion::from_file(file, len).unwrap()
    }

    fn bytes(region: &SharedRegion, at: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        region.slice(at, len).unwrap().read_slice(&mut data, 0).unwrap();
        data
    }

    /// Holes are detected, and clearing a range creates them. Tested with and without a file.
    #[test]
    fn holes() {
        const MIB: u64 = 1 << 20;
        for region in [sparse(4 << 20), SharedRegion::anonymous(4 << 20).unwrap()] {
            let write = |at: u64, data: &[u8]| region.slice(at, data.len()).unwrap().write_slice(data, 0).unwrap();
            write(MIB + 5, &[1, 2, 3]);
            write(3 * MIB, &[4]);
            let runs: Vec<_> = region.data(0..4 * MIB).collect();
            if region.is_file() {
                assert_eq!(runs, [MIB..MIB + 4096, 3 * MIB..3 * MIB + 4096]);
                assert_eq!(region.next_data(0..MIB), None);
                assert_eq!(region.next_data(MIB + 1..4 * MIB), Some(MIB + 1..MIB + 4096));
            } else {
                assert_eq!(runs, [Range { start: 0, end: 4 * MIB }]);
            }
            region.clear(MIB + 6..3 * MIB);
            assert_eq!(bytes(&region, MIB + 5, 3), [1, 0, 0]);
            region.clear(MIB..3 * MIB);
            // Checked before the contents are read, because reads allocate pages.
            if region.is_file() {
                assert_eq!(region.next_data(0..3 * MIB), None);
            }
            assert_eq!((bytes(&region, MIB + 5, 3), bytes(&region, 3 * MIB, 1)), (vec![0; 3], vec![4]));
            // Out of range: no effect.
            region.clear(5 * MIB..6 * MIB);
            assert_eq!(region.next_data(4 * MIB..5 * MIB), None);
        }
    }

    /// Filling a region with zeros overwrites only data, and allocates almost no additional host memory.
    #[test]
    fn zeros_take_no_memory() {
        const MIB: u64 = 1 << 20;
        let region = sparse(4 << 20);
        for at in [0, MIB, 2 * MIB - 4096, 3 * MIB] {
            region.slice(at, 1).unwrap().write_slice(&[1], 0).unwrap();
        }
        assert_eq!(region.zero(0..2 * MIB, false), Some(2 * ZEROED + 4096));
        let runs: Vec<_> = region.data(0..4 * MIB).collect();
        assert_eq!(
            runs,
            [0..ZEROED, MIB..MIB + ZEROED, 2 * MIB - 4096..2 * MIB, 3 * MIB..3 * MIB + 4096],
            "a hole between data must stay a hole"
        );
        assert_eq!([0, MIB, 2 * MIB - 4096, 3 * MIB].map(|at| bytes(&region, at, 1)[0]), [0, 0, 0, 1]);
        assert_eq!(region.zero(0..4 * MIB, true), Some(4 * MIB));
        assert_eq!((region.next_data(0..4 * MIB), region.zero(0..4 * MIB, true)), (None, Some(0)));
        assert_eq!(SharedRegion::anonymous(4096).unwrap().zero(0..4096, true), None);
    }
}
