// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which functions wait for the GuC's lock or for an engine.
//!
//! The answer is advisory: it is not atomic, and may lag behind by a lock operation or until the GuC's next step. So the atomics
//! are relaxed, and a caller whose wait depends on it must poll it.

use arctic_base::priority_mutex::PriorityMutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::guc::Guc;
use crate::host::{FUNCTIONS, Function, functions};
use crate::sync::MutexGuard;

/// Threads that wait for the GuC's lock, and functions with contexts that wait for an engine.
pub struct Contention {
    /// Number of threads that wait for the GuC's lock, by the function on whose behalf they run ([`Function::index`]).
    guc_waiters: [AtomicU32; FUNCTIONS],
    /// Number of threads that wait for the GuC's lock on behalf of the card.
    guc_waiters_of_card: AtomicU32,
    /// Functions (one bit each) with contexts that wait for an engine, as of the GuC's last step or reset.
    queued: AtomicU64,
}

impl Contention {
    /// No thread and no context waits.
    pub fn new() -> Self {
        Contention {
            guc_waiters: std::array::from_fn(|_| AtomicU32::new(0)),
            guc_waiters_of_card: AtomicU32::new(0),
            queued: AtomicU64::new(0),
        }
    }

    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    fn waiters(&self, function: Option<Function>) -> &AtomicU32 {
        function.map_or(&self.guc_waiters_of_card, |function| &self.guc_waiters[function.index()])
    }

    /// Acquires the GuC's lock, poisoned or not. While the caller waits, it counts as a thread on behalf of `function`,
    /// or of the card. Not for GuC steps, which give way to these threads and do not count.
    pub fn lock_guc<'g>(&self, guc: &'g PriorityMutex<Guc>, function: Option<Function>) -> MutexGuard<'g, Guc> {
        if let Some(guc) = guc.try_lock() {
            return guc;
        }
        let waiters = self.waiters(function);
        waiters.fetch_add(1, Ordering::Relaxed);
        let guc = guc.lock();
        waiters.fetch_sub(1, Ordering::Relaxed);
        guc
    }

    /// Records the functions (one bit each) with contexts that wait for an engine.
    pub fn set_queued(&self, functions: u64) {
        self.queued.store(functions, Ordering::Relaxed);
    }

    /// Returns whether a thread waits for the GuC's lock on behalf of the card or of one of `functions` (one bit each; bits
    /// of functions that do not exist are ignored), or one of these has a context that waits for an engine.
    pub fn delays_any_of(&self, wanted: u64) -> bool {
        let waits = |function| self.waiters(function).load(Ordering::Relaxed) != 0;
        self.queued.load(Ordering::Relaxed) & wanted != 0
            || waits(None)
            || functions(wanted).any(|function| waits(Some(function)))
    }
}
