// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers as data: rows of tables, from which a [`RegisterFile`] derives decoding, reset and access rules, and the
//! dispatch of registers with behaviour to their unit.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bits;
mod cell;
mod description;
mod dwords;
mod file;
mod function;
mod layout;
mod row;
#[cfg(test)]
mod tests;
mod touches;
mod unit;

pub use bits::Bits;
pub use cell::{Cell, all_selected, masked};
pub use description::{
    AtOffset, Behaviour, CommandAccess, Permission, RegisterDescription, RegisterGap, RegisterMap, VfViews,
};
pub use dwords::{read_dwords, write_dwords};
pub use file::{Decoded, RegisterFile, Table};
pub use function::FunctionRegisters;
pub use layout::{Layout, Layouts, inspect_registers, layout_of};
pub use row::{Copies, Family, Kind, Register, Replicated, name_at};
pub use touches::{Touched, Touches};
pub use unit::{Access, Unit};
