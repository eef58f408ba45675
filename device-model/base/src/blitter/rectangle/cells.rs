// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rectangles in cells: blocks of a tiled surface, or pieces of the rows of a linear one.
#![allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]

use std::ops::Range;

use arctic_sriov::number::size;

use super::{Rectangle, Source};
use crate::blitter::ranges::{SurfaceByte, TranslatedRanges};
use crate::blitter::tiling::{Area, BLOCK_BYTES, Layout, Surface, Tiling};
use crate::blitter::{BlitMemory, Progress};
use crate::memory::Access;
use crate::memory::span::repeat_prefix;

/// Relative cost of a byte that is processed through a buffer.
const BUFFERED_COST: usize = 2;
/// Minimum number of bytes needed from a block for the whole block to be read.
const WORTH_A_BLOCK: u32 = 512;
/// Number of rows whose translations are kept: those of a tile.
pub(super) const ROWS: usize = 32;
/// Number of blocks side by side that are copied together between a linear surface and one with short runs, because longer
/// pieces of rows are faster.
const GROUP: usize = 4;

/// The translated ranges of a surface.
type Rows<'m, M> = TranslatedRanges<'m, M, ROWS>;
/// The bytes of a cell, in rows or as in memory.
type Bytes = [u8; BLOCK_BYTES];

/// The cells of a rectangle, in the order in which they are processed.
pub(super) struct Grid {
    /// The rectangle in the surface whose blocks are the cells.
    area: Area,
    extent: (u32, u32),
    across: u64,
    down: u64,
    right_to_left: bool,
    bottom_up: bool,
    /// Distance from the destination to the source.
    shift: (i64, i64),
    /// The surface is the source.
    by_source: bool,
}

impl Grid {
    pub(super) fn new(rectangle: &Rectangle) -> Self {
        let Rectangle { area, destination, right_to_left, bottom_up, .. } = *rectangle;
        let (extent, shift, by_source) = match &rectangle.source {
            Source::Surface { surface, column, row } => {
                let by_source = destination.tiling == Tiling::Linear && surface.tiling != Tiling::Linear;
                let extent = if by_source { surface.block_extent() } else { destination.block_extent() };
                (extent, (column - area.column, row - area.row), by_source)
            }
            Source::Colour { .. } => (destination.block_extent(), (0, 0), false),
        };
        let area = if by_source { area.moved(shift.0, shift.1) } else { area };
        let (across, down) = area.cells(extent);
        Grid { area, extent, across, down, right_to_left, bottom_up, shift, by_source }
    }

    /// Number of cells.
    pub(super) fn len(&self) -> u64 {
        self.across * self.down
    }

    /// Number of cells from this one on in its row that are whole, up to [`GROUP`].
    fn complete_cells(&self, index: u64) -> usize {
        let rest = (self.across - index % self.across).min(GROUP as u64);
        let complete = |index: &u64| {
            let (cell, _) = self.cell(*index);
            (cell.width, cell.height) == self.extent
        };
        (index..index + rest).take_while(complete).count()
    }

    /// A cell of the destination, and of the source. `index` is less than the number of cells.
    #[inline]
    pub(super) fn cell(&self, index: u64) -> (Area, Area) {
        let (x, y) = (index % self.across, index / self.across);
        let x = if self.right_to_left { self.across - 1 - x } else { x };
        let y = if self.bottom_up { self.down - 1 - y } else { y };
        let cell = self.area.cell(self.extent, x, y);
        let (columns, rows) = self.shift;
        if self.by_source { (cell.moved(-columns, -rows), cell) } else { (cell, cell.moved(columns, rows)) }
    }
}

/// Buffers for the conversion of a cell.
struct Buffers {
    new: Bytes,
    rows: Bytes,
    raw: Bytes,
}

/// The new bytes of a cell: of which cell, and in which order.
struct Ready {
    cell: Area,
    /// It is a whole block of the destination, and its bytes are as in memory.
    block: bool,
}

impl Rectangle {
    /// Processes the rectangle in cells. Each cell is read completely before it is written.
    pub(super) fn step_cells<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let grid = Grid::new(self);
        match &self.source {
            Source::Colour { pixel, cpp } if self.plain() => {
                let pixel = *pixel;
                self.paint_cells(memory, space, &grid, super::used(&pixel, *cpp), budget)
            }
            _ => self.combine_cells(memory, space, &grid, budget),
        }
    }

    /// Fills the cells with a colour.
    fn paint_cells<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        grid: &Grid,
        pixel: &[u8],
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let mut into = Rows::<M>::new(space, Access::Write, self.destination.compressed);
        let (mut rows, mut raw) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        // Size and phase of the cell whose colour is in `rows`: most cells of a rectangle have the same.
        let mut painted = None;
        while self.done < grid.len() {
            if into.spent() >= budget && into.spent() > 0 {
                return Ok(Progress::More);
            }
            let (cell, _) = grid.cell(self.done);
            let form = Some((cell.width, cell.height, phase_of(&cell, pixel)));
            let block = is_block(&self.destination, &cell);
            if painted != form {
                paint(&cell, pixel, &mut rows);
                if block && let Tiling::Tiled(layout) = self.destination.tiling {
                    layout.pack(&rows, &mut raw);
                }
                painted = form;
            }
            write(&mut into, memory, &self.destination, &Ready { cell, block }, if block { &raw } else { &rows })?;
            self.done += 1;
        }
        Ok(Progress::Done)
    }

    /// Copies the cells, or combines them with a surface or a colour.
    fn combine_cells<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        grid: &Grid,
        budget: usize,
    ) -> Result<Progress, M::Fault> {
        let source = if let Source::Surface { surface, .. } = &self.source { Some(*surface) } else { None };
        let compressed = source.is_some_and(|surface| surface.compressed);
        let mut from = Rows::<M>::new(space, Access::Read, compressed);
        let mut into = Rows::<M>::new(space, Access::Write, self.destination.compressed);
        let units = self.units();
        let alike = self.plain() && source.is_some_and(|surface| surface.tiling == self.destination.tiling);
        let mut buffers = Buffers { new: [0; BLOCK_BYTES], rows: [0; BLOCK_BYTES], raw: [0; BLOCK_BYTES] };
        let mut bytes = [0; BLOCK_BYTES];
        let mut group = None;
        let mut work = 0;
        while self.done < grid.len() {
            let spent = work + from.spent() + into.spent();
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let (cell, part) = grid.cell(self.done);
            let mut operands = Operands { memory, from: &mut from, into: &mut into };
            if let Some((surface, layout)) = units {
                let n = grid.complete_cells(self.done);
                if n > 1 {
                    let group = group.get_or_insert_with(Group::new);
                    operands.copy_group(layout, (&surface, &part), (&self.destination, &cell), n, group)?;
                    self.done += n as u64;
                    work += BUFFERED_COST * n * BLOCK_BYTES;
                    continue;
                }
            }
            let block = self.read_cell(&mut operands, (&cell, &part), alike, &mut buffers, &mut bytes)?;
            write(&mut into, memory, &self.destination, &Ready { cell, block }, &bytes)?;
            self.done += 1;
            work += BUFFERED_COST * (cell.width * cell.height) as usize;
        }
        Ok(Progress::Done)
    }

    /// The source and the layout of a plain copy between a linear surface and one with short runs.
    fn units(&self) -> Option<(Surface, &'static Layout)> {
        let Source::Surface { surface, .. } = &self.source else { return None };
        if !self.plain() || surface.compressed || self.destination.compressed || self.right_to_left || self.bottom_up {
            return None;
        }
        match (surface.tiling, self.destination.tiling) {
            (Tiling::Linear, Tiling::Tiled(layout)) | (Tiling::Tiled(layout), Tiling::Linear) => {
                layout.units().map(|_| (*surface, layout))
            }
            _ => None,
        }
    }

    /// Computes the new bytes of a cell of the destination from the same part of the source. If both are blocks that are
    /// `alike`, they are copied as they are in memory. Returns whether the bytes are those of a whole block in memory order;
    /// else they are in rows.
    fn read_cell<'m, M: BlitMemory<'m>>(
        &self,
        operands: &mut Operands<'_, 'm, M>,
        (cell, part): (&Area, &Area),
        alike: bool,
        buffers: &mut Buffers,
        bytes: &mut Bytes,
    ) -> Result<bool, M::Fault> {
        let Operands { memory, from, into } = operands;
        let Buffers { new, rows, raw } = buffers;
        let block = is_block(&self.destination, cell);
        let packed = match self.destination.tiling {
            Tiling::Tiled(layout) if block && !layout.in_row_order() => Some(layout),
            _ => None,
        };
        let colour = matches!(self.source, Source::Colour { .. });
        let plain = self.plain();
        let target = if packed.is_some() { &mut *rows } else { &mut *bytes };
        match &self.source {
            Source::Surface { surface, .. } if alike && block && is_block(surface, part) => {
                from.read(memory, at(surface, part.column, part.row), bytes)?;
                return Ok(true);
            }
            Source::Surface { surface, .. } if plain => read(from, memory, surface, part, target, raw)?,
            Source::Surface { surface, .. } => read(from, memory, surface, part, new, raw)?,
            Source::Colour { pixel, cpp } => paint(cell, super::used(pixel, *cpp), new),
        }
        if !plain {
            read(into, memory, &self.destination, cell, target, raw)?;
            let len = (cell.width * cell.height) as usize;
            if let (Some(old), Some(new)) = (target.get_mut(..len), new.get(..len)) {
                self.raster.merge(old, new, colour, size(cell.column.rem_euclid(4) as u64));
            }
        }
        if let Some(layout) = packed {
            layout.pack(rows, bytes);
        }
        Ok(block)
    }
}

/// Memory, with the translated ranges of source and destination.
struct Operands<'a, 'm, M: BlitMemory<'m>> {
    memory: &'a mut M,
    from: &'a mut Rows<'m, M>,
    into: &'a mut Rows<'m, M>,
}

/// Blocks side by side.
struct Group {
    /// Their rows.
    rows: [u8; GROUP * BLOCK_BYTES],
    /// Each as in memory.
    blocks: [Bytes; GROUP],
}

impl Group {
    fn new() -> Self {
        Group { rows: [0; GROUP * BLOCK_BYTES], blocks: [[0; BLOCK_BYTES]; GROUP] }
    }
}

impl<'m, M: BlitMemory<'m>> Operands<'_, 'm, M> {
    /// Copies `n` whole blocks of `layout` from or to the rows of a linear surface. `cell` and `part` are the first.
    fn copy_group(
        &mut self,
        layout: &Layout,
        (surface, part): (&Surface, &Area),
        (destination, cell): (&Surface, &Area),
        n: usize,
        group: &mut Group,
    ) -> Result<(), M::Fault> {
        let Group { rows, blocks } = group;
        let width = i64::from(cell.width);
        let rows = rows.get_mut(..n * BLOCK_BYTES).unwrap_or_default();
        let len = n * cell.width as usize;
        let blocks = (0..n).zip(blocks);
        if destination.tiling == Tiling::Linear {
            for (index, block) in blocks {
                self.from.read(self.memory, at(surface, part.column + width * index as i64, part.row), block)?;
                layout.unpack_part(block, rows, (n, index));
            }
            for (row, bytes) in (cell.row..).zip(rows.chunks_exact(len)) {
                self.into.write(self.memory, at(destination, cell.column, row), bytes)?;
            }
            return Ok(());
        }
        for (row, bytes) in (part.row..).zip(rows.chunks_exact_mut(len)) {
            self.from.read(self.memory, at(surface, part.column, row), bytes)?;
        }
        // All blocks are converted before the first is written: a read of bytes that were just stored in smaller parts
        // waits until all earlier stores are complete.
        for (index, block) in blocks {
            layout.pack_part(rows, block, (n, index));
        }
        for (index, block) in (0..n).zip(&group.blocks) {
            self.into.write(self.memory, at(destination, cell.column + width * index as i64, cell.row), block)?;
        }
        Ok(())
    }
}

/// A byte of a surface.
#[inline]
pub(super) fn at(surface: &Surface, column: i64, row: i64) -> SurfaceByte {
    SurfaceByte { address: surface.address(column, row), row: row.cast_unsigned() }
}

/// Fills a cell's packed rows with a colour.
#[allow(clippy::arithmetic_side_effects, reason = "a cell is at most a block, and phase is less than the pixel size")]
#[allow(clippy::indexing_slicing, reason = "a piece is at most a pixel, and the rows are at most a block")]
#[inline]
fn paint(cell: &Area, pixel: &[u8], rows: &mut Bytes) {
    let width = cell.width as usize;
    let rows = &mut rows[..width * cell.height as usize];
    let Some((first, rest)) = rows.split_at_mut_checked(width) else { return };
    repeat(pixel, phase_of(cell, pixel), first);
    rest.chunks_exact_mut(width.max(1)).for_each(|row| row.copy_from_slice(first));
}

/// Offset in its pixel of a cell's first byte.
#[inline]
fn phase_of(cell: &Area, pixel: &[u8]) -> usize {
    size(cell.column.rem_euclid(pixel.len().max(1) as i64) as u64)
}

/// Fills `row` with a repeated pixel, from byte `phase` of the pixel on.
#[allow(clippy::indexing_slicing, reason = "callers pass a byte of the pixel")]
pub(super) fn repeat(pixel: &[u8], phase: usize, row: &mut [u8]) {
    for (into, byte) in row.iter_mut().zip(pixel[phase..].iter().chain(&pixel[..phase])) {
        *into = *byte;
    }
    repeat_prefix(row, pixel.len());
}

/// Distance of a column or row of a cell from the cell's `start`.
#[inline]
fn within(start: i64, at: i64) -> usize {
    size(at.abs_diff(start))
}

/// Calls `each(first byte, range of the cell's packed rows)` for each contiguous run in `part` of a cell.
pub(super) fn runs<E>(
    surface: &Surface,
    cell: &Area,
    part: &Area,
    mut each: impl FnMut(SurfaceByte, Range<usize>) -> Result<(), E>,
) -> Result<(), E> {
    for row in part.row..part.row + i64::from(part.height) {
        let mut done = within(cell.row, row) * cell.width as usize + within(cell.column, part.column);
        let (mut column, end) = (part.column, part.column + i64::from(part.width));
        while column < end {
            let n = size(surface.run(column).min(end.abs_diff(column)));
            each(at(surface, column, row), done..done + n)?;
            done += n;
            column += n as i64;
        }
    }
    Ok(())
}

/// Reads a cell into packed rows. The contents of `raw` are lost.
fn read<'m, M: BlitMemory<'m>>(
    ranges: &mut Rows<'m, M>,
    memory: &mut M,
    surface: &Surface,
    cell: &Area,
    rows: &mut Bytes,
    raw: &mut Bytes,
) -> Result<(), M::Fault> {
    let Tiling::Tiled(layout) = surface.tiling else {
        return runs(surface, cell, cell, |at, range| ranges.read(memory, at, rows.get_mut(range).unwrap_or_default()));
    };
    let extent = layout.block_extent();
    let (across, down) = cell.cells(extent);
    for (x, y) in (0..down).flat_map(|y| (0..across).map(move |x| (x, y))) {
        let part = cell.cell(extent, x, y);
        let origin = part.origin(extent);
        let start = at(surface, part.column - origin.0, part.row - origin.1);
        let complete = is_block(surface, &part);
        // An aligned block is within one page, so reading all of it cannot cause an additional fault.
        let within_page = start.address.is_multiple_of(BLOCK_BYTES as u64) && part.width * part.height >= WORTH_A_BLOCK;
        if !complete && (!within_page || !layout.is_contiguous()) {
            runs(surface, cell, &part, |at, range| ranges.read(memory, at, rows.get_mut(range).unwrap_or_default()))?;
            continue;
        }
        if part == *cell && complete && layout.in_row_order() {
            ranges.read(memory, start, rows)?;
            continue;
        }
        ranges.read(memory, start, raw)?;
        if part == *cell && complete {
            layout.unpack(raw, rows);
            continue;
        }
        let mut block = [0; BLOCK_BYTES];
        layout.unpack(raw, &mut block);
        let width = extent.0 as usize;
        let n = part.width as usize;
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

/// Returns whether an area is a whole block of a tiled surface, and contiguous.
#[inline]
pub(super) fn is_block(surface: &Surface, area: &Area) -> bool {
    let Tiling::Tiled(layout) = surface.tiling else { return false };
    let extent = layout.block_extent();
    layout.is_contiguous() && (area.width, area.height) == extent && area.origin(extent) == (0, 0)
}

/// Writes a cell, which for a tiled surface is a cell of its own grid. Bytes outside the cell are not modified.
fn write<'m, M: BlitMemory<'m>>(
    ranges: &mut Rows<'m, M>,
    memory: &mut M,
    surface: &Surface,
    ready: &Ready,
    bytes: &Bytes,
) -> Result<(), M::Fault> {
    let Ready { cell, block } = ready;
    if *block {
        return ranges.write(memory, at(surface, cell.column, cell.row), bytes);
    }
    runs(surface, cell, cell, |at, range| ranges.write(memory, at, bytes.get(range).unwrap_or_default()))
}
