//! What threads meet in, for the parts that do without a lock: the tests build those parts a second time with the types of
//! a model checker in this place (`tests/loom`).

pub use std::sync::{Condvar, LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};

/// Atomic integers and fences.
pub mod atomic {
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
}
