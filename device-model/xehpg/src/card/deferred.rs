// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register-write requests deferred to a worker, because they may have to request guest memory from the function's
//! client, or wait for a step that has requested it.
//!
//! A register access must not wait for a message from its own client ([`crate::host::DmaView::may_wait_for_client`]): deadlock,
//! because the thread that serves the access also receives those messages.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use crate::gt::SideEffect;
use crate::sync::IgnorePoison;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of deferred requests. Further requests are executed immediately, and their guest memory accesses
/// fail.
const MOST: usize = 256;

/// Deferred requests in order of arrival. One thread at a time executes them, without holding the queue's lock.
pub struct Deferred {
    queue: Mutex<VecDeque<SideEffect>>,
    /// The queue is not empty.
    waiting: AtomicBool,
    /// A thread is executing a request.
    taken: AtomicBool,
}

impl Deferred {
    /// An empty queue.
    pub fn new() -> Self {
        Deferred { queue: Mutex::default(), waiting: AtomicBool::new(false), taken: AtomicBool::new(false) }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<SideEffect>> {
        self.queue.lock().ignore_poison()
    }

    /// Defers `request` to a worker; returns it as the error if the queue is full.
    pub fn push(&self, request: SideEffect) -> Result<(), SideEffect> {
        let mut queue = self.queue();
        if queue.len() >= MOST {
            return Err(request);
        }
        queue.push_back(request);
        self.waiting.store(true, Ordering::Release);
        Ok(())
    }

    /// Executes the next request, unless another thread is executing one. Returns whether a request was executed.
    pub fn next(&self, carry_out: impl FnOnce(SideEffect)) -> bool {
        if !self.waiting.load(Ordering::Acquire) || self.taken.swap(true, Ordering::AcqRel) {
            return false;
        }
        let _taken = Taken(self);
        let next = {
            let mut queue = self.queue();
            let next = queue.pop_front();
            self.waiting.store(!queue.is_empty(), Ordering::Release);
            next
        };
        next.map(carry_out).is_some()
    }

    /// Removes all requests when the card is reset, and returns them.
    pub fn clear(&self) -> VecDeque<SideEffect> {
        let mut queue = self.queue();
        self.waiting.store(false, Ordering::Release);
        std::mem::take(&mut queue)
    }
}

/// Guard of the thread that executes a request. Clears `taken` on drop, also if the thread panics.
struct Taken<'d>(&'d Deferred);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    #[test]
    fn requests_are_carried_out_one_at_a_time_and_in_order() {
        let deferred = Deferred::new();
        for n in 0..MOST as u32 {
            deferred.push(SideEffect::Reset(n)).unwrap();
        }
        assert_eq!(deferred.push(SideEffect::StartGucDma), Err(SideEffect::StartGucDma));
        for n in 0..10 {
            assert!(deferred.next(|request| {
                assert_eq!(request, SideEffect::Reset(n));
                assert!(!deferred.next(|_| panic!("two requests executed concurrently")));
                let _ = deferred.push(SideEffect::StartGucDma);
            }));
        }
        assert_eq!(deferred.clear().len(), MOST);
        assert!(!deferred.next(|_| panic!("the queue must be empty")));
    }
}
