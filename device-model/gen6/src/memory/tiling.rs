// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The tile layouts of the family.

use arctic_base::blitter::tiling::{Layout, TILE_X, TILE_X_SWIZZLED, TILE_Y, TILE_Y_SWIZZLED};

/// Order of the bytes in a tile (ILK-048, ILK-050).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// By rows: 512 bytes by 8 rows.
    X,
    /// By columns of 16 bytes: 128 bytes by 32 rows.
    Y,
}

impl Walk {
    /// The layout, swizzled or not (G67-064).
    #[inline]
    pub fn layout(self, swizzled: bool) -> &'static Layout {
        match (self, swizzled) {
            (Walk::X, false) => &TILE_X,
            (Walk::X, true) => &TILE_X_SWIZZLED,
            (Walk::Y, false) => &TILE_Y,
            (Walk::Y, true) => &TILE_Y_SWIZZLED,
        }
    }
}
