// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fence registers: tiled ranges of the aperture (G67-062). They have no effect yet: the aperture is linear, and accesses
//! to a tiled range are reported.

use super::Kind::Storage;
use super::{Bits, Register, array};

/// Offset of the first fence. Each has two dwords.
pub const FENCES: u32 = 0x10_0000;
/// Size of a fence register in bytes.
pub const FENCE_BYTES: u32 = 8;
/// Low dword: the fence is valid.
pub const FENCE_VALID: Bits = Bits::bit(0);
/// Low dword: first page; high dword: last page, inclusive.
pub const FENCE_PAGE: Bits = Bits::new(31, 12);

/// 32 fences, with pitches of 11 bits.
pub const IVY_BRIDGE: &[Register] = &[
    Register { stride: FENCE_BYTES, ..array(FENCES, "FENCE", Storage(0xffff_f003), 0, 32, "G67-062") },
    Register { stride: FENCE_BYTES, ..array(FENCES + 4, "FENCE_UDW", Storage(0xffff_f7ff), 0, 32, "G67-062") },
];
