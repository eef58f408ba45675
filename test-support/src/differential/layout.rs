// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory layout that engine and reference use: local memory, guest memory, and two address spaces in which equal
//! addresses map to different bytes, to detect accesses in the wrong space.

/// Bytes of the context's part of local memory: page tables, batches, ring, image, status page, data.
pub const HOME: usize = 0x3_0000;
/// Bytes of a page.
pub const PAGE: u64 = 0x1000;

// Offsets in the context's part of local memory.
pub const ROOT: u64 = 0;
pub const POINTERS: u64 = 0x1000;
pub const DIRECTORY: u64 = 0x2000;
pub const TABLE: u64 = 0x3000;
pub const BATCHES: u64 = 0x8000;
pub const RING: u64 = 0x1_0000;
pub const PPHWSP: u64 = 0x1_4000;
pub const IMAGE: u64 = 0x1_5000;
pub const HWSP: u64 = 0x1_8000;
pub const GLOBAL_DATA: u64 = 0x2_0000;
pub const PROCESS_DATA: u64 = 0x2_4000;
pub const GLOBAL_BEHIND_NULL: u64 = 0x2_8000;
pub const READ_ONLY: u64 = 0x2_9000;

/// Mapped guest memory: address and size in bytes. The GGTT maps the first half, the PPGTT the second.
pub const RAM: (u64, usize) = (0x1000_0000, 0x4000);
/// Guest memory that is accessed by messages; mapped in the same way.
pub const REMOTE: (u64, usize) = (0x2000_0000, 0x2000);

/// First mapped address in both spaces.
pub const BASE: u64 = 0x0120_0000;
/// Offset at which the PPGTT maps the same pages again, beyond 32 bits.
pub const HIGH: u64 = 1 << 39;

/// Offsets from [`BASE`], in pages.
pub mod at {
    /// Batches: the same pages in both spaces.
    pub const BATCHES: u64 = 0x00;
    pub const DATA: u64 = 0x10;
    pub const RAM: u64 = 0x14;
    pub const REMOTE: u64 = 0x16;
    /// A NULL page in the PPGTT.
    pub const NULL: u64 = 0x17;
    /// Read-only in the PPGTT.
    pub const READ_ONLY: u64 = 0x18;
    /// Unmapped in both spaces.
    pub const HOLE: u64 = 0x19;
    /// In the GGTT, a page of another function; unmapped in the PPGTT.
    pub const FOREIGN: u64 = 0x1a;
    // GGTT only.
    pub const RING: u64 = 0x20;
    pub const PPHWSP: u64 = 0x24;
    pub const IMAGE: u64 = 0x25;
    pub const HWSP: u64 = 0x28;
    /// Target pages of MI_UPDATE_GTT; their entries are invalid initially.
    pub const WINDOW: u64 = 0x30;
    /// End of the range, exclusive.
    pub const END: u64 = 0x38;
}

/// Nesting level at which each batch is started; each batch has one page.
pub const LEVELS: [u8; 8] = [1, 1, 1, 2, 2, 2, 3, 3];

/// Bytes of the ring.
pub const RING_BYTES: u32 = 0x4000;

/// The card's timestamp in each run, 36 bits.
pub const TIMESTAMP: u64 = 0x3_4567_8900 / 12 * 12;

/// Memory to which a page of an address space maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The context's part of local memory, by offset.
    Home(u64),
    /// Like `Home`, read-only.
    HomeReadOnly(u64),
    /// Guest memory, by guest address.
    Guest(u64),
    /// Reads 0, drops writes.
    Null,
    /// A page of another function.
    Foreign,
    /// Unmapped.
    Nothing,
}

/// Returns the initial mapping of GGTT page `page`, counted from [`BASE`].
pub fn global(page: u64) -> Page {
    match page {
        at::BATCHES..0x08 => Page::Home(BATCHES + page * PAGE),
        at::DATA..0x14 => Page::Home(GLOBAL_DATA + (page - at::DATA) * PAGE),
        at::RAM..0x16 => Page::Guest(RAM.0 + (page - at::RAM) * PAGE),
        at::REMOTE => Page::Guest(REMOTE.0),
        at::NULL => Page::Home(GLOBAL_BEHIND_NULL),
        at::READ_ONLY => Page::Home(READ_ONLY),
        at::FOREIGN => Page::Foreign,
        at::RING..0x24 => Page::Home(RING + (page - at::RING) * PAGE),
        at::PPHWSP => Page::Home(PPHWSP),
        at::IMAGE..0x28 => Page::Home(IMAGE + (page - at::IMAGE) * PAGE),
        at::HWSP => Page::Home(HWSP),
        _ => Page::Nothing,
    }
}

/// Returns the mapping of PPGTT page `page`, counted from [`BASE`].
pub fn process(page: u64) -> Page {
    match page {
        at::BATCHES..0x08 => Page::Home(BATCHES + page * PAGE),
        at::DATA..0x14 => Page::Home(PROCESS_DATA + (page - at::DATA) * PAGE),
        at::RAM..0x16 => Page::Guest(RAM.0 + (page - at::RAM + 2) * PAGE),
        at::REMOTE => Page::Guest(REMOTE.0 + PAGE),
        at::NULL => Page::Null,
        at::READ_ONLY => Page::HomeReadOnly(READ_ONLY),
        _ => Page::Nothing,
    }
}

/// Number of seeds for the contents of data pages.
pub const FILLS: u32 = 8;

/// Returns a dword of the initial contents of data pages. Small values are frequent, so comparisons have both results.
pub fn fill(seed: u64, at: u64) -> u32 {
    let mut value = seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    match value >> 60 {
        0..8 => (value >> 8) as u32 & 7,
        8..10 => u32::MAX - ((value >> 8) as u32 & 3),
        _ => (value >> 8) as u32,
    }
}
