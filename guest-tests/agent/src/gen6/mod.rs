// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Work for integrated GPUs of Gen6 and Gen7, by i915's uAPI. They have one address space for all programs, in which the
//! driver places objects, so batches have relocations ([`gem`]). Commands have addresses of 32 bits ([`batch`], [`blt`]).

pub mod batch;
pub mod blt;
pub mod checks;
pub mod gem;
pub mod picture;
pub mod tiling;
