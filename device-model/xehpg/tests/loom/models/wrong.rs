// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Known wrong orderings: models that must fail. If they do not, `arctic_base::sync` is not loom's, and the other models
//! prove nothing.

use std::panic::catch_unwind;

use arctic_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use loom::sync::Arc;
use loom::thread;

use super::explore;

/// Asserts that the wrong models fail, and the same models with the right ordering do not.
pub fn are_found() {
    is_found(|| message(Ordering::Release), || message(Ordering::Relaxed));
    is_found(|| wait_beside_post(true), || wait_beside_post(false));
}

fn is_found(right: fn(), wrong: fn()) {
    explore(right);
    assert!(catch_unwind(|| explore(wrong)).is_err(), "a known wrong ordering does not fail: is loom in use?");
}

#[test]
fn wrong_orderings_are_found() {
    are_found();
}

/// Passes a value by a flag that `publish` stores. The thread that finds the flag must find the value.
fn message(publish: Ordering) {
    let shared = Arc::new((AtomicU32::new(0), AtomicBool::new(false)));
    let sender = {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.0.store(1, Ordering::Relaxed);
            shared.1.store(true, publish);
        })
    };
    let (value, sent) = &*shared;
    let received = sent.load(Ordering::Acquire).then(|| value.load(Ordering::Relaxed));
    sender.join().unwrap();
    assert_ne!(received, Some(0), "known wrong ordering: the value is stale");
}

/// A copy of [`EventCount`](arctic_base::event_count::EventCount) without the lock. `post` has its fence only if
/// `fenced`. Either the thread that posts a wakeup must find the sleeper, or the sleeper the wakeup.
fn wait_beside_post(fenced: bool) {
    let shared = Arc::new((AtomicU64::new(0), AtomicUsize::new(0)));
    let poster = {
        let shared = shared.clone();
        thread::spawn(move || {
            let (posted, sleepers) = &*shared;
            posted.fetch_add(1, Ordering::AcqRel);
            if fenced {
                fence(Ordering::SeqCst);
            }
            sleepers.load(Ordering::Relaxed) != 0
        })
    };
    let (posted, sleepers) = &*shared;
    sleepers.fetch_add(1, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    let sleeps = posted.load(Ordering::Acquire) == 0;
    let woken = poster.join().unwrap();
    assert!(woken || !sleeps, "known wrong ordering: the wakeup is lost");
}
