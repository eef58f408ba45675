// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exact binary numbers of 1,024 bits in fixed point, and their rounding to floats (ISA-130, ISA-133). Shares no code with the
//! interpreter.

/// Weight of bit 0 is `2^-BIAS`.
const BIAS: i32 = 400;
const LIMBS: usize = 16;

/// A number in sign and magnitude.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact {
    pub negative: bool,
    limbs: [u64; LIMBS],
}

/// A float format: bits of mantissa and exponent.
pub type Format = (u32, u32);
pub const F: Format = (23, 8);
pub const HF: Format = (10, 5);
pub const BF: Format = (7, 8);

/// A float without its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Nan,
    Inf(bool),
    Finite(Exact),
}

impl Exact {
    pub fn new(negative: bool, mantissa: u64, exponent: i32) -> Exact {
        let shift = (exponent + BIAS) as u32;
        let mut limbs = [0; LIMBS];
        let wide = u128::from(mantissa) << (shift % 64);
        let first = (shift / 64) as usize;
        limbs[first] = wide as u64;
        limbs[first + 1] = (wide >> 64) as u64;
        Exact { negative, limbs }
    }

    pub fn is_zero(&self) -> bool {
        self.limbs == [0; LIMBS]
    }

    fn magnitude(&self, other: &Exact) -> std::cmp::Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }

    /// Sum; the sign of a zero is that of the first operand.
    pub fn add(self, other: Exact) -> Exact {
        let (high, low) = if self.magnitude(&other).is_ge() { (self, other) } else { (other, self) };
        let subtract = high.negative != low.negative;
        let mut limbs = high.limbs;
        let mut carry = false;
        for (limb, other) in limbs.iter_mut().zip(low.limbs) {
            let (value, first) = if subtract { limb.overflowing_sub(other) } else { limb.overflowing_add(other) };
            let (value, second) =
                if subtract { value.overflowing_sub(carry.into()) } else { value.overflowing_add(carry.into()) };
            *limb = value;
            carry = first || second;
        }
        Exact { negative: high.negative, limbs }
    }

    fn bit(&self, index: i32) -> bool {
        index >= 0 && self.limbs[index as usize / 64] >> (index % 64) & 1 != 0
    }

    /// Index of the highest bit.
    fn top(&self) -> Option<i32> {
        (0..LIMBS as i32 * 64).rev().find(|index| self.bit(*index))
    }

    /// Rounds to a format; `mode` is that of cr0: 0 nearest even, 1 up, 2 down, 3 toward zero.
    pub fn round(&self, (mantissa, exponent): Format, mode: u32) -> u32 {
        let sign = u32::from(self.negative) << (mantissa + exponent);
        let Some(top) = self.top() else { return sign };
        let bias = (1 << (exponent - 1)) - 1;
        let smallest = 1 - bias - mantissa as i32 + BIAS;
        let unit = (top - mantissa as i32).max(smallest);
        let mut kept = 0u64;
        for index in (unit..=top).rev() {
            kept = kept << 1 | u64::from(self.bit(index));
        }
        let half = self.bit(unit - 1);
        let below = (0..unit - 1).any(|index| self.bit(index));
        let up = match mode {
            0 => half && (below || kept & 1 != 0),
            1 => (half || below) && !self.negative,
            2 => (half || below) && self.negative,
            _ => false,
        };
        kept += u64::from(up);
        let bits = kept + ((unit - smallest) as u64 * (1 << mantissa));
        let infinity = ((1u64 << exponent) - 1) << mantissa;
        if bits >= infinity {
            let stays = mode == 3 || mode == 1 && self.negative || mode == 2 && !self.negative;
            return sign | (infinity - u64::from(stays)) as u32;
        }
        sign | bits as u32
    }

    /// Integer part, toward zero, at most `i128`.
    pub fn truncate(&self) -> i128 {
        let mut value = 0i128;
        for index in (BIAS..=BIAS + 120).rev() {
            value = value << 1 | i128::from(self.bit(index));
        }
        if self.top().is_some_and(|top| top > BIAS + 120) {
            value = i128::MAX / 4;
        }
        if self.negative { -value } else { value }
    }

    /// True if there are bits behind the point.
    pub fn has_fraction(&self) -> bool {
        (0..BIAS).any(|index| self.bit(index))
    }

    /// Compares with the half.
    pub fn fraction_against_half(&self) -> std::cmp::Ordering {
        if !self.bit(BIAS - 1) {
            return std::cmp::Ordering::Less;
        }
        if (0..BIAS - 1).any(|index| self.bit(index)) { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Equal }
    }
}

/// Reads a float.
pub fn read(bits: u32, (mantissa, exponent): Format) -> Number {
    let negative = bits >> (mantissa + exponent) & 1 != 0;
    let fraction = u64::from(bits & ((1 << mantissa) - 1));
    let code = bits >> mantissa & ((1 << exponent) - 1);
    let first = 1 - ((1 << (exponent - 1)) - 1) - mantissa as i32;
    if code == (1 << exponent) - 1 {
        return if fraction == 0 { Number::Inf(negative) } else { Number::Nan };
    }
    if code == 0 {
        return Number::Finite(Exact::new(negative, fraction, first));
    }
    Number::Finite(Exact::new(negative, fraction | 1 << mantissa, first + code as i32 - 1))
}

/// Parts of a finite float, for products.
pub fn parts(bits: u32, (mantissa, exponent): Format) -> (bool, u64, i32) {
    let negative = bits >> (mantissa + exponent) & 1 != 0;
    let fraction = u64::from(bits & ((1 << mantissa) - 1));
    let code = bits >> mantissa & ((1 << exponent) - 1);
    let first = 1 - ((1 << (exponent - 1)) - 1) - mantissa as i32;
    if code == 0 { (negative, fraction, first) } else { (negative, fraction | 1 << mantissa, first + code as i32 - 1) }
}

/// Any NaN: payloads are not compared (ISA-132).
pub fn nan((mantissa, exponent): Format) -> u32 {
    ((1 << exponent) - 1) << mantissa | 1 << (mantissa - 1)
}

pub fn infinity((mantissa, exponent): Format, negative: bool) -> u32 {
    ((1 << exponent) - 1) << mantissa | u32::from(negative) << (mantissa + exponent)
}
