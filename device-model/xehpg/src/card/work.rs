// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The work that is executed by worker threads, or by calls of [`Card::step`]: one bounded step of each unit.

use super::units::Stepped;
use super::{Card, STEP_BUDGET};
use crate::engine::{Engine, Load, Outcome};
use crate::gpu::WorkStatus;
use crate::host::functions;
use crate::interrupts::GUC2HOST;
use crate::pci::LMEM_BAR;
use crate::sync::MutexGuard;
use crate::topology::EngineId;

impl Card {
    /// Runs the GuC's step if one is due and no other thread has taken it. A thread that already serves events can use
    /// this to avoid waking the workers for a notification that makes no engine runnable.
    pub fn poll_guc(&self) {
        self.guarded(|| self.step_guc(self.gt.clock.now()));
    }

    /// Executes a bounded amount of pending work: a step of each unit.
    pub fn step(&self) -> WorkStatus {
        let now = self.gt.clock.now();
        let mut busy = false;
        let mut next = u64::MAX;
        for unit in &self.units {
            if busy && unit.helps() {
                continue;
            }
            let stepped = unit.step(self, now);
            busy |= stepped.worked;
            next = next.min(stepped.next);
        }
        if busy { WorkStatus::Busy } else { WorkStatus::Idle((next != u64::MAX).then_some(next)) }
    }

    /// Runs a GuC step if one is due.
    pub(super) fn step_guc(&self, now: u64) -> Stepped {
        let worked = self.guc_pending.due(now);
        if worked {
            self.step_due_guc();
        }
        Stepped { worked, next: self.guc_pending.deadline() }
    }

    fn step_due_guc(&self) {
        let (step, sooner) = {
            let mut guc = self.guc.lock_for_step();
            guc.serve_mailboxes(&self.gt, &self.engines, self.guc_pending.take_mailboxes());
            let step = guc.step(&self.gt, &self.engines, self.guc_pending.take_notified());
            self.guc.publish_queued(&guc);
            (step, self.guc_pending.set_deadline(step.next))
        };
        for function in functions(step.interrupts) {
            self.gt.interrupt_by_guc(function, GUC2HOST);
        }
        for function in functions(step.messages) {
            self.gt.interrupts_of(function).send();
        }
        for vf in functions(self.gt.memory.take_resized()) {
            self.gt.interrupts_of(vf).mappings_changed(LMEM_BAR);
        }
        // Other workers may be asleep beyond the GuC's new deadline, or may have fallen asleep before an engine was
        // loaded.
        if sooner || self.engines.present().any(|id| self.engines.runnable(id)) {
            self.wake_workers();
        }
    }

    /// Runs a step of an engine that has a context and is not waiting. Engines are stepped regardless of how often
    /// functions notify the GuC, so they cannot starve.
    pub(super) fn step_engine(&self, id: EngineId, now: u64) -> Stepped {
        if !self.engines.runnable(id) {
            return Stepped::default();
        }
        let next = self.engines.next_poll(id);
        if next > now {
            return Stepped { worked: false, next };
        }
        Stepped { worked: self.step_runnable(id, now), ..Stepped::default() }
    }

    /// Returns a bounded amount of unused memory to the host, or wakes the thread that does it.
    pub(super) fn tidy_memory(&self) -> Stepped {
        let mut stepped = Stepped::default();
        if self.gt.memory.untidy() {
            match self.scrubber.get() {
                Some(scrubber) => scrubber.thread.unpark(),
                None => stepped.worked = self.gt.memory.scrub(),
            }
        }
        stepped
    }

    /// Steps one engine unless another worker is stepping it; with it, the engines that run the other members of a
    /// parallel context. Returns whether the worker should poll for more work.
    fn step_runnable(&self, id: EngineId, now: u64) -> bool {
        let Some((engine, load)) = self.try_lock_loaded(id) else { return self.engines.wanted(id) };
        match load {
            None => true,
            Some(load) if load.members != 0 => {
                drop(engine);
                self.step_members(load.members, now)
            }
            Some(load) => {
                self.step_loaded(id, engine, load, now);
                true
            }
        }
    }

    /// Steps the engines in `members` (one bit each), which run the members of a parallel context, in turn: each
    /// executes one command of its ring, or a part of a batch, before the next one does. A member would otherwise
    /// complete its work before another has begun; xe has no handshake between members, and the first one's user fence
    /// allows the user to unmap what the others still use (xe: emit_job_gen12_video). One thread steps all of them,
    /// because the host may suspend a thread for milliseconds. Returns whether the worker should poll for more work.
    fn step_members(&self, members: u32, now: u64) -> bool {
        /// Maximum number of commands of each ring in one call.
        const ROUNDS: u32 = 64;
        let Some(_claim) = self.engines.try_lock_members(members) else { return false };
        for _ in 0..ROUNDS {
            let mut goes_on = false;
            let mut in_rings = true;
            for id in self.engines.present().filter(|id| members & id.bit() != 0) {
                if !self.engines.runnable(id) || self.engines.next_poll(id) > now {
                    continue;
                }
                let Some((engine, load)) = self.try_lock_loaded(id) else { return true };
                if let Some(load) = load.filter(|load| load.members == members) {
                    let (outcome, in_ring) = self.step_loaded(id, engine, load, now);
                    goes_on |= outcome == Outcome::More;
                    in_rings &= in_ring;
                }
            }
            if !goes_on || !in_rings {
                break;
            }
        }
        true
    }

    /// Locks an engine, unless another thread holds its lock or waits for it. Returns it with its context; without one
    /// it is no longer runnable.
    fn try_lock_loaded(&self, id: EngineId) -> Option<(MutexGuard<'_, Engine>, Option<Load>)> {
        let Some(engine) = self.engines.try_lock(id) else {
            if self.engines.wanted(id) {
                // Another thread waits for the engine's lock and will hold it only briefly. This worker must not sleep.
                std::thread::yield_now();
            }
            return None;
        };
        let load = engine.loaded();
        if load.is_none() {
            self.engines.set_runnable(id, false);
        }
        Some((engine, load))
    }

    /// Steps an engine with the context `load`. Returns also whether the next command is one of its ring.
    fn step_loaded(&self, id: EngineId, mut engine: MutexGuard<'_, Engine>, load: Load, now: u64) -> (Outcome, bool) {
        let seen = self.engines.changes();
        let outcome = engine.step(&self.gt, STEP_BUDGET);
        let skipped = engine.take_skipped(&self.gt, &load);
        let in_ring = engine.in_ring();
        match outcome {
            Outcome::Waiting | Outcome::Spinning => {
                if let Some(at) = engine.waits_at() {
                    self.engines.wait_at(id, now, at);
                }
                let first = self.engines.back_off(id, now, seen);
                if let Some(at) = engine.wake_at() {
                    self.engines.poll_by(id, at);
                }
                drop(engine);
                if first || skipped.is_some() {
                    self.report_outcome(id, load, outcome, skipped);
                }
                return (outcome, in_ring);
            }
            Outcome::More => {
                self.engines.set_runnable(id, true);
                drop(engine);
                if self.gt.offers.take_news() {
                    self.wake_workers();
                }
                if skipped.is_some() {
                    self.report_outcome(id, load, outcome, skipped);
                }
            }
            Outcome::Idle | Outcome::Complete | Outcome::Preempted => {
                // The next element of the queue may already be loaded.
                self.engines.set_runnable(id, engine.loaded().is_some());
                drop(engine);
                self.report_outcome(id, load, outcome, skipped);
            }
            Outcome::Halted(_) => {
                self.engines.set_runnable(id, false);
                drop(engine);
                self.report_outcome(id, load, outcome, skipped);
            }
        }
        self.engines.poll_all();
        (outcome, in_ring)
    }
}
