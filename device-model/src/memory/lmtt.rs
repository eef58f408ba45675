//! The local memory translation table: a virtual function's local memory in frames of the card's (V13-101..112).

/// Bytes that one entry of the table gives (V13-105).
pub const FRAME: u64 = 2 << 20;

/// Local memory that one table can give: 16384 entries (contract D.5: HAW 35).
pub const REACH: u64 = 32 << 30;

/// LMEM_CFG: translation is on.
const ENABLE: u32 = 1 << 31;
/// Unit of LMEM_CFG and of a directory entry's pointer.
const TABLE_UNIT: u64 = 64 << 10;
const VALID: u32 = 1;
/// Bytes of a function's table.
pub const TABLE_BYTES: u64 = REACH / FRAME * 4;

/// LMEM_CFG for the directory at `address`, a multiple of 64 KiB.
pub fn cfg(address: u64) -> u32 {
    ENABLE | (address / TABLE_UNIT) as u32
}

/// The directory's entry for a function whose table is at `address`, a multiple of 64 KiB.
pub fn directory_entry(address: u64) -> u32 {
    ((address / TABLE_UNIT) as u32) << 4 | VALID
}

/// A table's entry that gives frame `frame` of local memory.
pub fn page_entry(frame: u32) -> u32 {
    frame << 5 | VALID
}

/// Why the table gives no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LmttFault {
    /// The offset is beyond what the function has been given, or beyond the table's reach.
    BeyondQuota,
    /// Translation is off, an entry is not valid, or a table lies outside local memory.
    NotValid,
    /// The frame is not part of the card's usable memory.
    BeyondMemory,
}

/// Address of the function's table, by the directory that LMEM_CFG points to.
pub fn table(lmem_cfg: u32, vf: u8, mut read_u32: impl FnMut(u64) -> Option<u32>) -> Result<u64, LmttFault> {
    if lmem_cfg & ENABLE == 0 {
        return Err(LmttFault::NotValid);
    }
    let directory = u64::from(lmem_cfg & !ENABLE) * TABLE_UNIT;
    let entry = read_u32(directory + u64::from(vf) * 4).ok_or(LmttFault::NotValid)?;
    if entry & VALID == 0 {
        return Err(LmttFault::NotValid);
    }
    Ok(u64::from(entry >> 4 & 0x1f_ffff) * TABLE_UNIT)
}

/// Local memory address behind byte `offset` of function `vf`'s local memory, of which it has `quota` bytes;
/// `local_bytes` is what the card can give, `read_u32` reads the tables from local memory (xe: xe_lmtt_2l.c).
pub fn walk(
    lmem_cfg: u32,
    vf: u8,
    offset: u64,
    quota: u64,
    local_bytes: u64,
    mut read_u32: impl FnMut(u64) -> Option<u32>,
) -> Result<u64, LmttFault> {
    if offset >= quota || offset >= REACH {
        return Err(LmttFault::BeyondQuota);
    }
    let table = table(lmem_cfg, vf, &mut read_u32)?;
    let entry = read_u32(table + offset / FRAME * 4).ok_or(LmttFault::NotValid)?;
    if entry & VALID == 0 {
        return Err(LmttFault::NotValid);
    }
    let frame = u64::from(entry >> 5 & 0xffff) * FRAME;
    if frame + FRAME > local_bytes {
        return Err(LmttFault::BeyondMemory);
    }
    Ok(frame + offset % FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V13-101..106, contract D.5: directory by function number, leaf by 2 MiB page, in the fields that xe writes.
    #[test]
    fn two_levels() {
        // Directory at 0x30000 (LMEM_CFG counts in 64 KiB), VF 5's table at 0x120000; page 3 in frame 0x1234.
        let read = |at: u64| {
            Some(match at {
                0x3_0014 => 0x12 << 4 | 1,
                0x12_000c => 0x1234 << 5 | 1,
                0x12_0010 => 0x1235 << 5,
                _ => 0,
            })
        };
        let walk = |vf, offset, quota| walk(1 << 31 | 3, vf, offset, quota, 16 << 30, read);
        assert_eq!(walk(5, 3 * FRAME + 0x12_3456, 4 * FRAME), Ok(0x1234 * FRAME + 0x12_3456));
        assert_eq!(walk(5, 4 * FRAME, 5 * FRAME), Err(LmttFault::NotValid));
        assert_eq!(walk(5, 4 * FRAME, 4 * FRAME), Err(LmttFault::BeyondQuota));
        assert_eq!(walk(4, 3 * FRAME, 4 * FRAME), Err(LmttFault::NotValid));
        assert_eq!(walk(5, REACH, u64::MAX), Err(LmttFault::BeyondQuota));
        assert_eq!(super::walk(3, 5, 3 * FRAME, 4 * FRAME, 16 << 30, read), Err(LmttFault::NotValid));
        assert_eq!(
            super::walk(1 << 31 | 3, 5, 3 * FRAME, 4 * FRAME, 0x1234 * FRAME, read),
            Err(LmttFault::BeyondMemory)
        );
        // Tables outside local memory.
        assert_eq!(super::walk(!0, 63, 0, FRAME, 16 << 30, |_| None), Err(LmttFault::NotValid));
        assert_eq!(super::walk(!0, 63, 0, FRAME, 16 << 30, |_| Some(!0)), Err(LmttFault::BeyondMemory));
    }
}
