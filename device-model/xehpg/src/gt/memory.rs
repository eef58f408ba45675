// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the memory unit: TLB invalidation and local memory translation.

use super::{Gt, SideEffect};
use crate::host::ALL_FUNCTIONS;
use crate::registers::MemoryRegister;
use crate::sync::atomic::Ordering;

impl Gt {
    pub(super) fn read_memory(&self, register: MemoryRegister) -> u32 {
        match register {
            MemoryRegister::TlbInvalidate => (self.tlb_invalidations.load(Ordering::Acquire) != 0).into(),
            MemoryRegister::LmemCfg => self.memory.lmem_cfg(),
        }
    }

    /// A TLB invalidation will be executed by a worker. The registers read as busy until [`Gt::end_tlb_invalidation`].
    pub fn begin_tlb_invalidation(&self) {
        self.tlb_invalidations.fetch_add(1, Ordering::Relaxed);
    }

    /// A TLB invalidation of a worker is complete, or dropped by a reset.
    pub fn end_tlb_invalidation(&self) {
        self.tlb_invalidations.fetch_sub(1, Ordering::Release);
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
