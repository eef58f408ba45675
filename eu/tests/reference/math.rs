// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The functions of math (ISA-150 to ISA-153) with more than 50 bits, in integers, for comparison within units of the last
//! place.

use super::exact::{Format, Number};

/// What a function must give.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// These bits.
    Bits(u64),
    /// A quiet NaN.
    Nan,
    /// About this number, which is not 0.
    About(Real),
}

/// A number of 64 bits, the highest of them set: magnitude * 2^exponent.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    pub negative: bool,
    pub magnitude: u64,
    pub exponent: i32,
}

/// pi / 2 * 2^63, ln 2 * 2^64, 2 / pi * 2^100.
const HALF_PI: u64 = 0xc90f_daa2_2168_c234;
const LN_2: u64 = 0xb172_17f7_d1cf_79ab;
const TWO_OVER_PI: u128 = 0xa_2f98_36e4_e441_529f_c275_7d1f;

impl Real {
    fn new(negative: bool, magnitude: u128, exponent: i32) -> Real {
        let shift = magnitude.leading_zeros() as i32;
        let magnitude = magnitude << shift;
        Real { negative, magnitude: (magnitude >> 64) as u64, exponent: exponent - shift + 64 }
    }

    fn times(self, other: Real) -> Real {
        let product = u128::from(self.magnitude) * u128::from(other.magnitude);
        Real::new(self.negative != other.negative, product, self.exponent + other.exponent)
    }

    fn inverse(self) -> Real {
        Real::new(self.negative, u128::MAX / u128::from(self.magnitude), -128 - self.exponent)
    }

    fn root(self) -> Real {
        // An even exponent, and as many bits as there are.
        let (magnitude, exponent) = (u128::from(self.magnitude) << 62, self.exponent - 62);
        let (magnitude, exponent) =
            if exponent % 2 == 0 { (magnitude, exponent) } else { (magnitude << 1, exponent - 1) };
        let mut root = 0u128;
        for bit in (0..64).rev() {
            let next = root | 1 << bit;
            if next * next <= magnitude {
                root = next;
            }
        }
        Real::new(false, root, exponent / 2)
    }

    /// Distance of a number from this one in units of the last place of a format, in 1/1024 of them: the units are those of
    /// this number's magnitude, and those of the least normal number below it.
    pub fn distance(self, format: Format, bits: u64) -> u64 {
        let got = match format.decode(bits) {
            Number::Finite { negative, magnitude, exponent } if magnitude == 0 || negative == self.negative => {
                (magnitude, exponent)
            }
            // Infinity counts as the power of two behind the greatest number.
            Number::Infinity { negative } if negative == self.negative => (1, format.bias() + 1),
            _ => return u64::MAX,
        };
        // A value beyond the greatest number is infinity.
        let (magnitude, exponent) = if self.exponent + 63 > format.bias() {
            (1, format.bias() + 1)
        } else {
            (u128::from(self.magnitude), self.exponent)
        };
        let highest = exponent + 127 - magnitude.leading_zeros() as i32;
        let unit = highest.max(1 - format.bias()) - format.fraction as i32;
        // Both in units of 2^(unit - 10).
        let scale = |magnitude: u128, exponent: i32| {
            let shift = exponent - (unit - 10);
            if shift <= -128 {
                0
            } else if shift < 0 {
                magnitude >> -shift
            } else if shift as u32 > magnitude.leading_zeros() {
                u128::MAX
            } else {
                magnitude << shift
            }
        };
        u64::try_from(scale(magnitude, exponent).abs_diff(scale(got.0, got.1))).unwrap_or(u64::MAX)
    }
}

/// High half of a product: numbers in units of 2^-64, or of 2^-63 with one of them.
fn high(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) >> 64) as u64
}

/// 2^fraction for a fraction in units of 2^-64, by the series of e^x; in units of 2^-63.
fn exp2_fraction(fraction: u64) -> u64 {
    let x = high(fraction, LN_2);
    let (mut sum, mut term) = (1u64 << 63, 1u64 << 63);
    for index in 1..30 {
        term = high(term, x) / index;
        sum += term;
    }
    sum
}

/// sin(a) / a or cos(a) for a number up to pi / 4, in units of 2^-63, by their series.
fn series(a: Real, cosine: bool) -> u64 {
    // The square in units of 2^-64; below 2^-64 it is 0.
    let product = u128::from(a.magnitude) * u128::from(a.magnitude);
    let shift = -(a.exponent * 2 + 64);
    let square = if shift >= 128 { 0 } else { (product >> shift) as u64 };
    let (mut sum, mut term) = (1u64 << 63, 1u64 << 63);
    for index in 1..16 {
        let divisor = if cosine { (2 * index - 1) * (2 * index) } else { (2 * index) * (2 * index + 1) };
        term = high(term, square) / divisor;
        sum = if index % 2 == 1 { sum - term } else { sum + term };
    }
    sum
}

/// sin or cos of a number below 2^20 that is not 0.
fn sine(negative: bool, magnitude: u128, exponent: i32, cosine: bool) -> Real {
    // Small numbers: sin(x) = x and cos(x) = 1 up to 2^-40 of themselves.
    let highest = exponent + 127 - magnitude.leading_zeros() as i32;
    if highest < -21 {
        return if cosine { Real::new(false, 1, 0) } else { Real::new(negative, magnitude, exponent) };
    }
    // The angle in quarter turns, in units of 2^-100.
    let turns =
        if exponent < 0 { (magnitude * TWO_OVER_PI) >> -exponent } else { (magnitude << exponent) * TWO_OVER_PI };
    let one = 1u128 << 100;
    let quadrant = (turns >> 100) as u32 + u32::from(cosine);
    let fraction = turns & (one - 1);
    // Within half a quarter turn of a multiple, where sine and cosine change places.
    let (fraction, swap) = if fraction > one / 2 { (one - fraction, true) } else { (fraction, false) };
    let angle = Real::new(false, fraction, -100).times(Real { negative: false, magnitude: HALF_PI, exponent: -63 });
    let use_cosine = (quadrant % 2 == 1) != swap;
    let value = Real::new(false, u128::from(series(angle, use_cosine)), -63);
    let value = if use_cosine { value } else { value.times(angle) };
    let minus = quadrant & 2 != 0;
    Real { negative: minus != (negative && !cosine), ..value }
}

/// 2^x.
fn exp2(negative: bool, magnitude: u128, exponent: i32, format: Format) -> Value {
    let highest = exponent + 127 - magnitude.leading_zeros() as i32;
    if highest > 10 {
        return Value::Bits(if negative { 0 } else { format.infinity() });
    }
    // The number in units of 2^-64, rounded down.
    let fixed = if exponent >= -64 {
        (magnitude << (exponent + 64)) as i128
    } else {
        (magnitude >> (-64 - exponent).min(127)) as i128
    };
    let fixed = if negative { -fixed } else { fixed };
    let power = (fixed >> 64) as i32;
    let value = Real::new(false, u128::from(exp2_fraction(fixed as u64)), power - 63);
    Value::About(value)
}

/// The binary logarithm of a positive number other than 1, bit by bit: a number is squared, and halved when it reaches 2.
fn log2(magnitude: u128, exponent: i32) -> Real {
    let x = Real::new(false, magnitude, exponent);
    let integral = x.exponent + 63;
    let mut m = x.magnitude;
    let mut fraction = 0u64;
    for bit in (0..64).rev() {
        let square = u128::from(m) * u128::from(m);
        if square >> 127 == 1 {
            fraction |= 1 << bit;
            m = (square >> 64) as u64;
        } else {
            m = (square >> 63) as u64;
        }
    }
    let value = i128::from(integral) << 64 | i128::from(fraction);
    Real::new(value < 0, value.unsigned_abs(), -64)
}

/// The value of a function by its name, with denormals kept. `None` beyond the range in which sine and cosine are compared.
pub fn value(function: &str, format: Format, bits: u64) -> Option<Value> {
    let number = format.decode(bits);
    let signed = |negative: bool, bits: u64| Value::Bits(if negative { bits | format.sign_bit() } else { bits });
    // ISA-152.
    let (negative, magnitude, exponent) = match (number, function) {
        (Number::Nan, _) => return Some(Value::Nan),
        (Number::Infinity { negative }, "inv") => return Some(signed(negative, 0)),
        (Number::Infinity { negative: false }, "rsqt") => return Some(Value::Bits(0)),
        (Number::Infinity { negative: false }, "sqt" | "log" | "exp") => return Some(Value::Bits(format.infinity())),
        (Number::Infinity { negative: true }, "exp") => return Some(Value::Bits(0)),
        (Number::Infinity { .. }, _) => return Some(Value::Nan),
        (Number::Finite { negative, magnitude, exponent }, _) => (negative, magnitude, exponent),
    };
    if magnitude == 0 {
        return Some(match function {
            "inv" | "rsqt" => signed(negative, format.infinity()),
            "sqt" | "sin" => signed(negative, 0),
            "log" => signed(true, format.infinity()),
            _ => Value::Bits(format.encode(Number::ONE, super::exact::Round::NearestEven)),
        });
    }
    if negative && matches!(function, "rsqt" | "sqt" | "log") {
        return Some(Value::Nan);
    }
    let real = Real::new(negative, magnitude, exponent);
    Some(match function {
        "inv" => Value::About(real.inverse()),
        "sqt" => Value::About(real.root()),
        "rsqt" => Value::About(real.root().inverse()),
        "exp" => exp2(negative, magnitude, exponent, format),
        "log" if real.magnitude == 1 << 63 && real.exponent == -63 => Value::Bits(0),
        "log" => Value::About(log2(magnitude, exponent)),
        "sin" | "cos" if real.exponent + 63 >= 20 => return None,
        "sin" => Value::About(sine(negative, magnitude, exponent, false)),
        "cos" => Value::About(sine(negative, magnitude, exponent, true)),
        _ => return None,
    })
}
