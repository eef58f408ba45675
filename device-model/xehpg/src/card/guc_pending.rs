// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Requests for GuC steps, caused by host notifications, engine reports and deadlines. Posting one takes no lock.

use crate::host::Function;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Requests that no GuC step has served yet.
pub struct GucPending {
    called: AtomicBool,
    /// Functions that have notified the GuC, one bit each.
    notified: AtomicU64,
    /// Functions (one bit each) with a mailbox request that was left to a step.
    mailboxes: AtomicU64,
    /// Functions (one bit each) for which a step was requested for another reason.
    behalf: AtomicU64,
    /// Latest time of the next step, in ns of the card's clock.
    deadline: AtomicU64,
}

impl Default for GucPending {
    fn default() -> Self {
        Self::new()
    }
}

impl GucPending {
    /// No requests, no deadline.
    pub fn new() -> Self {
        GucPending {
            called: AtomicBool::new(false),
            notified: AtomicU64::new(0),
            mailboxes: AtomicU64::new(0),
            behalf: AtomicU64::new(0),
            deadline: AtomicU64::new(u64::MAX),
        }
    }

    /// Requests a step on behalf of `functions` (one bit each). Ordering: the data that the step reads must be visible
    /// before the call. The caller must wake the workers afterwards.
    pub fn call(&self, functions: u64) {
        self.behalf.fetch_or(functions, Ordering::AcqRel);
        self.called.swap(true, Ordering::AcqRel);
    }

    /// Records a notification from `functions` (one bit each) and requests a step.
    pub fn notify(&self, functions: u64) {
        self.notified.fetch_or(functions, Ordering::AcqRel);
        self.called.swap(true, Ordering::AcqRel);
    }

    /// Leaves the mailbox request of `function`, which has notified the GuC, to the next step. Only such requests may be executed by
    /// a step: a driver writes the header first, so that without a notification the rest may be of the last request.
    pub fn leave_mailbox(&self, function: Function) {
        self.mailboxes.fetch_or(function.bit(), Ordering::AcqRel);
    }

    /// Returns and clears the functions whose mailbox request was left to a step.
    pub fn take_mailboxes(&self) -> u64 {
        self.mailboxes.swap(0, Ordering::AcqRel)
    }

    /// Returns whether a step is due at `now`, and clears the request. If true, the caller must run the step.
    pub fn due(&self, now: u64) -> bool {
        self.called.swap(false, Ordering::AcqRel) || now >= self.deadline()
    }

    /// Returns whether a step was requested on behalf of one of `functions` (one bit each) and none has begun since.
    pub fn waiting(&self, functions: u64) -> bool {
        (self.notified.load(Ordering::Acquire) | self.behalf.load(Ordering::Acquire)) & functions != 0
    }

    /// Returns and clears the set of functions that have notified the GuC since the last step. Must be called at the
    /// start of a step, with the GuC's lock held.
    pub fn take_notified(&self) -> u64 {
        self.behalf.swap(0, Ordering::AcqRel);
        self.notified.swap(0, Ordering::AcqRel)
    }

    /// Latest time of the next step; `u64::MAX` for none.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// Sets the deadline; the GuC's lock must be held. Returns whether it is earlier than the previous one.
    pub fn set_deadline(&self, at: Option<u64>) -> bool {
        let at = at.unwrap_or(u64::MAX);
        at < self.deadline.swap(at, Ordering::AcqRel)
    }
}
