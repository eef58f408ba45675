// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Address translation: the GGTT, the PPGTT with its directory in it, the fences of the aperture, and the only access path
//! to guest memory.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod aperture;
mod fault_type;
pub mod fence;
pub mod ggtt;
pub mod saved;
#[cfg(test)]
mod tests;
mod tiling;
mod tlb;
mod translation;

pub use aperture::Aperture;
pub use arctic_base::memory::{Access, CellValue};
pub use fault_type::FaultType;
pub use ggtt::{Ggtt, Pte};
pub use tiling::Walk;
pub use tlb::{LATEST, SHOWN_GLOBAL, Tlb};
pub use translation::{Directory, Fault, MappedPages, Memory, Space};

/// Size of a page in bytes.
pub const PAGE: u32 = 4096;
/// Number of pages of an address space of 32 bits.
pub const PAGES: u32 = 1 << 20;
/// Bits of an address that select the page.
pub const PAGE_MASK: u32 = !0xfff;
