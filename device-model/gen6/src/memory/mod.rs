// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Address translation: the GGTT, the PPGTT with its directory in it, and the only access path to guest memory.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod ggtt;
#[cfg(test)]
mod tests;
mod translation;

pub use ggtt::{Ggtt, Pte};
pub use translation::{Directory, Fault, FaultType, Memory, Space};

/// Size of a page in bytes.
pub const PAGE: u32 = 4096;
/// Bits of an address that select the page.
pub const PAGE_MASK: u32 = !0xfff;
