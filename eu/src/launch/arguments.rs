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
    /// A pointer to nothing.
    Null,
    /// The buffer of the argument with this name.
    Same(String),
}

impl Argument {
    /// Reads `u32:5`, `f32:1.5`, `x.bin`-style values that need no file: numbers, `zeros:N`, `local:N`, `null`, `same:NAME`,
    /// `sampler:…`.
    ///
    /// Numbers are `i8 u8 i16 u16 i32 u32 i64 u64 f16 f32`, several of them separated by commas.
    pub fn parse(text: &str) -> Result<Argument, String> {
        if text == "null" {
            return Ok(Argument::Null);
        }
        let forms = "a value is TYPE:NUMBER, zeros:BYTES, local:BYTES, null, same:NAME or @FILE";
        let (kind, rest) = text.split_once(':').ok_or(forms)?;
        let count = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is no number of bytes"));
        match kind {
            "zeros" => return Ok(Argument::Buffer(vec![0; count(rest)? as usize])),
            "local" => return Ok(Argument::Local(count(rest)?)),
            "same" => return Ok(Argument::Same(rest.into())),
            "sampler" => return sampler(rest).map(Argument::Sampler),
            _ => {}
        }
        let ty = Scalar::ALL.into_iter().find(|ty| ty.name() == kind);
        let ty = ty.ok_or_else(|| {
            let names = Scalar::ALL.map(Scalar::name).join(", ");
            format!("{kind} is no type: use {names}, zeros, local, null, same or sampler")
        })?;
        numbers(ty, rest).map(Argument::Value)
    }

    /// Reads the value of an argument of which the type is known, as a zebin has it (`uint;4`, `float4;16`, `char*;8`): numbers
    /// without a type too, and no others than those of the type.
    pub fn parse_as(text: &str, ty: &str) -> Result<Argument, String> {
        let Some((scalar, count)) = scalars(ty) else { return Argument::parse(text) };
        let name = ty.split(';').next().unwrap_or(ty);
        let form = format!("give {count} of the type {}, without a type or as {}:…", scalar.opencl(), scalar.name());
        let bytes = match text.split_once(':') {
            None => numbers(scalar, text)?,
            Some((given, rest)) => {
                let other = Scalar::ALL.into_iter().find(|other| other.name() == given);
                let Some(other) = other else { return Argument::parse(text) };
                // The bits of a number are the same with and without a sign.
                if (other.size(), other.is_float()) != (scalar.size(), scalar.is_float()) {
                    return Err(format!("it is a {name}, and {given} is another type: {form}"));
                }
                numbers(other, rest)?
            }
        };
        if bytes.len() != count * scalar.size() {
            return Err(format!("it is a {name}: {form}"));
        }
        Ok(Argument::Value(bytes))
    }
}

/// Type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
}

impl Scalar {
    const ALL: [Scalar; 10] = [
        Scalar::I8,
        Scalar::U8,
        Scalar::I16,
        Scalar::U16,
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::F16,
        Scalar::F32,
    ];

    /// Name in a value, and in OpenCL.
    fn names(self) -> [&'static str; 2] {
        match self {
            Scalar::I8 => ["i8", "char"],
            Scalar::U8 => ["u8", "uchar"],
            Scalar::I16 => ["i16", "short"],
            Scalar::U16 => ["u16", "ushort"],
            Scalar::I32 => ["i32", "int"],
            Scalar::U32 => ["u32", "uint"],
            Scalar::I64 => ["i64", "long"],
            Scalar::U64 => ["u64", "ulong"],
            Scalar::F16 => ["f16", "half"],
            Scalar::F32 => ["f32", "float"],
        }
    }

    fn name(self) -> &'static str {
        self.names()[0]
    }

    fn opencl(self) -> &'static str {
        self.names()[1]
    }

    fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::F32)
    }

    /// Bytes.
    fn size(self) -> usize {
        match self {
            Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 => 8,
        }
    }

    /// Reads a number. One that is outside the type is none.
    fn read(self, text: &str) -> Option<Vec<u8>> {
        if self.is_float() {
            let value: f32 = text.parse().ok()?;
            return Some(match self {
                Scalar::F16 => crate::float::f32_to_f16(value).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            });
        }
        let value = match text.strip_prefix("0x") {
            Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
            None => text.parse().ok()?,
        };
        let bits = self.size() as u32 * 8;
        let is_signed = matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
        let least = if is_signed { -(1_i128 << (bits - 1)) } else { 0 };
        // The bits of a signed number can be given in hexadecimal.
        let hex = text.starts_with("0x");
        let most = if is_signed && !hex { (1_i128 << (bits - 1)) - 1 } else { (1_i128 << bits) - 1 };
        (least..=most).contains(&value).then(|| value.to_le_bytes()[..self.size()].to_vec())
    }
}

/// Bytes of numbers that are separated by commas.
fn numbers(ty: Scalar, text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for number in text.split(',') {
        let value = ty.read(number).ok_or_else(|| format!("`{number}` is no number of the type {}", ty.name()))?;
        bytes.extend(value);
    }
    Ok(bytes)
}

/// Scalar and number of elements of a type of OpenCL; `None` for pointers, structures and other types.
fn scalars(ty: &str) -> Option<(Scalar, usize)> {
    let name = ty.split(';').next()?;
    let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (name, count) = name.split_at(digits);
    let scalar = Scalar::ALL.into_iter().find(|scalar| scalar.opencl() == name)?;
    let count = if count.is_empty() { 1 } else { count.parse().ok()? };
    matches!(count, 1 | 2 | 3 | 4 | 8 | 16).then_some((scalar, count))
}

/// `clamp_edge,linear,normalized` and the like.
fn sampler(text: &str) -> Result<Sampler, String> {
    let mut addressing = Addressing::Clamp;
    let mut linear = false;
    let mut normalized = false;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_their_type() {
        let value = |text: &str, ty: &str| Argument::parse_as(text, ty);
        assert_eq!(value("16", "uint;4"), Ok(Argument::Value(vec![16, 0, 0, 0])));
        assert_eq!(value("-1", "short;2"), Ok(Argument::Value(vec![0xff, 0xff])));
        assert_eq!(value("0xffff", "short;2"), Ok(Argument::Value(vec![0xff, 0xff])));
        assert_eq!(value("i32:-1", "uint;4"), Ok(Argument::Value(vec![0xff; 4])));
        assert_eq!(value("1,2,3", "char3;4"), Ok(Argument::Value(vec![1, 2, 3])));
        assert_eq!(value("1", "half;2"), Ok(Argument::Value(vec![0, 0x3c])));
        assert_eq!(value("f32:1", "float;4"), Argument::parse("f32:1"));
        // A structure has any bytes.
        assert_eq!(value("u8:5", "struct s;4"), Argument::parse("u8:5"));
        assert_eq!(value("zeros:4", "uint*;8"), Argument::parse("zeros:4"));
        for (text, ty) in [
            ("f32:16", "uint;4"),
            ("u8:5", "uint;4"),
            ("1,2", "uint;4"),
            ("1", "float2;8"),
            ("70000", "ushort;2"),
            ("-1", "uint;4"),
            ("1.5", "int;4"),
            ("u32:1", "float;4"),
            ("x", "int;4"),
        ] {
            assert!(value(text, ty).is_err(), "{text} {ty}");
        }
    }
}
