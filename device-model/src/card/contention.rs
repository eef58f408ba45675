//! Whether a step that waits for something outside of the card keeps other functions waiting.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use super::Card;
use crate::guc::Guc;
use crate::world::{FUNCTIONS, Function, functions};

/// What threads publish of their waiting.
pub struct Contention {
    /// Threads that wait for the GuC's lock, by the function they work for ([`Function::index`]).
    guc: [AtomicU32; FUNCTIONS],
    /// Threads that wait for it and work for no function.
    guc_outside: AtomicU32,
    /// Functions (a bit each) whose contexts wait for an engine, as of the GuC's last step.
    queued: AtomicU64,
}

impl Contention {
    /// Nothing waits.
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
    /// As a step of the GuC does.
    pub fn set_queued(&self, functions: u64) {
        self.queued.store(functions, Ordering::Release);
    }
}

impl Card {
    /// The GuC's lock, poisoned or not, for work of no function.
    pub(super) fn guc(&self) -> MutexGuard<'_, Guc> {
        self.guc_counted(&self.contention.guc_outside)
    }

    /// The same for work of `function`, which its own steps may keep waiting.
    pub(super) fn guc_for(&self, function: Function) -> MutexGuard<'_, Guc> {
        self.guc_counted(&self.contention.guc[function.index()])
    }

    /// The same for a step of the GuC: what it is for is in [`Card::calls`](super::Calls) until it has the lock.
    pub(super) fn guc_for_calls(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn guc_counted(&self, waiting: &AtomicU32) -> MutexGuard<'_, Guc> {
        if let Ok(guc) = self.guc.try_lock() {
            return guc;
        }
        waiting.fetch_add(1, Ordering::AcqRel);
        let guc = self.guc.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.fetch_sub(1, Ordering::AcqRel);
        guc
    }

    /// The GuC has scheduled.
    pub(super) fn publish_queued(&self, guc: &Guc) {
        let queued = guc.scheduler().map_or(0, |scheduler| scheduler.waiting());
        self.contention.queued.store(queued, Ordering::Release);
    }

    /// Whether another function than `function`, or a reset of one, waits for the GuC or an engine at this moment. For a
    /// step of `function` that waits for an answer of its client: it may go on waiting only while this is false, or for a
    /// bounded time. Takes no lock that it would have to wait for.
    pub fn holds_up_others(&self, function: Function) -> bool {
        let others = !function.bit();
        let Contention { guc, guc_outside, queued } = &self.contention;
        if queued.load(Ordering::Acquire) & others != 0
            || guc_outside.load(Ordering::Acquire) != 0
            || functions(others).any(|other| guc[other.index()].load(Ordering::Acquire) != 0)
            || self.calls.waiting(others)
        {
            return true;
        }
        let now = self.gt.clock.now();
        self.engines.present().any(|id| {
            let due = || self.engines.runnable(id) && self.engines.look_at(id) <= now;
            // An engine that is due and free: every worker is busy with something else.
            self.engines.wanted(id) || due() && self.engines.try_lock(id).is_some()
        })
    }
}
