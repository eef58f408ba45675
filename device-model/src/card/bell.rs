//! Lets workers sleep until there is work, without losing a call.

use std::time::Duration;

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::{Condvar, LockResult, Mutex, PoisonError};

/// Counts calls. Who finds no work sleeps unless there has been a call since before he looked for it; so nobody need hold
/// a lock to call, and a call that wakes nobody costs no system call.
pub struct Bell {
    rings: AtomicU64,
    /// Who sleeps, or is about to.
    sleepers: AtomicUsize,
    /// Held between the last look at `rings` and sleep.
    falling_asleep: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Self {
        Bell {
            rings: AtomicU64::new(0),
            sleepers: AtomicUsize::new(0),
            falling_asleep: Mutex::new(()),
            rung: Condvar::new(),
        }
    }

    /// How often it has rung: to be read before work is looked for.
    pub fn rings(&self) -> u64 {
        self.rings.load(Ordering::Acquire)
    }

    /// There is work, which has been put where workers look for it: wakes all that sleep.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        // Either a sleeper is seen here, or he sees the ring: his fence is between the same two places.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // Who has not seen the ring is asleep once the lock is free.
            drop(kept(self.falling_asleep.lock()));
            self.rung.notify_all();
        }
    }

    /// Sleeps for `pause` (for ever without one), unless it has rung since [`Bell::rings`] told `seen`. It may end early.
    pub fn sleep(&self, seen: u64, pause: Option<Duration>) {
        let guard = kept(self.falling_asleep.lock());
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.rings.load(Ordering::Acquire) == seen {
            match pause {
                None => drop(kept(self.rung.wait(guard))),
                Some(pause) => drop(kept(self.rung.wait_timeout(guard, pause))),
            }
        }
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The lock guards nothing that a panic could leave half done.
fn kept<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}
