// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Detects whether a step that waits for a function's client delays other functions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{MutexGuard, TryLockError};

use super::Card;
use crate::guc::Guc;
use crate::host::{FUNCTIONS, Function, functions};
use crate::sync::IgnorePoison;

/// Attempts to take the GuC's lock for a caller that must not wait without a limit. Each takes about a microsecond.
const SOON: u32 = 4096;

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

#[cfg(test)]
impl Contention {
    /// Sets `queued` as a GuC step does.
    pub fn set_queued(&self, functions: u64) {
        self.queued.store(functions, Ordering::Release);
    }
}

impl Card {
    /// Takes the GuC's lock, poisoned or not, for work on behalf of no function.
    pub(super) fn guc(&self) -> MutexGuard<'_, Guc> {
        self.guc_counted(&self.contention.guc_outside)
    }

    /// Takes the GuC's lock for work on behalf of `function`; a step of the same function may delay it.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub(super) fn guc_for(&self, function: Function) -> MutexGuard<'_, Guc> {
        self.guc_counted(&self.contention.guc[function.index()])
    }

    /// Takes the GuC's lock for a GuC step. Until the lock is acquired, the functions that the step serves are recorded
    /// in [`GucPending`](super::GucPending).
    pub(super) fn guc_for_calls(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock().ignore_poison()
    }

    /// Takes the GuC's lock if it becomes free within some milliseconds. Returns whether it did; a GuC step that was in
    /// progress has then ended.
    pub(super) fn try_guc_soon(&self) -> bool {
        (0..SOON).any(|_| {
            let free = !matches!(self.guc.try_lock(), Err(TryLockError::WouldBlock));
            if !free {
                std::thread::yield_now();
            }
            free
        })
    }

    fn guc_counted(&self, waiting: &AtomicU32) -> MutexGuard<'_, Guc> {
        if let Ok(guc) = self.guc.try_lock() {
            return guc;
        }
        waiting.fetch_add(1, Ordering::AcqRel);
        let guc = self.guc.lock().ignore_poison();
        waiting.fetch_sub(1, Ordering::AcqRel);
        guc
    }

    /// Publishes the functions with waiting contexts, after the GuC has scheduled.
    pub(super) fn publish_queued(&self, guc: &Guc) {
        let queued = guc.scheduler().map_or(0, |scheduler| scheduler.waiting());
        self.contention.queued.store(queued, Ordering::Release);
    }

    /// Returns whether a function other than `function`, or a reset of one, currently waits for the GuC or an engine. A
    /// step of `function` that waits for a response from its client may wait without a timeout only while this returns
    /// false. Does not block on a lock.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn holds_up_others(&self, function: Function) -> bool {
        let others = !function.bit();
        let Contention { guc, guc_outside, queued } = &self.contention;
        if queued.load(Ordering::Acquire) & others != 0
            || guc_outside.load(Ordering::Acquire) != 0
            || functions(others).any(|other| guc[other.index()].load(Ordering::Acquire) != 0)
            || self.guc_pending.waiting(others)
        {
            return true;
        }
        let now = self.gt.clock.now();
        self.engines.present().any(|id| {
            let due = || self.engines.runnable(id) && self.engines.next_poll(id) <= now;
            // If an engine is due and not locked, no worker is available for it.
            self.engines.wanted(id) || due() && self.engines.try_lock(id).is_some()
        })
    }
}
