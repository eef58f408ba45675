// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernels of `tests/kernels` with the sizes and the random inputs of their runs.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;

use arctic_eu::launch::Argument;

use crate::random::Random;

/// A kernel with its sizes and arguments, from its `//:` line.
pub struct Case {
    pub source: &'static str,
    pub kernel: String,
    pub global: [u32; 3],
    pub local: [u32; 3],
    pub ulp: u32,
    pub abs: f32,
    pub options: String,
    pub arguments: Vec<(String, String)>,
}

pub fn cases(source: &'static str) -> Vec<Case> {
    let path = format!("{}/tests/kernels/{source}.cl", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let sizes = |text: &str| {
        let mut sizes = [1; 3];
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
            let (kernel, global, local) = (next().to_string(), sizes(next()), sizes(next()));
            let mut case =
                Case { source, kernel, global, local, ulp: 0, abs: 0.0, options: String::new(), arguments: Vec::new() };
            for word in words {
                let (name, value) = word.split_once('=').unwrap();
                match name {
                    "ulp" => case.ulp = value.parse().unwrap(),
                    "abs" => case.abs = value.parse().unwrap(),
                    "options" => case.options = value.into(),
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
            "nz32" => bytes.extend((value as u32 >> (wild % 24)).max(1).to_le_bytes()),
            "nz64" => bytes.extend(((value >> (wild % 48)).max(1) & 0x7fff_ffff_ffff_ffff).max(1).to_le_bytes()),
            "zero32" => bytes.extend([0; 4]),
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
            "f16" => bytes.extend((wild as u16 & 0xbfff).to_le_bytes()),
            _ => panic!("{kind}"),
        }
    }
    bytes
}

pub fn is_float(kind: &str) -> bool {
    kind.starts_with("f32[")
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
    let mut random = Random(case.kernel.bytes().fold(7, |hash, byte| hash * 131 + u64::from(byte)));
    case.arguments
        .iter()
        .map(|(name, kind)| {
            let value = if let Some(size) = kind.strip_prefix("local:") {
                Argument::Local(size.parse().unwrap())
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
