// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory attributes, translation caches, faults: PAT, MOCS, TLB invalidation, LMTT (contract B.2, B.5, G.6, G.7).

use super::Kind::{self, ReadOnly};
use super::{Bits, COPY, Live, RENDER, Register, STORED, Scope, array, register};
use crate::topology::EngineClass::{Compute, VideoDecode, VideoEnhance};

/// XEHP_TILE0_ADDR_RANGE: local memory of the tile.
pub const TILE0_ADDR_RANGE: u32 = 0x4900;
/// XEHP_TILE0_ADDR_RANGE, SG_TILE_ADDR_RANGE: size in GiB.
pub const TILE_GIBIBYTES: Bits = Bits::new(14, 8);
/// XEHP_FLAT_CCS_BASE_ADDR: end of the memory that is not compression control.
pub const FLAT_CCS_BASE_ADDR: u32 = 0x4910;
/// XEHP_FLAT_CCS_BASE_ADDR: address in 64 KiB units.
pub const FLAT_CCS_BASE: Bits = Bits::new(31, 8);
/// LMEM_CFG: enable bit and directory address of the LMTT.
pub const LMEM_CFG: u32 = 0xcf58;

/// Type of a register of the memory unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryRegister {
    /// TLB invalidation request: complete when it reads 0. That is when the write returns, unless engines may wait for
    /// the client that writes.
    TlbInvalidate,
    /// LMEM_CFG: enable bit and directory of the local memory translation table (V13-107; contract D.5).
    LmemCfg,
}

const TLB_INVALIDATE: Kind<Live> = Kind::Live(Live::Memory(MemoryRegister::TlbInvalidate));

/// The register table.
pub const TABLE: &[Register] = &[
    array(0x4000, "XEHP_GLOBAL_MOCS", STORED, 0, (64, 4), "xe: regs/xe_gt_regs.h"),
    register(0x4148, "STATELESS_COMPRESSION_CTRL", STORED, 0, "xe: regs/xe_gt_regs.h"),
    // Self-clearing requests; a card with flat CCS has no auxiliary table.
    register(0x4208, "CCS_AUX_INV", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(0x4218, "VD0_AUX_INV", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(0x4238, "VE0_AUX_INV", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(0x4248, "BCS0_AUX_INV", ReadOnly, 0, "i915: intel_gt_regs.h"),
    register(0x4298, "VD2_AUX_INV", ReadOnly, 0, "i915: intel_gt_regs.h"),
    register(0x42b8, "VE1_AUX_INV", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(0x42c8, "CCS0_AUX_INV", ReadOnly, 0, "i915: intel_gt_regs.h"),
    register(0x4274, "GTCR", TLB_INVALIDATE, 0, "xe: regs/xe_guc_regs.h"),
    register(0x43f4, "GEN12_AUX_ERR_DBG", ReadOnly, 0, "i915: intel_gt_regs.h"),
    array(0x4400, "TRTT_RCS", STORED, 0, (6, 4), "V8-181").of(RENDER),
    array(0x4420, "TRTT_VD0", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoDecode, 0)),
    array(0x4440, "TRTT_VD1", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoDecode, 1)),
    array(0x4460, "TRTT_VE0", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoEnhance, 0)),
    array(0x4480, "TRTT_BCS", STORED, 0, (6, 4), "V8-183").of(COPY),
    array(0x4520, "TRTT_VD2", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoDecode, 2)),
    array(0x4540, "TRTT_VD3", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoDecode, 3)),
    array(0x4560, "TRTT_VE1", STORED, 0, (6, 4), "V8-185").of(Scope::ContextOf(VideoEnhance, 1)),
    array(0x4580, "TRTT_CCS0", STORED, 0, (6, 4), "V8-182").of(Scope::ContextOf(Compute, 0)),
    array(0x45a0, "TRTT_CCS1", STORED, 0, (6, 4), "V8-182").of(Scope::ContextOf(Compute, 1)),
    array(0x45c0, "TRTT_CCS2", STORED, 0, (6, 4), "V8-182").of(Scope::ContextOf(Compute, 2)),
    array(0x45e0, "TRTT_CCS3", STORED, 0, (6, 4), "V8-182").of(Scope::ContextOf(Compute, 3)),
    array(0x4800, "PAT_INDEX", STORED, 0, (8, 4), "contract B.2; xe: xe_pat.c"),
    register(TILE0_ADDR_RANGE, "XEHP_TILE0_ADDR_RANGE", ReadOnly, 0, "contract G.2; from the card's memory"),
    register(FLAT_CCS_BASE_ADDR, "XEHP_FLAT_CCS_BASE_ADDR", ReadOnly, 0, "contract B.2; from the card's memory"),
    array(0xb020, "XEHP_LNCFCMOCS", STORED, 0, (32, 4), "contract B.5; xe: xe_mocs.c"),
    array(0xceb8, "XEHP_FAULT_TLB_DATA", STORED, 0, (2, 4), "contract G.7; i915: intel_gt_regs.h"),
    register(0xcec4, "XEHP_RING_FAULT_REG", STORED, 0, "contract G.7; i915: intel_gt_regs.h"),
    array(0xced8, "TLB_INV_CR", TLB_INVALIDATE, 0, (5, 4), "contract G.6: GFX, VD, VE, BLT, GuC"),
    register(0xceec, "OA_TLB_INV_CR", TLB_INVALIDATE, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0xcf04, "XEHP_COMPCTX_TLB_INV_CR", TLB_INVALIDATE, 0, "contract G.6; i915: intel_gt_regs.h"),
    register(
        LMEM_CFG,
        "LMEM_CFG",
        Kind::Live(Live::Memory(MemoryRegister::LmemCfg)),
        0,
        "contract D.5; xe: regs/xe_gt_regs.h",
    ),
    register(0xcf68, "GEN12_GAM_DONE", ReadOnly, 0xffff_ffff, "i915: intel_gt_regs.h"),
    register(0x2024, "PGTBL_ER", STORED, 0, "contract G.7; i915: intel_gt.c"),
];
