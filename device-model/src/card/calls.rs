//! What calls the GuC: rings of the hosts, reports of engines, time. Calls are made without a lock, by any thread.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls that no step of the GuC has heard yet.
pub struct Calls {
    called: AtomicBool,
    /// Functions that rang, a bit each.
    rang: AtomicU64,
    /// When it wants to be called at the latest, in ns of the card's clock.
    deadline: AtomicU64,
}

impl Calls {
    /// Nobody has called.
    pub fn new() -> Self {
        Calls { called: AtomicBool::new(false), rang: AtomicU64::new(0), deadline: AtomicU64::new(u64::MAX) }
    }

    /// There is something to look at. Whoever calls has put it in place before, and rings the workers' bell afterwards.
    pub fn call(&self) {
        self.called.swap(true, Ordering::AcqRel);
    }

    /// The functions of these bits rang.
    pub fn ring(&self, functions: u64) {
        self.rang.fetch_or(functions, Ordering::AcqRel);
        self.call();
    }

    /// Whether a step is due at `now`. Who is told so owes it: the call is taken.
    pub fn due(&self, now: u64) -> bool {
        self.called.swap(false, Ordering::AcqRel) || now >= self.deadline()
    }

    /// Whether one of `functions` (a bit each) has rung, or something else has called, and no step has begun since.
    pub fn waiting(&self, functions: u64) -> bool {
        let rang = self.rang.load(Ordering::Acquire);
        rang & functions != 0 || rang == 0 && self.called.load(Ordering::Acquire)
    }

    /// Functions that rang since the last step, for the step that begins, which holds the GuC's lock.
    pub fn take_rang(&self) -> u64 {
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
