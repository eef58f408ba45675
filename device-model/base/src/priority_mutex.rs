// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A mutex on which control paths have priority over engine workers.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{IgnorePoison, Mutex, MutexGuard, Poison, TryLockError};

/// Mutex on which blocking callers have priority over workers. A plain mutex is unfair: a worker that steps an engine
/// in a loop would starve other threads. Workers therefore use only `try_lock`, which fails while another thread waits.
pub struct PriorityMutex<T> {
    inside: Mutex<T>,
    /// Number of threads that wait for the lock or hold a [`PriorityGuard`].
    wanted: AtomicU32,
    /// Number of times that a thread has acquired the lock with priority.
    acquired: AtomicU32,
}

impl<T> PriorityMutex<T> {
    /// Creates an unlocked mutex for `value`.
    pub fn new(value: T) -> Self {
        PriorityMutex { inside: Mutex::new(value), wanted: AtomicU32::new(0), acquired: AtomicU32::new(0) }
    }

    /// Acquires the lock with priority over workers. Poisoning is ignored.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.hold().guard
    }

    /// Acquires the lock like [`PriorityMutex::lock`], but [`PriorityMutex::wanted`] returns true until the lock is
    /// released instead of until it is acquired.
    pub fn hold(&self) -> PriorityGuard<'_, T> {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let waits = Waits(&self.wanted);
        let guard = self.inside.lock().ignore_poison();
        self.acquired.fetch_add(1, Ordering::AcqRel);
        PriorityGuard { guard, _waits: waits }
    }

    /// Acquires the lock without priority, for a worker that must execute a step: after as many threads as wait for it at
    /// the time of the call. Threads that begin to wait later may come first, but cannot delay the caller without a limit.
    /// Poisoning is ignored.
    pub fn lock_after_others(&self) -> MutexGuard<'_, T> {
        let before = self.acquired.load(Ordering::Acquire);
        let waiting = self.wanted.load(Ordering::Acquire);
        while self.wanted() && self.acquired.load(Ordering::Acquire).wrapping_sub(before) < waiting {
            // Sleeps while the lock is held.
            drop(self.inside.lock().ignore_poison());
            std::thread::yield_now();
        }
        self.inside.lock().ignore_poison()
    }

    /// Acquires the lock with priority over workers, but tries only `attempts` times, in which it lets other threads run.
    /// Poisoning is ignored.
    pub fn lock_soon(&self, attempts: u32) -> Option<MutexGuard<'_, T>> {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let _waits = Waits(&self.wanted);
        (0..attempts).find_map(|_| {
            let guard = self.try_inside();
            if guard.is_none() {
                std::thread::yield_now();
            }
            guard
        })
    }

    /// Acquires the lock. Returns `None` if another thread holds it or waits for it. Poisoning is ignored.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if self.wanted() {
            return None;
        }
        self.try_inside()
    }

    fn try_inside(&self) -> Option<MutexGuard<'_, T>> {
        match self.inside.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns whether a thread waits for the lock or holds it with [`PriorityMutex::hold`].
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) != 0
    }

    /// Returns whether a panic has poisoned the lock.
    pub fn is_poisoned(&self) -> bool {
        self.inside.poisoned()
    }

    /// Ends the poisoning. The value must be valid.
    pub fn clear_poison(&self) {
        self.inside.end_poisoning();
    }
}

/// Counts a thread in [`PriorityMutex::wanted`] until dropped.
struct Waits<'a>(&'a AtomicU32);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Guard of `PriorityMutex::hold`.
pub struct PriorityGuard<'a, T> {
    // Drop order: the lock is released before the count is decremented.
    guard: MutexGuard<'a, T>,
    _waits: Waits<'a>,
}

impl<T> Deref for PriorityGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for PriorityGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    /// A step that must be executed comes after the threads that wait already, although the lock is free when it is called.
    #[test]
    fn a_step_gives_way_to_the_threads_that_wait() {
        for _ in 0..20 {
            let order = PriorityMutex::new(Vec::new());
            let held = order.inside.lock().unwrap();
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| order.lock().push("waits"));
                }
                while order.wanted.load(Ordering::Acquire) < 3 {
                    thread::yield_now();
                }
                drop(held);
                order.lock_after_others().push("step");
            });
            assert_eq!(*order.lock(), ["waits", "waits", "waits", "step"]);
        }
    }

    /// Threads that acquire the lock again and again delay a step only by the number of those that waited at its call.
    #[test]
    fn a_step_is_not_starved() {
        let (lock, stop) = (PriorityMutex::new(()), std::sync::atomic::AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        drop(lock.lock());
                    }
                });
            }
            for _ in 0..100 {
                drop(lock.lock_after_others());
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
