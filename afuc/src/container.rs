// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Firmware files: the words, the chip, the sections and their packet tables (AF-124, AFC-005..010).

use std::ops::Range;

use crate::isa::Generation;
use crate::names::{ControlSet, PACKET_TABLE};

/// A chip with a known firmware id (AF-007, AFC-005..007).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// Bits 23:12 of the first word.
    pub id: u16,
    /// Name of the file that carries the id.
    pub name: &'static str,
    /// Its control registers, and with them the generation.
    pub set: ControlSet,
}

/// The known ids. The files of a650 and a660 carry 6dd and 6dc (AFC-006).
pub const CHIPS: &[Chip] = &[
    Chip { id: 0x5ff, name: "a530", set: ControlSet::A5 },
    Chip { id: 0x6ee, name: "a630", set: ControlSet::A6 },
    Chip { id: 0x6dd, name: "a650", set: ControlSet::A6 },
    Chip { id: 0x6dc, name: "a660", set: ControlSet::A6 },
    Chip { id: 0x730, name: "a730", set: ControlSet::A7 },
    Chip { id: 0x740, name: "a740", set: ControlSet::A7 },
    Chip { id: 0x520, name: "gen70900 (a750)", set: ControlSet::A7Gen3 },
];

/// Returns the chip with the id in the first word of an image.
pub fn chip(first_word: u32) -> Option<&'static Chip> {
    CHIPS.iter().find(|chip| u32::from(chip.id) == first_word >> 12 & 0xfff)
}

/// Sections begin at multiples of this number of bytes.
pub const SECTION_ALIGN_BYTES: u32 = 32;
/// The same in words.
pub const SECTION_ALIGN_WORDS: usize = SECTION_ALIGN_BYTES as usize / 4;

/// Why a file is no firmware file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// The file has a part of a word at its end.
    #[error("the file has {0} bytes, which is not a multiple of 4: it is cut off, or it is no firmware")]
    Length(usize),
    /// The first word has no known id.
    #[error("the file's id {0:03x} is unknown: name the generation with --gen 5, --gen 6 or --gen 7")]
    Generation(u32),
}

/// A firmware image as the processor sees it, without the leading zero word that the kernel removes (AFC-010).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The words.
    pub words: Vec<u32>,
    /// False if the file does not begin with a zero word.
    pub leading_zero: bool,
    /// Generation and control registers.
    pub set: ControlSet,
}

impl Image {
    /// Reads a file. `generation` is needed if the id is unknown; it overrides that of a known id.
    ///
    /// # Errors
    ///
    /// If the length is not a multiple of 4, or the generation is not known.
    pub fn from_bytes(bytes: &[u8], generation: Option<Generation>) -> Result<Self, ContainerError> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(ContainerError::Length(bytes.len()));
        }
        let mut words: Vec<u32> = chunks.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
        let leading_zero = words.first() == Some(&0);
        if leading_zero {
            words.remove(0);
        }
        let first = words.first().copied().unwrap_or_default();
        let set = match (chip(first), generation) {
            (Some(chip), None) => chip.set,
            (Some(chip), Some(named)) if chip.set.generation() == named => chip.set,
            (Some(_) | None, Some(named)) => ControlSet::of(named),
            (None, None) => return Err(ContainerError::Generation(first >> 12 & 0xfff)),
        };
        Ok(Self { words, leading_zero, set })
    }

    /// The file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let zero = self.leading_zero.then_some(0_u32);
        zero.iter().chain(&self.words).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The generation.
    pub const fn generation(&self) -> Generation {
        self.set.generation()
    }

    /// The chip, if the id is known.
    pub fn chip(&self) -> Option<&'static Chip> {
        self.words.first().and_then(|word| chip(*word))
    }

    /// Finds the sections without executing the image.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections = vec![find_section(&self.words, 0, self.generation(), 0)];
        // A later section follows a table, at a multiple of the alignment, and begins with header words (AFC-009).
        while self.generation() != Generation::A5 && sections.len() < SECTION_NAMES.len() {
            let Some(last) = sections.last_mut() else { break };
            let Some(table) = last.table.clone() else { break };
            let start = last.range.start + table.end;
            let header = |index: usize| self.words.get(start + index).is_some_and(|word| word >> 24 == 1);
            if !start.is_multiple_of(SECTION_ALIGN_WORDS)
                || !(start - last.range.start).is_multiple_of(SECTION_ALIGN_WORDS)
                || !header(0)
                || !header(1)
            {
                break;
            }
            let next = find_section(&self.words, start, self.generation(), sections.len());
            if next.table.is_none() {
                break;
            }
            if let Some(last) = sections.last_mut() {
                last.range.end = start;
            }
            sections.push(next);
        }
        if sections.len() == 2 && self.generation() == Generation::A6 {
            sections[1].name = SECTION_NAMES[2];
        }
        sections
    }
}

/// Section names: BR, BV and LPAC on a7xx; SQE and LPAC on a6xx. The first has none in text.
const SECTION_NAMES: [Option<&str>; 3] = [None, Some("BV"), Some("LPAC")];

/// How word 2 of a section was read (AFC-008, AFC-009).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondWord {
    /// Offset of the packet table in words.
    TableOffset,
    /// Number of words of the image.
    TotalWords,
    /// Neither.
    Unknown,
}

/// A part of an image that has one packet table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name after `.section`; `None` for the first.
    pub name: Option<&'static str>,
    /// Its words in the image.
    pub range: Range<usize>,
    /// Words of the packet table, from the start of the section.
    pub table: Option<Range<usize>>,
    /// How word 2 was read.
    pub second_word: SecondWord,
}

impl Section {
    /// The words before the packet table, or all.
    pub fn code_len(&self) -> usize {
        self.table.as_ref().map_or(self.range.len(), |table| table.start)
    }
}

fn find_section(words: &[u32], start: usize, generation: Generation, number: usize) -> Section {
    let all = &words[start..];
    let second = all.get(1).copied().unwrap_or_default();
    let is_header = number != 0 || second >> 24 == generation.nop_literal(0) >> 24;
    let named = (second & 0x00ff_ffff) as usize;
    let (table, second_word) = if is_header && is_table(all, named) {
        (Some(named), SecondWord::TableOffset)
    } else {
        let total = is_header && named == words.len();
        // The bootstrap of an image finds its table by other means.
        let table = search_table(all, generation);
        (table, if total { SecondWord::TotalWords } else { SecondWord::Unknown })
    };
    let table = table.map(|at| at..at + PACKET_TABLE);
    Section { name: SECTION_NAMES[number], range: start..words.len(), table, second_word }
}

/// True if 128 words at `at` can be a packet table: each is an offset of a word before it.
fn is_table(words: &[u32], at: usize) -> bool {
    at >= 2
        && (words.get(at..).and_then(|rest| rest.get(..PACKET_TABLE)))
            .is_some_and(|table| table.iter().all(|entry| (*entry as usize) < at))
}

/// Searches the first run of words that can only be a packet table. A word below 2^24 is no instruction of a6xx and
/// later; on a5xx it is a NOP with data, so the search is not made.
fn search_table(words: &[u32], generation: Generation) -> Option<usize> {
    if generation == Generation::A5 {
        return None;
    }
    let mut run = 0;
    for (index, word) in words.iter().enumerate() {
        run = if word >> 24 == 0 { run + 1 } else { 0 };
        if run == PACKET_TABLE {
            let at = index + 1 - PACKET_TABLE;
            if is_table(words, at) {
                return Some(at);
            }
            run -= 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    fn image(words: Vec<u32>) -> Image {
        Image { words, leading_zero: true, set: ControlSet::A6 }
    }

    /// `code` words with the header, then a table with the entries `entry`.
    fn section(first: u32, second: u32, code: usize, entry: u32) -> Vec<u32> {
        let mut words = vec![first, second];
        words.resize(code, 0xd800_0000);
        words.resize(code + PACKET_TABLE, entry);
        words
    }

    #[test]
    fn file_of_odd_length_and_unknown_id_are_errors() {
        proves!(AF_107, "a file has little-endian words after a zero word");
        assert_eq!(Image::from_bytes(&[0; 5], None), Err(ContainerError::Length(5)));
        let unknown = [0_u32, 0x0112_3001].map(u32::to_le_bytes).concat();
        assert_eq!(Image::from_bytes(&unknown, None), Err(ContainerError::Generation(0x123)));
        let image = Image::from_bytes(&unknown, Some(Generation::A7)).unwrap();
        assert_eq!((image.generation(), image.words.len(), image.leading_zero), (Generation::A7, 1, true));
        assert_eq!(image.to_bytes(), unknown);
    }

    #[test]
    fn ids_select_generation_and_control_registers() {
        proves!(AF_007, "bits 23:12 of the first word say the chip, and with it generation and control registers");
        proves!(AF_052, "the first word has id and version");
        for (word, set) in [
            (0x005f_f08a, ControlSet::A5),
            (0x016e_e207, ControlSet::A6),
            (0x016d_d112, ControlSet::A6),
            (0x016d_c001, ControlSet::A6),
            (0x0173_0730, ControlSet::A7),
            (0x0174_0001, ControlSet::A7),
            (0x0152_0181, ControlSet::A7Gen3),
        ] {
            assert_eq!(chip(word).map(|chip| chip.set), Some(set));
            let image = Image::from_bytes(&[0, word].map(u32::to_le_bytes).concat(), None).unwrap();
            assert_eq!((image.set, image.generation()), (set, set.generation()));
        }
        assert_eq!((chip(0x016d_d112).map(|chip| chip.name), chip(0x0100_0730)), (Some("a650"), None));
    }

    #[test]
    fn second_word_is_the_table_offset_or_the_total_size() {
        proves!([AF_052, AF_124], "the second word has the offset of the packet table");
        let sections = image(section(0x016e_e001, 0x0100_0028, 0x28, 5)).sections();
        assert_eq!((sections[0].table.clone(), sections[0].second_word), (Some(0x28..0xa8), SecondWord::TableOffset));
        let sections = image(section(0x016d_c001, 0x0100_00a8, 0x28, 5)).sections();
        assert_eq!((sections[0].table.clone(), sections[0].second_word), (Some(0x28..0xa8), SecondWord::TotalWords));
    }

    #[test]
    fn sections_follow_tables() {
        proves!([AF_005, AF_124], "BV and LPAC follow the packet table of the section before, at 32 bytes");
        proves!(AF_004, "the second section of a6xx is LPAC");
        let mut words = section(0x0173_0001, 0x0100_0028, 0x28, 5);
        words.extend(section(0x0100_0001, 0x0100_0030, 0x30, 2));
        words.extend(section(0x0100_0001, 0x0100_0021, 0x21, 2));
        let image = Image { words, leading_zero: true, set: ControlSet::A7 };
        let ranges: Vec<_> = image.sections().iter().map(|section| (section.name, section.range.clone())).collect();
        let length = image.words.len();
        assert_eq!(ranges, [(None, 0..168), (Some("BV"), 168..344), (Some("LPAC"), 344..length)]);
        let two = Image { words: image.words[..344].to_vec(), set: ControlSet::A6, ..image };
        let names: Vec<_> = two.sections().iter().map(|section| section.name).collect();
        assert_eq!(names, [None, Some("LPAC")]);
        let odd = [section(0x016e_e001, 0x0100_0027, 0x27, 5), section(0x0100_0001, 0x0100_0030, 0x30, 2)].concat();
        assert_eq!(Image { words: odd, ..two }.sections().len(), 1);
    }

    #[test]
    fn entry_beyond_the_code_makes_no_table() {
        proves!(AF_124, "a packet table has the offsets of words before it");
        assert_eq!(image(section(0x016e_e001, 0x0100_0028, 0x28, 0x28)).sections()[0].table, None);
        assert_eq!(image(vec![]).sections()[0].range, 0..0);
    }
}
