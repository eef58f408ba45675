//! Bounds on what is taken out of one file: a few bytes in a dump may stand for as many as their writer likes.

use std::io::{self, BufRead, BufReader, Read};

use arctic_device_model::decode::Line;
use flate2::read::ZlibDecoder;

use super::ascii85;

/// Bytes of a file that are read.
pub const MOST_OF_FILE: u64 = 1 << 30;
/// Bytes of one object.
const MOST_OF_OBJECT: usize = 256 << 20;
/// Bytes of all objects of a file.
const MOST_OF_ALL: usize = 1 << 30;
/// Dwords of an image, page or message ring, each of which may become a line in memory; drivers make none so large.
const MOST_LISTED: usize = 1 << 18;

/// What may still be taken out of a file.
pub struct Budget {
    object: usize,
    all: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { object: MOST_OF_OBJECT, all: MOST_OF_ALL }
    }
}

/// Dwords of an object, and a note on those that were left out.
pub type Taken = (Vec<u32>, Option<Line>);

impl Budget {
    #[cfg(test)]
    pub(super) fn new(object: usize, all: usize) -> Self {
        Budget { object, all }
    }

    /// The dwords of ascii85. `Err` tells the position of the first character that is none of the code's.
    pub fn ascii85(&mut self, text: &[u8]) -> Result<Taken, usize> {
        let (dwords, more) = ascii85::decode(text, self.most())?;
        Ok(self.take(dwords, more))
    }

    /// The dwords of a zlib stream in ascii85. Of a stream that is damaged there is what comes before the damage.
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
                    return Err(format!("it cannot be unpacked: {error}"));
                }
                Err(_) => break,
            }
        }
        let more = dwords.len() == most && stream.fill_buf().is_ok_and(|rest| !rest.is_empty());
        Ok(self.take(dwords, more))
    }

    /// Dwords of the next object.
    fn most(&self) -> usize {
        self.object.min(self.all) / 4
    }

    fn take(&mut self, dwords: Vec<u32>, more: bool) -> Taken {
        let note = more.then(|| {
            Line::note(format!(
                "the rest is left out: {} MiB of an object and {} MiB of a file are decoded",
                MOST_OF_OBJECT >> 20,
                MOST_OF_ALL >> 20
            ))
        });
        self.all -= dwords.len() * 4;
        (dwords, note)
    }
}

/// The part of an image, page or message ring that is listed; where that is not all, a note is told first.
pub fn listed<'d>(dwords: &'d [u32], tell: &mut dyn FnMut(Line) -> io::Result<()>) -> io::Result<&'d [u32]> {
    match dwords.split_at_checked(MOST_LISTED) {
        Some((listed, rest)) if !rest.is_empty() => {
            tell(Line::note(format!("{} dwords at the end are left out: {MOST_LISTED} are listed", rest.len())))?;
            Ok(listed)
        }
        _ => Ok(dwords),
    }
}
