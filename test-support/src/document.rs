// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A second implementation of the format of saved state (`arctic_base::state::format`), to look at documents and to change them.

use std::fmt;

/// Bytes of the header of a document, of a section, and of the sum at the end with its header.
const HEADER: usize = 24;
const SECTION: usize = 12;
const END: usize = 16;

/// A document whose parts can be changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Sections {
    /// Magic, version and kind.
    pub begin: [u8; 16],
    /// The sections in their order, without the one at the end.
    pub sections: Vec<Section>,
}

/// A section.
#[derive(Clone, PartialEq, Eq)]
pub struct Section {
    /// Four characters.
    pub tag: [u8; 4],
    /// Bit 0: must be known.
    pub flags: u16,
    /// Bytes of a record; 0: plain bytes.
    pub record: u16,
    /// The records, or the plain bytes.
    pub body: Vec<u8>,
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {:02x?}", self.tag.escape_ascii(), self.record, self.body)
    }
}

impl fmt::Debug for Sections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.sections).finish()
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

impl Sections {
    /// The parts of a document.
    ///
    /// # Panics
    /// If it is none.
    pub fn of(bytes: &[u8]) -> Sections {
        assert_eq!(number(&bytes[16..HEADER]), bytes.len(), "length");
        let (summed, sum) = bytes.split_at(bytes.len() - 4);
        assert_eq!(crc32c(summed).to_le_bytes(), sum, "sum");
        let mut rest = &bytes[HEADER..];
        let mut sections = Vec::new();
        while rest[..4] != *b"END." {
            let (header, behind) = rest.split_at(SECTION);
            let (record, count) = (number(&header[6..8]), number(&header[8..12]));
            let len = count * record.max(1);
            sections.push(Section {
                tag: header[..4].try_into().unwrap(),
                flags: u16::from_le_bytes([header[4], header[5]]),
                record: record as u16,
                body: behind[..len].to_vec(),
            });
            rest = &behind[len.next_multiple_of(4)..];
        }
        assert_eq!(rest.len(), END);
        Sections { begin: bytes[..16].try_into().unwrap(), sections }
    }

    /// The bytes of the document, with its length and its sum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.begin.to_vec();
        bytes.extend([0; 8]);
        for Section { tag, flags, record, body } in &self.sections {
            let count = body.len() / usize::from(*record).max(1);
            bytes.extend(tag);
            bytes.extend(flags.to_le_bytes());
            bytes.extend(record.to_le_bytes());
            bytes.extend((count as u32).to_le_bytes());
            bytes.extend(body);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes.extend(b"END.\x01\0\x04\0\x01\0\0\0");
        let length = bytes.len() as u64 + 4;
        bytes[16..HEADER].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// The section with this tag; `None` if there is none.
    pub fn find(&mut self, tag: &[u8; 4]) -> Option<&mut Section> {
        self.sections.iter_mut().find(|section| section.tag == *tag)
    }

    /// The section with this tag, which must exist.
    pub fn get(&mut self, tag: &[u8; 4]) -> &mut Section {
        self.find(tag).unwrap_or_else(|| panic!("no section {}", tag.escape_ascii()))
    }

    /// Removes the section with this tag.
    pub fn remove(&mut self, tag: &[u8; 4]) {
        self.sections.retain(|section| section.tag != *tag);
    }

    /// Replaces the section with this tag by records of dwords.
    pub fn set_dwords(&mut self, tag: &[u8; 4], records: &[&[u32]]) {
        self.remove(tag);
        let bytes = records.iter().flat_map(|record| record.iter()).flat_map(|dword| dword.to_le_bytes());
        let record = records.first().map_or(4, |record| record.len() * 4) as u16;
        self.sections.push(Section { tag: *tag, flags: 1, record, body: bytes.collect() });
    }
}

impl Section {
    /// The bytes of a record.
    pub fn at(&mut self, index: usize) -> &mut [u8] {
        let width = usize::from(self.record);
        &mut self.body[index * width..][..width]
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.body.len() / usize::from(self.record).max(1)
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Replaces `N` bytes at this offset of a record.
    pub fn put<const N: usize>(&mut self, index: usize, offset: usize, bytes: [u8; N]) {
        self.at(index)[offset..][..N].copy_from_slice(&bytes);
    }
}

/// The sum, bit by bit: the polynomial of Castagnoli, reflected.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut value, mut bit) = (byte as u32, 0);
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
                bit += 1;
            }
            table[byte] = value;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum: u32, byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}
