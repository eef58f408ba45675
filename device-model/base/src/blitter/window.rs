// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The currently translated range of a surface, with its compression control data. Valid for one step.

use std::ops::Range;

use arctic_sriov::number::size;

use super::{BlitMemory, Compression, Piece};
use crate::host::DmaFault;
use crate::memory::{Access, Span};

/// Smallest page size. A window starts at a page boundary if possible, to also cover accesses just below the requested
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

/// A translated range of an address space. Like its spans, it must not be used after the end of the step.
pub struct Window<'m, M: BlitMemory<'m>> {
    space: M::Space,
    access: Access,
    compressed: bool,
    /// Cost of the accesses so far, in the unit of a step's budget: the number of bytes that a linear copy processes in
    /// the same time.
    pub spent: usize,
    start: u64,
    span: Span<'m>,
    /// Control data of the span; `None` if the surface or its memory is not compressed.
    control: Option<M::Control>,
}

impl<'m, M: BlitMemory<'m>> Window<'m, M> {
    /// Creates an empty window on `space`.
    pub fn new(space: M::Space, access: Access, compressed: bool) -> Self {
        Window { space, access, compressed, spent: 0, start: 0, span: Span::Null(0), control: None }
    }

    /// Moves the window to `address` if the address is outside it. Returns the offset of the address in the window.
    fn seek(&mut self, memory: &mut M, address: u64) -> Result<usize, M::Fault> {
        let offset = address.wrapping_sub(self.start);
        if offset < self.span.len() as u64 {
            return Ok(size(offset));
        }
        for start in [address & !(PAGE - 1), address] {
            self.span = Span::Null(0);
            let span = memory.span(self.space, start, OPEN, self.access);
            let span = span.map_err(|fault| M::with_address(fault, address))?;
            // The start is at most the address.
            let offset = address.wrapping_sub(start);
            if offset < span.len() as u64 {
                self.control = match self.compressed {
                    true => memory.control(self.space, start, span.len(), self.access)?,
                    false => None,
                };
                self.span = span;
                self.start = start;
                return Ok(size(offset));
            }
        }
        Err(self.not_mapped(address))
    }

    /// Returns a span of 1 to `len` bytes at `address`. Accesses through the span bypass compression.
    pub fn open(&mut self, memory: &mut M, address: u64, len: usize) -> Result<Span<'m>, M::Fault> {
        let offset = self.seek(memory, address)?;
        Ok(self.span.part(offset, if self.remote() { len.min(REMOTE_PIECE) } else { len }))
    }

    fn remote(&self) -> bool {
        matches!(self.span, Span::Remote { .. })
    }

    /// Adds the cost of an access to `len` bytes in the window.
    pub fn charge(&mut self, len: usize) {
        let bytes = if self.remote() { len.saturating_mul(REMOTE_COST) } else { len };
        self.spent = self.spent.saturating_add(ACCESS_COST).saturating_add(bytes);
    }

    /// The fault for an address that the function's VMM does not map.
    pub fn not_mapped(&self, address: u64) -> M::Fault {
        M::not_mapped(self.space, address, self.access)
    }

    /// Splits `[address, address + len)` at translation boundaries and calls `work(piece, control, range)` for each
    /// piece; `range` is relative to `address`. Always inlined: tiled surfaces have rows of few bytes.
    #[inline(always)]
    fn each(
        &mut self,
        memory: &mut M,
        address: u64,
        len: usize,
        mut work: impl FnMut(Piece<'_, 'm>, Option<&M::Control>, Range<usize>) -> Result<(), DmaFault>,
    ) -> Result<(), M::Fault> {
        let mut done = 0_usize;
        while done < len {
            let at = address.wrapping_add(done as u64);
            let offset = self.seek(memory, at)?;
            let n = self.span.len().saturating_sub(offset).min(len.saturating_sub(done));
            let end = done.saturating_add(n);
            let piece = Piece { span: &self.span, start: self.start, offset };
            work(piece, self.control.as_ref(), done..end).map_err(|_| self.not_mapped(at))?;
            self.charge(n);
            done = end;
        }
        Ok(())
    }

    /// Reads pixels, decompressed if the surface is compressed.
    pub fn read(&mut self, memory: &mut M, address: u64, data: &mut [u8]) -> Result<(), M::Fault> {
        self.each(memory, address, data.len(), |piece, control, range| {
            let data = data.get_mut(range).unwrap_or_default();
            match control {
                Some(control) => control.read(piece, data),
                None => piece.span.part(piece.offset, data.len()).read(data),
            }
        })
    }

    /// Writes pixels, compressed if the surface is compressed.
    pub fn write(&mut self, memory: &mut M, address: u64, data: &[u8]) -> Result<(), M::Fault> {
        self.each(memory, address, data.len(), |piece, control, range| {
            let data = data.get(range).unwrap_or_default();
            match control {
                Some(control) => control.write(piece, data),
                None => piece.span.part(piece.offset, data.len()).write(data),
            }
        })
    }

    /// Decompresses all blocks of the range.
    pub fn resolve(&mut self, memory: &mut M, address: u64, len: usize) -> Result<(), M::Fault> {
        self.each(memory, address, len, |piece, control, range| match control {
            Some(control) => control.resolve(piece, range.len()),
            None => Ok(()),
        })
    }
}
