// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The format of saved state: a document of sections, each with a tag, and a sum at the end.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | magic, `ARCTICST` |
//! | 2, 2 | major and minor version |
//! | 4 | kind of document ([`Kind`]) |
//! | 8 | length of the document in bytes, with the sum |
//! | … | sections, each padded with zeros to a multiple of 4 bytes |
//! | 16 | section `END.` of one record: CRC-32C of all before |
//!
//! A section has a header of 12 bytes: tag (4), flags (2; bit 0: a reader that does not know the section must refuse the
//! document), bytes of a record (2; 0: the section is plain bytes), and number of records or of plain bytes (4). All numbers
//! are little-endian.
//!
//! A record is a structure of fixed width, apart from the types that the model uses. Its fields are only appended: a reader
//! takes the part that it knows of a longer record, and fields that a shorter record does not have are 0, which must mean what
//! the state was before the field existed. A tag occurs once in a document; the order of sections has no meaning.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fmt;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of a document.
const MAGIC: [u8; 8] = *b"ARCTICST";
/// Documents of another major version are refused.
const MAJOR: u16 = 1;
/// Incremented if sections or fields are added. Of no other use than to be shown.
const MINOR: u16 = 0;
/// Flag of a section: must be known.
const REQUIRED: u16 = 1;
/// Largest number of sections of a document, which bounds the search for one of them.
const MOST_SECTIONS: usize = 256;
/// Sections and the document are multiples of this many bytes: a driver transfers dwords.
pub const ALIGNMENT: usize = 4;

/// Tag of a section: four characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(pub [u8; 4]);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// Tag of the last section.
const END: Tag = Tag(*b"END.");

/// What a document contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A virtual function of an Xe-HPG card.
    XeHpgFunction,
    /// A whole Gen6 or Gen7 card.
    Gen6Card,
    /// Contents of local memory.
    Memory,
}

impl Kind {
    const ALL: [(Kind, [u8; 4], &'static str); 3] = [
        (Kind::XeHpgFunction, *b"VFXE", "a virtual function of an Xe-HPG card"),
        (Kind::Gen6Card, *b"GEN6", "a Gen6 or Gen7 card"),
        (Kind::Memory, *b"MEMO", "contents of local memory"),
    ];

    fn code(self) -> [u8; 4] {
        Kind::ALL.iter().find(|(kind, ..)| *kind == self).map_or([0; 4], |(_, code, _)| *code)
    }

    fn of(code: [u8; 4]) -> Option<Kind> {
        Kind::ALL.iter().find(|(_, known, _)| *known == code).map(|(kind, ..)| *kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Kind::ALL.iter().find(|(kind, ..)| kind == self).map_or("", |(.., name)| name))
    }
}

/// A structure of fixed width that a section consists of.
pub trait Record: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned {
    /// Tag of the section.
    const TAG: Tag;
}

/// Defines a [`Record`] with its tag and its width in bytes, which is checked at compile time. The types of its fields are those
/// of `zerocopy::little_endian`, bytes, and arrays of them.
#[macro_export]
macro_rules! record {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident[$tag:literal, $bytes:literal] { $($(#[$of_field:meta])* $field:ident: $type:ty,)* }
    )*) => { $(
        $(#[$meta])*
        #[derive(
            Clone,
            Copy,
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Immutable,
            zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        $vis struct $name { $($(#[$of_field])* pub $field: $type,)* }

        const _: () = assert!(size_of::<$name>() == $bytes);

        impl $crate::state::format::Record for $name {
            const TAG: $crate::state::format::Tag = $crate::state::format::Tag(*$tag);
        }
    )* };
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    major: U16,
    minor: U16,
    kind: [u8; 4],
    length: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SectionHeader {
    tag: [u8; 4],
    flags: U16,
    record: U16,
    count: U32,
}

/// Bytes of the header of a document.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Bytes of the header of a section.
pub const SECTION_BYTES: usize = size_of::<SectionHeader>();
/// Bytes of the section at the end.
pub const END_BYTES: usize = SECTION_BYTES + size_of::<u32>();
const _: () = assert!(HEADER_BYTES == 24 && SECTION_BYTES == 12 && END_BYTES == 16);

/// Bytes of a section of `count` records.
pub const fn section_bytes<R: Record>(count: usize) -> usize {
    SECTION_BYTES.saturating_add(count.saturating_mul(size_of::<R>()).next_multiple_of(ALIGNMENT))
}

/// Reason why bytes are not a document that this version can read. The document has had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The first bytes are not those of a document.
    #[error("this is not saved state of an Arctic card")]
    Magic,
    /// The format has another major version.
    #[error("the saved state has format {0}, this version reads format {MAJOR}")]
    Major(u16),
    /// The document is of another kind.
    #[error("the saved state is {}, not {wanted}", Shown(.found))]
    Kind {
        /// The code of its kind.
        found: [u8; 4],
        /// The kind that is read.
        wanted: Kind,
    },
    /// There are more or fewer bytes than the document says.
    #[error("the saved state has {found} bytes, not the {recorded} of its header")]
    Length {
        /// Number of bytes.
        found: u64,
        /// Number that the document says.
        recorded: u64,
    },
    /// The document is longer than one of its kind can be.
    #[error("the saved state has {0} bytes, more than any card")]
    TooLong(u64),
    /// The sum is wrong.
    #[error("the saved state is damaged: its sum is wrong")]
    Sum,
    /// A section extends beyond the document, or its records have no valid size.
    #[error("section {0} of the saved state is malformed")]
    Malformed(Tag),
    /// A section occurs twice.
    #[error("the saved state has section {0} twice")]
    Twice(Tag),
    /// There are more sections than a document can have.
    #[error("the saved state has too many sections")]
    TooMany,
    /// A section that must be known is not known.
    #[error("the saved state needs section {0}, which this version does not know")]
    Unknown(Tag),
    /// A section is missing.
    #[error("the saved state has no section {0}")]
    Missing(Tag),
}

/// The code of a kind, as text.
struct Shown<'a>(&'a [u8; 4]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Kind::of(*self.0) {
            Some(kind) => write!(f, "{kind}"),
            None => write!(f, "of unknown kind {}", self.0.escape_ascii()),
        }
    }
}

/// Writes a document.
pub struct Writer {
    kind: Kind,
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty document of this kind.
    pub fn new(kind: Kind) -> Writer {
        Writer { kind, bytes: vec![0; HEADER_BYTES] }
    }

    /// Adds a section of records that a reader must know, if there are any.
    ///
    /// # Panics
    /// If there are 2³² records.
    pub fn records<R: Record>(&mut self, records: impl IntoIterator<Item = R>) {
        let start = self.bytes.len();
        self.bytes.resize(start.saturating_add(SECTION_BYTES), 0);
        let mut count = 0_u32;
        for record in records {
            self.bytes.extend_from_slice(record.as_bytes());
            count = count.checked_add(1).expect("a section has fewer records");
        }
        let width = u16::try_from(size_of::<R>()).expect("a record is shorter than 64 KiB");
        self.end_section(start, R::TAG, width, count);
    }

    /// Adds a section of one record.
    pub fn record<R: Record>(&mut self, record: R) {
        self.records([record]);
    }

    /// Adds a section of plain bytes that a reader must know, if there are any.
    ///
    /// # Panics
    /// If there are 4 GiB.
    pub fn bytes(&mut self, tag: Tag, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.resize(start.saturating_add(SECTION_BYTES), 0);
        self.bytes.extend_from_slice(bytes);
        self.end_section(start, tag, 0, u32::try_from(bytes.len()).expect("a section is shorter than 4 GiB"));
    }

    fn end_section(&mut self, start: usize, tag: Tag, record: u16, count: u32) {
        if count == 0 {
            self.bytes.truncate(start);
            return;
        }
        let header = SectionHeader { tag: tag.0, flags: REQUIRED.into(), record: record.into(), count: count.into() };
        write_at(&mut self.bytes, start, &header);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }

    /// The bytes of the document, a multiple of 4.
    pub fn finish(mut self) -> Vec<u8> {
        let length = self.bytes.len().saturating_add(END_BYTES);
        write_at(&mut self.bytes, 0, &header(self.kind, length as u64));
        self.bytes.extend_from_slice(end_header().as_bytes());
        let sum = crc32c::crc32c(&self.bytes);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        self.bytes
    }
}

fn header(kind: Kind, length: u64) -> Header {
    Header { magic: MAGIC, major: MAJOR.into(), minor: MINOR.into(), kind: kind.code(), length: length.into() }
}

fn end_header() -> SectionHeader {
    SectionHeader { tag: END.0, flags: REQUIRED.into(), record: 4.into(), count: 1.into() }
}

fn write_at(bytes: &mut [u8], at: usize, value: &(impl IntoBytes + Immutable)) {
    let value = value.as_bytes();
    if let Some(target) = bytes.get_mut(at..at.saturating_add(value.len())) {
        target.copy_from_slice(value);
    }
}

#[derive(Clone, Copy, Debug)]
struct Section<'b> {
    tag: Tag,
    required: bool,
    /// Bytes of a record; 0: plain bytes.
    record: usize,
    body: &'b [u8],
}

/// A document that was read: its sections, of which only the boundaries have been checked.
#[derive(Debug)]
pub struct Document<'b> {
    sections: Vec<Section<'b>>,
}

impl<'b> Document<'b> {
    /// Reads a document of this kind from exactly these bytes.
    pub fn read(bytes: &'b [u8], kind: Kind) -> Result<Document<'b>, FormatError> {
        let recorded = length_of(bytes, kind)?;
        if recorded != bytes.len() as u64 {
            return Err(FormatError::Length { found: bytes.len() as u64, recorded });
        }
        let Some((summed, sum)) = bytes.split_last_chunk::<4>() else { return Err(FormatError::Magic) };
        if crc32c::crc32c(summed) != u32::from_le_bytes(*sum) {
            return Err(FormatError::Sum);
        }
        let mut rest = summed.get(HEADER_BYTES..).ok_or(FormatError::Malformed(END))?;
        let mut sections: Vec<Section<'b>> = Vec::new();
        loop {
            let (header, behind) = SectionHeader::read_from_prefix(rest).map_err(|_| FormatError::Malformed(END))?;
            let tag = Tag(header.tag);
            if tag == END {
                // Its record is the sum.
                let is_end = behind.is_empty() && header.as_bytes() == end_header().as_bytes();
                return if is_end { Ok(Document { sections }) } else { Err(FormatError::Malformed(END)) };
            }
            let (section, behind) = Section::of(header, behind).ok_or(FormatError::Malformed(tag))?;
            if sections.len() == MOST_SECTIONS {
                return Err(FormatError::TooMany);
            }
            if sections.iter().any(|section| section.tag == tag) {
                return Err(FormatError::Twice(tag));
            }
            sections.push(section);
            rest = behind;
        }
    }

    /// Checks that each section that must be known is one of these.
    pub fn check_known<'t>(&self, known: impl IntoIterator<Item = &'t Tag> + Clone) -> Result<(), FormatError> {
        let unknown = self.sections.iter().filter(|section| section.required);
        let mut unknown = unknown.filter(|section| !known.clone().into_iter().any(|tag| *tag == section.tag));
        unknown.next().map_or(Ok(()), |section| Err(FormatError::Unknown(section.tag)))
    }

    /// Returns whether the document has this section.
    pub fn has(&self, tag: Tag) -> bool {
        self.section(tag).is_some()
    }

    fn section(&self, tag: Tag) -> Option<&Section<'b>> {
        self.sections.iter().find(|section| section.tag == tag)
    }

    /// The records of a section, of which there can be `most`; none if it is missing.
    pub fn records<R: Record>(&self, most: usize) -> Result<Vec<R>, FormatError> {
        let Some(section) = self.section(R::TAG) else { return Ok(Vec::new()) };
        // Also because records may be shorter than here, so the section does not bound the memory that they take.
        if section.record == 0 || section.body.len().checked_div(section.record).is_none_or(|count| count > most) {
            return Err(FormatError::Malformed(R::TAG));
        }
        Ok(section.body.chunks_exact(section.record).map(record_of).collect())
    }

    /// The record of a section that must be there and have one.
    pub fn record<R: Record>(&self) -> Result<R, FormatError> {
        let records = self.records(1)?;
        match <[R; 1]>::try_from(records) {
            Ok([record]) => Ok(record),
            Err(records) if records.is_empty() => Err(FormatError::Missing(R::TAG)),
            Err(_) => Err(FormatError::Malformed(R::TAG)),
        }
    }

    /// The contents of a section of plain bytes; empty if it is missing.
    pub fn bytes(&self, tag: Tag) -> Result<&'b [u8], FormatError> {
        match self.section(tag) {
            None => Ok(&[]),
            Some(section) if section.record == 0 => Ok(section.body),
            Some(_) => Err(FormatError::Malformed(tag)),
        }
    }
}

/// The begin of a document that was read.
pub(super) struct DocumentStart {
    /// Length of the document in bytes, with the sum.
    pub length: u64,
}

impl DocumentStart {
    /// The begin of a document of this kind.
    pub fn of(bytes: &[u8], kind: Kind) -> Result<DocumentStart, FormatError> {
        Ok(DocumentStart { length: length_of(bytes, kind)? })
    }
}

/// The header of a document.
pub(super) fn document_header(kind: Kind, length: u64) -> [u8; HEADER_BYTES] {
    zerocopy::transmute!(header(kind, length))
}

/// The header of a section that must be known.
pub(super) fn section_header(tag: Tag, record: u16, count: u32) -> [u8; SECTION_BYTES] {
    zerocopy::transmute!(SectionHeader {
        tag: tag.0,
        flags: REQUIRED.into(),
        record: record.into(),
        count: count.into()
    })
}

/// Tag, bytes of a record and number of records of a section.
pub(super) fn section_of(header: &[u8; SECTION_BYTES]) -> (Tag, u16, u32) {
    let SectionHeader { tag, flags: _, record, count } = zerocopy::transmute!(*header);
    (Tag(tag), record.get(), count.get())
}

/// The end of a document with this sum of all before the end.
pub(super) fn end_of(sum: u32) -> Vec<u8> {
    let mut end = end_header().as_bytes().to_vec();
    let sum = crc32c::crc32c_append(sum, &end);
    end.extend_from_slice(&sum.to_le_bytes());
    end
}

/// The length that the header of a document of this kind says, with the sum.
pub fn length_of(bytes: &[u8], kind: Kind) -> Result<u64, FormatError> {
    let (header, _) = Header::read_from_prefix(bytes).map_err(|_| FormatError::Magic)?;
    if header.magic != MAGIC {
        return Err(FormatError::Magic);
    }
    if header.major.get() != MAJOR {
        return Err(FormatError::Major(header.major.get()));
    }
    if header.kind != kind.code() {
        return Err(FormatError::Kind { found: header.kind, wanted: kind });
    }
    Ok(header.length.get())
}

/// Makes the length and the sum of a changed document right, as a hostile sender does.
#[doc(hidden)]
pub fn reseal(bytes: &mut [u8]) {
    let length = bytes.len() as u64;
    if let Some(field) = bytes.get_mut(16..HEADER_BYTES) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    if let Some((summed, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = crc32c::crc32c(summed).to_le_bytes();
    }
}

/// The record in these bytes: a longer one is used in part, a shorter one is extended with zeros.
fn record_of<R: Record>(bytes: &[u8]) -> R {
    let mut record = R::new_zeroed();
    record.as_mut_bytes().iter_mut().zip(bytes).for_each(|(field, byte)| *field = *byte);
    record
}

impl<'b> Section<'b> {
    /// The section with this header, and the bytes behind it.
    fn of(header: SectionHeader, behind: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (record, count) = (usize::from(header.record.get()), usize::try_from(header.count.get()).ok()?);
        let len = count.checked_mul(record.max(1))?;
        let (padded, rest) = behind.split_at_checked(len.checked_next_multiple_of(ALIGNMENT)?)?;
        let (body, padding) = padded.split_at_checked(len)?;
        let section = Section { tag: Tag(header.tag), required: header.flags.get() & REQUIRED != 0, record, body };
        padding.iter().all(|byte| *byte == 0).then_some((section, rest))
    }
}

#[cfg(test)]
mod tests;
