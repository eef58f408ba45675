// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decoder of native and compacted instructions.

use thiserror::Error;

use super::compaction;
use super::fields::{self, SOURCES, TERNARY};
use super::instruction::{Descriptor, Destination, Instruction, Place, Region, Source};
use super::table::{self, Execute, Format};
use super::types::Type;

/// Why bytes are no instruction.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end in an instruction.
    #[error("the code ends within an instruction")]
    Short,
    /// ISA-026.
    #[error("opcode {0:#04x} is reserved")]
    Opcode(u8),
    /// A field has a reserved value.
    #[error("reserved value in the field {0}")]
    Field(&'static str),
}

/// Decodes the instruction at the start of `code`.
pub fn decode(code: &[u8]) -> Result<Instruction, DecodeError> {
    let word = native(code)?;
    decode_native(word)
}

/// The 128-bit form of the instruction at the start of `code`.
pub fn native(code: &[u8]) -> Result<u128, DecodeError> {
    let (low, rest) = code.split_first_chunk::<8>().ok_or(DecodeError::Short)?;
    let low = u64::from_le_bytes(*low);
    if fields::COMPACTED.is_set(u128::from(low)) {
        return Ok(compaction::expand(low));
    }
    let high = rest.first_chunk::<8>().ok_or(DecodeError::Short)?;
    Ok(u128::from(low) | u128::from(u64::from_le_bytes(*high)) << 64)
}

/// Length in bytes of the instruction at the start of `code`, from its first eight bytes; 16 if they are missing.
pub fn length(code: &[u8]) -> usize {
    match code.first_chunk::<4>() {
        Some(bytes) if fields::COMPACTED.is_set(u128::from(u32::from_le_bytes(*bytes))) => 8,
        _ => 16,
    }
}

/// Decodes a 128-bit instruction; one that was expanded has the bit of compaction.
pub fn decode_native(word: u128) -> Result<Instruction, DecodeError> {
    let code = fields::OPCODE.get8(word);
    let row = table::by_code(code).ok_or(DecodeError::Opcode(code))?;
    let mut into = Instruction::new(row);
    into.compacted = fields::COMPACTED.is_set(word);
    // ISA-025: an illegal instruction has no fields.
    if row.execute == Execute::Illegal {
        return Ok(into);
    }
    into.swsb = fields::SWSB.get8(word);
    into.breakpoint = fields::BREAKPOINT.is_set(word);
    if row.format == Format::NoOperands {
        return Ok(into);
    }
    into.size = match fields::EXEC_SIZE.get8(word) {
        code @ 0..=5 => 1 << code,
        _ => return Err(DecodeError::Field("ExecSize")),
    };
    into.channel = fields::CHANNEL.get8(word) * 4;
    into.flag = fields::FLAG.get8(word);
    into.predicate = fields::PREDICATE.get8(word);
    into.invert = fields::INVERT.is_set(word);
    into.no_mask = fields::NO_MASK.is_set(word);
    into.atomic = fields::ATOMIC.is_set(word);
    into.acc_write = fields::ACC_WRITE.is_set(word);
    into.saturate = fields::SATURATE.is_set(word);
    if !row.is_branch() {
        into.modifier = fields::MODIFIER.get8(word);
    }
    match row.format {
        Format::NoOperands => {}
        Format::Sync => {
            into.src[0] = source(word, 0)?;
            // The type of null has no meaning.
            if let Source::Reg { place, region: Region::SCALAR, ty: Type::Ub, abs: false, negate: false } = into.src[0]
                && place == Place::NULL
            {
                into.src[0] = Source::NULL;
            }
        }
        Format::Unary | Format::Binary | Format::Math => {
            into.dst = destination(word)?;
            for index in 0..into.sources() {
                into.src[index] = source(word, index)?;
            }
            // ISA-014: an immediate of 64 bits is where the condition would be.
            if matches!(into.src[0], Source::Imm { ty, .. } if ty.size() == 8) {
                into.modifier = 0;
            }
        }
        Format::Ternary | Format::Bfn => {
            ternary(word, &mut into)?;
            if row.format == Format::Bfn {
                into.function = into.modifier << 4 | fields::BFN_LOW.get8(word);
                into.modifier = 0;
            }
        }
        Format::Dpas => dpas(word, &mut into)?,
        Format::Send => send(word, &mut into),
        Format::Jip | Format::JipUip | Format::Jmpi | Format::Call | Format::Ret => branch(word, &mut into),
    }
    clear_reserved(&mut into);
    Ok(into)
}

/// Clears the modifiers that an instruction does not have: their bits are reserved, and iga64 ignores them. ISA-110.
fn clear_reserved(into: &mut Instruction) {
    let row = into.row;
    let lacks = |letter: char| !row.modifiers.contains(letter);
    if row.is_branch() && !row.has_branch_control() {
        into.acc_write = false;
    }
    match row.format {
        Format::Sync => (into.predicate, into.invert) = (0, false),
        Format::Bfn => into.saturate = false,
        _ => {}
    }
    if !row.has_condition() {
        return;
    }
    if lacks('M') {
        for source in &mut into.src {
            if let Source::Reg { abs, negate, .. } = source {
                (*abs, *negate) = (false, false);
            }
        }
    }
    if lacks('S') {
        into.saturate = false;
    }
    if lacks('C') {
        into.modifier = 0;
    }
}

/// A place in the register file of a file bit, subregister and number.
fn direct(general: bool, byte: u8, reg: u8) -> Place {
    if general { Place::Grf { reg, byte } } else { Place::Arf { reg, byte } }
}

/// The offset of a register-indirect operand, a signed 10-bit number.
fn offset(value: u64) -> i16 {
    let value = value as u16;
    ((value << 6) as i16) >> 6
}

fn destination(word: u128) -> Result<Destination, DecodeError> {
    let place = if fields::DST_INDIRECT.is_set(word) {
        Place::Indirect { sub: fields::DST_ADDRESS.get8(word), offset: offset(fields::DST_OFFSET.get(word)) }
    } else {
        direct(fields::DST_FILE.is_set(word), fields::DST_SUB.get8(word), fields::DST_REG.get8(word))
    };
    let ty = Type::from_code(fields::DST_TYPE.get8(word)).ok_or(DecodeError::Field("Dst.Type"))?;
    let stride = match fields::DST_STRIDE.get8(word) {
        0 => return Err(DecodeError::Field("Dst.HorzStride")),
        code => 1 << (code - 1),
    };
    Ok(Destination { place, stride, ty })
}

/// A stride of 0, 1, 2, 4 … from its code.
fn stride(code: u8) -> u8 {
    if code == 0 { 0 } else { 1 << (code - 1) }
}

fn source(word: u128, index: usize) -> Result<Source, DecodeError> {
    let at = &SOURCES[index];
    let code = at.ty.get8(word);
    if at.immediate.is_set(word) {
        let ty = Type::from_immediate_code(code).ok_or(DecodeError::Field("Src.Type"))?;
        let low = fields::IMMEDIATE.get(word);
        let value = match ty.size() {
            8 if index == 0 => low | fields::IMMEDIATE_HIGH.get(word) << 32,
            2 if !matches!(ty, Type::V | Type::Uv) => low & 0xffff,
            _ => low,
        };
        return Ok(Source::Imm { ty, value });
    }
    let ty = Type::from_code(code).ok_or(DecodeError::Field("Src.Type"))?;
    let place = if at.indirect.is_set(word) {
        Place::Indirect { sub: at.address.get8(word), offset: offset(at.offset.get(word)) }
    } else {
        direct(at.file.is_set(word), at.sub.get8(word), at.reg.get8(word))
    };
    let vstride = match at.vstride.get8(word) {
        code @ 0..=6 => Some(stride(code)),
        15 => None,
        _ => return Err(DecodeError::Field("Src.VertStride")),
    };
    let width = match at.width.get8(word) {
        code @ 0..=4 => 1 << code,
        _ => return Err(DecodeError::Field("Src.Width")),
    };
    let region = Region { vstride, width, hstride: stride(at.hstride.get8(word)) };
    Ok(Source::Reg { place, region, ty, abs: at.abs.is_set(word), negate: at.negate.is_set(word) })
}

fn ternary(word: u128, into: &mut Instruction) -> Result<(), DecodeError> {
    let float = fields::TERNARY_FLOAT.is_set(word);
    let ty = |code, name| Type::from_ternary_code(code, float).ok_or(DecodeError::Field(name));
    into.dst = Destination {
        place: direct(fields::DST_FILE.is_set(word), fields::DST_SUB.get8(word), fields::DST_REG.get8(word)),
        stride: if fields::TERNARY_DST_STRIDE.is_set(word) { 2 } else { 1 },
        ty: ty(fields::TERNARY_DST_TYPE.get8(word), "Dst.Type")?,
    };
    let bfn = into.row.format == Format::Bfn;
    for (at, into) in TERNARY.iter().zip(&mut into.src) {
        let ty = ty(at.ty.get8(word), "Src.Type")?;
        if let Some((flag, value)) = at.immediate
            && flag.is_set(word)
        {
            *into = Source::Imm { ty, value: value.get(word) };
            continue;
        }
        let hstride = stride(at.hstride.get8(word));
        // ISA-015, ISA-016: rows have vstride / hstride elements; source 2 has one row.
        let (vstride, width) = match at.vstride {
            Some((high, low)) => {
                let vstride = [0u8, 1, 4, 8][usize::from(high.get8(word) << 1 | low.get8(word))];
                (vstride, vstride.checked_div(hstride).unwrap_or(1).max(1))
            }
            None => (hstride, 1),
        };
        *into = Source::Reg {
            place: direct(at.file.is_set(word), at.sub.get8(word), at.reg.get8(word)),
            region: Region { vstride: Some(vstride), width, hstride: if at.vstride.is_none() { 0 } else { hstride } },
            ty,
            // The truth table of bfn is where other instructions have modifiers. ISA-017.
            abs: !bfn && at.abs.is_set(word),
            negate: !bfn && at.negate.is_set(word),
        };
    }
    Ok(())
}

fn dpas(word: u128, into: &mut Instruction) -> Result<(), DecodeError> {
    let float = fields::TERNARY_FLOAT.is_set(word);
    let ty = |code, name| Type::from_ternary_code(code, float).ok_or(DecodeError::Field(name));
    into.depth = match fields::DPAS_DEPTH.get8(word) {
        0 => 16,
        code => 1 << code,
    };
    into.repeat = fields::DPAS_REPEAT.get8(word) + 1;
    into.dst = Destination {
        place: direct(fields::DST_FILE.is_set(word), fields::DST_SUB.get8(word), fields::DST_REG.get8(word)),
        stride: 1,
        ty: ty(fields::TERNARY_DST_TYPE.get8(word), "Dst.Type")?,
    };
    for (index, at) in TERNARY.iter().enumerate() {
        let mut element = ty(at.ty.get8(word), "Src.Type")?;
        if index > 0 {
            element = match (fields::DPAS_SUBBYTE[index - 1].get8(word), element) {
                (0, _) => element,
                (1, Type::Ub) => Type::U4,
                (1, Type::B) => Type::S4,
                (2, Type::Ub) => Type::U2,
                (2, Type::B) => Type::S2,
                _ => return Err(DecodeError::Field("Src.Subbyte")),
            };
        }
        into.src[index] = Source::Reg {
            place: direct(at.file.is_set(word), at.sub.get8(word), at.reg.get8(word)),
            region: Region::PACKED,
            ty: element,
            abs: false,
            negate: false,
        };
    }
    Ok(())
}

fn send(word: u128, into: &mut Instruction) {
    let operand = |place| Source::Reg { place, region: Region::SCALAR, ty: Type::Ud, abs: false, negate: false };
    into.dst.place = direct(fields::DST_FILE.is_set(word), 0, fields::DST_REG.get8(word));
    for (at, source) in SOURCES.iter().zip(&mut into.src) {
        *source = operand(direct(at.file.is_set(word), 0, at.reg.get8(word)));
    }
    let send = &mut into.send;
    send.desc = if fields::SEND_DESC_REG.is_set(word) {
        Descriptor::Reg(0)
    } else {
        Descriptor::Imm(fields::gather(word, &fields::SEND_DESC))
    };
    send.exbso = fields::SEND_EXBSO.is_set(word);
    send.src1_length = fields::SEND_SRC1_LENGTH.get8(word);
    send.ex_desc = if fields::SEND_EXDESC_REG.is_set(word) {
        Descriptor::Reg(fields::SEND_EXDESC_SUB.get8(word))
    } else {
        let mut value = fields::gather(word, &fields::SEND_EXDESC);
        if send.exbso {
            value &= !0x7ff;
        }
        // An immediate is no surface offset.
        send.exbso = false;
        Descriptor::Imm(value)
    };
    if into.src[1] == operand(Place::NULL) {
        send.src1_length = 0;
    }
}

fn branch(word: u128, into: &mut Instruction) {
    let at = &SOURCES[0];
    let register = Source::Reg {
        place: direct(at.file.is_set(word), at.sub.get8(word), at.reg.get8(word)),
        region: Region::SCALAR,
        ty: Type::D,
        abs: false,
        negate: false,
    };
    into.jip = fields::JIP.get(word) as i32;
    into.uip = fields::UIP.get(word) as i32;
    let format = into.row.format;
    into.register_target = !at.immediate.is_set(word);
    if format == Format::Call {
        into.dst = Destination {
            place: direct(fields::DST_FILE.is_set(word), fields::DST_SUB.get8(word), fields::DST_REG.get8(word)),
            stride: 1,
            ty: Type::D,
        };
    }
    if into.register_target {
        into.src[0] = register;
        (into.jip, into.uip) = (0, 0);
    } else if format != Format::JipUip {
        into.uip = 0;
    }
}
