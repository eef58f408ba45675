// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Synchronisation primitives of the modules that are model-checked, and the rule for poisoned locks. The loom tests
//! (`device-model/tests/loom`) recompile those modules and substitute loom's types for this module. Each family states
//! its lock order; the locks of this crate (`EventCount`, `trace::Recorder`) are leaves, or as the family's order says.

pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, TryLockError};
use std::sync::{LockResult, PoisonError};

/// Atomic integers and fences.
pub mod atomic {
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
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
