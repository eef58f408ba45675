// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the GuC: WOPCM, DMA, and the host's interrupt.

use super::{Gt, SideEffect};
use crate::host::Function;
use crate::registers::guc::{FIRMWARE_INTERRUPTS, GUC_HOST_INTERRUPT_DATA, LOCKED, START_DMA};
use crate::registers::{GucRegister, masked};

impl Gt {
    /// Interrupts `function` on behalf of the GuC's firmware, which can set only the bits of the vector that belong to
    /// it (V13-207).
    pub fn interrupt_by_guc(&self, function: Function, bits: u16) {
        self.interrupts_of(function).raise_guc(bits & FIRMWARE_INTERRUPTS);
    }

    pub(super) fn write_guc(&self, register: GucRegister, offset: u32, value: u32) -> Option<SideEffect> {
        match register {
            GucRegister::HostInterrupt => Some(SideEffect::RingGuc),
            GucRegister::SendInterrupt => {
                self.registers.set(GUC_HOST_INTERRUPT_DATA, value);
                Some(SideEffect::RingGuc)
            }
            GucRegister::ToHost => {
                self.interrupt_by_guc(Function::PF, (value & 0xffff) as u16);
                None
            }
            GucRegister::WopcmLock { mask } => {
                // Of two concurrent writes, only the first takes effect.
                self.registers
                    .update(offset, |old| if LOCKED.is_set(old) { old } else { value & mask | LOCKED.mask() });
                None
            }
            GucRegister::Dma => {
                let (_, control) = self.registers.update(offset, |old| masked(old, value));
                START_DMA.is_set(control).then_some(SideEffect::StartGucDma)
            }
        }
    }
}
