// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Text of floating-point immediates: the shortest of decimal, scientific and hexadecimal that is read back exactly.

use crate::float::{f16_to_f32, f32_to_f16};

/// Text of a 32-bit float.
pub fn f32_text(bits: u32) -> String {
    readable(f32::from_bits(bits), bits, 23).unwrap_or_else(|| format!("0x{bits:X}"))
}

/// Text of a 16-bit float.
pub fn f16_text(bits: u16) -> String {
    let nan = bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0;
    if nan {
        return nan_text(u32::from(bits), 10, bits & 0x8000 != 0);
    }
    readable(f16_to_f32(bits), u32::from(bits), 10).unwrap_or_else(|| format!("0x{bits:X}"))
}

/// Text of a 64-bit float: with six digits if they are read back exactly, else the bits.
pub fn f64_text(bits: u64) -> String {
    let value = f64::from_bits(bits);
    let short = general(value);
    match short.parse::<f64>() {
        Ok(read) if value.is_finite() && read.to_bits() == bits => {
            if short.contains(['.', 'e']) {
                short
            } else {
                short + ".0"
            }
        }
        _ => format!("0x{bits:X}"),
    }
}

/// A NaN with the bits below the quiet bit.
fn nan_text(bits: u32, mantissa: u32, negative: bool) -> String {
    let quiet = 1 << (mantissa - 1);
    let sign = if negative { "-" } else { "" };
    let kind = if bits & quiet != 0 { "qnan" } else { "snan" };
    format!("{sign}{kind}(0x{:X})", bits & (quiet - 1))
}

fn readable(value: f32, bits: u32, mantissa: u32) -> Option<String> {
    if value.is_nan() {
        return Some(nan_text(bits, mantissa, value.is_sign_negative()));
    }
    if value.is_infinite() {
        return Some(if value < 0.0 { "-inf" } else { "inf" }.into());
    }
    let exact = |text: &str| text.parse::<f64>().is_ok_and(|read| read as f32 == value);
    let short = general(f64::from(value));
    if exact(&short) {
        let plain = short.contains(['.', 'e']);
        return Some(if plain { short } else { short + ".0" });
    }
    let long = scientific(&format!("{value:.6e}"));
    exact(&long).then_some(long)
}

/// As `%g` of C: six digits without trailing zeros.
fn general(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.into();
    }
    let digits = format!("{value:.5e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if !(-4..6).contains(&exponent) {
        return scientific(&format!("{}e{exponent}", trim(mantissa)));
    }
    trim(&format!("{value:.*}", usize::try_from(5 - exponent).unwrap_or(0)))
}

/// Writes the exponent with a sign and two digits, as C does.
fn scientific(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Reads a number, `inf`, `qnan(0x..)` or `snan(0x..)` as the bits of a float of 32 or, with `half`, 16 bits.
pub fn parse(text: &str, half: bool) -> Option<u32> {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (sign, exponent, quiet) = if half { (0x8000, 0x7c00, 0x200) } else { (1 << 31, 0xff << 23, 1 << 22) };
    let hex = |digits: &str| super::parse::hex(digits).and_then(|bits| u32::try_from(bits).ok());
    let signed = |bits: u32| if negative { bits | sign } else { bits };
    let payload = |prefix: &str| {
        let inner = rest.strip_prefix(prefix)?.strip_suffix(')')?;
        hex(inner.strip_prefix("0x")?)
    };
    if rest == "inf" {
        return Some(signed(exponent));
    }
    if let Some(bits) = payload("qnan(") {
        return Some(signed(exponent | quiet | bits));
    }
    if let Some(bits) = payload("snan(") {
        return Some(signed(exponent | bits));
    }
    if let Some(digits) = rest.strip_prefix("0x") {
        return hex(digits).map(|bits| if negative { bits ^ sign } else { bits });
    }
    if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let value = text.parse::<f64>().ok()? as f32;
    Some(if half { u32::from(f32_to_f16(value)) } else { value.to_bits() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_text_of_iga64() {
        for (value, text) in [
            (0.0f32, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (-0.125, "-0.125"),
            (1e20, "1e+20"),
            (16_777_216.0, "0x4B800000"),
            (std::f32::consts::PI, "0x40490FDB"),
            (100_000.0, "100000.0"),
            (1_000_000.0, "1e+06"),
            (f32::from_bits(0x0001_16c2), "9.99995e-41"),
        ] {
            assert_eq!(f32_text(value.to_bits()), text);
        }
        assert_eq!(f64_text(2.0625f64.to_bits()), "2.0625");
        assert_eq!(f64_text(0), "0.0");
        assert_eq!(f64_text(0x4000_0000_0000_0001), "0x4000000000000001");
        assert_eq!(f16_text(0x4248), "3.140625e+00");
        assert_eq!(f16_text(1), "0x1");
        assert_eq!(f16_text(0xffff), "-qnan(0x1FF)");
    }

    #[test]
    fn all_halves_and_many_floats_are_read_back() {
        for bits in 0..=u16::MAX {
            assert_eq!(parse(&f16_text(bits), true), Some(u32::from(bits)), "{}", f16_text(bits));
        }
        for step in 0..200_000u32 {
            let bits = step.wrapping_mul(0x9e37_79b9);
            assert_eq!(parse(&f32_text(bits), false), Some(bits), "{}", f32_text(bits));
        }
    }
}
