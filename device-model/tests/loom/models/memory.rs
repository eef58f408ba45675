// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory shared with loom threads: dwords with atomic loads and stores.

use loom::sync::atomic::{AtomicU32, Ordering};

use crate::memory::{Access, Fault, FaultReason, Space};

/// Replaces the library's `Gam`; supports only GGTT addresses of dwords. Byte copies are relaxed, because the library
/// does not order them among themselves; dword loads are acquire, dword stores release.
pub struct Gam<'m>(pub &'m [AtomicU32]);

impl Gam<'_> {
    fn dword(&self, space: Space, address: u64, access: Access) -> Result<&AtomicU32, Fault> {
        let fault = Fault { space, address, access, reason: FaultReason::NotMapped };
        let at = usize::try_from(address / 4).ok().filter(|_| address.is_multiple_of(4));
        at.and_then(|at| self.0.get(at)).ok_or(fault)
    }

    pub fn read_u32(&mut self, space: Space, address: u64) -> Result<u32, Fault> {
        Ok(self.dword(space, address, Access::Read)?.load(Ordering::Acquire))
    }

    pub fn write_u32(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        self.dword(space, address, Access::Write)?.store(value, Ordering::Release);
        Ok(())
    }

    pub fn read(&mut self, space: Space, address: u64, data: &mut [u8]) -> Result<(), Fault> {
        for (at, bytes) in (address..).step_by(4).zip(data.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&self.dword(space, at, Access::Read)?.load(Ordering::Relaxed).to_le_bytes());
        }
        Ok(())
    }
    pub fn write(&mut self, space: Space, address: u64, data: &[u8]) -> Result<(), Fault> {
        for (at, bytes) in (address..).step_by(4).zip(data.as_chunks::<4>().0) {
            self.dword(space, at, Access::Write)?.store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        Ok(())
    }
}
