// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Synchronisation primitives of the modules that are model-checked, and the rule for poisoned locks. In a build with
//! `--cfg loom` they are loom's, which work only in a model; the models are `device-model/xehpg/tests/loom`. State that
//! no model covers may use `std::sync`. Each family states its lock order; the locks of this crate (`EventCount`,
//! `trace::Recorder`) are leaves, or as the family's order says.

#[cfg(not(loom))]
use std::sync as primitives;
pub use std::sync::TryLockError;
use std::sync::{LockResult, PoisonError};

#[cfg(loom)]
use loom::sync as primitives;
pub use primitives::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Atomic integers and fences.
pub mod atomic {
    pub use super::primitives::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}

/// Acquires a lock that a panic may have poisoned.
///
/// The card contains panics: after a panic in a step, the engine or the GuC is reset and the others continue. So a lock
/// is usable after a panic, and the state that it protects must be valid at every point that can panic.
pub trait IgnorePoison {
    /// The guard, or the guard with the result of a wait.
    type Guard;

    /// Returns the guard, whether or not the lock is poisoned.
    fn ignore_poison(self) -> Self::Guard;
}

impl<G> IgnorePoison for LockResult<G> {
    type Guard = G;

    #[inline]
    fn ignore_poison(self) -> G {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The poison flag of a mutex. The names differ from those of std's methods, which would take precedence.
pub trait Poison {
    /// Returns whether a panic has poisoned the lock.
    fn poisoned(&self) -> bool;

    /// Clears the flag. The state that the lock protects must be valid.
    fn end_poisoning(&self);
}

#[cfg(not(loom))]
impl<T> Poison for Mutex<T> {
    fn poisoned(&self) -> bool {
        self.is_poisoned()
    }

    fn end_poisoning(&self) {
        self.clear_poison();
    }
}

/// A panic ends the model, so loom's locks have no flag.
#[cfg(loom)]
impl<T> Poison for Mutex<T> {
    fn poisoned(&self) -> bool {
        false
    }

    fn end_poisoning(&self) {}
}
