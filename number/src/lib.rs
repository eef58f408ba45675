// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Integer conversions by purpose: halves of a qword, and sizes and counts in host memory.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

/// Bits 31:0.
#[inline]
pub const fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// Bits 63:32.
#[inline]
pub const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

/// The value with these bits 31:0 and 63:32.
#[inline]
pub const fn qword(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const _: () = assert!(usize::BITS == 64, "the memory of a card and of its guests requires a 64-bit host");

/// A size, an offset or an index in the host's memory.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "usize has 64 bits, as asserted above")]
pub const fn size(value: u64) -> usize {
    value as usize
}

/// A number of elements in the host's memory, saturating.
#[inline]
pub const fn count(elements: usize) -> u32 {
    let elements = elements as u64;
    if high(elements) == 0 { low(elements) } else { u32::MAX }
}

/// An index or a length that is below 256, such as those of small tables.
#[inline]
pub const fn byte(index: usize) -> u8 {
    debug_assert!(index < 256);
    index.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_sizes_and_counts() {
        assert_eq!((low(0x1_2345_6789), high(0x1_2345_6789)), (0x2345_6789, 1));
        assert_eq!(qword(0x2345_6789, 1), 0x1_2345_6789);
        assert_eq!(size(1 << 40), 1 << 40);
        assert_eq!((count(7), count(1 << 32)), (7, u32::MAX));
        assert_eq!(byte(255), 255);
    }
}
