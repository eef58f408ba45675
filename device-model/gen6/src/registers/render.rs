// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the render engine alone: pipeline modes, statistics, predication, stream output.

use super::Kind::{Masked, ReadOnly, Storage};
use super::engine::live;
use super::{Bits, EngineRegister, Kind, Live, Register, STORED, Scope, array, register};

/// Reset of the render engine if a context is current (IVB-102).
pub const MATCH_RESET: u32 = 0x222c;
/// MATCH_RESET: the reset is pending.
pub const MATCH_PENDING: Bits = Bits::bit(0);
/// MATCH_RESET: the context was the current one.
pub const MATCHED: u32 = 1 << 1;
/// Events for which the engine waits (IVB-110).
pub const SYNC_FLIP_STATUS: u32 = 0x22d0;
/// SYNC_FLIP_STATUS: condition codes, one bit each.
pub const CONDITION_CODES: Bits = Bits::new(4, 0);
/// Further events (IVB-111).
pub const SYNC_FLIP_STATUS_1: u32 = 0x22d4;
/// SYNC_FLIP_STATUS_1: changes with each sync flush (IVB-065).
pub const SYNC_FLUSH_TOGGLE: Bits = Bits::bit(11);
/// Statistics of the 3D pipeline (IVB-115).
pub const STATISTICS: u32 = 0x2300;
/// Number of dwords of [`STATISTICS`].
pub const STATISTICS_DWORDS: u32 = 22;
/// Mode of the address translation of all engines of Sandy Bridge (ILK-012, G67-061).
pub const SANDY_BRIDGE_GFX_MODE: u32 = 0x2520;
/// Operands of MI_PREDICATE, of 64 bits (IVB-120).
pub const PREDICATE_SRC0: u32 = 0x2400;
/// Second operand.
pub const PREDICATE_SRC1: u32 = 0x2408;
/// Difference of the operands.
pub const PREDICATE_DATA: u32 = 0x2410;
/// The predicate.
pub const PREDICATE_RESULT: u32 = 0x2418;

/// A row of a register that belongs to contexts.
const fn context(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    register(offset, name, kind, reset, source).of(Scope::Context)
}

/// Consecutive registers that belong to contexts.
const fn contexts(offset: u32, name: &'static str, kind: Kind<Live>, count: u16, source: &'static str) -> Register {
    array(offset, name, kind, 0, count, source).of(Scope::Context)
}

/// Consecutive registers of the extended state of contexts.
const fn extended(offset: u32, name: &'static str, kind: Kind<Live>, count: u16, source: &'static str) -> Register {
    array(offset, name, kind, 0, count, source).of(Scope::Extended)
}

/// A row of a register that a reset of the render domain resets, and contexts do not have.
const fn engine(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    register(offset, name, kind, reset, source).of(Scope::Engine)
}

const LISTS: &str = "G67-100";
const REGS: &str = "i915: gt/intel_gt_regs.h";

/// The registers of all generations.
pub const SHARED: &[Register] = &[contexts(0x2310, "STATISTICS", STORED, 18, "IVB-115")];

/// The registers of Sandy Bridge. Of the modes, contexts have the cache modes and the arbitration state (ILK-163).
pub const SANDY_BRIDGE: &[Register] = &[
    engine(0x207c, "INSTDONE_1", ReadOnly, !0, "ILK-177, i915: gt/intel_engine_cs.c"),
    engine(0x2084, "3D_CHICKEN", Masked, 0, LISTS),
    engine(0x208c, "3D_CHICKEN2", Masked, 0, REGS),
    engine(0x2090, "3D_CHICKEN3", Masked, 0, LISTS),
    engine(0x20d0, "GT_MODE", Masked, 0, LISTS),
    context(0x20e4, "MI_ARB_STATE", Masked, 0, "ILK-163"),
    context(0x2120, "CACHE_MODE_0", Masked, 0, "ILK-163"),
    // No source has the value of hardware. One page less a line, the pipeline's part, has room for the model's image.
    engine(0x21a0, "CXT_SIZE", STORED, 0x3f, "G67-090"),
    engine(SANDY_BRIDGE_GFX_MODE, "GFX_MODE", Masked, 0, "ILK-012, G67-061"),
    // The units of the other arrays do not exist.
    engine(0x251c, "TLB_RD_EXT", ReadOnly, 0x780, "ILK-028"),
    array(0xb000, "ISC_TLB_RD", ReadOnly, 0, 16, "ILK-029").of(Scope::Engine),
    array(0xb040, "TLB_RD_UNUSED", ReadOnly, 0, 48, "ILK-029").of(Scope::Engine),
    array(0xb100, "VF_TLB_RD", ReadOnly, 0, 19, "ILK-029").of(Scope::Engine),
    array(0xb14c, "TLB_RD_UNUSED", ReadOnly, 0, 45, "ILK-029").of(Scope::Engine),
    array(0xb200, "CS_TLB_RD", live(EngineRegister::Translation), 0, 6, "ILK-029").of(Scope::Engine),
    array(0xb218, "TLB_RD_UNUSED", ReadOnly, 0, 58, "ILK-029").of(Scope::Engine),
    array(0xb300, "MT_TLB_RD", ReadOnly, 0, 32, "ILK-029").of(Scope::Engine),
    array(0xb380, "TLB_RD_UNUSED", ReadOnly, 0, 32, "ILK-029").of(Scope::Engine),
    array(0xb400, "RC_TLB_RD", ReadOnly, 0, 224, "ILK-029").of(Scope::Engine),
];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    context(0x2090, "3D_CHICKEN3", Masked, 0, "G67-100"),
    context(0x20a0, "FF_MODE", STORED, 0x28a0_1010, "IVB-058"),
    context(0x20e4, "FF_SLICE_CS_CHICKEN2", Masked, 0, "G67-100"),
    engine(0x212c, "GAFS_MODE", Masked, 0, "IVB-063"),
    // 105 lines of 64 bytes are the driver's size of a context.
    engine(0x21a8, "CXT_SIZE", STORED, 0x48a7_b8cd, "IVB-101, G67-090"),
    // Any write sets it to 0; nothing is dispatched.
    contexts(0x2290, "GPGPU_THREADS_DISPATCHED", ReadOnly, 2, "IVB-127"),
    engine(0x22ac, "RS_STATUS", ReadOnly, 0, "IVB-065"),
    // The reset that it makes does not change it.
    register(MATCH_RESET, "MTCH_CID_RST", Kind::Live(Live::MatchReset), 0, "IVB-102"),
    engine(SYNC_FLIP_STATUS, "SYNC_FLIP_STATUS", ReadOnly, 0, "IVB-110"),
    engine(SYNC_FLIP_STATUS_1, "SYNC_FLIP_STATUS_1", ReadOnly, 0, "IVB-111"),
    contexts(STATISTICS, "TESSELLATION_STATISTICS", STORED, 4, "IVB-115"),
    extended(PREDICATE_SRC0, "MI_PREDICATE_SRC0", STORED, 2, "IVB-120"),
    extended(PREDICATE_SRC1, "MI_PREDICATE_SRC1", STORED, 2, "IVB-120"),
    extended(PREDICATE_DATA, "MI_PREDICATE_DATA", STORED, 2, "IVB-120"),
    extended(PREDICATE_RESULT, "MI_PREDICATE_RESULT", Storage(1), 1, "IVB-120"),
    extended(0x2420, "3DPRIM_END_OFFSET", STORED, 1, "IVB-125"),
    extended(0x2430, "3DPRIM", STORED, 5, "IVB-125"),
    extended(0x2500, "GPGPU_DISPATCHDIM", STORED, 3, "IVB-126"),
    extended(0x5200, "SO_NUM_PRIMS_WRITTEN", STORED, 8, "IVB-117"),
    // Set by the pipeline and by the restore of a context only (IVB-185).
    extended(0x5240, "SO_PRIM_STORAGE_NEEDED", ReadOnly, 8, "IVB-117, IVB-185"),
    extended(0x5280, "SO_WRITE_OFFSET", Storage(0xffff_fffc), 4, "IVB-117"),
    context(0x7000, "CACHE_MODE_0", Masked, 4, "IVB-061"),
    context(0x7004, "CACHE_MODE_1", Masked, 0x180, "IVB-062"),
    context(0x7008, "GT_MODE", Masked, 0x200, "IVB-060"),
    context(0x7010, "COMMON_SLICE_CHICKEN1", Masked, 0, "G67-100"),
    context(0x7020, "FBC_RT_BASE", STORED, 0, "IVB-068"),
];
