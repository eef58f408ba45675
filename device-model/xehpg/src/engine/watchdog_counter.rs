// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The counter of an engine's watchdog while it is running (V8-165, V8-167).

use arctic_sriov::number::low;

/// Number of counter values.
pub(super) const MODULUS: u64 = 1 << 32;

/// A running counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watchdog {
    /// Value at the last check.
    pub count: u32,
    /// Time of the last check, in ns of engine time.
    pub seen: u64,
    /// Fraction of a GPU clock at the last check, in 1/1000.
    pub part: u64,
}

impl Watchdog {
    /// Advances the counter by `clocks`. Returns true if it reached the threshold, at which it restarts from 0. The
    /// counter is compared after each increment, so threshold 0 and a threshold at or below the current value are
    /// reached only after the counter wraps.
    #[allow(clippy::arithmetic_side_effects, reason = "the period is not 0, which is matched before")]
    pub fn count(&mut self, clocks: u64, threshold: u32) -> bool {
        let distance = self.distance(threshold);
        let reached = clocks >= distance;
        self.count = match (clocks.checked_sub(distance), u64::from(threshold)) {
            (None, _) => self.count.wrapping_add(low(clocks)),
            (Some(behind), 0) => low(behind),
            (Some(behind), period) => low(behind % period),
        };
        reached
    }

    /// Returns the number of clocks until the threshold is reached.
    pub fn distance(&self, threshold: u32) -> u64 {
        match threshold.wrapping_sub(self.count) {
            0 => MODULUS,
            clocks => u64::from(clocks),
        }
    }
}
