// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The reader of `.rd` command-stream traces (Mesa: `redump.h`, Linux: `msm_rd.c`).

use std::io::Read;

use flate2::read::MultiGzDecoder;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The gzip data is invalid or truncated.
    #[error("the trace cannot be decompressed: {0}")]
    Compression(#[from] std::io::Error),
    /// The file, or its decompressed content, has no bytes.
    #[error("the file is empty: it is not a trace")]
    Empty,
    /// The trace is larger than [`MAX_TRACE_BYTES`].
    #[error("the trace has more than 1 GiB after decompression")]
    TooLarge,
    /// A section is longer than the file, or shorter than its fields.
    #[error("the section at byte {offset} is cut off")]
    Truncated {
        /// Of the section's header, in the decompressed trace.
        offset: usize,
    },
    /// A section with the content of a buffer does not follow a section with the buffer's address.
    #[error("the section at byte {offset} has the content of a buffer, but no address precedes it")]
    ContentsWithoutAddress {
        /// Of the section's header, in the decompressed trace.
        offset: usize,
    },
    /// The length of a buffer's content is not a multiple of 4.
    #[error("the content of the buffer in the section at byte {offset} ends within a dword")]
    PartialDword {
        /// Of the section's header, in the decompressed trace.
        offset: usize,
    },
}

/// One section of a trace, in order; a buffer has two sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Content of memory.
    Buffer {
        /// GPU address.
        address: u64,
        /// Length of the buffer in bytes.
        length: u64,
        /// Its content, which may be shorter.
        words: Vec<u32>,
    },
    /// A buffer of packets that was submitted.
    Commands {
        /// GPU address.
        address: u64,
        /// Length in dwords.
        dword_count: u32,
    },
    /// The GPU's number, such as 630.
    GpuId(u32),
}

/// Largest size of a trace after decompression.
pub const MAX_TRACE_BYTES: u64 = 1 << 30;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Type and length of a section, one dword each.
const SECTION_HEADER_BYTES: usize = 8;

// Section types (`enum rd_sect_type` of Mesa).
const RD_GPUADDR: u32 = 3;
const RD_CMDSTREAM_ADDR: u32 = 6;
const RD_BUFFER_CONTENTS: u32 = 12;
const RD_GPU_ID: u32 = 13;

/// Reads a trace; it may be compressed with gzip, in one member or several (Mesa ends a member after each submit).
///
/// Sections of other types are skipped, also RD_CHIP_ID (14): GPUs of newer traces are named by it alone.
///
/// # Errors
///
/// If the file is empty, too large, not valid gzip data or cut off, or if a buffer's content has no address or ends
/// within a dword.
pub fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return parse(bytes);
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(bytes).take(MAX_TRACE_BYTES + 1).read_to_end(&mut plain)?;
    parse(&plain)
}

/// Parses a trace without compression.
fn parse(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    if bytes.len() as u64 > MAX_TRACE_BYTES {
        return Err(TraceError::TooLarge);
    }
    if bytes.is_empty() {
        return Err(TraceError::Empty);
    }
    let mut records = Vec::new();
    // Address and length of the buffer whose content is expected.
    let mut next_contents = None;
    let mut offset = 0;
    while offset < bytes.len() {
        let truncated = TraceError::Truncated { offset };
        let (Some(section_type), Some(size)) = (word_at(bytes, offset), word_at(bytes, offset + 4)) else {
            return Err(truncated);
        };
        offset += SECTION_HEADER_BYTES;
        // Older writers put a sync marker, two dwords of ones, before each section.
        if (section_type, size) == (u32::MAX, u32::MAX) {
            continue;
        }
        let Some(body) = bytes.get(offset..offset + size as usize) else { return Err(truncated) };
        let header_offset = offset - SECTION_HEADER_BYTES;
        offset += body.len();
        let field = |index: usize| word_at(body, index * 4).ok_or(TraceError::Truncated { offset: header_offset });
        // The high half is missing in traces whose writers recorded 32-bit addresses.
        let address = || Ok::<_, TraceError>(u64::from(field(0)?) | u64::from(field(2).unwrap_or(0)) << 32);
        match section_type {
            RD_GPUADDR => next_contents = Some((address()?, u64::from(field(1)?))),
            RD_CMDSTREAM_ADDR => records.push(Record::Commands { address: address()?, dword_count: field(1)? }),
            RD_BUFFER_CONTENTS => {
                let (address, length) =
                    next_contents.take().ok_or(TraceError::ContentsWithoutAddress { offset: header_offset })?;
                let (dwords, []) = body.as_chunks::<4>() else {
                    return Err(TraceError::PartialDword { offset: header_offset });
                };
                let words = dwords.iter().map(|dword| u32::from_le_bytes(*dword)).collect();
                records.push(Record::Buffer { address, length, words });
            }
            RD_GPU_ID => records.push(Record::GpuId(field(0)?)),
            _ => {}
        }
    }
    Ok(records)
}

fn word_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk::<4>().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn section(section_type: u32, body: &[u32]) -> Vec<u8> {
        let size = u32::try_from(body.len() * 4).unwrap();
        [&[section_type, size], body].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A trace, and its records.
    fn trace() -> (Vec<u8>, [Record; 3]) {
        let sections = [
            section(RD_GPU_ID, &[630]),
            section(RD_GPUADDR, &[0x1000, 8, 2]),
            section(RD_BUFFER_CONTENTS, &[7, 8]),
            section(RD_CMDSTREAM_ADDR, &[0x1000, 2, 2]),
        ];
        let records = [
            Record::GpuId(630),
            Record::Buffer { address: 0x2_0000_1000, length: 8, words: vec![7, 8] },
            Record::Commands { address: 0x2_0000_1000, dword_count: 2 },
        ];
        (sections.concat(), records)
    }

    #[test]
    fn read_gzip_trace_returns_same_records() {
        let (bytes, records) = trace();
        assert_eq!(read(&bytes).unwrap(), records);
        assert_eq!(read(&gzip(&bytes)).unwrap(), records);
        // Two members; a section may begin in the first and end in the second.
        for split in [12, 20] {
            let members = [gzip(&bytes[..split]), gzip(&bytes[split..])].concat();
            assert_eq!(read(&members).unwrap(), records, "split at {split}");
        }
    }

    #[test]
    fn read_skips_sync_markers() {
        let (bytes, records) = trace();
        let marked = [&[0xff; 8], &bytes[..12], &[0xff; 8], &bytes[12..]].concat();
        assert_eq!(read(&marked).unwrap(), records);
    }

    #[test]
    fn read_skips_unknown_section_types() {
        let (bytes, records) = trace();
        let more = [section(14, &[1, 2]), bytes, section(0x1000, &[])].concat();
        assert_eq!(read(&more).unwrap(), records);
    }

    #[test]
    fn read_accepts_32_bit_addresses() {
        let bytes = [
            section(RD_GPUADDR, &[0xf000_1000, 4]),
            section(RD_BUFFER_CONTENTS, &[7]),
            section(RD_CMDSTREAM_ADDR, &[0xf000_1000, 1]),
        ];
        let expected = [
            Record::Buffer { address: 0xf000_1000, length: 4, words: vec![7] },
            Record::Commands { address: 0xf000_1000, dword_count: 1 },
        ];
        assert_eq!(read(&bytes.concat()).unwrap(), expected);
    }

    #[test]
    fn read_truncated_trace_fails() {
        let (bytes, _) = trace();
        assert!(matches!(read(&bytes[..bytes.len() - 1]), Err(TraceError::Truncated { offset: 48 })));
        assert!(matches!(read(&bytes[..52]), Err(TraceError::Truncated { offset: 48 })));
        for (section_type, length) in [(RD_GPUADDR, 1), (RD_CMDSTREAM_ADDR, 1), (RD_GPU_ID, 0)] {
            let short = [section(14, &[]), section(section_type, &[1; 3][..length])].concat();
            assert!(matches!(read(&short), Err(TraceError::Truncated { offset: 8 })), "type {section_type}");
        }
    }

    #[test]
    fn read_contents_without_address_fails() {
        let address = section(RD_GPUADDR, &[0x1000, 4, 0]);
        let contents = section(RD_BUFFER_CONTENTS, &[7]);
        assert!(matches!(read(&contents), Err(TraceError::ContentsWithoutAddress { offset: 0 })));
        // An address is for one content.
        let twice = [address, contents.clone(), contents].concat();
        assert!(matches!(read(&twice), Err(TraceError::ContentsWithoutAddress { offset: 32 })));
    }

    #[test]
    fn read_contents_with_partial_dword_fails() {
        let mut bytes = [section(RD_GPUADDR, &[0x1000, 4, 0]), section(RD_BUFFER_CONTENTS, &[7])].concat();
        bytes.push(0);
        bytes[24] = 5;
        assert!(matches!(read(&bytes), Err(TraceError::PartialDword { offset: 20 })));
    }

    #[test]
    fn read_empty_file_fails() {
        assert!(matches!(read(&[]), Err(TraceError::Empty)));
        assert!(matches!(read(&gzip(&[])), Err(TraceError::Empty)));
    }

    #[test]
    fn read_invalid_gzip_fails() {
        assert!(matches!(read(&[0x1f, 0x8b, 1]), Err(TraceError::Compression(_))));
        let file = gzip(&trace().0);
        assert!(matches!(read(&file[..file.len() - 1]), Err(TraceError::Compression(_))));
    }
}
