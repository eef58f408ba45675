// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the memory unit: TLB invalidation and local memory translation.

use super::{Gt, SideEffect};
use crate::host::ALL_FUNCTIONS;
use crate::registers::MemoryRegister;

impl Gt {
    pub(super) fn read_memory(&self, register: MemoryRegister) -> u32 {
        match register {
            MemoryRegister::TlbInvalidate => 0,
            MemoryRegister::LmemCfg => self.memory.lmem_cfg(),
        }
    }

    pub(super) fn write_memory(&self, register: MemoryRegister, value: u32) -> Option<SideEffect> {
        match register {
            MemoryRegister::TlbInvalidate => {
                // The registers select units of the card, not functions.
                self.memory.invalidate(ALL_FUNCTIONS);
                Some(SideEffect::TlbInvalidate)
            }
            MemoryRegister::LmemCfg => {
                self.memory.set_lmem_cfg(value);
                None
            }
        }
    }
}
