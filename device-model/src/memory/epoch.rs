//! Invalidation of what others remember of page tables.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Counts the invalidations that the card has been told of. A TLB that has seen an older count forgets all before its next
/// use, and looks at the count once a step, with its engine's lock held: so who has invalidated, and has had that lock
/// since, knows that nothing old is used any more.
pub struct Epoch(AtomicU64);

impl Epoch {
    /// The first; a TLB that has seen none starts with 0.
    pub fn new() -> Self {
        Epoch(AtomicU64::new(1))
    }

    /// All that is remembered is old.
    pub fn invalidate(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// The present count.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
