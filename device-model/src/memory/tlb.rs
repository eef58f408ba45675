//! What an engine remembers of page walks: leaf translations and the last directory levels.

use super::storage::FRAME;
use crate::world::Function;

/// Where a page lies, with what its entry permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// First virtual address.
    pub base: u64,
    /// Bytes, a power of two; 0 marks an unused entry. A page of local memory is no larger than a frame.
    pub len: u64,
    /// First physical address (of the card's local memory, or I/O virtual).
    pub target: u64,
    /// Address space: the root table's address.
    pub root: u64,
    /// What stands behind the page.
    pub backing: Backing,
    /// Writes are permitted (PTE bit 1).
    pub writable: bool,
}

/// What stands behind a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// The card's local memory (PTE bit 11), stored at home: at its own address of the PF's region.
    Local,
    /// Local memory of a frame that is stored with a virtual function: the frame table has the place.
    Moved,
    /// Guest memory of the function.
    System(Function),
    /// Nothing: reads zero, writes dropped (PTE bit 9).
    Null,
}

impl Page {
    /// The part of the page that holds `address` and is no larger than a frame.
    pub fn within_frame(mut self, address: u64) -> Page {
        if self.len > FRAME {
            let first = (address - self.base) / FRAME * FRAME;
            self.base += first;
            self.target += first;
            self.len = FRAME;
        }
        self
    }
}

const EMPTY: Page = Page { base: 0, len: 0, target: 0, root: 0, backing: Backing::Null, writable: false };

/// A directory entry that points to a page table, remembered by the 2 MiB that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// First virtual address of the 2 MiB.
    pub base: u64,
    /// Address space.
    pub root: u64,
    /// The level-1 entry; 0 marks an unused slot.
    pub entry: u64,
}

const SMALL: usize = 512;
const LARGE: usize = 64;

/// Translations of one engine; direct-mapped, dropped as a whole.
pub struct Tlb {
    small: Box<[Page; SMALL]>,
    large: Box<[Page; LARGE]>,
    directories: Box<[Directory; LARGE]>,
    epoch: u64,
    /// Whose translations these are.
    function: Function,
    empty: bool,
}

impl Default for Tlb {
    fn default() -> Self {
        Tlb {
            small: Box::new([EMPTY; SMALL]),
            large: Box::new([EMPTY; LARGE]),
            directories: Box::new([Directory { base: 0, root: 0, entry: 0 }; LARGE]),
            epoch: 0,
            function: Function::PF,
            empty: true,
        }
    }
}

fn small_slot(address: u64) -> usize {
    (address >> 12) as usize % SMALL
}

fn large_slot(address: u64) -> usize {
    (address >> 21) as usize % LARGE
}

impl Tlb {
    /// Forgets everything.
    pub fn flush(&mut self) {
        if self.empty {
            return;
        }
        self.empty = true;
        self.small.fill(EMPTY);
        self.large.fill(EMPTY);
        self.directories.fill(Directory { base: 0, root: 0, entry: 0 });
    }

    /// Forgets everything if the card has been told to invalidate since `epoch` was last seen here, or if it is another
    /// function's.
    pub fn catch_up(&mut self, epoch: u64, function: Function) {
        if self.epoch != epoch || self.function != function {
            self.flush();
            self.epoch = epoch;
            self.function = function;
        }
    }

    /// The remembered page of `address`, if any.
    #[inline]
    pub fn find(&self, root: u64, address: u64) -> Option<&Page> {
        let hit = |page: &&Page| page.root == root && address.wrapping_sub(page.base) < page.len;
        let small = Some(&self.small[small_slot(address)]).filter(hit);
        small.or_else(|| Some(&self.large[large_slot(address)]).filter(hit))
    }

    /// Remembers that `page` translates `address`.
    pub fn insert(&mut self, address: u64, page: Page) {
        self.empty = false;
        if page.len < 2 << 20 {
            self.small[small_slot(address)] = page;
        } else {
            self.large[large_slot(address)] = page;
        }
    }

    /// The remembered level-1 entry of `address`.
    pub fn directory(&self, root: u64, address: u64) -> Option<u64> {
        let slot = &self.directories[large_slot(address)];
        (slot.entry != 0 && slot.root == root && slot.base == address & !0x1f_ffff).then_some(slot.entry)
    }

    /// Remembers the level-1 entry of `address`.
    pub fn insert_directory(&mut self, root: u64, address: u64, entry: u64) {
        self.empty = false;
        self.directories[large_slot(address)] = Directory { base: address & !0x1f_ffff, root, entry };
    }
}
