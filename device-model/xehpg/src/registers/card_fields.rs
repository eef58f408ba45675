// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the card with bit fields.

/// A register of the card with bit fields. Those of engines are `EngineFields`.
pub trait CardFields: From<u32> + Into<u32> {
    /// Offset in GTTMMADR.
    const OFFSET: u32;
}

/// Implements [`CardFields`] for types of `bitfield_struct` with their offsets.
macro_rules! card_fields {
    ($($name:ident $offset:expr;)*) => {
        $(impl $crate::registers::CardFields for $name {
            const OFFSET: u32 = $offset;
        })*
    };
}
pub(super) use card_fields;
