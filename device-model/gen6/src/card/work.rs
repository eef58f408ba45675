// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of the engines by worker threads, and their resets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread;

use arctic_base::gpu::WorkStatus;
use arctic_base::host::Function;
use arctic_base::priority_mutex::PriorityMutex;
use arctic_base::report::{Report, SkippedCommands};
use arctic_base::trace::EventKind;
use arctic_base::wakeup::EngineWakeup;

use super::Card;
use crate::engine::{Engine, Outcome};
use crate::registers::power::RESET_FULL;
use crate::sync::IgnorePoison;
use crate::topology::EngineId;

/// Maximum number of commands that an engine executes in a step.
pub const STEP_BUDGET: u32 = 1024;

/// An engine, and when its next step is due.
pub(super) struct EngineSlot {
    pub(super) id: EngineId,
    /// Workers lock it by `try_lock`; other threads have priority, and wait for the end of a step by it.
    pub(super) engine: PriorityMutex<Engine>,
    /// When a waiting engine is stepped again, in ns of [`Gt::now`](crate::gt::Gt::now). Whether an engine has commands is
    /// in its registers.
    pub(super) wakeup: EngineWakeup,
}

impl EngineSlot {
    pub(super) fn new(id: EngineId) -> Self {
        EngineSlot { id, engine: PriorityMutex::new(Engine::new(id)), wakeup: EngineWakeup::new() }
    }

    /// The next step is due at once.
    pub(super) fn poll_now(&self) {
        self.wakeup.set_runnable(true);
    }
}

impl Card {
    /// A register write may have made `engine` runnable.
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub(super) fn wake(&self, engine: EngineId) {
        self.gt.update_busy(engine);
        self.engines[engine.index()].poll_now();
        self.gt.wakeups.post();
    }

    /// Executes a step of each engine that has commands and does not wait.
    pub(super) fn step_engines(&self) -> WorkStatus {
        let now = self.gt.now();
        let mut busy = false;
        let mut next = None::<u64>;
        for slot in &self.engines {
            if self.gt.watchdog_counts(slot.id) {
                // A save of the card has either the expiry or what follows from it.
                let _access = self.accesses.read().ignore_poison();
                if let Some(expiry) = self.gt.poll_watchdog(slot.id) {
                    next = Some(next.map_or(expiry, |next| next.min(expiry)));
                }
            }
            if !self.gt.engine_runnable(slot.id) {
                continue;
            }
            let due = slot.wakeup.next_poll();
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            } else if let Some(mut engine) = slot.engine.try_lock() {
                // A pause takes the lock after it has begun.
                busy |= !self.paused.load(Ordering::SeqCst) && self.step(slot, &mut engine);
            } else if slot.engine.wanted() {
                // Another thread waits for the engine's lock and will hold it only briefly. This worker must not sleep.
                thread::yield_now();
                busy = true;
            }
        }
        if busy { WorkStatus::Busy } else { WorkStatus::Idle(next.map(|next| self.gt.host_time(next))) }
    }

    /// Executes a step of one engine; returns whether it has executed a command or found out when to look again.
    fn step(&self, slot: &EngineSlot, engine: &mut Engine) -> bool {
        let gt = &self.gt;
        let id = slot.id;
        // Before the memory that a wait checks.
        let seen = self.changes.count();
        gt.set_executing(id, true);
        engine.take_restart(gt);
        gt.update_residency();
        let step = || {
            let view = gt.view();
            engine.step(gt, &*view, STEP_BUDGET)
        };
        // A panic in a step is a bug of the model; it costs this engine its work.
        let outcome = catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
            if self.panics.fetch_add(1, Ordering::Relaxed) == 0 {
                log::error!("a step of the device model panicked (bug): the engine halts");
            }
            Outcome::Halted
        });
        match outcome {
            Outcome::Progress => {
                slot.poll_now();
                self.changes.notify(self.engines.iter().map(|slot| &slot.wakeup));
            }
            Outcome::Waiting => {
                slot.wakeup.back_off(gt.now(), &self.changes, seen);
            }
            Outcome::Halted => gt.set_halted(id, true),
            Outcome::Idle => {}
        }
        gt.set_executing(id, false);
        gt.update_busy(id);
        gt.update_residency();
        outcome != Outcome::Idle
    }

    /// Resets the engines that `selected` selects, with their steps stopped, and then what `reset` resets.
    fn reset_engines(&self, selected: impl Fn(u32) -> bool, reset: impl FnOnce()) {
        let engines = self.engines.iter().filter(|slot| selected(self.gt.generation.engine(slot.id).reset_mask));
        let mut held: Vec<_> = engines.map(|slot| (slot, slot.engine.hold())).collect();
        for (slot, engine) in &mut held {
            engine.reset();
            self.gt.reset_activity(slot.id);
            slot.poll_now();
            let name = self.gt.generation.engine(slot.id).name;
            self.gt.trace.record_of_engine(Function::PF, || (name, EventKind::Reset));
        }
        reset();
        held.iter().for_each(|(slot, _)| self.gt.update_busy(slot.id));
    }

    /// GDRST: resets the domains in its value.
    pub(super) fn reset_domains(&self, domains: u32) {
        self.reset_engines(|bit| domains & (RESET_FULL | bit) != 0, || self.gt.reset_domains(domains));
    }

    /// Resets the card, as a reset of the function does.
    pub(super) fn reset_all(&self) {
        self.reset_engines(|_| true, || self.gt.reset());
    }

    /// Waits until the engines that `selected` selects have passed a step boundary: translations that were valid before
    /// are then not in use. A step that waits for a client is limited by the client's budget.
    pub(super) fn pass_step_boundary(&self, selected: impl Fn(EngineId) -> bool) {
        for slot in self.engines.iter().filter(|slot| selected(slot.id)) {
            drop(slot.engine.lock());
        }
    }

    /// Waits for the end of every step in progress.
    pub(super) fn end_steps(&self) {
        self.pass_step_boundary(|_| true);
    }

    /// Adds the commands that the engines have skipped to `report`.
    pub(super) fn complete_report(&self, mut report: Report) -> Report {
        for slot in &self.engines {
            let engine = self.gt.generation.engine(slot.id).name;
            for ((origin, command), count) in slot.engine.lock().skipped() {
                let total = report.undone.entry(format!("{engine} {command}")).or_default();
                *total = total.saturating_add(*count);
                let (origin, count) = (*origin, *count);
                report.skipped_commands.push(SkippedCommands { function: 0, origin, engine, command, count });
            }
        }
        report.panics = self.panics.load(Ordering::Relaxed);
        report
    }
}
