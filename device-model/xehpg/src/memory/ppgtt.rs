// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The per-process page tables (PPGTT): four levels of 512 entries, with 1 GiB, 2 MiB, 64 KiB and 4 KiB pages.
//!
//! Layout as in xe (xe_pt.c, xe_gtt_defs.h; contract E.1, E.2). All tables are in local memory.

use super::tlb::{Backing, Page, Tlb};
use crate::host::Function;

/// Bits of an index into a table, whose entries have [`ENTRY_BYTES`].
pub(super) const INDEX_BITS: u32 = 9;
pub(super) const ENTRY_BYTES: u64 = 8;
/// Address bits within a 4 KiB page, and within a 64 KiB page.
pub(super) const SHIFT_4K: u32 = 12;
pub(super) const SHIFT_64K: u32 = 16;
/// Bits of an index into a compact table.
pub(super) const COMPACT_INDEX_BITS: u32 = 5;

/// A directory level.
pub struct Level {
    /// Its number in fault reports; the last tables have level 0.
    pub number: u8,
    /// Lowest address bit of the index into its tables.
    pub shift: u32,
}

/// Format of a generation's tables: address width, levels, and masks of the bits of an entry.
pub struct PageTableFormat {
    /// Width of a virtual address that the tables translate.
    pub va_bits: u32,
    /// Directories, root first. The last tables follow the lowest directory.
    pub directories: &'static [Level],
    /// The entry is valid.
    pub present: u64,
    /// The page may be written. In a directory entry that points to a table it has no effect: the drivers set it in each, and
    /// no public document says that hardware combines it with that of the page.
    pub writable: u64,
    /// In an entry of the lowest directory: its table is compact, 32 entries of 64 KiB each.
    pub compact_64k: u64,
    /// In an entry of a directory other than the root: it maps a page of the directory's size, 1 GiB or 2 MiB.
    pub page_size: u64,
    /// In an entry of a last table: it maps a part of a 64 KiB page.
    pub hint_64k: u64,
    /// The page reads as zeros, and writes are dropped.
    pub null: u64,
    /// The page is in local memory; otherwise the address is an I/O virtual address of the function.
    pub local: u64,
    /// Address of a page or table.
    pub address: u64,
}

/// The tables of Xe-HPG.
pub static XE_HPG_PAGE_TABLES: PageTableFormat = PageTableFormat {
    va_bits: 48,
    directories: &[Level { number: 3, shift: 39 }, Level { number: 2, shift: 30 }, Level { number: 1, shift: 21 }],
    present: 1 << 0,
    writable: 1 << 1,
    compact_64k: 1 << 6,
    page_size: 1 << 7,
    hint_64k: 1 << 8,
    null: 1 << 9,
    local: 1 << 11,
    address: 0x3fff_ffff_f000,
};

/// Reason of a failed walk; `E` is that of a table that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkFault<E> {
    /// The entry at this level is not present. Addresses wider than [`PageTableFormat::va_bits`] have none at the root's level;
    /// callers mask sign-extended addresses.
    NotPresent {
        /// Level of the entry, as in [`Level::number`].
        level: u8,
    },
    /// A table is outside the local memory of the function.
    Table(E),
}

/// Translates `address` by the tables of `function` whose root is at `root`, of which only the address bits are used. `load`
/// reads a table entry from the function's local memory; each entry is read at most once. The target of the returned page is
/// likewise an address of the function, not of the card, and the page can be larger than a frame.
///
/// `tlb` must have caught up with the function's invalidations. The walk stores the directory entry in it, also if the last
/// entry is not present; storing the page is up to the caller.
pub fn walk<E>(
    format: &PageTableFormat,
    tlb: &mut Tlb,
    function: Function,
    root: u64,
    address: u64,
    mut load: impl FnMut(u64) -> Result<u64, E>,
) -> Result<Page, WalkFault<E>> {
    if address >> format.va_bits != 0 {
        return Err(WalkFault::NotPresent { level: format.directories.first().map_or(0, |root| root.number) });
    }
    // Reads the entry for `address` of the table at `table`, an index of `bits` from bit `shift` of the address on. Table
    // addresses have at most 48 bits.
    let mut present = |level: u8, table: u64, shift: u32, bits: u32| {
        let index = address >> shift & (1_u64 << bits).wrapping_sub(1);
        let entry = load((table & format.address).wrapping_add(index.wrapping_mul(ENTRY_BYTES)));
        match entry.map_err(WalkFault::Table)? {
            entry if entry & format.present == 0 => Err(WalkFault::NotPresent { level }),
            entry => Ok(entry),
        }
    };
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
            let mut found = root;
            for (n, level) in format.directories.iter().enumerate() {
                let entry = present(level.number, found, level.shift, INDEX_BITS)?;
                if n > 0 && entry & format.page_size != 0 {
                    return Ok(leaf(entry, level.shift));
                }
                found = entry;
            }
            tlb.insert_directory(root, address, found);
            found
        }
    };
    if directory & format.compact_64k != 0 {
        return Ok(leaf(present(0, directory, SHIFT_64K, COMPACT_INDEX_BITS)?, SHIFT_64K));
    }
    let entry = present(0, directory, SHIFT_4K, INDEX_BITS)?;
    Ok(leaf(entry, if entry & format.hint_64k != 0 { SHIFT_64K } else { SHIFT_4K }))
}
