// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The per-process page tables (PPGTT): four levels of 512 entries, with 1 GiB, 2 MiB, 64 KiB and 4 KiB pages.
//!
//! Layout as in xe (xe_pt.c, xe_gtt_defs.h; contract E.1, E.2). All tables are in local memory.

use super::tlb::{Backing, Page, Tlb};
use crate::host::Function;

/// Format of the tables: bits of an entry, and geometry.
pub struct PageTableFormat {
    /// Width of a virtual address that the tables translate.
    pub va_bits: u32,
    /// Levels above the last: number of the level, and the lowest address bit of its index of 9 bits. The root is
    /// first.
    pub directories: &'static [(u8, u32)],
    /// The entry is valid.
    pub present: u64,
    /// The page may be written.
    pub writable: u64,
    /// Entry of the lowest directory: the table has 32 entries of 64 KiB.
    pub compact_64k: u64,
    /// Entry of a directory other than the root: it maps a page.
    pub page_size: u64,
    /// Entry of a table: the page is part of a 64 KiB page.
    pub hint_64k: u64,
    /// The page reads as zeros, and writes are dropped.
    pub null: u64,
    /// The page is in local memory; otherwise in the function's guest-physical memory.
    pub local: u64,
    /// Address of a page or table.
    pub address: u64,
}

/// The tables of Xe-HPG.
pub static XE_HPG_PAGE_TABLES: PageTableFormat = PageTableFormat {
    va_bits: 48,
    directories: &[(3, 39), (2, 30), (1, 21)],
    present: 1 << 0,
    writable: 1 << 1,
    compact_64k: 1 << 6,
    page_size: 1 << 7,
    hint_64k: 1 << 8,
    null: 1 << 9,
    local: 1 << 11,
    address: 0x3fff_ffff_f000,
};

/// Reason of a failed walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkFault {
    /// The entry at this level (3 is the root) is not present, or the address is wider than
    /// [`PageTableFormat::va_bits`].
    NotPresent {
        /// Level of the entry, 3 to 0.
        level: u8,
    },
    /// A table is outside local memory.
    BadTable,
}

/// Translates `address` by the tables of `function` whose root is at `root`. `load` reads a table entry from the
/// function's local memory and returns `None` outside of it. The target of the returned page is likewise an address of
/// the function, not of the card.
pub fn walk(
    format: &PageTableFormat,
    tlb: &mut Tlb,
    function: Function,
    root: u64,
    address: u64,
    mut load: impl FnMut(u64) -> Option<u64>,
) -> Result<Page, WalkFault> {
    if address >> format.va_bits != 0 {
        return Err(WalkFault::NotPresent { level: 3 });
    }
    // Offset of the entry whose pages, or tables, cover `1 << shift` bytes. Table addresses have at most 48 bits.
    let index = |shift: u32| (address >> shift & 0x1ff) << 3;
    let leaf = |entry: u64, shift: u32| {
        let len = 1u64 << shift;
        let within = len.wrapping_sub(1);
        Page {
            base: address & !within,
            len,
            target: entry & format.address & !within,
            root,
            backing: if entry & format.null != 0 {
                Backing::Null
            } else if entry & format.local != 0 {
                Backing::Local
            } else {
                Backing::System(function)
            },
            writable: entry & format.writable != 0,
        }
    };
    let directory = match tlb.directory(root, address) {
        Some(entry) => entry,
        None => {
            let mut table = root & format.address;
            let mut found = 0;
            for (level, shift) in format.directories.iter().copied() {
                let entry = load(table.wrapping_add(index(shift))).ok_or(WalkFault::BadTable)?;
                if entry & format.present == 0 {
                    return Err(WalkFault::NotPresent { level });
                }
                if level < 3 && entry & format.page_size != 0 {
                    return Ok(leaf(entry, shift));
                }
                table = entry & format.address;
                found = entry;
            }
            tlb.insert_directory(root, address, found);
            found
        }
    };
    let table = directory & format.address;
    if directory & format.compact_64k != 0 {
        let entry = load(table.wrapping_add((address >> 16 & 0x1f) << 3)).ok_or(WalkFault::BadTable)?;
        return if entry & format.present == 0 { Err(WalkFault::NotPresent { level: 0 }) } else { Ok(leaf(entry, 16)) };
    }
    let entry = load(table.wrapping_add(index(12))).ok_or(WalkFault::BadTable)?;
    if entry & format.present == 0 {
        return Err(WalkFault::NotPresent { level: 0 });
    }
    Ok(leaf(entry, if entry & format.hint_64k != 0 { 16 } else { 12 }))
}
