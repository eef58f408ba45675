// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Plain copies from memory to memory, without a buffer.
//!
//! Several pieces are translated before the first of them is copied. A CPU that reads what it has just stored in smaller
//! parts, as results of a translation are, waits until all its earlier stores are complete: between two copies, those to
//! the destination.

use arctic_sriov::number::size;

use super::Rectangle;
use super::cells::{Grid, ROWS, at, is_block};
use crate::blitter::ranges::{SurfaceByte, TranslatedRanges};
use crate::blitter::tiling::{Area, BLOCK_BYTES, Surface, Tiling};
use crate::blitter::{BlitMemory, Progress};
use crate::memory::{Access, CopyError, Span};

/// Maximum number of pieces that are translated before the first is copied.
const BATCH: usize = 32;
/// Maximum number of bytes in one piece of a linear run.
const PIECE: u64 = 1 << 20;
/// Minimum number of contiguous bytes that are worth a piece.
const LONG_RUN: u64 = 128;

/// A piece: both spans, with their addresses. The destination is not shorter.
struct Piece<'m> {
    source: (Span<'m>, u64),
    destination: (Span<'m>, u64),
    /// Progress of the rectangle when the piece is copied.
    done: u64,
}

/// Pieces to copy, in this order. They may overlap.
struct Copies<'m, M: BlitMemory<'m>, const N: usize> {
    from: TranslatedRanges<'m, M, N>,
    into: TranslatedRanges<'m, M, N>,
    pieces: [Option<Piece<'m>>; BATCH],
    len: usize,
}

impl<'m, M: BlitMemory<'m>, const N: usize> Copies<'m, M, N> {
    fn new(space: M::Space) -> Self {
        let (from, into) =
            (TranslatedRanges::new(space, Access::Read, false), TranslatedRanges::new(space, Access::Write, false));
        Copies { from, into, pieces: [const { None }; BATCH], len: 0 }
    }

    /// Cost so far, in the unit of a step's budget.
    fn spent(&self) -> usize {
        self.from.spent().max(self.into.spent())
    }

    fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Adds a piece of 1 to `len` bytes; returns its length. Must not be full.
    fn push(&mut self, memory: &mut M, from: SurfaceByte, to: SurfaceByte, len: usize) -> Result<usize, M::Fault> {
        let destination = self.into.open(memory, to, len)?;
        let source = self.from.open(memory, from, destination.len())?;
        let n = source.len();
        self.into.charge(&destination, n);
        self.from.charge(&source, n);
        if let Some(piece) = self.pieces.get_mut(self.len) {
            *piece = Some(Piece { source: (source, from.address), destination: (destination, to.address), done: 0 });
            self.len = self.len.saturating_add(1);
        }
        Ok(n)
    }

    /// Sets the progress that the last piece makes.
    fn set_progress(&mut self, done: u64) {
        let last = self.len.checked_sub(1).and_then(|last| self.pieces.get_mut(last));
        if let Some(Some(piece)) = last {
            piece.done = done;
        }
    }

    /// Copies the pieces, and adds their progress to `done`.
    fn flush(&mut self, done: &mut u64) -> Result<(), M::Fault> {
        let pieces = self.pieces.get(..self.len).unwrap_or_default();
        self.len = 0;
        for Piece { source: (source, origin), destination: (destination, address), done: more } in
            pieces.iter().flatten()
        {
            source.copy_to(destination, source.len()).map_err(|error| match error {
                CopyError::Source(_) => self.from.not_mapped(*origin),
                CopyError::Destination(_) => self.into.not_mapped(*address),
            })?;
            *done = done.saturating_add(*more);
        }
        Ok(())
    }

    /// Adds the pieces of `len` bytes that are contiguous in both surfaces; copies pieces before if there are too many, which
    /// adds to `done` and sets `first` to 0.
    fn push_run(
        &mut self,
        memory: &mut M,
        (mut from, mut to, mut len): (SurfaceByte, SurfaceByte, usize),
        (first, done): (&mut usize, &mut u64),
    ) -> Result<(), M::Fault> {
        while len > 0 {
            if self.is_full() {
                *first = 0;
                self.flush(done)?;
            }
            let n = self.push(memory, from, to, len)?;
            from.address = from.address.wrapping_add(n as u64);
            to.address = to.address.wrapping_add(n as u64);
            len = len.saturating_sub(n);
        }
        Ok(())
    }

    /// Adds the pieces of a cell of the destination from the same part of the source. `alike`: whole blocks are copied as
    /// they are in memory, else the runs of rows that are contiguous in both surfaces. The progress is 1. After a fault, the
    /// cell has no pieces.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    fn push_cell(
        &mut self,
        memory: &mut M,
        (surface, part): (&Surface, &Area),
        (destination, cell): (&Surface, &Area),
        alike: bool,
        done: &mut u64,
    ) -> Result<(), M::Fault> {
        let mut first = self.len;
        let mut push = |source: (i64, i64), target: (i64, i64), len| {
            let run = (at(surface, source.0, source.1), at(destination, target.0, target.1), len);
            let pushed = self.push_run(memory, run, (&mut first, &mut *done));
            if pushed.is_err() {
                self.len = first.min(self.len);
            }
            pushed
        };
        if alike && is_block(destination, cell) && is_block(surface, part) {
            push((part.column, part.row), (cell.column, cell.row), BLOCK_BYTES)?;
        } else {
            for row in 0..i64::from(cell.height) {
                let mut column = 0;
                while column < i64::from(cell.width) {
                    let (source, target) = (part.column + column, cell.column + column);
                    let left = i64::from(cell.width) - column;
                    let run = surface.run(source).min(destination.run(target)).min(left.unsigned_abs());
                    push((source, part.row + row), (target, cell.row + row), size(run))?;
                    column += run as i64;
                }
            }
        }
        self.set_progress(1);
        Ok(())
    }
}

/// Whether surfaces of these layouts are copied by their runs, or blocks as they are in memory.
pub(super) fn is_direct(from: &Tiling, to: &Tiling) -> bool {
    from.run().min(to.run()) >= LONG_RUN
}

impl Rectangle {
    /// Copies the pixels of a linear surface, from a column and row on, to another; contiguous rows are one run.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    pub(super) fn copy_linear<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
        (surface, first, top): (&Surface, i64, i64),
    ) -> Result<Progress, M::Fault> {
        let merged = self.is_merged(&self.destination) && self.is_merged(surface);
        let (mut copies, total) = (Copies::<M, 1>::new(space), self.bytes());
        while self.done < total {
            let (mut ahead, mut fault) = (self.done, None);
            while ahead < total && !copies.is_full() && fault.is_none() {
                let spent = copies.spent();
                if spent >= budget && spent > 0 {
                    break;
                }
                let (column, row, len) = self.run(ahead, merged, budget.saturating_sub(spent).min(size(PIECE)));
                let origin = surface.address(first + column, top + row);
                let address = self.destination.address(self.area.column + column, self.area.row + row);
                match copies.push(memory, origin.into(), address.into(), len) {
                    Ok(n) => {
                        ahead += n as u64;
                        copies.set_progress(n as u64);
                    }
                    Err(error) => fault = Some(error),
                }
            }
            if fault.is_none() && ahead == self.done {
                return Ok(Progress::More);
            }
            copies.flush(&mut self.done)?;
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(Progress::Done)
    }

    /// Copies the pixels of `surface` by runs that are long in both surfaces, cell by cell. A byte is read before it is
    /// overwritten unless the source precedes the destination in the same memory.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    pub(super) fn copy_runs<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
        surface: &Surface,
    ) -> Result<Progress, M::Fault> {
        let mut copies = Copies::<M, ROWS>::new(space);
        let grid = Grid::new(self);
        let alike = surface.tiling == self.destination.tiling;
        let mut next = self.done;
        let mut fault = None;
        while next < grid.len() && fault.is_none() {
            let spent = copies.spent();
            if spent >= budget && spent > 0 {
                break;
            }
            let (cell, part) = grid.cell(next);
            let pushed = copies.push_cell(memory, (surface, &part), (&self.destination, &cell), alike, &mut self.done);
            match pushed {
                Ok(()) => next += 1,
                Err(error) => fault = Some(error),
            }
        }
        copies.flush(&mut self.done)?;
        match fault {
            Some(fault) => Err(fault),
            None if next < grid.len() => Ok(Progress::More),
            None => Ok(Progress::Done),
        }
    }
}
