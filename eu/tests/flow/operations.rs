// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Instructions on lanes in random programs: each channel writes and reads its own dword of a variable, in parts of it too,
//! uniform values, and registers that nothing writes, through random regions.

use arctic_eu::isa::table::{Format, by_name};
use arctic_eu::isa::{Destination, Instruction, Place, Region, Source, Type};

use super::{CONSTANTS, FIRST_VARIABLE, Generator, UNIFORM, VARIABLES};
use crate::reference::value::width;
use Type::{B, D, F, Ub, Ud, Uw, W};

/// Opcodes with types of destination and sources. Floating-point results are saturated, so that they are no NaN: the
/// bits of a NaN are not determined.
const OPERATIONS: &[(&str, &[Type], &[Type])] = &[
    ("add", &[Ub, B, Uw, W, Ud, D], &[Ub, B, Uw, W, Ud, D]),
    ("mul", &[Uw, W, Ud, D], &[Uw, W, D]),
    ("mad", &[W, D, Ud], &[W, Uw]),
    ("add3", &[W, Uw, D, Ud], &[W, D, Ud]),
    ("avg", &[Ud, D, W], &[Ud, D, W]),
    ("and", &[Ud, D, W], &[Ud, D, Uw, W]),
    ("or", &[D, Ud, Ub], &[Ud, D, W, B]),
    ("xor", &[Ud, Uw], &[Ud, Uw, Ub]),
    ("not", &[Ud, D], &[Ud, W, Uw]),
    ("bfn", &[Ud], &[Ud]),
    ("shl", &[Ud, D], &[Ud, D, Uw]),
    ("shr", &[Ud, Uw], &[Ud, Uw]),
    ("asr", &[D, W], &[D, W]),
    ("rol", &[Ud], &[Ud]),
    ("ror", &[Ud], &[Ud]),
    ("sel", &[Ub, W, Ud, D], &[Ub, W, Ud, D]),
    ("csel", &[D, Ud], &[D]),
    ("mov", &[Ub, B, Uw, W, Ud, D, F], &[Ub, B, Uw, W, Ud, D]),
    ("mov", &[W, Ud, D], &[F]),
    ("add", &[F], &[F]),
    ("mul", &[F], &[F]),
    ("mad", &[F], &[F]),
    ("lzd", &[Ud], &[Ud, D]),
    ("fbh", &[Ud], &[Ud, D]),
    ("fbl", &[Ud], &[Ud]),
    ("cbit", &[Ud], &[Ud, Uw, Ub]),
    ("bfrev", &[Ud], &[Ud]),
    ("bfe", &[Ud], &[Ud]),
    ("bfi1", &[Ud], &[Ud]),
    ("bfi2", &[Ud], &[Ud]),
    ("dp4a", &[D], &[D, Ud]),
];

impl Generator {
    /// An instruction on a variable.
    pub fn operation(&mut self) {
        let (name, dst, src) = self.pick(OPERATIONS);
        let mut into = Instruction::new(by_name(name).unwrap());
        let ternary = matches!(into.row.format, Format::Ternary | Format::Bfn);
        let dst = self.pick(dst);
        let has = |letter: char| into.row.modifiers.contains(letter);
        if has('P') && self.chance(4) || name == "sel" {
            (into.predicate, into.invert) = (1, self.chance(2));
        }
        if name == "csel" || has('C') && width(dst) == 32 && name != "sel" && self.chance(6) {
            into.modifier = 1 + self.random.below(6) as u8;
        }
        into.saturate = dst == F || has('S') && self.chance(6);
        if into.modifier != 0 || into.predicate != 0 {
            into.flag = self.flag();
        }
        if name == "bfn" {
            into.function = self.random.next() as u8;
        }
        let (place, byte) = self.variable(dst);
        into.dst = Destination { place: Place::Grf { reg: place, byte }, stride: (32 / width(dst)) as u8, ty: dst };
        for index in 0..into.row.sources() {
            let ty = self.pick(src);
            into.src[index] = self.operand(ty, ternary, index);
        }
        self.emit_parts(into);
    }

    /// A comparison of variables, to a flag.
    pub fn compare(&mut self) {
        let mut into = Instruction::new(by_name("cmp").unwrap());
        let ty = self.pick(&[D, Ud, W, Ub, F]);
        into.flag = self.flag();
        into.modifier = 1 + self.random.below(6) as u8;
        into.dst = Destination { place: Place::NULL, stride: 1, ty };
        into.src[0] = self.operand(ty, false, 0);
        into.src[1] = self.operand(ty, false, 1);
        self.emit_parts(into);
    }

    /// An instruction for all channels, in one or several parts: later parts are in later registers.
    fn emit_parts(&mut self, instruction: Instruction) {
        for (size, channel) in self.parts() {
            let mut part = instruction;
            (part.size, part.channel) = (size, channel);
            let moved = |place: Place| match place {
                Place::Grf { reg, byte } if reg < UNIFORM => Place::Grf { reg: reg + channel / 8, byte },
                place => place,
            };
            part.dst.place = moved(part.dst.place);
            for source in &mut part.src {
                if let Source::Reg { place, .. } = source {
                    *place = moved(*place);
                }
            }
            self.emit(part);
        }
    }

    /// First register of a variable, and the byte of an element in each channel's dword.
    fn variable(&mut self, ty: Type) -> (u8, u8) {
        let size = width(ty) / 8;
        let index = self.random.below(VARIABLES) as u8;
        (FIRST_VARIABLE + index * (self.size / 8), (self.random.below((4 / size) as usize) as u32 * size) as u8)
    }

    fn operand(&mut self, ty: Type, ternary: bool, index: usize) -> Source {
        let own = self.chance(8);
        let (place, region) = match self.random.below(8) {
            0 if !ternary && width(ty) >= 16 && index == 1 => {
                return Source::Imm { ty, value: self.random.next() >> self.random.below(60) & mask(ty) };
            }
            1 => (Place::Grf { reg: if own { UNIFORM } else { CONSTANTS }, byte: 0 }, Region::SCALAR),
            2 => {
                let reg = CONSTANTS + self.random.below(8) as u8;
                (Place::Grf { reg, byte: 0 }, self.any_region(ternary, index))
            }
            _ => {
                let (reg, byte) = self.variable(ty);
                (Place::Grf { reg, byte }, self.own_region(ty, ternary, index))
            }
        };
        Source::Reg { place, region, ty, abs: false, negate: false }
    }

    /// A region by which each lane reads its own dword, in one of the many ways to say it. ISA-050, ISA-015.
    fn own_region(&mut self, ty: Type, ternary: bool, index: usize) -> Region {
        let stride = (32 / width(ty)) as u8;
        if ternary && index == 2 {
            return Region { vstride: Some(stride), width: 1, hstride: 0 };
        }
        let columns = if ternary {
            // Vertical strides are 1, 4 or 8.
            let vstride = self.pick(&[4u8, 8]);
            (vstride / stride).max(1)
        } else {
            self.pick(&[1u8, 2, 4, 8, 16])
        };
        if columns == 1 || u16::from(columns) * u16::from(stride) > 32 {
            return if ternary && stride > 1 {
                Region { vstride: Some(4), width: 4 / stride, hstride: stride }
            } else {
                Region { vstride: Some(stride), width: 1, hstride: 0 }
            };
        }
        Region { vstride: Some(columns * stride), width: columns, hstride: stride }
    }

    /// Any region of registers that nothing writes: 32 rows of 8 dwords are 32 registers.
    fn any_region(&mut self, ternary: bool, index: usize) -> Region {
        if ternary && index == 2 {
            return Region { vstride: Some(self.pick(&[0, 1, 2, 4])), width: 1, hstride: 0 };
        }
        if ternary {
            let (vstride, hstride) = self.pick(&[(4u8, 1u8), (8, 1), (8, 2), (4, 2), (1, 0), (0, 0)]);
            let width = vstride.checked_div(hstride).unwrap_or(1).max(1);
            return Region { vstride: Some(vstride), width, hstride };
        }
        Region {
            vstride: Some(self.pick(&[0, 1, 2, 4, 8])),
            width: self.pick(&[1, 2, 4, 8]),
            hstride: self.pick(&[0, 1, 2, 4]),
        }
    }
}

fn mask(ty: Type) -> u64 {
    u64::MAX >> (64 - width(ty))
}
