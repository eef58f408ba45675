// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuse mirrors: slices, subslices, engines and banks of the die (V13-160, contract B.4).

use bitfield_struct::bitfield;

use super::Kind::ReadOnly;
use super::{Register, array, card_fields, register};

/// XELP_EU_ENABLE: pairs of EUs of a subslice in bits 7:0, one bit each.
pub const EU_ENABLE: u32 = 0x9134;
/// XELP_GT_SLICE_ENABLE: slices, one bit each.
pub const SLICE_ENABLE: u32 = 0x9138;
/// GT_VEBOX_VDBOX_DISABLE: a set bit enables the engine from version 12.50 on.
pub const VEBOX_VDBOX_DISABLE: u32 = 0x9140;
/// MIRROR_FUSE1.
pub const MIRROR_FUSE1: u32 = 0x911c;
/// MIRROR_FUSE3: MEML3 in bits 3:0, one bit per quadrant.
pub const MIRROR_FUSE3: u32 = 0x9118;
/// XELP_GT_GEOMETRY_DSS_ENABLE: dual subslices that support geometry, one bit each.
pub const GEOMETRY_DSS_ENABLE: u32 = 0x913c;
/// XEHP_GT_COMPUTE_DSS_ENABLE: dual subslices that support compute, one bit each.
pub const COMPUTE_DSS_ENABLE: u32 = 0x9144;

/// GT_VEBOX_VDBOX_DISABLE.
#[bitfield(u32)]
pub struct VeboxVdboxDisable {
    /// Video decode engines, one bit each.
    pub vdbox: u8,
    __: u8,
    /// Video enhancement engines, one bit each.
    #[bits(4)]
    pub vebox: u8,
    #[bits(12)]
    __: u16,
}

card_fields! {
    VeboxVdboxDisable VEBOX_VDBOX_DISABLE;
}

/// The register table; values of 0 are set from the card's profile.
pub const TABLE: &[Register] = &[
    register(0xd08, "DIST_DBS_POPULATED", ReadOnly, 0x001f_00ff, "xe: regs/xe_guc_regs.h; 8 SQIDI of 32 doorbells"),
    register(0x9114, "XEHP_FUSE4", ReadOnly, 0, "contract K.4"),
    register(MIRROR_FUSE3, "MIRROR_FUSE3", ReadOnly, 0, "V13-160; [3:0] MEML3, one bit a quadrant"),
    register(MIRROR_FUSE1, "MIRROR_FUSE1", ReadOnly, 0, "contract G.1; no SFC, so no lock to hand over in a reset"),
    register(0x9120, "FUSE2", ReadOnly, 0x4, "contract B.5b; bit 2 production hardware"),
    register(0x9130, "MIRROR_L3BANK_ENABLE", ReadOnly, 0, "xe: regs/xe_gt_regs.h; Xe2 on"),
    register(EU_ENABLE, "XELP_EU_ENABLE", ReadOnly, 0, "contract B.4; [7:0] pairs of EUs of a subslice"),
    register(SLICE_ENABLE, "XELP_GT_SLICE_ENABLE", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(GEOMETRY_DSS_ENABLE, "XELP_GT_GEOMETRY_DSS_ENABLE", ReadOnly, 0, "V13-160"),
    register(
        VEBOX_VDBOX_DISABLE,
        "GT_VEBOX_VDBOX_DISABLE",
        ReadOnly,
        0,
        "contract B.4; a set bit enables from version 12.50 on",
    ),
    register(COMPUTE_DSS_ENABLE, "XEHP_GT_COMPUTE_DSS_ENABLE", ReadOnly, 0, "V13-160"),
    register(0x9148, "XEHPC_GT_COMPUTE_DSS_ENABLE_EXT", ReadOnly, 0, "xe: regs/xe_gt_regs.h; Ponte Vecchio"),
    register(0x9170, "SERVICE_COPY_ENABLE", ReadOnly, 0, "xe: regs/xe_gt_regs.h; Xe3p on"),
    // The card has no SFC (scaler and format converter), so none is in use (i915 checks before it resets a VEBOX).
    array(0x1c_a014, "VECS_SFC_USAGE", ReadOnly, 0, (4, 0x1_0000), "i915: gt/intel_engine_regs.h, gt/intel_reset.c"),
];
