// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Values of counters, as reports have them.

use super::cec::BLOCKS;

/// Number of A counters.
pub const A_COUNTERS: usize = 38;

/// Bits of an A counter.
const A_BITS: u64 = 0xff_ffff_ffff;

/// Values of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub(super) a: [u64; A_COUNTERS],
    /// B counters.
    pub b: [u64; BLOCKS],
    /// C counters.
    pub c: [u64; BLOCKS],
}

impl Default for Values {
    fn default() -> Self {
        Values { a: [0; A_COUNTERS], b: [0; BLOCKS], c: [0; BLOCKS] }
    }
}

impl Values {
    /// A counters from `first` on, of 40 bits.
    pub fn a(&self, first: u8, count: u8) -> impl Iterator<Item = u64> {
        self.a.iter().skip(first.into()).take(count.into()).map(|value| value & A_BITS)
    }

    /// Adds to an A counter.
    pub fn add(&mut self, counter: usize, amount: u64) {
        if let Some(value) = self.a.get_mut(counter) {
            *value = value.wrapping_add(amount);
        }
    }

    /// Sets the first `a` A counters, the B and the C counters, from as many values as there are.
    pub fn set_all(&mut self, values: &mut impl Iterator<Item = u64>, a: usize) {
        let all = self.a.iter_mut().take(a).chain(&mut self.b).chain(&mut self.c);
        all.zip(values).for_each(|(value, new)| *value = new);
    }

    /// Sets a dword of an A counter: bits 31:0, or 39:32.
    pub fn set_dword(&mut self, counter: usize, upper: bool, dword: u32) {
        if let Some(value) = self.a.get_mut(counter) {
            let (shift, other) = if upper { (32, *value & 0xffff_ffff) } else { (0, *value & !0xffff_ffff) };
            *value = (other | u64::from(dword) << shift) & A_BITS;
        }
    }
}
