// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that every engine has, by offset from its base (contract K.3, V8-009).

use super::Kind::{self, Masked, ReadOnly};
use super::engine_offsets as offsets;
use super::{COPY, EVERY, Live, RENDER, RENDER_COMPUTE, Register, STORED, Scope, array, register};

/// Registers with side effects that control an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineRegister {
    /// ELSP: a dword for the submission queue (V8-011); reads 0.
    SubmitPort,
    /// RING_EXECLIST_CONTROL: bit 0 loads the submission queue (V8-013) and reads 0.
    ExeclistControl,
    /// EIR: writing 1 to a bit clears the error, except unrecoverable errors (V8-089).
    ErrorIdentity,
    /// EMR: 1 masks the error, which is then set in ESR but not in EIR (V8-089).
    ErrorMask,
    /// RESET_CTL: request in bit 0, ready in bit 1, catastrophic error in bit 2 (contract G.1).
    ResetControl,
}

/// Counters. In a two-dword counter, ordinal 0 is the low dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockRegister {
    /// GUC_PMTIMESTAMP: 64 bits in two dwords, at the rate of the timebase, 19.2 MHz (contract K.4).
    Timestamp,
    /// MISC_STATUS: the same at the rate of the crystal, 38.4 MHz, like the timestamps of observation (xe:
    /// xe_guc_engine_activity.c, gpm_timestamp_shift).
    PowerTimestamp,
    /// RING_TIMESTAMP of an engine: the same counter, its low 36 bits, two dwords (contract E.7).
    RingTimestamp,
    /// RING_CTX_TIMESTAMP of an engine: 32 bits, at the same rate while a context runs (contract E.8).
    ContextTimestamp,
}

const fn engine(register: EngineRegister) -> Kind<Live> {
    Kind::Live(Live::Engine(register))
}

const fn clock(register: ClockRegister) -> Kind<Live> {
    Kind::Live(Live::Clock(register))
}

/// RING_TAIL: writable are the offset of the tail in qwords, bits 20:3.
const RING_TAIL_KIND: Kind<Live> = Kind::Storage(0x001f_fff8);
/// RING_HEAD: writable are the offset of the head in dwords, bits 20:2, and the wrap count, bits 31:21 (V8-065).
const RING_HEAD_KIND: Kind<Live> = Kind::Storage(0xffff_fffc);
/// Address of a page in the GGTT: writable are bits 31:12.
const PAGE_ADDRESS: Kind<Live> = Kind::Storage(0xffff_f000);

/// The register table. Rows in ascending offset, relative to the engine's MMIO base. Every engine has every row; `of`
/// sets the owner of the state ([`Scope`]), not presence.
pub const TABLE: &[Register] = &[
    array(offsets::FORCE_TO_NONPRIV_12, "RING_FORCE_TO_NONPRIV_12_15", STORED, 0, (4, 4), "V8-186"),
    register(offsets::EXCC, "EXCC", Masked, 0, "V8-009").of(EVERY),
    register(offsets::RING_TAIL, "RING_TAIL", RING_TAIL_KIND, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::RING_HEAD, "RING_HEAD", RING_HEAD_KIND, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::RING_START, "RING_START", PAGE_ADDRESS, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::RING_CTL, "RING_CTL", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x048, "RING_START_UDW", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x050, "RING_PSMI_CTL", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::PWRCTX_MAXCNT, "RING_PWRCTX_MAXCNT", STORED, 0, "V8-009; xe: regs/xe_engine_regs.h"),
    register(offsets::CTX_WA_PTR, "CTX_WA_PTR", STORED, 0, "V8-009"),
    register(offsets::ACTHD_UDW, "RING_ACTHD_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x060, "RING_DMA_FADD_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(0x064, "RING_IPEIR", STORED, 0, "i915: intel_engine_regs.h"),
    register(offsets::IPEHR, "RING_IPEHR", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(EVERY),
    // A set bit means that the unit is done. The model does not report busy units: every bit stays set, also while an
    // operation is pending.
    register(0x06c, "RING_INSTDONE", ReadOnly, 0xffff_ffff, "xe: regs/xe_engine_regs.h").of(Scope::Common),
    register(0x070, "RING_INSTPS", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(offsets::ACTHD, "RING_ACTHD", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x078, "RING_DMA_FADD", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::HWS_PGA, "RING_HWS_PGA", PAGE_ADDRESS, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::CMD_BUF_CCTL, "CMD_BUF_CCTL", STORED, 0, "V8-009; contract G.5").of(EVERY),
    register(0x088, "IPEIR", STORED, 0, "i915: intel_engine_regs.h"),
    register(offsets::ENGINE_ID, "ENGINE_ID", ReadOnly, 0, "V8-005; xe: regs/xe_engine_regs.h").of(Scope::Common),
    register(
        offsets::NOPID,
        "RING_NOPID",
        STORED,
        0,
        "V8-190; xe: regs/xe_engine_regs.h; IGT: gem_ctx_isolation, NOCTX",
    )
    .of(Scope::Power),
    register(offsets::HWSTAM, "RING_HWSTAM", STORED, 0xffff_ffff, "xe: regs/xe_engine_regs.h"),
    // Bit 9 is MODE_IDLE. The model does not update it: it reads as it was last written or restored.
    register(offsets::MI_MODE, "RING_MI_MODE", Masked, 0x0200, "xe: regs/xe_engine_regs.h").of(EVERY),
    register(0x0a0, "FF_THREAD_MODE", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::INT_SRC_RPT_PTR, "RING_INT_SRC_RPT_PTR", STORED, 0, "xe: regs/xe_engine_regs.h")
        .of(Scope::Position),
    register(offsets::IMR, "RING_IMR", STORED, 0xffff_ffff, "xe: regs/xe_engine_regs.h"),
    register(offsets::INT_STATUS_RPT_PTR, "RING_INT_STATUS_RPT_PTR", STORED, 0, "xe: regs/xe_engine_regs.h")
        .of(Scope::Position),
    register(offsets::EIR, "RING_EIR", engine(EngineRegister::ErrorIdentity), 0, "V8-089; contract G.7"),
    register(offsets::EMR, "RING_EMR", engine(EngineRegister::ErrorMask), 0xffff_ffff, "V8-089"),
    register(offsets::ESR, "RING_ESR", ReadOnly, 0, "V8-089"),
    register(0x0bc, "GEN12_STATE_ACK_DEBUG", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(offsets::INSTPM, "INSTPM", Masked, 0, "xe: regs/xe_engine_regs.h").of(EVERY),
    register(offsets::CMD_CCTL, "RING_CMD_CCTL", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::PWR_CLK_STATE, "RING_PWR_CLK_STATE", STORED, 0, "contract K.1").of(RENDER),
    register(offsets::CS_SELECTOR, "CS_MMIO_GROUP_INSTANCE_SELECT", STORED, 0, "V13-142; xe: regs/xe_engine_regs.h"),
    register(
        0x0d0,
        "RING_RESET_CTL",
        engine(EngineRegister::ResetControl),
        0,
        "contract G.1; i915: intel_engine_regs.h",
    ),
    register(offsets::CSFE_CHICKEN1, "CSFE_CHICKEN1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0d8, "CS_DEBUG_MODE2", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0e0, "FF_SLICE_CS_CHICKEN1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0e4, "FF_SLICE_CS_CHICKEN2", Masked, 0, "i915: intel_gt_regs.h"),
    register(0x0ec, "CS_DEBUG_MODE1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x108, "INDIRECT_RING_STATE", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::BB_STATE, "RING_BBSTATE", STORED, 0, "V8-009; i915: intel_engine_regs.h").of(Scope::Position),
    register(offsets::SECOND_BB_ADDR, "SECOND_BB_ADDR", STORED, 0, "V8-009"),
    register(offsets::SECOND_BB_STATE, "SECOND_BB_STATE", STORED, 0, "V8-009"),
    register(offsets::SECOND_BB_ADDR_UDW, "SECOND_BB_ADDR_UDW", STORED, 0, "V8-009"),
    array(offsets::PRT_BB_STATE, "PRT_BB_STATE", STORED, 0, (2, 4), "V8-009").of(Scope::Position),
    register(offsets::UHPTR, "UHPTR", STORED, 0, "V8-009"),
    register(offsets::SBB_PREEMPT_ADDRESS_UDW, "SBB_PREEMPT_ADDRESS_UDW", STORED, 0, "V8-009"),
    register(offsets::SBB_PREEMPT_ADDRESS, "SBB_PREEMPT_ADDRESS", STORED, 0, "V8-009"),
    register(offsets::BBADDR, "RING_BBADDR", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::BB_PREEMPT_ADDR, "BB_PREEMPT_ADDR", STORED, 0, "V8-009"),
    register(offsets::RING_BUFFER_HEAD_PREEMPT, "RING_BUFFER_HEAD_PREEMPT", STORED, 0, "V8-009"),
    register(offsets::BB_START_ADDR, "BB_START_ADDR", STORED, 0, "V8-009").of(EVERY),
    register(offsets::BB_ADD_DIFF, "BB_ADD_DIFF", STORED, 0, "V8-009").of(Scope::Position),
    register(offsets::BB_OFFSET, "BB_OFFSET", STORED, 0, "V8-009").of(EVERY),
    register(offsets::BBADDR_UDW, "RING_BBADDR_UDW", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::BB_PREEMPT_ADDR_UDW, "BB_PREEMPT_ADDR_UDW", STORED, 0, "V8-009"),
    register(offsets::BB_START_ADDR_UDW, "BB_START_ADDR_UDW", STORED, 0, "V8-009").of(EVERY),
    // 1 is CTR_STOP: the counter is stopped.
    register(offsets::PR_CTR_CTRL, "PR_CTR_CTRL", STORED, 1, "V8-009, V8-T4").of(EVERY),
    register(offsets::PR_CTR_THRSH, "PR_CTR_THRSH", STORED, 0x0015_0000, "xe: regs/xe_engine_regs.h; IVB-004")
        .of(EVERY),
    register(offsets::CCID, "CCID", STORED, 0, "V8-009").of(Scope::Position),
    array(offsets::DISPLAY_MESSAGE_FORWARD_STATUS_2, "DISPLAY_MESSAGE_FORWARD_STATUS_2_3", STORED, 0, (2, 4), "V8-009"),
    // The watchdog's counter.
    register(offsets::PR_CTR, "PR_CTR", ReadOnly, 0, "V8-167"),
    register(offsets::CXT_OFFSET, "CXT_OFFSET", STORED, 0, "V8-009"),
    register(offsets::POSH_LRCA, "POSH_LRCA", STORED, 0, "i915: intel_lrc.c dg2_rcs_offsets").of(RENDER),
    register(0x1b8, "CS_INT_VEC", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::BB_PER_CTX_PTR, "BB_PER_CTX_PTR", STORED, 0, "V8-009").of(Scope::Position),
    register(offsets::INDIRECT_CTX, "INDIRECT_CTX", STORED, 0, "V8-009").of(Scope::Position),
    register(offsets::INDIRECT_CTX_OFFSET, "INDIRECT_CTX_OFFSET", STORED, 0, "V8-009").of(Scope::Position),
    array(offsets::FORCE_TO_NONPRIV_16, "RING_FORCE_TO_NONPRIV_16_19", STORED, 0, (4, 4), "V8-186"),
    register(offsets::SYNC_FLIP_STATUS_6, "SYNC_FLIP_STATUS_6", STORED, 0, "V8-009"),
    register(offsets::PREDICATION_MASK, "PREDICATION_MASK", STORED, 0, "V8-009").of(EVERY),
    register(offsets::BCS_SWCTRL, "BCS_SWCTRL", Masked, 0, "xe: regs/xe_engine_regs.h").of(COPY),
    register(0x204, "BLIT_CCTL", STORED, 0, "xe: regs/xe_engine_regs.h").of(COPY),
    register(0x20c, "RING_CSCMDOP", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(offsets::PREEMPT_DLY, "PREEMPT_DLY", STORED, 0, "V8-009"),
    register(offsets::CSB_INTERRUPT_MASK, "CSB_INTERRUPT_MASK", STORED, 0, "V8-056"),
    register(offsets::WPARID, "WPARID", STORED, 0, "V8-009").of(EVERY),
    register(0x230, "RING_ELSP", engine(EngineRegister::SubmitPort), 0, "V8-011"),
    // Bit 0 is Execution Queue Invalid (Fuchsia: magma msd-intel-gen, ExeclistStatusGen12), set after reset.
    register(offsets::EXECLIST_STATUS, "RING_EXECLIST_STATUS_LO", ReadOnly, 1, "V8-022; xe: regs/xe_engine_regs.h"),
    register(0x238, "RING_EXECLIST_STATUS_HI", ReadOnly, 0, "V8-022; xe: regs/xe_engine_regs.h"),
    register(offsets::IDLEDLY, "RING_IDLEDLY", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::CURRENT_LRCA, "RING_CURRENT_LRCA", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(offsets::CONTEXT_CONTROL, "RING_CONTEXT_CONTROL", Masked, 0, "xe: regs/xe_engine_regs.h")
        .of(Scope::Position),
    register(offsets::CTXT_PREMP_DBG, "CTXT_PREMP_DBG", STORED, 0, "V8-009"),
    register(offsets::SEMA_WAIT_POLL, "SEMA_WAIT_POLL", STORED, 0, "V8-009"),
    // PDP0 to PDP3, low and high dword of each.
    array(offsets::PDP0, "PDP", STORED, 0, (8, 4), "V8-009").of(Scope::Position),
    array(0x290, "GPGPU_THREADS_DISPATCHED", STORED, 0, (2, 4), "V8-009").of(RENDER_COMPUTE),
    register(offsets::GFX_MODE, "GFX_MODE", Masked, 0, "V8-008; xe: regs/xe_engine_regs.h"),
    register(0x2b0, "RING_CSMQDEBUG", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(offsets::SEMAPHORE_TOKEN, "SEMAPHORE_TOKEN", STORED, 0, "V8-009").of(Scope::Position),
    register(offsets::SYNC_FLIP_STATUS_3, "SYNC_FLIP_STATUS_3", STORED, 0, "V8-009"),
    array(offsets::SYNC_FLIP_STATUS_4, "SYNC_FLIP_STATUS_4_5", STORED, 0, (2, 4), "V8-009"),
    array(offsets::SYNC_FLIP_STATUS_0, "SYNC_FLIP_STATUS_0_1", STORED, 0, (2, 4), "V8-009"),
    register(offsets::DISPLAY_MESSAGE_FORWARD_STATUS, "DISPLAY_MESSAGE_FORWARD_STATUS", STORED, 0, "V8-009"),
    register(offsets::SYNC_FLIP_STATUS_2, "SYNC_FLIP_STATUS_2", STORED, 0, "V8-009"),
    array(
        offsets::TIMESTAMP,
        "RING_TIMESTAMP",
        clock(ClockRegister::RingTimestamp),
        0,
        (2, 4),
        "contract E.7; xe: regs/xe_engine_regs.h",
    )
    .of(Scope::Common),
    register(offsets::OACTXCONTROL, "OACTXCONTROL", STORED, 0, "V13-214; xe: regs/xe_oa_regs.h").of(RENDER_COMPUTE),
    register(0x364, "OACTXID", STORED, 0, "V8-009; IGT: gem_ctx_isolation").of(RENDER_COMPUTE),
    array(offsets::CTXT_ST_BUF, "CTXT_ST_BUF", ReadOnly, 0, (12, 4), "V8-059"),
    // The write pointer is at the last entry, so that the first status is written to entry 0 (i915:
    // reset_csb_pointers). The host's read pointer in bits 11:8 is equal, so the buffer is empty.
    register(offsets::CTXT_ST_PTR, "CTXT_ST_PTR", Masked, 0x0b0b, "V8-058, V8-059; i915: reset_csb_pointers"),
    register(
        offsets::CTX_TIMESTAMP,
        "RING_CTX_TIMESTAMP",
        clock(ClockRegister::ContextTimestamp),
        0,
        "contract E.8; xe: regs/xe_engine_regs.h",
    )
    .of(EVERY),
    // The context timestamp has 32 bits on this card.
    register(0x3ac, "RING_CTX_TIMESTAMP_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(Scope::Common),
    register(offsets::MI_ADDRESS_OFFSET, "CS_MI_ADDRESS_OFFSET", STORED, 0, "V8-009").of(EVERY),
    register(offsets::SET_PREDICATE_RESULT, "MI_SET_PREDICATE_RESULT", STORED, 0, "V8-142").of(EVERY),
    register(offsets::PREDICATE_RESULT_2, "MI_PREDICATE_RESULT_2", STORED, 0, "V8-142").of(Scope::Power),
    array(offsets::CTXT_ST_BUF_UPPER, "CTXT_ST_BUF_UPPER", ReadOnly, 0, (12, 4), "V8-059"),
    register(0x3fc, "CSBE_DEBUG_STATUS", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    array(offsets::PREDICATE_SRC0, "MI_PREDICATE_SRC0", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    array(offsets::PREDICATE_SRC1, "MI_PREDICATE_SRC1", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    array(offsets::PREDICATE_DATA, "MI_PREDICATE_DATA", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    register(offsets::PREDICATE_RESULT, "MI_PREDICATE_RESULT", STORED, 0, "V8-142").of(RENDER_COMPUTE),
    register(offsets::PREDICATE_RESULT_1, "MI_PREDICATE_RESULT_1", STORED, 0, "V8-142").of(EVERY),
    register(offsets::STOP_PARSER_CONTROL, "STOP_PARSER_CONTROL", STORED, 0, "V8-082"),
    array(offsets::STOP_PARSER_HINT_ADDR, "STOP_PARSER_HINT_ADDR", STORED, 0, (2, 4), "V8-082"),
    register(offsets::PREEMPTION_HINT, "CS_PREEMPTION_HINT", STORED, 0, "V8-082"),
    // There are no queues on this card.
    array(0x4c0, "RING_QUEUE_TIMESTAMP", ReadOnly, 0, (2, 4), "xe: regs/xe_engine_regs.h"),
    register(offsets::PREEMPTION_HINT_UDW, "CS_PREEMPTION_HINT_UDW", STORED, 0, "V8-082"),
    register(offsets::CTXID_PREEMPTION_HINT, "CTXID_PREEMPTION_HINT", STORED, 0, "V8-082"),
    array(offsets::FORCE_TO_NONPRIV, "RING_FORCE_TO_NONPRIV", STORED, 0, (12, 4), "V8-186; xe: regs/xe_engine_regs.h"),
    array(offsets::DISPATCHDIM, "DISPATCHDIM", STORED, 0, (3, 4), "V8-009").of(RENDER_COMPUTE),
    array(offsets::EXECLIST_SQ_CONTENTS, "RING_EXECLIST_SQ_CONTENTS", STORED, 0, (16, 4), "V8-010"),
    register(
        0x550,
        "RING_EXECLIST_CONTROL",
        engine(EngineRegister::ExeclistControl),
        0,
        "V8-013; xe: regs/xe_engine_regs.h",
    ),
    register(offsets::EQ_ELEMENT_MASK, "EQ_ELEMENT_MASK", STORED, 0, "V8-023"),
    // Saved with the context.
    register(0x580, "CS_CHICKEN1", Masked, 0, "i915: intel_workarounds.c; IGT: gem_ctx_isolation").of(RENDER),
    register(offsets::BB_STACK_WRITE_PORT, "BB_STACK_WRITE_PORT", STORED, 0, "V8-009"),
    register(offsets::CTX_SCHEDULING_ATTRIBUTES, "CTX_SCHEDULING_ATTRIBUTES", STORED, 0, "xe: xe_lrc.c").of(RENDER),
    register(offsets::PREEMPTION_STATUS, "PREEMPTION_STATUS", STORED, 0, "xe: xe_lrc.c").of(RENDER),
    array(offsets::GPR, "CS_GPR", STORED, 0, (32, 4), "V8-146; xe: regs/xe_engine_regs.h").of(EVERY),
];

// A reset of a VF sets its copies of the registers of the power context to 0 (`gt/virtual_function.rs`).
const _: () = {
    let mut rows = TABLE;
    while let [row, rest @ ..] = rows {
        assert!(
            !matches!(row.scope, Scope::Power) || row.reset == 0,
            "a register of the power context is not reset to 0"
        );
        rows = rest;
    }
};
