// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt hierarchy: GT interrupt banks (each with selector and identity), GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, and
//! one MSI vector (V13-257..288).
//!
//! All stages are level-triggered: a source is pending while it has an unmasked event, a bank while one of its sources
//! is pending, and the tile while a bank is pending. An MSI is sent when "tile pending and master enabled" becomes
//! true, and again if a bank is still pending after software has cleared it, because new events arrived. Therefore no
//! event is lost regardless of the acknowledge order, and no further MSI is sent while the master interrupt is
//! disabled.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod delivery;
pub mod event;
pub mod memirq;
mod sources;
#[cfg(test)]
mod tests;
mod tree;

pub use delivery::Interrupts;
pub use event::{
    CONTEXT_SWITCH, CS_ERROR, DMA_DONE, DOORBELL_RANG, FLUSH_COMPLETE, GUC2HOST, L3_PARITY, PAGE_FAULT, SEMAPHORE_WAIT,
    USER_INTERRUPT, WATCHDOG,
};
pub use sources::{InterruptMap, XE_HPG_INTERRUPTS};
pub use tree::SavedTree;
