// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register-write requests deferred to a worker, because they may have to request guest memory from the function's
//! client, or wait for a step that has requested it.
//!
//! A register access must not wait for a message from its own client ([`crate::host::DmaView::may_wait_for_client`]): deadlock,
//! because the thread that serves the access also receives those messages.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::gt::SideEffect;
use crate::sync::IgnorePoison;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of deferred requests. A further access waits for a time, or its request is executed immediately, and its
/// accesses to guest memory fail.
const MOST: usize = 256;

/// Deferred requests in order of arrival. One thread at a time executes them, without holding the queue's lock.
pub struct Deferred {
    queue: Mutex<VecDeque<SideEffect>>,
    /// The queue is not empty.
    waiting: AtomicBool,
    /// A thread is executing a request.
    taken: AtomicBool,
    /// A request was removed from the queue.
    room: Condvar,
}

impl Deferred {
    /// An empty queue.
    pub fn new() -> Self {
        let (waiting, taken) = (AtomicBool::new(false), AtomicBool::new(false));
        Deferred { queue: Mutex::default(), waiting, taken, room: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<SideEffect>> {
        self.queue.lock().ignore_poison()
    }

    /// Defers `request` to a worker; returns it as the error if the queue is full.
    pub fn push(&self, request: SideEffect) -> Result<(), SideEffect> {
        self.push_within(request, Duration::ZERO)
    }

    /// As [`Deferred::push`], but waits at most for `limit` until the queue is no longer full. Must not be called by a
    /// thread that executes a request.
    pub fn push_within(&self, request: SideEffect, limit: Duration) -> Result<(), SideEffect> {
        let mut queue = self.queue();
        if !limit.is_zero() {
            (queue, _) = self.room.wait_timeout_while(queue, limit, |queue| queue.len() >= MOST).ignore_poison();
        }
        if queue.len() >= MOST {
            return Err(request);
        }
        queue.push_back(request);
        self.waiting.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns whether no request waits or is being executed.
    pub fn is_empty(&self) -> bool {
        !self.waiting.load(Ordering::Acquire) && !self.taken.load(Ordering::Acquire)
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
        self.room.notify_one();
        next.map(carry_out).is_some()
    }

    /// Removes all requests when the card is reset, and returns them.
    pub fn clear(&self) -> VecDeque<SideEffect> {
        let mut queue = self.queue();
        self.waiting.store(false, Ordering::Release);
        self.room.notify_all();
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

    /// A thread waits until a full queue has room, for a limited time, and its request is then the last.
    #[test]
    fn a_full_queue_is_waited_for() {
        let deferred = Deferred::new();
        for n in 0..MOST as u32 {
            deferred.push(SideEffect::Reset(n)).unwrap();
        }
        let last = SideEffect::StartGucDma;
        assert_eq!(deferred.push_within(last, Duration::from_millis(1)), Err(last));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| deferred.push_within(last, Duration::from_secs(60)));
            assert!(deferred.next(|request| assert_eq!(request, SideEffect::Reset(0))));
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
        assert_eq!(deferred.clear().back(), Some(&last));
    }
}
