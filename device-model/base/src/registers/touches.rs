// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counts of accesses by offset.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;

use crate::sync::IgnorePoison;

/// Access counts of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touches {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
}

/// Maximum number of offsets that are counted separately; accesses to further offsets are counted together.
const MOST_TOUCHED: usize = 4096;

/// Access counts by offset. The number of entries is bounded, regardless of guest accesses.
#[derive(Default)]
pub struct Touched(Mutex<BTreeMap<u32, Touches>>);

impl Touched {
    /// Counts an access to `offset`.
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    pub fn note(&self, offset: u32, write: bool) {
        let mut map = self.0.lock().ignore_poison();
        let key = if map.len() < MOST_TOUCHED || map.contains_key(&offset) { offset } else { u32::MAX };
        let touches = map.entry(key).or_default();
        if write { touches.writes += 1 } else { touches.reads += 1 }
    }

    /// The counts so far. The entry `u32::MAX` counts the offsets beyond the limit of the list.
    pub fn list(&self) -> BTreeMap<u32, Touches> {
        self.0.lock().ignore_poison().clone()
    }
}
