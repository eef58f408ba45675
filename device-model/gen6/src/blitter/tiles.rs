// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Layouts of tiled surfaces: a command states that a surface is tiled, a register of the engine how, and one of the arbiter
//! whether it is swizzled.

use arctic_base::blitter::tiling::Layout;

use crate::memory::Walk;
use crate::registers::copy::{DESTINATION_Y, SOURCE_Y};

/// Layouts of the tiled surfaces of a command. Fences have no effect on the copy engine (ILK-057).
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// Layout of a tiled source.
    pub source: &'static Layout,
    /// Layout of a tiled destination.
    pub destination: &'static Layout,
}

impl Tiles {
    /// The layouts that a value of BCS_SWCTRL selects: Y with the surface's bit set, else X (G67-121; i915:
    /// gem/selftests/i915_gem_client_blt.c). They are swizzled in the mode of the arbiter that
    /// [`Gt::engines_swizzle`](crate::gt::Gt::engines_swizzle) returns (IVB-010).
    pub fn new(swctrl: u32, swizzled: bool) -> Self {
        let layout = |y: bool| if y { Walk::Y } else { Walk::X }.layout(swizzled);
        Tiles { source: layout(SOURCE_Y.is_set(swctrl)), destination: layout(DESTINATION_Y.is_set(swctrl)) }
    }
}
