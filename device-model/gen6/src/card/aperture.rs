// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CPU accesses to the aperture: the lower part of the GGTT's address space.

use arctic_sriov::number::low;

use super::Card;
use crate::memory::{Memory, PAGE, Space};
use crate::sync::IgnorePoison;

impl Card {
    /// Reads the aperture at `offset`. Without a translation, the bytes read all ones.
    pub(super) fn read_aperture(&self, offset: u64, data: &mut [u8]) {
        let _access = self.accesses.read().ignore_poison();
        let (address, view) = (low(offset), self.gt.view());
        self.gt.note_tiled(address / PAGE);
        if Memory::new(&self.gt.ggtt, &*view).read(Space::Ggtt, address, data).is_err() {
            data.fill(0xff);
        }
    }

    /// Writes the aperture at `offset`. Without a translation, the bytes are dropped.
    pub(super) fn write_aperture(&self, offset: u64, data: &[u8]) {
        let _access = self.accesses.read().ignore_poison();
        let (address, view) = (low(offset), self.gt.view());
        self.gt.note_tiled(address / PAGE);
        let _ = Memory::new(&self.gt.ggtt, &*view).write(Space::Ggtt, address, data);
    }
}
