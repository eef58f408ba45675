// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The event count that worker threads sleep on while there is no work.

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, IgnorePoison, Mutex};

/// An event count: a worker sleeps only if no wakeup was posted since it last polled for work. If no worker sleeps or is
/// about to, posting a wakeup takes no lock and makes no system call.
pub struct EventCount {
    /// Number of wakeups posted.
    posted: AtomicU64,
    /// Number of workers that sleep or are about to.
    sleepers: AtomicUsize,
    /// Held from the last check of `posted` until the worker sleeps.
    sleep_lock: Mutex<()>,
    wakeup: Condvar,
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
            posted: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wakeup: Condvar::new(),
        }
    }

    /// Number of wakeups posted. Must be read before polling for work.
    #[inline]
    pub fn posted(&self) -> u64 {
        self.posted.load(Ordering::Acquire)
    }

    /// Posts a wakeup: wakes all sleeping workers. The caller must store the work before the call; a worker that reads the
    /// new count also reads the work (release and acquire).
    pub fn post(&self) {
        self.posted.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fence in `wait`: either this load observes the sleeper, or the sleeper observes the count.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // Once the lock is free, every worker that has not seen the new count is asleep.
            drop(self.sleep_lock.lock().ignore_poison());
            self.wakeup.notify_all();
        }
    }

    /// Sleeps for `timeout` (indefinitely if `None`), unless a wakeup was posted since [`EventCount::posted`] returned
    /// `seen`. May return early.
    pub fn wait(&self, seen: u64, timeout: Option<Duration>) {
        let guard = self.sleep_lock.lock().ignore_poison();
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.posted.load(Ordering::Acquire) == seen {
            match timeout {
                None => drop(self.wakeup.wait(guard).ignore_poison()),
                Some(timeout) => drop(self.wakeup.wait_timeout(guard, timeout).ignore_poison()),
            }
        }
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }
}
