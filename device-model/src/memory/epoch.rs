// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Invalidation of cached page table entries.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Counts TLB invalidations. A TLB that has last seen an older count flushes before its next use. It reads the count
/// once per step, with its engine's lock held. Ordering: after a thread has invalidated and then acquired an engine's
/// lock, that engine no longer uses old translations.
pub struct Epoch(AtomicU64);

impl Epoch {
    /// Returns the initial count, 1; a new TLB starts with 0.
    pub fn new() -> Self {
        Epoch(AtomicU64::new(1))
    }

    /// Invalidates all cached translations.
    pub fn invalidate(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// The current count.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
