// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of one function's trapped accesses, which its VMM cannot serve from a mapping.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Name of the accesses to configuration space.
const CONFIG: &str = "config";

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
        let kinds = self.kinds.iter().map(|(name, counter)| (*name, counter));
        let count = |(name, counter): (&str, &AtomicU64)| (name.to_owned(), counter.load(Ordering::Relaxed));
        TrappedCounts(kinds.chain([(CONFIG, &self.config)]).map(count).collect())
    }
}

/// A snapshot of the counters of one function's trapped accesses, by kind: `config`, and those that the card's family
/// distinguishes. For a Flex card: `register_reads`, `register_writes`, `doorbells`, `ggtt`, `local_memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrappedCounts(BTreeMap<String, u64>);

impl TrappedCounts {
    /// The counts with their names, by name.
    pub fn named(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// The count with this name; 0 if the card has no such kind.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Accesses to configuration space.
    pub fn config(&self) -> u64 {
        self.of(CONFIG)
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}
