// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The 64-bit encodings (group C of the document on the ISA): tables of values and the fields that they fill.

use super::fields::{self, Bits, bit, bits};
use super::types::Type;

/// A table of values and the fields that a value fills, from its highest bit down.
struct Index<const N: usize> {
    values: [u64; N],
    fields: &'static [Bits],
}

const CONTROL: Index<32> = Index {
    values: [
        0x4, 0x3, 0x2000, 0x2004, 0x2003, 0x80004, 0x24, 0xa0004, 0x0, 0x10004, 0x13, 0x60004, 0x20004, 0x22004,
        0x40004, 0x104, 0xa0003, 0x184, 0x2001, 0x144, 0x1c4, 0x82004, 0x23, 0x33, 0xa2004, 0x80003, 0x22000, 0x10003,
        0xa0084, 0x20003, 0x8003, 0x2024,
    ],
    fields: &[
        bits(95, 92),
        bit(34),
        bit(33),
        bit(32),
        bit(31),
        bit(28),
        bits(27, 24),
        bits(23, 22),
        bits(21, 19),
        bits(18, 16),
    ],
};

const DATA_TYPE: Index<32> = Index {
    values: [
        0xd6954, 0x6954, 0x2b54, 0x56d54, 0xd4954, 0xd2954, 0x54d54, 0x800, 0xd0954, 0x2eccc, 0xb68cc, 0x52d54,
        0x96844, 0x50d54, 0x36ccc, 0x16c44, 0x7154, 0x2cccc, 0x822, 0x2844, 0x26c2a, 0xec22, 0x97044, 0x694c, 0x8c8cc,
        0x6854, 0x2ec4c, 0x2822, 0x6834, 0x6814, 0x68d4, 0x2954,
    ],
    fields: &[
        bit(98),
        bits(91, 88),
        bit(66),
        bit(50),
        bits(49, 48),
        bit(47),
        bit(46),
        bits(43, 40),
        bits(39, 36),
        bit(35),
    ],
};

const SUBREGISTER: Index<32> = Index {
    values: [
        0x0, 0x4000, 0x1000, 0x3000, 0x80, 0x2000, 0x5000, 0x8, 0x100, 0x6000, 0x7000, 0x200, 0x4, 0x300, 0x280, 0x180,
        0x380, 0x1c, 0x10, 0xc, 0x18, 0x14, 0x2, 0x140, 0x40, 0x84, 0x5c, 0x42, 0x18c, 0x20, 0x60, 0x6300,
    ],
    fields: &[bits(103, 99), bits(71, 67), bits(55, 51)],
};

const SOURCE0: Index<16> = Index {
    values: [0x100, 0x0, 0x102, 0x101, 0x2, 0x200, 0x240, 0x340, 0x300, 0x103, 0x1, 0xf10, 0x460, 0x140, 0x448, 0x202],
    fields: &[bits(87, 84), bits(83, 81), bit(80), bits(65, 64), bits(45, 44)],
};

const SOURCE1: Index<16> = Index {
    values: [0x40, 0x0, 0x840, 0x800, 0x440, 0x8d0, 0x80, 0xd0, 0xc0, 0xc40, 0x400, 0xc00, 0x118, 0x880, 0x809, 0x844],
    fields: &[bits(121, 120), bits(119, 116), bits(115, 113), bit(112), bits(97, 96)],
};

const TERNARY_CONTROL: Index<32> = Index {
    values: [
        0x94540004,
        0x94540003,
        0x90540003,
        0x94542003,
        0x90542003,
        0x90540013,
        0x94540013,
        0x90542013,
        0x94542013,
        0x94542004,
        0x90540004,
        0x94550004,
        0x94540024,
        0x90542004,
        0x94542000,
        0x94550003,
        0x90542023,
        0x90542033,
        0x94542023,
        0x94542033,
        0x90540033,
        0x90540023,
        0x27cc0003,
        0x7cc4003,
        0x127cc4003,
        0x107cc4003,
        0x127cc0003,
        0x7cc0003,
        0x27cc4003,
        0x107cc0003,
        0x16f544003,
        0x16f540003,
    ],
    fields: &[
        bits(95, 92),
        bits(90, 88),
        bits(82, 80),
        bit(50),
        bits(49, 48),
        bits(42, 40),
        bit(39),
        bits(38, 36),
        bit(34),
        bit(33),
        bit(32),
        bit(31),
        bit(28),
        bits(27, 24),
        bit(23),
        bit(22),
        bits(21, 19),
        bits(18, 16),
    ],
};

const TERNARY_SOURCE: Index<32> = Index {
    values: [
        0x120300, 0x120201, 0x160301, 0x120301, 0x160101, 0x160309, 0x140301, 0x160300, 0x100300, 0x160b01, 0x162301,
        0x160100, 0x100301, 0x122300, 0x122301, 0x120309, 0x120101, 0x120308, 0x120100, 0x162300, 0x120b00, 0x140300,
        0x120b01, 0x160b09, 0x122100, 0x120900, 0x122900, 0x121100, 0x121900, 0x120500, 0x121500, 0x122500,
    ],
    fields: &[
        bit(114),
        bits(113, 112),
        bit(98),
        bits(97, 96),
        bit(91),
        bits(87, 86),
        bits(85, 84),
        bit(83),
        bit(66),
        bits(65, 64),
        bit(47),
        bit(46),
        bits(45, 44),
        bit(43),
        bit(35),
    ],
};

const TERNARY_SUBREGISTER: Index<32> = Index {
    values: [
        0x0, 0x20000, 0x180, 0xa0000, 0x80380, 0x60000, 0x40000, 0x2000, 0x1000, 0xc0000, 0x80000, 0xe0000, 0x6000,
        0x80, 0x4000, 0x3000, 0x5000, 0x7000, 0x100, 0x200, 0x300, 0x280, 0x380, 0xc0380, 0x20100, 0x20180, 0x40180,
        0x80300, 0x80280, 0x60080, 0xa0380, 0x40080,
    ],
    fields: &[bits(119, 115), bits(103, 99), bits(71, 67), bits(55, 51)],
};

impl<const N: usize> Index<N> {
    /// Fills the fields of `word` with the value of this number. Fields for which `skip` is true are left out.
    fn expand(&self, number: u64, word: &mut u128, skip: impl Fn(Bits) -> bool) {
        let mut value = self.values.get(number as usize).copied().unwrap_or(0);
        for field in self.fields.iter().rev() {
            if !skip(*field) {
                field.set(word, value);
            }
            value >>= field.width;
        }
    }

    /// Number of the value with the fields of `word`, fields for which `skip` is true taken as they are in the table.
    fn find(&self, word: u128, skip: impl Fn(Bits) -> bool) -> Option<u64> {
        let mut wanted = 0u64;
        let mut mask = 0u64;
        let mut shift = 0u32;
        for field in self.fields.iter().rev() {
            if !skip(*field) {
                wanted |= field.get(word) << shift;
                mask |= ((1 << field.width) - 1) << shift;
            }
            shift += u32::from(field.width);
        }
        self.values.iter().position(|value| value & mask == wanted).map(|number| number as u64)
    }
}

// ISA-030, ISA-031.
const BREAKPOINT: Bits = bit(7);
const DST: Bits = bits(23, 16);
const CONTROL_INDEX: Bits = bits(28, 24);
const TYPE_OR_SOURCE_INDEX: Bits = bits(34, 30);
const SUB_INDEX: Bits = bits(39, 35);
const SRC0: Bits = bits(47, 40);
const SRC0_INDEX: Bits = bits(51, 48);
const SRC1_INDEX: Bits = bits(55, 52);
const SRC1: Bits = bits(63, 56);
const SHORT_IMMEDIATE: Bits = bits(63, 52);
const SRC2: Bits = bits(55, 48);

/// True for fields of the subregister of source 1, which an immediate replaces.
fn is_src1_sub(field: Bits) -> bool {
    field == fields::SOURCES[1].sub
}

/// True for opcodes with three sources.
fn is_ternary(code: u8) -> bool {
    use super::table::Format::{Bfn, Dpas, Ternary};
    super::table::by_code(code).is_some_and(|row| matches!(row.format, Ternary | Bfn | Dpas))
}

/// Expands a 64-bit instruction to 128 bits. The result keeps the bit that marks it as compacted. ISA-030 to ISA-034.
pub fn expand(compact: u64) -> u128 {
    let from = u128::from(compact);
    let mut word = 0;
    for field in [fields::OPCODE, fields::SWSB] {
        field.set(&mut word, field.get(from));
    }
    fields::BREAKPOINT.set(&mut word, BREAKPOINT.get(from));
    fields::COMPACTED.set(&mut word, 1);
    fields::DST_REG.set(&mut word, DST.get(from));
    if is_ternary(fields::OPCODE.get8(from)) {
        TERNARY_CONTROL.expand(CONTROL_INDEX.get(from), &mut word, |_| false);
        TERNARY_SOURCE.expand(TYPE_OR_SOURCE_INDEX.get(from), &mut word, |_| false);
        TERNARY_SUBREGISTER.expand(SUB_INDEX.get(from), &mut word, |_| false);
        for (source, field) in fields::TERNARY.iter().zip([SRC0, SRC1, SRC2]) {
            source.reg.set(&mut word, field.get(from));
        }
        return word;
    }
    CONTROL.expand(CONTROL_INDEX.get(from), &mut word, |_| false);
    DATA_TYPE.expand(TYPE_OR_SOURCE_INDEX.get(from), &mut word, |_| false);
    SUBREGISTER.expand(SUB_INDEX.get(from), &mut word, |_| false);
    SOURCE0.expand(SRC0_INDEX.get(from), &mut word, |_| false);
    fields::SOURCES[0].reg.set(&mut word, SRC0.get(from));
    if let Some(ty) = immediate_type(word) {
        fields::IMMEDIATE.set(&mut word, u64::from(widen(SHORT_IMMEDIATE.get(from) as u32, ty)));
    } else {
        SOURCE1.expand(SRC1_INDEX.get(from), &mut word, |_| false);
        fields::SOURCES[1].reg.set(&mut word, SRC1.get(from));
    }
    word
}

/// Type of the immediate, if a source is one.
fn immediate_type(word: u128) -> Option<Type> {
    let [first, second] = &fields::SOURCES;
    let code = if first.immediate.is_set(word) {
        first.ty.get8(word)
    } else if second.immediate.is_set(word) {
        second.ty.get8(word)
    } else {
        return None;
    };
    Some(Type::from_immediate_code(code).unwrap_or(Type::Ud))
}

/// The 32-bit immediate of a 12-bit one. ISA-034.
fn widen(value: u32, ty: Type) -> u32 {
    match ty {
        Type::F => value << 20,
        Type::Hf | Type::Bf => value << 4 | value << 20,
        Type::Uw => value | value << 16,
        Type::W => {
            let extended = (value << 20) as i32 >> 20;
            let word = extended as u32 & 0xffff;
            word | word << 16
        }
        Type::D => ((value << 20) as i32 >> 20) as u32,
        _ => value,
    }
}

/// Compacts a 128-bit instruction; `None` if it has no 64-bit form.
pub fn compact(word: u128) -> Option<u64> {
    let mut into = 0u128;
    for field in [fields::OPCODE, fields::SWSB] {
        field.set(&mut into, field.get(word));
    }
    BREAKPOINT.set(&mut into, fields::BREAKPOINT.get(word));
    fields::COMPACTED.set(&mut into, 1);
    DST.set(&mut into, fields::DST_REG.get(word));
    if is_ternary(fields::OPCODE.get8(word)) {
        CONTROL_INDEX.set(&mut into, TERNARY_CONTROL.find(word, |_| false)?);
        TYPE_OR_SOURCE_INDEX.set(&mut into, TERNARY_SOURCE.find(word, |_| false)?);
        SUB_INDEX.set(&mut into, TERNARY_SUBREGISTER.find(word, |_| false)?);
        for (source, field) in fields::TERNARY.iter().zip([SRC0, SRC1, SRC2]) {
            field.set(&mut into, source.reg.get(word));
        }
    } else {
        let immediate = immediate_type(word);
        let skip = |field| immediate.is_some() && is_src1_sub(field);
        CONTROL_INDEX.set(&mut into, CONTROL.find(word, |_| false)?);
        // With an immediate, the bit of source 1's register file belongs to it.
        let file = |field| immediate.is_some() && field == fields::SOURCES[1].file;
        TYPE_OR_SOURCE_INDEX.set(&mut into, DATA_TYPE.find(word, file)?);
        SUB_INDEX.set(&mut into, SUBREGISTER.find(word, skip)?);
        SRC0_INDEX.set(&mut into, SOURCE0.find(word, |_| false)?);
        SRC0.set(&mut into, fields::SOURCES[0].reg.get(word));
        if let Some(ty) = immediate {
            let value = fields::IMMEDIATE.get(word) as u32;
            let short = match ty {
                Type::F => value >> 20,
                Type::Hf | Type::Bf => value >> 4 & 0xfff,
                _ => value & 0xfff,
            };
            SHORT_IMMEDIATE.set(&mut into, u64::from(short));
        } else {
            SRC1_INDEX.set(&mut into, SOURCE1.find(word, |_| false)?);
            SRC1.set(&mut into, fields::SOURCES[1].reg.get(word));
        }
    }
    let compact = into as u64;
    let mut marked = word;
    fields::COMPACTED.set(&mut marked, 1);
    (expand(compact) == marked).then_some(compact)
}
