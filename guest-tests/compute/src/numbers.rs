// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Numbers that look random and are the same in each run (SplitMix64).

/// A generator.
pub struct Numbers(u64);

impl Numbers {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// The next 32 bits.
    #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
    pub fn word(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// An integer of `range`.
    #[allow(clippy::cast_possible_truncation, reason = "the range has 32 bits")]
    pub fn within(&mut self, range: std::ops::Range<i32>) -> i32 {
        let count = i64::from(range.end) - i64::from(range.start);
        (i64::from(range.start) + i64::from(self.word()) % count) as i32
    }

    /// A float of `range` with few bits of fraction, so that sums of few of them are exact.
    #[allow(clippy::cast_precision_loss, reason = "the integers are small")]
    pub fn float(&mut self, range: std::ops::Range<i32>) -> f32 {
        self.within(range.start * 16..range.end * 16) as f32 / 16.0
    }

    /// `count` values that `next` makes.
    pub fn list<T>(&mut self, count: usize, mut next: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..count).map(|_| next(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_repeatable_and_within_their_range() {
        assert_eq!(Numbers::new(1).bits(), Numbers::new(1).bits());
        assert_ne!(Numbers::new(1).bits(), Numbers::new(2).bits());
        let mut numbers = Numbers::new(3);
        for _ in 0..1000 {
            assert!((-5..7).contains(&numbers.within(-5..7)));
            let float = numbers.float(-2..2);
            assert!((-2.0..2.0).contains(&float) && (float * 16.0).fract() == 0.0);
        }
        // SplitMix64's first output for the seed 0.
        assert_eq!(Numbers::new(0).bits(), 0xe220_a839_7b1d_cdaf);
    }
}
