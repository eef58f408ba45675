// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The two windows of the graphics system controller.

use std::sync::MutexGuard;

use super::Gt;
use crate::heci::{self, Heci};
use crate::sync::IgnorePoison;

/// Bits of the GSC's interrupt identity for HECI1 and HECI2 (contract B.10).
const HECI_INTERRUPTS: [u16; 2] = [1 << 15, 1 << 14];

impl Gt {
    /// HECI window 0 (GSC) or 1 (GSCFI).
    #[allow(clippy::indexing_slicing, reason = "the window is 0 or 1")]
    pub(super) fn heci(&self, window: u8) -> MutexGuard<'_, Heci> {
        self.heci[usize::from(window & 1)].lock().ignore_poison()
    }

    pub(super) fn read_heci(&self, window: u8, offset: u32) -> u32 {
        self.heci(window).read(offset % heci::WINDOW_BYTES)
    }

    #[allow(clippy::indexing_slicing, reason = "the window is 0 or 1")]
    pub(super) fn write_heci(&self, window: u8, offset: u32, value: u32) {
        let effect = self.heci(window).write(offset % heci::WINDOW_BYTES, value);
        if effect.interrupt {
            self.interrupts.raise_gsc(HECI_INTERRUPTS[usize::from(window & 1)]);
        }
    }
}
