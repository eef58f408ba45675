// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a row of the table of encodings is, and the field layouts that rows share.

use super::{Generations, Op};

/// The place of an operand in [`super::Instruction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// `(rep)`
    Rep,
    /// `(xmovN)` or `(sdsN)`
    Extra,
    /// `(peek)`
    Peek,
    /// `!`
    Preincrement,
    /// Destination register.
    Dst,
    /// First source register, or base register, or shift of an immediate move.
    Src1,
    /// Second source register, or bit number, or 5-bit immediate.
    Src2,
    /// Immediate, offset or target.
    Imm,
}

/// A field of an encoding.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in the reference.
    pub name: &'static str,
    /// Highest bit.
    pub high: u8,
    /// Lowest bit.
    pub low: u8,
    /// The operand that the field holds.
    pub slot: Slot,
}

impl Field {
    /// The largest value of the field.
    pub const fn max(&self) -> u32 {
        u32::MAX >> (31 - (self.high - self.low))
    }

    /// The bits of the field in a word.
    pub const fn mask(&self) -> u32 {
        self.max() << self.low
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Encoding {
    /// The operation.
    pub op: Op,
    /// Mnemonic.
    pub mnemonic: &'static str,
    /// Generations that have the encoding.
    pub generations: Generations,
    /// Values of the fixed bits.
    pub matching: u32,
    /// The fixed bits.
    pub mask: u32,
    /// Bits any value of which decodes to the same instruction.
    pub ignored: u32,
    /// Operand fields.
    pub fields: &'static [Field],
    /// What the instruction does.
    pub doc: &'static str,
    /// Items of the source document, for instance `AF-018`.
    pub items: &'static str,
}

impl Encoding {
    /// The field for an operand.
    pub fn field(&self, slot: Slot) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.slot == slot)
    }
}

/// The field layouts that rows share.
pub(super) mod layout {
    use super::{Field, Slot};

    const fn field(name: &'static str, high: u8, low: u8, slot: Slot) -> Field {
        Field { name, high, low, slot }
    }
    const REP_BIT: Field = field("REP", 26, 26, Slot::Rep);
    const HIGH_SRC: Field = field("SRC1", 25, 21, Slot::Src1);
    const LOW_DST: Field = field("DST", 20, 16, Slot::Dst);
    const PRE: Field = field("PREINCREMENT", 14, 14, Slot::Preincrement);
    const BASE: Field = field("BASE_REG", 25, 21, Slot::Src1);
    const VALUE: Field = field("SRC", 20, 16, Slot::Src2);
    const OFFSET: Field = field("IMM", 11, 0, Slot::Imm);
    const TARGET: Field = field("TARGET_REL", 15, 0, Slot::Imm);
    const XMOV: Field = field("XMOV", 10, 9, Slot::Extra);
    const MIDDLE_DST: Field = field("DST", 15, 11, Slot::Dst);

    pub const ALU: &[Field] =
        &[REP_BIT, HIGH_SRC, field("SRC2", 20, 16, Slot::Src2), MIDDLE_DST, XMOV, field("PEEK", 8, 8, Slot::Peek)];
    // The source is in the bits of the second source of the other forms (AFC-015).
    pub const ALU_ONE: &[Field] = &[REP_BIT, field("SRC1", 20, 16, Slot::Src2), MIDDLE_DST, XMOV];
    pub const IMM16: &[Field] = &[REP_BIT, HIGH_SRC, LOW_DST, field("IMM", 15, 0, Slot::Imm)];
    pub const IMM12: &[Field] = &[REP_BIT, HIGH_SRC, LOW_DST, OFFSET];
    pub const IMM_ONE: &[Field] = &[REP_BIT, LOW_DST, field("IMM", 15, 0, Slot::Imm)];
    pub const BIT: &[Field] = &[REP_BIT, field("SRC", 25, 21, Slot::Src1), LOW_DST, field("BIT", 5, 1, Slot::Src2)];
    pub const BITS: &[Field] = &[
        REP_BIT,
        field("SRC", 25, 21, Slot::Src1),
        LOW_DST,
        field("HI", 9, 5, Slot::Src2),
        field("LO", 4, 0, Slot::Imm),
    ];
    pub const MOV_IMM: &[Field] =
        &[REP_BIT, field("SHIFT", 25, 21, Slot::Src1), LOW_DST, field("IMM", 15, 0, Slot::Imm)];
    pub const WRITE: &[Field] = &[REP_BIT, BASE, VALUE, PRE, OFFSET];
    pub const WRITE_SDS: &[Field] = &[REP_BIT, BASE, VALUE, PRE, field("SDS", 13, 12, Slot::Extra), OFFSET];
    pub const READ: &[Field] = &[REP_BIT, BASE, LOW_DST, PRE, OFFSET];
    pub const BRANCH_IMM: &[Field] = &[field("SRC", 25, 21, Slot::Src1), field("IMM", 20, 16, Slot::Src2), TARGET];
    pub const BRANCH_BIT: &[Field] = &[field("SRC", 25, 21, Slot::Src1), field("BIT", 20, 16, Slot::Src2), TARGET];
    pub const ABSOLUTE: &[Field] = &[field("TARGET_ABS", 25, 0, Slot::Imm)];
    pub const REP: &[Field] = &[REP_BIT];
    pub const JUMP_REG: &[Field] = &[field("SRC1", 4, 0, Slot::Src1)];
    pub const NONE: &[Field] = &[];
}
