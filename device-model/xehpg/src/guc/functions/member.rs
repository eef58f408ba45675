// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Logical ring contexts of a registered context, and their images (contract F.3).
#![allow(clippy::arithmetic_side_effects, reason = "the page has a 32-bit address")]

use crate::execlist::descriptor::Descriptor;
use crate::memory::{Fault, Gam, Space};

/// Offset of the register page in a context image, after the PPHWSP (contract F.3).
const REGISTER_PAGE: u64 = 0x1000;
/// Offset of RING_HEAD's value in the register page (contract K.1).
const RING_HEAD: u64 = 0x05 * 4;
/// Offset of RING_TAIL's value in the register page.
const RING_TAIL: u64 = 0x07 * 4;
/// Offset in the PPHWSP of the dword with which a compute context requests to switch out (contract G.5).
const SWITCH_OUT_SEMAPHORE: u64 = 0x540;

/// One logical ring context; a parallel context has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Context descriptor: GGTT address of the PPHWSP and flags.
    pub descriptor: u64,
    /// It is loaded on its engine.
    pub loaded: bool,
    /// It is known to have work.
    pub ready: bool,
}

impl Member {
    /// Creates a member that is not loaded and has no known work.
    pub fn new(descriptor: u64) -> Self {
        Member { descriptor, loaded: false, ready: false }
    }

    fn page(&self) -> u64 {
        Descriptor::from(self.descriptor).lrca().into()
    }

    fn registers(&self) -> u64 {
        self.page() + REGISTER_PAGE
    }

    /// Returns whether the ring has unexecuted commands, according to head and tail in the context image.
    pub fn ring_has_work(&self, gam: &mut Gam<'_>) -> Result<bool, Fault> {
        let head = gam.read_u32(Space::Ggtt, self.registers() + RING_HEAD)?;
        let tail = gam.read_u32(Space::Ggtt, self.registers() + RING_TAIL)?;
        Ok(head != tail)
    }

    /// Sets the ring's tail in the context image.
    pub fn set_tail(&self, gam: &mut Gam<'_>, tail: u32) -> Result<(), Fault> {
        gam.write_u32(Space::Ggtt, self.registers() + RING_TAIL, tail)
    }

    /// Allows a compute context to switch out if it has requested to. Returns whether it had.
    pub fn release_switch_out(&self, gam: &mut Gam<'_>) -> Result<bool, Fault> {
        let requested = gam.read_u32(Space::Ggtt, self.page() + SWITCH_OUT_SEMAPHORE)? == 1;
        if requested {
            gam.write_u32(Space::Ggtt, self.page() + SWITCH_OUT_SEMAPHORE, 0)?;
        }
        Ok(requested)
    }
}
