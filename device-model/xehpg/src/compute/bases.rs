// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What addresses and offsets in messages of a kernel are relative to.

/// Bits of a virtual address. Higher ones are ignored in bases, offsets and sums (EU-006).
pub const ADDRESS: u64 = (1 << 48) - 1;

/// Addresses that messages of a walker's threads are relative to: a copy of the context's state and of the interface
/// descriptor at the start of the walker (EU-010). Addresses have 48 bits; sums with offsets are taken in 64 bits and cut to
/// 48 (EU-006).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bases {
    /// General state base: stateless messages, indirect data (EU-030, EU-040).
    pub general: u64,
    /// Surface state base: entries of binding tables, scratch surfaces (EU-007, EU-041).
    pub surface: u64,
    /// Dynamic state base: samplers by number (EU-081).
    pub dynamic: u64,
    /// Instruction base: code (EU-047).
    pub instruction: u64,
    /// Bindless surface state base.
    pub bindless_surfaces: u64,
    /// Bindless sampler state base.
    pub bindless_samplers: u64,
    /// Address of the walker's binding table: its pool's base, or the surface state base without a pool, and the pointer of
    /// the interface descriptor (EU-007).
    pub binding_table: u64,
    /// Address of the walker's sampler states (EU-081).
    pub samplers: u64,
}
