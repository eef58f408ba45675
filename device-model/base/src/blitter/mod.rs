// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parts of copy engines: layouts of surfaces in memory, raster operations, and copies and fills of rectangles in bounded
//! steps, through the interface to a family's memory. Errors of decoders.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod error;
mod memory;
mod progress;
pub mod ranges;
pub mod raster;
pub mod rectangle;
#[cfg(test)]
mod tests;
pub mod tiling;

pub use error::BlitError;
pub use memory::{BlitMemory, Compression, Piece};
pub use progress::Progress;
