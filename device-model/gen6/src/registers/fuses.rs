// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuses and firmware settings: what the card has, how its memory is configured.

use super::Kind::ReadOnly;
use super::{Bits, Register, array, register};

/// RP_STATE_CAP: limits of the frequency in units of 50 MHz (G67-038).
pub const RP_STATE_CAP: u32 = 0x14_5998;
/// RP_STATE_CAP: maximum.
pub const RP0: Bits = Bits::new(7, 0);
/// RP_STATE_CAP: guaranteed.
pub const RP1: Bits = Bits::new(15, 8);
/// RP_STATE_CAP: minimum.
pub const RPN: Bits = Bits::new(23, 16);
/// MAD_DIMM_C0, the first of two: sizes of the memory modules of a channel (G67-064).
pub const MAD_DIMM: u32 = 0x14_5004;

/// Fuses of the display in the processor (G67-020).
pub const FUSE_STRAP: u32 = 0x4_2014;
/// FUSE_STRAP: the display is disabled.
pub const DISPLAY_DISABLED: Bits = Bits::bit(30);
/// Fuses of the display in the PCH (G67-020).
pub const SFUSE_STRAP: u32 = 0xc_2014;
/// SFUSE_STRAP: firmware has locked the register; without it drivers take the display as fused off.
pub const FUSE_LOCK: Bits = Bits::bit(13);
/// SFUSE_STRAP: the display is disabled.
pub const PCH_DISPLAY_DISABLED: Bits = Bits::bit(7);

/// The registers.
pub const TABLE: &[Register] = &[
    // No unit of the display is disabled.
    register(FUSE_STRAP, "FUSE_STRAP", ReadOnly, 0, "G67-020"),
    register(SFUSE_STRAP, "SFUSE_STRAP", ReadOnly, FUSE_LOCK.mask(), "G67-020, G67-023"),
    // Not "VGT ": this is not a virtual GPU of GVT.
    array(0x7_8000, "VGT_PVINFO", ReadOnly, 0, 2, "G67-030"),
    register(0x10_82c0, "STOLEN_RESERVED", ReadOnly, 0, "G67-009"),
    // Channels of different sizes, for which drivers do not switch on swizzling, unless the card file says otherwise.
    register(MAD_DIMM, "MAD_DIMM_C0", ReadOnly, 0x8, "G67-064"),
    register(MAD_DIMM + 4, "MAD_DIMM_C1", ReadOnly, 0x4, "G67-064"),
    // Latencies of memory for the display, as the driver requires that of level 0 (12).
    register(0x14_5d10, "MCH_SSKPD", ReadOnly, 0x2010_040c, "i915: display/i9xx_wm.c, snb_read_wm_latency"),
    register(0x14_5e04, "DCLK", ReadOnly, 0, "G67-039"),
    register(RP_STATE_CAP, "RP_STATE_CAP", ReadOnly, 0, "G67-038"),
];
