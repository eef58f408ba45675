// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contents of local memory as a document, which is written and read in pieces: its parts that contain data, and their pages. What
//! is between the parts reads as zeros and is left out.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io::{self, Read, Write};
use std::ops::Range;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

use super::format::{
    DocumentStart, END_BYTES, FormatError, HEADER_BYTES, Kind, Record, SECTION_BYTES, Tag, document_header, end_of,
    section_bytes, section_header, section_of,
};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes that are copied at once: they stay in the cache between the copy and the sum.
const PIECE: usize = 64 << 10;
/// Largest number of parts.
const MOST_PARTS: u32 = 1 << 22;

crate::record! {
    /// A part of memory with data.
    struct PartRecord[b"RUNS", 16] {
        offset: U64,
        len: U64,
    }
}

/// The pages of all parts.
const DATA: Tag = Tag(*b"DATA");

/// Reason why contents cannot be transferred.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// The file or stream cannot be read or written.
    #[error("cannot transfer the saved state: {0}")]
    Io(#[from] io::Error),
    /// The bytes are not contents of such a memory.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Ranges of pages that contain these ranges, ascending and without overlap.
fn pages(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let start = range.start.wrapping_sub(range.start % PAGE);
        let end = range.end.checked_next_multiple_of(PAGE).unwrap_or(range.end);
        match parts.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => parts.push(start..end),
        }
    }
    parts
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Writes the contents of the memory that contains data in `ranges`, ascending. `read` copies the bytes at an offset.
pub fn write_contents(
    out: &mut dyn Write,
    ranges: &[Range<u64>],
    mut read: impl FnMut(u64, &mut [u8]),
) -> io::Result<()> {
    let parts = pages(ranges);
    let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(length(part)));
    let too_many = |_| io::Error::other("more parts of memory than a document can have");
    let count = u32::try_from(parts.len()).map_err(too_many)?;
    let of_data = u32::try_from(bytes / PAGE).map_err(too_many)?;
    let mut begin = Vec::new();
    if count != 0 {
        begin.extend_from_slice(&section_header(PartRecord::TAG, 16, count));
        for part in &parts {
            let record = PartRecord { offset: part.start.into(), len: length(part).into() };
            begin.extend_from_slice(record.as_bytes());
        }
        begin.extend_from_slice(&section_header(DATA, 4096, of_data));
    }
    let total = (HEADER_BYTES.saturating_add(begin.len()).saturating_add(END_BYTES) as u64).saturating_add(bytes);
    let header = document_header(Kind::Memory, total);
    let mut sum = crc32c::crc32c_append(crc32c::crc32c(&header), &begin);
    out.write_all(&header)?;
    out.write_all(&begin)?;
    let mut piece = vec![0; PIECE];
    for part in parts {
        for at in part.clone().step_by(PIECE) {
            let len = usize::try_from(part.end.saturating_sub(at)).unwrap_or(PIECE).min(PIECE);
            let bytes = piece.get_mut(..len).unwrap_or_default();
            read(at, bytes);
            sum = crc32c::crc32c_append(sum, bytes);
            out.write_all(bytes)?;
        }
    }
    out.write_all(&end_of(sum))
}

/// Reads contents of a memory of `size` bytes, and passes the bytes at each offset to `write`. What is not passed is zeros. After
/// an error, a part has been passed.
pub fn read_contents(from: &mut dyn Read, size: u64, mut write: impl FnMut(u64, &[u8])) -> Result<(), ContentsError> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let recorded = DocumentStart::of(&header, Kind::Memory)?.length;
    let mut sum = crc32c::crc32c(&header);
    let mut next = [0; SECTION_BYTES];
    from.read_exact(&mut next)?;
    let mut bytes = 0_u64;
    let mut parts: Vec<Range<u64>> = Vec::new();
    let (tag, record, count) = section_of(&next);
    if tag == PartRecord::TAG {
        sum = crc32c::crc32c_append(sum, &next);
        if usize::from(record) != size_of::<PartRecord>() || count == 0 || count > MOST_PARTS {
            return Err(FormatError::Malformed(PartRecord::TAG).into());
        }
        for _ in 0..count {
            let mut fields = [0; size_of::<PartRecord>()];
            from.read_exact(&mut fields)?;
            sum = crc32c::crc32c_append(sum, &fields);
            let PartRecord { offset, len } =
                PartRecord::read_from_bytes(&fields).map_err(|_| FormatError::Malformed(PartRecord::TAG))?;
            let (start, end) = (offset.get(), offset.get().checked_add(len.get()));
            let least = parts.last().map_or(0, |last| last.end);
            let end = end.filter(|end| start < *end && start >= least && *end <= size);
            let end = end.filter(|end| (start | end).is_multiple_of(PAGE));
            parts.push(start..end.ok_or(FormatError::Malformed(PartRecord::TAG))?);
            bytes = bytes.saturating_add(len.get());
        }
        from.read_exact(&mut next)?;
        if section_of(&next) != (DATA, 4096, u32::try_from(bytes / PAGE).unwrap_or(u32::MAX)) {
            return Err(FormatError::Malformed(DATA).into());
        }
        sum = crc32c::crc32c_append(sum, &next);
        let mut piece = vec![0; PIECE];
        for part in &parts {
            for at in part.clone().step_by(PIECE) {
                let len = usize::try_from(part.end.saturating_sub(at)).unwrap_or(PIECE).min(PIECE);
                let bytes = piece.get_mut(..len).unwrap_or_default();
                from.read_exact(bytes)?;
                sum = crc32c::crc32c_append(sum, bytes);
                write(at, bytes);
            }
        }
        from.read_exact(&mut next)?;
    }
    let mut last = [0; 4];
    from.read_exact(&mut last)?;
    let sections =
        if parts.is_empty() { 0 } else { section_bytes::<PartRecord>(parts.len()).saturating_add(SECTION_BYTES) };
    let found = (HEADER_BYTES.saturating_add(sections).saturating_add(END_BYTES) as u64).saturating_add(bytes);
    if found != recorded {
        return Err(FormatError::Length { found, recorded }.into());
    }
    if [&next[..], &last].concat() != end_of(sum) {
        return Err(FormatError::Sum.into());
    }
    Ok(())
}

/// Reads a document of this kind with at most `most` bytes from the begin of a file or stream.
pub fn read_document(from: &mut dyn Read, kind: Kind, most: u64) -> Result<Vec<u8>, ContentsError> {
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let length = DocumentStart::of(&header, kind)?.length;
    if length > most {
        return Err(FormatError::TooLong(length).into());
    }
    let mut bytes = header.to_vec();
    from.take(length.saturating_sub(HEADER_BYTES as u64)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use super::*;
    use crate::state::format::reseal;

    const SIZE: u64 = 64 * PAGE;

    fn memory() -> (Vec<u8>, Vec<Range<u64>>) {
        let mut memory = vec![0; SIZE as usize];
        let ranges = vec![0..5000, 3 * PAGE..20 * PAGE, 63 * PAGE..SIZE];
        for range in &ranges {
            (range.start..range.end).for_each(|at| memory[at as usize] = (at % 251) as u8 | 1);
        }
        (memory, ranges)
    }

    fn written(memory: &[u8], ranges: &[Range<u64>]) -> Vec<u8> {
        let mut out = Vec::new();
        let read = |at: u64, bytes: &mut [u8]| bytes.copy_from_slice(&memory[at as usize..][..bytes.len()]);
        write_contents(&mut out, ranges, read).unwrap();
        out
    }

    fn restored(bytes: &[u8]) -> Result<Vec<u8>, ContentsError> {
        let mut memory = vec![0; SIZE as usize];
        let write = |at: u64, bytes: &[u8]| memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
        read_contents(&mut &*bytes, SIZE, write)?;
        Ok(memory)
    }

    /// Holes are left out; what is between the parts of a page is not.
    #[test]
    fn contents_are_restored() {
        let (memory, ranges) = memory();
        let bytes = written(&memory, &ranges);
        assert!(bytes.len() < 24 * PAGE as usize, "{}", bytes.len());
        assert_eq!(restored(&bytes).unwrap(), memory);
        let mut sealed = bytes.clone();
        reseal(&mut sealed);
        assert_eq!(sealed, bytes, "length and sum are those of a document");
        assert_eq!(restored(&written(&memory, &[])).unwrap(), vec![0; SIZE as usize]);
    }

    /// Bytes that are changed or missing are refused, and none is written outside of the memory.
    #[test]
    fn changed_contents_are_refused() {
        let (memory, ranges) = memory();
        let bytes = written(&memory, &ranges);
        for at in (0..bytes.len()).step_by(61).chain(0..HEADER_BYTES + 80).filter(|at| !(10..12).contains(at)) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            assert!(restored(&changed).is_err(), "{at}");
            reseal(&mut changed);
            // Data with a right sum are other data, within the memory.
            let _ = restored(&changed);
        }
        for len in (0..bytes.len()).step_by(997) {
            assert!(restored(&bytes[..len]).is_err(), "{len}");
        }
    }
}
