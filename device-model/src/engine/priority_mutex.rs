// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A mutex on which control paths have priority over engine workers.

use std::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex without priorities is unfair: a worker that steps an engine in a loop would starve other threads. Workers
/// therefore use `try_lock` only, which fails while another thread waits.
pub struct PriorityMutex<T> {
    inside: Mutex<T>,
    /// Number of threads that wait for the lock or hold it with [`PriorityMutex::hold`].
    wanted: AtomicU32,
}

impl<T> PriorityMutex<T> {
    /// Creates an unlocked mutex for `value`.
    pub fn new(value: T) -> Self {
        PriorityMutex { inside: Mutex::new(value), wanted: AtomicU32::new(0) }
    }

    /// Takes the lock, poisoned or not, with priority over workers.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.hold().guard
    }

    /// Takes the lock as [`PriorityMutex::lock`] does. [`PriorityMutex::wanted`] returns true until the lock is released, not
    /// only until it is acquired.
    pub fn hold(&self) -> PriorityGuard<'_, T> {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let waits = Waits(&self.wanted);
        PriorityGuard { guard: self.inside.lock().unwrap_or_else(PoisonError::into_inner), _waits: waits }
    }

    /// Takes the lock if no thread holds it or waits for it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if self.wanted() {
            return None;
        }
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

    /// The underlying mutex, for access to its poison flag.
    pub fn mutex(&self) -> &Mutex<T> {
        &self.inside
    }
}

/// Counts a thread in [`PriorityMutex::wanted`] until dropped.
struct Waits<'a>(&'a AtomicU32);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The lock, held with priority over workers.
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
