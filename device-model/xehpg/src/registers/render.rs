// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Render-only registers of the command streamer: statistics, draw parameters, stream output (V8-181).

use super::Kind::{self, Masked, ReadOnly};
use super::{ClockRegister, Live, RENDER, Register, STORED, Scope, array, register};

/// The register table.
pub const TABLE: &[Register] = &[
    array(0x2300, "STATISTICS", STORED, 0, (22, 4), "V8-181: HS_INVOCATION_COUNT 0x2300 .. PS_DEPTH_COUNT 0x2350")
        .of(RENDER),
    register(0x2420, "3DPRIM_END_OFFSET", STORED, 0, "V8-181").of(RENDER),
    register(0x2430, "3DPRIM_START_VERTEX", STORED, 0, "V8-181").of(RENDER),
    register(0x2434, "3DPRIM_VERTEX_COUNT", STORED, 0, "V8-181").of(RENDER),
    register(0x2438, "3DPRIM_INSTANCE_COUNT", STORED, 0, "V8-181").of(RENDER),
    register(0x243c, "3DPRIM_START_INSTANCE", STORED, 0, "V8-181").of(RENDER),
    register(0x2440, "3DPRIM_BASE_VERTEX", STORED, 0, "V8-181").of(RENDER),
    array(0x2448, "PS_COUNT_SLICE", STORED, 0, (12, 4), "V8-181: PS per slice 0x2448 .. 0x2470").of(RENDER),
    array(0x2478, "CPS_INVOCATION_COUNT", STORED, 0, (2, 4), "V8-181").of(RENDER),
    array(0x24a0, "PS_COUNT_SLICE_B", STORED, 0, (4, 4), "V8-181").of(RENDER),
    array(0x22c8, "PS_COUNT_SLICE_C", STORED, 0, (2, 4), "V8-181").of(RENDER),
    array(0x22d8, "PS_COUNT_SLICE_D", STORED, 0, (2, 4), "V8-181").of(RENDER),
    array(0x22f0, "PS_COUNT_SLICE_E", STORED, 0, (4, 4), "V8-181").of(RENDER),
    array(0x25b0, "PS_COUNT_SLICE_F", STORED, 0, (4, 4), "V8-181").of(RENDER),
    array(0x25d0, "PS_COUNT_SLICE_G", STORED, 0, (4, 4), "V8-181").of(RENDER),
    array(0x2690, "3DPRIM_XP", STORED, 0, (3, 4), "V8-181").of(RENDER),
    register(0x26c0, "DRAW_WATERMARK", STORED, 0, "contract G.5; i915: intel_gt_regs.h"),
    array(0x26d8, "MESH_TASK_COUNTERS", STORED, 0, (8, 4), "V8-181: 0x26d8 .. 0x26f4").of(RENDER),
    array(0x5200, "SO_NUM_PRIMS_WRITTEN", STORED, 0, (8, 4), "V8-181").of(RENDER),
    array(0x5240, "SO_PRIM_STORAGE_NEEDED", STORED, 0, (8, 4), "V8-181").of(RENDER),
    array(0x5280, "SO_WRITE_OFFSET", STORED, 0, (4, 4), "V8-181").of(RENDER),
    register(0x7000, "CACHE_MODE_0", Masked, 0, "V8-181").of(RENDER),
    register(0x7008, "GT_MODE", Masked, 0, "V8-181").of(RENDER),
    array(0x7100, "SC_INSTDONE", ReadOnly, 0xffff_ffff, (3, 4), "xe: xe_guc_capture.c").of(Scope::Common),
    register(0x666c, "XEHPG_INSTDONE_GEOM_SVGUNIT", ReadOnly, 0xffff_ffff, "xe: xe_guc_capture.c").of(Scope::Common),
    register(0xe160, "SAMPLER_INSTDONE", ReadOnly, 0xffff_ffff, "xe: xe_guc_capture.c").of(Scope::Common),
    register(0xe164, "ROW_INSTDONE", ReadOnly, 0xffff_ffff, "xe: xe_guc_capture.c").of(Scope::Common),
    array(0x1c_c000, "SFC_DONE", ReadOnly, 0xffff_ffff, (4, 0x1000), "xe: regs/xe_gt_regs.h"),
    // Second window of the render streamer: the document defines only these two registers. Class and instance are 0.
    array(
        0x1_8358,
        "RING_TIMESTAMP_ALTERNATE",
        Kind::Live(Live::Clock(ClockRegister::RingTimestamp)),
        0,
        (2, 4),
        "V8-006",
    )
    .of(Scope::Common),
    register(0x1_808c, "ENGINE_ID_ALTERNATE", ReadOnly, 0, "V8-006").of(Scope::Common),
];
