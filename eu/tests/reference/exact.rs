// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Real numbers as integers of 128 bits and a power of two, and their rounding to the formats of floats.
//!
//! Nothing here uses the floating-point arithmetic of the host.

use std::cmp::Ordering;

/// A binary format of IEEE 754: the numbers of bits of the exponent and of the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub exponent: u32,
    pub fraction: u32,
}

/// ISA-040: HF, F, BF.
pub const HALF: Format = Format { exponent: 5, fraction: 10 };
pub const SINGLE: Format = Format { exponent: 8, fraction: 23 };
pub const BRAIN: Format = Format { exponent: 8, fraction: 7 };

/// Rounding mode, in the order of cr0 bits 5:4 (ISA-087).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    NearestEven,
    Up,
    Down,
    TowardZero,
}

impl Round {
    pub fn from_cr0(cr0: u32) -> Round {
        [Round::NearestEven, Round::Up, Round::Down, Round::TowardZero][(cr0 >> 4 & 3) as usize]
    }
}

/// A number, which may be infinite or not a number. The value of `Finite` is magnitude * 2^exponent; zeros have a sign.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, magnitude: u128, exponent: i32 },
}

use Number::{Finite, Infinity, Nan};

impl Format {
    pub fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub fn sign_bit(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    pub fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    pub fn quiet_nan(self) -> u64 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    pub fn is_quiet_nan(self, bits: u64) -> bool {
        self.is_nan(bits) && bits >> (self.fraction - 1) & 1 == 1
    }

    /// True for numbers below the smallest normal one, but not for zeros.
    pub fn is_denormal(self, bits: u64) -> bool {
        bits & self.infinity() == 0 && bits & ((1 << self.fraction) - 1) != 0
    }

    /// The number that these bits stand for.
    pub fn decode(self, bits: u64) -> Number {
        let negative = bits & self.sign_bit() != 0;
        let fraction = u128::from(bits & ((1 << self.fraction) - 1));
        let exponent = (bits & self.infinity()) >> self.fraction;
        let least = 1 - self.bias() - self.fraction as i32;
        if exponent == (1 << self.exponent) - 1 {
            if fraction == 0 { Infinity { negative } } else { Nan }
        } else if exponent == 0 {
            Finite { negative, magnitude: fraction, exponent: least }
        } else {
            Finite { negative, magnitude: fraction | 1 << self.fraction, exponent: least + exponent as i32 - 1 }
        }
    }

    /// The bits of the nearest number of this format in the direction of the mode. NaN is the positive quiet NaN.
    pub fn encode(self, number: Number, round: Round) -> u64 {
        let (negative, magnitude, exponent) = match number {
            Nan => return self.quiet_nan(),
            Infinity { negative } => return self.signed(negative, self.infinity()),
            Finite { negative, magnitude, exponent } => (negative, magnitude, exponent),
        };
        if magnitude == 0 {
            return self.signed(negative, 0);
        }
        // The distance of the format's numbers around this one is 2^quantum.
        let quantum = highest(magnitude, exponent).max(1 - self.bias()) - self.fraction as i32;
        let significand = round_shift(negative, magnitude, quantum - exponent, round);
        // Adding the significand with its hidden bit carries into the exponent where rounding does.
        let exponent_field = (quantum + self.fraction as i32 + self.bias() - 1) as u128;
        let bits = (exponent_field << self.fraction) + significand;
        if bits >= u128::from(self.infinity()) {
            let away = match round {
                Round::NearestEven => true,
                Round::Up => !negative,
                Round::Down => negative,
                Round::TowardZero => false,
            };
            return self.signed(negative, self.infinity() - u64::from(!away));
        }
        self.signed(negative, bits as u64)
    }

    /// The bits with the sign bit if the number is negative.
    pub fn signed(self, negative: bool, bits: u64) -> u64 {
        if negative { bits | self.sign_bit() } else { bits }
    }
}

/// The exponent of the highest bit of magnitude * 2^exponent, which is not 0.
pub fn highest(magnitude: u128, exponent: i32) -> i32 {
    exponent + 127 - magnitude.leading_zeros() as i32
}

/// magnitude / 2^shift as an integer, rounded. A negative shift multiplies.
fn round_shift(negative: bool, magnitude: u128, shift: i32, round: Round) -> u128 {
    if shift <= 0 {
        assert!(-shift < 128 && magnitude.leading_zeros() >= shift.unsigned_abs(), "the number has too many bits");
        return magnitude << -shift;
    }
    let (integral, rest, half) = if shift < 128 {
        (magnitude >> shift, magnitude & ((1 << shift) - 1), 1u128 << (shift - 1))
    } else {
        // Less than a half in any case, as only numbers of less than 127 bits come here.
        (0, u128::from(magnitude != 0), 2)
    };
    let up = match round {
        Round::NearestEven => rest > half || rest == half && integral & 1 == 1,
        Round::Up => !negative && rest != 0,
        Round::Down => negative && rest != 0,
        Round::TowardZero => false,
    };
    integral + u128::from(up)
}

impl Number {
    pub const ONE: Number = Finite { negative: false, magnitude: 1, exponent: 0 };

    pub fn zero(negative: bool) -> Number {
        Finite { negative, magnitude: 0, exponent: 0 }
    }

    pub fn integer(value: i128) -> Number {
        Finite { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
    }

    pub fn is_nan(self) -> bool {
        matches!(self, Nan)
    }

    pub fn is_negative(self) -> bool {
        matches!(self, Infinity { negative: true } | Finite { negative: true, .. })
    }

    pub fn is_zero(self) -> bool {
        matches!(self, Finite { magnitude: 0, .. })
    }

    pub fn negated(self) -> Number {
        match self {
            Nan => Nan,
            Infinity { negative } => Infinity { negative: !negative },
            Finite { negative, magnitude, exponent } => Finite { negative: !negative, magnitude, exponent },
        }
    }

    /// The exact product. 0 times infinity is NaN.
    pub fn times(self, other: Number) -> Number {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinity { .. }, by) | (by, Infinity { .. }) => {
                if by.is_zero() {
                    Nan
                } else {
                    Infinity { negative }
                }
            }
            (
                Finite { magnitude, exponent, .. },
                Finite { magnitude: other_magnitude, exponent: other_exponent, .. },
            ) => Finite { negative, magnitude: magnitude * other_magnitude, exponent: exponent + other_exponent },
        }
    }

    /// The sum, exact or with the bits far below the result replaced by one bit that says that they are not all 0.
    ///
    /// Terms have at most 48 bits (a product of floats). The larger one is moved to bit 120, so bits of the smaller one are
    /// dropped only if it is smaller by a factor of 2^70 and more; then the sum has more than 100 bits above them, and
    /// rounding to 24 bits depends on whether they are 0 only. An exact sum of 0 has the sign that IEEE 754 says.
    pub fn plus(self, other: Number, round: Round) -> Number {
        let (mut left, mut right) = match (self, other) {
            (Nan, _) | (_, Nan) => return Nan,
            (Infinity { negative }, Infinity { negative: other }) => {
                return if negative == other { self } else { Nan };
            }
            (Infinity { .. }, _) => return self,
            (_, Infinity { .. }) => return other,
            (
                Finite { negative, magnitude, exponent },
                Finite { negative: other_negative, magnitude: other_magnitude, exponent: other_exponent },
            ) => ((negative, magnitude, exponent), (other_negative, other_magnitude, other_exponent)),
        };
        if left.1 == 0 && right.1 == 0 {
            return Number::zero(if left.0 == right.0 { left.0 } else { round == Round::Down });
        }
        if left.1 == 0 {
            return other;
        }
        if right.1 == 0 {
            return self;
        }
        if highest(left.1, left.2) < highest(right.1, right.2) {
            std::mem::swap(&mut left, &mut right);
        }
        let shift = left.1.leading_zeros() - 7;
        let (magnitude, exponent) = (left.1 << shift, left.2 - shift as i32);
        let smaller = {
            let distance = right.2 - exponent;
            if distance >= 0 {
                right.1 << distance
            } else if distance > -128 {
                right.1 >> -distance | u128::from(right.1 & ((1u128 << -distance) - 1) != 0)
            } else {
                1
            }
        };
        let (negative, magnitude) = if left.0 == right.0 {
            (left.0, magnitude + smaller)
        } else if magnitude >= smaller {
            (left.0, magnitude - smaller)
        } else {
            (right.0, smaller - magnitude)
        };
        if magnitude == 0 {
            return Number::zero(round == Round::Down);
        }
        Finite { negative, magnitude, exponent }
    }

    /// The order of two numbers; `None` if one is NaN. Zeros are equal.
    pub fn order(self, other: Number) -> Option<Ordering> {
        if self.is_nan() || other.is_nan() {
            return None;
        }
        let sign = |number: Number| match number {
            Finite { magnitude: 0, .. } => 0,
            _ if number.is_negative() => -1,
            _ => 1,
        };
        match (sign(self), sign(other)) {
            (left, right) if left != right => return Some(left.cmp(&right)),
            (0, _) => return Some(Ordering::Equal),
            _ => {}
        }
        let order = match (self, other) {
            (Infinity { .. }, Infinity { .. }) => Ordering::Equal,
            (Infinity { .. }, _) => Ordering::Greater,
            (_, Infinity { .. }) => Ordering::Less,
            _ => {
                // Of equal sign and not 0: the difference of the magnitudes.
                let magnitude = |number: Number| if number.is_negative() { number.negated() } else { number };
                let difference = magnitude(self).plus(magnitude(other).negated(), Round::NearestEven);
                match difference {
                    difference if difference.is_zero() => Ordering::Equal,
                    difference if difference.is_negative() => Ordering::Less,
                    _ => Ordering::Greater,
                }
            }
        };
        Some(if self.is_negative() { order.reverse() } else { order })
    }

    /// The nearest integer in the direction of the mode, with the number's sign if it is 0. Infinities and NaN stay.
    pub fn to_integral(self, round: Round) -> Number {
        let Finite { negative, magnitude, exponent } = self else { return self };
        if exponent >= 0 {
            return self;
        }
        Finite { negative, magnitude: round_shift(negative, magnitude, -exponent, round), exponent: 0 }
    }

    /// The integer toward zero within the limits. ISA-045: NaN is 0.
    pub fn to_integer(self, least: i128, most: i128) -> i128 {
        match self.to_integral(Round::TowardZero) {
            Nan => 0,
            Infinity { negative } => {
                if negative {
                    least
                } else {
                    most
                }
            }
            Finite { magnitude: 0, .. } => 0,
            Finite { negative, magnitude, exponent } => {
                // Of more than 100 bits: beyond all limits.
                if highest(magnitude, exponent) >= 100 {
                    return if negative { least } else { most };
                }
                let value = (magnitude << exponent) as i128;
                (if negative { -value } else { value }).clamp(least, most)
            }
        }
    }
}
