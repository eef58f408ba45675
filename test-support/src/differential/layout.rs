// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory layout that engine and reference use: local memory, guest memory, and two address spaces in which equal
//! addresses map to different bytes, to detect accesses in the wrong space.

use std::ops::Range;

use arctic_device_model::host::Function;

/// Bytes of the context's part of local memory: page tables, batches, ring, image, status page, data.
pub const LOCAL_BYTES: usize = 0x3_0000;
/// Bytes of a page.
pub const PAGE: u64 = 0x1000;

// Offsets in the context's part of local memory.
pub const ROOT: u64 = 0;
pub const POINTERS: u64 = 0x1000;
pub const DIRECTORY: u64 = 0x2000;
pub const TABLE: u64 = 0x3000;
/// The tables of the addresses from [`HIGH`] on.
pub const HIGH_POINTERS: u64 = 0x4000;
pub const HIGH_DIRECTORY: u64 = 0x5000;
pub const HIGH_TABLE: u64 = 0x6000;
pub const BATCHES: u64 = 0x8000;
pub const RING: u64 = 0x1_0000;
pub const PPHWSP: u64 = 0x1_4000;
pub const IMAGE: u64 = 0x1_5000;
pub const HWSP: u64 = 0x1_8000;
pub const GGTT_DATA: u64 = 0x2_0000;
pub const PPGTT_DATA: u64 = 0x2_4000;
pub const GGTT_BEHIND_NULL: u64 = 0x2_8000;
pub const READ_ONLY: u64 = 0x2_9000;

/// Mapped guest memory: address and size in bytes. The GGTT maps the first half, the PPGTT the second.
pub const RAM: (u64, usize) = (0x1000_0000, 0x4000);
/// Guest memory that is accessed by messages; mapped in the same way.
pub const REMOTE: (u64, usize) = (0x2000_0000, 0x2000);

/// First mapped address in both spaces.
pub const BASE: u64 = 0x0120_0000;
/// Offset at which the PPGTT maps pages again, beyond 32 bits: those with data at other offsets than below, so that an
/// access that loses the upper dword of its address reaches other bytes.
pub const HIGH: u64 = 1 << 39;

/// GGTT pages whose entries are compared: those from [`BASE`] to [`at::END`], and some before and behind them that are
/// invalid.
pub const GGTT_PAGES: Range<u64> = BASE / PAGE - 8..BASE / PAGE + at::END + 8;

/// The virtual function under test, and a virtual function without work.
pub const VF: Function = Function::new(2).unwrap();
pub const NEIGHBOUR: Function = Function::new(3).unwrap();

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

/// Number of batches.
pub const BATCH_COUNT: usize = 8;
/// Nesting level at which each batch is started; each batch has one page.
pub const LEVELS: [u8; BATCH_COUNT] = [1, 1, 1, 2, 2, 2, 3, 3];

/// Bytes of the ring.
pub const RING_BYTES: u32 = 0x4000;

/// OACTXCONTROL, and OAR_OACONTROL of the render engine, as offsets from its base.
pub const CONTEXT_CONTROL: u32 = 0x360;
pub const OAR_CONTROL: u32 = 0x960;
/// The upper half of the context's descriptor, which is its number in reports: bits 15:7.
pub const CONTEXT_ID: u32 = 0x2a << 7;
/// Bytes of the longest report of MI_REPORT_PERF_COUNT.
pub const LONGEST_REPORT: u64 = 384;
/// Render clocks up to the start of each run, as reports have them: the GT was in RC6 (V13-228).
pub const GPU_TICKS: u32 = 0;

/// The card's timestamp in each run, 36 bits.
pub const TIMESTAMP: u64 = 0x3_4567_8900 / 12 * 12;

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Ggtt,
    Ppgtt,
}

/// Memory to which a page of an address space maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The context's part of local memory, by offset.
    Local(u64),
    /// Like `Local`, read-only. Only in the PPGTT: entries of the GGTT have no such bit.
    LocalReadOnly(u64),
    /// Guest memory, by guest address.
    Guest(u64),
    /// Reads 0, drops writes. Only in the PPGTT.
    Null,
    /// A page of another function.
    Foreign,
    /// Unmapped.
    Unmapped,
}

/// Returns the initial mapping of a GGTT page.
pub fn ggtt(page: u64) -> Page {
    let Some(page) = page.checked_sub(BASE / PAGE) else { return Page::Unmapped };
    match page {
        at::BATCHES..0x08 => Page::Local(BATCHES + page * PAGE),
        at::DATA..0x14 => Page::Local(GGTT_DATA + (page - at::DATA) * PAGE),
        at::RAM..0x16 => Page::Guest(RAM.0 + (page - at::RAM) * PAGE),
        at::REMOTE => Page::Guest(REMOTE.0),
        at::NULL => Page::Local(GGTT_BEHIND_NULL),
        at::READ_ONLY => Page::Local(READ_ONLY),
        at::FOREIGN => Page::Foreign,
        at::RING..0x24 => Page::Local(RING + (page - at::RING) * PAGE),
        at::PPHWSP => Page::Local(PPHWSP),
        at::IMAGE..0x28 => Page::Local(IMAGE + (page - at::IMAGE) * PAGE),
        at::HWSP => Page::Local(HWSP),
        _ => Page::Unmapped,
    }
}

/// Returns the initial GGTT entry of a page, for contexts of a VF or of the PF (V13-027).
pub fn ggtt_entry(page: u64, vf: bool) -> u64 {
    let owner = if vf { u64::from(VF.number()) << 2 } else { 0 };
    match ggtt(page) {
        Page::Local(at) | Page::LocalReadOnly(at) => at | owner | 3,
        Page::Guest(iova) => iova | owner | 1,
        // The PF may access the other VF's page; a VF may not access the PF's.
        Page::Foreign if vf => 3,
        Page::Foreign => u64::from(NEIGHBOUR.number()) << 2 | 3,
        Page::Null | Page::Unmapped => 0,
    }
}

/// Returns the mapping of a PPGTT page.
pub fn ppgtt(page: u64) -> Page {
    let (page, rotation) = if page < HIGH / PAGE { (page, 0) } else { (page - HIGH / PAGE, 1) };
    let Some(page) = page.checked_sub(BASE / PAGE) else { return Page::Unmapped };
    match page {
        at::BATCHES..0x08 => Page::Local(BATCHES + page * PAGE),
        at::DATA..0x14 => Page::Local(PPGTT_DATA + (page - at::DATA + rotation) % 4 * PAGE),
        at::RAM..0x16 => Page::Guest(RAM.0 + (2 + (page - at::RAM + rotation) % 2) * PAGE),
        at::REMOTE => Page::Guest(REMOTE.0 + PAGE),
        at::NULL => Page::Null,
        at::READ_ONLY => Page::LocalReadOnly(READ_ONLY),
        _ => Page::Unmapped,
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
