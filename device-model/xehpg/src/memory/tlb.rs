// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! TLB of an engine, or of a worker that executes parts of an engine's steps: cached leaf translations and last
//! directory levels.

use arctic_sriov::number;

use super::storage::FRAME;
use crate::host::Function;

/// A translated page with its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// First virtual address.
    pub base: u64,
    /// Length in bytes, a power of two; 0 marks an unused slot. A page of local memory is no larger than a frame.
    pub len: u64,
    /// First target address: an address in the card's local memory, or an I/O virtual address.
    pub target: u64,
    /// Address space: the root table's address.
    pub root: u64,
    /// Type of the memory that the page maps.
    pub backing: Backing,
    /// Writes are permitted (PTE bit 1).
    pub writable: bool,
}

/// Type of the memory that a page maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// The card's local memory (PTE bit 11), stored at home: at its own address in the PF's region.
    Local,
    /// Local memory in a frame that is stored in a VF's region; the frame table contains its location.
    Moved,
    /// Local memory of which each access is counted ([`Memory::count_traffic`](super::Memory::count_traffic)).
    Counted,
    /// Guest memory of the function.
    System(Function),
    /// No memory: reads return zeros, writes are dropped (PTE bit 9).
    Null,
}

impl Backing {
    /// Returns whether the memory is local memory.
    #[inline]
    pub fn is_local(self) -> bool {
        matches!(self, Backing::Local | Backing::Moved | Backing::Counted)
    }
}

impl Page {
    /// The part of the page that contains `address` and is no larger than a frame.
    pub fn within_frame(mut self, address: u64) -> Page {
        if self.len > FRAME {
            // The page contains the address, and its target has at most 48 bits.
            let first = address.wrapping_sub(self.base) & !(FRAME - 1);
            self.base = self.base.wrapping_add(first);
            self.target = self.target.wrapping_add(first);
            self.len = FRAME;
        }
        self
    }
}

const EMPTY: Page = Page { base: 0, len: 0, target: 0, root: 0, backing: Backing::Null, writable: false };

/// Cached directory entry that points to a page table; covers 2 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// First virtual address of the 2 MiB.
    pub base: u64,
    /// Address space.
    pub root: u64,
    /// The level-1 entry; 0 marks an unused slot.
    pub entry: u64,
}

const UNUSED: Directory = Directory { base: 0, root: 0, entry: 0 };

const SMALL: usize = 512;
const LARGE: usize = 64;
/// Slots that have a bit of [`Tlb::used`] in common.
const RUN: usize = SMALL / u16::BITS as usize;

/// Cached translations of one engine or worker; direct-mapped, invalidated as a whole.
pub struct Tlb {
    small: Box<[Page; SMALL]>,
    large: Box<[Page; LARGE]>,
    directories: Box<[Directory; LARGE]>,
    epoch: u64,
    /// Function to which the translations belong.
    function: Function,
    /// Number of flushes, of an engine's TLB; of a worker's TLB, the engine's number when it last followed.
    flushes: u64,
    /// Number of translations that were added, ever.
    fills: u64,
    /// A bit for each [`RUN`] slots of `small` that may be in use: each load of a context invalidates all slots, and most
    /// contexts use few.
    used: u16,
    /// Slots of `large` or `directories` may be in use.
    used_large: bool,
}

impl Default for Tlb {
    fn default() -> Self {
        Tlb {
            small: slots(EMPTY),
            large: slots(EMPTY),
            directories: slots(UNUSED),
            epoch: 0,
            function: Function::PF,
            flushes: 0,
            fills: 0,
            used: 0,
            used_large: false,
        }
    }
}

/// Unused slots, made on the heap: threads of models have small stacks.
fn slots<T: Copy, const N: usize>(unused: T) -> Box<[T; N]> {
    let slots: Box<[T]> = vec![unused; N].into();
    slots.try_into().ok().expect("the vector has N slots")
}

fn small_slot(address: u64) -> usize {
    (address >> 12) as usize % SMALL
}

fn large_slot(address: u64) -> usize {
    (address >> 21) as usize % LARGE
}

#[allow(clippy::indexing_slicing, reason = "slot indices are reduced modulo the number of slots")]
impl Tlb {
    /// Invalidates all entries, and those of the worker TLBs that follow this one.
    pub fn flush(&mut self) {
        self.flushes = self.flushes.wrapping_add(1);
        self.clear();
    }

    fn clear(&mut self) {
        let mut used = std::mem::take(&mut self.used);
        for slots in self.small.chunks_mut(RUN) {
            if used & 1 != 0 {
                slots.fill(EMPTY);
            }
            used >>= 1;
        }
        if std::mem::take(&mut self.used_large) {
            self.large.fill(EMPTY);
            self.directories.fill(UNUSED);
        }
    }

    /// Invalidates all entries if an invalidation of `function` was requested since the last call (`epoch`, the
    /// function's, differs), or if they belong to another function.
    pub fn catch_up(&mut self, epoch: u64, function: Function) {
        if self.epoch != epoch || self.function != function {
            self.flush();
            self.epoch = epoch;
            self.function = function;
        }
    }

    /// Makes this TLB of a worker usable for the current step of the engine whose TLB is `engine`: invalidates all
    /// entries if that TLB belongs to another function now, or has been flushed since the last call. It must have
    /// caught up with the epoch. A worker's TLB must always follow the same engine.
    pub fn follow(&mut self, engine: &Tlb) {
        let state = (engine.epoch, engine.function, engine.flushes);
        if (self.epoch, self.function, self.flushes) != state {
            self.clear();
            (self.epoch, self.function, self.flushes) = state;
        }
    }

    /// The cached page that contains `address`, if any.
    #[inline]
    pub fn find(&self, root: u64, address: u64) -> Option<&Page> {
        let hit = |page: &&Page| page.root == root && address.wrapping_sub(page.base) < page.len;
        let small = Some(&self.small[small_slot(address)]).filter(hit);
        small.or_else(|| Some(&self.large[large_slot(address)]).filter(hit))
    }

    /// Number of pages that have been cached since the TLB was created.
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// Caches `page` for `address`.
    pub fn insert(&mut self, address: u64, page: Page) {
        self.fills = self.fills.wrapping_add(1);
        if page.len < 2 << 20 {
            let slot = small_slot(address);
            self.used |= 1_u16.wrapping_shl(number::count(slot / RUN));
            self.small[slot] = page;
        } else {
            self.used_large = true;
            self.large[large_slot(address)] = page;
        }
    }

    /// The cached level-1 entry for `address`, if any.
    pub fn directory(&self, root: u64, address: u64) -> Option<u64> {
        let slot = &self.directories[large_slot(address)];
        (slot.entry != 0 && slot.root == root && slot.base == address & !0x1f_ffff).then_some(slot.entry)
    }

    /// Caches the level-1 entry for `address`.
    pub fn insert_directory(&mut self, root: u64, address: u64, entry: u64) {
        self.used_large = true;
        self.directories[large_slot(address)] = Directory { base: address & !0x1f_ffff, root, entry };
    }
}
