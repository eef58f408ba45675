// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PCI functions as data: configuration space, capabilities, BARs, MSI, FLR, SR-IOV, saved state.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub use arctic_number as number;

pub mod bar;
pub mod capability;
pub mod config;
pub mod event;
pub mod function;
pub mod header;
pub mod part;
pub mod register;
pub mod registers;
pub mod reverted;
pub mod saved;
pub mod sriov_capability;
#[cfg(test)]
mod testing;
pub mod virtual_function;
