// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory-based interrupts: the device writes a byte for each event to memory of the function, then sends the
//! function's MSI (V13-273..277, contract C.3). They are required for more than 8 VFs, because the VF number in the
//! interrupt message has only 3 bits.

use std::sync::atomic::{Ordering, fence};

use super::event::{self, USER_INTERRUPT};
use crate::memory::{Fault, Gam, Space};
use crate::topology::EngineInfo;

/// Value written to a byte to report an event; the driver clears it.
const SET: u8 = 0xff;
/// Number of status bytes of a source, one per event (V13-275).
const STATUS_BYTES: u64 = 16;
/// Number of sources in one GT_INTR_DW, one per bit.
const BANK: u64 = 32;

/// Report addresses and enable mask from a context image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// RING_INT_STATUS_RPT_PTR: GGTT address of the status bytes of source 0.
    pub status: u32,
    /// RING_INT_SRC_RPT_PTR: GGTT address of the source byte of source 0.
    pub source: u32,
    /// RING_IMR, loaded from memory by the context image. xe uses it as an enable mask, which is 0 while the driver
    /// has interrupts disabled. The user interrupt is reported regardless of the mask (contract C.3).
    pub enable: u32,
}

impl Report {
    /// Reports the events in `bits` that the engine supports and the driver has enabled. Returns whether an event was
    /// reported; if so, the caller must send an MSI.
    #[allow(clippy::arithmetic_side_effects, reason = "an address has 32 bits, a source is below 64")]
    pub fn write(&self, gam: &mut Gam<'_>, engine: &EngineInfo, bits: u16) -> Result<bool, Fault> {
        let source = source(engine);
        let status = u64::from(self.status) + source * STATUS_BYTES;
        let known = event::of_class(engine.class);
        let reported = bits & known & ((self.enable & 0xffff) as u16 | USER_INTERRUPT);
        for bit in (0..16).filter(|bit| reported >> bit & 1 != 0) {
            write(gam, status, u64::from(self.source) + source, bit)?;
        }
        Ok(reported != 0)
    }
}

/// Source index of an engine: its bit number in the concatenation of the two GT_INTR_DW.
#[allow(clippy::arithmetic_side_effects, reason = "a bank and a bit are constants below 32")]
pub fn source(engine: &EngineInfo) -> u64 {
    let (bank, bit) = engine.interrupt;
    u64::from(bank) * BANK + u64::from(bit)
}

/// Reports event `bit` (0..=15) of a source: writes the event's status byte, then the source byte, so that a reader
/// that observes the source byte also observes the status byte. `status` is the address of the source's status bytes
/// and `source` the address of its source byte; both are GGTT addresses owned by the function. The caller must send the
/// MSI afterwards.
#[allow(clippy::arithmetic_side_effects, reason = "a status address is the sum of 32 bits and a small offset")]
pub fn write(gam: &mut Gam<'_>, status: u64, source: u64, bit: u8) -> Result<(), Fault> {
    // The writes themselves are unordered. The first fence orders them after the data that the event signals, the
    // second orders the source byte after the status byte.
    fence(Ordering::Release);
    gam.write(Space::Ggtt, status + u64::from(bit & 0xf), &[SET])?;
    fence(Ordering::Release);
    gam.write(Space::Ggtt, source, &[SET])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::XE_HPG;
    use crate::topology::EngineClass;

    /// Contract C.3, K.3: the source index of each engine matches the documentation.
    #[test]
    fn source_indices_are_as_documented() {
        let engines = XE_HPG.engines;
        let of = |class, instance| source(engines.info(engines.find(class, instance).unwrap()));
        assert_eq!((of(EngineClass::Render, 0), of(EngineClass::Copy, 0)), (0, 15));
        for n in 0..4 {
            assert_eq!(of(EngineClass::Compute, n), 4 + u64::from(n));
            assert_eq!(of(EngineClass::VideoEnhance, n), 32 + 31 - u64::from(n));
        }
        for n in 0..8 {
            assert_eq!(of(EngineClass::VideoDecode, n), 32 + u64::from(n));
        }
        assert!(engines.list().iter().all(|engine| source(engine) < 64), "there are 64 source bytes");
    }
}
