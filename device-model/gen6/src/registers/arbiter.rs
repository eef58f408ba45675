// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The arbiters in front of memory (GAM, GAC, GAB): modes, tuning, status page addresses and faults.

use super::Kind::{Masked, ReadOnly, Storage};
use super::{Bits, Kind, Live, Register, STORED, Scope, array, register};

/// Mode of the arbiter (IVB-010).
pub const ARB_MODE: u32 = 0x4030;
/// Swizzling of tiled surfaces that a CPU accesses through the aperture (G67-064, G67-065).
pub const TILECTL: u32 = 0x10_1000;
/// TILECTL: the surfaces are swizzled.
pub const SWIZZLED: Bits = Bits::bit(0);
/// Errors of the translation (IVB-040).
pub const ERROR: u32 = 0x40a0;
/// Pages of the last faults of the PPGTT (IVB-038).
pub const FAULT_LOG: u32 = 0x4580;
/// Number of entries of the log of faults.
pub const FAULT_LOG_ENTRIES: u32 = 32;
/// Fault registers: the rest of the register is valid (IVB-039).
pub const FAULT_VALID: Bits = Bits::bit(0);
/// Fault registers: type of the fault, one of [`FaultType`](crate::memory::FaultType).
pub const FAULT_TYPE: Bits = Bits::new(2, 1);
/// Fault registers: the unit that made the access (IVB-043).
pub const FAULT_SOURCE: Bits = Bits::new(10, 3);
/// FAULT_SOURCE: the command streamer, writing. Reading is 0.
pub const SOURCE_WRITE: u32 = 8;
/// Fault registers: the address is in the GGTT.
pub const FAULT_GGTT: Bits = Bits::bit(11);
/// A write invalidates the translations of CPU accesses (IVB-177). The model does not cache them, so a write only waits for
/// accesses in progress.
pub const GFX_FLSH_CNTL: u32 = 0x10_1008;

/// The status page of an engine in the GGTT: bits of a page.
const STATUS_PAGE: Kind<Live> = Storage(0xffff_f000);
/// Address of the status pages after a reset of Sandy Bridge (ILK-174).
const STATUS_PAGE_RESET: u32 = 0x1fff_f000;
const FAULTS: &str = "IVB-039, ILK-161";
const TUNING: &str = "IVB-018";
const HWSP: &str = "G67-072, ILK-174";
const GAC: &str = "IVB-014";

/// The registers of all generations.
pub const SHARED: &[Register] = &[
    // Errors of the Gen4 page tables: nothing raises them here.
    register(0x2024, "PGTBL_ER", Kind::Write1Clear(!0), 0, "i915: gt/intel_gt.c intel_gt_clear_error_registers"),
    register(ARB_MODE, "ARB_MODE", Masked, 0, "IVB-010"),
    register(0x4090, "GAM_ECOCHK", STORED, 0, "G67-061"),
    register(0x4094, "GAM_FAULT", Kind::Live(Live::Fault), 0, FAULTS),
    register(ERROR, "GAM_ERROR", Storage(0xffd5), 0, "IVB-040"),
    // Everything is idle: all fields are 1.
    register(0x40b0, "GAM_DONE", ReadOnly, 0xffff_ffff, "IVB-020"),
    register(0x4194, "GAC_FAULT", Kind::Live(Live::Fault), 0, FAULTS),
    register(0x4294, "GAB_FAULT", Kind::Live(Live::Fault), 0, FAULTS),
    register(0x4394, "VEBOX_FAULT", Kind::Live(Live::Fault), 0, "G67-114, an engine that is absent"),
    register(0x1_4090, "GAC_ECO_BITS", STORED, 0, "G67-061"),
    register(0x2_4000, "GAB_CTL", STORED, 0, "G67-061"),
    register(TILECTL, "TILECTL", STORED, 0, "G67-064").of(Scope::Aperture),
    register(GFX_FLSH_CNTL, "GFX_FLSH_CNTL", Kind::Live(Live::Barrier), 0, "IVB-177, G67-055"),
];

/// The registers of Sandy Bridge: the status pages' addresses are in the engines' units (G67-072).
pub const SANDY_BRIDGE: &[Register] = &[
    register(0x4080, "RCS_HWSP", STATUS_PAGE, STATUS_PAGE_RESET, HWSP),
    register(0x1_4080, "VCS_HWSP", STATUS_PAGE, STATUS_PAGE_RESET, HWSP),
    register(0x2_4080, "BCS_HWSP", STATUS_PAGE, STATUS_PAGE_RESET, HWSP),
];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    register(0x4000, "PWRCTX_REST_DONE", Masked, 0, "IVB-021"),
    register(0x4028, "WR_WATERMARK", STORED, 0x000f_fea4, "IVB-016"),
    register(0x402c, "GFX_PRIO_CTRL", STORED, 0x0001_1d10, "IVB-017"),
    array(0x4034, "GFX_PEND_TLB", STORED, 0, 2, "IVB-011"),
    register(0x403c, "L3_LRA_0", STORED, 0x3f20_1f00, TUNING),
    register(0x4040, "L3_LRA_1", STORED, 0x0900_ff40, TUNING),
    register(0x4044, "CVS_TLB_LRA_0", Storage(0x1fff_ffff), 0x1f08_0700, TUNING),
    register(0x4048, "CVS_TLB_LRA_1", STORED, 0x1f18, TUNING),
    register(0x404c, "CVS_TLB_LRA_2", STORED, 0x5, TUNING),
    register(0x4050, "ZTLB_LRA_0", STORED, 0x1f10_7f00, TUNING),
    register(0x4054, "ZTLB_LRA_1", STORED, 0x2f20, TUNING),
    register(0x4058, "RCC_LRA_0", STORED, 0x3f10_0f00, TUNING),
    register(0x405c, "RCC_LRA_1", STORED, 0x1_0000, TUNING),
    register(0x4060, "CASC_LRA_0", STORED, 0x1f10_0f00, TUNING),
    register(0x4064, "CASC_LRA_1", STORED, 0x3f30_2f20, TUNING),
    register(0x4068, "CASC_LRA_2", STORED, 0x9f40, TUNING),
    register(0x406c, "CASC_LRA_3", STORED, 0x14e4, TUNING),
    register(0x4070, "MEDIA_MAX_REQ_COUNT", STORED, 0x1020_2020, "IVB-019"),
    register(0x4074, "GFX_MAX_REQ_COUNT", STORED, 0x43f2_0101, "IVB-019"),
    register(0x4080, "GAM_HWSP", STATUS_PAGE, 0, "IVB-044"),
    register(0x4180, "GAC_HWSP", STATUS_PAGE, 0, "IVB-044"),
    register(0x4204, "MISS_PRIORITY", STORED, 0, "IVB-012"),
    register(0x4208, "NP_PRIORITY_1", STORED, 0, "IVB-012"),
    register(0x4280, "GAB_HWSP", STATUS_PAGE, 0, "IVB-044"),
    register(0x4380, "VEBOX_HWSP", STATUS_PAGE, 0, "i915: gt/intel_gt_regs.h, an engine that is absent"),
    array(0x43a0, "MID_PRIORITY", STORED, 0, 2, "IVB-012"),
    array(0x43a8, "GAC_COUNT", Storage(0x003f_3f3f), 0, 2, GAC),
    register(0x43b0, "GOTO_HIT_0", STORED, 0, "IVB-013"),
    register(0x43b4, "GOTO_HIT_1", STORED, 0, "IVB-013"),
    register(0x43bc, "GOTO_HIT_3", STORED, 0, "IVB-013"),
    array(0x43c0, "GOTO_NP", STORED, 0, 4, "IVB-013"),
    array(0x43d0, "ARB_RO", STORED, 0, 4, GAC),
    array(0x43e0, "ARB_R", STORED, 0, 4, GAC),
    array(0x43f0, "ARB_WR", STORED, 0, 4, GAC),
    array(0x4400, "TLBPEND_SEC0", ReadOnly, 0, 64, "IVB-043"),
    array(0x4500, "TLBPEND_SEC1", ReadOnly, 0, 32, "IVB-043"),
    array(FAULT_LOG, "PP_PFD", ReadOnly, 0, 32, "IVB-038"),
    // The units of these TLBs do not exist, or do not show what the model caches: no translation is valid.
    array(0x4600, "TLBPEND_SEC2", ReadOnly, 0, 64, "IVB-043"),
    array(0x4700, "TLB_RD", ReadOnly, 0, 2, "IVB-042"),
    array(0x4720, "TLB_VALID", ReadOnly, 0, 20, "IVB-042"),
    array(0x4780, "TLB_VA_VALID", ReadOnly, 0, 8, "IVB-041"),
    array(0x4800, "TLB_VA", ReadOnly, 0, 256, "IVB-041"),
    register(0x9038, "GT4_MODE", Storage(0b11), 0, "IVB-022"),
];
