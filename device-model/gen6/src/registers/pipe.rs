// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of every pipe of the display, relative to the pipe's distance from pipe A: timings, planes, cursor, and the
//! transcoder of the PCH. They are stored; no pipe is ever active (G67-024, G67-025).

use super::Kind::{ReadOnly, Storage};
use super::{Register, STORED, array, register};

/// Distance between the registers of pipes in bytes.
pub const DISTANCE: u32 = 0x1000;

const REGS: &str = "i915: display/intel_display_regs.h";
const FDI: &str = "i915: display/intel_fdi_regs.h";
/// Source of the rows of cursors.
pub(super) const CURSOR: &str = "i915: display/intel_cursor_regs.h, display/intel_display_device.c";
const SPRITE: &str = "i915: display/intel_sprite_regs.h";
/// Stores all bits but the one that tells that the pipe is running.
const NOT_RUNNING: super::Kind<super::Live> = Storage(!(1 << 30));

/// The registers of all generations.
pub const SHARED: &[Register] = &[
    array(0x6_0000, "TRANS_TIMING", STORED, 0, 12, REGS),
    array(0x6_0030, "TRANS_DATA_LINK", STORED, 0, 8, REGS),
    register(0x6_0050, "PIPE_CRC_CTL", STORED, 0, "i915: display/intel_pipe_crc_regs.h"),
    register(0x6_0100, "FDI_TX_CTL", STORED, 0, FDI),
    register(0x7_0000, "PIPEDSL", ReadOnly, 0, "G67-026"),
    register(0x7_0008, "TRANSCONF", NOT_RUNNING, 0, REGS),
    array(0x7_0040, "PIPE_FRMCOUNT", ReadOnly, 0, 2, "G67-026"),
    array(0x7_0180, "PLANE", STORED, 0, 12, "i915: display/i9xx_plane_regs.h"),
    array(0xe_0000, "PCH_TRANS_TIMING", STORED, 0, 12, REGS),
    array(0xe_0030, "PCH_TRANS_DATA_LINK", STORED, 0, 8, REGS),
    register(0xe_0300, "TRANS_DP_CTL", STORED, 0, REGS),
    register(0xf_0008, "PCH_TRANSCONF", NOT_RUNNING, 0, REGS),
    array(0xf_000c, "FDI_RX", STORED, 0, 4, FDI),
    array(0xf_0060, "TRANS_CHICKEN", STORED, 0, 2, REGS),
];

/// The registers of Sandy Bridge: the sprites are behind the pipes, in the place of the third one of Ivy Bridge.
pub const SANDY_BRIDGE: &[Register] =
    &[array(0x7_2180, "DVS", STORED, 0, 12, SPRITE), register(0x7_2204, "DVS_SCALE", STORED, 0, SPRITE)];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    array(0x7_0080, "CURSOR", STORED, 0, 9, CURSOR),
    array(0x7_0280, "SPRITE", STORED, 0, 12, SPRITE),
    register(0x7_0304, "SPRITE_SCALE", STORED, 0, SPRITE),
];
