// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers: kernels on the execution units, which `arctic-eu` executes, with the state of the context and its memory.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bases;
mod capture;
mod formats;
mod memory;
mod parked;
mod replay;
mod report;
mod run;
mod sampler;
pub mod saved;
mod shared;
mod slot;
mod state;
mod surface;
mod surfaces;
mod texels;
mod time;
mod unit;
mod walker;

pub use bases::Bases;
pub use capture::{CaptureJob, Captures};
pub use memory::KernelMemory;
pub use parked::{Owner, ParkedRun, ParkedWalkers};
pub use report::{KernelPlace, MOST_SAVED_BYTES, Room, RunStop, Times, Unexecuted, WalkerCounts};
pub use run::WalkerRun;
pub use shared::{ClusterState, Help, Offers};
pub use state::{ComputeState, STATE_DWORDS, has_compute, image_command};
pub use surface::SurfaceState;
pub use surfaces::Surfaces;
pub use time::{EuClocks, EuRates};
pub use unit::ComputeUnit;
pub use walker::{PostSync, Walker, WalkerError, WalkerWords};
