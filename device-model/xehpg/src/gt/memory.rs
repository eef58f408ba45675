// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the memory unit: TLB invalidation and local memory translation.

use super::{Gt, SideEffect};
use crate::host::ALL_FUNCTIONS;
use crate::registers::{Access, MemoryRegister, Unit, XeHpg};
use crate::sync::atomic::Ordering;
use crate::trace::EventKind;

impl Gt {
    /// A TLB invalidation will be executed by a worker. The registers read as busy until [`Gt::end_tlb_invalidation`].
    pub fn begin_tlb_invalidation(&self) {
        self.tlb_invalidations.fetch_add(1, Ordering::Relaxed);
    }

    /// A TLB invalidation of a worker is complete, or dropped by a reset.
    pub fn end_tlb_invalidation(&self) {
        self.tlb_invalidations.fetch_sub(1, Ordering::Release);
    }
}

impl Unit<XeHpg, Gt> for MemoryRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, _: Access<'_>) -> u32 {
        match self {
            MemoryRegister::TlbInvalidate => (gt.tlb_invalidations.load(Ordering::Acquire) != 0).into(),
            MemoryRegister::LmemCfg => gt.memory.lmem_cfg(),
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let invalidation = || EventKind::TlbInvalidation { by: access.decoded.register.name.into(), all: true };
        gt.trace.record(access.function, invalidation);
        match self {
            MemoryRegister::TlbInvalidate => {
                // The registers select units of the card, not functions.
                gt.memory.invalidate(ALL_FUNCTIONS);
                Some(SideEffect::TlbInvalidate)
            }
            MemoryRegister::LmemCfg => {
                gt.memory.set_lmem_cfg(value);
                None
            }
        }
    }
}
