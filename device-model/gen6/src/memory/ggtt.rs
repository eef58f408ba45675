// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The entries of the GGTT, in the upper half of GTTMMADR (G67-055).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arctic_base::registers::{read_dwords, write_dwords};

/// Bytes of an entry.
const ENTRY: u64 = 4;

/// An entry of the GGTT, a page table or a page directory: valid bit, address of a page, cacheability (G67-056). The
/// cacheability, bits 3:1, has no effect: the model has no caches (IVB-034).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pte(pub u32);

impl Pte {
    /// Address of the page, if the entry is valid: bits 31:12 in place, bits 39:32 from bits 11:4.
    #[inline]
    pub fn page(self) -> Option<u64> {
        let page = u64::from(self.0 & 0xffff_f000) | u64::from(self.0 & 0xff0) << 28;
        (self.0 & 1 != 0).then_some(page)
    }
}

/// The table of the GGTT. Each access to an entry is atomic.
pub struct Ggtt {
    pub(super) entries: Box<[AtomicU32]>,
    /// Number of writes of entries.
    pub(super) writes: AtomicU64,
}

impl Ggtt {
    /// A table of `bytes` bytes with entries of 0.
    pub fn new(bytes: usize) -> Self {
        Ggtt { entries: (0..bytes / 4).map(|_| AtomicU32::new(0)).collect(), writes: AtomicU64::new(0) }
    }

    /// Number of writes of entries since the card was created: translations that were made before the last one may be
    /// others now.
    #[inline]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    fn written(&self) {
        self.writes.fetch_add(1, Ordering::AcqRel);
    }

    /// The entry of a page; beyond the table, an invalid one.
    #[inline]
    pub fn entry(&self, page: u32) -> Pte {
        Pte(self.entries.get(page as usize).map_or(0, |entry| entry.load(Ordering::Acquire)))
    }

    /// Sets the entry of a page; ignored beyond the table.
    #[inline]
    pub fn set(&self, page: u32, entry: Pte) {
        if let Some(slot) = self.entries.get(page as usize) {
            slot.store(entry.0, Ordering::Release);
            self.written();
        }
    }

    /// Reads the table at `offset`, in any width. Bytes beyond it read 0.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        read_dwords(offset, data, |at| u32::try_from(at / ENTRY).map_or(0, |page| self.entry(page).0));
    }

    /// Writes the table at `offset`, in any width. Bytes beyond it are ignored. A write of a whole entry is atomic.
    pub fn write(&self, offset: u64, data: &[u8]) {
        write_dwords(offset, data, |at, value, lanes| {
            let Some(slot) = usize::try_from(at / ENTRY).ok().and_then(|page| self.entries.get(page)) else { return };
            if lanes == u32::MAX {
                slot.store(value, Ordering::Release);
            } else {
                let merged = |old: u32| Some(old & !lanes | value);
                let _ = slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, merged);
            }
            self.written();
        });
    }

    /// Sets all entries to 0.
    pub fn reset(&self) {
        self.entries.iter().for_each(|entry| entry.store(0, Ordering::Release));
        self.written();
    }
}
