// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Source of the grammar's choices: a seeded generator, or a fuzzer's input bytes.

use crate::bytes::Bytes;

/// A stream of choices.
pub trait Choice {
    /// Returns an arbitrary dword.
    fn dword(&mut self) -> u32;

    /// Returns a value below `n`, which must not be 0.
    fn below(&mut self, n: u32) -> u32;

    /// Returns whether input is left. Choices after the end of the input are 0.
    fn more(&self) -> bool;

    /// Returns true with probability 1/`n`.
    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == n - 1
    }
}

/// Returns an element of a list.
pub fn of<T: Copy>(choice: &mut dyn Choice, list: &[T]) -> T {
    list[choice.below(list.len() as u32) as usize]
}

impl Choice for Bytes<'_> {
    fn dword(&mut self) -> u32 {
        Bytes::dword(self)
    }

    fn below(&mut self, n: u32) -> u32 {
        Bytes::below(self, n)
    }

    fn more(&self) -> bool {
        Bytes::more(self)
    }
}

/// Reproducible choices: xorshift64*.
pub struct Seeded(u64);

impl Seeded {
    /// Returns the sequence of choices for a seed.
    pub fn new(seed: u64) -> Self {
        Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
}

impl Choice for Seeded {
    fn dword(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        (u64::from(self.dword()) * u64::from(n) >> 32) as u32
    }

    fn more(&self) -> bool {
        true
    }
}
