// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernels of `tests/kernels` with the sizes and the random inputs of their runs.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;

use arctic_eu::exec::memory::{ChannelKind, ImageFormat};
use arctic_eu::launch::{Argument, parse_image_format};

use crate::random::Random;

/// A kernel with its sizes and arguments, from its `//:` line.
pub struct Case {
    pub source: &'static str,
    pub kernel: String,
    pub global: [u32; 3],
    pub local: [u32; 3],
    pub offset: [u32; 3],
    pub ulp: u32,
    pub abs: f32,
    pub options: String,
    pub arguments: Vec<(String, String)>,
}

pub fn cases(source: &'static str) -> Vec<Case> {
    let path = format!("{}/tests/kernels/{source}.cl", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let sizes = |text: &str, rest: u32| {
        let mut sizes = [rest; 3];
        for (size, part) in sizes.iter_mut().zip(text.split(',')) {
            *size = part.parse().unwrap();
        }
        sizes
    };
    let lines = text.lines().filter_map(|line| line.strip_prefix("//: "));
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut next = || words.next().unwrap();
            let (kernel, global, local) = (next().to_string(), sizes(next(), 1), sizes(next(), 1));
            let mut case = Case {
                source,
                kernel,
                global,
                local,
                offset: [0; 3],
                ulp: 0,
                abs: 0.0,
                options: String::new(),
                arguments: Vec::new(),
            };
            for word in words {
                let (name, value) = word.split_once('=').unwrap();
                match name {
                    "ulp" => case.ulp = value.parse().unwrap(),
                    "abs" => case.abs = value.parse().unwrap(),
                    "options" => case.options = value.into(),
                    "offset" => case.offset = sizes(value, 0),
                    _ => case.arguments.push((name.into(), value.into())),
                }
            }
            case
        })
        .collect()
}

pub const EDGES: [u64; 10] =
    [0, 1, !0, 0x7fff_ffff_ffff_ffff, 1 << 63, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xff, 0x8000];

/// Contents of a buffer `TYPE[COUNT]`.
pub fn contents(kind: &str, random: &mut Random) -> Vec<u8> {
    let (kind, count) = kind.strip_suffix(']').unwrap().split_once('[').unwrap();
    let count: usize = count.parse().unwrap();
    let mut bytes = Vec::new();
    for index in 0..count {
        let wild = random.next();
        let value = if wild.is_multiple_of(16) { EDGES[(wild >> 8) as usize % EDGES.len()] } else { wild };
        match kind {
            "i8" | "u8" => bytes.extend(&value.to_le_bytes()[..1]),
            "i16" | "u16" => bytes.extend(&value.to_le_bytes()[..2]),
            "i32" | "u32" => bytes.extend(&value.to_le_bytes()[..4]),
            "i64" | "u64" => bytes.extend(value.to_le_bytes()),
            // A quarter are the smallest number.
            "least8" => bytes.push(if wild.is_multiple_of(4) { 0x80 } else { (value >> 8) as u8 }),
            "least16" => {
                bytes.extend(if wild.is_multiple_of(4) { 0x8000 } else { (value >> 8) as u16 }.to_le_bytes());
            }
            "least32" => {
                bytes.extend(if wild.is_multiple_of(4) { 1 << 31 } else { (value >> 8) as u32 }.to_le_bytes());
            }
            "nz32" => bytes.extend((value as u32 >> (wild % 24)).max(1).to_le_bytes()),
            "nz64" => bytes.extend(((value >> (wild % 48)).max(1) & 0x7fff_ffff_ffff_ffff).max(1).to_le_bytes()),
            "zero32" => bytes.extend([0; 4]),
            "zero64" => bytes.extend([0; 8]),
            "sorted32" => bytes.extend((index as u32).to_le_bytes()),
            "idx64" => bytes.extend((wild as u32 & 63).to_le_bytes()),
            "bits32" => bytes.extend((wild as u32).to_le_bytes()),
            // -100 to 100.
            "f32" => bytes.extend(((wild as u32 as f32 / 4_294_967_296.0 - 0.5) * 200.0).to_le_bytes()),
            // Exponents of 2^-57 to 2^57.
            "wide32" => {
                let exponent = 127 - 57 + (wild >> 32) as u32 % 115;
                bytes.extend((wild as u32 & 0x807f_ffff | exponent << 23).to_le_bytes());
            }
            // Integers, of which sums are exact in any order.
            "whole32" => bytes.extend(((wild >> 16) as f32 % 2001.0 - 1000.0).trunc().to_le_bytes()),
            // -0.25 to 1.25.
            "unit32" => bytes.extend((wild as u32 as f32 / 4_294_967_296.0 * 1.5 - 0.25).to_le_bytes()),
            // Exponents of 2^-7 to 2^7, and denormals.
            "half16" => {
                let exponent = if wild.is_multiple_of(32) { 0 } else { 15 - 7 + (wild >> 20) as u16 % 15 };
                bytes.extend((wild as u16 & 0x83ff | exponent << 10).to_le_bytes());
            }
            "f16" => bytes.extend((wild as u16 & 0xbfff).to_le_bytes()),
            _ => panic!("{kind}"),
        }
    }
    bytes
}

pub fn is_float(kind: &str) -> bool {
    kind.starts_with("f32[") || kind.starts_with("image") && kind.ends_with("32f")
}

/// Bytes of an element of a buffer or of a channel of an image.
pub fn element_size(kind: &str) -> usize {
    if let Some(image) = ImageKind::parse(kind) {
        return image.format.channel.bytes();
    }
    match kind.split_once('[').map_or("", |(name, _)| name.trim_start_matches(|c: char| c.is_ascii_alphabetic())) {
        "8" => 1,
        "16" => 2,
        "64" => 8,
        _ => 4,
    }
}

/// An image of a case: `image:16x8:rgba8unorm`, `imagearray:` or `imagebuffer:`.
pub struct ImageKind {
    pub array: bool,
    pub buffer: bool,
    pub size: Vec<u32>,
    pub format: ImageFormat,
}

impl ImageKind {
    pub fn parse(kind: &str) -> Option<ImageKind> {
        let mut parts = kind.strip_prefix("image")?.split(':');
        let (shape, size, format) = (parts.next()?, parts.next()?, parts.next()?);
        let size = size.split('x').map(|size| size.parse().unwrap()).collect();
        let format = parse_image_format(format)?;
        Some(ImageKind { array: shape == "array", buffer: shape == "buffer", size, format })
    }

    fn argument(&self, random: &mut Random) -> Argument {
        let kind = match (self.format.channel.kind(), self.format.channel.bytes()) {
            (ChannelKind::Float, 4) => "f32",
            (ChannelKind::Float, _) => "f16",
            (_, 1) => "u8",
            (_, 2) => "u16",
            _ => "u32",
        };
        let channels = self.size.iter().product::<u32>() * u32::from(self.format.channels());
        let mut size = [1; 3];
        size[..self.size.len()].copy_from_slice(&self.size);
        Argument::Image { bytes: contents(&format!("{kind}[{channels}]"), random), size, format: self.format }
    }
}

/// Distance of two floats in units of the last place; large for different signs.
pub fn distance(a: u32, b: u32) -> u32 {
    let key = |bits: u32| {
        if bits >> 31 != 0 { (1u32 << 31).wrapping_sub(bits & 0x7fff_ffff) } else { bits.wrapping_add(1 << 31) }
    };
    key(a).abs_diff(key(b))
}

/// Inputs of a case: kind of each argument, and its value.
pub fn inputs(case: &Case) -> Vec<(String, Argument)> {
    let mut random =
        Random(case.kernel.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(131).wrapping_add(byte.into())));
    case.arguments
        .iter()
        .map(|(name, kind)| {
            let value = if let Some(size) = kind.strip_prefix("local:") {
                Argument::Local(size.parse().unwrap())
            } else if kind.starts_with("sampler:") {
                Argument::parse(kind).unwrap()
            } else if let Some(image) = ImageKind::parse(kind) {
                image.argument(&mut random)
            } else if let Some((ty, number)) = kind.strip_suffix(')').and_then(|text| text.split_once('(')) {
                Argument::parse(&format!("{ty}:{number}")).unwrap()
            } else {
                Argument::Buffer(contents(kind, &mut random))
            };
            (name.clone(), value)
        })
        .collect()
}

/// A line of `tests/data/golden.txt`: kernel, buffer, and the FNV-1a checksum of the buffer after the kernel.
pub fn checksum_line(kernel: &str, name: &str, bytes: &[u8]) -> String {
    let sum = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{kernel} {name} {sum:016x}\n")
}
