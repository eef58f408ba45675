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

/// A tile layout: the masks define which bits of a byte's offset in the tile come from its column and which from its
/// row. Both preserve the bit order, so the two masks define the layout before swizzling completely.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name as in the documents.
    pub name: &'static str,
    /// Offset bits from the column (in bytes).
    pub columns: u32,
    /// Offset bits from the row.
    pub rows: u32,
    /// Offset bits from 7 up: their parity inverts bit 6, as families before Xe-HP do to spread accesses over two memory
    /// channels; 0 for none.
    pub swizzle: u32,
}

/// Number of the offset bit that swizzling inverts.
const SWIZZLED_BIT: u32 = 6;

/// 4 KiB: 512 bytes by 8 rows, in row order.
pub static TILE_X: Layout = Layout { name: "X", columns: 0x1ff, rows: 0xe00, swizzle: 0 };
/// 4 KiB: 128 bytes by 32 rows, in columns of 16 bytes (before Xe-HP).
pub static TILE_Y: Layout = Layout { name: "Y", columns: 0xe0f, rows: 0x1f0, swizzle: 0 };
/// [`TILE_X`] with swizzling: bit 6 is inverted by bits 9 and 10.
pub static TILE_X_SWIZZLED: Layout = Layout { swizzle: 0x600, ..TILE_X };
/// [`TILE_Y`] with swizzling: bit 6 is inverted by bit 9.
pub static TILE_Y_SWIZZLED: Layout = Layout { swizzle: 0x200, ..TILE_Y };
/// 4 KiB: 64 bytes by 64 rows, for stencil buffers (before Xe-HP). Offset bits `XXXY YYYX YXYX`.
pub static TILE_W: Layout = Layout { name: "W", columns: 0xe15, rows: 0x1ea, swizzle: 0 };
/// 4 KiB: 128 bytes by 32 rows, in blocks of 16 bytes by 4 rows. Offset bits `YYXY XXYY XXXX`.
pub static TILE_4: Layout = Layout { name: "Tile4", columns: 0x2cf, rows: 0xd30, swizzle: 0 };
/// 64 KiB for 8 bits per pixel: 256 bytes by 256 rows of Tile4 blocks. Offset bits `YYYX`, then those of Tile4.
pub static TILE_64_8: Layout = Layout { name: "Tile64", columns: 0x12cf, rows: 0xed30, swizzle: 0 };
/// 64 KiB for 16 and 32 bits per pixel: 512 bytes by 128 rows. Offset bits `YYXX`, then those of Tile4.
pub static TILE_64_16_32: Layout = Layout { name: "Tile64", columns: 0x32cf, rows: 0xcd30, swizzle: 0 };
/// 64 KiB for 64 and 128 bits per pixel: 1024 bytes by 64 rows. Offset bits `YXXX`, then those of Tile4.
pub static TILE_64_64_128: Layout = Layout { name: "Tile64", columns: 0x72cf, rows: 0x8d30, swizzle: 0 };

/// Deposits the low bits of `value` at the bits of `mask`.
const fn spread(value: u32, mask: u32) -> u32 {
    let (mut value, mut mask, mut out) = (value, mask, 0);
    while mask != 0 {
        let bit = mask & mask.wrapping_neg();
        if value & 1 != 0 {
            out |= bit;
        }
        value >>= 1;
        mask &= mask.wrapping_sub(1);
    }
    out
}

/// Copies a run of bytes from one block to another. Does nothing if the run exceeds either block.
#[inline]
fn copy(into: &mut [u8; BLOCK_BYTES], to: usize, raw: &[u8; BLOCK_BYTES], from: usize, run: usize) {
    let (into, raw) = (into.get_mut(to..to.wrapping_add(run)), raw.get(from..from.wrapping_add(run)));
    if let (Some(into), Some(raw)) = (into, raw) {
        into.copy_from_slice(raw);
    }
}

impl Layout {
    /// The two-dimensional Tile64 layout for pixels of `cpp` bytes; `None` for 96 bits.
    pub fn tile64(cpp: u32) -> Option<&'static Layout> {
        match cpp {
            1 => Some(&TILE_64_8),
            2 | 4 => Some(&TILE_64_16_32),
            8 | 16 => Some(&TILE_64_64_128),
            _ => None,
        }
    }

    /// Size of a tile: columns (bytes) and rows.
    #[inline]
    pub fn extent(&self) -> (u32, u32) {
        (1 << self.columns.count_ones(), 1 << self.rows.count_ones())
    }

    /// Size of a contiguous 4 KiB block: columns (bytes) and rows.
    #[inline]
    pub fn block_extent(&self) -> (u32, u32) {
        (1 << (self.columns & 0xfff).count_ones(), 1 << (self.rows & 0xfff).count_ones())
    }

    /// Offset of a byte in its tile.
    #[inline]
    pub fn offset(&self, column: u32, row: u32) -> u32 {
        let offset = spread(column, self.columns) | spread(row, self.rows);
        if self.swizzle == 0 { offset } else { self.swizzled(offset) }
    }

    /// The offset after swizzling of an offset before it, and the reverse.
    #[inline]
    fn swizzled(&self, offset: u32) -> u32 {
        offset ^ ((offset & self.swizzle).count_ones() & 1) << SWIZZLED_BIT
    }

    /// Number of bytes of a row that are contiguous in memory.
    #[inline]
    pub fn run(&self) -> u32 {
        let bits = self.columns.trailing_ones();
        1 << if self.swizzle == 0 { bits } else { bits.min(SWIZZLED_BIT) }
    }

    /// Returns whether the bytes of a block are in row order in memory, so that it needs no conversion.
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
        let (mut row_bits, mut at) = (0u32, 0usize);
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

    /// Converts a block from memory order to row order.
    pub fn unpack(&self, raw: &[u8; BLOCK_BYTES], rows: &mut [u8; BLOCK_BYTES]) {
        if self.run() == 16 {
            self.each_run(|from, to, _| copy(rows, to, raw, from, 16));
        } else {
            self.each_run(|from, to, run| copy(rows, to, raw, from, run));
        }
    }

    /// Converts a block from row order to memory order.
    pub fn pack(&self, rows: &[u8; BLOCK_BYTES], raw: &mut [u8; BLOCK_BYTES]) {
        if self.run() == 16 {
            self.each_run(|to, from, _| copy(raw, to, rows, from, 16));
        } else {
            self.each_run(|to, from, run| copy(raw, to, rows, from, run));
        }
    }
}

/// A surface in memory. Columns are in bytes everywhere, so the pixel size is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Address of column 0 of row 0.
    pub base: u64,
    /// Distance between rows in bytes; a row of tiles occupies `pitch` times the tile height.
    pub pitch: i64,
    /// Memory layout.
    pub tiling: Tiling,
    /// Pixels are compressed: accesses use the control data of the memory.
    pub compressed: bool,
}

impl Surface {
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
                let (width, height) = layout.extent();
                let (width, height) = (i64::from(width), i64::from(height));
                let inside = layout.offset(low(column.rem_euclid(width) as u64), low(row.rem_euclid(height) as u64));
                let tile_row = row.div_euclid(height).wrapping_mul(self.pitch.wrapping_mul(height));
                let tile = column.div_euclid(width).wrapping_mul(width.wrapping_mul(height));
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
                let run = u64::from(layout.run());
                run.wrapping_sub(column.rem_euclid(run as i64) as u64)
            }
        }
    }
}

/// A rectangle, with columns in bytes. Columns are below 2^21 and rows below 2^17 in magnitude, in the destination and
/// in the source: corners have 16 bits, offsets 14 bits, and pixels at most 16 bytes. Sums and products of them cannot
/// overflow.
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

impl Area {
    /// The part of the rectangle in cell (`across`, `down`) of a grid with this `cell` size, counted from the cell that
    /// contains the rectangle's corner.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    #[inline]
    pub fn cell(&self, cell: (u32, u32), across: u64, down: u64) -> Area {
        let part = |start: i64, len: u32, cell: u32, index: u64| {
            let (cell, end) = (i64::from(cell), start + i64::from(len));
            let first = (start.div_euclid(cell) + index as i64) * cell;
            let (low, high) = (first.max(start), (first + cell).min(end));
            (low, u32::try_from(high - low).unwrap_or(0))
        };
        let (column, width) = part(self.column, self.width, cell.0, across);
        let (row, height) = part(self.row, self.height, cell.1, down);
        Area { column, row, width, height }
    }

    /// Number of cells that the rectangle covers horizontally and vertically.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    #[inline]
    pub fn cells(&self, cell: (u32, u32)) -> (u64, u64) {
        let count = |start: i64, len: u32, cell: u32| {
            if len == 0 {
                return 0;
            }
            let cell = i64::from(cell);
            (start + i64::from(len) + cell - 1).div_euclid(cell).abs_diff(start.div_euclid(cell))
        };
        (count(self.column, self.width, cell.0), count(self.row, self.height, cell.1))
    }

    /// Column and row of the corner within its grid cell.
    #[inline]
    pub fn origin(&self, cell: (u32, u32)) -> (i64, i64) {
        (self.column.rem_euclid(i64::from(cell.0)), self.row.rem_euclid(i64::from(cell.1)))
    }

    /// The rectangle translated by `columns` and `rows`.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    #[inline]
    pub fn moved(&self, columns: i64, rows: i64) -> Area {
        Area { column: self.column + columns, row: self.row + rows, ..*self }
    }
}
