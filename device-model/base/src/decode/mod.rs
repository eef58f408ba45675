// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembler for batches and rings of any family. A family implements [`Decode`] and [`Names`] for its engines, and for
//! decoders of dumps [`Family`]. The run time is bounded by the length of the input.
//!
//! [`Decode`]: crate::command::Decode
//! [`Names`]: show::Names
//! [`Family`]: family::Family
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod batch;
pub mod family;
pub mod line;
pub mod loads;
pub mod show;
#[cfg(test)]
mod tests;
