// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Writes of configuration space that a function reverts.

use crate::config::ConfigSpace;
use crate::register::Register;

/// A register field that keeps its value, because the function rejects the written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevertedWrite {
    /// Name of the register or field in the PCI Express specification.
    pub register: &'static str,
    /// Offset of the register in configuration space.
    pub offset: u16,
    /// The value that was written, at its position in the register.
    pub written: u32,
    /// The value that the field keeps, at the same position.
    pub kept: u32,
}

/// The power state, and the fields that [`revert_forbidden`](crate::sriov_capability::Sriov::revert_forbidden) checks.
const MAX_REVERTED: usize = 5;

/// The reverted writes of one access.
#[derive(Clone, Copy, Debug, Default)]
pub struct RevertedWrites([Option<RevertedWrite>; MAX_REVERTED]);

impl RevertedWrites {
    /// The reverted writes, in the order of the checks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RevertedWrite> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Sets the bits of `mask` in the 32 bits at `offset` to `value`, as before the write. If the write has changed them,
    /// adds it to the list.
    pub(crate) fn revert(
        &mut self,
        config: &mut ConfigSpace,
        register: &'static str,
        (offset, mask): (u16, u32),
        value: u32,
    ) {
        let (written, kept) = (config.dword(offset) & mask, value & mask);
        if written != kept {
            config.set(offset, mask, value);
            if let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(RevertedWrite { register, offset, written, kept });
            }
        }
    }

    /// Like [`RevertedWrites::revert`] for the bits of `mask` in the register `R` of the capability at `start`.
    pub(crate) fn revert_register<R: Register>(
        &mut self,
        config: &mut ConfigSpace,
        register: &'static str,
        start: u16,
        mask: R,
        value: R,
    ) {
        self.revert(config, register, (start.saturating_add(R::AT), mask.value()), value.value());
    }
}
