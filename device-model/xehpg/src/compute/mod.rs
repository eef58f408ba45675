// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers: kernels on the execution units, which `arctic-eu` executes, with the state of the context and its memory.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bases;
mod formats;
mod memory;
mod replay;
mod sampler;
mod surface;
mod surfaces;

pub use bases::Bases;
pub use memory::{KernelMemory, REMOTE_COST};
pub use surface::{SurfaceMemory, SurfaceState};
pub use surfaces::Surfaces;
