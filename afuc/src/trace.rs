// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The reader of `.rd` command-stream traces (AFC-078).

use std::io::Read;

use flate2::read::GzDecoder;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is compressed, but broken.
    #[error("the trace cannot be decompressed: {0}")]
    Compression(#[from] std::io::Error),
    /// The file has no bytes.
    #[error("the file is empty: it is no trace")]
    Empty,
    /// The file is larger than [`LIMIT`].
    #[error("the trace has more than 1 GiB after decompression")]
    Large,
    /// A record is longer than the file, or shorter than its fields.
    #[error("the record at byte {0} is cut off")]
    CutOff(usize),
}

/// A part of a trace, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Content of memory.
    Buffer {
        /// GPU address.
        address: u64,
        /// Bytes that the buffer has.
        length: u64,
        /// Its content, which may be shorter.
        words: Vec<u32>,
    },
    /// A buffer of packets that was submitted.
    Commands {
        /// GPU address.
        address: u64,
        /// Words.
        words: u32,
    },
    /// The GPU's number, such as 630.
    GpuId(u32),
}

/// Largest size of a trace after decompression.
pub const LIMIT: u64 = 1 << 30;

/// Reads a trace; it may be compressed with gzip. Records of other types are skipped.
///
/// # Errors
///
/// If the file is broken or cut off.
pub fn read(file: &[u8]) -> Result<Vec<Record>, TraceError> {
    let mut plain = Vec::new();
    let bytes = if file.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(file).take(LIMIT + 1).read_to_end(&mut plain)?;
        &plain
    } else {
        file
    };
    if bytes.len() as u64 > LIMIT {
        return Err(TraceError::Large);
    }
    if bytes.is_empty() {
        return Err(TraceError::Empty);
    }
    let mut records = Vec::new();
    // The buffer of the content in the next record.
    let mut buffer = (0, 0);
    let mut at = 0;
    while at < bytes.len() {
        let word = |index: usize| word_at(bytes, at + index * 4).ok_or(TraceError::CutOff(at));
        let (kind, size) = (word(0)?, word(1)? as usize);
        // Older writers put a mark of two words before each record.
        if (kind, size) == (u32::MAX, u32::MAX as usize) {
            at += 8;
            continue;
        }
        let body = bytes.get(at + 8..at + 8 + size).ok_or(TraceError::CutOff(at))?;
        let field = |index: usize| word_at(body, index * 4).ok_or(TraceError::CutOff(at));
        // The high half of an address is missing in old traces.
        let address = || Ok::<_, TraceError>(u64::from(field(0)?) | u64::from(field(2).unwrap_or(0)) << 32);
        match kind {
            3 => buffer = (address()?, u64::from(field(1)?)),
            6 => records.push(Record::Commands { address: address()?, words: field(1)? }),
            12 => {
                let words = body.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk)).collect();
                records.push(Record::Buffer { address: buffer.0, length: buffer.1, words });
            }
            13 => records.push(Record::GpuId(field(0)?)),
            _ => {}
        }
        at += 8 + size;
    }
    Ok(records)
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|chunk| u32::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn record(kind: u32, body: &[u32]) -> Vec<u8> {
        let size = u32::try_from(body.len() * 4).unwrap();
        [&[kind, size], body].concat().iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn records_are_read_plain_and_compressed() {
        let file =
            [record(13, &[630]), record(3, &[0x1000, 8, 2]), record(12, &[7, 8]), record(6, &[0x1000, 2, 2])].concat();
        let expected = [
            Record::GpuId(630),
            Record::Buffer { address: 0x2_0000_1000, length: 8, words: vec![7, 8] },
            Record::Commands { address: 0x2_0000_1000, words: 2 },
        ];
        assert_eq!(read(&file).unwrap(), expected);
        let marked = [&[0xff; 8], &file[..12], &[0xff; 8], &file[12..]].concat();
        assert_eq!(read(&marked).unwrap(), expected);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&file).unwrap();
        assert_eq!(read(&encoder.finish().unwrap()).unwrap(), expected);
        assert!(matches!(read(&file[..file.len() - 1]), Err(TraceError::CutOff(48))));
        assert!(matches!(read(&[]), Err(TraceError::Empty)));
        assert!(matches!(read(&[0x1f, 0x8b, 1]), Err(TraceError::Compression(_))));
    }
}
