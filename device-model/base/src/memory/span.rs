// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A contiguous, bounded range of translated memory, independent of its backing.

use vm_memory::{Bytes, VolatileSlice};

use super::region::Aligned;
use crate::host::{Access, DmaFault, DmaView};

/// Memory covered by one address translation. Must not be used beyond the step that created it.
///
/// An access fails with [`SpanError::TooLong`] before anything is transferred, or with [`SpanError::Dma`] after an unknown
/// part of its bytes was transferred. An access to mapped memory or to a NULL page cannot fail otherwise.
pub enum Span<'m> {
    /// Memory mapped into this process: local memory, or guest memory with a file descriptor.
    Mapped(VolatileSlice<'m>),
    /// A NULL page (PTE bit 9): reads return zeros, writes are dropped.
    Null(usize),
    /// Guest memory that is not mapped into this process. Accesses are requests to the VMM and fail if the VMM does not
    /// map the address.
    Remote {
        /// The function's mappings.
        view: &'m dyn DmaView,
        /// Address of the first byte.
        iova: u64,
        /// Length in bytes.
        len: usize,
    },
}

/// A failed access to a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanError {
    /// The access is longer than the span.
    TooLong,
    /// The VMM does not map the memory for the device, or the transport failed.
    Dma(DmaFault),
}

impl From<DmaFault> for SpanError {
    fn from(fault: DmaFault) -> Self {
        SpanError::Dma(fault)
    }
}

/// A failed copy between two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The source could not be read.
    Source(SpanError),
    /// The destination could not be written.
    Destination(SpanError),
}

/// Size of the bounce buffer for copies whose source or destination is not mapped.
const BOUNCE_BYTES: usize = 4 << 10;
/// Block size of a fill: large enough for few writes, small enough to stay in the L1 cache beside the lines written.
const FILL_BLOCK_BYTES: usize = 4 << 10;
/// Fills up to this length use a block of this size: preparing a large block would cost more than the fill.
const SHORT_FILL_BYTES: usize = 256;

impl<'m> Span<'m> {
    /// Guest memory of `view` at `iova` for `access`: mapped memory, which may be shorter than `len`, or `len` bytes that
    /// are accessed by messages. Does not check that the VMM maps the address: if it does not, the accesses fail. `len` must not be 0.
    #[inline]
    pub fn guest(view: &'m dyn DmaView, iova: u64, len: usize, access: Access) -> Span<'m> {
        debug_assert!(len != 0, "an empty span of guest memory");
        match view.slice(iova, len, access) {
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

    /// The sub-span of at most `len` bytes that starts at `offset`. It is empty if `offset` is not inside the span.
    #[inline]
    pub fn part(&self, offset: usize, len: usize) -> Span<'m> {
        let offset = offset.min(self.len());
        let len = len.min(self.len().saturating_sub(offset));
        match self {
            Span::Mapped(slice) => match slice.subslice(offset, len) {
                Ok(part) => Span::Mapped(part),
                // Cannot occur: the offset and the length are limited to the slice above.
                Err(_) => Span::Null(0),
            },
            Span::Null(_) => Span::Null(len),
            Span::Remote { view, iova, .. } => {
                Span::Remote { view: *view, iova: iova.saturating_add(offset as u64), len }
            }
        }
    }

    /// Fails if an access to the first `len` bytes exceeds the span.
    #[inline]
    fn check(&self, len: usize) -> Result<(), SpanError> {
        if len > self.len() { Err(SpanError::TooLong) } else { Ok(()) }
    }

    /// Reads into `data` from the start of the span. `data` must not be longer than the span.
    pub fn read(&self, data: &mut [u8]) -> Result<(), SpanError> {
        self.check(data.len())?;
        match self {
            Span::Mapped(slice) => slice.read_slice(data, 0).map_err(|_| SpanError::TooLong),
            Span::Null(_) => {
                data.fill(0);
                Ok(())
            }
            Span::Remote { view, iova, .. } => Ok(view.read_remote(*iova, data)?),
        }
    }

    /// Reads into `data` from `offset` on. The bytes must be inside the span.
    #[inline]
    pub fn read_at(&self, offset: usize, data: &mut [u8]) -> Result<(), SpanError> {
        match self {
            Span::Mapped(slice) => slice.read_slice(data, offset).map_err(|_| SpanError::TooLong),
            _ => self.part(offset, data.len()).read(data),
        }
    }

    /// Writes `data` to the start of the span. `data` must not be longer than the span.
    pub fn write(&self, data: &[u8]) -> Result<(), SpanError> {
        self.check(data.len())?;
        match self {
            Span::Mapped(slice) => slice.write_slice(data, 0).map_err(|_| SpanError::TooLong),
            Span::Null(_) => Ok(()),
            Span::Remote { view, iova, .. } => Ok(view.write_remote(*iova, data)?),
        }
    }

    /// Copies the first `len` bytes of this span to `to`; both spans must be that long. A copy to a NULL page does not
    /// read the source.
    ///
    /// Spans of the same kind may overlap. If one is mapped and the other is the same memory through the VMM, the contents
    /// of the destination are unspecified.
    pub fn copy_to(&self, to: &Span<'_>, len: usize) -> Result<(), CopyError> {
        self.check(len).map_err(CopyError::Source)?;
        to.check(len).map_err(CopyError::Destination)?;
        match (self, to) {
            (Span::Mapped(from), Span::Mapped(to)) => {
                let from = from.subslice(0, len).map_err(|_| CopyError::Source(SpanError::TooLong))?;
                let to = to.subslice(0, len).map_err(|_| CopyError::Destination(SpanError::TooLong))?;
                from.copy_to_volatile_slice(to);
                Ok(())
            }
            (_, Span::Null(_)) => Ok(()),
            (Span::Null(_), _) => to.part(0, len).fill(&[0; 16]).map_err(CopyError::Destination),
            _ => self.copy_by_blocks(to, len),
        }
    }

    /// Copies as [`Span::copy_to`], by blocks through a buffer, the last block first if the destination is above the
    /// source: each block is read before an overlapping block of the destination is written.
    fn copy_by_blocks(&self, to: &Span<'_>, len: usize) -> Result<(), CopyError> {
        let last_first = match (self, to) {
            (Span::Remote { iova: from, .. }, Span::Remote { iova: to, .. }) => to > from,
            _ => false,
        };
        let mut buffer = [0_u8; BOUNCE_BYTES];
        let mut copy = |offset: usize| {
            let n = BOUNCE_BYTES.min(len.saturating_sub(offset));
            let block = buffer.get_mut(..n).unwrap_or_default();
            self.part(offset, n).read(block).map_err(CopyError::Source)?;
            to.part(offset, n).write(block).map_err(CopyError::Destination)
        };
        let mut offsets = (0..len).step_by(BOUNCE_BYTES);
        if last_first { offsets.rev().try_for_each(&mut copy) } else { offsets.try_for_each(&mut copy) }
    }

    /// Fills the span with a repeated pattern; an empty pattern has no effect. If the span's length is not a multiple of
    /// the pattern's, the last repetition is truncated.
    pub fn fill(&self, pattern: &[u8]) -> Result<(), SpanError> {
        match self {
            Span::Null(_) => Ok(()),
            _ if pattern.is_empty() => Ok(()),
            _ if self.len() <= SHORT_FILL_BYTES => self.fill_in_blocks::<SHORT_FILL_BYTES>(pattern),
            _ => self.fill_in_blocks::<FILL_BLOCK_BYTES>(pattern),
        }
    }

    /// Fills with writes of up to `N` bytes, or of one pattern if that is longer. `pattern` must not be empty.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the pattern is not empty, and every sum is within the block or the span"
    )]
    fn fill_in_blocks<const N: usize>(&self, pattern: &[u8]) -> Result<(), SpanError> {
        let mut aligned = Aligned([0u8; N]);
        let buffer = &mut aligned.0;
        let block = if pattern.len() > N {
            pattern
        } else {
            let full_patterns = N / pattern.len() * pattern.len();
            let block_len = full_patterns.min(self.len().next_multiple_of(pattern.len()));
            buffer[..pattern.len()].copy_from_slice(pattern);
            repeat_prefix(&mut buffer[..block_len], pattern.len());
            &buffer[..block_len]
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

/// Fills `bytes` with repetitions of their first `len` bytes. No effect if `len` is 0.
#[allow(clippy::arithmetic_side_effects, reason = "every sum is at most the number of bytes")]
#[inline]
pub(crate) fn repeat_prefix(bytes: &mut [u8], len: usize) {
    // The filled part, a multiple of the prefix, is doubled.
    let mut filled = len.min(bytes.len());
    while filled > 0 && filled < bytes.len() {
        let added = filled.min(bytes.len() - filled);
        bytes.copy_within(..added, filled);
        filled += added;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use std::sync::Mutex;

    use vm_memory::VolatileMemory;
    use vm_memory::mmap::MmapRegion;

    use super::*;

    /// Longer than the bounce buffer, and not a multiple of it.
    const LEN: usize = 3 * BOUNCE_BYTES + 1;

    /// Guest memory from address 0 on, of which nothing is mapped into this process.
    struct RemoteMemory(Mutex<Vec<u8>>);

    impl RemoteMemory {
        /// `len` bytes with different values in each block of the bounce buffer.
        fn new(len: usize) -> Self {
            RemoteMemory(Mutex::new(numbered(len)))
        }

        fn span(&self, iova: u64, len: usize) -> Span<'_> {
            Span::guest(self, iova, len, Access::Write)
        }

        fn bytes(&self) -> Vec<u8> {
            self.0.lock().unwrap().clone()
        }
    }

    impl DmaView for RemoteMemory {
        fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
            None
        }

        fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
            let memory = self.0.lock().unwrap();
            let bytes = memory.get(iova as usize..iova as usize + data.len()).ok_or(DmaFault { iova })?;
            data.copy_from_slice(bytes);
            Ok(())
        }

        fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
            let mut memory = self.0.lock().unwrap();
            let bytes = memory.get_mut(iova as usize..iova as usize + data.len()).ok_or(DmaFault { iova })?;
            bytes.copy_from_slice(data);
            Ok(())
        }
    }

    fn numbered(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index % 251) as u8 + 1).collect()
    }

    fn mapped(region: &MmapRegion, data: &[u8]) {
        region.get_slice(0, data.len()).unwrap().write_slice(data, 0).unwrap();
    }

    fn bytes(region: &MmapRegion) -> Vec<u8> {
        let mut data = vec![0; region.len()];
        region.get_slice(0, data.len()).unwrap().read_slice(&mut data, 0).unwrap();
        data
    }

    /// Contract B.9 (fills): a pattern of any length is repeated up to the last byte and not beyond.
    #[test]
    fn fill_repeats_pattern_and_stops_at_end_of_span() {
        const BLOCK: usize = FILL_BLOCK_BYTES;
        let region: MmapRegion = MmapRegion::new(3 * BLOCK).unwrap();
        for len in [1, 15, 255, 256, 257, 4096, BLOCK - 1, BLOCK, BLOCK + 7, 2 * BLOCK + 5] {
            for pattern_len in [1usize, 2, 4, 12, 16, 300] {
                // Odd bytes: none is 0, the value of the bytes around the span.
                let pattern: Vec<u8> = (1..=pattern_len).map(|byte| byte as u8 | 1).collect();
                mapped(&region, &[0; 3 * BLOCK]);
                Span::Mapped(region.get_slice(0, 3 * BLOCK).unwrap()).part(64, len).fill(&pattern).unwrap();
                let data = bytes(&region);
                assert!(data[..64].iter().chain(&data[64 + len..]).all(|byte| *byte == 0), "wrote beyond {len} bytes");
                let wanted = pattern.iter().cycle();
                assert!(data[64..64 + len].iter().zip(wanted).all(|(a, b)| a == b), "{len} bytes of {pattern_len}");
            }
        }
    }

    /// An access that is longer than its span fails and transfers nothing, whatever the backing is.
    #[test]
    fn access_longer_than_span_fails_without_transfer() {
        let region: MmapRegion = MmapRegion::new(64).unwrap();
        mapped(&region, &[7; 64]);
        let remote = RemoteMemory::new(64);
        let short = |index| match index {
            0 => Span::Mapped(region.get_slice(0, 32).unwrap()),
            1 => Span::Null(32),
            _ => remote.span(0, 32),
        };
        for index in 0..3 {
            let (span, long) = (short(index), Span::Null(33));
            let mut data = [9; 33];
            assert_eq!(span.read(&mut data), Err(SpanError::TooLong), "backing {index}");
            assert_eq!(data, [9; 33]);
            assert_eq!(span.write(&data), Err(SpanError::TooLong), "backing {index}");
            assert_eq!(span.copy_to(&long, 33), Err(CopyError::Source(SpanError::TooLong)), "backing {index}");
            assert_eq!(long.copy_to(&span, 33), Err(CopyError::Destination(SpanError::TooLong)), "backing {index}");
        }
        assert_eq!((bytes(&region), remote.bytes()), (vec![7; region.len()], numbered(64)));
    }

    /// A part is limited to its span, and a part from the end on is empty.
    #[test]
    fn part_is_limited_to_span() {
        let (region, remote): (MmapRegion, _) = (MmapRegion::new(64).unwrap(), RemoteMemory::new(64));
        for span in [Span::Mapped(region.get_slice(0, 32).unwrap()), Span::Null(32), remote.span(0, 32)] {
            let parts = [(0, 32), (8, 32), (32, 1), (33, 1), (usize::MAX, 1)];
            assert_eq!(parts.map(|(offset, len)| span.part(offset, len).len()), [32, 24, 0, 0, 0]);
        }
    }

    /// Contract E.2: a copy to a NULL page changes neither side, from memory of either kind.
    #[test]
    fn copy_to_null_page_changes_nothing() {
        let region: MmapRegion = MmapRegion::new(LEN).unwrap();
        mapped(&region, &numbered(LEN));
        let remote = RemoteMemory::new(LEN);
        Span::Mapped(region.get_slice(0, LEN).unwrap()).copy_to(&Span::Null(LEN), LEN).unwrap();
        remote.span(0, LEN).copy_to(&Span::Null(LEN), LEN).unwrap();
        assert_eq!(bytes(&region)[..LEN], numbered(LEN));
        assert_eq!(remote.bytes(), numbered(LEN));
        let mut data = [1; 16];
        Span::Null(LEN).read(&mut data).unwrap();
        assert_eq!(data, [0; 16], "the page kept the data");
    }

    /// Contract E.2: a copy from a NULL page writes zeros, and none beyond the copy.
    #[test]
    fn copy_from_null_page_writes_zeros() {
        let region: MmapRegion = MmapRegion::new(LEN + 1).unwrap();
        mapped(&region, &[7; LEN + 1]);
        let remote = RemoteMemory::new(LEN + 1);
        let last = remote.bytes()[LEN];
        Span::Null(LEN).copy_to(&Span::Mapped(region.get_slice(0, LEN + 1).unwrap()), LEN).unwrap();
        Span::Null(LEN).copy_to(&remote.span(0, LEN + 1), LEN).unwrap();
        for (data, last) in [(bytes(&region), 7), (remote.bytes(), last)] {
            assert!(data[..LEN].iter().all(|byte| *byte == 0));
            assert_eq!(data[LEN], last);
        }
    }

    /// A copy between mapped memory and memory that is not mapped is complete in both directions.
    #[test]
    fn copy_through_bounce_buffer_is_complete() {
        let region: MmapRegion = MmapRegion::new(LEN + 1).unwrap();
        mapped(&region, &[7; LEN + 1]);
        let remote = RemoteMemory::new(2 * LEN);
        let local = Span::Mapped(region.get_slice(0, LEN + 1).unwrap());
        remote.span(5, LEN).copy_to(&local, LEN).unwrap();
        assert_eq!((&bytes(&region)[..LEN], bytes(&region)[LEN]), (&numbered(2 * LEN)[5..5 + LEN], 7));
        local.copy_to(&remote.span(0, 2 * LEN), LEN).unwrap();
        let mut wanted = numbered(2 * LEN);
        wanted.copy_within(5..5 + LEN, 0);
        assert_eq!(remote.bytes(), wanted);
    }

    /// Overlapping spans of the same kind are copied as by memmove, in both directions.
    #[test]
    fn overlapping_spans_of_one_kind_are_copied_as_by_memmove() {
        const DISTANCES: [(usize, usize); 6] =
            [(0, 1), (1, 0), (0, BOUNCE_BYTES), (BOUNCE_BYTES, 0), (0, BOUNCE_BYTES + 1), (BOUNCE_BYTES + 1, 0)];
        for (from, to) in DISTANCES {
            let mut wanted = numbered(2 * LEN);
            wanted.copy_within(from..from + LEN, to);
            let remote = RemoteMemory::new(2 * LEN);
            remote.span(from as u64, LEN).copy_to(&remote.span(to as u64, LEN), LEN).unwrap();
            assert!(remote.bytes() == wanted, "remote, {from} to {to}");
            let region: MmapRegion = MmapRegion::new(2 * LEN).unwrap();
            mapped(&region, &numbered(2 * LEN));
            let span = |at| Span::Mapped(region.get_slice(at, LEN).unwrap());
            span(from).copy_to(&span(to), LEN).unwrap();
            assert!(bytes(&region)[..2 * LEN] == wanted, "mapped, {from} to {to}");
        }
    }

    /// A copy that fails names the side and the first address that could not be accessed.
    #[test]
    fn failed_copy_names_its_side() {
        let remote = RemoteMemory::new(2 * LEN);
        let outside = 2 * LEN as u64;
        let fault = SpanError::Dma(DmaFault { iova: outside });
        let (inside, outside) = (remote.span(0, LEN), remote.span(outside, 1));
        assert_eq!(outside.copy_to(&inside, 1), Err(CopyError::Source(fault)));
        assert_eq!(inside.copy_to(&outside, 1), Err(CopyError::Destination(fault)));
        assert_eq!(remote.bytes(), numbered(2 * LEN));
    }
}
