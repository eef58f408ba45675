//! The interrupt tree: GT banks with selector and identity, GFX_MSTR_IRQ, DG1_MSTR_TILE_INTR, one MSI (V13-257..288).

use std::sync::Arc;

use crate::engine::id::EngineId;
use crate::registers::Live;
use crate::world::InterruptSink;

/// Interrupt bit of an engine: MI_USER_INTERRUPT (V13-268).
pub const USER_INTERRUPT: u16 = 1 << 0;
/// Interrupt bit of an engine: command streamer error.
pub const CS_ERROR: u16 = 1 << 3;
/// Interrupt bit of an engine: flush with notify complete.
pub const FLUSH_COMPLETE: u16 = 1 << 4;
/// Interrupt bit of an engine: context switch.
pub const CONTEXT_SWITCH: u16 = 1 << 8;
/// Interrupt bit of the GuC: message to the host.
pub const GUC2HOST: u16 = 1 << 15;

/// The tree, from the sources' bits to the MSI.
pub struct Interrupts {
    sink: Arc<dyn InterruptSink>,
}

impl Interrupts {
    /// A quiet tree that sends its MSI to `sink`.
    pub fn new(sink: Arc<dyn InterruptSink>) -> Self {
        Interrupts { sink }
    }

    /// An engine has `bits` to tell (USER_INTERRUPT ...); what its enable and mask registers forbid is dropped.
    pub fn raise_engine(&self, engine: EngineId, bits: u16) {
        let _ = (engine, bits, &self.sink);
    }

    /// The GuC has `bits` to tell (GUC2HOST).
    pub fn raise_guc(&self, bits: u16) {
        let _ = bits;
    }

    /// The GSC has `bits` to tell (bit 15 HECI1, bit 14 HECI2).
    pub fn raise_gsc(&self, bits: u16) {
        let _ = bits;
    }

    /// A register of the tree is read.
    pub fn read(&self, live: Live, ordinal: u16) -> u32 {
        let _ = (live, ordinal);
        0
    }

    /// A register of the tree is written.
    pub fn write(&self, live: Live, ordinal: u16, value: u32) {
        let _ = (live, ordinal, value);
    }
}
