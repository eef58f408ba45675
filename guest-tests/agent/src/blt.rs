// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Blits in batches, and the layouts of tiled surfaces.

use arctic_mi::blt;
pub use arctic_mi::blt::{Area, Depth, Surface, Tiling};

use super::batch::Batch;
use crate::testcard::Rect;

impl From<Rect> for Area {
    fn from(rect: Rect) -> Self {
        Area { x: rect.x, y: rect.y, width: rect.width, height: rect.height }
    }
}

impl Batch {
    /// XY_FAST_COLOR_BLT: fills `area` of `to`; wider pixels use more dwords of `colour`, low dword first.
    pub fn fast_color(&mut self, to: &Surface, depth: Depth, area: Area, colour: [u32; 4]) -> &mut Self {
        self.push(&blt::fast_color(to, depth, area, colour))
    }

    /// XY_FAST_COPY_BLT: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
    pub fn fast_copy(&mut self, from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> &mut Self {
        self.push(&blt::fast_copy(from, area, to, x, y, depth))
    }

    /// XY_BLOCK_COPY_BLT, uncompressed: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
    pub fn block_copy(&mut self, from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> &mut Self {
        self.push(&blt::block_copy(from, area, to, x, y, depth))
    }
}

/// Returns the offset of byte `x` of row `y` in a surface with row pitch `pitch`, derived from the PRM's figures as an
/// independent reference for the copy engine. Tile64 depends on the pixel size and is checked by round trips instead.
pub fn offset(tiling: Tiling, pitch: usize, x: usize, y: usize) -> usize {
    match tiling {
        Tiling::Linear => y * pitch + x,
        Tiling::X => (y / 8) * 8 * pitch + (x / 512) * 4096 + (y % 8) * 512 + x % 512,
        Tiling::Tile4 => {
            // A tile consists of units of 16 bytes by 4 rows. Four units in a row form a block of 64 bytes by 4 rows,
            // two of these in a column 64 by 8 (512 bytes), two of these in a row 128 by 8 (1 KiB), and four of these
            // in a column the tile.
            let (column, row) = (x % 128, y % 32);
            (y / 32) * 32 * pitch
                + (x / 128) * 4096
                + (row / 8) * 1024
                + (column / 64) * 512
                + (row / 4 % 2) * 256
                + (column / 16 % 4) * 64
                + (row % 4) * 16
                + column % 16
        }
        Tiling::Tile64 => unreachable!("Tile64 surfaces are compared by round trips"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `drm_fourcc.h` on Tile4: 4 KiB is 128 bytes by 32 rows, 512 bytes 64 by 8, 64 bytes 16 by 4.
    #[test]
    fn tiles_cover_their_memory_once() {
        for (tiling, pitch, height) in [(Tiling::X, 1024, 16), (Tiling::Tile4, 256, 64)] {
            let mut seen = vec![false; pitch * height];
            for (x, y) in (0..height).flat_map(|y| (0..pitch).map(move |x| (x, y))) {
                let at = offset(tiling, pitch, x, y);
                assert!(!std::mem::replace(&mut seen[at], true), "{tiling:?} {x},{y}");
            }
        }
        assert_eq!(offset(Tiling::Tile4, 256, 15, 3), 63);
        assert_eq!(offset(Tiling::Tile4, 256, 63, 7), 511);
        assert_eq!(offset(Tiling::Tile4, 256, 64, 0), 512);
        assert_eq!(offset(Tiling::Tile4, 256, 0, 8), 1024);
        assert_eq!(offset(Tiling::Tile4, 256, 128, 0), 4096);
        assert_eq!(offset(Tiling::Tile4, 256, 0, 32), 8192);
    }
}
