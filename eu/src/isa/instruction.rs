// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A decoded instruction.

use super::table::Row;
use super::types::Type;

/// Where the elements of an operand begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// General register and byte in it.
    Grf {
        /// Number of the register.
        reg: u8,
        /// Byte in the register.
        byte: u8,
    },
    /// Architecture register: number field (ISA-080) and byte in it.
    Arf {
        /// Number field.
        reg: u8,
        /// Byte in the register.
        byte: u8,
    },
    /// Register-indirect: word `a0.sub` plus an offset in bytes. ISA-054.
    Indirect {
        /// Number of the word in a0.
        sub: u8,
        /// Offset in bytes.
        offset: i16,
    },
}

impl Place {
    /// The null register.
    pub const NULL: Place = Place::Arf { reg: 0, byte: 0 };

    /// True for the null register.
    pub fn is_null(self) -> bool {
        matches!(self, Place::Arf { reg: 0, .. })
    }
}

/// Region of a source, in elements. ISA-050.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Distance between rows; `None` if each row has an address register of its own (ISA-055).
    pub vstride: Option<u8>,
    /// Elements in a row.
    pub width: u8,
    /// Distance between the elements of a row.
    pub hstride: u8,
}

impl Region {
    /// `<0;1,0>`.
    pub const SCALAR: Region = Region { vstride: Some(0), width: 1, hstride: 0 };
    /// `<1;1,0>`.
    pub const PACKED: Region = Region { vstride: Some(1), width: 1, hstride: 0 };
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Elements of registers.
    Reg {
        /// First element.
        place: Place,
        /// Layout of the elements.
        region: Region,
        /// Type.
        ty: Type,
        /// Absolute value, before the negation. ISA-058.
        abs: bool,
        /// Negation; bitwise NOT in logic operations.
        negate: bool,
    },
    /// An immediate.
    Imm {
        /// Type.
        ty: Type,
        /// Bits, not extended.
        value: u64,
    },
}

impl Source {
    /// The null register as a scalar.
    pub const NULL: Source =
        Source::Reg { place: Place::NULL, region: Region::SCALAR, ty: Type::Ud, abs: false, negate: false };

    /// Type of the operand.
    pub fn ty(&self) -> Type {
        match self {
            Source::Reg { ty, .. } | Source::Imm { ty, .. } => *ty,
        }
    }
}

/// A destination operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// First element.
    pub place: Place,
    /// Distance between elements, 1, 2 or 4; 0 where a format has none.
    pub stride: u8,
    /// Type.
    pub ty: Type,
}

impl Destination {
    /// The null register.
    pub const NULL: Destination = Destination { place: Place::NULL, stride: 0, ty: Type::Ub };
}

/// A descriptor of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// In the instruction.
    Imm(u32),
    /// In the dword of a0 with this number.
    Reg(u8),
}

/// Fields of send and sendc. ISA-019.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Descriptor.
    pub desc: Descriptor,
    /// Extended descriptor.
    pub ex_desc: Descriptor,
    /// The extended descriptor is a surface offset; the length of source 1 is in the instruction. ISA-020.
    pub exbso: bool,
    /// Length of source 1 in registers, in the instruction.
    pub src1_length: u8,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// Row of the table.
    pub row: &'static Row,
    /// Encoded in 64 bits.
    pub compacted: bool,
    /// Software scoreboard. ISA-101.
    pub swsb: u8,
    /// Number of lanes: 1, 2, 4, 8, 16 or 32.
    pub size: u8,
    /// First channel, a multiple of 4. ISA-060.
    pub channel: u8,
    /// Flag register times 2 plus the number of its word. ISA-062.
    pub flag: u8,
    /// Predicate control. ISA-063.
    pub predicate: u8,
    /// The predicate is inverted.
    pub invert: bool,
    /// Lanes are enabled regardless of the execution mask.
    pub no_mask: bool,
    /// Breakpoint.
    pub breakpoint: bool,
    /// `{Atomic}`.
    pub atomic: bool,
    /// `{AccWrEn}`; `.b` on branches; `{Serialize}` on messages.
    pub acc_write: bool,
    /// Saturate; end of thread on messages.
    pub saturate: bool,
    /// Bits 95:92: condition modifier, function or SFID.
    pub modifier: u8,
    /// Destination; null if the format has none.
    pub dst: Destination,
    /// Sources; null if the format has fewer.
    pub src: [Source; 3],
    /// Targets in bytes relative to the instruction.
    pub jip: i32,
    /// See `jip`.
    pub uip: i32,
    /// The target is in source 0.
    pub register_target: bool,
    /// Truth table of bfn.
    pub function: u8,
    /// Systolic depth of dpas.
    pub depth: u8,
    /// Repeat count of dpas.
    pub repeat: u8,
    /// Fields of messages.
    pub send: Send,
}

impl Instruction {
    /// An instruction without operands.
    pub fn new(row: &'static Row) -> Instruction {
        Instruction {
            row,
            compacted: false,
            swsb: 0,
            size: 1,
            channel: 0,
            flag: 0,
            predicate: 0,
            invert: false,
            no_mask: false,
            breakpoint: false,
            atomic: false,
            acc_write: false,
            saturate: false,
            modifier: 0,
            dst: Destination::NULL,
            src: [Source::NULL; 3],
            jip: 0,
            uip: 0,
            register_target: false,
            function: 0,
            depth: 0,
            repeat: 0,
            send: Send { desc: Descriptor::Imm(0), ex_desc: Descriptor::Imm(0), exbso: false, src1_length: 0 },
        }
    }

    /// Length in bytes.
    pub fn length(&self) -> u32 {
        if self.compacted { 8 } else { 16 }
    }

    /// Number of source operands.
    pub fn sources(&self) -> usize {
        use super::table::Format::{Jmpi, Math};
        match self.row.format {
            // fdiv, pow, idiv, iqot, irem
            Math if (9..=13).contains(&self.modifier) => 2,
            Jmpi if self.register_target => 1,
            _ => self.row.sources(),
        }
    }
}
