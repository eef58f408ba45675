//! Work of register writes that a worker does, because it may ask the function's client for guest memory.
//!
//! A register access must not wait for a message of its own client ([`crate::world::DmaView::asks_client`]): the thread
//! that serves the access is the one that receives such messages.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::gt::Request;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Requests that may wait; further ones are carried out at once, and their accesses fail.
const MOST: usize = 256;

/// Requests in the order in which they came. One thread at a time carries them out, without a lock.
pub struct Deferred {
    queue: Mutex<VecDeque<Request>>,
    /// The queue has something.
    waiting: AtomicBool,
    /// A thread carries out a request.
    taken: AtomicBool,
}

impl Deferred {
    /// Nothing to do.
    pub fn new() -> Self {
        Deferred { queue: Mutex::default(), waiting: AtomicBool::new(false), taken: AtomicBool::new(false) }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves `request` to a worker; gives it back where too many wait.
    pub fn push(&self, request: Request) -> Result<(), Request> {
        let mut queue = self.queue();
        if queue.len() >= MOST {
            return Err(request);
        }
        queue.push_back(request);
        self.waiting.store(true, Ordering::Release);
        Ok(())
    }

    /// Carries out the next request, unless another thread is at one. Tells whether it did.
    pub fn next(&self, carry_out: impl FnOnce(Request)) -> bool {
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

    /// Drops everything: the card is reset.
    pub fn clear(&self) {
        self.queue().clear();
        self.waiting.store(false, Ordering::Release);
    }
}

/// The turn of one thread; also given back by one that panics.
struct Taken<'d>(&'d Deferred);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_carried_out_one_at_a_time_and_in_order() {
        let deferred = Deferred::new();
        for n in 0..MOST as u32 {
            deferred.push(Request::Reset(n)).unwrap();
        }
        assert_eq!(deferred.push(Request::StartGucDma), Err(Request::StartGucDma));
        for n in 0..10 {
            assert!(deferred.next(|request| {
                assert_eq!(request, Request::Reset(n));
                assert!(!deferred.next(|_| panic!("two at a time")));
                let _ = deferred.push(Request::StartGucDma);
            }));
        }
        deferred.clear();
        assert!(!deferred.next(|_| panic!("it is empty")));
    }
}
