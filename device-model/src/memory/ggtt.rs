//! The global graphics translation table: 4 GiB of global addresses, a million 64-bit entries (V13-019, V13-027).

use std::sync::atomic::{AtomicU64, Ordering};

use vm_memory::VolatileMemory;

use super::local::SharedRegion;

/// Bytes of the table: the upper half of GTTMMADR (V13-004).
pub const GGTT_BYTES: usize = 8 << 20;
/// Bytes of one global page (V13-028).
pub const GGTT_PAGE: u64 = 4096;

/// One global entry (V13-027; xe: xelp_ggtt_pte_flags, XE_GGTT_PTE_DM, GGTT_PTE_VFID).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GgttEntry(pub u64);

impl GgttEntry {
    /// Bit 0: the entry may be used.
    pub fn valid(self) -> bool {
        self.0 & 1 != 0
    }

    /// Bit 1: the address is in local memory; else it is the owner's guest-physical memory.
    pub fn local(self) -> bool {
        self.0 & 2 != 0
    }

    /// Bits 11:2: number of the owning function.
    pub fn owner(self) -> u16 {
        (self.0 >> 2 & 0x3ff) as u16
    }

    /// Bits 45:12: address of the page.
    pub fn address(self) -> u64 {
        self.0 & 0x3fff_ffff_f000
    }
}

/// The table itself, in memory that the PF's VMM maps too: an entry is one load, read at each use.
pub struct Ggtt {
    table: SharedRegion,
}

impl Ggtt {
    /// Stands on `table`, which has [`GGTT_BYTES`] bytes.
    pub fn new(table: SharedRegion) -> Self {
        Ggtt { table }
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.table.len() / 8
    }

    /// Entry `index`; an invalid one where there is none.
    pub fn entry(&self, index: u64) -> GgttEntry {
        let load = |at: usize| {
            Some(self.table.slice(0, GGTT_BYTES)?.get_atomic_ref::<AtomicU64>(at).ok()?.load(Ordering::Acquire))
        };
        GgttEntry(usize::try_from(index.saturating_mul(8)).ok().and_then(load).unwrap_or(0))
    }

    /// Stores entry `index`; dropped where there is none.
    pub fn set_entry(&self, index: u64, entry: GgttEntry) {
        if let Some(slice) = self.table.slice(index.saturating_mul(8), 8)
            && let Ok(cell) = slice.get_atomic_ref::<AtomicU64>(0)
        {
            cell.store(entry.0, Ordering::Release);
        }
    }

    /// The table as bytes, for a trapped access of its window at `offset`.
    pub fn bytes(&self, offset: u64, len: usize) -> Option<vm_memory::VolatileSlice<'_>> {
        self.table.slice(offset, len)
    }
}
