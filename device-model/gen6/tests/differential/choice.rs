// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reproducible choices of the grammar.

/// A stream of choices: xorshift64*.
pub struct Choice(u64);

impl Choice {
    /// Returns the sequence of choices for a seed.
    pub fn new(seed: u64) -> Self {
        Choice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns an arbitrary dword.
    pub fn dword(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// Returns a value below `n`, which must not be 0.
    pub fn below(&mut self, n: u32) -> u32 {
        (u64::from(self.dword()) * u64::from(n) >> 32) as u32
    }

    /// Returns true with probability 1/`n`.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// Returns an element of a list.
pub fn of<T: Copy>(choice: &mut Choice, list: &[T]) -> T {
    list[choice.below(list.len() as u32) as usize]
}
