// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The value of one register, of which several threads may write different bits concurrently.

use super::Kind;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A register value with atomic read-modify-write operations: concurrent writes of different bits are not lost.
pub struct Cell(AtomicU32);

impl Cell {
    /// Creates a cell with `value`.
    pub fn new(value: u32) -> Self {
        Cell(AtomicU32::new(value))
    }

    /// Returns the value.
    #[inline]
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the whole value.
    #[inline]
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }

    /// Sets bits; returns the previous value.
    #[inline]
    pub fn set_bits(&self, bits: u32) -> u32 {
        self.0.fetch_or(bits, Ordering::AcqRel)
    }

    /// Clears bits; returns the previous value.
    #[inline]
    pub fn clear_bits(&self, bits: u32) -> u32 {
        self.0.fetch_and(!bits, Ordering::AcqRel)
    }

    /// Atomically replaces the value with the result of `new`; returns the old and the new value.
    pub fn update(&self, new: impl Fn(u32) -> u32) -> (u32, u32) {
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(new(old)));
        let before = before.unwrap_or_else(|old| old);
        (before, new(before))
    }

    /// Applies a write to a register of `kind`; a write to a [`Kind::Live`] register has no effect here, because the
    /// owning unit handles it.
    #[inline]
    pub fn write<L>(&self, kind: Kind<L>, value: u32) {
        match kind {
            Kind::Storage(u32::MAX) => self.set(value),
            Kind::Storage(mask) => drop(self.update(|old| old & !mask | value & mask)),
            Kind::Masked => drop(self.update(|old| masked(old, value))),
            Kind::Write1Clear(mask) => drop(self.clear_bits(value & mask)),
            Kind::ReadOnly | Kind::Live(_) => {}
        }
    }
}

/// Value of a masked register after a write of `value`: bits 31:16 select which of bits 15:0 change.
#[inline]
pub fn masked(old: u32, value: u32) -> u32 {
    let select = value >> 16;
    old & !select & 0xffff | value & select
}

/// The value whose write sets all bits of a masked register to those of `value`.
#[inline]
pub const fn all_selected(value: u32) -> u32 {
    value | 0xffff_0000
}
