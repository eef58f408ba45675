// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_ATOMIC's operations (V8-133; opcodes of Mesa's genxml, MI_ATOMIC_OP; operands of Intel's media driver,
//! mhw_mi_hwcmd_*.h).

/// Returns the new value for the old value, `bits` wide, and two operands; `None` if `code` is not an operation.
pub fn operation(code: u32, bits: u32, old: u128, first: u128, second: u128) -> Option<u128> {
    let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
    let (first, second) = (first & mask, second & mask);
    let signed = |value: u128| (value as i128) << (128 - bits) >> (128 - bits);
    let new = match (code & 0xf, bits) {
        (0xe, _) => {
            if old == first {
                second
            } else {
                old
            }
        }
        (_, 128) => return None,
        (1, _) => old & first,
        (2, _) => old | first,
        (3, _) => old ^ first,
        (4, _) => first,
        (5, _) => old.wrapping_add(1),
        (6 | 0xf, _) => old.wrapping_sub(1),
        (7, _) => old.wrapping_add(first),
        (8, _) => old.wrapping_sub(first),
        (9, _) => first.wrapping_sub(old),
        (0xa, _) => {
            if signed(old) > signed(first) {
                old
            } else {
                first
            }
        }
        (0xb, _) => {
            if signed(old) < signed(first) {
                old
            } else {
                first
            }
        }
        (0xc, _) => {
            if old > first {
                old
            } else {
                first
            }
        }
        (0xd, _) => {
            if old < first {
                old
            } else {
                first
            }
        }
        _ => return None,
    };
    Some(new & mask)
}
