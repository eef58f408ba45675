// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Message signaled interrupts of a function, with the mask and pending bits of the one vector.
#![allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]

use super::PciFunction;
use crate::capability::{MSI_ADDRESS, MsiLayout};
use crate::event::MsiMessage;
use crate::registers::MsiControl;

impl PciFunction {
    /// Returns the message to send for an interrupt on MSI `vector`. If the vector is masked, it becomes pending and is
    /// reported later as [`MsiUnmasked`](crate::event::Event::MsiUnmasked). The interrupt is lost if MSI or bus mastering is disabled or the
    /// vector does not exist.
    pub fn raise_msi(&mut self, vector: u16) -> Option<MsiMessage> {
        let message = self.msi_message().filter(|_| vector == 0 && self.bus_master())?;
        let (msi, layout) = self.msi_layout()?;
        if let Some((mask, pending)) = layout.masking()
            && self.config.dword(msi + mask) & 1 != 0
        {
            self.config.set(msi + pending, 1, 1);
            return None;
        }
        Some(message)
    }

    pub(super) fn take_unmasked(&mut self) -> u32 {
        let Some((msi, layout)) = self.msi_layout() else { return 0 };
        let Some((mask, pending)) = layout.masking() else { return 0 };
        if !self.bus_master() || self.msi_message().is_none() {
            return 0;
        }
        let due = self.config.dword(msi + pending) & !self.config.dword(msi + mask);
        self.config.set(msi + pending, due, 0);
        due
    }

    pub(super) fn msi_message(&self) -> Option<MsiMessage> {
        let (msi, layout) = self.msi_layout()?;
        let enabled = self.config.register::<MsiControl>(msi).enable();
        let address =
            if layout.wide() { self.qword(msi + MSI_ADDRESS) } else { self.config.dword(msi + MSI_ADDRESS).into() };
        enabled.then(|| MsiMessage { address, data: self.config.word(msi + layout.data()).into() })
    }

    /// Offset and layout of the MSI capability.
    fn msi_layout(&self) -> Option<(u16, MsiLayout)> {
        let msi = self.msi?;
        Some((msi, MsiLayout::of(self.config.register(msi))))
    }
}
