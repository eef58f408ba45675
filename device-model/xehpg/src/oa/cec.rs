// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Custom event creation: eight blocks that compare 16 signals with a value, and count the clocks in which the comparison
//! holds (V13-255; OA-051). The signals come through the NOA network. Its nodes are in no public source; the signals
//! that are known are the self-test's pattern and the activity of engines ([`network`](super::network); OA-052).

use arctic_base::registers::Bits;
use arctic_sriov::number::low;

/// Number of blocks, and of B counters.
pub const BLOCKS: usize = 8;

/// Length of the self-test's pattern in clocks.
pub const PATTERN: u64 = 6;
/// All clocks of the pattern.
const ALWAYS: u8 = (1 << PATTERN) - 1;

/// The write of NOA_WRITE by which a die's generator of the self-test's pattern is connected.
#[derive(Clone, Copy, Debug)]
pub struct TestPattern {
    /// The die.
    pub die: &'static str,
    /// Node, bits 31:16.
    pub node: u16,
    /// Data, bits 15:0.
    pub data: u16,
}

/// CECn-0: function.
const FUNCTION: Bits = Bits::new(2, 0);
/// CECn-0: value to compare with.
const VALUE: Bits = Bits::new(18, 3);
/// CECn-0: the input.
const INPUT: Bits = Bits::new(20, 19);
/// CECn-1: signals that are ignored.
const IGNORED: Bits = Bits::new(15, 0);
/// CECn-1: signals that are inverted.
const INVERTED: Bits = Bits::new(31, 16);

/// The input that the self-test's pattern reaches.
const PATTERN_INPUT: u32 = 2;

/// The self-test's signals in clock `clock`: bit 3 is the clock modulo 2, bits 5:4 are the clock modulo 3.
#[allow(clippy::arithmetic_side_effects, reason = "small constants")]
fn pattern(clock: u64) -> u32 {
    low((clock % 2) << 3 | (clock % 3) << 4)
}

/// One block: registers CECn-0 and CECn-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// CECn-0.
    pub first: u32,
    /// CECn-1.
    pub second: u32,
}

impl Block {
    /// Returns whether the comparison holds for these signals.
    fn holds(self, signals: u32) -> bool {
        let considered = !IGNORED.get(self.second) & 0xffff;
        let signals = (signals ^ INVERTED.get(self.second)) & considered;
        let value = VALUE.get(self.first) & considered;
        match FUNCTION.get(self.first) {
            // The set GpuBusyness has any busy engine as that with value 0.
            0 if value == 0 => signals != 0,
            0 => !(signals ^ value) & considered != 0,
            1 => signals > value,
            2 => signals == value,
            3 => signals >= value,
            4 => signals < value,
            5 => signals != value,
            6 => signals <= value,
            _ => true,
        }
    }

    /// Returns whether the comparison holds while input 0 has these signals; `None` if it compares another input.
    pub fn finds(self, signals: u32) -> Option<bool> {
        (INPUT.get(self.first) == 0).then(|| self.holds(signals))
    }

    /// Returns the clocks of the pattern in which the comparison holds, one bit each. `connected`: the network is on and
    /// has the self-test's pattern; otherwise all signals are 0.
    pub fn truth(self, connected: bool) -> Truth {
        let reaches = connected && INPUT.get(self.first) == PATTERN_INPUT;
        let holds = |clock: u64| self.holds(if reaches { pattern(clock) } else { 0 });
        Truth((0..PATTERN).fold(0, |truth, clock| truth | u8::from(holds(clock)) << clock))
    }
}

/// The clocks of the pattern in which a block counts, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truth(u8);

impl Truth {
    /// All clocks, or none.
    pub fn constant(counts: bool) -> Self {
        Truth(if counts { ALWAYS } else { 0 })
    }

    /// Number of clocks that count from clock `from` on, up to `clocks` clocks later. Additive: it does not depend on where an
    /// interval is divided.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "at most as many as clocks, of which a 64-bit count does not overflow"
    )]
    pub fn count(self, from: u64, clocks: u64) -> u64 {
        match self.0 {
            0 => 0,
            ALWAYS => clocks,
            _ => self.below(from + clocks) - self.below(from),
        }
    }

    /// Number of clocks that count below `clock`.
    #[allow(clippy::arithmetic_side_effects, reason = "at most `clock`")]
    fn below(self, clock: u64) -> u64 {
        let rest = self.0 & ((1 << (clock % PATTERN)) - 1);
        clock / PATTERN * u64::from(self.0.count_ones()) + u64::from(rest.count_ones())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The set TestOa, and the fraction of the clocks that each counter has.
    const TEST_OA: [(u32, u32, u64, u64); BLOCKS] = [
        (0x4, 0xffff, 0, 1),
        (0x3, 0xffff, 1, 1),
        (0x7, 0xffff, 1, 1),
        (0x10_0002, 0xfff7, 1, 2),
        (0x10_0002, 0xffcf, 1, 3),
        (0x10_0082, 0xffef, 1, 3),
        (0x10_00c2, 0xffe7, 1, 6),
        (0x10_0001, 0xffe7, 2, 3),
    ];

    #[test]
    fn test_oa_has_its_fractions() {
        for (first, second, part, of) in TEST_OA {
            let truth = Block { first, second }.truth(true);
            for from in 0..12 {
                assert_eq!(truth.count(from, 6000), 6000 * part / of);
                for clocks in 0..40 {
                    assert!(truth.count(from, clocks).abs_diff(clocks * part / of) <= 1, "{first:#x}: {clocks}");
                    let split = clocks / 3;
                    let sum = truth.count(from, split) + truth.count(from + split, clocks - split);
                    assert_eq!(truth.count(from, clocks), sum);
                }
            }
        }
    }

    #[test]
    fn without_signals_only_constants_count() {
        let counts = TEST_OA.map(|(first, second, ..)| Block { first, second }.truth(false).count(0, 600));
        assert_eq!(counts, [0, 600, 600, 600, 600, 0, 0, 0]);
    }

    /// Every function, with one signal considered, and inverted.
    #[test]
    fn functions_compare_the_considered_signals() {
        let holds = |function: u32, value: u32, ignored: u32, inverted: u32, signals| {
            Block { first: function | value << 3, second: ignored | inverted << 16 }.holds(signals)
        };
        for (function, less, equal, greater) in [
            (1, false, false, true),
            (2, false, true, false),
            (3, false, true, true),
            (4, true, false, false),
            (5, true, false, true),
            (6, true, true, false),
            (7, true, true, true),
        ] {
            assert_eq!(
                [4, 5, 6].map(|signals| holds(function, 5, 0, 0, signals)),
                [less, equal, greater],
                "{function}"
            );
            assert!(holds(function, 5, 0xffff, 0, 6) == holds(function, 0, 0, 0, 0), "ignored signals are equal");
        }
        assert!(holds(0, 0b01, 0xfffc, 0, 0b11) && !holds(0, 0b01, 0xfffc, 0, 0b10), "any of the considered signals");
        assert!(holds(2, 0b01, 0xfffe, 0b01, 0) && !holds(2, 0b01, 0xfffe, 0b01, 1), "inverted");
    }
}
