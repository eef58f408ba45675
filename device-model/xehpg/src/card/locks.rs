// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's lock, and whether a step that waits for a function's client delays other functions.

use super::Card;
use crate::engine::SOON;
use crate::guc::Guc;
use crate::host::Function;
use crate::sync::MutexGuard;

impl Card {
    /// Takes the GuC's lock, poisoned or not, for work on behalf of the card.
    pub(super) fn guc(&self) -> MutexGuard<'_, Guc> {
        self.contention.lock_guc(&self.guc, None)
    }

    /// Takes the GuC's lock for work on behalf of `function`; a step of the same function may delay it.
    pub(super) fn guc_for(&self, function: Function) -> MutexGuard<'_, Guc> {
        self.contention.lock_guc(&self.guc, Some(function))
    }

    /// Takes the GuC's lock for a GuC step, after the threads that wait for it now. Until the lock is acquired, the functions
    /// that the step serves are recorded in [`GucPending`](super::GucPending).
    pub(super) fn guc_for_calls(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock_after_others()
    }

    /// Returns whether the GuC's lock becomes free within some milliseconds; a GuC step that was in progress has then ended.
    /// The lock is not held on return.
    pub(super) fn guc_becomes_free(&self) -> bool {
        self.guc.lock_soon(SOON).is_some()
    }

    /// Publishes the functions with waiting contexts, after the GuC has scheduled or was reset.
    pub(super) fn publish_queued(&self, guc: &Guc) {
        let queued = guc.scheduler().map_or(0, |scheduler| scheduler.waiting());
        self.contention.set_queued(queued);
    }
}
