// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Floats that are not rounded to the nearest one of 32 bits: toward zero, as in the compiler's integer divisions (ISA-133), and
//! so that another rounding, to a half, gives what a single one would. The results are those of [`crate::float`], without
//! branches.

use super::f;
use crate::float::F;

/// A sum in double precision, and what it lacks of the exact one. The terms are floats of 32 bits or products of two, so that the
/// error is a number of double precision too; it is a NaN if the sum is infinite.
#[derive(Clone, Copy)]
struct Sum {
    value: f64,
    error: f64,
}

impl Sum {
    #[inline(always)]
    fn new(x: f64, y: f64) -> Sum {
        let value = x + y;
        let other = value - x;
        Sum { value, error: (x - (value - other)) + (y - other) }
    }

    #[inline(always)]
    fn exact(value: f64) -> Sum {
        Sum { value, error: 0.0 }
    }

    /// The number of double precision next to the exact sum, toward zero.
    #[inline(always)]
    fn truncated(self) -> f64 {
        f64::from_bits(self.value.to_bits() - u64::from(self.error * self.value < 0.0))
    }

    /// The float of 32 bits next to the exact sum, toward zero.
    #[inline(always)]
    fn toward_zero(self) -> u32 {
        let value = self.truncated();
        let nearest = value as f32;
        nearest.to_bits() - u32::from(f64::from(nearest).abs() > value.abs())
    }

    /// As [`Sum::toward_zero`], with the last bit set if the result is not exact. If that is rounded to a format with at least two
    /// bits less, the result is that of the exact sum.
    #[inline(always)]
    fn toward_odd(self) -> u32 {
        let bits = self.toward_zero();
        let is_less = f64::from(f(bits)).abs() < self.truncated().abs();
        bits | u32::from(is_less | (self.error.abs() > 0.0))
    }
}

/// The result, or the first source that is a NaN, quiet. ISA-132.
#[inline(always)]
fn unless_nan<const N: usize>(sources: [u32; N], result: u32) -> u32 {
    let mut bits = if f(result).is_nan() { F.nan() } else { result };
    for source in sources.into_iter().rev() {
        bits = if f(source).is_nan() { source | 0x40_0000 } else { bits };
    }
    bits
}

#[inline(always)]
fn wide(bits: u32) -> f64 {
    f64::from(f(bits))
}

/// `a + b`, toward zero.
#[inline(always)]
pub(super) fn add(a: u32, b: u32) -> u32 {
    unless_nan([a, b], Sum::new(wide(a), wide(b)).toward_zero())
}

/// `a * b`, toward zero.
#[inline(always)]
pub(super) fn mul(a: u32, b: u32) -> u32 {
    unless_nan([a, b], Sum::exact(wide(a) * wide(b)).toward_zero())
}

/// `a + b * c`, rounded once toward zero.
#[inline(always)]
pub(super) fn mad(a: u32, b: u32, c: u32) -> u32 {
    unless_nan([a, b, c], Sum::new(wide(b) * wide(c), wide(a)).toward_zero())
}

/// `a + b * c` of halves, to be rounded to a half.
#[inline(always)]
pub(super) fn half_mad(a: u32, b: u32, c: u32) -> u32 {
    unless_nan([a, b, c], Sum::new(wide(b) * wide(c), wide(a)).toward_odd())
}

/// An integer, toward zero.
#[inline(always)]
pub(super) fn integer(value: impl Into<f64>) -> u32 {
    Sum::exact(value.into()).toward_zero()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::float::{HF, Round, widened_half};

    /// Special numbers, and some of all magnitudes.
    fn samples() -> Vec<u32> {
        let special = [0, 1, 2, 0x7f_ffff, 0x80_0000, 0x3f7f_ffff, 0x3f80_0000, 0x3f80_0001, 0x7f7f_ffff, 0x7f80_0000];
        let more = [0x7f80_0001, 0x7fc0_1234, 0x3300_0000, 0x4b80_0000, 0x4b7f_ffff, 0x1fff_ffff, 0x2000_0000];
        let random = (0..150u32).map(|step| step.wrapping_mul(0x9e37_79b9) ^ step << 7);
        special.into_iter().chain(more).flat_map(|bits| [bits, bits | 1 << 31]).chain(random).collect()
    }

    #[test]
    fn floats_toward_zero_are_those_of_exact_arithmetic() {
        let all = samples();
        for &a in &all {
            assert_eq!(integer(a), F.from_integer(a.into(), Round::Zero), "{a}");
            assert_eq!(integer(a.cast_signed()), F.from_integer(a.cast_signed().into(), Round::Zero), "{a}");
            for &b in &all {
                assert_eq!(add(a, b), F.add(a, b, Round::Zero), "{a:#x} + {b:#x}");
                assert_eq!(mul(a, b), F.mul(a, b, Round::Zero), "{a:#x} * {b:#x}");
                // The negated product and its neighbours cancel nearly all of it.
                let product = F.mul(a, b, Round::Zero) ^ 1 << 31;
                for c in [a.rotate_left(9) ^ b, product, product.wrapping_add(1), product.wrapping_sub(1)] {
                    assert_eq!(mad(c, a, b), F.fma(a, b, c, Round::Zero), "{a:#x} * {b:#x} + {c:#x}");
                }
            }
        }
    }

    #[test]
    fn fused_halves_are_rounded_once() {
        let mut all: Vec<u32> = (0..300u32).map(|step| (step.wrapping_mul(0x9e37_79b9) >> 16) ^ step).collect();
        all.extend(
            [0, 1, 0x3ff, 0x400, 0x3bff, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7e12].map(|bits| bits | 0x8000),
        );
        for &a in &all {
            for &b in &all {
                let product = HF.mul(a, b, Round::Zero) ^ 0x8000;
                for c in [(a.rotate_left(5) ^ b) & 0xffff, product, product ^ 1, a & 0x83ff] {
                    let wide = half_mad(widened_half(c), widened_half(a), widened_half(b));
                    let once = HF.fma(a, b, c, Round::NearestEven);
                    assert_eq!(HF.convert(wide, F, Round::NearestEven), once, "{a:#x} * {b:#x} + {c:#x}");
                }
            }
        }
    }
}
