//! The interrupt tree: GT banks with selector and identity, GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, one MSI (V13-257..288).
//!
//! From the leaf to the root every level is a level, not an edge: a source is ready while it holds an unmasked event, a
//! bank while it shows a source, the tile while a bank shows anything. An MSI is sent when "tile pending and master
//! enabled" becomes true, and again when a bank that has been cleared shows the events that came meanwhile. So nothing
//! is lost whatever the driver acknowledges when, and nothing repeats while the driver has the master disabled.

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
