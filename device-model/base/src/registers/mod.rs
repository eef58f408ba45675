// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parts of register tables.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bits;

pub use bits::Bits;
