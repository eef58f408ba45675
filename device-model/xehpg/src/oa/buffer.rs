// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The OA buffer: a ring in the GGTT with a tail that the card moves and a head that the driver moves (OA-020..024).

use crate::registers::observation::{OaBuffer, OaDebug};

/// Size with size field 0, in bytes.
const SMALLEST: u32 = 128 << 10;

/// The buffer as the registers describe it. Pointers are GGTT addresses; those outside the buffer count modulo its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// GGTT address of the first byte, a multiple of 64. Nothing more is known of it.
    pub base: u32,
    /// Size in bytes, a power of two.
    pub size: u32,
    /// The buffer is in the GGTT. Otherwise nothing is written.
    pub global: bool,
    /// Reports that would overwrite others are dropped.
    pub keeps: bool,
}

impl Buffer {
    /// The buffer of these registers.
    pub fn of(buffer: OaBuffer, debug: OaDebug) -> Self {
        let eightfold = if debug.large_buffer() { 3 } else { 0 };
        Buffer {
            base: u32::from(buffer) & !0x3f,
            size: SMALLEST << buffer.size() << eightfold,
            global: buffer.global(),
            keeps: buffer.disable_overrun(),
        }
    }

    /// Offset of a pointer in the buffer.
    pub fn offset(&self, pointer: u32) -> u32 {
        pointer.wrapping_sub(self.base) & self.size.wrapping_sub(1)
    }

    /// The pointer to an offset. It may lie beyond the end of the GGTT: then it is not in the register's 32 bits.
    pub fn address(&self, offset: u32) -> u64 {
        u64::from(self.base).saturating_add(offset.into())
    }

    /// The offset that is `bytes` after `offset`.
    pub fn after(&self, offset: u32, bytes: u32) -> u32 {
        offset.wrapping_add(bytes) & self.size.wrapping_sub(1)
    }

    /// Returns whether at least half of the buffer is between `head` and `tail`: offsets.
    pub fn half_full(&self, head: u32, tail: u32) -> bool {
        tail.wrapping_sub(head) & self.size.wrapping_sub(1) >= self.size / 2
    }

    /// Returns whether a report of `bytes` at `tail` would make the tail reach or pass `head`: offsets.
    pub fn overflows(&self, head: u32, tail: u32, bytes: u32) -> bool {
        let used = tail.wrapping_sub(head) & self.size.wrapping_sub(1);
        used.saturating_add(bytes) >= self.size
    }
}
