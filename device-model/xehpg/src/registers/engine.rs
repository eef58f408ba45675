// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that every engine has, by offset from its base (contract K.3, V8-009).

use super::Kind::{self, Masked, ReadOnly};
use super::steering::CS_SELECTOR;
use super::{COPY, EVERY, Live, RENDER, RENDER_COMPUTE, Register, STORED, Scope, array, register};

/// Type of a register that controls an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineRegister {
    /// ELSP: a dword for the submission queue (V8-011); reads 0.
    SubmitPort,
    /// RING_EXECLIST_CONTROL: bit 0 loads the submission queue (V8-013) and reads 0.
    ExeclistControl,
    /// EIR: writing 1 clears an error that software can clear (V8-089).
    ErrorIdentity,
    /// EMR: errors in ESR that it does not mask are set in EIR (V8-089).
    ErrorMask,
    /// RESET_CTL: request in bit 0, ready in bit 1, catastrophic error in bit 2 (contract G.1).
    ResetControl,
}

/// Type of a clock. A counter of two dwords has the low one as ordinal 0, the high one as ordinal 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockRegister {
    /// Free-running 19.2 MHz counter.
    Timestamp,
    /// RING_TIMESTAMP of an engine.
    RingTimestamp,
    /// CTX_TIMESTAMP of an engine.
    ContextTimestamp,
}

const fn engine(register: EngineRegister) -> Kind<Live> {
    Kind::Live(Live::Engine(register))
}

const fn clock(register: ClockRegister) -> Kind<Live> {
    Kind::Live(Live::Clock(register))
}

/// Head offset in bits 20:2, wrap count in bits 31:21 (V8-065).
const RING_HEAD: Kind<Live> = Kind::Storage(0xffff_fffc);

/// The register table.
pub const TABLE: &[Register] = &[
    array(0x010, "RING_FORCE_TO_NONPRIV_12_15", STORED, 0, (4, 4), "V8-186"),
    register(0x028, "EXCC", Masked, 0, "V8-009").of(EVERY),
    register(0x030, "RING_TAIL", Kind::Storage(0x001f_fff8), 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x034, "RING_HEAD", RING_HEAD, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x038, "RING_START", Kind::Storage(0xffff_f000), 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x03c, "RING_CTL", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x048, "RING_START_UDW", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x050, "RING_PSMI_CTL", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x054, "RING_PWRCTX_MAXCNT", STORED, 0, "V8-009; xe: regs/xe_engine_regs.h"),
    register(0x058, "CTX_WA_PTR", STORED, 0, "V8-009"),
    register(0x05c, "RING_ACTHD_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x060, "RING_DMA_FADD_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(0x064, "RING_IPEIR", STORED, 0, "i915: intel_engine_regs.h"),
    register(0x068, "RING_IPEHR", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(EVERY),
    // A set bit means that the unit is done; in the model no unit is busy when a register is read.
    register(0x06c, "RING_INSTDONE", ReadOnly, 0xffff_ffff, "xe: regs/xe_engine_regs.h").of(Scope::Common),
    register(0x070, "RING_INSTPS", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(0x074, "RING_ACTHD", ReadOnly, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x078, "RING_DMA_FADD", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(0x080, "RING_HWS_PGA", Kind::Storage(0xffff_f000), 0, "xe: regs/xe_engine_regs.h"),
    register(0x084, "CMD_BUF_CCTL", STORED, 0, "V8-009; contract G.5").of(EVERY),
    register(0x088, "IPEIR", STORED, 0, "i915: intel_engine_regs.h"),
    register(0x08c, "ENGINE_ID", ReadOnly, 0, "V8-005; xe: regs/xe_engine_regs.h").of(Scope::Common),
    register(0x094, "RING_NOPID", STORED, 0, "V8-190; xe: regs/xe_engine_regs.h; IGT: gem_ctx_isolation, NOCTX")
        .of(Scope::Power),
    register(0x098, "RING_HWSTAM", STORED, 0xffff_ffff, "xe: regs/xe_engine_regs.h"),
    register(0x09c, "RING_MI_MODE", Masked, 0x0200, "xe: regs/xe_engine_regs.h; bit 9 MODE_IDLE").of(EVERY),
    register(0x0a0, "FF_THREAD_MODE", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0a4, "RING_INT_SRC_RPT_PTR", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x0a8, "RING_IMR", STORED, 0xffff_ffff, "xe: regs/xe_engine_regs.h"),
    register(0x0ac, "RING_INT_STATUS_RPT_PTR", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x0b0, "RING_EIR", engine(EngineRegister::ErrorIdentity), 0, "V8-089; contract G.7"),
    register(0x0b4, "RING_EMR", engine(EngineRegister::ErrorMask), 0xffff_ffff, "V8-089"),
    register(0x0b8, "RING_ESR", ReadOnly, 0, "V8-089"),
    register(0x0bc, "GEN12_STATE_ACK_DEBUG", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(0x0c0, "INSTPM", Masked, 0, "xe: regs/xe_engine_regs.h").of(EVERY),
    register(0x0c4, "RING_CMD_CCTL", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0c8, "RING_PWR_CLK_STATE", STORED, 0, "contract K.1").of(RENDER),
    register(CS_SELECTOR, "CS_MMIO_GROUP_INSTANCE_SELECT", STORED, 0, "V13-142; xe: regs/xe_engine_regs.h"),
    register(
        0x0d0,
        "RING_RESET_CTL",
        engine(EngineRegister::ResetControl),
        0,
        "contract G.1; i915: intel_engine_regs.h",
    ),
    register(0x0d4, "CSFE_CHICKEN1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0d8, "CS_DEBUG_MODE2", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0e0, "FF_SLICE_CS_CHICKEN1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x0e4, "FF_SLICE_CS_CHICKEN2", Masked, 0, "i915: intel_gt_regs.h"),
    register(0x0ec, "CS_DEBUG_MODE1", Masked, 0, "xe: regs/xe_engine_regs.h"),
    register(0x108, "INDIRECT_RING_STATE", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x110, "RING_BBSTATE", STORED, 0, "V8-009; i915: intel_engine_regs.h").of(Scope::Position),
    register(0x114, "SECOND_BB_ADDR", STORED, 0, "V8-009"),
    register(0x118, "SECOND_BB_STATE", STORED, 0, "V8-009"),
    register(0x11c, "SECOND_BB_ADDR_UDW", STORED, 0, "V8-009"),
    array(0x120, "PRT_BB_STATE", STORED, 0, (2, 4), "V8-009").of(Scope::Position),
    register(0x134, "UHPTR", STORED, 0, "V8-009"),
    register(0x138, "SBB_PREEMPT_ADDRESS_UDW", STORED, 0, "V8-009"),
    register(0x13c, "SBB_PREEMPT_ADDRESS", STORED, 0, "V8-009"),
    register(0x140, "RING_BBADDR", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x148, "BB_PREEMPT_ADDR", STORED, 0, "V8-009"),
    register(0x14c, "RING_BUFFER_HEAD_PREEMPT", STORED, 0, "V8-009"),
    register(0x150, "BB_START_ADDR", STORED, 0, "V8-009").of(EVERY),
    register(0x154, "BB_ADD_DIFF", STORED, 0, "V8-009").of(Scope::Position),
    register(0x158, "BB_OFFSET", STORED, 0, "V8-009").of(EVERY),
    register(0x168, "RING_BBADDR_UDW", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x16c, "BB_PREEMPT_ADDR_UDW", STORED, 0, "V8-009"),
    register(0x170, "BB_START_ADDR_UDW", STORED, 0, "V8-009").of(EVERY),
    register(0x178, "PR_CTR_CTRL", STORED, 1, "V8-009, V8-T4; 1 is CTR_STOP").of(EVERY),
    register(0x17c, "PR_CTR_THRSH", STORED, 0x0015_0000, "xe: regs/xe_engine_regs.h; IVB-004").of(EVERY),
    register(0x180, "CCID", STORED, 0, "V8-009").of(Scope::Position),
    array(0x188, "DISPLAY_MESSAGE_FORWARD_STATUS_2_3", STORED, 0, (2, 4), "V8-009"),
    register(0x190, "PR_CTR", ReadOnly, 0, "V8-167; the counter"),
    register(0x1ac, "CXT_OFFSET", STORED, 0, "V8-009"),
    register(0x1b0, "POSH_LRCA", STORED, 0, "i915: intel_lrc.c dg2_rcs_offsets").of(RENDER),
    register(0x1b8, "CS_INT_VEC", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x1c0, "BB_PER_CTX_PTR", STORED, 0, "V8-009").of(Scope::Position),
    register(0x1c4, "INDIRECT_CTX", STORED, 0, "V8-009").of(Scope::Position),
    register(0x1c8, "INDIRECT_CTX_OFFSET", STORED, 0, "V8-009").of(Scope::Position),
    array(0x1d0, "RING_FORCE_TO_NONPRIV_16_19", STORED, 0, (4, 4), "V8-186"),
    register(0x1f8, "SYNC_FLIP_STATUS_6", STORED, 0, "V8-009"),
    register(0x1fc, "PREDICATION_MASK", STORED, 0, "V8-009").of(EVERY),
    register(0x200, "BCS_SWCTRL", Masked, 0, "xe: regs/xe_engine_regs.h").of(COPY),
    register(0x204, "BLIT_CCTL", STORED, 0, "xe: regs/xe_engine_regs.h").of(COPY),
    register(0x20c, "RING_CSCMDOP", ReadOnly, 0, "i915: intel_engine_regs.h"),
    register(0x214, "PREEMPT_DLY", STORED, 0, "V8-009"),
    register(0x218, "CSB_INTERRUPT_MASK", STORED, 0, "V8-056"),
    register(0x21c, "WPARID", STORED, 0, "V8-009").of(EVERY),
    register(0x230, "RING_ELSP", engine(EngineRegister::SubmitPort), 0, "V8-011"),
    // After reset the execution queue is not valid.
    register(0x234, "RING_EXECLIST_STATUS_LO", ReadOnly, 1, "V8-022; xe: regs/xe_engine_regs.h"),
    register(0x238, "RING_EXECLIST_STATUS_HI", ReadOnly, 0, "V8-022; xe: regs/xe_engine_regs.h"),
    register(0x23c, "RING_IDLEDLY", STORED, 0, "xe: regs/xe_engine_regs.h"),
    register(0x240, "RING_CURRENT_LRCA", STORED, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x244, "RING_CONTEXT_CONTROL", Masked, 0, "xe: regs/xe_engine_regs.h").of(Scope::Position),
    register(0x248, "CTXT_PREMP_DBG", STORED, 0, "V8-009"),
    register(0x24c, "SEMA_WAIT_POLL", STORED, 0, "V8-009"),
    array(0x270, "PDP", STORED, 0, (8, 4), "V8-009: PDP0..3, low and high dwords").of(Scope::Position),
    array(0x290, "GPGPU_THREADS_DISPATCHED", STORED, 0, (2, 4), "V8-009").of(RENDER_COMPUTE),
    register(0x29c, "GFX_MODE", Masked, 0, "V8-008; xe: regs/xe_engine_regs.h"),
    register(0x2b0, "RING_CSMQDEBUG", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    register(0x2b4, "SEMAPHORE_TOKEN", STORED, 0, "V8-009").of(Scope::Position),
    register(0x2b8, "SYNC_FLIP_STATUS_3", STORED, 0, "V8-009"),
    array(0x2c0, "SYNC_FLIP_STATUS_4_5", STORED, 0, (2, 4), "V8-009"),
    array(0x2d0, "SYNC_FLIP_STATUS_0_1", STORED, 0, (2, 4), "V8-009"),
    register(0x2e8, "DISPLAY_MESSAGE_FORWARD_STATUS", STORED, 0, "V8-009"),
    register(0x2ec, "SYNC_FLIP_STATUS_2", STORED, 0, "V8-009"),
    array(
        0x358,
        "RING_TIMESTAMP",
        clock(ClockRegister::RingTimestamp),
        0,
        (2, 4),
        "contract E.7; xe: regs/xe_engine_regs.h",
    )
    .of(Scope::Common),
    register(0x360, "OACTXCONTROL", STORED, 0, "V13-214; xe: regs/xe_oa_regs.h").of(RENDER_COMPUTE),
    register(0x364, "OACTXID", STORED, 0, "V8-009; IGT: gem_ctx_isolation").of(RENDER_COMPUTE),
    array(0x370, "CTXT_ST_BUF", ReadOnly, 0, (12, 4), "V8-059"),
    // The write pointer is at the last entry, so that the first status is written to entry 0 (i915:
    // reset_csb_pointers).
    register(0x3a0, "CTXT_ST_PTR", Masked, 0x0b0b, "V8-058, V8-059; i915: reset_csb_pointers"),
    register(
        0x3a8,
        "RING_CTX_TIMESTAMP",
        clock(ClockRegister::ContextTimestamp),
        0,
        "contract E.8; xe: regs/xe_engine_regs.h",
    )
    .of(EVERY),
    register(0x3ac, "RING_CTX_TIMESTAMP_UDW", ReadOnly, 0, "xe: regs/xe_engine_regs.h; 32 bits on this card")
        .of(Scope::Common),
    register(0x3b4, "CS_MI_ADDRESS_OFFSET", STORED, 0, "V8-009").of(EVERY),
    register(0x3b8, "MI_SET_PREDICATE_RESULT", STORED, 0, "V8-142").of(EVERY),
    register(0x3bc, "MI_PREDICATE_RESULT_2", STORED, 0, "V8-142").of(Scope::Power),
    array(0x3c0, "CTXT_ST_BUF_UPPER", ReadOnly, 0, (12, 4), "V8-059"),
    register(0x3fc, "CSBE_DEBUG_STATUS", ReadOnly, 0, "xe: regs/xe_engine_regs.h"),
    array(0x400, "MI_PREDICATE_SRC0", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    array(0x408, "MI_PREDICATE_SRC1", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    array(0x410, "MI_PREDICATE_DATA", STORED, 0, (2, 4), "V8-144").of(RENDER_COMPUTE),
    register(0x418, "MI_PREDICATE_RESULT", STORED, 0, "V8-142").of(RENDER_COMPUTE),
    register(0x41c, "MI_PREDICATE_RESULT_1", STORED, 0, "V8-142").of(EVERY),
    register(0x424, "STOP_PARSER_CONTROL", STORED, 0, "V8-082"),
    array(0x428, "STOP_PARSER_HINT_ADDR", STORED, 0, (2, 4), "V8-082"),
    register(0x4bc, "CS_PREEMPTION_HINT", STORED, 0, "V8-082"),
    array(0x4c0, "RING_QUEUE_TIMESTAMP", ReadOnly, 0, (2, 4), "xe: regs/xe_engine_regs.h; no queues on this card"),
    register(0x4c8, "CS_PREEMPTION_HINT_UDW", STORED, 0, "V8-082"),
    register(0x4cc, "CTXID_PREEMPTION_HINT", STORED, 0, "V8-082"),
    array(0x4d0, "RING_FORCE_TO_NONPRIV", STORED, 0, (12, 4), "V8-186; xe: regs/xe_engine_regs.h"),
    array(0x500, "DISPATCHDIM", STORED, 0, (3, 4), "V8-009").of(RENDER_COMPUTE),
    array(0x510, "RING_EXECLIST_SQ_CONTENTS", STORED, 0, (16, 4), "V8-010"),
    register(
        0x550,
        "RING_EXECLIST_CONTROL",
        engine(EngineRegister::ExeclistControl),
        0,
        "V8-013; xe: regs/xe_engine_regs.h",
    ),
    register(0x56c, "EQ_ELEMENT_MASK", STORED, 0, "V8-023"),
    register(
        0x580,
        "CS_CHICKEN1",
        Masked,
        0,
        "i915: intel_workarounds.c, saved with the context; IGT: gem_ctx_isolation",
    )
    .of(RENDER),
    register(0x588, "BB_STACK_WRITE_PORT", STORED, 0, "V8-009"),
    array(0x5a8, "CTX_SCHEDULING_ATTRIBUTES", STORED, 0, (2, 4), "xe: xe_lrc.c; and PREEMPTION_STATUS").of(RENDER),
    array(0x600, "CS_GPR", STORED, 0, (32, 4), "V8-146; xe: regs/xe_engine_regs.h").of(EVERY),
];
