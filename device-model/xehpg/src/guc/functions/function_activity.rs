// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Busy time of the engines: of one engine, and of each engine for one function (contract K.6, G.4).

use crate::topology::{EngineId, MAX_ENGINES};

/// Full share of an engine, in the units of the records: the function is not limited.
pub const ALL_OF_IT: u16 = 0x8000;

/// Busy time of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// Tick at which the running context was loaded; `None` while idle.
    pub since: Option<u64>,
    /// Ticks of all contexts that have left the engine.
    pub total: u64,
    /// Change counter, below 0xffff. The record contains the counter plus one, which is never 0.
    pub changes: u16,
}

impl Meter {
    /// Records at `tick` that a context was loaded (`busy`) or that the engine became idle.
    #[allow(clippy::arithmetic_side_effects, reason = "the remainder is below 0xfffe")]
    pub fn switch(&mut self, busy: bool, tick: u64) {
        self.total = self.until(tick);
        self.since = busy.then_some(tick);
        self.changes = self.changes % 0xfffe + 1;
    }

    fn until(&self, tick: u64) -> u64 {
        self.total.saturating_add(self.since.map_or(0, |since| tick.saturating_sub(since)))
    }
}

/// A meter for each engine.
pub type Meters = [Meter; MAX_ENGINES];

/// Activity of one function.
#[derive(Debug)]
pub struct FunctionActivity {
    /// Busy times.
    pub meters: Meters,
    /// Share of engine time, in units of 1/[`ALL_OF_IT`].
    pub part: u16,
}

impl Default for FunctionActivity {
    fn default() -> Self {
        FunctionActivity { meters: Meters::default(), part: ALL_OF_IT }
    }
}

impl FunctionActivity {
    /// Returns the number of ticks for which contexts of the function ran on `engine`, up to `tick`.
    #[allow(clippy::indexing_slicing, reason = "there is a meter for each engine")]
    pub fn busy(&self, engine: EngineId, tick: u64) -> u64 {
        self.meters[engine.index()].until(tick)
    }
}
