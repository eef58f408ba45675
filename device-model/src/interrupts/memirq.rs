// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory-based interrupts: one byte per event in the function's memory, then its MSI (V13-273..277, contract C.3).
//! They serve functions for which the interrupt message has no room.

use std::sync::atomic::{Ordering, fence};

use super::event::{self, USER_INTERRUPT};
use crate::engine::id::EngineId;
use crate::memory::{Fault, Gam, Space};

/// Value of the byte of a pending event; the driver clears it.
const SET: u8 = 0xff;
/// Size of the status of one source: one byte per event (V13-275).
const STATUS_BYTES: u64 = 16;
/// Number of sources of one GT_INTR_DW.
const BANK: u64 = 32;

/// Report addresses and enable mask from a context image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// RING_INT_STATUS_RPT_PTR: GGTT address of the status of source 0.
    pub status: u32,
    /// RING_INT_SRC_RPT_PTR: GGTT address of the byte of source 0.
    pub source: u32,
    /// RING_IMR as loaded from the image. xe uses it as an enable mask, and writes it even while interrupts are off;
    /// the user interrupt is always reported (contract C.3).
    pub enable: u32,
}

impl Report {
    /// Reports the events of `bits` that the engine supports and the driver has enabled. Returns whether there was one,
    /// in which case the caller must send an MSI.
    pub fn write(&self, gam: &mut Gam<'_>, engine: EngineId, bits: u16) -> Result<bool, Fault> {
        let source = source(engine);
        let status = u64::from(self.status) + source * STATUS_BYTES;
        let wanted = bits & event::of_class(engine.info().class) & ((self.enable & 0xffff) as u16 | USER_INTERRUPT);
        for bit in (0..16).filter(|bit| wanted >> bit & 1 != 0) {
            write(gam, status, u64::from(self.source) + source, bit)?;
        }
        Ok(wanted != 0)
    }
}

/// Index of an engine in the source page: its bit in the concatenation of the two GT_INTR_DW.
pub fn source(engine: EngineId) -> u64 {
    let (bank, bit) = engine.info().interrupt;
    u64::from(bank) * BANK + u64::from(bit)
}

/// Reports event `bit` (0..=15) of one source: writes its status byte first, then the source's byte, so that a reader
/// that sees the source byte also sees the status byte. Both are GGTT addresses owned by the function. The caller must
/// send the MSI afterwards.
pub fn write(gam: &mut Gam<'_>, status: u64, source: u64, bit: u8) -> Result<(), Fault> {
    // Byte writes are unordered: order them after the data that the event signals, and one after the other.
    fence(Ordering::Release);
    gam.write(Space::Ggtt, status + u64::from(bit & 0xf), &[SET])?;
    fence(Ordering::Release);
    gam.write(Space::Ggtt, source, &[SET])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::id::EngineClass;

    /// Contract C.3, K.3: the sources have their documented numbers.
    #[test]
    fn sources_have_their_numbers() {
        let of = |class, instance| source(EngineId::find(class, instance).unwrap());
        assert_eq!((of(EngineClass::Render, 0), of(EngineClass::Copy, 0)), (0, 15));
        for n in 0..4 {
            assert_eq!(of(EngineClass::Compute, n), 4 + u64::from(n));
            assert_eq!(of(EngineClass::VideoEnhance, n), 32 + 31 - u64::from(n));
        }
        for n in 0..8 {
            assert_eq!(of(EngineClass::VideoDecode, n), 32 + u64::from(n));
        }
        assert!(EngineId::all().all(|engine| source(engine) < 64), "the source page has 64 bytes");
    }
}
