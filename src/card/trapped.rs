// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of one function's trapped accesses, which its VMM cannot serve from a mapping.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::TrappedCounts;

/// The counters.
pub struct Trapped {
    config: AtomicU64,
    /// Names of the kinds of BAR accesses, with a counter each.
    kinds: Vec<(&'static str, AtomicU64)>,
}

impl Trapped {
    /// Counters with these kinds of BAR accesses.
    pub fn new(kinds: &[&'static str]) -> Self {
        let kinds = kinds.iter().map(|name| (*name, AtomicU64::new(0))).collect();
        Trapped { config: AtomicU64::new(0), kinds }
    }

    /// Counts an access to configuration space.
    pub fn count_config(&self) {
        self.config.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a BAR access of a kind, by its index.
    pub fn count(&self, kind: Option<usize>) {
        if let Some((_, counter)) = kind.and_then(|kind| self.kinds.get(kind)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The current counts.
    pub fn counts(&self) -> TrappedCounts {
        let kinds = self.kinds.iter().map(|(name, counter)| ((*name).to_owned(), counter.load(Ordering::Relaxed)));
        TrappedCounts::new(self.config.load(Ordering::Relaxed), kinds)
    }
}
