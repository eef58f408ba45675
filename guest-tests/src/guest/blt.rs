// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The copy engine's commands, XY_FAST_COLOR_BLT, XY_FAST_COPY_BLT and XY_BLOCK_COPY_BLT, and their surfaces (contract
//! B.9, `xe: xe_gpu_commands.h`).

use super::batch::Batch;
use crate::number::{count, high, low};
use crate::testcard::Rect;

const fn xy(opcode: u32, dwords: u32) -> u32 {
    2 << 29 | opcode << 22 | (dwords - 2)
}

const XY_BLOCK_COPY_BLT: u32 = xy(0x41, 22);
const XY_FAST_COPY_BLT: u32 = xy(0x42, 10);
const XY_FAST_COLOR_BLT: u32 = xy(0x44, 16);
/// MOCS index 1, used by the driver's own blits (`xe: dg2_mocs_desc`, `uc_index`).
const MOCS: u32 = 1;
/// Selects Tile4 instead of TileY in dword 1 of XY_FAST_COPY_BLT, for source and destination.
const FAST_COPY_SRC_TILE4: u32 = 1 << 31;
const FAST_COPY_DST_TILE4: u32 = 1 << 30;
const SURFACE_TYPE_2D: u32 = 1 << 29;

/// Tiling of pixels in memory; each discriminant is the value of the commands' tiling field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Tiling {
    /// Row by row.
    Linear = 0,
    /// 4 KiB tiles of 512 bytes by 8 rows.
    X = 1,
    /// 4 KiB tiles of 128 bytes by 32 rows.
    Tile4 = 2,
    /// 64 KiB tiles.
    Tile64 = 3,
}

/// Bits per pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// 8 bits.
    Bits8,
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
    /// 128 bits.
    Bits128,
}

impl Depth {
    /// Bytes per pixel, the colour depth code of XY_FAST_COPY_BLT, and the code of XY_FAST_COLOR_BLT and
    /// XY_BLOCK_COPY_BLT.
    const fn codes(self) -> (usize, u32, u32) {
        match self {
            Depth::Bits8 => (1, 0, 0),
            Depth::Bits16 => (2, 1, 1),
            Depth::Bits32 => (4, 3, 2),
            Depth::Bits64 => (8, 4, 3),
            Depth::Bits128 => (16, 5, 5),
        }
    }

    /// Bytes per pixel.
    pub const fn bytes(self) -> usize {
        self.codes().0
    }
}

/// A two-dimensional surface.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    /// GPU virtual address of the first byte.
    pub address: u64,
    /// Row pitch in bytes; a multiple of the tile width if tiled.
    pub pitch: u32,
    /// Rows.
    pub height: u32,
    /// Layout.
    pub tiling: Tiling,
    /// Whether it is in system memory rather than local memory.
    pub system: bool,
}

impl Surface {
    /// Pitch in the commands' units: dwords if tiled, bytes if linear.
    fn pitch_field(&self) -> u32 {
        match self.tiling {
            Tiling::Linear => self.pitch,
            _ => self.pitch / 4,
        }
    }

    /// Surface type, width and height; the width is in pixels of `depth`.
    fn extent_field(&self, depth: Depth) -> u32 {
        let width = self.pitch / count(depth.bytes());
        SURFACE_TYPE_2D | ((width - 1) & 0x3fff) << 14 | ((self.height - 1) & 0x3fff)
    }
}

/// A rectangle in pixels, right and bottom edges exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Left.
    pub x: u32,
    /// Top.
    pub y: u32,
    /// Pixels per row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl From<Rect> for Area {
    fn from(rect: Rect) -> Self {
        Area { x: rect.x, y: rect.y, width: rect.width, height: rect.height }
    }
}

fn point(x: u32, y: u32) -> u32 {
    y << 16 | x
}

impl Batch {
    /// XY_FAST_COLOR_BLT: fills `area` of `to`; wider pixels use more dwords of `colour`, low dword first.
    pub fn fast_color(&mut self, to: &Surface, depth: Depth, area: Area, colour: [u32; 4]) -> &mut Self {
        let mut command = [0; 16];
        command[0] = XY_FAST_COLOR_BLT | depth.codes().2 << 19;
        command[1] = (to.tiling as u32) << 30 | MOCS << 22 | (to.pitch_field() - 1);
        command[2] = point(area.x, area.y);
        command[3] = point(area.x + area.width, area.y + area.height);
        command[4] = low(to.address);
        command[5] = high(to.address);
        command[6] = u32::from(to.system) << 31;
        command[7..11].copy_from_slice(&colour);
        command[13] = to.extent_field(depth);
        self.push(&command)
    }

    /// XY_FAST_COPY_BLT: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
    pub fn fast_copy(&mut self, from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> &mut Self {
        let tile4 = |surface: &Surface, bit| if surface.tiling == Tiling::Tile4 { bit } else { 0 };
        self.push(&[
            XY_FAST_COPY_BLT | (from.tiling as u32) << 20 | (to.tiling as u32) << 13,
            tile4(from, FAST_COPY_SRC_TILE4)
                | tile4(to, FAST_COPY_DST_TILE4)
                | u32::from(from.system) << 29
                | u32::from(to.system) << 28
                | depth.codes().1 << 24
                | to.pitch_field(),
            point(x, y),
            point(x + area.width, y + area.height),
            low(to.address),
            high(to.address),
            point(area.x, area.y),
            from.pitch_field(),
            low(from.address),
            high(from.address),
        ])
    }

    /// XY_BLOCK_COPY_BLT, uncompressed: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
    pub fn block_copy(&mut self, from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> &mut Self {
        let layout = |surface: &Surface| (surface.tiling as u32) << 30 | MOCS << 22 | (surface.pitch_field() - 1);
        let mut command = [0; 22];
        command[..12].copy_from_slice(&[
            XY_BLOCK_COPY_BLT | depth.codes().2 << 19,
            layout(to),
            point(x, y),
            point(x + area.width, y + area.height),
            low(to.address),
            high(to.address),
            u32::from(to.system) << 31,
            point(area.x, area.y),
            layout(from),
            low(from.address),
            high(from.address),
            u32::from(from.system) << 31,
        ]);
        command[16] = to.extent_field(depth);
        command[19] = from.extent_field(depth);
        self.push(&command)
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

    const LINEAR: Surface =
        Surface { address: 0x1_0000_0000, pitch: 4096, height: 2048, tiling: Tiling::Linear, system: false };
    const TILE4: Surface =
        Surface { address: 0x2_0001_0000, pitch: 1024, height: 64, tiling: Tiling::Tile4, system: true };

    /// Contract B.9: the driver's own clear and copy of 8 MiB, except for the memory bit and the surface's extent.
    #[test]
    fn blits_match_the_driver_s() {
        let mut batch = Batch::at(0);
        let area = Area { x: 0, y: 0, width: 1024, height: 2048 };
        batch.fast_color(&LINEAR, Depth::Bits32, area, [0; 4]);
        let dwords = batch.dwords();
        assert_eq!(dwords[..7], [0x5110_000e, 1 << 22 | 4095, 0, 2048 << 16 | 1024, 0, 1, 0]);
        assert_eq!(dwords.len(), 16);
        assert_eq!(dwords[13], 1 << 29 | 1023 << 14 | 2047);

        let mut batch = Batch::at(0);
        batch.fast_copy(&LINEAR, area, &LINEAR, 0, 0, Depth::Bits32);
        assert_eq!(batch.dwords(), [0x5080_0008, 0x0300_1000, 0, 2048 << 16 | 1024, 0, 1, 0, 4096, 0, 1]);
    }

    /// Contract K.8, B.9: Tile4 fields, dword pitches, memory bits.
    #[test]
    fn tiled_surfaces() {
        let area = Area { x: 3, y: 5, width: 10, height: 20 };
        let mut batch = Batch::at(0);
        batch.fast_copy(&TILE4, area, &LINEAR, 7, 9, Depth::Bits32);
        assert_eq!(
            batch.dwords(),
            [0x50a0_0008, 0xa300_1000, 9 << 16 | 7, 29 << 16 | 17, 0, 1, 5 << 16 | 3, 256, 0x0001_0000, 2]
        );
        let mut batch = Batch::at(0);
        batch.fast_copy(&LINEAR, area, &TILE4, 0, 0, Depth::Bits8);
        assert_eq!(batch.dwords()[..2], [0x5080_4008, 0x5000_0100]);

        let mut batch = Batch::at(0);
        batch.block_copy(&LINEAR, area, &TILE4, 7, 9, Depth::Bits64);
        let dwords = batch.dwords();
        assert_eq!(dwords.len(), 22);
        assert_eq!(
            dwords[..12],
            [
                0x5058_0014,
                2 << 30 | 1 << 22 | 255,
                9 << 16 | 7,
                29 << 16 | 17,
                0x0001_0000,
                2,
                1 << 31,
                5 << 16 | 3,
                1 << 22 | 4095,
                0,
                1,
                0
            ]
        );
    }

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
