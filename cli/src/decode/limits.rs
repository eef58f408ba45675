// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits on the data decoded from one file: a few compressed bytes in a dump may expand to an arbitrary size.

use std::io::{self, BufRead, BufReader, Read};

use arctic_device_model::decode::Line;
use flate2::read::ZlibDecoder;

use super::ascii85;

/// Maximum number of bytes read from a file.
pub const MOST_OF_FILE: u64 = 1 << 30;
/// Maximum decoded size of one object in bytes.
const MOST_OF_OBJECT: usize = 256 << 20;
/// Maximum decoded size of all objects of a file in bytes.
const MOST_OF_ALL: usize = 1 << 30;
/// Maximum number of dwords listed of an image, page or message ring, since each may become a line in memory. Larger
/// than any such object that drivers create.
const MOST_LISTED: usize = 1 << 18;

/// The remaining size that may be decoded from a file.
pub struct Budget {
    object: usize,
    all: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { object: MOST_OF_OBJECT, all: MOST_OF_ALL }
    }
}

/// The dwords of an object, and a note if some were omitted.
pub type Taken = (Vec<u32>, Option<Line>);

impl Budget {
    #[cfg(test)]
    pub(super) fn new(object: usize, all: usize) -> Self {
        Budget { object, all }
    }

    /// Decodes ascii85. `Err` is the position of the first invalid character.
    pub fn ascii85(&mut self, text: &[u8]) -> Result<Taken, usize> {
        let (dwords, more) = ascii85::decode(text, self.most())?;
        Ok(self.take(dwords, more))
    }

    /// Decodes a zlib stream in ascii85. For a damaged stream, the data before the damage is returned.
    pub fn inflated(&mut self, text: &[u8]) -> Result<Taken, String> {
        let (packed, _) =
            ascii85::decode(text, MOST_OF_OBJECT / 4).map_err(|at| format!("no ascii85 at character {at}"))?;
        let packed = ascii85::bytes(&packed);
        let most = self.most();
        let mut stream = BufReader::with_capacity(64 << 10, ZlibDecoder::new(packed.as_slice()));
        let mut dwords = Vec::new();
        let mut dword = [0; 4];
        while dwords.len() < most {
            match stream.read_exact(&mut dword) {
                Ok(()) => dwords.push(u32::from_le_bytes(dword)),
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof && dwords.is_empty() => {
                    return Err(format!("cannot decompress: {error}"));
                }
                Err(_) => break,
            }
        }
        let more = dwords.len() == most && stream.fill_buf().is_ok_and(|rest| !rest.is_empty());
        Ok(self.take(dwords, more))
    }

    /// Takes dwords that are in the file as text.
    pub fn words(&mut self, mut dwords: Vec<u32>) -> Taken {
        let more = dwords.len() > self.most();
        dwords.truncate(self.most());
        self.take(dwords, more)
    }

    /// Maximum number of dwords of the next object.
    fn most(&self) -> usize {
        self.object.min(self.all) / 4
    }

    fn take(&mut self, dwords: Vec<u32>, more: bool) -> Taken {
        let note = more.then(|| {
            Line::note(format!(
                "the rest is omitted: at most {} MiB of an object and {} MiB of a file are decoded",
                MOST_OF_OBJECT >> 20,
                MOST_OF_ALL >> 20
            ))
        });
        self.all -= dwords.len() * 4;
        (dwords, note)
    }
}

/// Returns the leading dwords of an image, page or message ring that are to be listed. If some are omitted, a note is
/// printed first.
pub fn listed<'d>(dwords: &'d [u32], emit: &mut dyn FnMut(Line) -> io::Result<()>) -> io::Result<&'d [u32]> {
    match dwords.split_at_checked(MOST_LISTED) {
        Some((listed, rest)) if !rest.is_empty() => {
            emit(Line::note(format!("{} trailing dwords are omitted: {MOST_LISTED} are listed", rest.len())))?;
            Ok(listed)
        }
        _ => Ok(dwords),
    }
}
