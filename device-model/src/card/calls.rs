//! What calls the GuC: rings of the hosts, reports of engines, time. Calls are made without a lock, by any thread.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls that no step of the GuC has heard yet.
pub struct Calls {
    called: AtomicBool,
    /// Functions that rang, a bit each.
    rang: AtomicU64,
    /// Functions (a bit each) on whose behalf something else has called.
    behalf: AtomicU64,
    /// When it wants to be called at the latest, in ns of the card's clock.
    deadline: AtomicU64,
}

impl Calls {
    /// Nobody has called.
    pub fn new() -> Self {
        Calls {
            called: AtomicBool::new(false),
            rang: AtomicU64::new(0),
            behalf: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
        }
    }

    /// There is something to look at that concerns `functions` (a bit each). It must be in place before the call; the
    /// workers' bell must be rung afterwards.
    pub fn call(&self, functions: u64) {
        self.behalf.fetch_or(functions, Ordering::AcqRel);
        self.called.swap(true, Ordering::AcqRel);
    }

    /// The functions of these bits rang.
    pub fn ring(&self, functions: u64) {
        self.rang.fetch_or(functions, Ordering::AcqRel);
        self.called.swap(true, Ordering::AcqRel);
    }

    /// Whether a step is due at `now`. Who is told so owes it: the call is taken.
    pub fn due(&self, now: u64) -> bool {
        self.called.swap(false, Ordering::AcqRel) || now >= self.deadline()
    }

    /// Whether a call concerns one of `functions` (a bit each) and no step has begun since.
    pub fn waiting(&self, functions: u64) -> bool {
        (self.rang.load(Ordering::Acquire) | self.behalf.load(Ordering::Acquire)) & functions != 0
    }

    /// Functions that rang since the last step, for the step that begins, which holds the GuC's lock.
    pub fn take_rang(&self) -> u64 {
        self.behalf.swap(0, Ordering::AcqRel);
        self.rang.swap(0, Ordering::AcqRel)
    }

    /// The latest time for the next step; `u64::MAX` for none.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// Sets that time, under the GuC's lock; tells whether it is sooner than the one before.
    pub fn set_deadline(&self, at: Option<u64>) -> bool {
        let at = at.unwrap_or(u64::MAX);
        at < self.deadline.swap(at, Ordering::AcqRel)
    }
}
