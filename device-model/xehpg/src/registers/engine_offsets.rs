// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Offsets from an engine's base of the registers that the command streamer maintains or reads, or that images of
//! contexts have at a fixed place (V8-009; xe: xe_engine_regs.h). The rows of `engine.rs` have their names and sources.

/// RING_FORCE_TO_NONPRIV_12_15: four slots.
pub const FORCE_TO_NONPRIV_12: u32 = 0x10;
pub const EXCC: u32 = 0x28;
pub const RING_TAIL: u32 = 0x30;
pub const RING_HEAD: u32 = 0x34;
pub const RING_START: u32 = 0x38;
pub const RING_CTL: u32 = 0x3c;
pub const PWRCTX_MAXCNT: u32 = 0x54;
pub const CTX_WA_PTR: u32 = 0x58;
pub const ACTHD_UDW: u32 = 0x5c;
pub const IPEHR: u32 = 0x68;
pub const ACTHD: u32 = 0x74;
pub const HWS_PGA: u32 = 0x80;
pub const CMD_BUF_CCTL: u32 = 0x84;
pub const ENGINE_ID: u32 = 0x8c;
pub const NOPID: u32 = 0x94;
pub const HWSTAM: u32 = 0x98;
pub const MI_MODE: u32 = 0x9c;
pub const INT_SRC_RPT_PTR: u32 = 0xa4;
pub const IMR: u32 = 0xa8;
pub const INT_STATUS_RPT_PTR: u32 = 0xac;
pub const EIR: u32 = 0xb0;
pub const EMR: u32 = 0xb4;
pub const ESR: u32 = 0xb8;
pub const INSTPM: u32 = 0xc0;
pub const CMD_CCTL: u32 = 0xc4;
pub const PWR_CLK_STATE: u32 = 0xc8;
/// CS_MMIO_GROUP_INSTANCE_SELECT: steering of a streamer's commands (V13-142).
pub const CS_SELECTOR: u32 = 0xcc;
pub const CSFE_CHICKEN1: u32 = 0xd4;
pub const BB_STATE: u32 = 0x110;
pub const SECOND_BB_ADDR: u32 = 0x114;
pub const SECOND_BB_STATE: u32 = 0x118;
pub const SECOND_BB_ADDR_UDW: u32 = 0x11c;
pub const PRT_BB_STATE: u32 = 0x120;
pub const UHPTR: u32 = 0x134;
pub const SBB_PREEMPT_ADDRESS_UDW: u32 = 0x138;
pub const SBB_PREEMPT_ADDRESS: u32 = 0x13c;
pub const BBADDR: u32 = 0x140;
pub const BB_PREEMPT_ADDR: u32 = 0x148;
pub const RING_BUFFER_HEAD_PREEMPT: u32 = 0x14c;
pub const BB_START_ADDR: u32 = 0x150;
pub const BB_ADD_DIFF: u32 = 0x154;
pub const BB_OFFSET: u32 = 0x158;
pub const BBADDR_UDW: u32 = 0x168;
pub const BB_PREEMPT_ADDR_UDW: u32 = 0x16c;
pub const BB_START_ADDR_UDW: u32 = 0x170;
pub const PR_CTR_CTRL: u32 = 0x178;
pub const PR_CTR_THRSH: u32 = 0x17c;
pub const CCID: u32 = 0x180;
/// DISPLAY_MESSAGE_FORWARD_STATUS_2_3: two registers.
pub const DISPLAY_MESSAGE_FORWARD_STATUS_2: u32 = 0x188;
pub const PR_CTR: u32 = 0x190;
pub const CXT_OFFSET: u32 = 0x1ac;
pub const POSH_LRCA: u32 = 0x1b0;
pub const BB_PER_CTX_PTR: u32 = 0x1c0;
pub const INDIRECT_CTX: u32 = 0x1c4;
pub const INDIRECT_CTX_OFFSET: u32 = 0x1c8;
/// RING_FORCE_TO_NONPRIV_16_19: four slots.
pub const FORCE_TO_NONPRIV_16: u32 = 0x1d0;
pub const SYNC_FLIP_STATUS_6: u32 = 0x1f8;
pub const PREDICATION_MASK: u32 = 0x1fc;
pub const BCS_SWCTRL: u32 = 0x200;
pub const PREEMPT_DLY: u32 = 0x214;
/// CSB_INTERRUPT_MASK (V8-056).
pub const CSB_INTERRUPT_MASK: u32 = 0x218;
pub const WPARID: u32 = 0x21c;
/// RING_EXECLIST_STATUS: two dwords.
pub const EXECLIST_STATUS: u32 = 0x234;
pub const IDLEDLY: u32 = 0x23c;
pub const CURRENT_LRCA: u32 = 0x240;
pub const CONTEXT_CONTROL: u32 = 0x244;
pub const CTXT_PREMP_DBG: u32 = 0x248;
pub const SEMA_WAIT_POLL: u32 = 0x24c;
pub const PDP0: u32 = 0x270;
pub const PDP1: u32 = 0x278;
pub const PDP2: u32 = 0x280;
pub const PDP3: u32 = 0x288;
pub const GFX_MODE: u32 = 0x29c;
pub const SEMAPHORE_TOKEN: u32 = 0x2b4;
pub const SYNC_FLIP_STATUS_3: u32 = 0x2b8;
/// SYNC_FLIP_STATUS_4_5: two registers.
pub const SYNC_FLIP_STATUS_4: u32 = 0x2c0;
/// SYNC_FLIP_STATUS_0_1: two registers.
pub const SYNC_FLIP_STATUS_0: u32 = 0x2d0;
pub const DISPLAY_MESSAGE_FORWARD_STATUS: u32 = 0x2e8;
pub const SYNC_FLIP_STATUS_2: u32 = 0x2ec;
pub const TIMESTAMP: u32 = 0x358;
pub const TIMESTAMP_UDW: u32 = 0x35c;
/// OACTXCONTROL: bit 0 lets the context's counters advance.
pub const OACTXCONTROL: u32 = 0x360;
/// CTXT_ST_BUF: copies of entries 0 to 5 of the context status buffer, a qword each.
pub const CTXT_ST_BUF: u32 = 0x370;
/// CTXT_ST_PTR: write pointer (last written entry) in bits 3:0, the host's read pointer in bits 11:8 (i915:
/// reset_csb_pointers).
pub const CTXT_ST_PTR: u32 = 0x3a0;
pub const CTX_TIMESTAMP: u32 = 0x3a8;
pub const MI_ADDRESS_OFFSET: u32 = 0x3b4;
pub const SET_PREDICATE_RESULT: u32 = 0x3b8;
pub const PREDICATE_RESULT_2: u32 = 0x3bc;
/// CTXT_ST_BUF_UPPER: copies of entries 6 to 11.
pub const CTXT_ST_BUF_UPPER: u32 = 0x3c0;
pub const PREDICATE_SRC0: u32 = 0x400;
pub const PREDICATE_SRC1: u32 = 0x408;
pub const PREDICATE_DATA: u32 = 0x410;
pub const PREDICATE_RESULT: u32 = 0x418;
pub const PREDICATE_RESULT_1: u32 = 0x41c;
pub const STOP_PARSER_CONTROL: u32 = 0x424;
/// STOP_PARSER_HINT_ADDR: two dwords.
pub const STOP_PARSER_HINT_ADDR: u32 = 0x428;
pub const PREEMPTION_HINT: u32 = 0x4bc;
pub const PREEMPTION_HINT_UDW: u32 = 0x4c8;
pub const CTXID_PREEMPTION_HINT: u32 = 0x4cc;
/// RING_FORCE_TO_NONPRIV: twelve slots (V8-186).
pub const FORCE_TO_NONPRIV: u32 = 0x4d0;
/// GPGPU_DISPATCHDIMX, Y and Z.
pub const DISPATCHDIM: u32 = 0x500;
/// RING_EXECLIST_SQ_CONTENTS: eight elements of two dwords.
pub const EXECLIST_SQ_CONTENTS: u32 = 0x510;
pub const EQ_ELEMENT_MASK: u32 = 0x56c;
pub const BB_STACK_WRITE_PORT: u32 = 0x588;
pub const CTX_SCHEDULING_ATTRIBUTES: u32 = 0x5a8;
pub const PREEMPTION_STATUS: u32 = 0x5ac;
pub const GPR: u32 = 0x600;
/// Offset of the low dword of general purpose register `n`, 0 to 15, of 64 bits.
#[allow(clippy::arithmetic_side_effects, reason = "`n` is below 16")]
pub const fn gpr(n: u32) -> u32 {
    GPR + 8 * n
}

/// Registers of [`Scope::Power`](super::Scope::Power). All contexts of a function share them on an engine (V8-142,
/// V8-190). Each function has a separate copy (V13-052).
pub const GLOBALS: [u32; 2] = [NOPID, PREDICATE_RESULT_2];
