// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Values of a kernel's arguments.

use crate::exec::memory::{Addressing, Channel, ChannelKind, ChannelOrder, ImageFormat, Sampler};

/// Value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// Bytes of a value.
    Value(Vec<u8>),
    /// Contents of a buffer.
    Buffer(Vec<u8>),
    /// Bytes of local memory.
    Local(u32),
    /// Contents of an image.
    Image {
        /// Texels, rows without padding.
        bytes: Vec<u8>,
        /// Width, height, depth; 1 where the image has no such dimension.
        size: [u32; 3],
        /// Format.
        format: ImageFormat,
    },
    /// A sampler.
    Sampler(Sampler),
}

impl Argument {
    /// Reads `u32:5`, `f32:1.5`, `x.bin`-style values that need no file: numbers, `zeros:N`, `local:N`, `sampler:…`.
    ///
    /// Numbers are `i8 u8 i16 u16 i32 u32 i64 u64 f16 f32`, several of them separated by commas.
    pub fn parse(text: &str) -> Result<Argument, String> {
        let (kind, rest) = text.split_once(':').ok_or("a value is TYPE:NUMBER, zeros:BYTES, local:BYTES or @FILE")?;
        let count = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is no number of bytes"));
        match kind {
            "zeros" => {
                let size = count(rest)? as usize;
                return Ok(Argument::Buffer(vec![0; size]));
            }
            "local" => return Ok(Argument::Local(count(rest)?)),
            "sampler" => return sampler(rest).map(Argument::Sampler),
            _ => {}
        }
        let mut bytes = Vec::new();
        for number in rest.split(',') {
            let fail = |_| format!("`{number}` is no number of the type {kind}");
            let signed = || number.parse::<i64>();
            let unsigned = || match number.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => number.parse::<u64>(),
            };
            match kind {
                "i8" => bytes.extend((signed().map_err(fail)? as i8).to_le_bytes()),
                "i16" => bytes.extend((signed().map_err(fail)? as i16).to_le_bytes()),
                "i32" => bytes.extend((signed().map_err(fail)? as i32).to_le_bytes()),
                "i64" => bytes.extend(signed().map_err(fail)?.to_le_bytes()),
                "u8" => bytes.extend((unsigned().map_err(fail)? as u8).to_le_bytes()),
                "u16" => bytes.extend((unsigned().map_err(fail)? as u16).to_le_bytes()),
                "u32" => bytes.extend((unsigned().map_err(fail)? as u32).to_le_bytes()),
                "u64" => bytes.extend(unsigned().map_err(fail)?.to_le_bytes()),
                "f16" | "f32" => {
                    let value: f32 =
                        number.parse().map_err(|_| format!("`{number}` is no number of the type {kind}"))?;
                    if kind == "f32" {
                        bytes.extend(value.to_le_bytes());
                    } else {
                        bytes.extend(crate::float::f32_to_f16(value).to_le_bytes());
                    }
                }
                _ => {
                    return Err(format!(
                        "{kind} is no type: use i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, zeros, local or sampler"
                    ));
                }
            }
        }
        Ok(Argument::Value(bytes))
    }
}

/// `clamp_edge,linear,normalized` and the like.
fn sampler(text: &str) -> Result<Sampler, String> {
    let (mut addressing, mut linear, mut normalized) = (Addressing::Clamp, false, false);
    for word in text.split(',') {
        match word {
            "clamp_edge" | "none" => addressing = Addressing::Clamp,
            "clamp" => addressing = Addressing::Border,
            "repeat" => addressing = Addressing::Wrap,
            "mirror" => addressing = Addressing::Mirror,
            "nearest" => linear = false,
            "linear" => linear = true,
            "normalized" => normalized = true,
            "pixels" => normalized = false,
            _ => {
                return Err(format!(
                    "{word} is no part of a sampler: use clamp_edge, clamp, repeat, mirror, nearest, linear, normalized, pixels"
                ));
            }
        }
    }
    Ok(Sampler::uniform(addressing, linear, normalized))
}

/// Reads the name of an image format: channels, bits and kind, as in `rgba8unorm`, `r32f`, `bgra8unorm`, `rg16i`. The orders
/// beyond `r`, `rg`, `rgba` and `bgra` have the kinds that OpenCL on this hardware has for them.
pub fn parse_image_format(name: &str) -> Option<ImageFormat> {
    let digits = name.find(|c: char| c.is_ascii_digit())?;
    let (order, rest) = name.split_at(digits);
    let order = match order {
        "r" => ChannelOrder::R,
        "rg" => ChannelOrder::Rg,
        "rgba" => ChannelOrder::Rgba,
        "bgra" => ChannelOrder::Bgra,
        "srgba" => ChannelOrder::Srgba,
        "sbgra" => ChannelOrder::Sbgra,
        "a" => ChannelOrder::A,
        "intensity" => ChannelOrder::Intensity,
        "luminance" => ChannelOrder::Luminance,
        "depth" => ChannelOrder::Depth,
        _ => return None,
    };
    let channel = match rest {
        "8unorm" => Channel::Unorm8,
        "16unorm" => Channel::Unorm16,
        "8snorm" => Channel::Snorm8,
        "16snorm" => Channel::Snorm16,
        "8ui" => Channel::Uint8,
        "16ui" => Channel::Uint16,
        "32ui" => Channel::Uint32,
        "8i" => Channel::Sint8,
        "16i" => Channel::Sint16,
        "32i" => Channel::Sint32,
        "16f" => Channel::Float16,
        "32f" => Channel::Float32,
        _ => return None,
    };
    let exists = match order {
        ChannelOrder::Srgba | ChannelOrder::Sbgra => channel == Channel::Unorm8,
        ChannelOrder::A | ChannelOrder::Intensity | ChannelOrder::Luminance => {
            matches!(channel.kind(), ChannelKind::Unorm | ChannelKind::Float)
        }
        ChannelOrder::Depth => matches!(channel, Channel::Unorm16 | Channel::Float32),
        _ => true,
    };
    exists.then_some(ImageFormat { order, channel })
}
