// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Key-length-value (KLV) lists, which carry policies and opt-ins (xe: abi/guc_klvs_abi.h, contract K.5).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use crate::guc::messages::hxg::{Error, global_address};
use crate::memory::{Gam, Space};

/// Per context: execution quantum in microseconds, 0 = unlimited.
pub const EXECUTION_QUANTUM: u16 = 0x2001;
/// Per context: preemption timeout in microseconds, 0 = none.
pub const PREEMPTION_TIMEOUT: u16 = 0x2002;
/// Per context: scheduling priority, 0 = highest.
pub const SCHEDULING_PRIORITY: u16 = 0x2003;
/// Per context: go idle between quanta (i915).
pub const PREEMPT_TO_IDLE: u16 = 0x2004;
/// Per context: frequency hint for SLPC.
pub const SLPM_GT_FREQUENCY: u16 = 0x2005;
/// Scheduling policy: share of the compute engines while a render engine is busy (milliseconds, percent).
pub const RENDER_COMPUTE_YIELD: u16 = 0x1001;
/// Opt-in: CAT error notifications carry a second dword.
pub const EXT_CAT_ERR_TYPE: u16 = 0x4001;

/// Reads a list of `dwords` dwords at GGTT address (`low`, `high`). Returns an error if it is longer than `most`.
pub fn read(gam: &mut Gam<'_>, (low, high): (u32, u32), dwords: u32, most: u32) -> Result<Vec<u32>, Error> {
    if dwords > most {
        return Err(Error::InvalidSize);
    }
    let address = global_address(low, high)?;
    (0..u64::from(dwords))
        .map(|n| gam.read_u32(Space::Ggtt, address.wrapping_add(n << 2)).map_err(|_| Error::InvalidGgttAddress))
        .collect()
}

/// Iterates over a list. Each item is a key with its value dwords, or the error that ends the iteration.
pub fn walk(dwords: &[u32]) -> impl Iterator<Item = Result<(u16, &[u32]), Error>> {
    let mut rest = dwords;
    std::iter::from_fn(move || {
        let (header, after) = rest.split_first()?;
        let len = (*header & 0xffff) as usize;
        let Some((value, next)) = after.split_at_checked(len) else {
            rest = &[];
            return Some(Err(Error::MalformedKlv));
        };
        rest = next;
        Some(Ok(((header >> 16) as u16, value)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use super::*;

    /// Contract K.5: header dword key:len; a length beyond the buffer is malformed.
    #[test]
    fn walks_and_stops_at_the_end() {
        let list = [0x2003_0001, 2, 0x4001_0000, 0x2001_0002, 7];
        let items: Vec<_> = walk(&list).collect();
        assert_eq!(items, [Ok((0x2003, &[2][..])), Ok((0x4001, &[][..])), Err(Error::MalformedKlv)]);
    }
}
