//! A lock whose holders come back for it at once, time and again, and let others in between.

use std::ops::{Deref, DerefMut};

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex is not fair: a worker that steps an engine again and again would keep everybody else out. So workers only try,
/// and not while anybody waits.
pub struct Turnstile<T> {
    inside: Mutex<T>,
    /// Who waits, or keeps workers out until he leaves.
    wanted: AtomicU32,
}

impl<T> Turnstile<T> {
    /// Free, around `value`.
    pub fn new(value: T) -> Self {
        Turnstile { inside: Mutex::new(value), wanted: AtomicU32::new(0) }
    }

    /// Takes the lock, poisoned or not, before any worker.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.hold().guard
    }

    /// The same; workers that come by are told that it is wanted until it is given back, not only until it is had.
    pub fn hold(&self) -> Held<'_, T> {
        self.wanted.fetch_add(1, Ordering::AcqRel);
        let waits = Waits(&self.wanted);
        Held { guard: self.inside.lock().unwrap_or_else(PoisonError::into_inner), _waits: waits }
    }

    /// Takes the lock if nobody has it and nobody waits for it.
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

    /// Whether somebody waits for it, or holds it against workers.
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) != 0
    }

    /// The mutex itself, for a look at its poison.
    pub fn mutex(&self) -> &Mutex<T> {
        &self.inside
    }
}

/// One who waits.
struct Waits<'a>(&'a AtomicU32);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The lock, held against workers.
pub struct Held<'a, T> {
    // In this order: the count goes down after the lock has been given back.
    guard: MutexGuard<'a, T>,
    _waits: Waits<'a>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
