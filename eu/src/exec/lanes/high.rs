// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Bits 63:32 of exact results of integers, which dwords in accumulators have (ISA-082). Sources are dwords that are extended by
//! their types: sign `n` is all ones if that of source `n` is signed.

/// Bits 63:32 of source `index`, extended by its type.
#[inline(always)]
pub(super) fn sign(signs: [u32; 3], sources: [u32; 3], index: usize) -> u32 {
    (sources[index].cast_signed() >> 31).cast_unsigned() & signs[index]
}

/// Bits 63:32 of the sum of the first sources.
#[inline(always)]
pub(super) fn high_of_sum(signs: [u32; 3], sources: [u32; 3], count: usize) -> u32 {
    let (mut low, mut high) = (sources[0], sign(signs, sources, 0));
    for index in 1..count {
        let sum = low.wrapping_add(sources[index]);
        high = high.wrapping_add(sign(signs, sources, index)).wrapping_add(u32::from(sum < low));
        low = sum;
    }
    high
}

/// Bits 63:32 of the sum of source 0 and the product of the others.
#[inline(always)]
pub(super) fn high_of_mad(signs: [u32; 3], sources: [u32; 3]) -> u32 {
    let wide = |index: usize| u64::from(sign(signs, sources, index)) << 32 | u64::from(sources[index]);
    (wide(0).wrapping_add(wide(1).wrapping_mul(wide(2))) >> 32) as u32
}

/// Bits 63:32 of source 0, shifted to the left.
#[inline(always)]
pub(super) fn high_of_shift(signs: [u32; 3], sources: [u32; 3]) -> u32 {
    let count = sources[1] & 31;
    sign(signs, sources, 0) << count | sources[0] >> 1 >> (31 - count)
}

/// Bits 63:32 of a bitwise result of 32 bits, which is signed if a source is.
#[inline(always)]
pub(super) fn high_of_bits(signs: [u32; 3], count: usize, result: u32) -> u32 {
    let mut signed = signs[0];
    for sign in &signs[1..count] {
        signed |= sign;
    }
    (result.cast_signed() >> 31).cast_unsigned() & signed
}
