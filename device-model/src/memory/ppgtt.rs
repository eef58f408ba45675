// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The per-process page tables (PPGTT): four levels of 512 entries, with 1 GiB, 2 MiB, 64 KiB and 4 KiB pages.
//!
//! Layout as in xe (xe_pt.c, xe_gtt_defs.h; contract E.1, E.2). All tables are in local memory.

use super::tlb::{Backing, Page, Tlb};
use crate::host::Function;

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const COMPACT_64K: u64 = 1 << 6;
const PAGE_SIZE: u64 = 1 << 7;
const HINT_64K: u64 = 1 << 8;
const NULL: u64 = 1 << 9;
const LOCAL: u64 = 1 << 11;
const ADDRESS: u64 = 0x3fff_ffff_f000;

/// Width of a virtual address that the four levels translate.
pub const VA_BITS: u32 = 48;

/// Reason of a failed walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkFault {
    /// The entry at this level (3 is the root) is not present, or the address is wider than [`VA_BITS`].
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
    tlb: &mut Tlb,
    function: Function,
    root: u64,
    address: u64,
    mut load: impl FnMut(u64) -> Option<u64>,
) -> Result<Page, WalkFault> {
    if address >> VA_BITS != 0 {
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
            target: entry & ADDRESS & !within,
            root,
            backing: if entry & NULL != 0 {
                Backing::Null
            } else if entry & LOCAL != 0 {
                Backing::Local
            } else {
                Backing::System(function)
            },
            writable: entry & WRITABLE != 0,
        }
    };
    let directory = match tlb.directory(root, address) {
        Some(entry) => entry,
        None => {
            let mut table = root & ADDRESS;
            let mut found = 0;
            for (level, shift) in [(3, 39), (2, 30), (1, 21)] {
                let entry = load(table.wrapping_add(index(shift))).ok_or(WalkFault::BadTable)?;
                if entry & PRESENT == 0 {
                    return Err(WalkFault::NotPresent { level });
                }
                if level < 3 && entry & PAGE_SIZE != 0 {
                    return Ok(leaf(entry, shift));
                }
                table = entry & ADDRESS;
                found = entry;
            }
            tlb.insert_directory(root, address, found);
            found
        }
    };
    let table = directory & ADDRESS;
    if directory & COMPACT_64K != 0 {
        let entry = load(table.wrapping_add((address >> 16 & 0x1f) << 3)).ok_or(WalkFault::BadTable)?;
        return if entry & PRESENT == 0 { Err(WalkFault::NotPresent { level: 0 }) } else { Ok(leaf(entry, 16)) };
    }
    let entry = load(table.wrapping_add(index(12))).ok_or(WalkFault::BadTable)?;
    if entry & PRESENT == 0 {
        return Err(WalkFault::NotPresent { level: 0 });
    }
    Ok(leaf(entry, if entry & HINT_64K != 0 { 16 } else { 12 }))
}
