//! What the worlds of both sides consist of, and where it is: the card's memory, the guest's, and two address spaces in
//! which the same addresses lead to other bytes, so that a command that takes the wrong space is found out.

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

/// Guest memory that is mapped: address and bytes; the global space shows the first half, the process's the second.
pub const RAM: (u64, usize) = (0x1000_0000, 0x4000);
/// Guest memory that takes a message for each access, shown likewise.
pub const REMOTE: (u64, usize) = (0x2000_0000, 0x2000);

/// First address, in both spaces, of all that there is.
pub const BASE: u64 = 0x0120_0000;
/// Where the process's space shows the same once more, beyond what a dword can address.
pub const HIGH: u64 = 1 << 39;

/// Offsets from [`BASE`], in pages.
pub mod at {
    /// Batches: the same in both spaces.
    pub const BATCHES: u64 = 0x00;
    pub const DATA: u64 = 0x10;
    pub const RAM: u64 = 0x14;
    pub const REMOTE: u64 = 0x16;
    /// A NULL page of the process's.
    pub const NULL: u64 = 0x17;
    /// The process may not write it.
    pub const READ_ONLY: u64 = 0x18;
    /// Nobody has anything there.
    pub const HOLE: u64 = 0x19;
    /// Another function's in the global space.
    pub const FOREIGN: u64 = 0x1a;
    // In the global space alone.
    pub const RING: u64 = 0x20;
    pub const PPHWSP: u64 = 0x24;
    pub const IMAGE: u64 = 0x25;
    pub const HWSP: u64 = 0x28;
    /// Pages whose entries MI_UPDATE_GTT writes; invalid at first.
    pub const WINDOW: u64 = 0x30;
    /// The end.
    pub const END: u64 = 0x38;
}

/// How many batches there are, a page each, and the level that each is started at.
pub const LEVELS: [u8; 8] = [1, 1, 1, 2, 2, 2, 3, 3];

/// Bytes of the ring.
pub const RING_BYTES: u32 = 0x4000;

/// Timestamp of the card in every run: 36 bits of it.
pub const TIMESTAMP: u64 = 0x3_4567_8900 / 12 * 12;

/// Where a page of an address space leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The context's part of local memory, by offset.
    Home(u64),
    /// The same, not to be written.
    HomeReadOnly(u64),
    /// Guest memory, by its own address.
    Guest(u64),
    /// Reads 0, takes every write.
    Null,
    /// Another function's.
    Foreign,
    /// Nothing.
    Nothing,
}

/// Page `page` from [`BASE`] of the global space at the start.
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

/// Page `page` from [`BASE`] of the process's space.
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

/// How many ways there are to fill data pages.
pub const FILLS: u32 = 8;

/// The bytes that data pages start with: small numbers, so that comparisons fall both ways.
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
