// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The instruction set: one table of encodings, and the decoder and encoder that derive from it.

mod encoding;
mod instruction;
mod table;

pub use encoding::{Encoding, Field, Slot};
pub use instruction::{DataAddress, Generation, Generations, Instruction, OPS, Op, register};
pub use table::ENCODINGS;

/// No row.
const NONE: u8 = 0xff;
/// Rows that a key selects. The key is bits 31:26 and five bits that depend on the class; see [`key`].
const CANDIDATES: usize = 2;
type Lookup = [[u8; CANDIDATES]; 64 * 32];

/// Returns the low part of the key: the function of a register ALU instruction; otherwise bits 15:12 and bit 0.
const fn low_key(class: u32, word: u32) -> u32 {
    if class >> 1 == 0b10011 { word & 31 } else { (word >> 12 & 15) << 1 | word & 1 }
}

const fn key(word: u32) -> usize {
    let class = word >> 26;
    (class << 5 | low_key(class, word)) as usize
}

const fn build(generation: Generation) -> Lookup {
    let mut lookup = [[NONE; CANDIDATES]; 64 * 32];
    let mut row = 0;
    while row < ENCODINGS.len() {
        let encoding = &ENCODINGS[row];
        let mut index = 0;
        while encoding.generations.has(generation) && index < lookup.len() {
            // A word with this key and the bits of the key that are fixed in the row.
            #[expect(clippy::cast_possible_truncation, reason = "an index below 2,048")]
            let (class, low) = (index as u32 >> 5, index as u32 & 31);
            let (part, part_mask) =
                if class >> 1 == 0b10011 { (low, 31) } else { ((low >> 1) << 12 | low & 1, 0xf001) };
            let (word, known) = (class << 26 | part, 0xfc00_0000 | part_mask);
            if (word ^ encoding.matching) & encoding.mask & known == 0 {
                let mut slot = 0;
                while lookup[index][slot] != NONE {
                    slot += 1; // A third candidate is a compile-time error.
                }
                #[expect(clippy::cast_possible_truncation, reason = "85 rows")]
                let number = row as u8;
                lookup[index][slot] = number;
            }
            index += 1;
        }
        row += 1;
    }
    lookup
}

static LOOKUPS: [Lookup; 3] = [build(Generation::A5), build(Generation::A6), build(Generation::A7)];

const fn build_rows() -> [[u8; OPS]; 3] {
    let mut rows = [[NONE; OPS]; 3];
    let mut generation = 0;
    while generation < 3 {
        let mut row = 0;
        while row < ENCODINGS.len() {
            if ENCODINGS[row].generations.has(Generation::ALL[generation]) {
                #[expect(clippy::cast_possible_truncation, reason = "85 rows")]
                let number = row as u8;
                rows[generation][ENCODINGS[row].op as usize] = number;
            }
            row += 1;
        }
        generation += 1;
    }
    rows
}

static ROWS: [[u8; OPS]; 3] = build_rows();

const fn build_alu_immediate() -> [bool; OPS] {
    let mut ops = [false; OPS];
    let mut row = 0;
    while row < ENCODINGS.len() {
        // `mov` has a shift in the place of the first source.
        if let [Slot::Rep, Slot::Src1, Slot::Dst, Slot::Imm] = slots(&ENCODINGS[row]) {
            ops[ENCODINGS[row].op as usize] = !matches!(ENCODINGS[row].op, Op::MovImm);
        }
        row += 1;
    }
    ops
}

/// The slots of a row with four fields; of another row, only the first.
const fn slots(encoding: &Encoding) -> [Slot; 4] {
    match encoding.fields {
        [a, b, c, d] => [a.slot, b.slot, c.slot, d.slot],
        _ => [Slot::Rep; 4],
    }
}

static ALU_IMMEDIATE: [bool; OPS] = build_alu_immediate();

impl Op {
    /// True for the ALU operations of two operands, of which the second is an immediate.
    pub fn is_alu_immediate(self) -> bool {
        ALU_IMMEDIATE[self as usize]
    }
}

const fn index(generation: Generation) -> usize {
    generation as usize - 5
}

/// Returns the encoding of the word, `None` if the word is no instruction.
pub fn find(word: u32, generation: Generation) -> Option<&'static Encoding> {
    LOOKUPS[index(generation)][key(word)]
        .iter()
        .filter_map(|row| ENCODINGS.get(usize::from(*row)))
        .find(|encoding| word & encoding.mask == encoding.matching)
}

/// Returns the encoding of the operation, `None` if the generation does not have it.
pub fn encoding(op: Op, generation: Generation) -> Option<&'static Encoding> {
    ENCODINGS.get(usize::from(ROWS[index(generation)][op as usize]))
}

/// Decodes a word. `None` if the word is no instruction. Ignored bits do not matter: see [`decode_exact`].
pub fn decode(word: u32, generation: Generation) -> Option<Instruction> {
    let encoding = find(word, generation)?;
    let mut instruction = Instruction::new(encoding.op);
    for field in encoding.fields {
        let value = word >> field.low & field.max();
        #[expect(clippy::cast_possible_truncation, reason = "only immediates have more than five bits")]
        let small = value as u8;
        match field.slot {
            Slot::Rep => instruction.rep = small != 0,
            Slot::Extra => instruction.extra = small,
            Slot::Peek => instruction.peek = small != 0,
            Slot::Preincrement => instruction.preincrement = small != 0,
            Slot::Dst => instruction.dst = small,
            Slot::Src1 => instruction.src1 = small,
            Slot::Src2 => instruction.src2 = small,
            Slot::Imm => instruction.imm = value,
        }
    }
    Some(instruction)
}

/// Decodes a word that is exactly the encoding of an instruction: `None` also if a bit is set that the hardware
/// ignores. No instruction text encodes such a word, so it is written as a literal (AFC-013).
pub fn decode_exact(word: u32, generation: Generation) -> Option<Instruction> {
    let encoding = find(word, generation)?;
    (word & encoding.ignored == 0).then(|| decode(word, generation)).flatten()
}

/// Why an instruction has no encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The generation does not have the operation.
    #[error("a{}xx has no such instruction", .0.number())]
    Missing(Generation),
    /// The operand does not fit, or the operation does not have it.
    #[error("operand {slot:?} is {value:#x}; at most {max:#x} is possible")]
    Range {
        /// The operand.
        slot: Slot,
        /// Its value.
        value: u32,
        /// The largest value; 0 if the operation does not have the operand.
        max: u32,
    },
}

/// Encodes an instruction.
///
/// # Errors
///
/// If the generation does not have the operation, or an operand does not fit. Nothing is cut off.
pub fn encode(instruction: &Instruction, generation: Generation) -> Result<u32, EncodeError> {
    let encoding = encoding(instruction.op, generation).ok_or(EncodeError::Missing(generation))?;
    let mut word = encoding.matching;
    for (slot, value) in operands(instruction) {
        let field = encoding.field(slot);
        let max = field.map_or(0, Field::max);
        if value > max {
            return Err(EncodeError::Range { slot, value, max });
        }
        word |= value << field.map_or(0, |field| field.low);
    }
    Ok(word)
}

/// All operands with their slots.
fn operands(instruction: &Instruction) -> [(Slot, u32); 8] {
    [
        (Slot::Rep, u32::from(instruction.rep)),
        (Slot::Extra, u32::from(instruction.extra)),
        (Slot::Peek, u32::from(instruction.peek)),
        (Slot::Preincrement, u32::from(instruction.preincrement)),
        (Slot::Dst, u32::from(instruction.dst)),
        (Slot::Src1, u32::from(instruction.src1)),
        (Slot::Src2, u32::from(instruction.src2)),
        (Slot::Imm, instruction.imm),
    ]
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    /// The file from which the table was made (AFC-011).
    #[test]
    fn table_equals_the_published_rows() {
        let text = include_str!("../../tests/data/encodings.tsv");
        let rows: Vec<Vec<&str>> =
            text.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect()).collect();
        assert_eq!(rows.len(), ENCODINGS.len());
        for (row, encoding) in rows.iter().zip(&ENCODINGS) {
            let hex = |column: usize| u32::from_str_radix(row[column], 16).unwrap();
            assert_eq!((hex(3), hex(4), hex(5)), (encoding.matching, encoding.mask, encoding.ignored), "{row:?}");
            let generations: Vec<String> = encoding.generations.iter().map(|g| g.number().to_string()).collect();
            assert_eq!(generations.join(","), row[2], "{row:?}");
            let mut bits: Vec<(u8, u8)> = encoding.fields.iter().map(|field| (field.high, field.low)).collect();
            let mut listed: Vec<(u8, u8)> = (row.get(6).copied().unwrap_or_default())
                .split_whitespace()
                .map(|field| field.split_once('=').unwrap().1)
                .map(|range| range.split_once(':').unwrap_or((range, range)))
                .map(|(high, low)| (high.parse().unwrap(), low.parse().unwrap()))
                .collect();
            bits.sort_unstable();
            listed.sort_unstable();
            assert_eq!(bits, listed, "{row:?}");
        }
    }

    #[test]
    fn every_bit_of_a_row_is_fixed_or_ignored_or_in_one_field() {
        for encoding in &ENCODINGS {
            let mut seen = encoding.mask;
            for part in encoding.fields.iter().map(Field::mask).chain([encoding.ignored]) {
                assert_eq!(seen & part, 0, "{encoding:?}");
                seen |= part;
            }
            // Bits 15:12 of the memory forms that are neither are fixed by the mask.
            assert_eq!(seen, u32::MAX, "{} {seen:08x}", encoding.mnemonic);
            assert_eq!(encoding.matching & !encoding.mask, 0, "{encoding:?}");
        }
    }

    #[test]
    fn no_two_rows_of_a_generation_overlap() {
        let count = |generation| ENCODINGS.iter().filter(|row| row.generations.has(generation)).count();
        assert_eq!(Generation::ALL.map(count), [50, 53, 61]);
        for generation in Generation::ALL {
            let rows: Vec<&Encoding> = ENCODINGS.iter().filter(|row| row.generations.has(generation)).collect();
            for (index, a) in rows.iter().enumerate() {
                for b in &rows[index + 1..] {
                    assert_ne!((a.matching ^ b.matching) & a.mask & b.mask, 0, "{a:?} {b:?}");
                    assert_ne!(a.op, b.op, "{a:?}");
                }
            }
        }
    }

    /// Each field takes each value while the others are all zeros, all ones, or a pattern.
    #[test]
    fn encode_is_the_inverse_of_decode_for_all_values_of_each_field() {
        proves!(AF_006, "decoder and encoder have the encodings of their generation");
        proves!(AF_035, "the decoder accepts ignored bits, and the exact one refuses them");
        for generation in Generation::ALL {
            for encoding in ENCODINGS.iter().filter(|row| row.generations.has(generation)) {
                let free = !encoding.mask & !encoding.ignored;
                for field in encoding.fields {
                    for value in 0..=field.max().min(0xffff) {
                        for others in [0, u32::MAX, 0x5a5a_a5a5] {
                            let word = encoding.matching | others & free & !field.mask() | value << field.low;
                            let instruction = decode_exact(word, generation).unwrap();
                            assert_eq!(instruction.op, encoding.op);
                            assert_eq!(encode(&instruction, generation), Ok(word));
                        }
                    }
                }
                let ignored = encoding.matching | encoding.ignored;
                assert_eq!(decode(ignored, generation), decode(encoding.matching, generation));
                assert_eq!(decode_exact(ignored, generation).is_some(), encoding.ignored == 0);
            }
        }
    }

    /// All words in the long tier; in the quick tier all high halves, with one low half in 1,021.
    #[test]
    fn lookup_finds_the_row_that_a_search_of_the_table_finds() {
        const STEP: usize = if cfg!(feature = "long-tests") { 1 } else { 1021 };
        let check = |generation: Generation| {
            for high in 0..=0xffff_u32 {
                let fits = |row: &&Encoding| {
                    row.generations.has(generation) && (high << 16 ^ row.matching) & row.mask & 0xffff_0000 == 0
                };
                let rows: Vec<&Encoding> = ENCODINGS.iter().filter(fits).collect();
                for low in (0..=0xffff_u32).step_by(STEP) {
                    let word = high << 16 | low;
                    let row = rows.iter().find(|row| word & row.mask == row.matching);
                    let found = find(word, generation);
                    assert_eq!(found.map(|row| row.matching), row.map(|row| row.matching), "{word:08x}");
                    if let Some(instruction) = decode_exact(word, generation) {
                        assert_eq!(encode(&instruction, generation), Ok(word));
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for generation in Generation::ALL {
                scope.spawn(move || check(generation));
            }
        });
    }

    #[test]
    fn operand_that_does_not_fit_is_an_error() {
        let mut instruction = Instruction::new(Op::AddImm);
        instruction.imm = 0x1_2345;
        let error = EncodeError::Range { slot: Slot::Imm, value: 0x1_2345, max: 0xffff };
        assert_eq!(encode(&instruction, Generation::A6), Err(error));
        let bic = Instruction::new(Op::Bic);
        assert_eq!(encode(&bic, Generation::A6), Err(EncodeError::Missing(Generation::A6)));
        let mut peek = Instruction::new(Op::Msb);
        peek.peek = true;
        assert!(matches!(encode(&peek, Generation::A7), Err(EncodeError::Range { slot: Slot::Peek, .. })));
    }

    /// Each of them has the mnemonic of a register form with two sources.
    #[test]
    fn alu_immediates_are_those_of_the_register_forms() {
        let immediates = ENCODINGS.iter().filter(|row| row.op.is_alu_immediate());
        let mut mnemonics: Vec<&str> = immediates.map(|row| row.mnemonic).collect();
        mnemonics.sort_unstable();
        mnemonics.dedup();
        let is_register_form = |row: &&Encoding| {
            row.field(Slot::Src1).is_some() && row.field(Slot::Src2).is_some_and(|field| field.name == "SRC2")
        };
        let registers = ENCODINGS.iter().filter(is_register_form).map(|row| row.mnemonic);
        let mut expected: Vec<&str> = registers.filter(|name| !["mov", "setbit"].contains(name)).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!((mnemonics.len(), mnemonics), (16, expected));
    }

    #[test]
    fn instruction_has_twelve_bytes() {
        assert_eq!(size_of::<Instruction>(), 12);
    }
}
