// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of configuration space as types: a field for each bit field of the specification, at its position. The
//! rows of a capability take their write masks from the same types.

use crate::config::{ConfigSpace, Field};

/// A register of 16 or 32 bits in the type 0 header or in a capability.
pub trait Register: Copy {
    /// Offset from the start of the header or capability.
    const AT: u16;
    /// Width in bytes: 2 or 4.
    const BYTES: usize;

    /// The register with this value, of which only the bits of its width are used.
    fn from_value(value: u32) -> Self;

    /// The register's value.
    fn value(self) -> u32;
}

/// Implements [`Register`] for types of `bitfield_struct` with their offsets.
macro_rules! registers {
    ($($name:ident: $bits:ident at $at:expr;)*) => {
        $(impl $crate::register::Register for $name {
            const AT: u16 = $at;
            const BYTES: usize = size_of::<$bits>();

            #[allow(clippy::cast_possible_truncation, reason = "only the bits of the register's width are used")]
            fn from_value(value: u32) -> Self {
                Self::from_bits(value as $bits)
            }

            fn value(self) -> u32 {
                u32::from(self.into_bits())
            }
        })*
    };
}
pub(crate) use registers;

impl Field {
    /// A read-only register with this value.
    pub fn register<R: Register>(value: R) -> Self {
        match R::BYTES {
            2 => Field::word(R::AT, (value.value() & 0xffff) as u16),
            _ => Field::dword(R::AT, value.value()),
        }
    }
}

impl ConfigSpace {
    /// The register of the header (`start` 0) or of the capability at `start`; 0 outside the space.
    pub fn register<R: Register>(&self, start: u16) -> R {
        R::from_value(self.dword(start.saturating_add(R::AT)))
    }

    /// Sets the bits of `mask` in the register to those of `value`, bypassing the write masks.
    pub fn set_register<R: Register>(&mut self, start: u16, mask: R, value: R) {
        self.set(start.saturating_add(R::AT), mask.value(), value.value());
    }
}
