// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's lock, and whether a step that waits for a function's client delays other functions.

use arctic_base::priority_mutex::PriorityMutex;

use super::Card;
use super::contention::Contention;
use crate::gt::Gt;
use crate::guc::Guc;
use crate::host::Function;
use crate::sync::MutexGuard;
use crate::topology::UnitId;
use crate::units::{HeldUnit, StepLock, Unit};

/// The GuC with its lock, and who waits for it.
pub(super) struct GucUnit {
    guc: PriorityMutex<Guc>,
    pub(super) contention: Contention,
}

impl GucUnit {
    pub(super) fn new(guc: Guc) -> Self {
        GucUnit { guc: PriorityMutex::new(guc), contention: Contention::new() }
    }

    /// Takes the lock, poisoned or not, for work on behalf of a function, or of the card.
    pub(super) fn lock_for(&self, waiting: Option<Function>) -> MutexGuard<'_, Guc> {
        self.contention.lock_guc(&self.guc, waiting)
    }

    /// Takes the lock if it is free and nobody waits for it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Guc>> {
        self.guc.try_lock()
    }

    /// Takes the lock for a step, after the threads that wait for it now. Until the lock is acquired, the functions that
    /// the step serves are recorded in [`GucPending`](super::GucPending).
    pub(super) fn lock_for_step(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock_after_others()
    }

    /// Ends the state after a panic in a step: the GuC was reset.
    pub(super) fn clear_poison(&self) {
        self.guc.clear_poison();
    }

    /// Publishes the functions with waiting contexts, after the GuC has scheduled or was reset.
    pub(super) fn publish_queued(&self, guc: &Guc) {
        let queued = guc.scheduler().map_or(0, |scheduler| scheduler.waiting());
        self.contention.set_queued(queued);
    }
}

impl StepLock for GucUnit {
    fn end_step(&self, waiting: Option<Function>) {
        drop(self.lock_for(waiting));
    }

    fn end_step_soon(&self) -> bool {
        self.guc.end_step_soon()
    }

    fn delays_others(&self, function: Function) -> bool {
        self.contention.delays_any_of(!function.bit())
    }

    fn is_poisoned(&self) -> bool {
        self.guc.is_poisoned()
    }
}

impl Unit for GucUnit {
    fn id(&self) -> UnitId {
        UnitId::Guc
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(self)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldGuc { guc: self.lock_for(None), unit: self }))
    }
}

struct HeldGuc<'g> {
    guc: MutexGuard<'g, Guc>,
    unit: &'g GucUnit,
}

impl HeldUnit for HeldGuc<'_> {
    fn reset(&mut self, gt: &Gt) {
        self.guc.reset(gt);
        self.unit.publish_queued(&self.guc);
    }
}

impl Card {
    /// Takes the GuC's lock, poisoned or not, for work on behalf of the card.
    pub(crate) fn guc(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock_for(None)
    }

    /// Takes the GuC's lock for work on behalf of `function`; a step of the same function may delay it.
    pub(crate) fn guc_for(&self, function: Function) -> MutexGuard<'_, Guc> {
        self.guc.lock_for(Some(function))
    }

    /// Blocks until every step in progress has ended. The caller acts for `waiting`, or for the card.
    pub(super) fn end_steps(&self, waiting: Option<Function>) {
        self.unit_locks().for_each(|lock| lock.end_step(waiting));
    }

    /// As [`Card::end_steps`], but gives up after milliseconds for each step. Returns whether every step has ended. A caller
    /// for which a step may wait must use this: deadlock.
    pub(super) fn end_steps_soon(&self) -> bool {
        self.unit_locks().all(StepLock::end_step_soon)
    }

    /// The locks of all units.
    pub(super) fn unit_locks(&self) -> impl Iterator<Item = &dyn StepLock> {
        self.units.iter().filter_map(|unit| unit.lock())
    }
}
