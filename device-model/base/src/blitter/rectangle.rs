// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Resumable copy, fill and resolve of a rectangle.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::ops::Range;

use arctic_sriov::number::size;

use super::raster::Raster;
use super::tiling::{Area, BLOCK_BYTES, Surface, Tiling};
use super::window::Window;
use super::{BlitMemory, Progress};
use crate::memory::region::Aligned;
use crate::memory::{Access, Span};

/// Relative cost of a byte that is processed through a buffer (tiles, compression, raster operations).
const BUFFERED_COST: usize = 4;
/// Minimum number of bytes needed from a block for the whole block to be read.
const WORTH_A_BLOCK: u32 = 512;
/// Maximum number of bytes of a pixel.
const LONGEST_PIXEL: usize = 16;
/// Minimum number of bytes of a fill for which a block of repeated pixels is prepared.
const WORTH_A_PATTERN: u64 = 2 * BLOCK_BYTES as u64;
/// Maximum number of bytes in one piece of a linear run.
const PIECE: u64 = 1 << 20;
/// Cost of checking that a page contains no data, in bytes of linear copy.
const LOOK_COST: u64 = 16 << 10;

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
    /// Progress: number of bytes in `step_linear`, of cells in `step_cells`.
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
        let linear = |surface: &Surface| surface.tiling == Tiling::Linear && !surface.compressed;
        let source = match &self.source {
            Source::Surface { surface, .. } => linear(surface),
            Source::Colour { .. } => true,
        };
        if source && linear(&self.destination) && self.plain() && !self.right_to_left && !self.bottom_up {
            self.step_linear(memory, space, budget)
        } else {
            self.step_cells(memory, space, budget)
        }
    }

    /// Copies or fills linear memory; contiguous rows are processed as one run.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    fn step_linear<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let (width, height) = (u64::from(self.area.width), u64::from(self.area.height));
        let close = |surface: &Surface| surface.pitch == width as i64;
        let merged = close(&self.destination)
            && match &self.source {
                Source::Surface { surface, .. } => close(surface),
                Source::Colour { .. } => true,
            };
        let mut into = Window::<M>::new(space, Access::Write, false);
        let mut from = Window::<M>::new(space, Access::Read, false);
        let total = width * height;
        let zeros = matches!(&self.source, Source::Colour { pixel, cpp } if used(pixel, *cpp).iter().all(|b| *b == 0));
        // Many short spans, such as pages of 4 KiB, are written from one block of repeated pixels.
        let mut block: Option<Aligned<{ BLOCK_BYTES + LONGEST_PIXEL }>> = None;
        while self.done < total {
            let spent = into.spent.max(from.spent);
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let (column, row) = (self.done % width, self.done / width);
            let left = if merged { total - self.done } else { width - column };
            let left = size(left.min(PIECE).min((budget - spent).max(1) as u64));
            let (phase, column, row) = (size(column), column as i64, row as i64);
            let address = self.destination.address(self.area.column + column, self.area.row + row);
            if zeros
                && merged
                && let Some(zeroed) = memory.zero(space, address, total - self.done)?
            {
                self.done += zeroed.len;
                into.charge(size(zeroed.held.max(LOOK_COST)));
                continue;
            }
            let destination = into.open(memory, address, left)?;
            let n = match &self.source {
                Source::Surface { surface, column: first, row: top } => {
                    let origin = surface.address(first + column, top + row);
                    let source = from.open(memory, origin, destination.len())?;
                    let n = source.len();
                    source.copy_to(&destination, n).map_err(|fault| match fault.iova {
                        _ if matches!(source, Span::Remote { .. }) => from.not_mapped(origin),
                        _ => into.not_mapped(address),
                    })?;
                    n
                }
                Source::Colour { pixel, cpp } if destination.len() <= BLOCK_BYTES && total >= WORTH_A_PATTERN => {
                    let block = block.get_or_insert_with(|| {
                        let mut block = Aligned([0; BLOCK_BYTES + LONGEST_PIXEL]);
                        repeat(used(pixel, *cpp), 0, &mut block.0);
                        block
                    });
                    let first = phase % cpp;
                    let bytes = block.0.get(first..first + destination.len()).unwrap_or_default();
                    destination.write(bytes).map_err(|_| into.not_mapped(address))?;
                    destination.len()
                }
                Source::Colour { pixel, cpp } => {
                    let mut pixel = *pixel;
                    pixel.get_mut(..*cpp).unwrap_or_default().rotate_left(phase % cpp);
                    destination.fill(used(&pixel, *cpp)).map_err(|_| into.not_mapped(address))?;
                    destination.len()
                }
            };
            self.done += n as u64;
            into.charge(n);
            from.charge(n);
        }
        Ok(Progress::Done)
    }

    /// Processes the rectangle in cells. Each cell is read completely before it is written.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    fn step_cells<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let mut into = Window::<M>::new(space, Access::Write, self.destination.compressed);
        let (mut from, grid, shift) = match &self.source {
            Source::Surface { surface, column, row } => {
                let shift = (column - self.area.column, row - self.area.row);
                let by_source = self.destination.tiling == Tiling::Linear && surface.tiling != Tiling::Linear;
                let grid = if by_source { surface } else { &self.destination };
                let from = Window::<M>::new(space, Access::Read, surface.compressed);
                (from, (grid.block_extent(), by_source), shift)
            }
            Source::Colour { .. } => {
                (Window::new(space, Access::Read, false), (self.destination.block_extent(), false), (0, 0))
            }
        };
        let (cell_extent, by_source) = grid;
        let area = if by_source { self.area.moved(shift.0, shift.1) } else { self.area };
        let (across, down) = area.cells(cell_extent);
        let total = across * down;
        let (mut new, mut old) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        let plain = self.plain();
        // Size and phase of the cell with its colour in `new`: most cells of a rectangle have the same.
        let mut painted = None;
        let mut work = 0;
        while self.done < total {
            let spent = work + into.spent + from.spent;
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let (x, y) = (self.done % across, self.done / across);
            let x = if self.right_to_left { across - 1 - x } else { x };
            let y = if self.bottom_up { down - 1 - y } else { y };
            let cell = area.cell(cell_extent, x, y);
            let cell = if by_source { cell.moved(-shift.0, -shift.1) } else { cell };
            match &self.source {
                Source::Surface { surface, .. } => {
                    read(&mut from, memory, surface, cell.moved(shift.0, shift.1), &mut new)?;
                }
                Source::Colour { pixel, cpp } => {
                    let pixel = used(pixel, *cpp);
                    let form = Some((cell.width, cell.height, phase_of(cell, pixel)));
                    if painted != form {
                        paint(cell, pixel, &mut new);
                        painted = form;
                    }
                }
            }
            let bytes = (cell.width * cell.height) as usize;
            if plain {
                let period = if let Source::Colour { cpp, .. } = &self.source { *cpp } else { 0 };
                write(&mut into, memory, &self.destination, cell, &new, period)?;
            } else {
                read(&mut into, memory, &self.destination, cell, &mut old)?;
                let colour = matches!(self.source, Source::Colour { .. });
                let phase = size(cell.column.rem_euclid(4) as u64);
                if let (Some(old), Some(new)) = (old.get_mut(..bytes), new.get(..bytes)) {
                    self.raster.merge(old, new, colour, phase);
                }
                write(&mut into, memory, &self.destination, cell, &old, 0)?;
            }
            self.done += 1;
            work += BUFFERED_COST * bytes;
        }
        Ok(Progress::Done)
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
        let mut window = Window::<M>::new(space, Access::Write, true);
        let total = across * down;
        while self.done < total {
            let spent = window.spent;
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let cell = self.area.cell(extent, self.done % across, self.done / across);
            runs(&self.surface, cell, cell, |address, range| window.resolve(memory, address, range.len()))?;
            self.done += 1;
        }
        Ok(Progress::Done)
    }
}

/// Fills a cell's packed rows with a colour.
#[allow(clippy::arithmetic_side_effects, reason = "a cell is at most a block, and phase is less than the pixel size")]
#[allow(clippy::indexing_slicing, reason = "a piece is at most a pixel, and the rows are at most a block")]
#[inline]
fn paint(cell: Area, pixel: &[u8], rows: &mut [u8; BLOCK_BYTES]) {
    let width = cell.width as usize;
    let rows = &mut rows[..width * cell.height as usize];
    let Some((first, rest)) = rows.split_at_mut_checked(width) else { return };
    repeat(pixel, phase_of(cell, pixel), first);
    rest.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(first));
}

/// Offset in its pixel of a cell's first byte.
#[inline]
fn phase_of(cell: Area, pixel: &[u8]) -> usize {
    size(cell.column.rem_euclid(pixel.len().max(1) as i64) as u64)
}

/// Fills `row` with a repeated pixel, from byte `phase` of the pixel on.
#[allow(clippy::arithmetic_side_effects, reason = "every sum is at most the length of the row")]
#[allow(clippy::indexing_slicing, reason = "`ready` is at most the length of the row")]
fn repeat(pixel: &[u8], phase: usize, row: &mut [u8]) {
    for (into, byte) in row.iter_mut().zip(pixel[phase..].iter().chain(&pixel[..phase])) {
        *into = *byte;
    }
    // The filled part is doubled: a multiple of the pixel.
    let mut ready = pixel.len().min(row.len());
    while ready > 0 && ready < row.len() {
        let more = ready.min(row.len() - ready);
        row.copy_within(..more, ready);
        ready += more;
    }
}

/// Distance of a column or row of a cell from the cell's `start`.
#[inline]
fn within(start: i64, at: i64) -> usize {
    size(at.abs_diff(start))
}

/// Calls `each(address, range of the cell's packed rows)` for each contiguous run in `part` of a cell.
#[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
fn runs<E>(
    surface: &Surface,
    cell: Area,
    part: Area,
    mut each: impl FnMut(u64, Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    for row in part.row..part.row + i64::from(part.height) {
        let mut at = within(cell.row, row) * cell.width as usize + within(cell.column, part.column);
        let (mut column, end) = (part.column, part.column + i64::from(part.width));
        while column < end {
            let n = size(surface.run(column).min(end.abs_diff(column)));
            each(surface.address(column, row), at..at + n)?;
            at += n;
            column += n as i64;
        }
    }
    Ok(())
}

/// Reads a cell into packed rows.
#[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
fn read<'m, M: BlitMemory<'m>>(
    window: &mut Window<'m, M>,
    memory: &mut M,
    surface: &Surface,
    cell: Area,
    rows: &mut [u8; BLOCK_BYTES],
) -> Result<(), M::Fault> {
    let Tiling::Tiled(layout) = surface.tiling else {
        return runs(surface, cell, cell, |address, range| {
            window.read(memory, address, rows.get_mut(range).unwrap_or_default())
        });
    };
    let extent = layout.block_extent();
    let (across, down) = cell.cells(extent);
    for (x, y) in (0..down).flat_map(|y| (0..across).map(move |x| (x, y))) {
        let part = cell.cell(extent, x, y);
        let origin = part.origin(extent);
        let address = surface.address(part.column - origin.0, part.row - origin.1);
        let is_full = (part.width, part.height) == extent;
        // An aligned block is within one page, so reading all of it cannot cause an additional fault.
        let within_page = address.is_multiple_of(BLOCK_BYTES as u64) && part.width * part.height >= WORTH_A_BLOCK;
        if !is_full && !within_page {
            runs(surface, cell, part, |address, range| {
                window.read(memory, address, rows.get_mut(range).unwrap_or_default())
            })?;
            continue;
        }
        if part == cell && is_full && layout.in_row_order() {
            window.read(memory, address, rows)?;
            continue;
        }
        let mut raw = [0; BLOCK_BYTES];
        window.read(memory, address, &mut raw)?;
        if part == cell && is_full {
            layout.unpack(&raw, rows);
            continue;
        }
        let mut block = [0; BLOCK_BYTES];
        layout.unpack(&raw, &mut block);
        let (width, n) = (extent.0 as usize, part.width as usize);
        for row in 0..part.height as usize {
            let from = (within(0, origin.1) + row) * width + within(0, origin.0);
            let to = (within(cell.row, part.row) + row) * cell.width as usize + within(cell.column, part.column);
            if let (Some(rows), Some(block)) = (rows.get_mut(to..to + n), block.get(from..from + n)) {
                rows.copy_from_slice(block);
            }
        }
    }
    Ok(())
}

/// Writes packed rows to a cell, which for a tiled surface is a cell of its own grid. Bytes outside the cell are not
/// modified. The rows are the repetition of `period` bytes, from the cell's first column on, if it is not 0.
fn write<'m, M: BlitMemory<'m>>(
    window: &mut Window<'m, M>,
    memory: &mut M,
    surface: &Surface,
    cell: Area,
    rows: &[u8; BLOCK_BYTES],
    period: usize,
) -> Result<(), M::Fault> {
    if let Tiling::Tiled(layout) = surface.tiling
        && cell.origin(layout.block_extent()) == (0, 0)
        && (cell.width, cell.height) == layout.block_extent()
    {
        // Runs with whole periods are equal, so their order does not matter.
        if layout.in_row_order() || period != 0 && (layout.run() as usize).is_multiple_of(period) {
            return window.write(memory, surface.address(cell.column, cell.row), rows);
        }
        let mut raw = [0; BLOCK_BYTES];
        layout.pack(rows, &mut raw);
        return window.write(memory, surface.address(cell.column, cell.row), &raw);
    }
    runs(surface, cell, cell, |address, range| window.write(memory, address, rows.get(range).unwrap_or_default()))
}
