//! Local memory (VRAM) and the shared-memory regions that stand for it on the host.

use std::fs::File;
use std::io;

use vm_memory::mmap::MmapRegion;
use vm_memory::{FileOffset, VolatileMemory, VolatileSlice};

/// A region of shared memory that the card and its VMM both map: local memory, or the GGTT's half of GTTMMADR.
pub struct SharedRegion {
    map: MmapRegion,
}

impl SharedRegion {
    /// Maps the first `len` bytes of `file` (sparse; pages come into being when touched).
    pub fn from_file(file: File, len: usize) -> io::Result<Self> {
        Self::from_file_at(file, 0, len)
    }

    /// Maps `len` bytes of `file` from byte `offset` on, a multiple of the page size.
    pub fn from_file_at(file: File, offset: u64, len: usize) -> io::Result<Self> {
        let map = MmapRegion::from_file(FileOffset::new(file, offset), len).map_err(io::Error::other)?;
        Ok(SharedRegion { map })
    }

    /// Anonymous memory of `len` bytes, for tests and for a card that nobody maps.
    pub fn anonymous(len: usize) -> io::Result<Self> {
        Ok(SharedRegion { map: MmapRegion::new(len).map_err(io::Error::other)? })
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
}
