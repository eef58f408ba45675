//! The local memory translation table: a VF's local memory addresses become the card's (V13-101..112, contract D.5).
//!
//! Two levels in local memory. A register points to a directory with an entry a function; that points to the
//! function's table, with an entry for every 2 MiB. xe writes entries that reach 32 GiB and the walk parses the wide
//! form, which reaches 128 GiB: a frame that the card does not have is a fault either way.

use std::fmt;

/// Bytes of a page of the LMTT (V13-105).
pub const PAGE: u64 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 21;
/// Guest addresses that a table can translate (xe: LMTT_2L_HAW).
pub const GUEST_BYTES: u64 = 32 << 30;
/// Entries of the directory: the PF, whose entry is unused, and 63 VFs (V13-103).
pub const DIRECTORY_ENTRIES: u8 = 64;
/// Entries of a VF's table.
pub const TABLE_ENTRIES: u64 = GUEST_BYTES / PAGE;

/// Directory and tables are placed in units of 64 KiB (V13-103, V13-104).
const UNIT_SHIFT: u32 = 16;
/// LMEM_CFG bit 31: the LMTT is in use. The other bits are the directory's place (V13-107; xe: LMEM_EN, LMTT_DIR_PTR).
pub const ENABLE: u32 = 1 << 31;

/// Bit 0 of either entry (V13-104, V13-106).
const VALID: u32 = 1 << 0;
/// Place of the table in a directory entry, bits 24:4 (xe: LMTT_2L_PDE_LMTT_PTR).
const TABLE: u32 = 0x1f_ffff << TABLE_SHIFT;
const TABLE_SHIFT: u32 = 4;
/// Number of the frame in a table entry, bits 20:5 (xe: LMTT_2L_PTE_LMEM_PAGE).
const FRAME: u32 = 0xffff << FRAME_SHIFT;
const FRAME_SHIFT: u32 = 5;

/// Why a VF's address has no local memory behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LmttFault {
    /// The function is no VF.
    Function,
    /// The address is at or beyond the VF's quota, or 32 GiB.
    Quota,
    /// The LMTT is not in use.
    Disabled,
    /// The VF has no table.
    Directory,
    /// The page has no frame.
    Entry,
    /// The directory, the table or the frame is not in the card's memory.
    Memory,
}

impl fmt::Display for LmttFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LmttFault::Function => "the function is no VF",
            LmttFault::Quota => "the address is beyond the VF's local memory",
            LmttFault::Disabled => "the LMTT is not enabled",
            LmttFault::Directory => "the VF has no LMTT",
            LmttFault::Entry => "the LMTT has no page there",
            LmttFault::Memory => "the LMTT points beyond the card's local memory",
        })
    }
}

impl std::error::Error for LmttFault {}

/// The LMTT as the PF has it now, and the memory that it speaks of.
pub type Lmtt = Walk<PAGE_SHIFT, UNIT_SHIFT, TABLE_ENTRIES, DIRECTORY_ENTRIES>;

/// The walk with its sizes: bytes of a page and of the unit in which tables are placed, as shifts; entries of a VF's
/// table and of the directory.
#[derive(Clone, Copy, Debug)]
pub struct Walk<const PAGE_BITS: u32, const UNIT_BITS: u32, const PAGES: u64, const FUNCTIONS: u8> {
    /// LMEM_CFG, 0xcf58.
    pub register: u32,
    /// Bytes of the card's local memory.
    pub local_bytes: u64,
}

impl<const PAGE_BITS: u32, const UNIT_BITS: u32, const PAGES: u64, const FUNCTIONS: u8>
    Walk<PAGE_BITS, UNIT_BITS, PAGES, FUNCTIONS>
{
    /// The address in the card's local memory of `guest` in the local memory of `vf`, whose LMEM_SIZE is `quota`.
    ///
    /// `read_u32` reads the card's local memory at an address below `local_bytes` (a multiple of 4); it is called at
    /// most twice, and its `None` is a fault. What is returned is good to the end of its 2 MiB page, or to the quota's
    /// if that is not made of whole pages. Order of the checks: contract D.5.
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
        Ok(frame + guest % (1 << PAGE_BITS))
    }

    /// Where the table of `vf` is: the first half of a walk, for a caller that looks at many of its entries.
    pub fn table(&self, vf: u8, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u64, LmttFault> {
        if !(1..FUNCTIONS).contains(&vf) {
            return Err(LmttFault::Function);
        }
        if !self.enabled() {
            return Err(LmttFault::Disabled);
        }
        let entry = self.entry(self.directory(), vf.into(), read_u32)?;
        if entry & VALID == 0 { Err(LmttFault::Directory) } else { Ok(Self::table_address(entry)) }
    }

    /// The frame of page `page` (below [`TABLE_ENTRIES`]) in the table at `table`: the second half of a walk.
    pub fn frame(&self, table: u64, page: u64, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u64, LmttFault> {
        if page >= PAGES {
            return Err(LmttFault::Quota);
        }
        let entry = self.entry(table, page, read_u32)?;
        if entry & VALID == 0 {
            return Err(LmttFault::Entry);
        }
        let frame = Self::frame_address(entry);
        if frame + (1 << PAGE_BITS) > self.local_bytes { Err(LmttFault::Memory) } else { Ok(frame) }
    }

    /// Entry `index` of the directory or table at `table`, which has to be in the card's memory.
    fn entry(&self, table: u64, index: u64, read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u32, LmttFault> {
        let at = table.checked_add(4 * index).filter(|at| at.checked_add(4).is_some_and(|end| end <= self.local_bytes));
        at.and_then(read_u32).ok_or(LmttFault::Memory)
    }

    /// Whether the LMTT is in use.
    pub fn enabled(&self) -> bool {
        self.register & ENABLE != 0
    }

    /// Address of the directory.
    pub fn directory(&self) -> u64 {
        u64::from(self.register & !ENABLE) << UNIT_BITS
    }

    /// Where a directory entry says the table is.
    const fn table_address(entry: u32) -> u64 {
        (((entry & TABLE) >> TABLE_SHIFT) as u64) << UNIT_BITS
    }

    /// Which frame a table entry names.
    const fn frame_address(entry: u32) -> u64 {
        (((entry & FRAME) >> FRAME_SHIFT) as u64) << PAGE_BITS
    }
}

/// LMEM_CFG for a directory at `address`, of which a multiple of 64 KiB counts.
pub const fn register(address: u64) -> u32 {
    (address >> UNIT_SHIFT) as u32 & !ENABLE | ENABLE
}

/// The directory entry for a table at `address`, of which a multiple of 64 KiB counts.
pub const fn directory_entry(address: u64) -> u32 {
    ((address >> UNIT_SHIFT) as u32) << TABLE_SHIFT & TABLE | VALID
}

/// The table entry for a frame at `address`, of which a multiple of 2 MiB counts.
pub const fn table_entry(address: u64) -> u32 {
    ((address / PAGE) as u32) << FRAME_SHIFT & FRAME | VALID
}

/// Where a directory entry says the table is.
pub const fn table_address(entry: u32) -> u64 {
    Lmtt::table_address(entry)
}

/// Which frame a table entry names.
pub const fn frame_address(entry: u32) -> u64 {
    Lmtt::frame_address(entry)
}

#[cfg(test)]
mod tests;
