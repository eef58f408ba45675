// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A row of a register table.

use std::fmt::Debug;

/// The types by which a family of GPUs describes its registers.
pub trait Family: Copy + Debug + Send + Sync + 'static {
    /// A register with side effects or a computed value: its unit, and the register of that unit.
    type Live: Copy + Debug + PartialEq + Send + Sync + 'static;
    /// Owner of a register's state.
    type Scope: Copy + Debug + PartialEq + Send + Sync + 'static;
    /// Identity of an engine; the table of the engines is instantiated once for each.
    type Engine: Copy + Debug + Send + Sync + 'static;
    /// Properties of a range of offsets, such as its power domain.
    type Range: Replicated + Debug + Send + Sync + 'static;
}

/// A range of registers of which each instance of a replicated unit has a value of its own.
pub trait Replicated {
    /// Number of the replication among the family's, by which [`RegisterFile::enable`](super::RegisterFile::enable)
    /// states the instances that exist.
    fn replication(&self) -> usize;

    /// Number of instances of a full chip, at most 32; 1 if the unit is not replicated.
    fn instances(&self) -> u16;
}

/// Access behaviour of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<L> {
    /// The bits in the mask are stored; the others do not change.
    Storage(u32),
    /// Constant, or set only by the card; writes are ignored.
    ReadOnly,
    /// Bits 31:16 select which of bits 15:0 are written; bits 31:16 read 0.
    Masked,
    /// Writing 1 clears a bit, within the mask.
    Write1Clear(u32),
    /// Reads or writes have side effects in the unit that owns the register.
    Live(L),
}

impl<L> Kind<L> {
    /// The kind that applies to a write of only the bits in `lanes`, if the other bits of the written value are 0: a
    /// stored register keeps the other bits. In other registers, written zeros have no effect.
    #[inline]
    #[must_use]
    pub fn limited(self, lanes: u32) -> Self {
        match self {
            Kind::Storage(mask) => Kind::Storage(mask & lanes),
            other => other,
        }
    }
}

/// Number of values that a register has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// One. In a replicated range ([`Replicated`]), a register without side effects has one for each instance instead.
    One,
    /// One for each function ([`super::FunctionRegisters`] has those of a VF). A reset of the function resets its
    /// values.
    PerFunction {
        /// Value after reset in a VF.
        vf_reset: u32,
    },
}

/// A register, or an array of registers.
#[derive(Clone, Copy, Debug)]
pub struct Register<F: Family> {
    /// Offset in the register space, or relative to the engine's base in a table of engines.
    pub offset: u32,
    /// Name used in documents and drivers.
    pub name: &'static str,
    /// Access behaviour.
    pub kind: Kind<F::Live>,
    /// Value after reset.
    pub reset: u32,
    /// Number of elements of an array (1 for a single register).
    pub count: u16,
    /// Distance between elements in bytes.
    pub stride: u32,
    /// Defining document, item or driver source.
    pub source: &'static str,
    /// Owner of the state.
    pub scope: F::Scope,
    /// Number of values.
    pub copies: Copies,
}

/// Name of the register at `offset` in `rows`, with the element's number if it is an array. Rows do not overlap.
pub fn name_at<F: Family>(rows: &[Register<F>], offset: u32) -> Option<String> {
    rows.iter().find_map(|row| {
        let distance = offset.checked_sub(row.offset)?;
        let element = distance.checked_div(row.stride)?;
        if !distance.is_multiple_of(row.stride) || element >= row.count.into() {
            return None;
        }
        Some(if row.count > 1 { format!("{}[{element}]", row.name) } else { row.name.into() })
    })
}

impl<F: Family> Register<F> {
    /// The same register with `scope`.
    #[must_use]
    pub const fn of(self, scope: F::Scope) -> Self {
        Register { scope, ..self }
    }

    /// The same register with one value per function and the same reset value in each.
    #[must_use]
    pub const fn per_function(self) -> Self {
        Register { copies: Copies::PerFunction { vf_reset: self.reset }, ..self }
    }

    /// The same register with one value per function, which is `vf_reset` after a reset of a VF.
    #[must_use]
    pub const fn per_function_with(self, vf_reset: u32) -> Self {
        Register { copies: Copies::PerFunction { vf_reset }, ..self }
    }
}
