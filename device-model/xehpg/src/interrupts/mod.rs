// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt hierarchy: GT interrupt banks (each with selector and identity), GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, and
//! one MSI vector (V13-257..288).
//!
//! All stages of the GT are level-triggered: a source is pending while it has an unmasked event, a bank while one of its sources
//! is pending, and the tile while a bank is pending. An MSI is sent when "tile pending and master enabled" becomes
//! true, and again if a bank is still pending after software has cleared it, because new events arrived. Therefore no
//! event is lost regardless of the acknowledge order, and no further MSI is sent while the master interrupt is
//! disabled.
//!
//! The bits of hardware errors in GFX_MSTR_IRQ are events: they are set when an error occurs, and stay set until
//! software clears them. The bit of fatal errors alone does not make the tile pending (V13-286).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod event;
mod function_interrupts;
pub mod memirq;
mod sources;
#[cfg(test)]
mod tests;
mod tree;

pub use event::{
    CONTEXT_SWITCH, CS_ERROR, DMA_DONE, DOORBELL_RANG, FLUSH_COMPLETE, GUC2HOST, L3_PARITY, PAGE_FAULT, SEMAPHORE_WAIT,
    USER_INTERRUPT, WATCHDOG,
};
pub use function_interrupts::Interrupts;
pub use sources::{InterruptMap, XE_HPG_INTERRUPTS};
pub(crate) use tree::MasterTile;
pub(crate) use tree::error_bit;
pub use tree::{MOST_SAVED_BYTES, SavedTree};
