// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the GuC: WOPCM, DMA, and the host's interrupt.

use super::{Gt, SideEffect};
use crate::registers::{GucRegister, masked};

/// WOPCM registers: the register is valid and locked.
const LOCKED: u32 = 1 << 0;
/// DMA_CTRL: starts the transfer.
const START_DMA: u32 = 1 << 0;

impl Gt {
    pub(super) fn write_guc(&self, register: GucRegister, offset: u32, value: u32) -> Option<SideEffect> {
        match register {
            GucRegister::HostInterrupt => Some(SideEffect::RingGuc),
            GucRegister::WopcmLock { mask } => {
                // Of two concurrent writes, only the first takes effect.
                self.registers.update(offset, |old| if old & LOCKED == 0 { value & mask | LOCKED } else { old });
                None
            }
            GucRegister::Dma => {
                let (_, control) = self.registers.update(offset, |old| masked(old, value));
                (control & START_DMA != 0).then_some(SideEffect::StartGucDma)
            }
        }
    }
}
