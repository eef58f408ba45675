// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Where the texels of a captured image are: linear or in tiles. EU-085.

use super::ADDRESS;
use crate::exec::memory::MipLayout;

/// Planes of texels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Virtual address of plane 0.
    pub base: u64,
    /// Bytes between rows.
    pub pitch: u64,
    /// Bytes of a texel, 1 to 16.
    pub texel_bytes: u32,
    /// Rows between planes.
    pub rows: u32,
    /// Number of the plane that is the image's first.
    pub first: u32,
    /// Column and row of the image's first texel, in texels.
    pub corner: [u32; 2],
    /// Where levels are in the planes.
    pub mips: MipLayout,
    /// The tiles; `None` for a linear image.
    pub tile: Option<Tile>,
    /// Accesses use the control data of the memory.
    pub compressed: bool,
}

/// A tile: which bits of the offset of a byte are those of its column, row and slice, in this order. Together they are the bits from
/// 0 on, at most 24 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Bits of the column, in bytes.
    pub columns: u32,
    /// Bits of the row.
    pub rows: u32,
    /// Bits of the slice, of tiles of volumes.
    pub slices: u32,
}

impl Tile {
    /// Bits of the largest tile.
    const MOST_BITS: u32 = 24;

    /// True if the bits are those of one.
    pub fn is_valid(self) -> bool {
        let Tile { columns, rows, slices } = self;
        let all = columns | rows | slices;
        let bits = columns.count_ones() + rows.count_ones() + slices.count_ones();
        bits <= Tile::MOST_BITS && all.trailing_ones() == bits && all.count_ones() == bits
    }
}

/// Deposits the low bits of `value` at the bits of `mask`.
fn spread(value: u64, mask: u32) -> u64 {
    let bits = (0..32).filter(|bit| mask >> bit & 1 != 0).enumerate();
    bits.fold(0, |sum, (from, to)| sum | (value >> from & 1) << to)
}

impl Planes {
    /// Virtual address of the byte `x` of row `y` of plane `z` of a level of the surface, and number of bytes of the row from there that are
    /// contiguous. Addresses wrap.
    pub fn byte(&self, level: u8, x: u64, y: u32, z: u32) -> (u64, u64) {
        let [left, top] = self.mips.corner(level);
        let left = u64::from(self.corner[0]) + u64::from(left);
        let plane = z.saturating_add(self.first);
        let column = x.wrapping_add(left * u64::from(self.texel_bytes));
        let row = u64::from(y) + u64::from(self.corner[1]) + u64::from(top);
        let rows = u64::from(plane) * u64::from(self.rows);
        let Some(tile) = self.tile else {
            let offset = row.wrapping_add(rows).wrapping_mul(self.pitch).wrapping_add(column);
            return (self.base.wrapping_add(offset) & ADDRESS, u64::MAX);
        };
        let [width, height, depth] = [tile.columns, tile.rows, tile.slices].map(u32::count_ones);
        // A plane of tiles of volumes is a slice of them; otherwise planes are rows of the same tiles.
        let (row, first_tile_row, slice) = if tile.slices == 0 {
            (row.wrapping_add(rows), 0, 0)
        } else {
            let tile_rows = u64::from(plane >> depth) * u64::from(self.rows >> height);
            (row, tile_rows, u64::from(plane) & ((1 << depth) - 1))
        };
        let tile_row = (row >> height).wrapping_add(first_tile_row);
        let inside = spread(column & ((1 << width) - 1), tile.columns)
            | spread(row & ((1 << height) - 1), tile.rows)
            | spread(slice, tile.slices);
        let offset = tile_row
            .wrapping_mul(self.pitch << (height + depth))
            .wrapping_add((column >> width) << (width + height + depth))
            .wrapping_add(inside);
        let run = 1u64 << tile.columns.trailing_ones();
        (self.base.wrapping_add(offset) & ADDRESS, run - (column & (run - 1)))
    }

    /// Virtual address of a texel of a level of the surface.
    pub fn texel(&self, level: u8, [x, y, z]: [u32; 3]) -> u64 {
        self.byte(level, u64::from(x) * u64::from(self.texel_bytes), y, z).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_tile_are_contiguous() {
        assert!(Tile { columns: 0x2cf, rows: 0xd30, slices: 0 }.is_valid());
        for (columns, rows, slices) in [(0x2cf, 0xd30, 1), (0x2cf, 0xc30, 0), (0x1ff_ffff, 0, 0), (1, 1, 0), (!0, 0, 0)]
        {
            assert!(!Tile { columns, rows, slices }.is_valid(), "{columns:#x}");
        }
    }

    /// The places of texels in a Tile4: blocks of 16 bytes by 4 rows (BLT-010).
    #[test]
    fn texels_of_a_tile_4() {
        let tile = Some(Tile { columns: 0x2cf, rows: 0xd30, slices: 0 });
        let planes = Planes {
            base: 0x1_0000,
            pitch: 256,
            texel_bytes: 4,
            rows: 32,
            first: 0,
            corner: [0; 2],
            mips: MipLayout::ONE,
            tile,
            compressed: false,
        };
        for (at, offset) in [
            ([0, 0, 0], 0),
            ([3, 0, 0], 12),
            ([0, 1, 0], 16),
            ([4, 0, 0], 64),
            ([0, 4, 0], 256),
            ([32, 0, 0], 4096),
            ([0, 32, 0], 8192),
            ([0, 0, 1], 8192),
        ] {
            assert_eq!(planes.texel(0, at), 0x1_0000 + offset, "{at:?}");
        }
        assert_eq!(planes.byte(0, 5, 0, 0).1, 11);
    }
}
