// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Offsets from an engine's base of the registers that the command streamer maintains or reads (V8-009; xe:
//! xe_engine_regs.h).

pub const RING_TAIL: u32 = 0x30;
pub const RING_HEAD: u32 = 0x34;
pub const RING_START: u32 = 0x38;
pub const RING_CTL: u32 = 0x3c;
pub const ACTHD_UDW: u32 = 0x5c;
pub const IPEHR: u32 = 0x68;
pub const ACTHD: u32 = 0x74;
pub const HWS_PGA: u32 = 0x80;
pub const ENGINE_ID: u32 = 0x8c;
pub const NOPID: u32 = 0x94;
pub const HWSTAM: u32 = 0x98;
pub const INT_SRC_RPT_PTR: u32 = 0xa4;
pub const IMR: u32 = 0xa8;
pub const INT_STATUS_RPT_PTR: u32 = 0xac;
pub const EIR: u32 = 0xb0;
pub const EMR: u32 = 0xb4;
pub const ESR: u32 = 0xb8;
pub const CSFE_CHICKEN1: u32 = 0xd4;
pub const BB_STATE: u32 = 0x110;
pub const PRT_BB_STATE: u32 = 0x120;
pub const BBADDR: u32 = 0x140;
pub const BB_START_ADDR: u32 = 0x150;
pub const BB_ADD_DIFF: u32 = 0x154;
pub const BB_OFFSET: u32 = 0x158;
pub const BBADDR_UDW: u32 = 0x168;
pub const BB_START_ADDR_UDW: u32 = 0x170;
pub const PR_CTR_CTRL: u32 = 0x178;
pub const PR_CTR_THRSH: u32 = 0x17c;
pub const CCID: u32 = 0x180;
pub const PR_CTR: u32 = 0x190;
pub const BB_PER_CTX_PTR: u32 = 0x1c0;
pub const INDIRECT_CTX: u32 = 0x1c4;
pub const INDIRECT_CTX_OFFSET: u32 = 0x1c8;
pub const PREDICATION_MASK: u32 = 0x1fc;
pub const BCS_SWCTRL: u32 = 0x200;
/// CSB_INTERRUPT_MASK (V8-056).
pub const CSB_INTERRUPT_MASK: u32 = 0x218;
pub const WPARID: u32 = 0x21c;
/// RING_EXECLIST_STATUS: two dwords.
pub const EXECLIST_STATUS: u32 = 0x234;
pub const CURRENT_LRCA: u32 = 0x240;
pub const CONTEXT_CONTROL: u32 = 0x244;
pub const PDP0: u32 = 0x270;
pub const GFX_MODE: u32 = 0x29c;
pub const SEMAPHORE_TOKEN: u32 = 0x2b4;
pub const TIMESTAMP: u32 = 0x358;
pub const TIMESTAMP_UDW: u32 = 0x35c;
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
/// RING_EXECLIST_SQ_CONTENTS: eight elements of two dwords.
pub const EXECLIST_SQ_CONTENTS: u32 = 0x510;
pub const BB_STACK_WRITE_PORT: u32 = 0x588;
pub const GPR: u32 = 0x600;

/// Registers of [`Scope::Power`](super::Scope::Power). All contexts of a function share them on an engine (V8-142,
/// V8-190). Each function has a separate copy (V13-052).
pub const GLOBALS: [u32; 2] = [NOPID, PREDICATE_RESULT_2];
