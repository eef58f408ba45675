// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A contiguous, bounded range of translated memory, independent of its backing.

use vm_memory::{Bytes, VolatileSlice};

use super::region::Aligned;
use crate::host::{DmaFault, DmaView};

/// Memory covered by one address translation. Must not be used beyond the step that created it.
pub enum Span<'m> {
    /// Memory mapped into this process: local memory, or guest memory with a file descriptor.
    Mapped(VolatileSlice<'m>),
    /// A NULL page (PTE bit 9): reads return zeros, writes are dropped.
    Null(usize),
    /// Guest memory without a file descriptor: every access is a message to the VMM.
    Remote {
        /// The function's mappings.
        view: &'m dyn DmaView,
        /// Address of the first byte.
        iova: u64,
        /// Length in bytes.
        len: usize,
    },
}

/// Size of the bounce buffer for copies whose source or destination is not mapped.
const BOUNCE: usize = 4096;
/// Block size of a fill: large enough for few writes, small enough to stay in the L1 cache beside the lines written.
const FILL_BLOCK: usize = 4 << 10;
/// Fills up to this length use a block of this size: preparing a large block would cost more than the fill.
const SHORT_FILL: usize = 256;

impl<'m> Span<'m> {
    /// Guest memory of `view` at `iova`: mapped memory, which may be shorter than `len`, or `len` bytes that are accessed
    /// by messages. `len` must not be 0.
    #[inline]
    pub fn guest(view: &'m dyn DmaView, iova: u64, len: usize) -> Span<'m> {
        match view.slice(iova, len) {
            // Loops over spans would not end with a view that returns an empty slice.
            Some(slice) if !slice.is_empty() => Span::Mapped(slice),
            _ => Span::Remote { view, iova, len },
        }
    }

    /// Length of the span in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Span::Mapped(slice) => slice.len(),
            Span::Null(len) | Span::Remote { len, .. } => *len,
        }
    }

    /// Returns whether the length is 0.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sub-span of at most `len` bytes that starts at `offset`.
    #[inline]
    pub fn part(&self, offset: usize, len: usize) -> Span<'m> {
        let offset = offset.min(self.len());
        let len = len.min(self.len().saturating_sub(offset));
        match self {
            Span::Mapped(slice) => match slice.subslice(offset, len) {
                Ok(part) => Span::Mapped(part),
                Err(_) => Span::Null(0),
            },
            Span::Null(_) => Span::Null(len),
            Span::Remote { view, iova, .. } => {
                Span::Remote { view: *view, iova: iova.saturating_add(offset as u64), len }
            }
        }
    }

    /// Reads into `data` from the start of the span; `data` must not be longer than the span.
    pub fn read(&self, data: &mut [u8]) -> Result<(), DmaFault> {
        match self {
            Span::Mapped(slice) => slice.read_slice(data, 0).map_err(|_| DmaFault { iova: 0 }),
            Span::Null(_) => {
                data.fill(0);
                Ok(())
            }
            Span::Remote { view, iova, .. } => view.read_remote(*iova, data),
        }
    }

    /// Writes `data` to the start of the span; `data` must not be longer than the span.
    pub fn write(&self, data: &[u8]) -> Result<(), DmaFault> {
        match self {
            Span::Mapped(slice) => slice.write_slice(data, 0).map_err(|_| DmaFault { iova: 0 }),
            Span::Null(_) => Ok(()),
            Span::Remote { view, iova, .. } => view.write_remote(*iova, data),
        }
    }

    /// Copies the first `len` bytes of this span to `to`; both spans must be that long. They may overlap.
    pub fn copy_to(&self, to: &Span<'_>, len: usize) -> Result<(), DmaFault> {
        match (self, to) {
            (Span::Mapped(from), Span::Mapped(into)) if from.len() >= len && into.len() >= len => {
                let from = from.subslice(0, len).map_err(|_| DmaFault { iova: 0 })?;
                from.copy_to_volatile_slice(into.subslice(0, len).map_err(|_| DmaFault { iova: 0 })?);
                Ok(())
            }
            (_, Span::Null(_)) => Ok(()),
            (Span::Null(_), _) => to.part(0, len).fill(&[0; 16]),
            _ => {
                let mut bounce = [0u8; BOUNCE];
                let mut done = 0_usize;
                while done < len {
                    let n = BOUNCE.min(len.saturating_sub(done));
                    let bytes = bounce.get_mut(..n).unwrap_or_default();
                    self.part(done, n).read(bytes)?;
                    to.part(done, n).write(bytes)?;
                    done = done.saturating_add(n);
                }
                Ok(())
            }
        }
    }

    /// Fills the span with a repeated pattern. If the span's length is not a multiple of the pattern's, the last
    /// repetition is truncated.
    pub fn fill(&self, pattern: &[u8]) -> Result<(), DmaFault> {
        match self {
            Span::Null(_) => Ok(()),
            _ if pattern.is_empty() => Ok(()),
            _ if self.len() <= SHORT_FILL => self.fill_by::<SHORT_FILL>(pattern),
            _ => self.fill_by::<FILL_BLOCK>(pattern),
        }
    }

    /// Fills with writes of up to `N` bytes, or of one pattern if that is longer.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the pattern is not empty, and every sum is within the block or the span"
    )]
    fn fill_by<const N: usize>(&self, pattern: &[u8]) -> Result<(), DmaFault> {
        let mut aligned = Aligned([0u8; N]);
        let made = &mut aligned.0;
        let block = if pattern.len() > N {
            pattern
        } else {
            // Repeat the pattern as often as it fits, doubling the filled part.
            let unit = N / pattern.len() * pattern.len();
            let wanted = unit.min(self.len().next_multiple_of(pattern.len()));
            made[..pattern.len()].copy_from_slice(pattern);
            let mut ready = pattern.len();
            while ready < wanted {
                let more = ready.min(wanted - ready);
                made.copy_within(..more, ready);
                ready += more;
            }
            &made[..wanted]
        };
        let mut done = 0;
        while done < self.len() {
            let n = block.len().min(self.len() - done);
            self.part(done, n).write(block.get(..n).unwrap_or_default())?;
            done += n;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use vm_memory::VolatileMemory;
    use vm_memory::mmap::MmapRegion;

    use super::*;

    /// Contract B.9 (fills): a pattern of any length is repeated up to the last byte and not beyond.
    #[test]
    fn fill() {
        let region: MmapRegion = MmapRegion::new(3 * FILL_BLOCK).unwrap();
        for len in [1, 15, 255, 256, 257, 4096, FILL_BLOCK - 1, FILL_BLOCK, FILL_BLOCK + 7, 2 * FILL_BLOCK + 5] {
            for pattern in [1usize, 2, 4, 12, 16, 300] {
                let pattern: Vec<u8> = (1..=pattern).map(|byte| byte as u8 | 1).collect();
                let all = region.get_slice(0, 3 * FILL_BLOCK).unwrap();
                all.write_slice(&vec![0; 3 * FILL_BLOCK], 0).unwrap();
                Span::Mapped(all).part(64, len).fill(&pattern).unwrap();
                let mut data = vec![0; 3 * FILL_BLOCK];
                all.read_slice(&mut data, 0).unwrap();
                assert!(data[..64].iter().chain(&data[64 + len..]).all(|byte| *byte == 0), "wrote beyond {len} bytes");
                let wanted = pattern.iter().cycle();
                assert!(data[64..64 + len].iter().zip(wanted).all(|(a, b)| a == b), "{len} bytes of {}", pattern.len());
            }
        }
    }

    /// Contract E.2: a copy from a NULL page writes zeros; a copy to a NULL page is dropped. Both copies are longer
    /// than the bounce buffer.
    #[test]
    fn copies_with_null_pages() {
        const LEN: usize = 3 * BOUNCE + 1;
        let region: MmapRegion = MmapRegion::new(LEN + 1).unwrap();
        let all = region.get_slice(0, LEN + 1).unwrap();
        all.write_slice(&[7; LEN + 1], 0).unwrap();
        Span::Mapped(all).copy_to(&Span::Null(LEN), LEN).unwrap();
        Span::Null(LEN).copy_to(&Span::Mapped(all), LEN).unwrap();
        let mut data = [1; LEN + 1];
        all.read_slice(&mut data, 0).unwrap();
        assert!(data[..LEN].iter().all(|byte| *byte == 0));
        assert_eq!(data[LEN], 7);
    }
}
