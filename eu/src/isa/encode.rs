// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Encoder, the inverse of the decoder. Bits without a meaning are 0.

use thiserror::Error;

use super::compaction;
use super::fields::{self, Bits, SOURCES, TERNARY};
use super::instruction::{Descriptor, Instruction, Place, Source};
use super::table::Format;
use super::types::Type;

/// Why an instruction has no encoding.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EncodeError {
    /// A value does not fit its field.
    #[error("{0}")]
    Operand(&'static str),
    /// No entry of the compaction tables has these fields.
    #[error("this instruction has no compacted form: remove Compacted")]
    Compact,
}

/// The bytes of an encoded instruction, 8 or 16 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// 64 bits.
    Compact([u8; 8]),
    /// 128 bits.
    Native([u8; 16]),
}

impl Encoded {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Encoded::Compact(bytes) => bytes,
            Encoded::Native(bytes) => bytes,
        }
    }
}

/// Encodes an instruction, in 64 bits if it is marked as compacted.
pub fn encode(from: &Instruction) -> Result<Encoded, EncodeError> {
    let word = encode_native(from)?;
    if from.compacted {
        let compact = compaction::compact(word).ok_or(EncodeError::Compact)?;
        return Ok(Encoded::Compact(compact.to_le_bytes()));
    }
    Ok(Encoded::Native(word.to_le_bytes()))
}

/// Encodes an instruction in 128 bits, without the bit of compaction.
pub fn encode_native(from: &Instruction) -> Result<u128, EncodeError> {
    let mut word = 0u128;
    let into = &mut word;
    let row = from.row;
    fields::OPCODE.set(into, u64::from(row.code));
    fields::SWSB.set(into, u64::from(from.swsb));
    fields::BREAKPOINT.set(into, u64::from(from.breakpoint));
    if row.format == Format::NoOperands {
        return Ok(word);
    }
    fields::EXEC_SIZE.set(into, u64::from(from.size.trailing_zeros()));
    fields::CHANNEL.set(into, u64::from(from.channel / 4));
    fields::FLAG.set(into, u64::from(from.flag));
    fields::PREDICATE.set(into, u64::from(from.predicate));
    for (field, value) in [
        (fields::INVERT, from.invert),
        (fields::NO_MASK, from.no_mask),
        (fields::ATOMIC, from.atomic),
        (fields::ACC_WRITE, from.acc_write),
        (fields::SATURATE, from.saturate),
    ] {
        field.set(into, u64::from(value));
    }
    if !row.is_branch() && row.format != Format::Bfn {
        fields::MODIFIER.set(into, u64::from(from.modifier));
    }
    match row.format {
        Format::NoOperands => {}
        Format::Sync => {
            fields::DST_STRIDE.set(into, 1);
            if from.src[0] != Source::NULL {
                source(into, 0, &from.src[0])?;
            }
        }
        Format::Unary | Format::Binary | Format::Math => {
            destination(into, from)?;
            for index in 0..from.sources() {
                source(into, index, &from.src[index])?;
            }
        }
        Format::Ternary | Format::Bfn => ternary(into, from)?,
        Format::Dpas => dpas(into, from)?,
        Format::Send => send(into, from)?,
        Format::Jip | Format::JipUip | Format::Jmpi | Format::Call | Format::Ret => branch(into, from)?,
    }
    Ok(word)
}

/// Sets file bit, subregister and number of a direct operand.
fn direct(into: &mut u128, place: Place, file: Bits, sub: Bits, reg: Bits) -> Result<(), EncodeError> {
    let (general, number, byte) = match place {
        Place::Grf { reg, byte } => (true, reg, byte),
        Place::Arf { reg, byte } => (false, reg, byte),
        Place::Indirect { .. } => return Err(EncodeError::Operand("this operand cannot be register-indirect")),
    };
    if byte > 31 {
        return Err(EncodeError::Operand("the subregister is beyond the register"));
    }
    file.set(into, u64::from(general));
    sub.set(into, u64::from(byte));
    reg.set(into, u64::from(number));
    Ok(())
}

fn indirect(into: &mut u128, sub: u8, offset: i16, address: Bits, at: Bits) -> Result<(), EncodeError> {
    if !(-512..512).contains(&offset) {
        return Err(EncodeError::Operand("the offset does not fit in 10 bits"));
    }
    if sub > 15 {
        return Err(EncodeError::Operand("a0 has 16 words"));
    }
    at.set(into, offset as u64 & 0x3ff);
    address.set(into, u64::from(sub));
    Ok(())
}

fn destination(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    let dst = &from.dst;
    match dst.place {
        Place::Indirect { sub, offset } => {
            fields::DST_INDIRECT.set(into, 1);
            indirect(into, sub, offset, fields::DST_ADDRESS, fields::DST_OFFSET)?;
        }
        place => direct(into, place, fields::DST_FILE, fields::DST_SUB, fields::DST_REG)?,
    }
    fields::DST_TYPE.set(into, u64::from(dst.ty.code()));
    fields::DST_STRIDE.set(into, code_of_stride(dst.stride, 4).ok_or(EncodeError::Operand("the stride is 1, 2 or 4"))?);
    Ok(())
}

/// Code of a stride of 0, 1, 2, 4 …
fn code_of_stride(stride: u8, most: u8) -> Option<u64> {
    match stride {
        0 => Some(0),
        _ if stride.is_power_of_two() && stride <= most => Some(u64::from(stride.trailing_zeros()) + 1),
        _ => None,
    }
}

fn source(into: &mut u128, index: usize, from: &Source) -> Result<(), EncodeError> {
    let at = &SOURCES[index];
    at.ty.set(into, u64::from(from.ty().code()));
    match *from {
        Source::Imm { ty, value } => {
            at.immediate.set(into, 1);
            let value = match ty.size() {
                8 => {
                    if index != 0 {
                        return Err(EncodeError::Operand("an immediate of 64 bits can be source 0 only"));
                    }
                    fields::IMMEDIATE_HIGH.set(into, value >> 32);
                    value
                }
                2 if !matches!(ty, Type::V | Type::Uv) => value & 0xffff | value << 16,
                1 => return Err(EncodeError::Operand("there are no immediates of 8 bits")),
                _ => value,
            };
            fields::IMMEDIATE.set(into, value);
        }
        Source::Reg { place, region, abs, negate, .. } => {
            match place {
                Place::Indirect { sub, offset } => {
                    at.indirect.set(into, 1);
                    indirect(into, sub, offset, at.address, at.offset)?;
                }
                place => direct(into, place, at.file, at.sub, at.reg)?,
            }
            let bad = EncodeError::Operand("strides are 0 or a power of two, and the width is at most 16");
            let vstride = match region.vstride {
                Some(vstride) => code_of_stride(vstride, 32).ok_or(bad.clone())?,
                None => 15,
            };
            at.vstride.set(into, vstride);
            if !region.width.is_power_of_two() || region.width > 16 {
                return Err(bad);
            }
            at.width.set(into, u64::from(region.width.trailing_zeros()));
            at.hstride.set(into, code_of_stride(region.hstride, 4).ok_or(bad)?);
            at.abs.set(into, u64::from(abs));
            at.negate.set(into, u64::from(negate));
        }
    }
    Ok(())
}

fn ternary_types(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    let float = from.dst.ty.is_float();
    if from.src.iter().any(|source| source.ty().is_float() != float) {
        return Err(EncodeError::Operand("operands are all integers or all floats"));
    }
    fields::TERNARY_FLOAT.set(into, u64::from(float));
    fields::TERNARY_DST_TYPE.set(into, u64::from(from.dst.ty.ternary_code()));
    for (at, source) in TERNARY.iter().zip(&from.src) {
        at.ty.set(into, u64::from(source.ty().ternary_code()));
    }
    Ok(())
}

fn ternary(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    ternary_types(into, from)?;
    direct(into, from.dst.place, fields::DST_FILE, fields::DST_SUB, fields::DST_REG)?;
    match from.dst.stride {
        1 => {}
        2 => fields::TERNARY_DST_STRIDE.set(into, 1),
        _ => return Err(EncodeError::Operand("the stride is 1 or 2")),
    }
    for (at, source) in TERNARY.iter().zip(&from.src) {
        match *source {
            Source::Imm { ty, value } => {
                let Some((flag, field)) = at.immediate else {
                    return Err(EncodeError::Operand("source 1 cannot be an immediate"));
                };
                if ty.size() != 2 {
                    return Err(EncodeError::Operand("the immediate must have a type of 16 bits"));
                }
                flag.set(into, 1);
                field.set(into, value);
            }
            Source::Reg { place, region, abs, negate, .. } => {
                direct(into, place, at.file, at.sub, at.reg)?;
                let bad = EncodeError::Operand("the region is not possible in an instruction with three sources");
                let vstride = region.vstride.ok_or(bad.clone())?;
                if let Some((high, low)) = at.vstride {
                    let code = [0, 1, 4, 8].iter().position(|stride| *stride == vstride).ok_or(bad.clone())?;
                    high.set(into, code as u64 >> 1);
                    low.set(into, code as u64 & 1);
                    at.hstride.set(into, code_of_stride(region.hstride, 4).ok_or(bad)?);
                } else {
                    at.hstride.set(into, code_of_stride(vstride, 4).ok_or(bad)?);
                }
                if from.row.format == Format::Bfn {
                    if abs || negate {
                        return Err(EncodeError::Operand("bfn has no source modifiers"));
                    }
                } else {
                    at.abs.set(into, u64::from(abs));
                    at.negate.set(into, u64::from(negate));
                }
            }
        }
    }
    if from.row.format == Format::Bfn {
        fields::MODIFIER.set(into, u64::from(from.function >> 4));
        fields::BFN_LOW.set(into, u64::from(from.function));
    }
    Ok(())
}

fn dpas(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    ternary_types(into, from)?;
    direct(into, from.dst.place, fields::DST_FILE, fields::DST_SUB, fields::DST_REG)?;
    let depth = match from.depth {
        16 => 0,
        depth @ (2 | 4 | 8) => u64::from(depth.trailing_zeros()),
        _ => return Err(EncodeError::Operand("the systolic depth is 2, 4, 8 or 16")),
    };
    fields::DPAS_DEPTH.set(into, depth);
    if !(1..=8).contains(&from.repeat) {
        return Err(EncodeError::Operand("the repeat count is 1 to 8"));
    }
    fields::DPAS_REPEAT.set(into, u64::from(from.repeat - 1));
    for (index, (at, source)) in TERNARY.iter().zip(&from.src).enumerate() {
        let Source::Reg { place, ty, .. } = *source else {
            return Err(EncodeError::Operand("dpas has no immediates"));
        };
        direct(into, place, at.file, at.sub, at.reg)?;
        let subbyte = match ty {
            Type::U4 | Type::S4 => 1,
            Type::U2 | Type::S2 => 2,
            _ => 0,
        };
        if index > 0 {
            fields::DPAS_SUBBYTE[index - 1].set(into, subbyte);
        } else if subbyte != 0 {
            return Err(EncodeError::Operand("source 0 cannot have this type"));
        }
    }
    Ok(())
}

fn send(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    let dst = &from.dst;
    let send = &from.send;
    if let Place::Indirect { .. } = dst.place {
        return Err(EncodeError::Operand("a message cannot be register-indirect"));
    }
    let (file, reg) = file_and_number(dst.place);
    fields::DST_FILE.set(into, file);
    fields::DST_REG.set(into, reg);
    for (at, source) in SOURCES.iter().zip(&from.src) {
        let Source::Reg { place, .. } = *source else {
            return Err(EncodeError::Operand("a message has registers only"));
        };
        let (file, reg) = file_and_number(place);
        at.file.set(into, file);
        at.reg.set(into, reg);
    }
    match send.desc {
        Descriptor::Imm(value) => fields::scatter(into, &fields::SEND_DESC, value),
        Descriptor::Reg(0) => fields::SEND_DESC_REG.set(into, 1),
        Descriptor::Reg(_) => return Err(EncodeError::Operand("a descriptor can be in a0.0 only")),
    }
    fields::SEND_EXBSO.set(into, u64::from(send.exbso));
    match send.ex_desc {
        Descriptor::Imm(value) => {
            if value & 0x7ff != 0 {
                return Err(EncodeError::Operand("bits 10:0 of the extended descriptor are 0"));
            }
            fields::scatter(into, &fields::SEND_EXDESC, value);
        }
        Descriptor::Reg(sub) => {
            fields::SEND_EXDESC_REG.set(into, 1);
            fields::SEND_EXDESC_SUB.set(into, u64::from(sub));
        }
    }
    if send.src1_length > 31 {
        return Err(EncodeError::Operand("the length is at most 31 registers"));
    }
    fields::SEND_SRC1_LENGTH.set(into, u64::from(send.src1_length));
    Ok(())
}

/// File bit and number field of a direct operand.
fn file_and_number(place: Place) -> (u64, u64) {
    match place {
        Place::Grf { reg, .. } => (1, u64::from(reg)),
        Place::Arf { reg, .. } => (0, u64::from(reg)),
        Place::Indirect { .. } => (0, 0),
    }
}

fn branch(into: &mut u128, from: &Instruction) -> Result<(), EncodeError> {
    let format = from.row.format;
    if format == Format::Call {
        direct(into, from.dst.place, fields::DST_FILE, fields::DST_SUB, fields::DST_REG)?;
    }
    if from.register_target {
        let at = &SOURCES[0];
        let Source::Reg { place, .. } = from.src[0] else {
            return Err(EncodeError::Operand("the target must be a register"));
        };
        return direct(into, place, at.file, at.sub, at.reg);
    }
    SOURCES[0].immediate.set(into, 1);
    fields::JIP.set(into, from.jip as u32 as u64);
    if format == Format::JipUip {
        SOURCES[1].immediate.set(into, 1);
        fields::UIP.set(into, from.uip as u32 as u64);
    }
    Ok(())
}
