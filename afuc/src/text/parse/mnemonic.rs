// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Mnemonics and the form of their operands.

use crate::isa::Op;

/// The operands of a mnemonic.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// dst, src1, src2 or immediate
    Two(Op, Op),
    /// dst, src or immediate
    Not,
    Msb,
    Mov,
    Setbit,
    Clrbit,
    /// dst, src, low bit, high bit
    Bits(Op),
    /// dst, [base + offset]
    Read(Op),
    /// src, [base + offset]
    Write(Op),
    /// src, immediate or bit, target
    Branch(Op, Op),
    /// absolute target
    Absolute(Op),
    Jump,
    Setsecure,
    Plain(Op),
}

impl Form {
    /// The form in words, for errors.
    pub fn usage(self, mnemonic: &str) -> String {
        let operands = match self {
            Self::Two(..) => " $DST, $SRC, $SRC or a number",
            Self::Not => " $DST, $SRC or a number",
            Self::Msb => " $DST, $SRC",
            Self::Mov => " $DST, $SRC, or a number or #LABEL and `<< SHIFT`",
            Self::Setbit => " $DST, $SRC, bN or $SRC",
            Self::Clrbit => " $DST, $SRC, bN",
            Self::Bits(_) => " $DST, $SRC, bLOW, bHIGH",
            Self::Read(_) => " $DST, [$BASE + OFFSET]",
            Self::Write(_) => " $SRC, [$BASE + OFFSET]",
            Self::Branch(..) => " $SRC, a number or bN, #LABEL",
            Self::Absolute(_) => " #LABEL",
            Self::Jump => " #LABEL or $SRC",
            Self::Setsecure => " $02, #LABEL",
            Self::Plain(_) => "",
        };
        format!("the form is: {mnemonic}{operands}")
    }
}

pub(super) fn form(mnemonic: &str) -> Option<Form> {
    Some(match mnemonic {
        "add" => Form::Two(Op::Add, Op::AddImm),
        "addhi" => Form::Two(Op::Addhi, Op::AddhiImm),
        "sub" => Form::Two(Op::Sub, Op::SubImm),
        "subhi" => Form::Two(Op::Subhi, Op::SubhiImm),
        "and" => Form::Two(Op::And, Op::AndImm),
        "or" => Form::Two(Op::Or, Op::OrImm),
        "xor" => Form::Two(Op::Xor, Op::XorImm),
        "shl" => Form::Two(Op::Shl, Op::ShlImm),
        "ushr" => Form::Two(Op::Ushr, Op::UshrImm),
        "ishr" => Form::Two(Op::Ishr, Op::IshrImm),
        "rot" => Form::Two(Op::Rot, Op::RotImm),
        "mul8" => Form::Two(Op::Mul8, Op::Mul8Imm),
        "min" => Form::Two(Op::Min, Op::MinImm),
        "max" => Form::Two(Op::Max, Op::MaxImm),
        "cmp" => Form::Two(Op::Cmp, Op::CmpImm),
        "bic" => Form::Two(Op::Bic, Op::BicImm),
        "not" => Form::Not,
        "msb" => Form::Msb,
        "mov" => Form::Mov,
        "setbit" => Form::Setbit,
        "clrbit" => Form::Clrbit,
        "ubfx" => Form::Bits(Op::Ubfx),
        "bfi" => Form::Bits(Op::Bfi),
        "load" => Form::Read(Op::Load),
        "cread" => Form::Read(Op::Cread),
        "sread" => Form::Read(Op::Sread),
        "store" => Form::Write(Op::Store),
        "cwrite" => Form::Write(Op::Cwrite),
        "swrite" => Form::Write(Op::Swrite),
        "brne" => Form::Branch(Op::BrneImm, Op::BrneBit),
        "breq" => Form::Branch(Op::BreqImm, Op::BreqBit),
        "call" => Form::Absolute(Op::Call),
        "bl" => Form::Absolute(Op::Bl),
        "jumpa" => Form::Absolute(Op::Jumpa),
        "jump" => Form::Jump,
        "setsecure" => Form::Setsecure,
        "ret" => Form::Plain(Op::Ret),
        "iret" => Form::Plain(Op::Iret),
        "sret" => Form::Plain(Op::Sret),
        "waitin" => Form::Plain(Op::Waitin),
        "nop" => Form::Plain(Op::Nop),
        _ => return None,
    })
}
