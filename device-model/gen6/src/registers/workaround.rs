// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that drivers set for workarounds and clock gating and read back (G67-100, G67-102).

use super::Kind::{Masked, ReadOnly};
use super::{Register, STORED, array, register};

const LISTS: &str = "G67-100";
const CAPTURE: &str = "G67-114";

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    register(0x7100, "SC_INSTDONE", ReadOnly, !0, CAPTURE),
    register(0x9030, "SQ_CHICKEN_MBCUNIT_CONFIG", STORED, 0, LISTS),
    register(0xb008, "L3CDERRST1", STORED, 0, "G67-093"),
    register(0xb010, "L3SQCREG1", STORED, 0, LISTS),
    register(0xb01c, "L3CNTLREG1", STORED, 0, LISTS),
    array(0xb020, "L3CNTLREG2", STORED, 0, 2, LISTS),
    register(0xb030, "L3_CHICKEN_MODE", STORED, 0, LISTS),
    register(0xb034, "L3SQCREG4", STORED, 0, LISTS),
    array(0xb070, "L3LOG", STORED, 0, 64, "G67-093"),
    register(0x5_0380, "MSG_FBC_REND_STATE", STORED, 0, "IVB-178, i915: display/intel_fbc_regs.h"),
    register(0xe100, "HALF_SLICE_CHICKEN1", Masked, 0, LISTS),
    register(0xe160, "SAMPLER_INSTDONE", ReadOnly, !0, CAPTURE),
    register(0xe164, "ROW_INSTDONE", ReadOnly, !0, CAPTURE),
    register(0xe184, "HALF_SLICE_CHICKEN3", Masked, 0, LISTS),
    register(0xe4f4, "ROW_CHICKEN2", Masked, 0, "G67-102"),
    register(0xf100, "HALF_SLICE_CHICKEN1_GT2", Masked, 0, LISTS),
    register(0xf4f4, "ROW_CHICKEN2_GT2", Masked, 0, "G67-102"),
];
