// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod container;
pub mod coverage;
pub mod debug;
pub mod isa;
pub mod machine;
pub mod names;
pub mod patch;
pub mod pm4;
pub mod replay;
pub mod symbols;
pub mod text;
pub mod trace;
pub mod vectors;

/// The low and the high 32 bits.
const fn halves(value: u64) -> [u32; 2] {
    [(value & 0xffff_ffff) as u32, (value >> 32) as u32]
}
