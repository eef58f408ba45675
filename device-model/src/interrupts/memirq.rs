//! Memory-based interrupts: a byte an event in the function's own memory, then its MSI (V13-273..277, contract C.3). They
//! serve functions beyond the few that the interrupt message has room for.

use std::sync::atomic::{Ordering, fence};

use super::event::{self, USER_INTERRUPT};
use crate::engine::id::EngineId;
use crate::memory::{Fault, Gam, Space};

/// What a byte holds that tells an event; the driver clears it.
const SET: u8 = 0xff;
/// Bytes of the status of one source: one an event (V13-275).
const STATUS_BYTES: u64 = 16;
/// Sources of one GT_INTR_DW.
const BANK: u64 = 32;

/// Where a context's image asked for its events, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// RING_INT_STATUS_RPT_PTR: global address of the status of source 0.
    pub status: u32,
    /// RING_INT_SRC_RPT_PTR: global address of the byte of source 0.
    pub source: u32,
    /// RING_IMR as the image's load fetched it. To xe it is a mask of what is enabled, and it is written while interrupts
    /// are off as well; the user interrupt is told always (contract C.3).
    pub enable: u32,
}

impl Report {
    /// Writes the events of `bits` that the engine has and the driver wants; tells whether there was any, and so an MSI
    /// is due.
    pub fn write(&self, gam: &mut Gam<'_>, engine: EngineId, bits: u16) -> Result<bool, Fault> {
        let source = source(engine);
        let status = u64::from(self.status) + source * STATUS_BYTES;
        let wanted = bits & event::of_class(engine.info().class) & (self.enable as u16 | USER_INTERRUPT);
        for bit in (0..16).filter(|bit| wanted >> bit & 1 != 0) {
            write(gam, status, u64::from(self.source) + source, bit)?;
        }
        Ok(wanted != 0)
    }
}

/// Place of an engine in the source page: its bit in the two GT_INTR_DW, one behind the other.
pub fn source(engine: EngineId) -> u64 {
    let (bank, bit) = engine.info().interrupt;
    u64::from(bank) * BANK + u64::from(bit)
}

/// Tells event `bit` (0..=15) of one source: first its byte of the status, then the source's, so that who sees the second
/// finds the first. Both addresses are global and the function's own. The MSI is the caller's to send, afterwards.
pub fn write(gam: &mut Gam<'_>, status: u64, source: u64, bit: u8) -> Result<(), Fault> {
    // Bytes are not stored in order by themselves: not after what the event is about, nor after one another.
    fence(Ordering::Release);
    gam.write(Space::Ggtt, status + u64::from(bit & 0xf), &[SET])?;
    fence(Ordering::Release);
    gam.write(Space::Ggtt, source, &[SET])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::id::EngineClass;

    /// Contract C.3, K.3: the sources' numbers.
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
