// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The functions of math (ISA-150 to ISA-153) in integers, for comparison within units of the last place. The relative error
//! is below 2^-37, which is less than 1/1024 of a unit of the last place of F: near its zero the logarithm has no more bits.

use std::cmp::Ordering;

use super::exact::{Format, Number, Round, highest};

/// A function of math with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Inv,
    Log,
    Exp,
    Sqt,
    Rsqt,
    Sin,
    Cos,
}

impl Function {
    pub const ALL: [Function; 7] =
        [Function::Inv, Function::Log, Function::Exp, Function::Sqt, Function::Rsqt, Function::Sin, Function::Cos];

    /// The name in `math.NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Function::Inv => "inv",
            Function::Log => "log",
            Function::Exp => "exp",
            Function::Sqt => "sqt",
            Function::Rsqt => "rsqt",
            Function::Sin => "sin",
            Function::Cos => "cos",
        }
    }
}

/// What a function must give.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// These bits.
    Bits(u64),
    /// A quiet NaN.
    Nan,
    /// A number near this one, which is not 0.
    Near(Real),
    /// A number from -1 to 1: sine and cosine of numbers that are too large to be compared.
    AtMostOne,
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
        // 126 or 127 bits, so that the exponent is even and the root has 64 bits.
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
    /// this number's magnitude, and those of the least normal number below it. Infinity counts as the power of two behind the
    /// greatest number, and has no distance from this number or a greater one.
    pub fn distance(self, format: Format, bits: u64) -> u64 {
        let beyond = format.bias() + 1;
        let (magnitude, exponent) = (u128::from(self.magnitude), self.exponent);
        let highest = highest(magnitude, exponent);
        let got = match format.decode(bits) {
            Number::Finite { negative, magnitude, exponent } if magnitude == 0 || negative == self.negative => {
                (magnitude, exponent)
            }
            Number::Infinity { negative } if negative == self.negative && highest >= beyond => return 0,
            Number::Infinity { negative } if negative == self.negative => (1, beyond),
            _ => return u64::MAX,
        };
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigonometric {
    Sin,
    Cos,
}

/// sin(a) / a or cos(a) for a number up to pi / 4, in units of 2^-63, by their series.
fn sin_or_cos_series(a: Real, function: Trigonometric) -> u64 {
    // The square in units of 2^-64; below 2^-64 it is 0.
    let product = u128::from(a.magnitude) * u128::from(a.magnitude);
    let shift = -(a.exponent * 2 + 64);
    let square = if shift >= 128 { 0 } else { (product >> shift) as u64 };
    let (mut sum, mut term) = (1u64 << 63, 1u64 << 63);
    for index in 1..16 {
        let divisor = match function {
            Trigonometric::Sin => (2 * index) * (2 * index + 1),
            Trigonometric::Cos => (2 * index - 1) * (2 * index),
        };
        term = high(term, square) / divisor;
        sum = if index % 2 == 1 { sum - term } else { sum + term };
    }
    sum
}

/// sin or cos of a number below 2^20 that is not 0.
fn sin_or_cos(function: Trigonometric, negative: bool, magnitude: u128, exponent: i32) -> Real {
    // Below 2^-21: sin(x) = x and cos(x) = 1 with a relative error below 2^-43.
    if highest(magnitude, exponent) < -21 {
        return match function {
            Trigonometric::Sin => Real::new(negative, magnitude, exponent),
            Trigonometric::Cos => Real::new(false, 1, 0),
        };
    }
    // The angle in quarter turns, in units of 2^-100.
    let turns =
        if exponent < 0 { (magnitude * TWO_OVER_PI) >> -exponent } else { (magnitude << exponent) * TWO_OVER_PI };
    let one = 1u128 << 100;
    let quadrant = (turns >> 100) as u32 + u32::from(function == Trigonometric::Cos);
    let fraction = turns & (one - 1);
    // Reduced to at most an eighth of a turn; above it, sine and cosine are exchanged.
    let (fraction, swap) = if fraction > one / 2 { (one - fraction, true) } else { (fraction, false) };
    let angle = Real::new(false, fraction, -100).times(Real { negative: false, magnitude: HALF_PI, exponent: -63 });
    let series = if (quadrant % 2 == 1) != swap { Trigonometric::Cos } else { Trigonometric::Sin };
    let value = Real::new(false, u128::from(sin_or_cos_series(angle, series)), -63);
    let value = if series == Trigonometric::Cos { value } else { value.times(angle) };
    let minus = quadrant & 2 != 0;
    Real { negative: minus != (negative && function == Trigonometric::Sin), ..value }
}

/// 2^x.
fn exp2(negative: bool, magnitude: u128, exponent: i32, format: Format) -> Value {
    if highest(magnitude, exponent) > 10 {
        return Value::Bits(if negative { 0 } else { format.infinity() });
    }
    // The number in units of 2^-64, rounded toward zero.
    let fixed = if exponent >= -64 {
        (magnitude << (exponent + 64)) as i128
    } else {
        (magnitude >> (-64 - exponent).min(127)) as i128
    };
    let fixed = if negative { -fixed } else { fixed };
    let power = (fixed >> 64) as i32;
    let value = Real::new(false, u128::from(exp2_fraction(fixed as u64)), power - 63);
    Value::Near(value)
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

/// The value of a function, with denormals kept.
pub fn value(function: Function, format: Format, bits: u64) -> Value {
    use Function::{Cos, Exp, Inv, Log, Rsqt, Sin, Sqt};
    let signed = |negative, bits| Value::Bits(format.signed(negative, bits));
    // ISA-152.
    let (negative, magnitude, exponent) = match format.decode(bits) {
        Number::Nan => return Value::Nan,
        Number::Infinity { negative } => {
            return match (function, negative) {
                (Inv, _) => signed(negative, 0),
                (Rsqt, false) | (Exp, true) => Value::Bits(0),
                (Sqt | Log | Exp, false) => Value::Bits(format.infinity()),
                (Rsqt | Sqt | Log, true) | (Sin | Cos, _) => Value::Nan,
            };
        }
        Number::Finite { negative, magnitude, exponent } => (negative, magnitude, exponent),
    };
    if magnitude == 0 {
        return match function {
            Inv | Rsqt => signed(negative, format.infinity()),
            Sqt | Sin => signed(negative, 0),
            Log => signed(true, format.infinity()),
            Exp | Cos => Value::Bits(format.encode(Number::ONE, Round::NearestEven)),
        };
    }
    let real = Real::new(negative, magnitude, exponent);
    let trigonometric = |function| {
        if highest(magnitude, exponent) >= 20 {
            Value::AtMostOne
        } else {
            Value::Near(sin_or_cos(function, negative, magnitude, exponent))
        }
    };
    match function {
        Rsqt | Sqt | Log if negative => Value::Nan,
        Inv => Value::Near(real.inverse()),
        Sqt => Value::Near(real.root()),
        Rsqt => Value::Near(real.root().inverse()),
        Exp => exp2(negative, magnitude, exponent, format),
        Log if real.magnitude == 1 << 63 && real.exponent == -63 => Value::Bits(0),
        Log => Value::Near(log2(magnitude, exponent)),
        Sin => trigonometric(Trigonometric::Sin),
        Cos => trigonometric(Trigonometric::Cos),
    }
}

/// Distance of a result from the value, as of [`Real::distance`]; 0 if the value has no distance. An error says what was
/// expected.
pub fn check(value: Value, format: Format, got: u64, bound: u64) -> Result<u64, String> {
    let expect = |holds: bool, wanted: &str| if holds { Ok(0) } else { Err(wanted.to_owned()) };
    match value {
        Value::Bits(wanted) => expect(got == wanted, &format!("{wanted:#x}")),
        Value::Nan => expect(format.is_quiet_nan(got), "a quiet NaN"),
        Value::AtMostOne => {
            let order = format.decode(got & !format.sign_bit()).order(Number::ONE);
            expect(matches!(order, Some(Ordering::Less | Ordering::Equal)), "-1 to 1")
        }
        Value::Near(real) => {
            let distance = real.distance(format, got);
            if distance <= bound * 1024 {
                Ok(distance)
            } else {
                Err(format!("{real:?} within {bound} ulp; distance in 1/1024 ulp {distance}"))
            }
        }
    }
}
