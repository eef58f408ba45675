// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to the registers of an engine: ring, modes, time.

use arctic_base::registers::{Unit, masked};
use arctic_sriov::number::{high, low};

use super::{Gt, SideEffect};
use crate::registers::engine::{
    CTL, CTL_ENABLE, CTL_PAGES, CTL_SEMAPHORE_WAIT, CTL_WAIT, HEAD, HEAD_OFFSET, HEAD_WRAPS, MI_MODE, MODE_IDLE,
    MODE_STOP, SYNC_FLUSH, TAIL, TAIL_OFFSET,
};
use crate::registers::{Access, EngineRegister, Gen6};
use crate::topology::EngineId;

/// Bits of the timestamp (IVB-116).
const TIMESTAMP: u64 = (1 << 36) - 1;

impl Unit<Gen6, Gt> for EngineRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        let value = gt.registers.value(access.offset);
        match (self, access.decoded.engine) {
            (EngineRegister::Mode, Some(engine)) if gt.engine_idle(engine) => value | MODE_IDLE.mask(),
            (EngineRegister::Timestamp, _) => low(gt.timestamp()),
            (EngineRegister::TimestampHigh, _) => high(gt.timestamp()),
            _ => value,
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let engine = access.decoded.engine?;
        let at = access.offset;
        match self {
            EngineRegister::Tail => {
                gt.registers.set(at, value & TAIL_OFFSET.mask());
            }
            EngineRegister::Head => {
                gt.registers.set(at, value & (HEAD_OFFSET.mask() | HEAD_WRAPS.mask()));
                return None;
            }
            EngineRegister::Control => {
                let stored = CTL_PAGES.mask() | CTL_ENABLE.mask() | 0x6;
                // Writing 1 to the bit of a wait clears it; other writes do not change it (IVB-181).
                let waits = (CTL_WAIT.mask() & !value) | CTL_SEMAPHORE_WAIT.mask();
                gt.registers.update(at, |old| value & stored | old & waits);
            }
            EngineRegister::Mode => {
                gt.registers.update(at, |old| masked(old, value) & !MODE_IDLE.mask());
            }
            EngineRegister::ParserMode => {
                // A flush is complete at once: the model has no caches.
                gt.registers.update(at, |old| masked(old, value) & !SYNC_FLUSH.mask());
                return None;
            }
            EngineRegister::Timestamp | EngineRegister::TimestampHigh => return None,
        }
        Some(SideEffect::Wake(engine))
    }
}

impl Gt {
    /// Offset of a register of an engine.
    #[inline]
    pub fn engine_offset(&self, engine: EngineId, register: u32) -> u32 {
        self.generation.engine(engine).base.saturating_add(register)
    }

    /// Value of a register of an engine, without side effects.
    #[inline]
    pub fn engine_value(&self, engine: EngineId, register: u32) -> u32 {
        self.registers.value(self.engine_offset(engine, register))
    }

    /// The time in units of the timestamp.
    pub fn timestamp(&self) -> u64 {
        self.generation.timebase.ticks(self.clock.now()) & TIMESTAMP
    }

    /// Returns whether the parser of an engine has nothing to do: its ring is disabled, empty or stopped.
    pub fn engine_idle(&self, engine: EngineId) -> bool {
        let [control, mode, head, tail] =
            [CTL, MI_MODE, HEAD, TAIL].map(|register| self.engine_value(engine, register));
        !CTL_ENABLE.is_set(control) || MODE_STOP.is_set(mode) || HEAD_OFFSET.of(HEAD_OFFSET.get(head)) == tail
    }

    /// Returns whether all engines are idle.
    pub fn engines_idle(&self) -> bool {
        self.generation.engines().all(|(engine, _)| self.engine_idle(engine))
    }
}
