// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The two windows of the graphics system controller.

use std::sync::MutexGuard;

use super::{Gt, SideEffect};
use crate::heci::{self, Heci};
use crate::interrupts::event::HECI_INTERRUPTS;
use crate::registers::{Access, HeciWindow, Unit, XeHpg};
use crate::sync::IgnorePoison;

impl Gt {
    /// HECI window 0 (GSC) or 1 (GSCFI).
    #[allow(clippy::indexing_slicing, reason = "the window is 0 or 1")]
    pub(super) fn heci(&self, window: u8) -> MutexGuard<'_, Heci> {
        self.heci[usize::from(window & 1)].lock().ignore_poison()
    }
}

impl Unit<XeHpg, Gt> for HeciWindow {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.heci(self.0).read(access.offset % heci::WINDOW_BYTES)
    }

    #[allow(clippy::indexing_slicing, reason = "the window is 0 or 1")]
    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let effect = gt.heci(self.0).write(access.offset % heci::WINDOW_BYTES, value);
        if effect.interrupt {
            gt.interrupts.raise_gsc(HECI_INTERRUPTS[usize::from(self.0 & 1)]);
        }
        None
    }
}
