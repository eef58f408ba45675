// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt tree: GT banks with selector and identity, GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, one MSI (V13-257..288).
//!
//! All levels from the leaf to the root are level-triggered: a source is ready while it has an unmasked event, a bank
//! while it shows a source, the tile while a bank shows a source. An MSI is sent when "tile pending and master enabled"
//! becomes true, and again when a bank is cleared and shows the events that arrived in the meantime. Therefore no event
//! is lost, in whatever order the driver acknowledges, and no MSI repeats while the driver has the master disabled.

mod delivery;
pub mod event;
pub mod memirq;
mod sources;
#[cfg(test)]
mod tests;
mod tree;

pub use delivery::Interrupts;
pub use event::{
    CONTEXT_SWITCH, CS_ERROR, DOORBELL_RANG, FLUSH_COMPLETE, GUC2HOST, L3_PARITY, PAGE_FAULT, SEMAPHORE_WAIT,
    USER_INTERRUPT, WATCHDOG,
};
