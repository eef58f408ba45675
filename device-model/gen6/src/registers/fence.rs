// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fence registers: tiled regions of the aperture (ILK-058, G67-062).

use super::Kind::Storage;
use super::{Bits, Register, Scope, array};

/// Offset of the first fence. Each has two dwords.
pub const FENCES: u32 = 0x10_0000;
/// Size of a fence register in bytes.
pub const FENCE_BYTES: u32 = 8;
/// Low dword: the fence is valid.
pub const FENCE_VALID: Bits = Bits::bit(0);
/// Low dword: first page; high dword: last page, inclusive.
pub const FENCE_PAGE: Bits = Bits::new(31, 12);
/// Low dword: the tiles are Y tiles, not X tiles.
pub const FENCE_WALK_Y: Bits = Bits::bit(1);
/// High dword: the pitch, minus 1. A generation with a narrower field does not store the other bits.
pub const FENCE_PITCH: Bits = Bits::new(10, 0);
/// Unit of the pitch in bytes.
pub const PITCH_UNIT: u32 = 128;

/// Rows for a dword of `count` fences.
const fn fences(offset: u32, name: &'static str, stored: u32, count: u16, source: &'static str) -> Register {
    let row = array(offset, name, Storage(stored), 0, count, source);
    Register { stride: FENCE_BYTES, scope: Scope::Aperture, ..row }
}

/// 16 fences, with pitches of 10 bits.
pub const SANDY_BRIDGE: &[Register] = &[
    fences(FENCES, "FENCE", 0xffff_f003, 16, "ILK-058, G67-062"),
    fences(FENCES + 4, "FENCE_UDW", 0xffff_f3ff, 16, "ILK-058, G67-062"),
];

/// 32 fences, with pitches of 11 bits.
pub const IVY_BRIDGE: &[Register] =
    &[fences(FENCES, "FENCE", 0xffff_f003, 32, "G67-062"), fences(FENCES + 4, "FENCE_UDW", 0xffff_f7ff, 32, "G67-062")];
