// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command tables of a family: rows, with lengths, fields and rules, and the interface to the disassembler; the origin of
//! a command.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod description;
pub mod field;
pub mod origin;
pub mod row;
pub mod rule;
#[cfg(test)]
pub(crate) mod toy;

pub use description::{Decode, Description, Next, Remarks, Target};
pub use field::{Addressing, AddressingBits, Field, FieldKind, Group};
pub use origin::Origin;
pub use rule::{Requester, Rule, Rules};

/// Encoding of a command's length in its header (V8-096): the length in dwords is the masked header plus a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    mask: u32,
    bias: u32,
}

impl Length {
    /// Always one dword; the header has no length field.
    pub const SINGLE: Length = Length { mask: 0, bias: 1 };

    /// A length field with this mask, which contains the length minus two.
    #[inline]
    pub const fn field(mask: u32) -> Length {
        Length { mask, bias: 2 }
    }

    /// Mask of the length field; 0 if there is none.
    #[inline]
    pub const fn mask(self) -> u32 {
        self.mask
    }

    /// Length in dwords of a command with this header.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "a length field has at most 16 bits")]
    pub const fn dwords(self, header: u32) -> u32 {
        (header & self.mask) + self.bias
    }
}
