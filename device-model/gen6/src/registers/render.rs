// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the render engine alone: pipeline modes, statistics, predication, stream output.

use super::Kind::{Masked, ReadOnly, Storage};
use super::{Kind, Live, Register, STORED, Scope, array, register};

/// A row of a register that belongs to contexts.
const fn context(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    register(offset, name, kind, reset, source).of(Scope::Context)
}

/// Consecutive registers that belong to contexts.
const fn contexts(offset: u32, name: &'static str, kind: Kind<Live>, count: u16, source: &'static str) -> Register {
    array(offset, name, kind, 0, count, source).of(Scope::Context)
}

/// A row of a register that a reset of the render domain resets, and contexts do not have.
const fn engine(offset: u32, name: &'static str, kind: Kind<Live>, reset: u32, source: &'static str) -> Register {
    register(offset, name, kind, reset, source).of(Scope::Engine)
}

/// The registers.
pub const TABLE: &[Register] = &[
    context(0x2090, "3D_CHICKEN3", Masked, 0, "G67-100"),
    context(0x20a0, "FF_MODE", STORED, 0x28a0_1010, "IVB-058"),
    context(0x20e4, "FF_SLICE_CS_CHICKEN2", Masked, 0, "G67-100"),
    engine(0x212c, "GAFS_MODE", Masked, 0, "IVB-063"),
    // 105 lines of 64 bytes are the driver's size of a context.
    engine(0x21a8, "CXT_SIZE", STORED, 0x48a7_b8cd, "IVB-101, G67-090"),
    array(0x2290, "GPGPU_THREADS_DISPATCHED", STORED, 0, 2, "IVB-127").of(Scope::Context),
    engine(0x22ac, "RS_STATUS", ReadOnly, 0, "IVB-065"),
    engine(0x22d0, "SYNC_FLIP_STATUS", ReadOnly, 0, "IVB-110"),
    engine(0x22d4, "SYNC_FLIP_STATUS_1", ReadOnly, 0, "IVB-111"),
    contexts(0x2300, "STATISTICS", STORED, 22, "IVB-115"),
    contexts(0x2400, "MI_PREDICATE_SRC0", STORED, 2, "IVB-120"),
    contexts(0x2408, "MI_PREDICATE_SRC1", STORED, 2, "IVB-120"),
    contexts(0x2410, "MI_PREDICATE_DATA", STORED, 2, "IVB-120"),
    context(0x2418, "MI_PREDICATE_RESULT", Storage(1), 0, "IVB-120"),
    context(0x2420, "3DPRIM_END_OFFSET", STORED, 0, "IVB-125"),
    contexts(0x2430, "3DPRIM", STORED, 5, "IVB-125"),
    contexts(0x2500, "GPGPU_DISPATCHDIM", STORED, 3, "IVB-126"),
    contexts(0x5200, "SO_NUM_PRIMS_WRITTEN", STORED, 8, "IVB-117"),
    contexts(0x5240, "SO_PRIM_STORAGE_NEEDED", STORED, 8, "IVB-117"),
    contexts(0x5280, "SO_WRITE_OFFSET", Storage(0xffff_fffc), 4, "IVB-117"),
    context(0x7000, "CACHE_MODE_0", Masked, 4, "IVB-061"),
    context(0x7004, "CACHE_MODE_1", Masked, 0x180, "IVB-062"),
    context(0x7008, "GT_MODE", Masked, 0x200, "IVB-060"),
    context(0x7010, "COMMON_SLICE_CHICKEN1", Masked, 0, "G67-100"),
    context(0x7020, "FBC_RT_BASE", STORED, 0, "IVB-068"),
];
