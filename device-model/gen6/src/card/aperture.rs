// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CPU accesses to the aperture: the lower part of the GGTT's address space.

use super::Card;
use crate::memory::Memory;
use crate::sync::IgnorePoison;

impl Card {
    /// Calls `access` with the guest's memory, which the VMM does not take away before its end. The last address has no
    /// translation: a GGTT has at most 2 GiB.
    fn access(&self, offset: u64, access: impl FnOnce(&Memory<'_>, u32)) {
        let address = u32::try_from(offset).unwrap_or(u32::MAX);
        let _access = self.accesses.read().ignore_poison();
        let view = self.gt.view();
        access(&Memory::new(&self.gt.ggtt, &*view), address);
    }

    /// Reads the aperture at `offset`. Bytes without a translation read all ones.
    pub(super) fn read_aperture(&self, offset: u64, data: &mut [u8]) {
        self.access(offset, |memory, address| self.gt.aperture.read(memory, address, data));
    }

    /// Writes the aperture at `offset`. Bytes without a translation are dropped.
    pub(super) fn write_aperture(&self, offset: u64, data: &[u8]) {
        self.access(offset, |memory, address| self.gt.aperture.write(memory, address, data));
    }
}
