// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Addresses of pixels: linear and tiled surface layouts.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

#[cfg(test)]
mod tests;

use arctic_sriov::number::low;

/// Valid bits of a graphics address; the upper bits of a canonical address are ignored.
pub const ADDRESS_MASK: u64 = (1 << 48) - 1;

/// Size in bytes of a block, the unit in which a surface is processed.
pub const BLOCK_BYTES: usize = LINEAR_BLOCK as usize;
/// Columns of a block of a linear surface, which has one row.
const LINEAR_BLOCK: u32 = 4096;

/// Memory layout of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiling {
    /// Consecutive rows.
    Linear,
    /// Tiles of a fixed layout, in row-major order.
    Tiled(&'static Layout),
}

impl Tiling {
    /// Maximum number of bytes of a row that are contiguous in memory.
    #[inline]
    pub fn run(&self) -> u64 {
        match self {
            Tiling::Linear => u64::MAX,
            Tiling::Tiled(layout) => layout.run().into(),
        }
    }
}

/// A tile layout: the masks define which bits of a byte's offset in the tile come from its column, which from its row, and
/// in a layout of volumes which from its slice. All preserve the bit order, so the masks define the layout before swizzling
/// completely.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name as in the documents.
    pub name: &'static str,
    /// Offset bits from the column (in bytes).
    pub columns: u32,
    /// Offset bits from the row.
    pub rows: u32,
    /// Offset bits from the slice, in a layout of volumes; 0 in one of planes.
    pub slices: u32,
    /// Offset bits from 7 up: their parity inverts bit 6, as families before Xe-HP do to spread accesses over two memory
    /// channels; 0 for none.
    pub swizzle: u32,
    /// Size of a tile: columns and rows.
    tile: (u32, u32),
    /// Size of a block: columns and rows of one slice.
    block: (u32, u32),
    /// The units of a block in row order: the number of each in memory order. Not used if runs are shorter than a unit.
    units: [u8; BLOCK_BYTES / UNIT],
}

/// Size in bytes of the units in which blocks are converted: the shortest run of the layouts of copy engines.
const UNIT: usize = 16;

/// Number of the offset bit that swizzling inverts.
const SWIZZLED_BIT: u32 = 6;

/// 4 KiB: 512 bytes by 8 rows, in row order.
pub static TILE_X: Layout = Layout::new("X", 0x1ff, 0xe00, 0);
/// 4 KiB: 128 bytes by 32 rows, in columns of 16 bytes (before Xe-HP).
pub static TILE_Y: Layout = Layout::new("Y", 0xe0f, 0x1f0, 0);
/// [`TILE_X`] with swizzling: bit 6 is inverted by bits 9 and 10.
pub static TILE_X_SWIZZLED: Layout = Layout::new("X", 0x1ff, 0xe00, 0x600);
/// [`TILE_Y`] with swizzling: bit 6 is inverted by bit 9.
pub static TILE_Y_SWIZZLED: Layout = Layout::new("Y", 0xe0f, 0x1f0, 0x200);
/// 4 KiB: 64 bytes by 64 rows, for stencil buffers (before Xe-HP), which no unit of the model addresses. Offset bits
/// `XXXY YYYX YXYX`.
pub static TILE_W: Layout = Layout::new("W", 0xe15, 0x1ea, 0);
/// 4 KiB: 128 bytes by 32 rows, in blocks of 16 bytes by 4 rows. Offset bits `YYXY XXYY XXXX`.
pub static TILE_4: Layout = Layout::new("Tile4", 0x2cf, 0xd30, 0);
/// 64 KiB for 8 bits per pixel: 256 bytes by 256 rows of Tile4 blocks. Offset bits `YYYX`, then those of Tile4.
pub static TILE_64_8: Layout = Layout::new("Tile64", 0x12cf, 0xed30, 0);
/// 64 KiB for 16 and 32 bits per pixel: 512 bytes by 128 rows. Offset bits `YYXX`, then those of Tile4.
pub static TILE_64_16_32: Layout = Layout::new("Tile64", 0x32cf, 0xcd30, 0);
/// 64 KiB for 64 and 128 bits per pixel: 1024 bytes by 64 rows. Offset bits `YXXX`, then those of Tile4.
pub static TILE_64_64_128: Layout = Layout::new("Tile64", 0x72cf, 0x8d30, 0);

/// 64 KiB of a volume for 8 bits per pixel: 64 bytes by 32 rows by 32 slices. Offset bits `ZZZX YYZY ZXYY XXXX` (gmmlib
/// `CpuSwizzleBlt.c`, as those of the following layouts).
pub static TILE_64_VOLUME_8: Layout = Layout::volume("Tile64", 0x104f, 0x0d30, 0xe280);
/// 64 KiB of a volume for 16 bits per pixel: 64 bytes by 32 rows by 32 slices. Offset bits `ZZZY YXZY ZXYY XXXX`.
pub static TILE_64_VOLUME_16: Layout = Layout::volume("Tile64", 0x044f, 0x1930, 0xe280);
/// 64 KiB of a volume for 32 bits per pixel: 128 bytes by 32 rows by 16 slices. Offset bits `ZZYX YXZY ZXYY XXXX`.
pub static TILE_64_VOLUME_32: Layout = Layout::volume("Tile64", 0x144f, 0x2930, 0xc280);
/// 64 KiB of a volume for 64 and 128 bits per pixel: 256 bytes by 16 rows by 16 slices. Offset bits `ZZYX XXZY ZXYY XXXX`.
pub static TILE_64_VOLUME_64_128: Layout = Layout::volume("Tile64", 0x1c4f, 0x2130, 0xc280);

/// Deposits the low bits of `value` at the bits of `mask`.
const fn spread(mut value: u32, mut mask: u32) -> u32 {
    let mut out = 0;
    while value != 0 && mask != 0 {
        let bit = mask & mask.wrapping_neg();
        if value & 1 != 0 {
            out |= bit;
        }
        value >>= 1;
        mask &= mask.wrapping_sub(1);
    }
    out
}

/// A power of two, by which coordinates are divided: they may be negative, and the remainder is not.
#[derive(Clone, Copy)]
struct Size(u32);

impl Size {
    #[inline]
    fn new(size: u32) -> Self {
        Size(size.trailing_zeros())
    }

    /// The quotient.
    #[inline]
    pub fn units(self, at: i64) -> i64 {
        at.wrapping_shr(self.0)
    }

    /// The product.
    #[inline]
    fn bytes(self, units: i64) -> i64 {
        units.wrapping_shl(self.0)
    }

    /// The remainder.
    #[inline]
    fn rest(self, at: i64) -> u32 {
        low(at.cast_unsigned() & !u64::MAX.wrapping_shl(self.0))
    }
}

/// Copies a run of bytes from one block to another; the run must be in both.
#[inline]
fn copy(into: &mut [u8; BLOCK_BYTES], to: usize, raw: &[u8; BLOCK_BYTES], from: usize, run: usize) {
    let into = into.get_mut(to..to.wrapping_add(run));
    let raw = raw.get(from..from.wrapping_add(run));
    debug_assert!(into.is_some() && raw.is_some(), "the run exceeds a block");
    if let (Some(into), Some(raw)) = (into, raw) {
        into.copy_from_slice(raw);
    }
}

impl Layout {
    /// A layout of tiles of at least 4 KiB; both masks have bits below bit 12.
    const fn new(name: &'static str, columns: u32, rows: u32, swizzle: u32) -> Layout {
        Layout::with_masks(name, [columns, rows, 0], swizzle)
    }

    /// A layout of volumes.
    const fn volume(name: &'static str, columns: u32, rows: u32, slices: u32) -> Layout {
        Layout::with_masks(name, [columns, rows, slices], 0)
    }

    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "evaluated by the compiler; a block has 256 units"
    )]
    const fn with_masks(name: &'static str, [columns, rows, slices]: [u32; 3], swizzle: u32) -> Layout {
        let tile = (1 << columns.count_ones(), 1 << rows.count_ones());
        let block = (1 << (columns & 0xfff).count_ones(), 1 << (rows & 0xfff).count_ones());
        let mut layout = Layout { name, columns, rows, slices, swizzle, tile, block, units: [0; BLOCK_BYTES / UNIT] };
        let mut unit = 0;
        while slices == 0 && unit < layout.units.len() {
            let at = (unit * UNIT) as u32;
            layout.units[unit] = (layout.offset(at % block.0, at / block.0) as usize / UNIT) as u8;
            unit += 1;
        }
        layout
    }

    /// The Tile64 layout for pixels of `cpp` bytes, of planes or of volumes; `None` for 96 bits.
    pub fn tile64_of(cpp: u32, volume: bool) -> Option<&'static Layout> {
        if volume { Layout::volume_tile64(cpp) } else { Layout::tile64(cpp) }
    }

    fn tile64(cpp: u32) -> Option<&'static Layout> {
        match cpp {
            1 => Some(&TILE_64_8),
            2 | 4 => Some(&TILE_64_16_32),
            8 | 16 => Some(&TILE_64_64_128),
            _ => None,
        }
    }

    fn volume_tile64(cpp: u32) -> Option<&'static Layout> {
        match cpp {
            1 => Some(&TILE_64_VOLUME_8),
            2 => Some(&TILE_64_VOLUME_16),
            4 => Some(&TILE_64_VOLUME_32),
            8 | 16 => Some(&TILE_64_VOLUME_64_128),
            _ => None,
        }
    }

    /// Size of a tile: columns (bytes) and rows, powers of two.
    #[inline]
    pub fn extent(&self) -> (u32, u32) {
        self.tile
    }

    /// Number of slices of a tile, a power of two: 1 in a layout of planes.
    #[inline]
    pub fn depth(&self) -> u32 {
        1 << self.slices.count_ones()
    }

    /// Size of a block: columns (bytes) and rows, powers of two. In a layout of planes it is 4 KiB, which are contiguous. In
    /// one of volumes it is the part of one slice in 4 KiB, which is not ([`Layout::is_contiguous`]).
    #[inline]
    pub fn block_extent(&self) -> (u32, u32) {
        self.block
    }

    /// Returns whether the bytes of a block are contiguous in memory.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.slices == 0
    }

    /// Offset of a byte in its tile; of volumes, in slice 0.
    #[inline]
    pub const fn offset(&self, column: u32, row: u32) -> u32 {
        let offset = spread(column, self.columns) | spread(row, self.rows);
        if self.swizzle == 0 { offset } else { self.swizzled(offset) }
    }

    /// The offset after swizzling of an offset before it, and the reverse.
    #[inline]
    const fn swizzled(&self, offset: u32) -> u32 {
        offset ^ ((offset & self.swizzle).count_ones() & 1) << SWIZZLED_BIT
    }

    /// Number of bytes of a row that are contiguous in memory.
    #[inline]
    pub fn run(&self) -> u32 {
        let bits = self.columns.trailing_ones();
        1 << if self.swizzle == 0 { bits } else { bits.min(SWIZZLED_BIT) }
    }

    /// The units of 16 bytes of a block in row order: the number of each in memory order. `None` if runs are shorter, or the
    /// block is not contiguous.
    #[inline]
    pub fn units(&self) -> Option<&[u8; BLOCK_BYTES / UNIT]> {
        (self.is_contiguous() && self.run() as usize >= UNIT).then_some(&self.units)
    }

    /// Returns whether the bytes of a contiguous block are in row order in memory, so that it needs no conversion.
    #[inline]
    pub fn in_row_order(&self) -> bool {
        self.run() == self.block_extent().0
    }

    /// Calls `each(offset in the raw block, offset in row order, run)` for all runs of a block.
    #[inline]
    fn each_run(&self, each: impl FnMut(usize, usize, usize)) {
        if self.swizzle == 0 {
            self.each_run_at(|offset| offset, each);
        } else {
            self.each_run_at(|offset| self.swizzled(offset), each);
        }
    }

    /// [`Layout::each_run`], with the offset in the raw block that `place` returns for one before swizzling.
    #[inline]
    fn each_run_at(&self, place: impl Fn(u32) -> u32, mut each: impl FnMut(usize, usize, usize)) {
        let (width, height) = self.block_extent();
        let run = self.run();
        let columns = self.columns & 0xfff & !run.wrapping_sub(1);
        let rows = self.rows & 0xfff;
        let mut row_bits = 0u32;
        let mut at = 0usize;
        for _ in 0..height {
            let mut column_bits = 0u32;
            for _ in 0..width >> run.trailing_zeros() {
                each(place(row_bits | column_bits) as usize, at, run as usize);
                // Increments within the bits of the mask.
                column_bits = column_bits.wrapping_sub(columns) & columns;
                at = at.wrapping_add(run as usize);
            }
            row_bits = row_bits.wrapping_sub(rows) & rows;
        }
    }

    /// Converts a contiguous block from memory order to row order.
    pub fn unpack(&self, raw: &[u8; BLOCK_BYTES], rows: &mut [u8; BLOCK_BYTES]) {
        if self.units().is_some() {
            self.unpack_part(raw, rows, (1, 0));
        } else {
            self.each_run(|from, to, run| copy(rows, to, raw, from, run));
        }
    }

    /// Converts a contiguous block from row order to memory order.
    pub fn pack(&self, rows: &[u8; BLOCK_BYTES], raw: &mut [u8; BLOCK_BYTES]) {
        if self.units().is_some() {
            self.pack_part(rows, raw, (1, 0));
        } else {
            self.each_run(|to, from, run| copy(raw, to, rows, from, run));
        }
    }
}

/// Blocks side by side.
#[allow(clippy::arithmetic_side_effects, reason = "numbers of units in rows of a few blocks")]
impl Layout {
    /// Converts a block from memory order to its part of the rows of `blocks` blocks side by side, of which it is the one
    /// with number `index`. Only for a layout with [`Layout::units`].
    #[inline]
    pub fn unpack_part(&self, raw: &[u8; BLOCK_BYTES], rows: &mut [u8], (blocks, index): (usize, usize)) {
        let Some(units) = self.units() else {
            debug_assert!(false, "{} has no units", self.name);
            return;
        };
        let width = self.units_of_row();
        let (raw, rows) = (raw.as_chunks::<UNIT>().0, rows.as_chunks_mut::<UNIT>().0);
        for (row, units) in rows.chunks_exact_mut(blocks.max(1) * width).zip(units.chunks_exact(width)) {
            for (into, unit) in row.iter_mut().skip(index * width).zip(units) {
                if let Some(from) = raw.get(usize::from(*unit)) {
                    *into = *from;
                }
            }
        }
    }

    /// The reverse of [`Layout::unpack_part`].
    #[inline]
    pub fn pack_part(&self, rows: &[u8], raw: &mut [u8; BLOCK_BYTES], (blocks, index): (usize, usize)) {
        let Some(units) = self.units() else {
            debug_assert!(false, "{} has no units", self.name);
            return;
        };
        let width = self.units_of_row();
        let (raw, rows) = (raw.as_chunks_mut::<UNIT>().0, rows.as_chunks::<UNIT>().0);
        for (row, units) in rows.chunks_exact(blocks.max(1) * width).zip(units.chunks_exact(width)) {
            for (from, unit) in row.iter().skip(index * width).zip(units) {
                if let Some(into) = raw.get_mut(usize::from(*unit)) {
                    *into = *from;
                }
            }
        }
    }

    /// Number of units in a row of a block, at least 1.
    #[inline]
    fn units_of_row(&self) -> usize {
        (self.block.0 as usize / UNIT).max(1)
    }
}

/// A plane of pixels in memory. Columns are in bytes everywhere, so the pixel size is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Address of column 0 of row 0; in tiles of volumes, of slice 0 of its tile.
    pub base: u64,
    /// Distance between rows in bytes; a row of tiles occupies `pitch` times the height and depth of a tile.
    pub pitch: i64,
    /// Memory layout.
    pub tiling: Tiling,
    /// Bits of each offset in a tile that come from the slice, in tiles of volumes ([`Surface::slice_of`]); 0 in others.
    pub slice: u32,
    /// Pixels are compressed: accesses use the control data of the memory.
    pub compressed: bool,
}

impl Surface {
    /// The first plane of a surface that is not compressed.
    pub fn new(base: u64, pitch: i64, tiling: Tiling) -> Surface {
        Surface { base, pitch, tiling, slice: 0, compressed: false }
    }

    /// The plane of array element or slice `index`, and the number of its first row. The distance between planes is `rows`
    /// rows, less than 2^17: in tiles of volumes, a slice of the same tiles as far as they have it, or of tiles so many rows of
    /// tiles further.
    #[inline]
    pub fn slice_of(self, index: u32, rows: u32) -> (Surface, i64) {
        let Tiling::Tiled(layout) = self.tiling else { return (self, rows_between(index, rows)) };
        if layout.is_contiguous() {
            return (self, rows_between(index, rows));
        }
        let (height, depth) = (Size::new(layout.tile.1), Size::new(layout.depth()));
        let tile_rows = rows_between(low(depth.units(index.into()).cast_unsigned()), rows.wrapping_shr(height.0));
        let distance = tile_rows.wrapping_mul(depth.bytes(height.bytes(self.pitch)));
        let slice = spread(depth.rest(index.into()), layout.slices);
        (Surface { base: self.base.wrapping_add_signed(distance), slice, ..self }, 0)
    }

    /// Columns and rows of the preferred unit of processing: 4 KiB of memory, [`BLOCK_BYTES`].
    #[inline]
    pub fn block_extent(&self) -> (u32, u32) {
        match self.tiling {
            Tiling::Linear => (LINEAR_BLOCK, 1),
            Tiling::Tiled(layout) => layout.block_extent(),
        }
    }

    /// Address of a byte. Coordinates may be negative: the byte may be below the base.
    #[inline]
    pub fn address(&self, column: i64, row: i64) -> u64 {
        let offset = match self.tiling {
            Tiling::Linear => row.wrapping_mul(self.pitch).wrapping_add(column),
            Tiling::Tiled(layout) => {
                let (columns, rows) = (Size::new(layout.tile.0), Size::new(layout.tile.1));
                let depth = Size(layout.slices.count_ones());
                let inside = layout.offset(columns.rest(column), rows.rest(row)) | self.slice;
                let tile_row = rows.units(row).wrapping_mul(depth.bytes(rows.bytes(self.pitch)));
                let tile = depth.bytes(columns.bytes(rows.bytes(columns.units(column))));
                tile_row.wrapping_add(tile).wrapping_add(i64::from(inside))
            }
        };
        self.base.wrapping_add_signed(offset) & ADDRESS_MASK
    }

    /// Number of bytes, starting at `column`, that are contiguous in memory.
    #[inline]
    pub fn run(&self, column: i64) -> u64 {
        match self.tiling {
            Tiling::Linear => u64::MAX,
            Tiling::Tiled(layout) => {
                let run = Size::new(layout.run());
                u64::from(layout.run().wrapping_sub(run.rest(column)))
            }
        }
    }
}

/// Row of the first row of plane `index`, if planes are `rows` rows from each other.
#[inline]
fn rows_between(index: u32, rows: u32) -> i64 {
    i64::from(index).wrapping_mul(i64::from(rows))
}

/// A rectangle, with columns in bytes. Columns are below 2^21 and rows below 2^29 in magnitude, in the destination and
/// in the source: corners have 16 bits, offsets 14 bits, numbers of planes 11 bits, distances between them 17 bits, and pixels
/// at most 16 bytes. Sums and products of them cannot overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First column (bytes).
    pub column: i64,
    /// First row.
    pub row: i64,
    /// Bytes per row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

#[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
impl Area {
    /// Returns whether the rectangle has the bounds that every one has.
    fn is_bounded(&self) -> bool {
        self.column.abs() < 1 << 21 && self.row.abs() < 1 << 29
    }

    /// The part of the rectangle in cell (`across`, `down`) of a grid with this `cell` size (powers of two), counted from
    /// the cell that contains the rectangle's corner.
    #[inline]
    pub fn cell(&self, cell: (u32, u32), across: u64, down: u64) -> Area {
        let part = |start: i64, len: u32, cell: u32, index: u64| {
            let size = Size::new(cell);
            let end = start + i64::from(len);
            let first = size.bytes(size.units(start) + index as i64);
            let (low, high) = (first.max(start), (first + i64::from(cell)).min(end));
            (low, u32::try_from(high - low).unwrap_or(0))
        };
        let (column, width) = part(self.column, self.width, cell.0, across);
        let (row, height) = part(self.row, self.height, cell.1, down);
        Area { column, row, width, height }
    }

    /// Number of cells that the rectangle covers horizontally and vertically.
    #[inline]
    pub fn cells(&self, cell: (u32, u32)) -> (u64, u64) {
        debug_assert!(self.is_bounded(), "{self:?}");
        let count = |start: i64, len: u32, cell: u32| {
            if len == 0 {
                return 0;
            }
            let size = Size::new(cell);
            size.units(start + i64::from(len) + i64::from(cell) - 1).abs_diff(size.units(start))
        };
        (count(self.column, self.width, cell.0), count(self.row, self.height, cell.1))
    }

    /// Column and row of the corner within its grid cell.
    #[inline]
    pub fn origin(&self, cell: (u32, u32)) -> (i64, i64) {
        (Size::new(cell.0).rest(self.column).into(), Size::new(cell.1).rest(self.row).into())
    }

    /// The rectangle translated by `columns` and `rows`.
    #[inline]
    pub fn moved(&self, columns: i64, rows: i64) -> Area {
        Area { column: self.column + columns, row: self.row + rows, ..*self }
    }
}
