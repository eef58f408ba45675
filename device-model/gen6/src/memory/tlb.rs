// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The TLB of an engine: translations of pages, also those of pages that have none (ILK-160).
//!
//! It has the translations of the PPGTT, and those of a blit's surfaces in the GGTT. Accesses of the command streamer to
//! the GGTT are not cached, as if each write of an entry invalidated them (ILK-139).

use std::cell::Cell;

use super::PAGE_MASK;
use super::fault_type::FaultType;

/// Number of slots: consecutive pages of 2 MiB have different ones.
const SLOTS: usize = 512;
/// Number of pages that [`Tlb::latest`] returns (ILK-029).
pub const LATEST: usize = 6;
/// Bit of a shown page: it is in the GGTT (ILK-029).
pub const SHOWN_GLOBAL: u32 = 1 << 1;
/// Bit of a shown page: the rest is valid (ILK-029).
const SHOWN_VALID: u32 = 1 << 0;
/// Bits of a key: the slot is used, the page is in the GGTT, and the position of the number of invalidations.
const USED: u64 = 1 << 21;
const GLOBAL: u64 = 1 << 20;
const INVALIDATIONS: u32 = 22;

#[derive(Clone, Copy)]
struct Slot {
    /// Number of invalidations before the walk, [`USED`], [`GLOBAL`], and the number of the page.
    key: u64,
    /// Physical address of the page, or why it has none.
    page: Result<u64, FaultType>,
}

/// Cached translations of one engine; direct-mapped, invalidated as a whole.
pub struct Tlb {
    slots: Box<[Cell<Slot>; SLOTS]>,
    /// Number of invalidations of the engine, as [`Tlb::follow`] was last called.
    invalidations: Cell<u64>,
    /// Number of writes to the GGTT, as [`Tlb::show`] was last called for a page in it.
    writes: Cell<u64>,
    /// The latest pages of the command streamer, in a ring.
    latest: Cell<[u32; LATEST]>,
    /// Index in `latest` of the next page.
    next: Cell<usize>,
}

impl Default for Tlb {
    fn default() -> Self {
        let slots = Box::new([const { Cell::new(Slot { key: 0, page: Ok(0) }) }; SLOTS]);
        let (invalidations, writes) = (Cell::new(0), Cell::new(0));
        Tlb { slots, invalidations, writes, latest: Cell::default(), next: Cell::new(0) }
    }
}

impl std::fmt::Debug for Tlb {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tlb").field("invalidations", &self.invalidations).finish_non_exhaustive()
    }
}

impl Tlb {
    /// Invalidates all translations if the number of invalidations of the engine has changed since the last call.
    #[inline]
    pub fn follow(&self, invalidations: u64) {
        if self.invalidations.replace(invalidations) != invalidations {
            self.latest.set([0; LATEST]);
            self.next.set(0);
        }
    }

    /// Key of the page with this number of the PPGTT, until the next invalidation; not 0.
    #[inline]
    pub fn key(&self, number: u32) -> u64 {
        self.invalidations.get() << INVALIDATIONS | USED | u64::from(number)
    }

    /// The translation of the page with this number of the PPGTT, or of the GGTT. `walk` is called if it is not cached.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "the index is reduced modulo the number of slots")]
    pub fn find(
        &self,
        number: u32,
        global: bool,
        walk: impl FnOnce() -> Result<u64, FaultType>,
    ) -> Result<u64, FaultType> {
        let slot = &self.slots[number as usize % SLOTS];
        let key = self.key(number) | if global { GLOBAL } else { 0 };
        let held = slot.get();
        if held.key == key {
            return held.page;
        }
        let page = walk();
        slot.set(Slot { key, page });
        page
    }

    /// The latest pages that the command streamer has translated, in a ring: bits 31:12 of the address, [`SHOWN_GLOBAL`],
    /// and bit 0; 0 where there is none. Those of the GGTT are of the time when it had this number of writes.
    pub fn latest(&self) -> ([u32; LATEST], u64) {
        (self.latest.get(), self.writes.get())
    }

    /// The command streamer has translated a page: of the GGTT, which had this number of writes, or of the PPGTT.
    #[inline]
    pub fn show(&self, address: u32, writes: Option<u64>) {
        let mut latest = self.latest.get();
        if let Some(writes) = writes
            && self.writes.replace(writes) != writes
        {
            latest = latest.map(|shown| if shown & SHOWN_GLOBAL == 0 { shown } else { 0 });
        }
        let shown = address & PAGE_MASK | if writes.is_some() { SHOWN_GLOBAL } else { 0 } | SHOWN_VALID;
        if !latest.contains(&shown) {
            let next = self.next.get();
            if let Some(place) = latest.get_mut(next) {
                *place = shown;
            }
            self.next.set(next.wrapping_add(1).checked_rem(LATEST).unwrap_or(0));
        }
        self.latest.set(latest);
    }
}
