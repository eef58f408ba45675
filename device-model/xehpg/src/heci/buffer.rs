// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! One direction of a HECI window: a circular buffer of dwords with pointers visible to host and firmware.
#![allow(clippy::indexing_slicing, reason = "slot() is below DEPTH")]

/// Number of slots of a buffer. Pointers are free-running 8-bit counters, so the depth must divide 256.
pub const DEPTH: u8 = 128;

/// A circular buffer of 32-bit slots (xe: mei, hw-me-regs.h: H_CBD, H_CBWP, H_CBRP).
pub struct CircularBuffer {
    slots: [u32; DEPTH as usize],
    /// Number of dwords written, wrapping.
    pub write: u8,
    /// Number of dwords read, wrapping.
    pub read: u8,
}

impl Default for CircularBuffer {
    fn default() -> Self {
        CircularBuffer { slots: [0; DEPTH as usize], write: 0, read: 0 }
    }
}

impl CircularBuffer {
    fn slot(pointer: u8) -> usize {
        usize::from(pointer % DEPTH)
    }

    /// Number of filled slots.
    pub fn filled(&self) -> u8 {
        self.write.wrapping_sub(self.read)
    }

    /// Number of free slots.
    pub fn free(&self) -> u8 {
        DEPTH.saturating_sub(self.filled())
    }

    /// Appends a dword; returns `false` if the buffer is full.
    pub fn push(&mut self, value: u32) -> bool {
        let fits = self.free() > 0;
        if fits {
            self.slots[Self::slot(self.write)] = value;
            self.write = self.write.wrapping_add(1);
        }
        fits
    }

    /// Removes and returns the oldest dword.
    pub fn pop(&mut self) -> Option<u32> {
        let value = self.first()?;
        self.read = self.read.wrapping_add(1);
        Some(value)
    }

    /// Returns the oldest dword without removing it.
    pub fn first(&self) -> Option<u32> {
        (self.filled() > 0).then(|| self.slots[Self::slot(self.read)])
    }

    /// Removes all dwords and sets both pointers to 0.
    pub fn clear(&mut self) {
        (self.write, self.read) = (0, 0);
    }
}
