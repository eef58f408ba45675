// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Half precision (IEEE 754 binary16) as bits.

/// The value of a half.
#[allow(clippy::cast_possible_truncation, reason = "each half is a float")]
pub fn from_half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let value = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    (sign * value) as f32
}

/// The half that is nearest to `value`; of two, the even one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rounded fraction has at most 11 bits")]
pub fn to_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if magnitude.is_nan() {
        return 0x7e00;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // The exponent of the last place: at least that of the smallest subnormal.
    let exponent = (i32::try_from(magnitude.to_bits() >> 52).unwrap_or(0) - 1023).max(-14);
    let places = (magnitude / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    // A fraction that is rounded up to 2048 carries into the exponent by the addition.
    let biased = if places < 1024 { 0 } else { u16::try_from(exponent + 14).unwrap_or(0) };
    sign | ((biased << 10) + places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_half_of_a_half_is_the_same() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7c00 != 0x7c00) {
            assert_eq!(to_half(from_half(bits).into()), bits, "{bits:#06x}");
        }
        assert_eq!((to_half(f64::INFINITY), to_half(f64::NEG_INFINITY)), (0x7c00, 0xfc00));
        assert!(from_half(0x7e00).is_nan());
    }

    #[test]
    fn a_value_between_two_is_rounded_to_the_even_one() {
        assert_eq!((from_half(0x3c00), from_half(0x3c01)), (1.0, 1.0 + 1.0 / 1024.0));
        assert_eq!(to_half(1.0 + 0.5 / 1024.0), 0x3c00);
        assert_eq!(to_half(1.0 + 1.5 / 1024.0), 0x3c02);
        assert_eq!(to_half(1.0 + 0.51 / 1024.0), 0x3c01);
        assert_eq!((to_half(65519.9), to_half(65520.0)), (0x7bff, 0x7c00));
        assert_eq!((to_half(2f64.powi(-25)), to_half(1.5 * 2f64.powi(-24)), to_half(2047.9)), (0, 2, 0x6800));
    }
}
