// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of the engines by worker threads, and their resets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use arctic_base::gpu::WorkStatus;
use arctic_base::host::Function;
use arctic_base::report::{Report, SkippedCommands};
use arctic_base::trace::EventKind;

use super::Card;
use crate::engine::{Engine, Outcome};
use crate::registers::power::RESET_FULL;
use crate::sync::{IgnorePoison, Mutex, MutexGuard};
use crate::topology::EngineId;

/// Maximum number of commands that an engine executes in a step.
pub const STEP_BUDGET: u32 = 1024;
/// Time in ns until an engine that waits polls again: the first time, and at most.
const FIRST_WAIT: u64 = 20_000;
const LONGEST_WAIT: u64 = 1_000_000;
/// Time between two polls at a step whose end a thread waits for, and their number where the wait may be a deadlock.
const POLL_INTERVAL: Duration = Duration::from_micros(20);
const MAX_POLLS: u32 = 200;

/// An engine, and when its next step is due.
pub(super) struct EngineSlot {
    pub(super) id: EngineId,
    pub(super) engine: Mutex<Engine>,
    /// Time of the next step in ns of [`Gt::now`](crate::gt::Gt::now); 0 at once.
    pub(super) due: AtomicU64,
    /// Time that the engine waits before it polls again, in ns; doubled each time.
    pub(super) wait: AtomicU64,
}

impl EngineSlot {
    pub(super) fn new(id: EngineId) -> Self {
        let (due, wait) = (AtomicU64::new(0), AtomicU64::new(FIRST_WAIT));
        EngineSlot { id, engine: Mutex::new(Engine::new(id)), due, wait }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().ignore_poison()
    }

    /// The next step is due at once.
    pub(super) fn poll_now(&self) {
        self.wait.store(FIRST_WAIT, Ordering::Relaxed);
        self.due.store(0, Ordering::Release);
    }
}

impl Card {
    /// A register write may have made `engine` runnable.
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub(super) fn wake(&self, engine: EngineId) {
        self.engines[engine.index()].poll_now();
        self.gt.wakeups.post();
    }

    /// Executes a step of each engine that has commands and does not wait.
    pub(super) fn step_engines(&self) -> WorkStatus {
        let (now, mut busy, mut next) = (self.gt.now(), false, None::<u64>);
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
            let due = slot.due.load(Ordering::Acquire);
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
            } else if let Ok(mut engine) = slot.engine.try_lock() {
                busy |= self.step(slot, &mut engine);
            }
        }
        if busy { WorkStatus::Busy } else { WorkStatus::Idle(next.map(|next| self.gt.host_time(next))) }
    }

    /// Executes a step of one engine; returns whether it has executed a command or found out when to look again.
    fn step(&self, slot: &EngineSlot, engine: &mut Engine) -> bool {
        let (gt, id) = (&self.gt, slot.id);
        gt.set_stepping(id, true);
        engine.take_restart(gt);
        gt.update_residency();
        let step = || {
            let view = gt.view();
            engine.step(gt, &*view, STEP_BUDGET)
        };
        // A panic in a step is a bug of the model; it costs this engine its work.
        let outcome = catch_unwind(AssertUnwindSafe(step)).unwrap_or(Outcome::Halted);
        match outcome {
            Outcome::Progress => slot.poll_now(),
            Outcome::Waiting => {
                let wait = slot.wait.load(Ordering::Relaxed);
                slot.wait.store(wait.saturating_mul(2).min(LONGEST_WAIT), Ordering::Relaxed);
                slot.due.store(gt.now().saturating_add(wait), Ordering::Release);
            }
            Outcome::Halted => gt.set_halted(id, true),
            Outcome::Idle => {}
        }
        gt.set_stepping(id, false);
        gt.update_residency();
        outcome != Outcome::Idle
    }

    /// Resets the engines that `selected` selects, with their steps stopped, and then what `reset` resets.
    fn reset_engines(&self, selected: impl Fn(u32) -> bool, reset: impl FnOnce()) {
        let engines = self.engines.iter().filter(|slot| selected(self.gt.generation.engine(slot.id).reset_mask));
        let mut held: Vec<_> = engines.map(|slot| (slot, slot.lock())).collect();
        for (slot, engine) in &mut held {
            engine.reset();
            self.gt.reset_activity(slot.id);
            slot.poll_now();
            let name = self.gt.generation.engine(slot.id).name;
            self.gt.trace.record_of_engine(Function::PF, || (name, EventKind::Reset));
        }
        reset();
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
    /// are then not in use. A step that waits for the client which this thread serves cannot end before it returns, so
    /// this gives up on one after milliseconds; the accesses of such a step are requests, which the client itself checks.
    pub(super) fn pass_step_boundary(&self, selected: impl Fn(EngineId) -> bool) {
        let polls = if self.gt.view().may_wait_for_client() { MAX_POLLS } else { u32::MAX };
        for slot in self.engines.iter().filter(|slot| selected(slot.id)) {
            // Not by the engine's lock: a worker that executes one step after the other could take it first each time.
            let step = self.gt.step_in_progress(slot.id);
            let in_progress = || step.is_some() && self.gt.step_in_progress(slot.id) == step;
            (0..polls).take_while(|_| in_progress()).for_each(|_| thread::sleep(POLL_INTERVAL));
        }
    }

    /// Waits for the end of every step in progress.
    pub(super) fn end_steps(&self) {
        self.engines.iter().for_each(|slot| drop(slot.lock()));
    }

    /// Adds the commands that the engines have skipped to `report`.
    pub(super) fn complete_report(&self, mut report: Report) -> Report {
        for slot in &self.engines {
            let engine = self.gt.generation.engine(slot.id).name;
            for ((origin, command), count) in slot.lock().skipped() {
                let total = report.undone.entry(format!("{engine} {command}")).or_default();
                *total = total.saturating_add(*count);
                let (origin, count) = (*origin, *count);
                report.skipped_commands.push(SkippedCommands { function: 0, origin, engine, command, count });
            }
        }
        report
    }
}
