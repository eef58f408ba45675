// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Integer conversions by meaning: halves of an address, memory sizes and element counts.

/// Bits 31:0.
pub const fn low(value: u64) -> u32 {
    (value & 0xffff_ffff) as u32
}

/// Bits 63:32.
pub const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

const _: () = assert!(usize::BITS == 64, "guests and host are 64-bit systems");

/// Converts a memory size or offset to `usize`.
#[allow(clippy::cast_possible_truncation, reason = "usize has 64 bits, as asserted above")]
pub const fn size(value: u64) -> usize {
    value as usize
}

/// Converts an element count to `u32`, saturating.
pub const fn count(elements: usize) -> u32 {
    let elements = elements as u64;
    if high(elements) == 0 { low(elements) } else { u32::MAX }
}
