// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The text of one instruction, in the form of Mesa's disassembler.

use std::fmt::Write;

use crate::isa::{Instruction, Op, encoding, register};
use crate::names::{ControlSet, Space, register_name};

use super::limits::SETSECURE_WORDS;

/// How the target of a branch or call is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The number in the instruction: `#+4` from the instruction, or `#=0x3000` from the start of the section.
    Number,
    /// The number in Mesa's form, `#4`.
    MesaNumber,
    /// The label `lN`.
    Label(u32),
    /// The label `fxnN`.
    Function(u32),
}

/// Returns the text of an instruction, without labels.
pub fn instruction_text(instruction: &Instruction, set: ControlSet) -> String {
    let mut out = String::new();
    write_instruction(&mut out, instruction, set, Target::Number);
    out
}

/// Appends the text of an instruction.
pub fn write_instruction(out: &mut String, instruction: &Instruction, set: ControlSet, target: Target) {
    // Writing to a string does not fail.
    let _ = write(out, instruction, set, target);
}

fn write(out: &mut String, i: &Instruction, set: ControlSet, target: Target) -> std::fmt::Result {
    if i.rep {
        out.push_str("(rep)");
    }
    let dst = register::destination(i.dst);
    let (src1, src2) = (register::source(i.src1), register::source(i.src2));
    let mnemonic = encoding(i.op, set.generation()).map_or("?", |row| row.mnemonic);
    match i.op {
        Op::Add
        | Op::Addhi
        | Op::Sub
        | Op::Subhi
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Ushr
        | Op::Ishr
        | Op::Rot
        | Op::Mul8
        | Op::Min
        | Op::Max
        | Op::Cmp
        | Op::Bic
        | Op::Setbit => {
            write_alu_modifiers(out, i)?;
            if i.is_mov() {
                write!(out, "mov {dst}, {src2}")
            } else {
                write_operands(out, mnemonic, dst, &[", ", src1, ", ", src2]);
                Ok(())
            }
        }
        Op::Not | Op::Msb => {
            write_alu_modifiers(out, i)?;
            write!(out, "{mnemonic} {dst}, {src2}")
        }
        Op::NotImm => write!(out, "not {dst}, {:#x}", i.imm),
        Op::SetbitImm | Op::Clrbit => write!(out, "{mnemonic} {dst}, {src1}, b{}", i.src2),
        Op::Ubfx | Op::Bfi => write!(out, "{mnemonic} {dst}, {src1}, b{}, b{}", i.imm, i.src2),
        Op::MovImm => {
            write_operands(out, "mov", dst, &[", "]);
            write_hex(out, i.imm)?;
            if i.src1 != 0 { write!(out, " << {}", i.src1) } else { Ok(()) }
        }
        Op::Store | Op::Cwrite | Op::Swrite => {
            if i.extra != 0 {
                write!(out, "(sds{})", i.extra)?;
            }
            write_operands(out, mnemonic, src2, &[", "]);
            write_address(out, i, set)
        }
        Op::Load | Op::Cread | Op::Sread => {
            write_operands(out, mnemonic, dst, &[", "]);
            write_address(out, i, set)
        }
        Op::BrneImm | Op::BreqImm => {
            write!(out, "{mnemonic} {src1}, {:#x}, ", i.src2)?;
            write_target(out, i, target)
        }
        Op::BrneBit if i.is_jump() => {
            out.push_str("jump ");
            write_target(out, i, target)
        }
        Op::BrneBit | Op::BreqBit => {
            write!(out, "{mnemonic} {src1}, b{}, ", i.src2)?;
            write_target(out, i, target)
        }
        Op::Call | Op::Jumpa | Op::Bl => {
            out.push_str(mnemonic);
            out.push(' ');
            write_target(out, i, target)
        }
        Op::Setsecure => {
            out.push_str("setsecure $02, ");
            match target {
                Target::Number => write!(out, "#{SETSECURE_WORDS:+}")?,
                Target::MesaNumber => write!(out, "#{SETSECURE_WORDS}")?,
                Target::Label(word) | Target::Function(word) => write!(out, "#l{word}")?,
            }
            Ok(())
        }
        Op::JumpReg => write!(out, "jump {src1}"),
        Op::Ret | Op::Iret | Op::Waitin | Op::Nop | Op::Sret => {
            out.push_str(mnemonic);
            Ok(())
        }
        // The ALU operations with an immediate: `Op::is_alu_immediate`.
        _ => {
            write_operands(out, mnemonic, dst, &[", ", src1, ", "]);
            write_hex(out, i.imm)
        }
    }
}

fn write_alu_modifiers(out: &mut String, i: &Instruction) -> std::fmt::Result {
    if i.extra != 0 {
        write!(out, "(xmov{})", i.extra)?;
    }
    if i.peek {
        out.push_str("(peek)");
    }
    Ok(())
}

fn write_operands(out: &mut String, mnemonic: &str, first: &str, rest: &[&str]) {
    out.push_str(mnemonic);
    out.push(' ');
    out.push_str(first);
    rest.iter().for_each(|part| out.push_str(part));
}

fn write_hex(out: &mut String, value: u32) -> std::fmt::Result {
    write!(out, "{value:#x}")
}

/// Writes `[base + offset]`. With pre-increment the register is in the base, so the offset is a number (AF-114).
fn write_address(out: &mut String, i: &Instruction, set: ControlSet) -> std::fmt::Result {
    let space = match i.op {
        Op::Store | Op::Load => None,
        Op::Swrite | Op::Sread => Some((Space::Sqe, '%')),
        _ => Some((Space::Control, '@')),
    };
    out.push('[');
    out.push_str(register::source(i.src1));
    out.push_str(" + ");
    match space.filter(|_| !i.preincrement) {
        None => write_hex(out, i.imm)?,
        Some((space, sigil)) => match register_name(space, set, i.imm) {
            Some(name) => {
                out.push(sigil);
                out.push_str(&name);
            }
            None => write!(out, "0x{:03x}", i.imm)?,
        },
    }
    out.push(']');
    if i.preincrement {
        out.push('!');
    }
    Ok(())
}

fn write_target(out: &mut String, i: &Instruction, target: Target) -> std::fmt::Result {
    let absolute = matches!(i.op, Op::Call | Op::Bl | Op::Jumpa);
    match target {
        Target::Label(word) => write!(out, "#l{word}"),
        Target::Function(word) => write!(out, "#fxn{word}"),
        Target::Number if absolute => write!(out, "#={:#x}", i.imm),
        Target::Number => write!(out, "#{:+}", i.offset()),
        // Mesa extends the sign of the 26 bits.
        Target::MesaNumber if absolute => write!(out, "#{}", (i.imm << 6).cast_signed() >> 6),
        Target::MesaNumber => write!(out, "#{}", i.offset()),
    }
}
