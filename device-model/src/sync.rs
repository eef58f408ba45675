// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Synchronisation primitives of the modules that are model-checked. The loom tests (`tests/loom`) recompile those
//! modules and substitute loom's types for this module.

pub use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};

/// Atomic integers and fences.
pub mod atomic {
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}
