// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Conversions of integers by what they mean: halves of an address, sizes and counts in memory.

/// Bits 31:0.
pub const fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// Bits 63:32.
pub const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

const _: () = assert!(usize::BITS == 64, "the guests and their host have 64 bits");

/// A size or an offset in memory.
#[allow(clippy::cast_possible_truncation, reason = "usize has 64 bits, as asserted above")]
pub const fn size(value: u64) -> usize {
    value as usize
}

/// A number of elements in memory, saturating.
pub const fn count(elements: usize) -> u32 {
    let elements = elements as u64;
    if high(elements) == 0 { low(elements) } else { u32::MAX }
}
