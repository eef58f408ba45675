// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the tile outside the GT: identity, reset, memory layout, errors (contract A, B.1, B.2).

use bitfield_struct::bitfield;

use super::Kind::{self, ReadOnly, Write1Clear};
use super::{Bits, Live, Register, STORED, array, card_fields, register};
use crate::hardware_error::Severity;

/// ERR_STAT_GT_REG of the severity with number 0; those of the others follow.
const ERR_STAT_GT: u32 = 0x10_0160;
/// DEV_ERR_STAT_REG of the severity with the highest number; those of the others follow in descending order.
const DEV_ERR_STAT: u32 = 0x10_0174;
/// DEV_PCIEERR_STATUS: tiles that have reported an error by a PCI Express message.
pub const DEV_PCIEERR_STATUS: u32 = 0x10_0180;
/// DEV_PCIEERR_STATUS: the error of the first tile is fatal.
pub const FATAL_ON_TILE_0: Bits = Bits::bit(2);
/// RPM_CONFIG0: frequencies of the clocks.
pub const RPM_CONFIG0: u32 = 0xd00;
/// GU_CNTL.
pub const GU_CNTL: u32 = 0x10_1010;

/// GU_CNTL.
#[bitfield(u32)]
pub struct GuCntl {
    #[bits(7)]
    __: u8,
    /// Local memory is initialised.
    pub lmem_init: bool,
    #[bits(23)]
    __: u32,
    /// Function level reset requested by the driver; reads 0.
    pub driver_flr: bool,
}

/// GU_DEBUG.
#[bitfield(u32)]
pub struct GuDebug {
    #[bits(31)]
    __: u32,
    /// The reset requested in GU_CNTL is complete.
    pub driver_flr: bool,
}

/// GU_DEBUG.
pub const GU_DEBUG: u32 = 0x10_1018;
/// SG_TILE_ADDR_RANGE: local memory of the tile ([`super::memory::TILE_GIBIBYTES`]).
pub const SG_TILE_ADDR_RANGE: u32 = 0x10_83a0;
/// DSMBASE: address of stolen memory, low and high dword.
pub const DSMBASE: u32 = 0x10_80c0;
/// GSMBASE: address of the GGTT in local memory, low and high dword.
pub const GSMBASE: u32 = 0x10_8100;
/// STOLEN_RESERVED, low and high dword: bits 63:20 are the address of the WOPCM.
pub const STOLEN_RESERVED: u32 = 0x10_82c0;

/// STOLEN_RESERVED, low dword.
#[bitfield(u32)]
pub struct StolenReserved {
    /// The WOPCM exists.
    pub wopcm_enabled: bool,
    #[bits(6)]
    __: u8,
    /// Size of the WOPCM, 1 MiB << n.
    #[bits(3)]
    pub wopcm_size: u8,
    #[bits(10)]
    __: u16,
    /// Bits 31:20 of its address.
    #[bits(12)]
    pub address: u16,
}

card_fields! {
    GuDebug GU_DEBUG;
}

/// ERR_STAT_GT_REG: errors of this severity in the GT.
#[allow(clippy::arithmetic_side_effects, reason = "a severity has number 0, 1 or 2")]
pub(crate) fn err_stat_gt(severity: Severity) -> u32 {
    ERR_STAT_GT + 4 * u32::from(severity.number())
}

/// DEV_ERR_STAT_REG: sources of the errors of this severity.
#[allow(clippy::arithmetic_side_effects, reason = "a severity has number 0, 1 or 2")]
pub(crate) fn dev_err_stat(severity: Severity) -> u32 {
    DEV_ERR_STAT + 4 * (2 - u32::from(severity.number()))
}

/// Type of a register that resets more than one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetRegister {
    /// GDRST: engine, GuC and full resets; the bits read 0 again immediately (contract B.4, G.1).
    Gdrst,
    /// GU_CNTL: bit 31 resets the function and reads 0, bit 7 reads 1 (local memory is initialised).
    GuCntl,
}

/// The register table.
pub const TABLE: &[Register] = &[
    // In the display's range, but without a function: developers write them by batches of context restores.
    array(0x4_f100, "SCRATCH", STORED, 0, (2, 4), "xe: xe_configfs.c, ctx_restore_mid_bb; IGT: xe_configfs.c"),
    array(0x7_8000, "PVINFO", ReadOnly, 0, (2, 4), "contract G.1: 0, the card is not a GVT-g virtual GPU"),
    array(ERR_STAT_GT, "ERR_STAT_GT_REG", Write1Clear(!0), 0, (3, 4), "V13-284"),
    register(0x10_0170, "DEV_ERR_ROUTING_CTRL", STORED, 0, "V13-284"),
    array(DEV_ERR_STAT, "DEV_ERR_STAT_REG", Write1Clear(!0), 0, (3, 4), "V13-284"),
    register(DEV_PCIEERR_STATUS, "DEV_PCIEERR_STATUS", Write1Clear(!0), 0, "V13-287; Intel's RAS patches for xe, 2023"),
    register(0x10_1000, "TILECTL", STORED, 0, "i915: intel_ggtt_fencing.c"),
    register(0x10_1008, "GFX_FLSH_CNTL_GEN6", STORED, 0, "contract G.6; coherent anyway"),
    // Bit 31: the driver must not reset the function by GU_CNTL and must use the PCI Express FLR.
    register(0x10_100c, "GU_CNTL_PROTECTED", ReadOnly, 0x8000_0000, "contract B.12; xe: regs/xe_regs.h"),
    register(
        GU_CNTL,
        "GU_CNTL",
        Kind::Live(Live::Reset(ResetRegister::GuCntl)),
        GuCntl::new().with_lmem_init(true).into_bits(),
        "contract B.1, B.12; bit 7 LMEM_INIT",
    ),
    register(0x10_1014, "XEHP_CLOCK_GATE_DIS", STORED, 0, "contract B.2; xe: regs/xe_regs.h"),
    register(
        GU_DEBUG,
        "GU_DEBUG",
        Write1Clear(GuDebug::new().with_driver_flr(true).into_bits()),
        0,
        "contract B.12; xe: regs/xe_regs.h",
    ),
    register(0x10_108c, "VIRTUAL_CTRL_REG", STORED, 0, "contract D.2; xe: regs/xe_regs.h"),
    register(0x10_1800, "XEHP_MTCFG_ADDR", ReadOnly, 0x100, "xe: regs/xe_regs.h; [15:8] one tile"),
    register(0x10_8040, "GGC", ReadOnly, 0, "xe: regs/xe_regs.h; no stolen system memory"),
    array(DSMBASE, "DSMBASE", ReadOnly, 0, (2, 4), "contract B.2; from the card's memory"),
    array(GSMBASE, "GSMBASE", ReadOnly, 0, (2, 4), "contract B.2; from the card's memory"),
    array(STOLEN_RESERVED, "STOLEN_RESERVED", ReadOnly, 0, (2, 4), "contract B.2; from the card's memory"),
    register(SG_TILE_ADDR_RANGE, "SG_TILE_ADDR_RANGE", ReadOnly, 0, "contract B.2; from the card's memory"),
    register(0x12_0010, "HSW_EDRAM_CAP", ReadOnly, 0, "i915: i915_edram.c; no embedded DRAM on this card"),
    // Bit 0: the function is a VF.
    register(0x19_01f8, "VF_CAP_REG", ReadOnly, 0, "contract B.1, V13-002").per_function_with(1),
    register(RPM_CONFIG0, "RPM_CONFIG0", ReadOnly, 0x14, "contract B.5; OA-044: 38.4 MHz crystal, CTC shift 2"),
    register(0xd8c, "GMD_ID", ReadOnly, 0, "contract B.4; does not exist before Xe_LPG"),
];
