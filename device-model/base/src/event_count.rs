// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The event count that worker threads sleep on while there is no work.

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, IgnorePoison, Mutex};

/// An event count: a worker sleeps only if no wakeup was posted since it last polled for work. Posting a wakeup takes
/// no lock, and makes no system call if no worker sleeps.
pub struct EventCount {
    rings: AtomicU64,
    /// Number of workers that sleep or are about to.
    sleepers: AtomicUsize,
    /// Held from the last check of `rings` until the worker sleeps.
    falling_asleep: Mutex<()>,
    rung: Condvar,
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

impl EventCount {
    /// A new event count with no wakeups posted.
    pub fn new() -> Self {
        EventCount {
            rings: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            falling_asleep: Mutex::new(()),
            rung: Condvar::new(),
        }
    }

    /// Number of wakeups posted. Must be read before polling for work.
    #[inline]
    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::Acquire)
    }

    /// Wakes all sleeping workers. The work must be visible to them before the call.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence in `sleep`: either this load observes the sleeper, or the sleeper observes the count.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // Once the lock is free, every worker that has not seen the new count is asleep.
            drop(self.falling_asleep.lock().ignore_poison());
            self.rung.notify_all();
        }
    }

    /// Sleeps for `pause` (indefinitely if `None`), unless a wakeup was posted since [`EventCount::rings`] returned
    /// `seen`. May return early.
    pub fn sleep(&self, seen: u64, pause: Option<Duration>) {
        let guard = self.falling_asleep.lock().ignore_poison();
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.rings.load(Ordering::Acquire) == seen {
            match pause {
                None => drop(self.rung.wait(guard).ignore_poison()),
                Some(pause) => drop(self.rung.wait_timeout(guard, pause).ignore_poison()),
            }
        }
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }
}
