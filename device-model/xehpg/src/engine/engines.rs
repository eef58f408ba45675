// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! All engines of the card: their locks, when each is stepped next, and reports of steps to the GuC.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, TryLockError};

use arctic_base::priority_mutex::{PriorityGuard, PriorityMutex};
use arctic_base::wakeup::{EngineWakeup, MemoryGeneration};

use super::skipped::SkippedCommand;
use super::{Engine, Load, Outcome};
use crate::command::Origin;
use crate::generation::Generation;
use crate::gt::Gt;
use crate::host::Function;
use crate::sync::{IgnorePoison, MutexGuard};
use crate::topology::{EngineId, UnitId};
use crate::units::{HeldUnit, StepLock, Unit};

/// Report to the GuC after a step of a context that the GuC has submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineReport {
    /// The engine.
    pub engine: EngineId,
    /// The context that ran, with its function.
    pub load: Load,
    /// `Waiting`, `Spinning`, `Complete`, `Preempted` or `Halted`; `More` only to report a skipped command.
    pub outcome: Outcome,
    /// The first command of the load that was skipped in a batch of user space, in the report of its step.
    pub skipped: Option<SkippedCommand>,
}

/// All engines of the card, each with a separate lock. Lock order: GuC before engine.
pub struct Engines {
    generation: &'static Generation,
    slots: Vec<Arc<EngineUnit>>,
    changes: MemoryGeneration,
    reports: Mutex<Vec<EngineReport>>,
}

/// An engine with its lock, and when it is stepped next.
pub struct EngineUnit {
    id: EngineId,
    engine: PriorityMutex<Engine>,
    present: bool,
    wakeup: EngineWakeup,
    /// Held by the thread that steps the members of a parallel context of which this engine runs the first.
    members: Mutex<()>,
}

impl EngineUnit {
    /// The engine's identity.
    pub fn engine(&self) -> EngineId {
        self.id
    }
}

impl Unit for EngineUnit {
    fn id(&self) -> UnitId {
        self.id.into()
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(&self.engine)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldEngine { engine: self.engine.hold(), wakeup: &self.wakeup }))
    }
}

struct HeldEngine<'e> {
    engine: PriorityGuard<'e, Engine>,
    wakeup: &'e EngineWakeup,
}

impl HeldUnit for HeldEngine<'_> {
    fn reset(&mut self, gt: &Gt) {
        self.engine.reset(gt);
        self.wakeup.set_runnable(false);
    }
}

impl Engines {
    /// Creates all engines of `generation`. Engines for which `present` returns false are fused off and never run.
    pub fn new(generation: &'static Generation, present: impl Fn(EngineId) -> bool) -> Self {
        let slot = |id| EngineUnit {
            id,
            engine: PriorityMutex::new(Engine::new(generation, id)),
            present: present(id),
            wakeup: EngineWakeup::new(),
            members: Mutex::default(),
        };
        Engines {
            generation,
            slots: generation.engines.all().map(|id| Arc::new(slot(id))).collect(),
            changes: MemoryGeneration::new(),
            reports: Mutex::default(),
        }
    }

    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    fn slot(&self, id: EngineId) -> &EngineUnit {
        &self.slots[id.index()]
    }

    /// Returns the engines that are not fused off.
    pub fn present(&self) -> impl Iterator<Item = EngineId> {
        self.generation.engines.all().filter(|id| self.slot(*id).present)
    }

    /// The engines that are not fused off, as units of the card, by index.
    pub fn units(&self) -> impl Iterator<Item = Arc<EngineUnit>> {
        self.slots.iter().filter(|slot| slot.present).cloned()
    }

    /// Returns whether the engine is not fused off.
    pub fn has(&self, id: EngineId) -> bool {
        self.slot(id).present
    }

    /// Locks an engine. Blocks for at most one step: workers lock engines with [`Engines::try_lock`], which fails while
    /// another thread waits in this function.
    pub fn lock(&self, id: EngineId) -> MutexGuard<'_, Engine> {
        self.slot(id).engine.lock()
    }

    /// Unloads the context of an engine without saving it, after a step has panicked. Returns `None` if no step has
    /// panicked or no context was loaded.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn abandon(&self, id: EngineId, gt: &Gt) -> Option<Load> {
        let lock = &self.slot(id).engine;
        if !lock.is_poisoned() {
            return None;
        }
        let mut engine = lock.lock();
        lock.clear_poison();
        self.set_runnable(id, false);
        gt.stop_context_clock(id, gt.timestamp());
        engine.tlb.flush();
        engine.execlist.reset();
        let running = engine.running.take();
        engine.show_status(gt);
        let load = running?.load;
        engine.scrub_context_registers(gt, load.function);
        Some(load)
    }

    /// Returns whether a thread waits in [`Engines::lock`] or [`Unit::hold`], or holds the engine through
    /// [`Unit::hold`].
    pub fn wanted(&self, id: EngineId) -> bool {
        self.slot(id).engine.wanted()
    }

    /// Locks an engine. Returns `None` if another thread holds its lock or waits for it.
    pub fn try_lock(&self, id: EngineId) -> Option<MutexGuard<'_, Engine>> {
        self.slot(id).engine.try_lock()
    }

    /// Claims the steps of a parallel context whose members run on `members` (one bit each, [`Load::members`]). Returns
    /// `None` if another thread has claimed them. Lock order: before the engines' locks.
    pub fn try_lock_members(&self, members: u32) -> Option<std::sync::MutexGuard<'_, ()>> {
        let first = self.generation.engines.all().find(|id| members & id.bit() != 0)?;
        match self.slot(first).members.try_lock() {
            Ok(guard) => Some(guard),
            // A step has panicked; the lock protects no data.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Sets whether the engine is runnable. The caller must hold the engine's lock.
    pub fn set_runnable(&self, id: EngineId, runnable: bool) {
        self.slot(id).wakeup.set_runnable(runnable);
    }

    /// Returns the memory generation, which counts possible memory changes. Must be read before a step that may be
    /// followed by [`Engines::back_off`].
    pub fn changes(&self) -> u64 {
        self.changes.count()
    }

    /// Notes that the engine's last step ended in a wait of the command at address `at`.
    pub fn wait_at(&self, id: EngineId, now: u64, at: u64) {
        self.slot(id).wakeup.wait_at(now, at);
    }

    /// Defers the next step of a waiting engine, the longer the wait lasts. Does not defer it if the memory generation
    /// is no longer `seen`. Returns true for the first deferral of a wait.
    pub fn back_off(&self, id: EngineId, now: u64, seen: u64) -> bool {
        self.slot(id).wakeup.back_off(now, &self.changes, seen)
    }

    /// Limits the deferral of a waiting engine: its next step is due no later than `at`, in ns of the card's clock.
    pub fn poll_by(&self, id: EngineId, at: u64) {
        self.slot(id).wakeup.poll_by(at);
    }

    /// Returns whether the last step ended in a wait.
    pub fn waiting(&self, id: EngineId) -> bool {
        self.slot(id).wakeup.waiting()
    }

    /// Returns the time of the next step of a runnable engine, in ns of the card's clock.
    pub fn next_poll(&self, id: EngineId) -> u64 {
        self.slot(id).wakeup.next_poll()
    }

    /// Cancels the deferral of all engines after a memory change, because their wait conditions may now be met.
    pub fn poll_all(&self) {
        self.changes.notify(self.slots.iter().map(|slot| &slot.wakeup));
    }

    /// Returns whether the engine is runnable.
    pub fn runnable(&self, id: EngineId) -> bool {
        self.slot(id).wakeup.runnable()
    }

    /// Queues a report for the scheduler.
    pub fn report(&self, report: EngineReport) {
        self.reports.lock().ignore_poison().push(report);
    }

    /// Replaces the contents of `into` with all queued reports, oldest first.
    pub fn take_reports(&self, into: &mut Vec<EngineReport>) {
        into.clear();
        into.append(&mut self.reports.lock().ignore_poison());
    }

    /// Returns the counts of unsupported and partially executed operations of all engines, by engine and name, for the
    /// report.
    pub fn undone(&self) -> BTreeMap<String, u64> {
        let of = |id: EngineId| self.lock(id).counters().nonzero().into_iter().map(move |(what, n)| (id, what, n));
        self.present()
            .flat_map(of)
            .map(|(id, what, n)| (format!("{} {what}", self.generation.engines.info(id).name), n))
            .collect()
    }

    /// Returns the number of commands that engines have skipped, by engine, function, origin and name.
    pub fn skipped(&self) -> Vec<(EngineId, Function, Origin, &'static str, u64)> {
        let of = |id: EngineId| {
            let engine = self.lock(id);
            let counts = engine.counters().skipped.iter();
            counts.map(|(function, origin, name, count)| (id, function, origin, name, count)).collect::<Vec<_>>()
        };
        self.present().flat_map(of).collect()
    }
}
