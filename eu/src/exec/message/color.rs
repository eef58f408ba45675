// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Texels in memory and the colors that messages carry (EU-082, EU-084): conversions of OpenCL 3.0, chapter 8.3.

use crate::exec::memory::{Channel, ChannelOrder, ImageFormat};
use crate::float::{F, HF, Round, f16_to_f32};

/// The color of a texel: four floats, or four integers of an integer format. Components without a channel are 0, the last 1.
/// `bytes` are those of one texel.
pub fn from_memory(bytes: &[u8], format: ImageFormat) -> [u32; 4] {
    let one = format.one();
    // Most images have one of these formats.
    match (format.order, format.channel, bytes) {
        (ChannelOrder::Rgba, Channel::Unorm8, [red, green, blue, alpha]) => {
            return [red, green, blue, alpha].map(|raw| (f32::from(*raw) / 255.0).to_bits());
        }
        (ChannelOrder::R, Channel::Float32 | Channel::Uint32 | Channel::Sint32, [a, b, c, d]) => {
            return [u32::from_le_bytes([*a, *b, *c, *d]), 0, 0, one];
        }
        _ => {}
    }
    let mut channels = [0, 0, 0, one];
    for (index, (channel, value)) in channels.iter_mut().zip(bytes.chunks_exact(format.channel.bytes())).enumerate() {
        let raw = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        *channel = if format.is_srgb() && index < 3 { linear(raw) } else { from_channel(raw, format.channel) };
    }
    let [first, ..] = channels;
    match format.order {
        ChannelOrder::Bgra | ChannelOrder::Sbgra => channels.swap(0, 2),
        ChannelOrder::A => channels = [0, 0, 0, first],
        ChannelOrder::Intensity => channels = [first; 4],
        ChannelOrder::Luminance => channels = [first, first, first, one],
        ChannelOrder::R | ChannelOrder::Rg | ChannelOrder::Rgba | ChannelOrder::Srgba | ChannelOrder::Depth => {}
    }
    channels
}

/// Stores a color as a texel. `bytes` are those of one texel.
pub fn to_memory(mut color: [u32; 4], format: ImageFormat, bytes: &mut [u8]) {
    match format.order {
        ChannelOrder::Bgra | ChannelOrder::Sbgra => color.swap(0, 2),
        ChannelOrder::A => color.swap(0, 3),
        _ => {}
    }
    let size = format.channel.bytes();
    for (index, (value, into)) in color.iter().zip(bytes.chunks_exact_mut(size)).enumerate() {
        let channel =
            if format.is_srgb() && index < 3 { nonlinear(*value) } else { to_channel(*value, format.channel) };
        into.copy_from_slice(&channel.to_le_bytes()[..size]);
    }
}

/// The component of a color in a channel, of which `raw` has the bits.
fn from_channel(raw: u32, channel: Channel) -> u32 {
    let (byte, word) = ((raw as u8).cast_signed(), (raw as u16).cast_signed());
    match channel {
        Channel::Uint8 | Channel::Uint16 | Channel::Uint32 | Channel::Sint32 | Channel::Float32 => raw,
        Channel::Sint8 => i32::from(byte).cast_unsigned(),
        Channel::Sint16 => i32::from(word).cast_unsigned(),
        Channel::Unorm8 => (f32::from(raw as u8) / 255.0).to_bits(),
        Channel::Unorm16 => (f32::from(raw as u16) / 65535.0).to_bits(),
        Channel::Snorm8 => (f32::from(byte) / 127.0).max(-1.0).to_bits(),
        Channel::Snorm16 => (f32::from(word) / 32767.0).max(-1.0).to_bits(),
        Channel::Float16 => f16_to_f32(raw as u16).to_bits(),
    }
}

/// The bits of a channel for a component of a color: integers are clamped, floats rounded to nearest.
fn to_channel(value: u32, channel: Channel) -> u32 {
    let number = f32::from_bits(value);
    let scaled = |low: f32, most: f32| {
        let clamped = if number.is_nan() { 0.0 } else { number.clamp(low, 1.0) };
        ((clamped * most).round_ties_even() as i32).cast_unsigned()
    };
    let signed = |low: i32, high: i32| value.cast_signed().clamp(low, high).cast_unsigned();
    match channel {
        Channel::Uint32 | Channel::Sint32 | Channel::Float32 => value,
        Channel::Uint8 => value.min(u8::MAX.into()),
        Channel::Uint16 => value.min(u16::MAX.into()),
        Channel::Sint8 => signed(i8::MIN.into(), i8::MAX.into()),
        Channel::Sint16 => signed(i16::MIN.into(), i16::MAX.into()),
        Channel::Unorm8 => scaled(0.0, 255.0),
        Channel::Unorm16 => scaled(0.0, 65535.0),
        Channel::Snorm8 => scaled(-1.0, 127.0),
        Channel::Snorm16 => scaled(-1.0, 32767.0),
        Channel::Float16 => HF.convert(value, F, Round::NearestEven),
    }
}

/// The linear value of a byte on the curve of sRGB, rounded to nearest. OpenCL allows an error of half a byte, mapped back to
/// the curve.
fn linear(byte: u32) -> u32 {
    let value = f64::from(byte) / 255.0;
    let linear = if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
    (linear as f32).to_bits()
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

#[cfg(all(test, feature = "launch"))]
mod tests {
    use super::*;
    use crate::launch::parse_image_format;

    fn color(name: &str, bytes: &[u8]) -> [f32; 4] {
        from_memory(bytes, parse_image_format(name).unwrap()).map(f32::from_bits)
    }

    fn texel(name: &str, color: [f32; 4]) -> Vec<u8> {
        let format = parse_image_format(name).unwrap();
        let mut bytes = vec![0; format.texel_bytes()];
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

    /// OpenCL 3.0, 8.3.1 and 8.3.2: values at the ends of each channel, and those that are clamped.
    #[test]
    fn channels_have_the_values_of_their_kind_and_size() {
        let float = |value: f32| value.to_bits();
        for (channel, raw, component) in [
            (Channel::Unorm8, 0x80, float(128.0 / 255.0)),
            (Channel::Unorm16, 0xffff, float(1.0)),
            (Channel::Snorm8, 0x81, float(-1.0)),
            (Channel::Snorm16, 0x4000, float(16384.0 / 32767.0)),
            (Channel::Uint8, 0xff, 0xff),
            (Channel::Uint16, 0xffff, 0xffff),
            (Channel::Uint32, 0xffff_ffff, 0xffff_ffff),
            (Channel::Sint8, 0x80, 0xffff_ff80),
            (Channel::Sint16, 0x8000, 0xffff_8000),
            (Channel::Sint32, 0x8000_0000, 0x8000_0000),
            (Channel::Float16, 0xc000, float(-2.0)),
            (Channel::Float32, 0x7fc0_0000, 0x7fc0_0000),
        ] {
            assert_eq!(from_channel(raw, channel), component, "{channel:?}");
            let mask = u32::MAX >> (32 - channel.bytes() * 8);
            assert_eq!(to_channel(component, channel) & mask, raw, "{channel:?}");
        }
        // The smallest number of a signed channel is -1, too.
        assert_eq!(from_channel(0x80, Channel::Snorm8), float(-1.0));
        assert_eq!(from_channel(0x8000, Channel::Snorm16), float(-1.0));
        for (channel, component, raw) in [
            (Channel::Unorm8, float(-0.5), 0),
            (Channel::Unorm8, float(1.5), 0xff),
            (Channel::Unorm8, float(0.5), 0x80),
            (Channel::Unorm16, float(f32::NAN), 0),
            (Channel::Snorm8, float(-2.0), 0x81),
            (Channel::Snorm16, float(2.0), 0x7fff),
            (Channel::Uint8, 0x100, 0xff),
            (Channel::Uint16, u32::MAX, 0xffff),
            (Channel::Sint8, 0x80, 0x7f),
            (Channel::Sint16, 0x8000_0000, 0x8000),
        ] {
            let mask = u32::MAX >> (32 - channel.bytes() * 8);
            assert_eq!(to_channel(component, channel) & mask, raw, "{channel:?} {component:#x}");
        }
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
