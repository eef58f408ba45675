// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The event count that worker threads sleep on while there is no work.

use std::sync::OnceLock;
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, IgnorePoison, Mutex};

/// Notifies the owner of an [`EventCount`] that there may be work again. Called from any thread, also with locks of the card
/// held: must not block, and must not call the card.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// An event count: a worker sleeps only if no wakeup was posted since it last polled for work. If no worker sleeps or is
/// about to, posting a wakeup takes no lock and makes no system call. An owner with a thread of its own, which does not sleep
/// here, has a [`Waker`] instead.
pub struct EventCount {
    /// Number of wakeups posted.
    posted: AtomicU64,
    /// Number of workers that sleep or are about to, and 1 for the waker if it is armed.
    sleepers: AtomicUsize,
    /// Whether the next wakeup calls the waker. Held from the last check of `posted` until a worker sleeps.
    sleep_lock: Mutex<bool>,
    wakeup: Condvar,
    waker: OnceLock<Waker>,
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
            sleep_lock: Mutex::new(false),
            wakeup: Condvar::new(),
            waker: OnceLock::new(),
        }
    }

    /// Number of wakeups posted. Must be read before polling for work.
    #[inline]
    pub fn posted(&self) -> u64 {
        self.posted.load(Ordering::Acquire)
    }

    /// Sets the waker, once. It is called only after [`EventCount::arm`].
    pub fn set_waker(&self, waker: Waker) {
        let set = self.waker.set(waker);
        debug_assert!(set.is_ok(), "an event count has one waker");
    }

    /// Lets the next wakeup call the waker, once. Returns false, with the waker not armed, if a wakeup was posted since
    /// [`EventCount::posted`] returned `seen`: there may be work now.
    pub fn arm(&self, seen: u64) -> bool {
        let mut armed = self.sleep_lock.lock().ignore_poison();
        if !*armed {
            self.sleepers.fetch_add(1, Ordering::AcqRel);
        }
        fence(Ordering::SeqCst);
        *armed = self.posted.load(Ordering::Acquire) == seen;
        if !*armed {
            self.sleepers.fetch_sub(1, Ordering::AcqRel);
        }
        *armed
    }

    /// Posts a wakeup: wakes all sleeping workers, or calls the waker if it is armed. The caller must store the work before the call; a worker that reads the
    /// new count also reads the work (release and acquire).
    pub fn post(&self) {
        self.posted.fetch_add(1, Ordering::AcqRel);
        // Pairs with the fences in `wait` and `arm`: either this load observes the sleeper, or the sleeper observes the count.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // Once the lock is free, every worker that has not seen the new count is asleep.
            let armed = std::mem::take(&mut *self.sleep_lock.lock().ignore_poison());
            self.wakeup.notify_all();
            if armed {
                self.sleepers.fetch_sub(1, Ordering::AcqRel);
                self.waker.get().inspect(|wake| wake());
            }
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
