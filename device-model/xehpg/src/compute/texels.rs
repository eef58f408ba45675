// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Where the texels of an image are: layouts, planes and compression are those of the copy engine (BLT-007, BLT-010, BLT-011,
//! BLT-030).

use arctic_base::blitter::tiling::Surface;
use arctic_eu::exec::memory::MipLayout;
use arctic_sriov::number::size;

/// The memory of an image's texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texels {
    /// None: reads give 0, writes are dropped.
    Null,
    /// Planes in memory.
    Planes(Planes),
}

/// Planes of texels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Plane 0 of the surface.
    pub surface: Surface,
    /// Bytes of a texel.
    pub texel_bytes: u32,
    /// Distance between planes, in rows.
    pub rows: u32,
    /// Number of the plane that is the image's first.
    pub first: u32,
    /// Column and row of the image's first texel in the surface, in texels.
    pub corner: [u32; 2],
    /// Where levels are in each plane.
    pub mips: MipLayout,
}

/// Bytes of texels that are contiguous in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Virtual address.
    pub address: u64,
    /// Number of bytes from there that are contiguous.
    pub run: usize,
    /// Accesses use the control data of the memory.
    pub compressed: bool,
}

impl Planes {
    /// The place of a byte of plane `z` of a level of the surface, at the byte `x` of row `y`. Coordinates that the image does not have have a place, too.
    #[inline]
    pub fn byte(&self, level: u8, x: u64, y: u32, z: u32) -> Place {
        let [left, top] = self.corner;
        let [column, row] = self.mips.corner(level);
        let (left, top) = (left.saturating_add(column), top.saturating_add(row));
        let (surface, first_row) = self.surface.slice_of(z.saturating_add(self.first), self.rows);
        let left = u64::from(left).wrapping_mul(self.texel_bytes.into());
        let column = x.wrapping_add(left).cast_signed();
        let row = first_row.wrapping_add(y.into()).wrapping_add(top.into());
        Place { address: surface.address(column, row), run: size(surface.run(column)), compressed: surface.compressed }
    }

    /// The place of a texel of a level of the surface.
    #[inline]
    pub fn texel(&self, level: u8, [x, y, z]: [u32; 3]) -> Place {
        self.byte(level, u64::from(x).wrapping_mul(self.texel_bytes.into()), y, z)
    }
}
