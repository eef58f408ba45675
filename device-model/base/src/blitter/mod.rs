// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parts of copy engines: layouts of surfaces in memory, raster operations, and copies and fills of rectangles in bounded
//! steps, through the interface to a family's memory.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod memory;
mod progress;
pub mod raster;
pub mod rectangle;
pub mod tiling;
pub mod window;

pub use memory::{BlitMemory, Compression, Piece};
pub use progress::Progress;
