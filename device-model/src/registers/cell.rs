//! The value of one register: several processors and engines write it at once, each its own bits.

use super::Kind;
use crate::sync::atomic::{AtomicU32, Ordering};

/// A value that changes in one piece: what one agent writes does not undo what another has written.
pub struct Cell(AtomicU32);

impl Cell {
    /// Holds `value`.
    pub fn new(value: u32) -> Self {
        Cell(AtomicU32::new(value))
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the whole of it.
    #[inline]
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }

    /// Sets bits, and tells what was there.
    pub fn set_bits(&self, bits: u32) -> u32 {
        self.0.fetch_or(bits, Ordering::AcqRel)
    }

    /// Clears bits, and tells what was there.
    pub fn clear_bits(&self, bits: u32) -> u32 {
        self.0.fetch_and(!bits, Ordering::AcqRel)
    }

    /// Replaces the value by what `new` makes of it; tells the value before and after.
    pub fn update(&self, new: impl Fn(u32) -> u32) -> (u32, u32) {
        let before = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(new(old)));
        let before = before.unwrap_or_else(|old| old);
        (before, new(before))
    }

    /// Applies a write to a register of `kind`, if that is one without behaviour of its own.
    #[inline]
    pub fn write(&self, kind: Kind, value: u32) {
        match kind {
            Kind::Storage(u32::MAX) => self.set(value),
            Kind::Storage(mask) => drop(self.update(|old| old & !mask | value & mask)),
            Kind::Masked => drop(self.update(|old| masked(old, value))),
            Kind::Write1Clear(mask) => drop(self.clear_bits(value & mask)),
            Kind::ReadOnly | Kind::Live(_) => {}
        }
    }
}

/// A masked register after a write of `value`: bits 31:16 select which of bits 15:0 change (contract, notation).
pub fn masked(old: u32, value: u32) -> u32 {
    let select = value >> 16;
    old & !select & 0xffff | value & select
}
