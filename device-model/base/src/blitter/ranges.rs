// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The currently translated ranges of a surface, with their compression control data. Valid for one step.

use std::ops::Range;

use arctic_sriov::number::size;

use super::{BlitMemory, Compression, Piece};
use crate::memory::{Access, Span, SpanError};

/// Smallest page size. A range starts at a page boundary if possible, to also cover accesses just below the requested
/// address.
const MIN_PAGE_BYTES: u64 = 4096;
/// Maximum length in bytes of a translation request; the result is shorter if the page ends earlier.
const MAX_SPAN_BYTES: usize = 2 << 20;
/// Maximum length in bytes of a span of guest memory that is not directly mapped, as [`TranslatedRanges::open`] returns
/// it. A copy of such a span transfers it in blocks (`BOUNCE_BYTES` of [`crate::memory::span`]).
const MAX_REMOTE_BYTES: usize = 16 << 10;
/// Cost of a byte of guest memory that is not directly mapped, relative to a mapped byte.
const REMOTE_COST: usize = 32;
/// Fixed cost of an access, added to the cost of its bytes.
const ACCESS_COST: usize = 256;

/// A byte of a surface.
#[derive(Clone, Copy, Debug)]
pub struct SurfaceByte {
    /// The address.
    pub address: u64,
    /// Row of pixels, used only to choose the range (row mod `ROWS`). A negative row may be wrapped.
    pub row: u64,
}

/// A byte of memory without rows: row 0.
impl From<u64> for SurfaceByte {
    #[inline]
    fn from(address: u64) -> Self {
        SurfaceByte { address, row: 0 }
    }
}

/// Translated ranges of an address space, `ROWS` at most. Accesses to different rows do not displace each other's ranges,
/// because consecutive rows are often in different pages. Like its spans, it must not be used after the end of the step.
pub struct TranslatedRanges<'m, M: BlitMemory<'m>, const ROWS: usize = 1> {
    space: M::Space,
    access: Access,
    compressed: bool,
    spent: usize,
    ranges: [Translated<'m, M>; ROWS],
    /// Index of the range of the last access.
    last: usize,
}

/// A translated range.
struct Translated<'m, M: BlitMemory<'m>> {
    start: u64,
    span: Span<'m>,
    /// Control data of the span; `None` if the surface or its memory is not compressed.
    control: Option<M::Control>,
}

impl<'m, M: BlitMemory<'m>> Translated<'m, M> {
    /// Offset of an address in the range, if it is inside.
    #[inline]
    fn offset(&self, address: u64) -> Option<usize> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.span.len() as u64).then(|| size(offset))
    }
}

/// Cost of `len` bytes of `span` in bytes of mapped memory.
#[inline]
fn cost(span: &Span<'_>, len: usize) -> usize {
    if is_remote(span) { len.saturating_mul(REMOTE_COST) } else { len }
}

#[inline]
fn is_remote(span: &Span<'_>) -> bool {
    matches!(span, Span::Remote { .. })
}

impl<'m, M: BlitMemory<'m>, const ROWS: usize> TranslatedRanges<'m, M, ROWS> {
    /// Creates an empty set of ranges of `space`.
    pub fn new(space: M::Space, access: Access, compressed: bool) -> Self {
        const { assert!(ROWS != 0, "a row has a range") };
        let ranges = [const { Translated { start: 0, span: Span::Null(0), control: None } }; ROWS];
        TranslatedRanges { space, access, compressed, spent: 0, ranges, last: 0 }
    }

    /// Returns the range that contains a byte, after translation of its address if none does, and the byte's offset in it.
    #[inline]
    fn seek(&mut self, memory: &mut M, at: SurfaceByte) -> Result<(&Translated<'m, M>, usize), M::Fault> {
        let row_index = size(at.row.checked_rem(ROWS as u64).unwrap_or_default());
        let found = [self.last, row_index].into_iter().find_map(|index| {
            let offset = self.ranges.get(index)?.offset(at.address)?;
            Some((index, offset))
        });
        let (index, offset) = match found {
            Some(found) => found,
            None => (row_index, self.translate(memory, row_index, at.address)?),
        };
        self.last = index;
        let fault = self.not_mapped(at.address);
        self.ranges.get(index).map(|range| (range, offset)).ok_or(fault)
    }

    /// Replaces a range by one that contains `address`. Returns the offset of the address in it.
    #[inline(never)]
    fn translate(&mut self, memory: &mut M, index: usize, address: u64) -> Result<usize, M::Fault> {
        let not_mapped = self.not_mapped(address);
        let Some(range) = self.ranges.get_mut(index) else { return Err(not_mapped) };
        // From the start of the page if possible, so that the range also covers accesses just below the address. If the
        // memory of that page is mapped in parts, the part at its start may end before the address.
        for start in [address & !(MIN_PAGE_BYTES - 1), address] {
            // After a fault, the range must not contain addresses of the old translation.
            range.span = Span::Null(0);
            let span = memory.span(self.space, start, MAX_SPAN_BYTES, self.access);
            let span = span.map_err(|fault| M::with_address(fault, address))?;
            // The start is at most the address.
            let offset = address.wrapping_sub(start);
            if offset < span.len() as u64 {
                range.control = match self.compressed {
                    true => {
                        let control = memory.control(self.space, start, span.len(), self.access);
                        control.map_err(|fault| M::with_address(fault, address))?
                    }
                    false => None,
                };
                range.span = span;
                range.start = start;
                return Ok(size(offset));
            }
        }
        Err(not_mapped)
    }

    /// Returns a span of 1 to `len` bytes from a byte on. Accesses through the span bypass compression, and must be
    /// charged.
    #[inline]
    pub fn open(&mut self, memory: &mut M, at: impl Into<SurfaceByte>, len: usize) -> Result<Span<'m>, M::Fault> {
        let (range, offset) = self.seek(memory, at.into())?;
        Ok(range.span.part(offset, if is_remote(&range.span) { len.min(MAX_REMOTE_BYTES) } else { len }))
    }

    /// Cost of the accesses so far, in the unit of a step's budget: the number of bytes that a linear copy processes in
    /// the same time.
    #[inline]
    pub fn spent(&self) -> usize {
        self.spent
    }

    /// Adds the cost of an access to `len` bytes of `span`.
    #[inline]
    pub fn charge(&mut self, span: &Span<'_>, len: usize) {
        self.charge_mapped(cost(span, len));
    }

    /// Adds the cost of an access to `len` bytes of mapped memory.
    #[inline]
    pub fn charge_mapped(&mut self, len: usize) {
        self.spent = self.spent.saturating_add(ACCESS_COST).saturating_add(len);
    }

    /// The fault for an address that the function's VMM does not map.
    pub fn not_mapped(&self, address: u64) -> M::Fault {
        M::not_mapped(self.space, address, self.access)
    }

    /// Splits the `len` bytes from `at` on at translation boundaries and calls `work(piece, control, range)` for each
    /// piece; `range` is relative to `at`. Always inlined: tiled surfaces have rows of few bytes.
    #[inline(always)]
    fn for_each_piece(
        &mut self,
        memory: &mut M,
        at: SurfaceByte,
        len: usize,
        mut work: impl FnMut(Piece<'_, 'm>, Option<&M::Control>, Range<usize>) -> Result<(), SpanError>,
    ) -> Result<(), M::Fault> {
        let mut done = 0_usize;
        while done < len {
            let address = at.address.wrapping_add(done as u64);
            let (range, offset) = self.seek(memory, SurfaceByte { address, ..at })?;
            let n = range.span.len().saturating_sub(offset).min(len.saturating_sub(done));
            let end = done.saturating_add(n);
            let piece = Piece { span: &range.span, start: range.start, offset };
            let cost = cost(&range.span, n);
            work(piece, range.control.as_ref(), done..end).map_err(|_| self.not_mapped(address))?;
            self.charge_mapped(cost);
            done = end;
        }
        Ok(())
    }

    /// Reads pixels, decompressed if the surface is compressed. A fault has the address of the first byte of its piece
    /// (the part within one translation); earlier pieces have been transferred.
    pub fn read(&mut self, memory: &mut M, at: impl Into<SurfaceByte>, data: &mut [u8]) -> Result<(), M::Fault> {
        self.for_each_piece(memory, at.into(), data.len(), |piece, control, range| {
            let data = data.get_mut(range).unwrap_or_default();
            match control {
                Some(control) => control.read(piece, data),
                None => piece.span.part(piece.offset, data.len()).read(data),
            }
        })
    }

    /// Writes pixels, compressed if the surface is compressed. Faults as [`TranslatedRanges::read`].
    pub fn write(&mut self, memory: &mut M, at: impl Into<SurfaceByte>, data: &[u8]) -> Result<(), M::Fault> {
        self.for_each_piece(memory, at.into(), data.len(), |piece, control, range| {
            let data = data.get(range).unwrap_or_default();
            match control {
                Some(control) => control.write(piece, data),
                None => piece.span.part(piece.offset, data.len()).write(data),
            }
        })
    }

    /// Decompresses all blocks of the `len` bytes at `address` in place. No effect on memory without control data. Faults
    /// as [`TranslatedRanges::read`].
    pub fn resolve(&mut self, memory: &mut M, address: u64, len: usize) -> Result<(), M::Fault> {
        self.for_each_piece(memory, address.into(), len, |piece, control, range| match control {
            Some(control) => control.resolve(piece, range.len()),
            None => Ok(()),
        })
    }
}
