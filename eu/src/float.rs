// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Floating-point arithmetic in integers, correctly rounded in all four modes (ISA-130, ISA-133), for the formats F, HF and
//! BF. The host's rounding mode is never changed.

/// Rounding mode, with the codes of cr0.0 bits 5:4. ISA-087.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    NearestEven,
    /// Toward plus infinity.
    Up,
    /// Toward minus infinity.
    Down,
    /// Toward zero.
    Zero,
}

impl Round {
    /// Mode of a code of two bits.
    pub fn from_code(code: u32) -> Round {
        [Round::NearestEven, Round::Up, Round::Down, Round::Zero][code as usize & 3]
    }
}

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the stored mantissa.
    pub mantissa: u32,
    /// Bits of the exponent.
    pub exponent: u32,
}

/// 32 bits.
pub const F: Format = Format { mantissa: 23, exponent: 8 };
/// 16 bits.
pub const HF: Format = Format { mantissa: 10, exponent: 5 };
/// 16 bits with the exponent of F.
pub const BF: Format = Format { mantissa: 7, exponent: 8 };

/// A number without its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Not a number.
    Nan,
    /// Infinity; true for the negative one.
    Inf(bool),
    /// `mantissa * 2^exponent`, negative if the flag is set. The mantissa may be 0.
    Finite(bool, u64, i32),
}

impl Format {
    /// Bit of the sign.
    pub const fn sign(self) -> u32 {
        1 << (self.mantissa + self.exponent)
    }

    /// Bits of infinity.
    pub const fn infinity(self) -> u32 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// The NaN that an invalid operation gives. ISA-132.
    pub const fn nan(self) -> u32 {
        self.infinity() | 1 << (self.mantissa - 1)
    }

    /// The number 1.
    pub const fn one(self) -> u32 {
        (self.bias() as u32) << self.mantissa
    }

    /// Makes a NaN quiet.
    pub const fn quiet(self, bits: u32) -> u32 {
        if self.is_nan(bits) { bits | 1 << (self.mantissa - 1) } else { bits }
    }

    /// Largest finite number.
    const fn largest(self) -> u32 {
        self.infinity() - 1
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// True for a NaN.
    pub const fn is_nan(self, bits: u32) -> bool {
        bits & !self.sign() & (self.sign() | self.sign() - 1) > self.infinity()
    }

    /// True for a number with the smallest exponent that is not 0.
    pub const fn is_denormal(self, bits: u32) -> bool {
        bits & self.infinity() == 0 && bits & ((1 << self.mantissa) - 1) != 0
    }

    /// Replaces a denormal by the zero of its sign. ISA-131.
    pub const fn flush(self, bits: u32) -> u32 {
        if self.is_denormal(bits) { bits & self.sign() } else { bits }
    }

    /// Divides bits into their parts.
    pub fn unpack(self, bits: u32) -> Value {
        let negative = bits & self.sign() != 0;
        let mantissa = u64::from(bits & ((1 << self.mantissa) - 1));
        let exponent = (bits & self.infinity()) >> self.mantissa;
        let first = 1 - self.bias() - self.mantissa as i32;
        if exponent == (1 << self.exponent) - 1 {
            return if mantissa == 0 { Value::Inf(negative) } else { Value::Nan };
        }
        if exponent == 0 {
            return Value::Finite(negative, mantissa, first);
        }
        Value::Finite(negative, mantissa | 1 << self.mantissa, first + exponent as i32 - 1)
    }

    /// Rounds `mantissa * 2^exponent`, plus less than one unit of the mantissa's last bit if `sticky`.
    pub fn round(self, negative: bool, mantissa: u128, exponent: i32, sticky: bool, mode: Round) -> u32 {
        let sign = if negative { self.sign() } else { 0 };
        if mantissa == 0 && !sticky {
            return sign;
        }
        // Keep room below for the sticky bit.
        let (mantissa, exponent) =
            if mantissa.leading_zeros() > 2 { (mantissa << 1, exponent - 1) } else { (mantissa, exponent) };
        let mantissa = mantissa | u128::from(sticky);
        let smallest = 1 - self.bias() - self.mantissa as i32;
        let length = 128 - mantissa.leading_zeros() as i32;
        // Exponent of the last bit that is kept.
        let last = (exponent + length - 1 - self.mantissa as i32).max(smallest);
        let drop = last - exponent;
        let (kept, rest, half) = if drop <= 0 {
            (mantissa << -drop, 0, 1)
        } else if drop > 127 {
            (0, 1, 2)
        } else {
            (mantissa >> drop, mantissa & ((1 << drop) - 1), 1 << (drop - 1))
        };
        let up = match mode {
            Round::NearestEven => rest > half || rest == half && kept & 1 != 0,
            Round::Up => rest != 0 && !negative,
            Round::Down => rest != 0 && negative,
            Round::Zero => false,
        };
        let kept = kept as u64 + u64::from(up);
        // The implicit bit and a carry add to the exponent.
        let bits = ((last - smallest) as u64) * (1 << self.mantissa) + kept;
        if bits >= u64::from(self.infinity()) {
            let truncates = match mode {
                Round::NearestEven => false,
                Round::Up => negative,
                Round::Down => !negative,
                Round::Zero => true,
            };
            return sign | if truncates { self.largest() } else { self.infinity() };
        }
        sign | bits as u32
    }

    /// Quiet NaN of the first operand that is one. ISA-132.
    fn propagate(self, operands: &[u32]) -> u32 {
        let quiet = 1 << (self.mantissa - 1);
        operands.iter().find(|bits| self.is_nan(**bits)).map_or(self.nan(), |bits| bits | quiet)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(self, a: u32, b: u32, c: u32, mode: Round) -> u32 {
        use Value::{Finite, Inf, Nan};
        let (x, y, z) = (self.unpack(a), self.unpack(b), self.unpack(c));
        // ISA-112: src0 is the addend, so its NaN comes first.
        if [x, y, z].contains(&Nan) {
            return self.propagate(&[c, a, b]);
        }
        let negative = |bits: u32| bits & self.sign() != 0;
        let product_negative = negative(a) != negative(b);
        let signed = |negative, bits| if negative { self.sign() | bits } else { bits };
        match (x, y, z) {
            (Inf(_), Finite(_, 0, _), _) | (Finite(_, 0, _), Inf(_), _) => self.nan(),
            (Inf(_), ..) | (_, Inf(_), _) => match z {
                Inf(other) if other != product_negative => self.nan(),
                _ => signed(product_negative, self.infinity()),
            },
            (_, _, Inf(other)) => signed(other, self.infinity()),
            (Finite(_, m1, e1), Finite(_, m2, e2), Finite(other, m3, e3)) => {
                let product = u128::from(m1) * u128::from(m2);
                self.sum((product_negative, product, e1 + e2), (other, u128::from(m3), e3), mode)
            }
            _ => self.nan(),
        }
    }

    /// Sum of two numbers with mantissas of at most 48 bits.
    fn sum(self, left: (bool, u128, i32), right: (bool, u128, i32), mode: Round) -> u32 {
        if left.1 == 0 && right.1 == 0 {
            let negative = if left.0 == right.0 { left.0 } else { mode == Round::Down };
            return self.round(negative, 0, 0, false, mode);
        }
        if left.1 == 0 {
            return self.round(right.0, right.1, right.2, false, mode);
        }
        if right.1 == 0 {
            return self.round(left.0, left.1, left.2, false, mode);
        }
        let (high, low) = if left.2 >= right.2 { (left, right) } else { (right, left) };
        let distance = high.2 - low.2;
        const MOST: i32 = 76;
        if distance <= MOST {
            let (a, b) = (high.1 << distance, low.1);
            if high.0 == low.0 {
                return self.round(high.0, a + b, low.2, false, mode);
            }
            if a == b {
                return self.round(mode == Round::Down, 0, 0, false, mode);
            }
            let negative = if a > b { high.0 } else { low.0 };
            return self.round(negative, a.abs_diff(b), low.2, false, mode);
        }
        // The lower number is less than one unit of the last bit.
        let a = high.1 << MOST;
        let exponent = high.2 - MOST;
        let a = if high.0 == low.0 { a } else { a - 1 };
        self.round(high.0, a, exponent, true, mode)
    }

    /// `a + b`.
    pub fn add(self, a: u32, b: u32, mode: Round) -> u32 {
        use Value::{Finite, Inf, Nan};
        match (self.unpack(a), self.unpack(b)) {
            (Nan, _) | (_, Nan) => self.propagate(&[a, b]),
            (Inf(x), Inf(y)) => {
                if x == y {
                    a
                } else {
                    self.nan()
                }
            }
            (Inf(_), _) => a,
            (_, Inf(_)) => b,
            (Finite(s1, m1, e1), Finite(s2, m2, e2)) => {
                self.sum((s1, u128::from(m1), e1), (s2, u128::from(m2), e2), mode)
            }
        }
    }

    /// `a * b`.
    pub fn mul(self, a: u32, b: u32, mode: Round) -> u32 {
        use Value::{Finite, Inf, Nan};
        let negative = (a ^ b) & self.sign() != 0;
        match (self.unpack(a), self.unpack(b)) {
            (Nan, _) | (_, Nan) => self.propagate(&[a, b]),
            (Inf(_), Finite(_, 0, _)) | (Finite(_, 0, _), Inf(_)) => self.nan(),
            (Inf(_), _) | (_, Inf(_)) => (if negative { self.sign() } else { 0 }) | self.infinity(),
            (Finite(_, m1, e1), Finite(_, m2, e2)) => {
                self.round(negative, u128::from(m1) * u128::from(m2), e1 + e2, false, mode)
            }
        }
    }

    /// Converts a number of another format. A NaN keeps the high bits of its payload, quiet.
    pub fn convert(self, bits: u32, from: Format, mode: Round) -> u32 {
        match from.unpack(bits) {
            Value::Nan => {
                let sign = if bits & from.sign() != 0 { self.sign() } else { 0 };
                let payload = bits & ((1 << from.mantissa) - 1);
                let payload = if self.mantissa >= from.mantissa {
                    payload << (self.mantissa - from.mantissa)
                } else {
                    payload >> (from.mantissa - self.mantissa)
                };
                sign | self.nan() | payload
            }
            Value::Inf(negative) => (if negative { self.sign() } else { 0 }) | self.infinity(),
            Value::Finite(negative, mantissa, exponent) => {
                self.round(negative, u128::from(mantissa), exponent, false, mode)
            }
        }
    }

    /// Converts an integer.
    pub fn from_integer(self, value: i128, mode: Round) -> u32 {
        self.round(value < 0, value.unsigned_abs(), 0, false, mode)
    }
}

/// Exact value of a half.
#[inline]
pub fn f16_to_f32(bits: u16) -> f32 {
    f32::from_bits(widened_half(u32::from(bits)))
}

/// Bits of a half as those of F, without branches, as [`Format::convert`] has them. Bits above the half are ignored.
#[inline(always)]
pub fn widened_half(bits: u32) -> u32 {
    let magnitude = (bits & 0x7fff) << 13;
    // The exponent has the bias of HF: the number is 2^-112 of what it is to be.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let quiet = if magnitude > HF.infinity() << 13 { 0x40_0000 } else { 0 };
    let special = magnitude | F.infinity() | quiet;
    (bits & 0x8000) << 16 | if magnitude >= HF.infinity() << 13 { special } else { scaled }
}

/// Bits of F as those of the nearest half, without branches, as [`Format::convert`] has them.
#[inline(always)]
pub fn narrowed_half(bits: u32) -> u32 {
    let magnitude = bits & !F.sign();
    // Below 2^-14 the sum with 1/2 has the unit of the smallest half as its last bit, and the host rounds.
    const SMALL: u32 = 113 << 23;
    const HALF: u32 = 126 << 23;
    let small = (f32::from_bits(magnitude) + f32::from_bits(HALF)).to_bits().wrapping_sub(HALF);
    // Others have the bias of HF, and are rounded by adding less than a half of the last bit, or a half if that bit is 1.
    let biased = magnitude.wrapping_sub((127 - 15) << 23);
    let normal = biased.wrapping_add(0xfff + (magnitude >> 13 & 1)) >> 13;
    let finite = if magnitude < SMALL { small } else { normal };
    let nan = HF.nan() | (magnitude & 0x7f_ffff) >> 13;
    // From 2^16 on all are infinite.
    let special = if magnitude > F.infinity() { nan } else { HF.infinity() };
    bits >> 16 & HF.sign() | if magnitude >= 143 << 23 { special } else { finite }
}

/// Nearest half.
pub fn f32_to_f16(value: f32) -> u16 {
    narrowed_half(value.to_bits()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all magnitudes, special ones among them.
    fn samples() -> impl Iterator<Item = u32> {
        let special = [
            0,
            1,
            2,
            0x7f_ffff,
            0x80_0000,
            0x80_0001,
            0x3f80_0000,
            0x3f80_0001,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            0x3300_0000,
            0x4b80_0000,
        ];
        let random = (0..300u32).map(|step| step.wrapping_mul(0x9e37_79b9) ^ step << 7);
        special.into_iter().flat_map(|bits| [bits, bits | 1 << 31]).chain(random)
    }

    fn same(ours: u32, host: f32) -> bool {
        ours == host.to_bits() || F.is_nan(ours) && host.is_nan()
    }

    /// ISA-130: in the nearest-even mode, the host's arithmetic is a second opinion.
    #[test]
    fn halves_are_widened_as_they_are_converted() {
        for bits in 0..=0xffff {
            assert_eq!(widened_half(bits), F.convert(bits, HF, Round::NearestEven), "{bits:#x}");
            assert_eq!(widened_half(bits | 0xabcd_0000), widened_half(bits), "{bits:#x}");
        }
    }

    #[test]
    fn floats_are_narrowed_as_they_are_converted() {
        let check = |bits: u32| assert_eq!(narrowed_half(bits), HF.convert(bits, F, Round::NearestEven), "{bits:#x}");
        (0..1 << 20).for_each(|step: u32| check(step.wrapping_mul(0x9e37_79b1)));
        // The numbers in the middle between two halves, and those beside them.
        for half in 0..=0x7c00 {
            let (low, high) = (f16_to_f32(half), f16_to_f32(half + 1));
            let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
            let bits = if half < 0x7bff { middle.to_bits() } else { 0x477f_f000 };
            (0..5).for_each(|step| check((bits + step).wrapping_sub(2) ^ (u32::from(half) & 1) << 31));
        }
    }

    #[test]
    fn sums_products_and_fused_products_are_those_of_the_host() {
        let all: Vec<u32> = samples().collect();
        for &a in &all {
            for &b in &all {
                let (x, y) = (f32::from_bits(a), f32::from_bits(b));
                assert!(same(F.add(a, b, Round::NearestEven), x + y), "{a:#x} + {b:#x}");
                assert!(same(F.mul(a, b, Round::NearestEven), x * y), "{a:#x} * {b:#x}");
                let c = a.rotate_left(9) ^ b;
                let fused = x.mul_add(y, f32::from_bits(c));
                assert!(same(F.fma(a, b, c, Round::NearestEven), fused), "{a:#x} * {b:#x} + {c:#x}");
            }
        }
    }

    /// ISA-133: results of the directed modes enclose the exact result, and are equal if it is representable.
    #[test]
    fn directed_modes_enclose_the_exact_sum() {
        let all: Vec<u32> = samples().collect();
        for &a in &all {
            for &b in &all {
                let exact = f64::from(f32::from_bits(a)) + f64::from(f32::from_bits(b));
                let distance = (a >> 23 & 0xff).abs_diff(b >> 23 & 0xff);
                if !exact.is_finite() || distance > 28 {
                    continue;
                }
                let value = |mode| f64::from(f32::from_bits(F.add(a, b, mode)));
                let (down, up, zero) = (value(Round::Down), value(Round::Up), value(Round::Zero));
                assert!(down <= exact && exact <= up, "{a:#x} {b:#x}");
                assert_eq!(zero, if exact > 0.0 { down } else { up }, "{a:#x} {b:#x}");
                assert_eq!(down == up, f64::from(exact as f32) == exact);
            }
        }
    }

    #[test]
    fn halves_are_converted_exactly_and_back() {
        for bits in 0..=u16::MAX {
            let nan = HF.is_nan(u32::from(bits));
            assert_eq!(f16_to_f32(bits).is_nan(), nan);
            assert!(nan || f32_to_f16(f16_to_f32(bits)) == bits);
        }
        assert_eq!([f32_to_f16(65520.0), f32_to_f16(65519.0), f32_to_f16(2.0f32.powi(-25))], [0x7c00, 0x7bff, 0]);
    }
}
