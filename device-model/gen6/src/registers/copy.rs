// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the copy engine alone, by offset from its base, in all generations.

use super::Kind::Masked;
use super::{Bits, Register, Scope, register};

/// Software control of the copy engine: layouts of tiled surfaces (G67-121).
pub const BCS_SWCTRL: u32 = 0x200;
/// BCS_SWCTRL: tiled sources are Y tiled.
pub const SOURCE_Y: Bits = Bits::bit(0);
/// BCS_SWCTRL: tiled destinations are Y tiled.
pub const DESTINATION_Y: Bits = Bits::bit(1);

/// The registers.
pub const TABLE: &[Register] =
    &[register(BCS_SWCTRL, "BCS_SWCTRL", Masked, 0, "G67-121, i915: gt/intel_gt_regs.h").of(Scope::Engine)];
