// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The copies that a VF has of the registers with one value per function.

use super::cell::Cell;
use super::{Family, Kind, RegisterFile};

/// A VF's copy of one register.
struct Copied {
    /// Offset of the register in the function's MMIO space.
    offset: u32,
    /// Value after reset.
    reset: u32,
    value: Cell,
}

/// One VF's values of the registers whose row says [`super::Copies::PerFunction`], by
/// [`super::Decoded::function_copy`]. The PF's values are in the [`RegisterFile`]. All accesses are atomic and take no
/// lock.
pub struct FunctionRegisters(Box<[Copied]>);

impl FunctionRegisters {
    /// The copies of a VF of the card with the registers of `file`, in their reset state.
    pub fn new<F: Family>(file: &RegisterFile<F>) -> Self {
        let copied = |(offset, reset)| Copied { offset, reset, value: Cell::new(reset) };
        FunctionRegisters(file.function_copies().map(copied).collect())
    }

    /// The value of a copy, without side effects.
    #[inline]
    pub fn value(&self, copy: u16) -> u32 {
        self.0.get(usize::from(copy)).map_or(0, |copied| copied.value.value())
    }

    /// Stores a value, without side effects or write mask. Only for the unit that owns the register.
    pub fn set(&self, copy: u16, value: u32) {
        if let Some(copied) = self.0.get(usize::from(copy)) {
            copied.value.set(value);
        }
    }

    /// Applies a guest's write to a register of `kind` without side effects.
    pub fn write<L>(&self, copy: u16, kind: Kind<L>, value: u32) {
        if let Some(copied) = self.0.get(usize::from(copy)) {
            copied.value.write(kind, value);
        }
    }

    /// Sets every copy to its reset value, as on a reset of the function.
    pub fn reset(&self) {
        self.0.iter().for_each(|copied| copied.value.set(copied.reset));
    }

    /// Offset and value of each copy, ascending by offset. Values of several registers are not read atomically with
    /// respect to writes of the function.
    pub fn save(&self) -> Vec<(u32, u32)> {
        self.0.iter().map(|copied| (copied.offset, copied.value.value())).collect()
    }

    /// Returns the copy of the register at exactly `offset`, if there is one.
    pub fn copy_at(&self, offset: u32) -> Option<u16> {
        let found = self.0.binary_search_by_key(&offset, |copied| copied.offset);
        found.ok().and_then(|at| u16::try_from(at).ok())
    }
}
