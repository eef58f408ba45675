// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reproducible pseudo-random numbers.

/// xorshift64* generator; a seed always gives the same sequence.
pub struct Random(u64);

impl Random {
    /// Returns the generator for a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns an arbitrary value.
    pub fn any(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a value below `n`, which must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.any() >> 16) % n
    }

    /// Returns true with probability 1/`n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns an element of `list`, which must not be empty.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// Returns an arbitrary value, a small value or a boundary value.
    pub fn edge(&mut self) -> u64 {
        const EDGES: [u64; 16] = [
            0,
            1,
            2,
            4,
            8,
            0xfff,
            0x1000,
            0xffff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_f000,
            0xffff_ffff,
            1 << 47,
            1 << 48,
            u64::MAX - 7,
            u64::MAX,
        ];
        match self.below(4) {
            0 => self.any(),
            1 => self.below(64),
            _ => self.of(&EDGES),
        }
    }

    /// Returns the lower half of [`Random::edge`].
    pub fn dword(&mut self) -> u32 {
        self.edge() as u32
    }
}
