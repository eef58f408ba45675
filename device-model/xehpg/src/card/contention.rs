// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counts of the threads and contexts that a step may delay.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::guc::Guc;
use crate::host::{FUNCTIONS, Function, functions};
use crate::sync::IgnorePoison;

/// Waiting threads, and functions with waiting contexts.
pub struct Contention {
    /// Number of threads that wait for the GuC's lock, by the function on whose behalf they run ([`Function::index`]).
    guc: [AtomicU32; FUNCTIONS],
    /// Number of threads that wait for the GuC's lock on behalf of no function.
    guc_outside: AtomicU32,
    /// Functions (one bit each) with contexts that wait for an engine, as of the GuC's last step.
    queued: AtomicU64,
}

impl Contention {
    /// No thread and no context waits.
    pub fn new() -> Self {
        Contention {
            guc: std::array::from_fn(|_| AtomicU32::new(0)),
            guc_outside: AtomicU32::new(0),
            queued: AtomicU64::new(0),
        }
    }
}

impl Contention {
    /// Acquires the GuC's lock, poisoned or not. While the caller waits, it counts as a thread on behalf of `function`,
    /// or of no function.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn wait_for_guc<'g>(&self, guc: &'g Mutex<Guc>, function: Option<Function>) -> MutexGuard<'g, Guc> {
        if let Ok(guc) = guc.try_lock() {
            return guc;
        }
        let waiting = function.map_or(&self.guc_outside, |function| &self.guc[function.index()]);
        waiting.fetch_add(1, Ordering::AcqRel);
        let guc = guc.lock().ignore_poison();
        waiting.fetch_sub(1, Ordering::AcqRel);
        guc
    }

    /// Records the functions (one bit each) with contexts that wait for an engine.
    pub fn set_queued(&self, functions: u64) {
        self.queued.store(functions, Ordering::Release);
    }

    /// Returns whether a thread waits for the GuC on behalf of no function or of one in `others` (one bit each), or one
    /// of these has a context that waits for an engine.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn concerns(&self, others: u64) -> bool {
        self.queued.load(Ordering::Acquire) & others != 0
            || self.guc_outside.load(Ordering::Acquire) != 0
            || functions(others).any(|other| self.guc[other.index()].load(Ordering::Acquire) != 0)
    }
}
