// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the GuC: WOPCM, DMA, and the host's interrupt.

use super::{Gt, SideEffect};
use crate::host::Function;
use crate::registers::guc::{DmaCtrl, FIRMWARE_INTERRUPTS, GUC_HOST_INTERRUPT_DATA, LOCKED};
use crate::registers::{Access, GucRegister, Unit, XeHpg, masked};

impl Gt {
    /// Interrupts `function` on behalf of the GuC's firmware, which can set only the bits of the vector that belong to
    /// it (V13-207).
    pub fn interrupt_by_guc(&self, function: Function, bits: u16) {
        self.interrupts_of(function).raise_guc(bits & FIRMWARE_INTERRUPTS);
    }
}

impl Unit<XeHpg, Gt> for GucRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.function_value(access.function, access.offset)
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        match self {
            GucRegister::HostInterrupt => Some(SideEffect::NotifyGuc),
            GucRegister::SendInterrupt => {
                gt.registers.set(GUC_HOST_INTERRUPT_DATA, value);
                Some(SideEffect::NotifyGuc)
            }
            GucRegister::ToHost => {
                gt.interrupt_by_guc(Function::PF, (value & 0xffff) as u16);
                None
            }
            GucRegister::WopcmLock { mask } => {
                // Of two concurrent writes, only the first takes effect.
                gt.registers
                    .update(access.offset, |old| if LOCKED.is_set(old) { old } else { value & mask | LOCKED.mask() });
                None
            }
            GucRegister::Dma => {
                let (_, control) = gt.registers.update(access.offset, |old| masked(old, value));
                DmaCtrl::from(control).start().then_some(SideEffect::StartGucDma)
            }
        }
    }
}
