// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels in memory and the colors that messages carry (EU-082, EU-084): conversions of OpenCL 3.0, chapter 8.3.

use crate::exec::memory::{ChannelKind, ChannelOrder, ImageFormat};
use crate::float::{F, HF, Round, f16_to_f32};

/// The color of a texel: four floats, or four integers of an integer format.
pub fn from_memory(bytes: &[u8], format: ImageFormat) -> [u32; 4] {
    let ImageFormat { order, bytes: size, kind } = format;
    let one = if matches!(kind, ChannelKind::Uint | ChannelKind::Sint) { 1 } else { 1.0f32.to_bits() };
    let mut channels = [0, 0, 0, one];
    for (index, (channel, value)) in (0..).zip(channels.iter_mut().zip(bytes.chunks_exact(usize::from(size.max(1))))) {
        let raw = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        *channel = if format.is_srgb() && index < 3 { linear(raw) } else { from_channel(raw, size, kind) };
    }
    let [first, ..] = channels;
    match order {
        ChannelOrder::Bgra | ChannelOrder::Sbgra => channels.swap(0, 2),
        ChannelOrder::A => channels = [0, 0, 0, first],
        ChannelOrder::Intensity => channels = [first; 4],
        ChannelOrder::Luminance => channels = [first, first, first, one],
        ChannelOrder::R | ChannelOrder::Rg | ChannelOrder::Rgba | ChannelOrder::Srgba | ChannelOrder::Depth => {}
    }
    channels
}

/// Stores a color as a texel.
pub fn to_memory(mut color: [u32; 4], format: ImageFormat, bytes: &mut [u8]) {
    let ImageFormat { order, bytes: size, kind } = format;
    match order {
        ChannelOrder::Bgra | ChannelOrder::Sbgra => color.swap(0, 2),
        ChannelOrder::A => color.swap(0, 3),
        _ => {}
    }
    let size = usize::from(size.max(1));
    for (index, (value, into)) in (0..).zip(color.iter().zip(bytes.chunks_exact_mut(size))) {
        let channel =
            if format.is_srgb() && index < 3 { nonlinear(*value) } else { to_channel(*value, format.bytes, kind) };
        into.copy_from_slice(&channel.to_le_bytes()[..size]);
    }
}

#[expect(clippy::cast_precision_loss, reason = "channels have at most 16 bits")]
fn from_channel(raw: u32, bytes: u8, kind: ChannelKind) -> u32 {
    let bits = u32::from(bytes) * 8;
    let signed = (raw << (32 - bits)).cast_signed() >> (32 - bits);
    match kind {
        ChannelKind::Uint => raw,
        ChannelKind::Sint => signed.cast_unsigned(),
        ChannelKind::Unorm => (raw as f32 / ((1u64 << bits) - 1) as f32).to_bits(),
        ChannelKind::Snorm => (signed as f32 / ((1u64 << (bits - 1)) - 1) as f32).max(-1.0).to_bits(),
        ChannelKind::Float if bytes == 2 => f16_to_f32(raw as u16).to_bits(),
        ChannelKind::Float => raw,
    }
}

#[expect(clippy::cast_precision_loss, reason = "channels have at most 16 bits")]
fn to_channel(value: u32, bytes: u8, kind: ChannelKind) -> u32 {
    let bits = u32::from(bytes) * 8;
    let number = f32::from_bits(value);
    let scaled = |low: f32, most: u64| {
        let clamped = if number.is_nan() { 0.0 } else { number.clamp(low, 1.0) };
        (clamped * most as f32).round_ties_even() as i32
    };
    match kind {
        ChannelKind::Uint if bits == 32 => value,
        ChannelKind::Uint => value.min((1 << bits) - 1),
        ChannelKind::Sint if bits == 32 => value,
        ChannelKind::Sint => {
            let limit = 1i32 << (bits - 1);
            value.cast_signed().clamp(-limit, limit - 1).cast_unsigned()
        }
        ChannelKind::Unorm => scaled(0.0, (1u64 << bits) - 1).cast_unsigned(),
        ChannelKind::Snorm => scaled(-1.0, (1u64 << (bits - 1)) - 1).cast_unsigned(),
        ChannelKind::Float if bytes == 2 => HF.convert(value, F, Round::NearestEven),
        ChannelKind::Float => value,
    }
}

/// The linear value of a byte on the curve of sRGB, rounded to nearest. OpenCL allows an error of half a byte, mapped back to
/// the curve.
fn linear(byte: u32) -> u32 {
    let value = f64::from(byte) / 255.0;
    let linear = if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
    #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
    let rounded = linear as f32;
    rounded.to_bits()
}

/// The byte on the curve of sRGB that is nearest to a linear value. OpenCL allows an error of 0.6 of a byte.
fn nonlinear(value: u32) -> u32 {
    let linear = f64::from(f32::from_bits(value));
    let value = match linear {
        _ if linear.is_nan() || linear <= 0.0 => 0.0,
        _ if linear >= 1.0 => 1.0,
        _ if linear < 0.003_130_8 => 12.92 * linear,
        _ => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
    };
    (value * 255.0).round_ties_even() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::parse_image_format;

    fn color(name: &str, bytes: &[u8]) -> [f32; 4] {
        from_memory(bytes, parse_image_format(name).unwrap()).map(f32::from_bits)
    }

    fn texel(name: &str, color: [f32; 4]) -> Vec<u8> {
        let format = parse_image_format(name).unwrap();
        let mut bytes = vec![0; usize::from(format.texel())];
        to_memory(color.map(f32::to_bits), format, &mut bytes);
        bytes
    }

    /// OpenCL 3.0: table of orders and components.
    #[test]
    fn channels_are_at_their_components() {
        assert_eq!(color("r8unorm", &[255]), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(color("a8unorm", &[51]), [0.0, 0.0, 0.0, 0.2]);
        assert_eq!(color("a16f", &[0, 0x38]), [0.0, 0.0, 0.0, 0.5]);
        assert_eq!(color("intensity8unorm", &[51]), [0.2; 4]);
        assert_eq!(color("luminance16unorm", &[0xff, 0xff]), [1.0; 4]);
        assert_eq!(color("luminance32f", &0.25f32.to_le_bytes()), [0.25, 0.25, 0.25, 1.0]);
        assert_eq!(color("bgra8unorm", &[0, 51, 255, 51]), [1.0, 0.2, 0.0, 0.2]);
        assert_eq!(color("sbgra8unorm", &[0, 0, 255, 51]), [1.0, 0.0, 0.0, 0.2]);
        let written = [0.2, 0.4, 0.6, 0.8];
        assert_eq!(texel("a8unorm", written), [204]);
        assert_eq!(texel("intensity8unorm", written), [51]);
        assert_eq!(texel("luminance8unorm", written), [51]);
        assert_eq!(texel("depth16unorm", written), 13107u16.to_le_bytes());
        assert_eq!(texel("bgra8unorm", written), [153, 102, 51, 204]);
        assert_eq!(texel("srgba8unorm", [0.0, 1.0, 2.0, 0.2]), [0, 255, 255, 51]);
        assert_eq!(texel("sbgra8unorm", [0.0, -1.0, f32::NAN, 0.2]), [0, 0, 0, 51]);
    }

    /// Formats that the hardware's OpenCL does not have.
    #[test]
    fn orders_have_only_their_kinds() {
        for name in ["srgba16unorm", "srgba8ui", "a8ui", "intensity8snorm", "luminance32ui", "depth32ui", "depth8unorm"]
        {
            assert_eq!(parse_image_format(name), None, "{name}");
        }
    }

    /// OpenCL 3.0, 8.3.1.3: a byte is the byte of its linear value, within the bounds of both conversions, and the curve grows.
    #[test]
    fn conversions_of_srgb_are_within_the_bounds() {
        let curve = |linear: f64| {
            255.0 * if linear < 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
        };
        let mut last = -1.0;
        for byte in 0..=255u8 {
            let [value, ..] = color("srgba8unorm", &[byte, 0, 0, 0]);
            assert!(value > last, "{byte}");
            last = value;
            assert!((curve(value.into()) - f64::from(byte)).abs() < 0.01, "{byte}: {value}");
            assert_eq!(texel("srgba8unorm", [value, 0.0, 0.0, 0.0])[0], byte);
        }
        for step in 0..=10_000u16 {
            let value = f32::from(step) / 10_000.0;
            let byte = texel("srgba8unorm", [0.0, value, 0.0, 0.0])[1];
            assert!((curve(value.into()) - f64::from(byte)).abs() <= 0.5 + 1e-6, "{value}");
        }
        // Known values of the standard.
        assert_eq!(texel("srgba8unorm", [0.5, 0.215_860_5, 0.05, 0.5]), [188, 128, 63, 128]);
    }
}
