// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resumable copy, fill and resolve of a rectangle.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod cells;
mod direct;
mod linear;

use super::ranges::TranslatedRanges;
use super::raster::Raster;
use super::tiling::{Area, Surface, Tiling};
use super::{BlitMemory, Progress};
use crate::memory::Access;

/// Source of a rectangle's pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Pixels of a surface, starting at this column (in bytes) and row.
    Surface {
        /// The surface.
        surface: Surface,
        /// Column of the corner, in bytes.
        column: i64,
        /// Row of the corner.
        row: i64,
    },
    /// A solid colour.
    Colour {
        /// The bytes of a pixel; those from `cpp` on are unused.
        pixel: [u8; 16],
        /// Bytes per pixel, 1 to 16.
        cpp: usize,
    },
}

/// The used bytes of a colour's pixel.
#[inline]
fn used(pixel: &[u8; 16], cpp: usize) -> &[u8] {
    pixel.get(..cpp).unwrap_or(pixel)
}

/// A rectangle to fill, with its progress.
#[derive(Clone, Copy, Debug)]
pub struct Rectangle {
    destination: Surface,
    area: Area,
    source: Source,
    raster: Raster,
    right_to_left: bool,
    bottom_up: bool,
    /// Progress: number of bytes of a linear rectangle, else of cells.
    done: u64,
}

/// A rectangle to decompress in place (full resolve).
#[derive(Clone, Copy, Debug)]
pub struct Resolve {
    surface: Surface,
    area: Area,
    done: u64,
}

impl Rectangle {
    /// Creates the operation that fills `area` of `destination` from `source`.
    pub fn new(destination: Surface, area: Area, source: Source, raster: Raster) -> Self {
        let mut this = Rectangle { destination, area, source, raster, right_to_left: false, bottom_up: false, done: 0 };
        // For a copy within one surface, choose the direction in which each pixel is read before it is overwritten, as
        // the engine does (PRM "XY_SRC_COPY_BLT": operands may overlap, same base, X1 and Y1 compared).
        if let Source::Surface { surface, column, row } = source
            && surface.base == destination.base
            && column.abs_diff(area.column) < u64::from(area.width)
            && row.abs_diff(area.row) < u64::from(area.height)
        {
            this.right_to_left = column < area.column;
            this.bottom_up = row < area.row;
        }
        this
    }

    /// Processes the rows from right to left, for a command that states the direction instead of leaving it to the engine:
    /// of operands in the same memory, with the destination on the right.
    pub fn from_right_to_left(self) -> Self {
        Rectangle { right_to_left: true, ..self }
    }

    /// Progress of the steps so far, for [`Rectangle::resumed`].
    pub fn done(&self) -> u64 {
        self.done
    }

    /// The same operation, of which steps have already done a part, as [`Rectangle::done`] returns it; `None` if no part of
    /// the operation is as large.
    pub fn resumed(self, done: u64) -> Option<Self> {
        // A cell has a byte at least.
        let most = u64::from(self.area.width).saturating_mul(self.area.height.into());
        (done < most).then_some(Rectangle { done, ..self })
    }

    #[inline]
    fn plain(&self) -> bool {
        self.raster.plain(matches!(self.source, Source::Colour { .. }))
    }

    /// Continues for about `budget` bytes.
    pub fn step<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        // The order of bytes within a cell has no effect only if the cell is read completely before it is written.
        if self.plain() && !self.destination.compressed && !self.right_to_left && !self.bottom_up {
            let linear = self.destination.tiling == Tiling::Linear;
            match self.source {
                Source::Colour { pixel, cpp } if linear => {
                    return self.fill_linear(memory, space, budget, used(&pixel, cpp));
                }
                Source::Surface { surface, column, row } if !surface.compressed => {
                    if linear && surface.tiling == Tiling::Linear {
                        return self.copy_linear(memory, space, budget, (&surface, column, row));
                    }
                    if direct::is_direct(&surface.tiling, &self.destination.tiling) {
                        return self.copy_runs(memory, space, budget, &surface);
                    }
                }
                _ => {}
            }
        }
        self.step_cells(memory, space, budget)
    }
}

impl Resolve {
    /// Creates the operation that decompresses `area` of `surface`.
    pub fn new(surface: Surface, area: Area) -> Self {
        Resolve { surface: Surface { compressed: true, ..surface }, area, done: 0 }
    }

    /// Continues for about `budget` bytes.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    pub fn step<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let extent = self.surface.block_extent();
        let (across, down) = self.area.cells(extent);
        let mut ranges = TranslatedRanges::<M>::new(space, Access::Write, true);
        let total = across * down;
        while self.done < total {
            let spent = ranges.spent();
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let cell = self.area.cell(extent, self.done % across, self.done / across);
            cells::runs(&self.surface, &cell, &cell, |at, range| ranges.resolve(memory, at.address, range.len()))?;
            self.done += 1;
        }
        Ok(Progress::Done)
    }
}
