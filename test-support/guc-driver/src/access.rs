// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a driver accesses.

/// A driver's accesses: registers of its function, by their offsets, and dwords of its memory, by offsets in it.
pub trait Access {
    /// Writes a register.
    fn set(&self, register: u32, value: u32);

    /// Reads a register.
    fn get(&self, register: u32) -> u32;

    /// Writes a dword of memory.
    fn poke(&self, at: u64, value: u32);

    /// Reads a dword of memory.
    fn peek(&self, at: u64) -> u32;

    /// Writes dwords to memory.
    fn write_words(&self, at: u64, words: &[u32]) {
        for (at, word) in (at..).step_by(4).zip(words) {
            self.poke(at, *word);
        }
    }
}
