// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The blitter's commands XY_COLOR_BLT and XY_SRC_COPY_BLT (G67-121), and the register with which it treats tiled
//! surfaces as Y.

use arctic_mi::gen6 as blt;
pub use arctic_mi::gen6::Depth;

use super::batch::Batch;
use super::gem::Object;
use super::tiling::Tiling;
use crate::blt::Area;
use crate::uapi::i915::DOMAIN_RENDER;

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
    /// The surface of a command, with an address that a relocation replaces.
    fn encoded(&self) -> blt::Surface {
        blt::Surface { address: 0, pitch: self.pitch, tiled: self.tiling != Tiling::Linear }
    }
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
        self.addressed(&blt::color(&to.encoded(), depth, area, rop, colour), 4, to.object, 0, DOMAIN_RENDER)
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
        let command = blt::src_copy(&from.encoded(), area, &to.encoded(), (x, y), depth, rop);
        self.addressed(&command[..7], 4, to.object, 0, DOMAIN_RENDER).address(from.object, 0, 0)
    }
}
