// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runnable state of the engines and polling of waiting engines. Workers read the state without a lock. The state of an
//! engine is changed with the engine's lock held, except by the notification of a memory change.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Minimum and maximum delay between two checks of an unsatisfied wait, in nanoseconds.
const POLL_INTERVAL: (u64, u64) = (20_000, 1_000_000);
/// The delay is at most one part in this number of the time since the start of the wait, if that is more than the minimum.
/// Nothing reports a store of a processor or the progress of time, and drivers measure short waits that their processor
/// ends, and loops that end after a time (i915: live_engine_timestamps, live_noa_delay).
const PARTS: u64 = 16;

/// Generation counter of events after which memory may have changed.
#[derive(Default)]
pub struct MemoryGeneration(AtomicU64);

impl MemoryGeneration {
    /// Creates a counter with value 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the count. Ordering: must be read before the memory that a wait checks.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Increments the count after a memory change and cancels the deferral of all engines in `waiting`.
    pub fn notify<'a>(&self, waiting: impl Iterator<Item = &'a EngineWakeup>) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence in `back_off`: either `back_off` observes the new count, or the loop below overwrites
        // its deadline.
        fence(Ordering::SeqCst);
        for wakeup in waiting {
            wakeup.next_poll.store(0, Ordering::Release);
        }
    }
}

/// Scheduling state of one engine for the workers.
#[derive(Default)]
pub struct EngineWakeup {
    runnable: AtomicBool,
    /// Time at which a waiting engine is stepped again, and the current delay, in ns.
    next_poll: AtomicU64,
    pause: AtomicU64,
    /// Start of the wait, in ns, and the address of the command that waits. Only meaningful while `pause` is not 0.
    since: AtomicU64,
    at: AtomicU64,
}

impl EngineWakeup {
    /// Creates the state of an engine that is not runnable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the engine is runnable. Cancels any deferral.
    pub fn set_runnable(&self, runnable: bool) {
        self.pause.store(0, Ordering::Relaxed);
        self.next_poll.store(0, Ordering::Release);
        self.runnable.store(runnable, Ordering::Release);
    }

    /// Returns whether the engine is runnable.
    pub fn runnable(&self) -> bool {
        self.runnable.load(Ordering::Acquire)
    }

    /// Notes that the last step ended in a wait of the command at address `at`. If the step before it waited elsewhere,
    /// the wait starts at `now`.
    pub fn wait_at(&self, now: u64, at: u64) {
        if self.at.swap(at, Ordering::Relaxed) != at {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// Defers the next step, the longer the wait lasts, unless the count of `changes` is no longer `seen`, which must be
    /// read before the last step. Returns true for the first deferral since the engine ran.
    pub fn back_off(&self, now: u64, changes: &MemoryGeneration, seen: u64) -> bool {
        let last = self.pause.load(Ordering::Relaxed);
        if last == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
        let waited = now.saturating_sub(self.since.load(Ordering::Relaxed));
        let pause = (waited / PARTS).clamp(POLL_INTERVAL.0, POLL_INTERVAL.1);
        self.pause.store(pause, Ordering::Relaxed);
        self.next_poll.store(now.saturating_add(pause), Ordering::Release);
        fence(Ordering::SeqCst);
        if changes.count() != seen {
            self.next_poll.store(0, Ordering::Release);
        }
        last == 0
    }

    /// Limits the deferral: the next step is due no later than `at`, in ns of the card's clock.
    pub fn poll_by(&self, at: u64) {
        self.next_poll.fetch_min(at, Ordering::AcqRel);
    }

    /// Returns the time at which the next step is due if the engine is runnable, in ns of the card's clock.
    pub fn next_poll(&self) -> u64 {
        self.next_poll.load(Ordering::Acquire)
    }

    /// Returns whether the last step ended in a wait.
    pub fn waiting(&self) -> bool {
        self.pause.load(Ordering::Relaxed) != 0
    }
}
