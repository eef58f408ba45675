// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Atomic operations of a message that is executed again, because the client of a function has not answered one of its
//! accesses: those that were applied are not applied a second time.

use arctic_eu::exec::memory::Atomic;

use crate::memory::BegunAtomic;

/// Atomic operations of a message: one for each lane at most.
const MOST: usize = 32;

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtomicAccess {
    /// Virtual address.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    pub operation: Atomic,
    pub operands: [u64; 2],
}

/// Operations that were applied, with the values before.
///
/// A thread that has not been answered executes its message again before any other thread executes one. Otherwise, another
/// message with the same operations takes their results, as if it had been first; any other message ends the replay.
#[derive(Clone, Debug)]
pub(super) struct AtomicReplay {
    applied: [Option<(AtomicAccess, u64)>; MOST],
    /// Number of operations in `applied`.
    count: usize,
    /// Number of operations of the current execution of the message.
    position: usize,
    /// An access of the message was not answered.
    unanswered: bool,
    /// The operation whose access was not answered.
    pub begun: BegunAtomic,
}

impl Default for AtomicReplay {
    fn default() -> Self {
        let begun = BegunAtomic::default();
        AtomicReplay { applied: [None; MOST], count: 0, position: 0, unanswered: false, begun }
    }
}

impl AtomicReplay {
    /// The value before an operation that an earlier execution of the message has applied.
    #[inline]
    pub fn result(&mut self, access: &AtomicAccess) -> Option<u64> {
        if self.position >= self.count {
            return None;
        }
        match self.applied.get(self.position) {
            Some(Some((applied, old))) if applied == access => {
                self.position = self.position.saturating_add(1);
                Some(*old)
            }
            _ => {
                self.forget();
                None
            }
        }
    }

    /// Records an operation that was applied now, and the value before it.
    #[inline]
    pub fn record(&mut self, access: AtomicAccess, old: u64) {
        if let Some(next) = self.applied.get_mut(self.count) {
            *next = Some((access, old));
            self.count = self.count.saturating_add(1);
            self.position = self.count;
        }
    }

    /// Records that an access of the message was not answered.
    pub fn fail(&mut self) {
        self.unanswered = true;
    }

    /// Ends the execution of a message. It is to be executed again if an access was not answered, otherwise its operations
    /// are forgotten.
    #[inline]
    pub fn end_message(&mut self) {
        self.position = 0;
        if !std::mem::take(&mut self.unanswered) {
            self.forget();
        }
    }

    #[inline]
    fn forget(&mut self) {
        (self.count, self.position) = (0, 0);
        self.begun = BegunAtomic::default();
    }
}
