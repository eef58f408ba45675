// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the copy engine and their surfaces (contract B.9, `xe: xe_gpu_commands.h`).

use crate::header::xy;
use crate::{high, low};

const XY_BLOCK_COPY_BLT: u32 = xy(0x41, 22);
const XY_FAST_COPY_BLT: u32 = xy(0x42, 10);
const XY_FAST_COLOR_BLT: u32 = xy(0x44, 16);
const XY_CTRL_SURF_COPY_BLT: u32 = xy(0x48, 5);
const XY_COLOR_BLT: u32 = xy(0x50, 7);
/// MOCS index 1, used by the driver's own blits (`xe: dg2_mocs_desc`, `uc_index`).
const MOCS: u32 = 1;
/// Selects Tile4 instead of TileY in dword 1 of XY_FAST_COPY_BLT, for source and destination.
const FAST_COPY_SRC_TILE4: u32 = 1 << 31;
const FAST_COPY_DST_TILE4: u32 = 1 << 30;
const SURFACE_TYPE_2D: u32 = 1 << 29;
/// Raster operation: the pattern or colour.
const ROP_PATTERN: u32 = 0xf0;

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
    /// Bytes per pixel, the colour depth code of XY_FAST_COPY_BLT and XY_COLOR_BLT, and the code of XY_FAST_COLOR_BLT
    /// and XY_BLOCK_COPY_BLT.
    const fn codes(self) -> (u32, u32, u32) {
        match self {
            Depth::Bits8 => (1, 0, 0),
            Depth::Bits16 => (2, 1, 1),
            Depth::Bits32 => (4, 3, 2),
            Depth::Bits64 => (8, 4, 3),
            Depth::Bits128 => (16, 5, 5),
        }
    }

    /// Returns the bytes per pixel.
    pub const fn bytes(self) -> usize {
        self.codes().0 as usize
    }
}

/// A two-dimensional surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Returns a surface of the maximum height in linear local memory.
    pub const fn linear(address: u64, pitch: u32) -> Self {
        Surface { address, pitch, height: 0x4000, tiling: Tiling::Linear, system: false }
    }

    /// Pitch in the commands' units: dwords if tiled, bytes if linear.
    const fn pitch_field(&self) -> u32 {
        match self.tiling {
            Tiling::Linear => self.pitch,
            _ => self.pitch / 4,
        }
    }

    /// Surface type, width and height; the width is in pixels of `depth`.
    const fn extent_field(&self, depth: Depth) -> u32 {
        let width = self.pitch / depth.codes().0;
        SURFACE_TYPE_2D | ((width - 1) & 0x3fff) << 14 | ((self.height - 1) & 0x3fff)
    }

    /// Layout, MOCS and pitch, as XY_FAST_COLOR_BLT and XY_BLOCK_COPY_BLT have them in one dword.
    const fn layout_field(&self) -> u32 {
        (self.tiling as u32) << 30 | MOCS << 22 | (self.pitch_field() - 1)
    }

    const fn tile4(&self, bit: u32) -> u32 {
        match self.tiling {
            Tiling::Tile4 => bit,
            _ => 0,
        }
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

impl Area {
    /// Returns a rectangle at the top left corner.
    pub const fn of(width: u32, height: u32) -> Self {
        Area { x: 0, y: 0, width, height }
    }

    /// Returns the field of the top left corner.
    pub const fn start(self) -> u32 {
        point(self.x, self.y)
    }

    /// Returns the field of the bottom right corner.
    pub const fn end(self) -> u32 {
        point(self.x + self.width, self.y + self.height)
    }

    /// Returns the rectangle of the same size at (`x`, `y`).
    pub const fn moved_to(self, x: u32, y: u32) -> Self {
        Area { x, y, ..self }
    }
}

const fn point(x: u32, y: u32) -> u32 {
    y << 16 | x
}

/// XY_FAST_COLOR_BLT: fills `area` of `to`; wider pixels use more dwords of `colour`, low dword first.
pub const fn fast_color(to: &Surface, depth: Depth, area: Area, colour: [u32; 4]) -> [u32; 16] {
    let mut command = [0; 16];
    command[0] = XY_FAST_COLOR_BLT | depth.codes().2 << 19;
    command[1] = to.layout_field();
    command[2] = area.start();
    command[3] = area.end();
    command[4] = low(to.address);
    command[5] = high(to.address);
    command[6] = (to.system as u32) << 31;
    [command[7], command[8], command[9], command[10]] = colour;
    command[13] = to.extent_field(depth);
    command
}

/// XY_FAST_COPY_BLT: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
pub const fn fast_copy(from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> [u32; 10] {
    let target = area.moved_to(x, y);
    let tiles = from.tile4(FAST_COPY_SRC_TILE4) | to.tile4(FAST_COPY_DST_TILE4);
    let memory = (from.system as u32) << 29 | (to.system as u32) << 28;
    [
        XY_FAST_COPY_BLT | (from.tiling as u32) << 20 | (to.tiling as u32) << 13,
        tiles | memory | depth.codes().1 << 24 | to.pitch_field(),
        target.start(),
        target.end(),
        low(to.address),
        high(to.address),
        area.start(),
        from.pitch_field(),
        low(from.address),
        high(from.address),
    ]
}

/// XY_BLOCK_COPY_BLT, uncompressed: copies `area` of `from` to (`x`, `y`) of `to`; the two must not overlap.
pub const fn block_copy(from: &Surface, area: Area, to: &Surface, x: u32, y: u32, depth: Depth) -> [u32; 22] {
    let target = area.moved_to(x, y);
    let mut command = [0; 22];
    command[0] = XY_BLOCK_COPY_BLT | depth.codes().2 << 19;
    command[1] = to.layout_field();
    command[2] = target.start();
    command[3] = target.end();
    command[4] = low(to.address);
    command[5] = high(to.address);
    command[6] = (to.system as u32) << 31;
    command[7] = area.start();
    command[8] = from.layout_field();
    command[9] = low(from.address);
    command[10] = high(from.address);
    command[11] = (from.system as u32) << 31;
    command[16] = to.extent_field(depth);
    command[19] = from.extent_field(depth);
    command
}

/// XY_COLOR_BLT of `area` of a linear surface.
pub const fn color(to: &Surface, depth: Depth, area: Area, colour: u32) -> [u32; 7] {
    let format = depth.codes().1 << 24 | ROP_PATTERN << 16 | to.pitch_field();
    [XY_COLOR_BLT, format, area.start(), area.end(), low(to.address), high(to.address), colour]
}

/// Source or destination of a copy of compression control data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Memory at a PPGTT address.
    Memory(u64),
    /// The control data of the local memory at a PPGTT address.
    Surface(u64),
}

impl Control {
    /// Returns the address, and `bit` for memory.
    const fn split(self, bit: u32) -> (u64, u32) {
        match self {
            Control::Memory(address) => (address, bit),
            Control::Surface(address) => (address, 0),
        }
    }
}

/// XY_CTRL_SURF_COPY_BLT of `blocks` blocks of 256 bytes of control data.
pub const fn ctrl_surf_copy(to: Control, from: Control, blocks: u32) -> [u32; 5] {
    let ((to, to_memory), (from, from_memory)) = (to.split(1 << 20), from.split(1 << 21));
    let header = XY_CTRL_SURF_COPY_BLT | to_memory | from_memory | (blocks - 1) << 8;
    [header, low(from), high(from), low(to), high(to)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: Surface = Surface { height: 2048, ..Surface::linear(0x1_0000_0000, 4096) };
    const TILE4: Surface =
        Surface { address: 0x2_0001_0000, pitch: 1024, height: 64, tiling: Tiling::Tile4, system: true };

    /// Contract B.9: the driver's own clear and copy of 8 MiB, except for the memory bit and the surface's extent.
    #[test]
    fn blits_are_encoded_as_by_the_driver() {
        let area = Area::of(1024, 2048);
        let clear = fast_color(&LINEAR, Depth::Bits32, area, [0; 4]);
        assert_eq!(clear[..7], [0x5110_000e, 1 << 22 | 4095, 0, 2048 << 16 | 1024, 0, 1, 0]);
        assert_eq!(clear[13], 1 << 29 | 1023 << 14 | 2047);
        let copy = fast_copy(&LINEAR, area, &LINEAR, 0, 0, Depth::Bits32);
        assert_eq!(copy, [0x5080_0008, 0x0300_1000, 0, 2048 << 16 | 1024, 0, 1, 0, 4096, 0, 1]);
    }

    /// Contract K.8, B.9: Tile4 fields, dword pitches, memory bits.
    #[test]
    fn tiled_surfaces_have_their_tiling_and_a_pitch_in_dwords() {
        let area = Area { x: 3, y: 5, width: 10, height: 20 };
        assert_eq!(
            fast_copy(&TILE4, area, &LINEAR, 7, 9, Depth::Bits32),
            [0x50a0_0008, 0xa300_1000, 9 << 16 | 7, 29 << 16 | 17, 0, 1, 5 << 16 | 3, 256, 0x0001_0000, 2]
        );
        assert_eq!(fast_copy(&LINEAR, area, &TILE4, 0, 0, Depth::Bits8)[..2], [0x5080_4008, 0x5000_0100]);
        let (corner, target) = ([9 << 16 | 7, 29 << 16 | 17], [0x0001_0000, 2, 1 << 31]);
        let copy = block_copy(&LINEAR, area, &TILE4, 7, 9, Depth::Bits64);
        assert_eq!(copy[..2], [0x5058_0014, 2 << 30 | 1 << 22 | 255]);
        assert_eq!((&copy[2..4], &copy[4..7]), (&corner[..], &target[..]));
        assert_eq!(copy[7..12], [5 << 16 | 3, 1 << 22 | 4095, 0, 1, 0]);
    }

    /// Contract B.9: XY_COLOR_BLT and XY_CTRL_SURF_COPY_BLT.
    #[test]
    fn fills_and_copies_of_control_data_have_their_fields() {
        let fill = color(&LINEAR, Depth::Bits32, Area::of(16, 8), 7);
        assert_eq!(fill, [0x5400_0005, 0x03f0_1000, 0, 8 << 16 | 16, 0, 1, 7]);
        let copy = ctrl_surf_copy(Control::Memory(0x1_0000), Control::Surface(0x2_0000), 2);
        assert_eq!(copy, [0x5210_0103, 0x2_0000, 0, 0x1_0000, 0]);
        let copy = ctrl_surf_copy(Control::Surface(0x1_0000), Control::Memory(0x2_0000), 1);
        assert_eq!(copy[0], 0x5220_0003);
    }
}
