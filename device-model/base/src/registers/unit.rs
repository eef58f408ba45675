// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Behaviour of the registers of a unit.

use super::Family;
use super::file::Decoded;
use crate::host::Function;

/// An access to a register with side effects or a computed value.
#[derive(Clone, Copy, Debug)]
pub struct Access<'d, F: Family> {
    /// The function that has the register.
    pub function: Function,
    /// Offset in the register space.
    pub offset: u32,
    /// The register.
    pub decoded: &'d Decoded<F>,
}

impl<F: Family> Access<'_, F> {
    /// Index of the array element.
    #[inline]
    pub fn ordinal(&self) -> u16 {
        self.decoded.ordinal
    }
}

/// The registers of a unit, implemented by the enum of these registers for the state `S` on which the unit acts.
pub trait Unit<F: Family, S> {
    /// What a write requests of the level above, which owns more than `S`.
    type Effect;

    /// Reads the register. Called by any thread; must not block.
    fn read(&self, state: &S, access: Access<'_, F>) -> u32;

    /// Writes `value` to the register. Called by any thread; must not block.
    fn write(&self, state: &S, access: Access<'_, F>, value: u32) -> Option<Self::Effect>;
}
