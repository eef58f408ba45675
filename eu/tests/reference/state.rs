// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of a thread, regions of operands, masks, and the execution of an instruction on all lanes.

use arctic_eu::isa::{Instruction, Place, Region, Source, Type};

use super::exact::SINGLE;
use super::lane::{Lane, evaluate};
use super::value::{Expected, Finish, Modes, Operand, width};

/// The registers that instructions on lanes read and write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// General registers, 32 bytes each. ISA-002.
    pub grf: Vec<u8>,
    /// acc0 to acc7. ISA-082.
    pub acc: [u8; 256],
    /// Bits 63:32 of the dwords of accumulators. ISA-082.
    pub acc_high: [u8; 256],
    /// ISA-083.
    pub a0: [u8; 32],
    /// f0, f1. ISA-062.
    pub flags: [u32; 2],
    pub cr0: u32,
    /// Channels that are enabled without NoMask. ISA-061.
    pub mask: u32,
}

/// A file of registers, and a byte in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Grf(usize),
    Acc(usize),
    AccHigh(usize),
    A0(usize),
    /// f0 and f1, 4 bytes each.
    Flags(usize),
    Null,
}

/// A written element: the lane, where it is, and what it must be.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub lane: u32,
    pub location: Location,
    pub ty: Type,
    pub expected: Expected,
}

impl State {
    pub fn bytes(&self, location: Location, size: usize) -> u64 {
        let byte = |index: usize| match location {
            // ISA-052: regions beyond the end wrap in the thread's registers.
            Location::Grf(at) => self.grf[(at + index) % self.grf.len()],
            Location::Acc(at) => self.acc[(at + index) % 256],
            Location::AccHigh(at) => self.acc_high[(at + index) % 256],
            Location::A0(at) => self.a0[(at + index) % 32],
            Location::Flags(at) => (self.flags[(at + index) / 4 % 2] >> ((at + index) % 4 * 8)) as u8,
            // ISA-081
            Location::Null => 0,
        };
        (0..size).fold(0, |bits, index| bits | u64::from(byte(index)) << (8 * index))
    }

    pub fn set_bytes(&mut self, location: Location, size: usize, bits: u64) {
        for index in 0..size {
            let byte = (bits >> (8 * index)) as u8;
            match location {
                Location::Grf(at) => {
                    let length = self.grf.len();
                    self.grf[(at + index) % length] = byte;
                }
                Location::Acc(at) => self.acc[(at + index) % 256] = byte,
                Location::AccHigh(at) => self.acc_high[(at + index) % 256] = byte,
                Location::A0(at) => self.a0[(at + index) % 32] = byte,
                Location::Flags(at) => {
                    let (flag, shift) = ((at + index) / 4 % 2, (at + index) % 4 * 8);
                    self.flags[flag] = self.flags[flag] & !(0xff << shift) | u32::from(byte) << shift;
                }
                Location::Null => {}
            }
        }
    }

    /// Word `sub` of a0. ISA-083: 16 words, wraps.
    fn address(&self, sub: usize) -> i64 {
        self.bytes(Location::A0(sub % 16 * 2), 2) as i64
    }

    /// The byte `offset` after a place. ISA-054: a0 holds byte addresses of general registers; ISA-057: they wrap.
    fn locate(&self, place: Place, row: usize, offset: usize) -> Location {
        match place {
            Place::Grf { reg, byte } => Location::Grf(usize::from(reg) * 32 + usize::from(byte) + offset),
            Place::Indirect { sub, offset: distance } => {
                let at = self.address(usize::from(sub) + row) + i64::from(distance) + offset as i64;
                Location::Grf(at.rem_euclid(self.grf.len() as i64) as usize)
            }
            // ISA-080
            Place::Arf { reg, byte } => match reg {
                0x10 => Location::A0(usize::from(byte) + offset),
                0x30 | 0x31 => Location::Flags(usize::from(reg - 0x30) * 4 + usize::from(byte) + offset),
                0x20..=0x27 => Location::Acc(usize::from(reg - 0x20) * 32 + usize::from(byte) + offset),
                _ => Location::Null,
            },
        }
    }

    /// Source element of a lane. ISA-050, ISA-054, ISA-055, ISA-042.
    fn operand(&self, source: &Source, lane: u32) -> Operand {
        let lane = lane as usize;
        match *source {
            Source::Imm { ty, value } => immediate(ty, value, lane),
            Source::Reg { place, region: Region { vstride, width: columns, hstride }, ty, abs, negate } => {
                let size = (width(ty) / 8) as usize;
                let (row, column) = (lane / usize::from(columns), lane % usize::from(columns));
                let location = match vstride {
                    Some(vstride) => {
                        let element = row * usize::from(vstride) + column * usize::from(hstride);
                        self.locate(place, 0, element * size)
                    }
                    // Each row has its own address register.
                    None => self.locate(place, row, column * usize::from(hstride) * size),
                };
                Operand { bits: self.bytes(location, size), ty, abs, negate, exact: false }
            }
        }
    }

    /// Where a destination begins.
    pub fn destination(&self, place: Place) -> Location {
        self.locate(place, 0, 0)
    }

    /// Bits of a source element of a lane, without modifiers.
    pub fn operand_bits(&self, source: &Source, lane: u32) -> u64 {
        self.operand(source, lane).bits
    }

    /// ISA-062: the number of the flag bit of a channel, in f0 and f1 as 64 bits.
    fn flag_bit(flag: u8, channel: u32) -> u32 {
        u32::from(flag / 2) * 32 + (u32::from(flag % 2) * 16 + channel) % 32
    }

    fn flag(&self, bit: u32) -> bool {
        self.flags[(bit / 32) as usize] >> (bit % 32) & 1 == 1
    }

    /// ISA-063: the predicate of a channel.
    pub fn predicate(&self, instruction: &Instruction, channel: u32) -> bool {
        let control = u32::from(instruction.predicate);
        // The inversion is that of the flag bits, before any and all.
        let bit = |flag: u8, channel: u32| self.flag(State::flag_bit(flag, channel)) != instruction.invert;
        match control {
            0 => true,
            1 => bit(instruction.flag, channel),
            // f0 and f1 combined, the same channel.
            2 => bit(instruction.flag & 1, channel) || bit(instruction.flag & 1 | 2, channel),
            3 => bit(instruction.flag & 1, channel) && bit(instruction.flag & 1 | 2, channel),
            4..=13 => {
                let group = 1 << (control / 2 - 1);
                let mut bits = (0..group).map(|index| bit(instruction.flag, channel / group * group + index));
                if control % 2 == 0 { bits.any(|bit| bit) } else { bits.all(|bit| bit) }
            }
            _ => false,
        }
    }

    /// Executes an instruction on lanes. Returns the writes to registers, in which a NaN is not determined; the state has some
    /// quiet NaN there. `None` if the reference does not have the instruction.
    pub fn execute(&mut self, instruction: &Instruction) -> Option<Vec<Write>> {
        let name = instruction.row.name;
        let modes = Modes::from_cr0(self.cr0);
        let dst = instruction.dst;
        let size = (width(dst.ty) / 8) as usize;
        let finish = Finish {
            dst: dst.ty,
            saturate: instruction.saturate,
            condition: if name == "bfn" { 0 } else { instruction.modifier },
            modes,
        };
        // ISA-066, ISA-067: sel and csel do not write the flag; sel's predicate does not disable lanes.
        let writes_flag = finish.condition != 0 && !matches!(name, "sel" | "csel");
        let predicate_enables = name != "sel";
        let sources = instruction.row.sources();
        let mut writes = Vec::new();
        let mut flags = Vec::new();
        // ISA-004: all sources are read before anything is written.
        for index in 0..u32::from(instruction.size) {
            let channel = index + u32::from(instruction.channel);
            let predicate = self.predicate(instruction, channel);
            // ISA-061
            let enabled = instruction.no_mask || self.mask >> (channel % 32) & 1 == 1;
            if !enabled || predicate_enables && !predicate {
                continue;
            }
            let mut src = [Operand { bits: 0, ty: Type::Ud, abs: false, negate: false, exact: false }; 3];
            for (operand, source) in src.iter_mut().zip(&instruction.src[..sources]) {
                *operand = self.operand(source, index);
                // ISA-058
                operand.exact = instruction.saturate || !operand.negate && width(dst.ty) > width(operand.ty);
            }
            // ISA-069: with the lane layout of the instruction, from the place of the destination in its register on.
            let start = if let Location::Grf(at) = self.locate(dst.place, 0, 0) { at % 32 } else { 0 };
            let implicit_at = start + index as usize * size;
            let implicit = Location::Acc(implicit_at);
            let high = self.bytes(Location::AccHigh(implicit_at), 4) as u32;
            let accumulator =
                Operand { bits: self.bytes(implicit, size), ty: dst.ty, abs: false, negate: false, exact: false };
            let lane = Lane {
                src,
                accumulator,
                high: if size == 4 { high } else { 0 },
                predicate,
                writes_accumulator: instruction.acc_write,
                function: instruction.function,
                finish,
            };
            let outcome = evaluate(name, &lane)?;
            // ISA-051
            let offset = index as usize * usize::from(dst.stride.max(1)) * size;
            let location = self.locate(dst.place, 0, offset);
            writes.push(Write { lane: index, location, ty: dst.ty, expected: outcome.dst });
            if instruction.acc_write {
                let expected =
                    outcome.accumulator.map_or(outcome.dst, |bits| Expected::Bits(bits & u64::MAX >> (64 - 8 * size)));
                writes.push(Write { lane: index, location: implicit, ty: dst.ty, expected });
            }
            // ISA-082
            if matches!(dst.ty, Type::D | Type::Ud) {
                let high = |at, bits: u32| Write {
                    lane: index,
                    location: Location::AccHigh(at),
                    ty: Type::Ud,
                    expected: Expected::Bits(bits.into()),
                };
                if let Location::Acc(at) = location {
                    writes.push(high(at, outcome.high));
                }
                if instruction.acc_write {
                    let bits = outcome.accumulator.map_or(outcome.high, |bits| (bits >> 32) as u32);
                    writes.push(high(implicit_at, bits));
                }
            }
            if writes_flag {
                flags.push((State::flag_bit(instruction.flag, channel), outcome.condition));
            }
        }
        for write in &writes {
            let bits = match write.expected {
                Expected::Bits(bits) => bits,
                Expected::QuietNan => super::value::format(write.ty).quiet_nan(),
            };
            self.set_bytes(write.location, (width(write.ty) / 8) as usize, bits);
        }
        for (bit, value) in flags {
            let flag = &mut self.flags[(bit / 32) as usize];
            *flag = *flag & !(1 << (bit % 32)) | u32::from(value) << (bit % 32);
        }
        Some(writes)
    }
}

/// Element of an immediate that a lane reads. ISA-014, ISA-042.
fn immediate(ty: Type, value: u64, lane: usize) -> Operand {
    let (ty, bits) = match ty {
        Type::Uv => (Type::Uw, value >> (lane % 8 * 4) & 0xf),
        Type::V => (Type::W, ((value >> (lane % 8 * 4) << 12) as u16 as i16 >> 12) as u16 as u64),
        Type::Vf => (Type::F, restricted_float((value >> (lane % 4 * 8)) as u8)),
        _ => (ty, value & (u64::MAX >> (64 - width(ty)))),
    };
    Operand { bits, ty, abs: false, negate: false, exact: false }
}

/// ISA-042: sign, exponent of 3 bits with bias 3, fraction of 4 bits; 0x00 and 0x80 are zeros.
fn restricted_float(byte: u8) -> u64 {
    let sign = u64::from(byte >> 7) << 31;
    if byte & 0x7f == 0 {
        return sign;
    }
    let exponent = u64::from(byte >> 4 & 7) + SINGLE.bias() as u64 - 3;
    sign | exponent << 23 | u64::from(byte & 0xf) << 19
}
