// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The blitter's commands XY_COLOR_BLT and XY_SRC_COPY_BLT (G67-121), and the register with which it treats tiled
//! surfaces as Y.

use super::batch::Batch;
use super::gem::Object;
use super::tiling::Tiling;
use crate::guest::blt::Area;
use crate::guest::uapi::i915::DOMAIN_RENDER;

const fn xy(opcode: u32, dwords: u32) -> u32 {
    2 << 29 | opcode << 22 | (dwords - 2)
}

const XY_COLOR_BLT: u32 = xy(0x50, 6);
const XY_SRC_COPY_BLT: u32 = xy(0x53, 8);
const SRC_TILED: u32 = 1 << 15;
const DST_TILED: u32 = 1 << 11;
/// Writes the colours and the alpha of a pixel of 32 bits.
const WRITE_ALPHA_AND_RGB: u32 = 3 << 20;

/// The register that selects Y instead of X tiling of source and destination; the upper half is the mask.
pub const BCS_SWCTRL: u32 = 0x2_2200;
const SRC_Y: u32 = 1;
const DST_Y: u32 = 1 << 1;

/// Raster operations: the result by bits of pattern (0xf0), source (0xcc) and destination (0xaa).
pub mod rop {
    /// The source.
    pub const SOURCE: u32 = 0xcc;
    /// The pattern or colour.
    pub const PATTERN: u32 = 0xf0;
    /// Source exclusive-or destination.
    pub const SOURCE_XOR: u32 = 0x66;
    /// Pattern exclusive-or destination.
    pub const PATTERN_XOR: u32 = 0x5a;
    /// Source and destination.
    pub const SOURCE_AND: u32 = 0x88;
    /// The inverted destination.
    pub const INVERT: u32 = 0x55;
}

/// Bits per pixel; each discriminant is the commands' code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Depth {
    /// 8 bits.
    Bits8 = 0,
    /// 16 bits.
    Bits16 = 1,
    /// 32 bits.
    Bits32 = 3,
}

impl Depth {
    /// Bytes per pixel.
    pub const fn bytes(self) -> usize {
        match self {
            Depth::Bits8 => 1,
            Depth::Bits16 => 2,
            Depth::Bits32 => 4,
        }
    }

    const fn header(self) -> u32 {
        match self {
            Depth::Bits32 => WRITE_ALPHA_AND_RGB,
            _ => 0,
        }
    }
}

/// A surface: an object, its row pitch in bytes, and its layout.
#[derive(Clone, Copy)]
pub struct Surface<'o> {
    /// The object. Its first byte is the first pixel.
    pub object: &'o Object<'o>,
    /// Row pitch in bytes.
    pub pitch: u32,
    /// Layout.
    pub tiling: Tiling,
}

impl Surface<'_> {
    /// Pitch in the commands' units: dwords if tiled, bytes if linear.
    fn pitch_field(&self) -> u32 {
        if self.tiling == Tiling::Linear { self.pitch } else { self.pitch / 4 }
    }

    fn tiled(&self, bit: u32) -> u32 {
        if self.tiling == Tiling::Linear { 0 } else { bit }
    }
}

fn point(x: u32, y: u32) -> u32 {
    y << 16 | x
}

impl<'o> Batch<'o> {
    /// Makes the following commands treat tiled sources and destinations as Y or X tiled. The command parser allows it;
    /// the register keeps the value, so a batch restores it with [`Tiling::X`].
    pub fn tiles_are(&mut self, from: Tiling, to: Tiling) -> &mut Self {
        let of = |tiling, bit| if tiling == Tiling::Y { bit } else { 0 };
        self.load_register(BCS_SWCTRL, (SRC_Y | DST_Y) << 16 | of(from, SRC_Y) | of(to, DST_Y))
    }

    /// XY_COLOR_BLT: combines `area` of `to` with `colour` by the raster operation `rop`.
    pub fn fill(&mut self, to: Surface<'o>, depth: Depth, area: Area, rop: u32, colour: u32) -> &mut Self {
        self.push(&[
            XY_COLOR_BLT | depth.header() | to.tiled(DST_TILED),
            (depth as u32) << 24 | rop << 16 | to.pitch_field(),
            point(area.x, area.y),
            point(area.x + area.width, area.y + area.height),
        ])
        .address(to.object, 0, DOMAIN_RENDER)
        .push(&[colour])
    }

    /// XY_SRC_COPY_BLT: combines `area` of `from` with the pixels at (`x`, `y`) of `to` by the raster operation `rop`.
    #[allow(clippy::too_many_arguments, reason = "the fields of the command")]
    pub fn copy(
        &mut self,
        from: Surface<'o>,
        area: Area,
        to: Surface<'o>,
        x: u32,
        y: u32,
        depth: Depth,
        rop: u32,
    ) -> &mut Self {
        self.push(&[
            XY_SRC_COPY_BLT | depth.header() | from.tiled(SRC_TILED) | to.tiled(DST_TILED),
            (depth as u32) << 24 | rop << 16 | to.pitch_field(),
            point(x, y),
            point(x + area.width, y + area.height),
        ])
        .address(to.object, 0, DOMAIN_RENDER)
        .push(&[point(area.x, area.y), from.pitch_field()])
        .address(from.object, 0, 0)
    }
}
