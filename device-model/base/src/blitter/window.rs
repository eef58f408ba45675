// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The currently translated ranges of a surface, with their compression control data. Valid for one step.

use std::ops::Range;

use arctic_sriov::number::size;

use super::{BlitMemory, Compression, Piece};
use crate::memory::{Access, Span, SpanError};

/// Smallest page size. A range starts at a page boundary if possible, to also cover accesses just below the requested
/// address.
const PAGE: u64 = 4096;
/// Maximum length in bytes of a translation request; the result is shorter if the page ends earlier.
const OPEN: usize = 2 << 20;
/// Maximum length in bytes of an access to guest memory that is not directly mapped and is transferred in messages of
/// 4 KiB.
const REMOTE_PIECE: usize = 16 << 10;
/// Cost of a byte of guest memory that is not directly mapped, relative to a mapped byte.
const REMOTE_COST: usize = 32;
/// Fixed cost of an access, added to the cost of its bytes.
const ACCESS_COST: usize = 256;

/// A byte of a surface: its address, and the row of pixels that it is in, modulo a multiple of the number of ranges of the
/// window.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The address.
    pub address: u64,
    /// The row.
    pub row: u64,
}

/// A single row.
impl From<u64> for At {
    #[inline]
    fn from(address: u64) -> Self {
        At { address, row: 0 }
    }
}

/// Translated ranges of an address space, `ROWS` at most. Accesses to different rows do not displace each other's ranges,
/// because consecutive rows are often in different pages. Like its spans, it must not be used after the end of the step.
pub struct Window<'m, M: BlitMemory<'m>, const ROWS: usize = 1> {
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

impl<'m, M: BlitMemory<'m>, const ROWS: usize> Window<'m, M, ROWS> {
    /// Creates an empty window on `space`.
    pub fn new(space: M::Space, access: Access, compressed: bool) -> Self {
        let ranges = [const { Translated { start: 0, span: Span::Null(0), control: None } }; ROWS];
        Window { space, access, compressed, spent: 0, ranges, last: 0 }
    }

    /// Returns the range that contains a byte, after translation of its address if none does, and the byte's offset in it.
    #[inline]
    fn seek(&mut self, memory: &mut M, at: At) -> Result<(&Translated<'m, M>, usize), M::Fault> {
        let own = size(at.row.checked_rem(ROWS as u64).unwrap_or_default());
        let found = [self.last, own].into_iter().find_map(|index| {
            let offset = self.ranges.get(index)?.offset(at.address)?;
            Some((index, offset))
        });
        let (index, offset) = match found {
            Some(found) => found,
            None => (own, self.translate(memory, own, at.address)?),
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
        for start in [address & !(PAGE - 1), address] {
            range.span = Span::Null(0);
            let span = memory.span(self.space, start, OPEN, self.access);
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
    pub fn open(&mut self, memory: &mut M, at: impl Into<At>, len: usize) -> Result<Span<'m>, M::Fault> {
        let (range, offset) = self.seek(memory, at.into())?;
        Ok(range.span.part(offset, if is_remote(&range.span) { len.min(REMOTE_PIECE) } else { len }))
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
    fn each(
        &mut self,
        memory: &mut M,
        at: At,
        len: usize,
        mut work: impl FnMut(Piece<'_, 'm>, Option<&M::Control>, Range<usize>) -> Result<(), SpanError>,
    ) -> Result<(), M::Fault> {
        let mut done = 0_usize;
        while done < len {
            let address = at.address.wrapping_add(done as u64);
            let (range, offset) = self.seek(memory, At { address, ..at })?;
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

    /// Reads pixels, decompressed if the surface is compressed.
    pub fn read(&mut self, memory: &mut M, at: impl Into<At>, data: &mut [u8]) -> Result<(), M::Fault> {
        self.each(memory, at.into(), data.len(), |piece, control, range| {
            let data = data.get_mut(range).unwrap_or_default();
            match control {
                Some(control) => control.read(piece, data),
                None => piece.span.part(piece.offset, data.len()).read(data),
            }
        })
    }

    /// Writes pixels, compressed if the surface is compressed.
    pub fn write(&mut self, memory: &mut M, at: impl Into<At>, data: &[u8]) -> Result<(), M::Fault> {
        self.each(memory, at.into(), data.len(), |piece, control, range| {
            let data = data.get(range).unwrap_or_default();
            match control {
                Some(control) => control.write(piece, data),
                None => piece.span.part(piece.offset, data.len()).write(data),
            }
        })
    }

    /// Decompresses all blocks of the range.
    pub fn resolve(&mut self, memory: &mut M, address: u64, len: usize) -> Result<(), M::Fault> {
        self.each(memory, address.into(), len, |piece, control, range| match control {
            Some(control) => control.resolve(piece, range.len()),
            None => Ok(()),
        })
    }
}
