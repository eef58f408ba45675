// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the GuC: WOPCM, DMA, and the host's interrupt.

use super::{Gt, SideEffect};
use crate::registers::guc::{LOCKED, START_DMA};
use crate::registers::{GucRegister, masked};

impl Gt {
    pub(super) fn write_guc(&self, register: GucRegister, offset: u32, value: u32) -> Option<SideEffect> {
        match register {
            GucRegister::HostInterrupt => Some(SideEffect::RingGuc),
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
