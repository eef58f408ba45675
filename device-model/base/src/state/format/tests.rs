// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Documents of this version, of earlier and later ones, and bytes that are none.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

use proptest::prelude::*;
use zerocopy::little_endian::{U16, U32};

use super::*;

crate::record! {
    struct First[b"ONE.", 6] {
        number: U32,
        small: U16,
    }

    /// A later version of [`First`].
    struct Later[b"ONE.", 10] {
        number: U32,
        small: U16,
        added: U32,
    }

    struct Other[b"TWO.", 4] {
        value: U32,
    }
}

const TEXT: Tag = Tag(*b"TEXT");
const KNOWN: [Tag; 3] = [First::TAG, Other::TAG, TEXT];

fn document() -> Writer {
    let mut writer = Writer::new(Kind::XeHpgFunction);
    writer.records((1..4).map(|n: u16| First { number: (0x100 + u32::from(n)).into(), small: n.into() }));
    writer.record(Other { value: 7.into() });
    writer.bytes(TEXT, b"hello");
    writer
}

fn read(bytes: &[u8]) -> Result<Document<'_>, FormatError> {
    Document::read(bytes, Kind::XeHpgFunction)
}

/// Returns the bytes with a change, and with the length and the sum of the changed ones.
fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut bytes);
    reseal(&mut bytes);
    bytes
}

fn sectioned(tag: &[u8; 4], flags: u16, record: u16, count: u32, body: &[u8]) -> Vec<u8> {
    let header = [&tag[..], &flags.to_le_bytes(), &record.to_le_bytes(), &count.to_le_bytes()].concat();
    [&header[..], body].concat()
}

/// A document with these sections before its end.
fn with_sections(sections: &[Vec<u8>]) -> Vec<u8> {
    changed(Writer::new(Kind::XeHpgFunction).finish(), |bytes| {
        bytes.splice(HEADER_BYTES..HEADER_BYTES, sections.concat());
    })
}

/// The layout that the module describes; the sum is CRC-32C, of which 0xe3069283 is the check value.
#[test]
fn the_bytes_are_those_of_the_description() {
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    let mut writer = Writer::new(Kind::Memory);
    writer.record(First { number: 0x0102_0304.into(), small: 0x0506.into() });
    let bytes = writer.finish();
    let expected = [
        &b"ARCTICST"[..],
        &[1, 0, 0, 0],
        b"MEMO",
        &[60, 0, 0, 0, 0, 0, 0, 0],
        b"ONE.",
        &[1, 0, 6, 0, 1, 0, 0, 0, 4, 3, 2, 1, 6, 5, 0, 0],
        b"END.",
        &[1, 0, 4, 0, 1, 0, 0, 0],
    ];
    assert_eq!(bytes[..56], expected.concat());
    assert_eq!(bytes[56..], crc32c::crc32c(&bytes[..56]).to_le_bytes());
    assert_eq!(section_bytes::<First>(1), 12 + 8);
}

#[test]
fn what_is_written_is_read() {
    let bytes = document().finish();
    let document = read(&bytes).unwrap();
    let first: Vec<First> = document.records(3).unwrap();
    assert_eq!(
        first.iter().map(|it| (it.number.get(), it.small.get())).collect::<Vec<_>>(),
        [(0x101, 1), (0x102, 2), (0x103, 3)]
    );
    assert_eq!(document.record::<Other>().unwrap().value.get(), 7);
    assert_eq!(document.bytes(TEXT), Ok(&b"hello"[..]));
    assert_eq!(document.check_known(&KNOWN), Ok(()));
    let bytes = Writer::new(Kind::XeHpgFunction).finish();
    let empty = read(&bytes).unwrap();
    assert!(empty.records::<First>(0).unwrap().is_empty() && empty.bytes(TEXT).unwrap().is_empty());
    assert_eq!(empty.record::<Other>().err(), Some(FormatError::Missing(Other::TAG)));
}

/// A section that is empty is left out.
#[test]
fn empty_sections_are_not_written() {
    let mut writer = document();
    writer.bytes(Tag(*b"NONE"), &[]);
    assert_eq!(writer.finish(), document().finish());
}

/// A later version appends fields: this one ignores them. An earlier version has fewer: they are 0.
#[test]
fn records_of_other_versions_are_read() {
    let mut later = Writer::new(Kind::XeHpgFunction);
    later.records([1, 2].map(|n: u32| Later { number: n.into(), small: 3.into(), added: (!0).into() }));
    let bytes = later.finish();
    let first = read(&bytes).unwrap().records::<First>(2).unwrap();
    assert_eq!(first.iter().map(|it| (it.number.get(), it.small.get())).collect::<Vec<_>>(), [(1, 3), (2, 3)]);
    let bytes = document().finish();
    let later = read(&bytes).unwrap().records::<Later>(3).unwrap();
    let values = |it: &Later| (it.number.get(), it.small.get(), it.added.get());
    assert_eq!(later.iter().map(values).collect::<Vec<_>>(), [(0x101, 1, 0), (0x102, 2, 0), (0x103, 3, 0)]);
    // A record may end within a field.
    let bytes = with_sections(&[sectioned(b"ONE.", 1, 5, 1, &[1, 2, 3, 4, 5, 0, 0, 0])]);
    assert_eq!(read(&bytes).unwrap().record::<First>().unwrap().small.get(), 5);
}

/// A section that this version does not know is skipped, or refused by name if it must be known.
#[test]
fn unknown_sections_are_skipped_or_refused() {
    for (flags, expected) in [(0, Ok(())), (1, Err(FormatError::Unknown(Tag(*b"NEW!"))))] {
        let new = sectioned(b"NEW!", flags, 3, 1, &[1, 2, 3, 0]);
        let bytes = changed(document().finish(), |bytes| {
            bytes.splice(HEADER_BYTES..HEADER_BYTES, new);
        });
        let document = read(&bytes).unwrap();
        assert_eq!(document.check_known(&KNOWN), expected);
        assert_eq!(document.record::<Other>().unwrap().value.get(), 7);
        if let Err(error) = expected {
            assert_eq!(error.to_string(), "the saved state needs section NEW!, which this version does not know");
        }
    }
}

/// The order of sections has no meaning.
#[test]
fn sections_may_be_swapped() {
    let bytes = document().finish();
    let (first, others) = (HEADER_BYTES..HEADER_BYTES + 12 + 20, bytes.len() - END_BYTES);
    let swapped = changed(bytes.clone(), |bytes| bytes[HEADER_BYTES..others].rotate_left(first.len()));
    assert_ne!(swapped, bytes);
    let (one, other) = (read(&bytes).unwrap(), read(&swapped).unwrap());
    assert_eq!(one.records::<First>(3).unwrap().as_bytes(), other.records::<First>(3).unwrap().as_bytes());
    assert_eq!(one.bytes(TEXT), other.bytes(TEXT));
    assert!(other.has(Other::TAG));
}

/// A document that is cut off or longer, with and without a right sum.
#[test]
fn a_document_of_another_length_is_refused() {
    let bytes = document().finish();
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).unwrap_err();
        let expected = if len < HEADER_BYTES { "this is not" } else { "the saved state has" };
        assert!(error.to_string().starts_with(expected), "{len}: {error}");
        let sealed = changed(bytes[..len].to_vec(), |_| ());
        // Sections before the end may be missing, but not in part.
        assert!(read(&sealed).is_err(), "{len}");
    }
    let longer = [&bytes[..], &[0; 4]].concat();
    assert_eq!(
        read(&longer).err(),
        Some(FormatError::Length { found: bytes.len() as u64 + 4, recorded: bytes.len() as u64 })
    );
}

#[test]
fn other_documents_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut [u8])| {
        let bytes = changed(document().finish(), |bytes| change(bytes));
        read(&bytes).map(drop)
    };
    assert_eq!(refused(&|bytes| bytes[0] = b'B'), Err(FormatError::Magic));
    assert_eq!(refused(&|bytes| bytes[8] = 2), Err(FormatError::Major(2)));
    assert_eq!(refused(&|bytes| bytes[10] = 9), Ok(()), "a later minor version");
    let error = refused(&|bytes| bytes[12..16].copy_from_slice(b"GEN6")).unwrap_err();
    assert_eq!(error.to_string(), "the saved state is a Gen6 or Gen7 card, not a virtual function of an Xe-HPG card");
    let error = refused(&|bytes| bytes[12] = 0).unwrap_err().to_string();
    assert_eq!(error, "the saved state is of unknown kind \\x00FXE, not a virtual function of an Xe-HPG card");
    let mut bytes = document().finish();
    for at in HEADER_BYTES..bytes.len() {
        bytes[at] ^= 0x10;
        assert_eq!(read(&bytes).err(), Some(FormatError::Sum), "{at}");
        bytes[at] ^= 0x10;
    }
    assert!(read(&bytes).is_ok());
}

#[test]
fn malformed_sections_are_refused() {
    let one = || sectioned(b"TWO.", 0, 4, 1, &[0; 4]);
    let error = |sections: &[Vec<u8>]| read(&with_sections(sections)).map(drop).unwrap_err();
    let malformed = |tag: &[u8; 4]| FormatError::Malformed(Tag(*tag));
    assert_eq!(error(&[one(), one()]), FormatError::Twice(Other::TAG));
    assert_eq!(error(&[sectioned(b"TWO.", 0, 4, 9, &[0; 4])]), malformed(b"TWO."));
    assert_eq!(error(&[sectioned(b"TWO.", 0, u16::MAX, !0, &[0; 4])]), malformed(b"TWO."));
    assert_eq!(error(&[sectioned(b"TWO.", 0, 0, !0, &[0; 4])]), malformed(b"TWO."));
    assert_eq!(error(&[sectioned(b"TWO.", 0, 3, 1, &[1, 1, 1, 1])]), malformed(b"TWO."), "padding");
    assert_eq!(error(&[sectioned(b"END.", 1, 4, 1, &[0; 4])]), malformed(b"END."));
    let many: Vec<Vec<u8>> = (0_u32..300).map(|n| sectioned(&n.to_le_bytes(), 0, 4, 1, &[0; 4])).collect();
    assert_eq!(error(&many), FormatError::TooMany);
    assert!(read(&with_sections(&many[..256])).is_ok());
    // What a section contains is seen when it is asked for.
    let bytes = with_sections(&[sectioned(b"TWO.", 0, 4, 2, &[0; 8]), sectioned(b"ONE.", 0, 0, 8, &[0; 8])]);
    let document = read(&bytes).unwrap();
    assert_eq!(document.record::<Other>().err(), Some(malformed(b"TWO.")));
    assert_eq!(document.records::<Other>(1).err(), Some(malformed(b"TWO.")), "more than there can be");
    assert_eq!(document.records::<First>(9).err(), Some(malformed(b"ONE.")));
    assert_eq!(document.bytes(Other::TAG).err(), Some(malformed(b"TWO.")));
}

proptest! {
    /// No bytes are read beyond the document, and nothing panics.
    #[test]
    fn changed_documents_are_read_or_refused(
        changes in prop::collection::vec((0..120_usize, any::<u8>()), 1..6), cut in 0..120_usize, seal in any::<bool>()
    ) {
        let mut bytes = document().finish();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut / 8));
        if seal {
            reseal(&mut bytes);
        }
        if let Ok(document) = read(&bytes) {
            let _ = document.check_known(&KNOWN);
            prop_assert!(document.records::<First>(usize::MAX).map_or(0, |all| all.len()) <= bytes.len());
            let _ = (document.record::<Other>(), document.bytes(TEXT));
        }
    }
}
