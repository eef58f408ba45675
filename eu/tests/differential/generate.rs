// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random instructions of an opcode and its types.

use arctic_eu::isa::table::{self, Format};
use arctic_eu::isa::{Destination, Instruction, Place, Region, Source, Type};

use crate::random::Random;
use crate::reference::value::{OVERFLOW, is_float, width};
use Type::{B, Bf, D, F, Hf, Q, Ub, Ud, Uq, Uw, W};

/// An opcode with the types of its operands.
#[derive(Clone, Debug)]
pub struct Combination {
    pub name: String,
    pub dst: Type,
    pub src: Vec<Type>,
}

const INT: &[Type] = &[Ub, B, Uw, W, Ud, D];
const WORD_DWORD: &[Type] = &[Uw, W, Ud, D];

/// Types that occur together, by the table of ISA-110 without 64-bit types (ISA-041).
fn types(name: &str) -> Vec<(&'static [Type], &'static [Type])> {
    const NUMERIC: [(&[Type], &[Type]); 4] = [(INT, INT), (&[F], &[F]), (&[Hf], &[Hf]), (&[Bf, F], &[Bf, F])];
    match name {
        "add" | "mul" | "mac" | "sel" | "cmp" | "cmpn" => NUMERIC.to_vec(),
        "avg" | "not" | "and" | "or" | "xor" | "shl" | "shr" | "asr" => vec![(INT, INT)],
        "add3" => vec![(WORD_DWORD, WORD_DWORD)],
        "mad" => {
            vec![(&[F], &[F]), (&[Hf], &[Hf]), (&[Bf, F], &[Bf, F]), (&[Uw, W], &[Ub, B]), (WORD_DWORD, WORD_DWORD)]
        }
        "csel" => vec![(&[F], &[F]), (&[Hf], &[Hf]), (WORD_DWORD, WORD_DWORD)],
        // ISA-045
        "mov" => {
            vec![
                (INT, INT),
                (&[F, Hf], INT),
                (INT, &[F, Hf]),
                (&[F], &[F, Hf, Bf]),
                (&[Hf], &[Hf, F]),
                (&[Bf], &[F]),
                // ISA-041: copies are all that there is of 64 bits.
                (&[Uq], &[Uq]),
                (&[Q], &[Q]),
            ]
        }
        // ISA-123, ISA-110.
        "movi" => vec![(&[Ud, D], &[Ud, D])],
        "frc" | "rndu" | "rndd" | "rnde" | "rndz" => vec![(&[F], &[F])],
        "mach" => vec![(&[Ud, D], WORD_DWORD)],
        "dp4a" => vec![(&[Ud, D], &[Ud, D])],
        "addc" | "subb" | "bfrev" | "fbl" => vec![(&[Ud], &[Ud])],
        // The sign of a field is that of one type.
        "bfe" | "bfi1" | "bfi2" => vec![(&[Ud], &[Ud]), (&[D], &[D])],
        "lzd" => vec![(&[Ud], INT)],
        "fbh" => vec![(&[Ud], &[Ud, D])],
        "cbit" => vec![(&[Ud], &[Ub, Uw, Ud])],
        "bfn" | "rol" | "ror" => vec![(&[Ud], &[Ud]), (&[Uw], &[Uw])],
        _ => panic!("{name} has no types"),
    }
}

/// All combinations of types of an opcode.
pub fn combinations(name: &str) -> Vec<Combination> {
    // The second source of movi is null.
    let count = if name == "movi" { 1 } else { table::by_name(name).unwrap().sources() };
    let mut all: Vec<Combination> = Vec::new();
    for (dst, src) in types(name) {
        for &dst in dst {
            for index in 0..src.len().pow(count as u32) {
                let src: Vec<Type> =
                    (0..count).map(|operand| src[index / src.len().pow(operand as u32) % src.len()]).collect();
                // ISA-134: not all sources are BF.
                if count > 1 && src.iter().all(|ty| *ty == Bf) {
                    continue;
                }
                // ISA-082: the accumulator's elements have one width, that of the destination and of the execution.
                let widest = src.iter().map(|ty| width(*ty)).max().unwrap_or(0).max(16);
                if name == "mac" && !is_float(dst) && width(dst) != widest {
                    continue;
                }
                if all.iter().any(|other| other.dst == dst && other.src == src) {
                    continue;
                }
                all.push(Combination { name: name.into(), dst, src });
            }
        }
    }
    all
}

pub struct Generator {
    pub random: Random,
}

impl Generator {
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    /// A random instruction of a combination. Half of them are plain: packed or scalar operands without modifiers.
    pub fn instruction(&mut self, combination: &Combination) -> Instruction {
        let row = table::by_name(&combination.name).unwrap();
        let plain = self.chance(2);
        let mut into = Instruction::new(row);
        into.size = if plain { self.pick(&[8, 16, 16, 16, 32, 1]) } else { self.pick(&[1, 2, 4, 8, 8, 16, 16, 32]) };
        let step = into.size.max(4);
        into.channel = if self.chance(3) { self.random.below(usize::from(32 / step)) as u8 * step } else { 0 };
        into.no_mask = self.chance(6);
        into.flag = self.random.below(4) as u8;
        let wide = width(combination.dst) == 64;
        let has = |letter: char| row.modifiers.contains(letter) && (letter == 'P' || !wide);
        let name = combination.name.as_str();
        let often = if plain && name != "sel" { 8 } else { 2 };
        if has('C') && (self.chance(often) || matches!(name, "cmp" | "cmpn" | "csel")) {
            into.modifier = self.condition(combination);
        }
        if has('P') && self.chance(if plain { 8 } else { 3 }) {
            into.predicate = if self.chance(2) { 1 } else { 1 + self.random.below(13) as u8 };
            into.invert = self.chance(2);
        }
        if name == "sel" {
            // A predicate or a condition.
            into.predicate = if into.modifier != 0 { 0 } else { into.predicate.max(1) };
        }
        into.saturate = has('S') && self.chance(if plain { 8 } else { 3 });
        if row.format == Format::Bfn {
            into.function = self.random.next() as u8;
        }
        let ternary = matches!(row.format, Format::Ternary | Format::Bfn);
        // A flag or an address register is the destination of one lane, if no condition is written.
        let one = into.size == 1 && into.modifier == 0;
        into.dst = self.destination(combination.dst, plain, ternary, one);
        // ISA-069; the accumulator is written once.
        into.acc_write = !matches!(into.dst.place, Place::Arf { reg: 0x20..=0x27, .. })
            && matches!(width(into.dst.ty), 16 | 32)
            && name != "movi"
            && (self.chance(12) || matches!(name, "mach" | "addc" | "subb") && self.chance(2));
        for (index, ty) in combination.src.iter().enumerate() {
            into.src[index] = self.source(combination, index, *ty, plain, ternary);
        }
        if name == "movi" {
            // ISA-123: up to 8 lanes, each with its own address.
            into.size = into.size.min(8);
            let place = Place::Indirect { sub: self.random.below(16) as u8, offset: self.offset(combination.src[0]) };
            let region = Region { vstride: None, ..Region::SCALAR };
            into.src[0] = Source::Reg { place, region, ty: combination.src[0], abs: false, negate: false };
        }
        into
    }

    fn condition(&mut self, combination: &Combination) -> u8 {
        loop {
            let condition = self.pick(&[1, 2, 3, 4, 5, 6, 8, 9]);
            let compares = matches!(combination.name.as_str(), "cmp" | "cmpn" | "sel" | "csel");
            // The document says nothing about an overflow of comparisons.
            let open = condition == OVERFLOW && compares;
            if !open {
                return condition;
            }
        }
    }

    fn register(&mut self) -> u8 {
        // The last registers too, and few others, so that operands overlap.
        if self.chance(8) { 120 + self.random.below(8) as u8 } else { self.random.below(24) as u8 }
    }

    fn byte(&mut self, ty: Type) -> u8 {
        if self.chance(2) { 0 } else { (self.random.below(32) as u32 / (width(ty) / 8) * (width(ty) / 8)) as u8 }
    }

    fn destination(&mut self, ty: Type, plain: bool, ternary: bool, one: bool) -> Destination {
        let stride = if plain {
            if ty == Ub || ty == B { 2 } else { 1 }
        } else if ternary {
            self.pick(&[1, 2])
        } else {
            self.pick(&[1, 2, 4])
        };
        let place = match self.random.below(24) {
            0 => Place::NULL,
            1 if width(ty) >= 16 && stride == 1 => Place::Arf { reg: 0x20, byte: 0 },
            2 if !ternary && !plain => Place::Indirect { sub: self.random.below(16) as u8, offset: self.offset(ty) },
            3 if one && matches!(ty, Uw | Ud) => self.architecture(ty),
            _ => Place::Grf { reg: self.register(), byte: if plain { 0 } else { self.byte(ty) } },
        };
        Destination { place, stride, ty }
    }

    /// An element of a flag or address register. ISA-080, ISA-083.
    fn architecture(&mut self, ty: Type) -> Place {
        let size = (width(ty) / 8) as usize;
        match self.random.below(3) {
            0 => Place::Arf { reg: 0x10, byte: (self.random.below(32 / size) * size) as u8 },
            flag => Place::Arf { reg: 0x2f + flag as u8, byte: (self.random.below(4 / size) * size) as u8 },
        }
    }

    fn offset(&mut self, ty: Type) -> i16 {
        let size = (width(ty) / 8) as i16;
        (self.random.below(1024) as i16 - 512) / size * size
    }

    fn source(&mut self, combination: &Combination, index: usize, ty: Type, plain: bool, ternary: bool) -> Source {
        let last = index + 1 == combination.src.len();
        let immediate = if ternary { index != 1 && width(ty) == 16 } else { last && width(ty) >= 16 };
        if immediate && self.chance(6) {
            let vector = match ty {
                _ if ternary || !self.chance(3) => None,
                Uw => Some(Type::Uv),
                W => Some(Type::V),
                F => Some(Type::Vf),
                _ => None,
            };
            return match vector {
                Some(ty) => Source::Imm { ty, value: self.random.next() & 0xffff_ffff },
                None => Source::Imm { ty, value: self.value(ty) },
            };
        }
        let row = table::by_name(&combination.name).unwrap();
        let modifiers = row.modifiers.contains('M') && !plain && width(ty) < 64;
        let negate = modifiers && self.chance(3);
        // ISA-058: abs is not defined for logic operations.
        let abs = modifiers && !row.is_logic() && self.chance(4);
        let mut region = self.region(plain, ternary, index);
        let place = match self.random.below(24) {
            0 if width(ty) >= 16 => {
                region = Region::PACKED;
                Place::Arf { reg: 0x20, byte: 0 }
            }
            3 if matches!(ty, Uw | Ud) => {
                region = Region::SCALAR;
                self.architecture(ty)
            }
            4 => Place::NULL,
            1 | 2 if !ternary && !plain => {
                if self.chance(2) {
                    region.vstride = None;
                }
                Place::Indirect { sub: self.random.below(16) as u8, offset: self.offset(ty) }
            }
            _ => Place::Grf { reg: self.register(), byte: if plain { 0 } else { self.byte(ty) } },
        };
        Source::Reg { place, region, ty, abs, negate }
    }

    /// ISA-050, ISA-015. The executor has to define a result for all regions (ISA-052).
    fn region(&mut self, plain: bool, ternary: bool, index: usize) -> Region {
        if plain || self.chance(3) {
            return if self.chance(4) { Region::SCALAR } else { Region::PACKED };
        }
        if !ternary {
            let (vstride, width, hstride) =
                (self.pick(&[0, 1, 2, 4, 8, 16]), self.pick(&[1, 2, 4, 8, 16]), self.pick(&[0, 1, 2, 4]));
            return Region { vstride: Some(vstride), width, hstride };
        }
        if index == 2 {
            // One row.
            return Region { vstride: Some(self.pick(&[0, 1, 2, 4])), width: 1, hstride: 0 };
        }
        let (vstride, hstride) = self.pick(&[(4u8, 1u8), (8, 1), (8, 2), (4, 2), (8, 4), (1, 0), (0, 0)]);
        Region { vstride: Some(vstride), width: vstride.checked_div(hstride).unwrap_or(1).max(1), hstride }
    }
}
