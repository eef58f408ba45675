// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Local memory translation table: translates a VF's local memory addresses to the card's (V13-101..112, contract D.5).
//!
//! The table has two levels, both in local memory. A register points to a directory with one entry per function. Each
//! entry points to the function's table, which has one entry per 2 MiB page. xe writes entries that address 32 GiB. The
//! walk decodes the wider format, which addresses 128 GiB. In both formats, a frame outside the card's memory is a
//! fault.

use std::fmt;

use arctic_sriov::number::low;

/// Size in bytes of an LMTT page (V13-105).
pub const PAGE: u64 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 21;
/// Size of the guest address range that a table translates (xe: LMTT_2L_HAW).
pub const GUEST_BYTES: u64 = 32 << 30;
/// Number of directory entries: 63 VFs and an unused entry for the PF (V13-103).
pub const DIRECTORY_ENTRIES: u8 = 64;
/// Number of entries in a VF's table.
pub const TABLE_ENTRIES: u64 = GUEST_BYTES / PAGE;

/// Alignment of the directory and the tables: 64 KiB (V13-103, V13-104).
const UNIT_SHIFT: u32 = 16;
/// LMEM_CFG bit 31: LMTT enable. The other bits are the directory address (V13-107; xe: LMEM_EN, LMTT_DIR_PTR).
pub const ENABLE: u32 = 1 << 31;

/// Valid, bit 0 of directory and table entries (V13-104, V13-106).
const VALID: u32 = 1 << 0;
/// Table address in a directory entry, bits 24:4 (xe: LMTT_2L_PDE_LMTT_PTR).
const TABLE: u32 = 0x1f_ffff << TABLE_SHIFT;
const TABLE_SHIFT: u32 = 4;
/// Frame number in a table entry, bits 20:5 (xe: LMTT_2L_PTE_LMEM_PAGE).
const FRAME: u32 = 0xffff << FRAME_SHIFT;
const FRAME_SHIFT: u32 = 5;

/// Reason why a VF's local memory address cannot be translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LmttFault {
    /// The function is not a VF.
    Function,
    /// The address is at or beyond the VF's quota or 32 GiB.
    Quota,
    /// The LMTT is disabled.
    Disabled,
    /// The VF's directory entry is not valid.
    Directory,
    /// The page's table entry is not valid.
    Entry,
    /// The directory, the table or the frame is outside the card's local memory.
    Memory,
}

impl fmt::Display for LmttFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LmttFault::Function => "the function is not a VF",
            LmttFault::Quota => "the address is beyond the VF's local memory",
            LmttFault::Disabled => "the LMTT is not enabled",
            LmttFault::Directory => "the VF's LMTT directory entry is not valid",
            LmttFault::Entry => "the LMTT table entry is not valid",
            LmttFault::Memory => "the LMTT points beyond the card's local memory",
        })
    }
}

impl std::error::Error for LmttFault {}

/// The card's LMTT: its register and the size of the local memory that it addresses.
pub type Lmtt = Walk<PAGE_SHIFT, UNIT_SHIFT, TABLE_ENTRIES, DIRECTORY_ENTRIES>;

/// The table walk, generic over the page size and the table alignment, as shifts, and over the number of entries in a
/// VF's table and in the directory.
#[derive(Clone, Copy, Debug)]
pub struct Walk<const PAGE_BITS: u32, const UNIT_BITS: u32, const PAGES: u64, const FUNCTIONS: u8> {
    /// LMEM_CFG, 0xcf58.
    pub register: u32,
    /// Size of the card's local memory in bytes.
    pub local_bytes: u64,
}

impl<const PAGE_BITS: u32, const UNIT_BITS: u32, const PAGES: u64, const FUNCTIONS: u8>
    Walk<PAGE_BITS, UNIT_BITS, PAGES, FUNCTIONS>
{
    /// The bits of an address below the page.
    const OFFSET: u64 = !(!0 << PAGE_BITS);

    /// Translates address `guest` in the local memory of `vf` to an address in the card's local memory. `quota` is the
    /// VF's LMEM_SIZE.
    ///
    /// `read_u32` reads the card's local memory at an address below `local_bytes` (a multiple of 4). It is called at
    /// most twice; if it returns `None`, the walk faults. The result is valid up to the end of its 2 MiB page, or up to
    /// the quota if that is not a multiple of the page size. The order of the checks follows contract D.5.
    pub fn walk(
        &self,
        vf: u8,
        guest: u64,
        quota: u64,
        mut read_u32: impl FnMut(u64) -> Option<u32>,
    ) -> Result<u64, LmttFault> {
        if guest >= quota.min(PAGES << PAGE_BITS) {
            return Err(LmttFault::Quota);
        }
        let table = self.table(vf, &mut read_u32)?;
        let frame = self.frame(table, guest >> PAGE_BITS, &mut read_u32)?;
        Ok(frame | guest & Self::OFFSET)
    }

    /// Returns the address of the table of `vf`: the first half of a walk, for callers that read many entries of one
    /// table.
    pub fn table(&self, vf: u8, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u64, LmttFault> {
        if !(1..FUNCTIONS).contains(&vf) {
            return Err(LmttFault::Function);
        }
        if !self.enabled() {
            return Err(LmttFault::Disabled);
        }
        let entry = self.entry(self.directory(), vf.into(), read_u32)?;
        if entry & VALID == 0 {
            return Err(LmttFault::Directory);
        }
        Ok(Self::table_address(entry))
    }

    /// Returns the frame of page `page` (below [`TABLE_ENTRIES`]) in the table at `table`: the second half of a walk.
    pub fn frame(&self, table: u64, page: u64, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u64, LmttFault> {
        if page >= PAGES {
            return Err(LmttFault::Quota);
        }
        let entry = self.entry(table, page, read_u32)?;
        if entry & VALID == 0 {
            return Err(LmttFault::Entry);
        }
        let frame = Self::frame_address(entry);
        let end = frame.saturating_add(1 << PAGE_BITS);
        if end > self.local_bytes { Err(LmttFault::Memory) } else { Ok(frame) }
    }

    /// Reads entry `index` of the directory or table at `table`. Faults if it is outside the card's local memory.
    fn entry(&self, table: u64, index: u64, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u32, LmttFault> {
        let at = index
            .checked_mul(4)
            .and_then(|offset| table.checked_add(offset))
            .filter(|at| at.checked_add(4).is_some_and(|end| end <= self.local_bytes));
        at.and_then(read_u32).ok_or(LmttFault::Memory)
    }

    /// Returns whether the LMTT is enabled.
    pub fn enabled(&self) -> bool {
        self.register & ENABLE != 0
    }

    /// Address of the directory.
    pub fn directory(&self) -> u64 {
        u64::from(self.register & !ENABLE) << UNIT_BITS
    }

    /// Returns the table address of a directory entry.
    const fn table_address(entry: u32) -> u64 {
        (((entry & TABLE) >> TABLE_SHIFT) as u64) << UNIT_BITS
    }

    /// Returns the frame address of a table entry.
    const fn frame_address(entry: u32) -> u64 {
        (((entry & FRAME) >> FRAME_SHIFT) as u64) << PAGE_BITS
    }
}

/// Returns LMEM_CFG for a directory at `address`, rounded down to 64 KiB.
pub const fn register(address: u64) -> u32 {
    low(address >> UNIT_SHIFT) & !ENABLE | ENABLE
}

/// Returns the directory entry for a table at `address`, rounded down to 64 KiB.
pub const fn directory_entry(address: u64) -> u32 {
    low(address >> UNIT_SHIFT) << TABLE_SHIFT & TABLE | VALID
}

/// Returns the table entry for a frame at `address`, rounded down to 2 MiB.
pub const fn table_entry(address: u64) -> u32 {
    low(address / PAGE) << FRAME_SHIFT & FRAME | VALID
}

/// Returns the table address of a directory entry.
pub const fn table_address(entry: u32) -> u64 {
    Lmtt::table_address(entry)
}

/// Returns the frame address of a table entry.
pub const fn frame_address(entry: u32) -> u64 {
    Lmtt::frame_address(entry)
}

#[cfg(test)]
mod tests;
