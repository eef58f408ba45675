// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which engines are runnable, and when waiting engines are stepped again. Workers read these flags without a lock. The
//! flags of an engine are changed with its lock held, except for the notification that memory has changed.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// First and longest delay between two checks of an unsatisfied wait, in nanoseconds.
const LOOK_AGAIN: (u64, u64) = (20_000, 1_000_000);

/// Counts events after which memory may have changed.
pub struct MemoryGeneration(AtomicU64);

impl MemoryGeneration {
    /// Starts at 0.
    pub fn new() -> Self {
        MemoryGeneration(AtomicU64::new(0))
    }

    /// Returns the count. Must be read before the memory that a wait checks.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Memory has changed: cancels the deferral of all engines in `waiting`.
    pub fn tell<'a>(&self, waiting: impl Iterator<Item = &'a EngineWakeup>) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence in `back_off`: either the waiter sees the new count or its deadline is cleared here.
        fence(Ordering::SeqCst);
        for wakeup in waiting {
            wakeup.next_poll.store(0, Ordering::Release);
        }
    }
}

/// Scheduling state of one engine for the workers.
pub struct EngineWakeup {
    runnable: AtomicBool,
    /// Time at which a waiting engine is stepped again (ns), and the delay that led to it.
    next_poll: AtomicU64,
    pause: AtomicU64,
}

impl EngineWakeup {
    /// An engine without work.
    pub fn new() -> Self {
        EngineWakeup { runnable: AtomicBool::new(false), next_poll: AtomicU64::new(0), pause: AtomicU64::new(0) }
    }

    /// Sets whether the engine has work to do. Cancels any deferral.
    pub fn set_runnable(&self, runnable: bool) {
        self.pause.store(0, Ordering::Relaxed);
        self.next_poll.store(0, Ordering::Release);
        self.runnable.store(runnable, Ordering::Release);
    }

    /// Returns whether the engine has work to do.
    pub fn runnable(&self) -> bool {
        self.runnable.load(Ordering::Acquire)
    }

    /// Defers the next step, with an increasing delay, unless memory has changed since `changes` had the count `seen`,
    /// read before the last step. Returns true for the first deferral of a wait.
    pub fn back_off(&self, now: u64, changes: &MemoryGeneration, seen: u64) -> bool {
        let last = self.pause.load(Ordering::Relaxed);
        let pause = if last == 0 { LOOK_AGAIN.0 } else { (last * 2).min(LOOK_AGAIN.1) };
        self.pause.store(pause, Ordering::Relaxed);
        self.next_poll.store(now.saturating_add(pause), Ordering::Release);
        fence(Ordering::SeqCst);
        if changes.count() != seen {
            self.next_poll.store(0, Ordering::Release);
        }
        last == 0
    }

    /// Limits the deferral: the next step is at `at` (ns) at the latest.
    pub fn poll_by(&self, at: u64) {
        self.next_poll.fetch_min(at, Ordering::AcqRel);
    }

    /// Time of the next step if the engine is runnable, in ns of the card's clock.
    pub fn next_poll(&self) -> u64 {
        self.next_poll.load(Ordering::Acquire)
    }

    /// Returns whether the last step ended in a wait.
    pub fn waiting(&self) -> bool {
        self.pause.load(Ordering::Relaxed) != 0
    }
}
