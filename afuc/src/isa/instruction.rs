// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations, registers and decoded instructions.

/// A generation of the microcode instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[repr(u8)]
pub enum Generation {
    /// a5xx: two processors, PFP and ME.
    A5 = 5,
    /// a6xx: SQE.
    A6 = 6,
    /// a7xx: BR, BV and LPAC.
    A7 = 7,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Self; 3] = [Self::A5, Self::A6, Self::A7];

    /// The generation with this number.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            5 => Some(Self::A5),
            6 => Some(Self::A6),
            7 => Some(Self::A7),
            _ => None,
        }
    }

    /// 5, 6 or 7.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The word of a NOP that carries the low 24 bits of `data` (AF-050).
    pub const fn nop_literal(self, data: u32) -> u32 {
        let class = if matches!(self, Self::A5) { 0 } else { 0x0100_0000 };
        class | data & 0x00ff_ffff
    }

    /// The word of a NOP that carries `data`; `None` if it has more than 24 bits.
    pub fn nop_with(self, data: u32) -> Option<u32> {
        (data >> 24 == 0).then(|| self.nop_literal(data))
    }
}

/// A set of generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generations(u8);

impl Generations {
    /// None.
    pub const NONE: Self = Self(0);
    /// a5xx to a7xx.
    pub const ALL: Self = Self(0b111);
    /// a5xx and a6xx.
    pub const A5_A6: Self = Self(0b011);
    /// a6xx and a7xx.
    pub const A6_A7: Self = Self(0b110);
    /// a5xx.
    pub const A5: Self = Self(0b001);
    /// a6xx.
    pub const A6: Self = Self(0b010);
    /// a7xx.
    pub const A7: Self = Self(0b100);

    /// True if the set has the generation.
    pub const fn has(self, generation: Generation) -> bool {
        self.0 >> (generation as u8 - 5) & 1 != 0
    }

    /// The members of the set.
    pub fn iter(self) -> impl Iterator<Item = Generation> {
        Generation::ALL.into_iter().filter(move |generation| self.has(*generation))
    }
}

/// An operation. Names with `Imm` have an immediate as last operand, with `Bit` a bit number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table of encodings describes each operation")]
pub enum Op {
    Add,
    AddImm,
    Addhi,
    AddhiImm,
    Sub,
    SubImm,
    Subhi,
    SubhiImm,
    And,
    AndImm,
    Or,
    OrImm,
    Xor,
    XorImm,
    Not,
    NotImm,
    Shl,
    ShlImm,
    Ushr,
    UshrImm,
    Ishr,
    IshrImm,
    Rot,
    RotImm,
    Mul8,
    Mul8Imm,
    Min,
    MinImm,
    Max,
    MaxImm,
    Cmp,
    CmpImm,
    Bic,
    BicImm,
    Msb,
    SetbitImm,
    Clrbit,
    Setbit,
    Ubfx,
    Bfi,
    MovImm,
    Store,
    Cwrite,
    Swrite,
    Load,
    Cread,
    Sread,
    BrneImm,
    BreqImm,
    BrneBit,
    BreqBit,
    Ret,
    Iret,
    Call,
    Jumpa,
    Waitin,
    Bl,
    Setsecure,
    Nop,
    JumpReg,
    Sret,
}

/// Number of operations.
pub const OPS: usize = Op::Sret as usize + 1;

/// Registers with a special function (AF-012..014).
pub mod register {
    /// Reads as 0; writes are discarded.
    pub const ZERO: u8 = 0x00;
    /// The current packet's header.
    pub const HEADER: u8 = 0x01;
    /// `$sp`, a convention of a7xx.
    pub const SP: u8 = 0x1a;
    /// `$lr`, written by `bl`.
    pub const LR: u8 = 0x1b;
    /// `$rem`: words left in the packet.
    pub const REM: u8 = 0x1c;
    /// Source `$memdata`, destination `$addr`.
    pub const MEMDATA_ADDR: u8 = 0x1d;
    /// Source `$regdata`, destination `$usraddr`.
    pub const REGDATA_USRADDR: u8 = 0x1e;
    /// `$data`: next packet word, or a write to the current address.
    pub const DATA: u8 = 0x1f;

    /// Names of all registers as sources.
    pub const SOURCES: [&str; 32] = [
        "$00", "$01", "$02", "$03", "$04", "$05", "$06", "$07", "$08", "$09", "$0a", "$0b", "$0c", "$0d", "$0e", "$0f",
        "$10", "$11", "$12", "$13", "$14", "$15", "$16", "$17", "$18", "$19", "$sp", "$lr", "$rem", "$memdata",
        "$regdata", "$data",
    ];

    /// The name of a register as a source.
    pub fn source(number: u8) -> &'static str {
        SOURCES[usize::from(number & 31)]
    }

    /// The name of a register as a destination.
    pub fn destination(number: u8) -> &'static str {
        match number & 31 {
            MEMDATA_ADDR => "$addr",
            REGDATA_USRADDR => "$usraddr",
            other => SOURCES[usize::from(other)],
        }
    }
}

/// The value of `$addr` or `$usraddr`: the target of writes to `$data` (AFC-023).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAddress {
    /// Number of a pipe register, bits 31:24. If it is 0, the target is a GPU register.
    pub pipe: u8,
    /// Bit 18: writes do not increment the number.
    pub keep: bool,
    /// The other bits. Bits 15:0 are the number of a GPU register.
    pub low: u32,
}

impl DataAddress {
    /// Takes a value apart.
    pub fn from_word(word: u32) -> Self {
        const KEEP: u32 = 1 << 18;
        let pipe = (word >> 24).to_le_bytes()[0];
        Self { pipe, keep: word & KEEP != 0, low: word & 0x00ff_ffff & !KEEP }
    }
}

/// A decoded instruction. The table of encodings says which operands an operation has; the others are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The operation.
    pub op: Op,
    /// Destination register.
    pub dst: u8,
    /// First source register, base register, or shift of an immediate move.
    pub src1: u8,
    /// Second source register, value of a write, bit number, or 5-bit immediate.
    pub src2: u8,
    /// Immediate, offset or target. A relative target is an unsigned field here: see [`Instruction::offset`].
    pub imm: u32,
    /// `(rep)`
    pub rep: bool,
    /// `(peek)`
    pub peek: bool,
    /// `!`
    pub preincrement: bool,
    /// N of `(xmovN)` or `(sdsN)`.
    pub extra: u8,
}

impl Instruction {
    /// An instruction without operands.
    pub const fn new(op: Op) -> Self {
        Self { op, dst: 0, src1: 0, src2: 0, imm: 0, rep: false, peek: false, preincrement: false, extra: 0 }
    }

    /// The relative target of a branch, in words from the branch.
    pub const fn offset(&self) -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "16-bit field")]
        let offset = self.imm as u16;
        offset.cast_signed() as i32
    }

    /// Numbers of the general registers that the instruction writes as operands or as `$lr`. Not included: `$rem`, which reads
    /// of `$data` decrement. Operands that an instruction does not have are `$00`, to which writes have no effect.
    pub fn written_registers(&self) -> impl Iterator<Item = u8> + use<> {
        let second = match self.op {
            Op::Bl => register::LR,
            _ if self.preincrement => self.src1,
            _ => register::ZERO,
        };
        let is_general = |number: &u8| (register::HEADER..=register::REM).contains(number);
        [self.dst & 31, second & 31].into_iter().filter(is_general)
    }

    /// True for `jump #label`, a branch that is always taken (AF-039).
    pub const fn is_jump(&self) -> bool {
        matches!(self.op, Op::BrneBit) && self.src1 == register::ZERO && self.src2 == 0
    }

    /// True for a transfer that does not return to the instruction after its delay slot: jumps, returns and `waitin`.
    pub const fn is_terminator(&self) -> bool {
        self.is_jump() || matches!(self.op, Op::Ret | Op::Iret | Op::Sret | Op::JumpReg | Op::Jumpa | Op::Waitin)
    }

    /// True for `mov` between registers (AF-030).
    pub const fn is_mov(&self) -> bool {
        matches!(self.op, Op::Or) && self.src1 == register::ZERO
    }
}
