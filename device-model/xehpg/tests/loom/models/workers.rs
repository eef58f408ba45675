// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's workers: no notification is lost, no worker sleeps past one, and no runnable engine is left waiting.

use arctic_base::event_count::EventCount;
use arctic_xehpg::card::guc_pending::GucPending;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;

use super::check;

/// The parts of `Card` that use the event count and the pending notifications. The GuC is modelled as a lock around the
/// tails that it has read.
struct Card {
    event_count: EventCount,
    calls: GucPending,
    guc: Mutex<Guc>,
    /// Tails of two functions' rings in guest memory, written with relaxed stores.
    tails: [AtomicU32; 2],
    stopping: AtomicBool,
    /// An engine is runnable.
    runnable: AtomicBool,
}

#[derive(Default)]
struct Guc {
    /// Tails that the GuC has read.
    seen: [u32; 2],
}

impl Card {
    fn new() -> Arc<Card> {
        Arc::new(Card {
            event_count: EventCount::new(),
            calls: GucPending::new(),
            guc: Mutex::new(Guc::default()),
            tails: [AtomicU32::new(0), AtomicU32::new(0)],
            stopping: AtomicBool::new(false),
            runnable: AtomicBool::new(false),
        })
    }

    /// A guest writes its tail and notifies the GuC.
    fn host(&self, function: usize) {
        self.tails[function].store(1, Ordering::Relaxed);
        self.calls.notify(1 << function);
        self.event_count.post();
    }

    fn guc(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock().unwrap()
    }

    /// `Card::step`: returns true if a step was executed.
    fn work(&self) -> bool {
        if !self.calls.due(0) {
            return false;
        }
        let mut guc = self.guc();
        let notified = self.calls.take_notified();
        for function in 0..2 {
            if notified >> function & 1 != 0 {
                guc.seen[function] = self.tails[function].load(Ordering::Relaxed);
            }
        }
        true
    }

    /// `Card::run`, until `ends` returns true.
    fn run(&self, ends: impl Fn(&Card) -> bool) {
        while !ends(self) {
            let seen = self.event_count.posted();
            if self.work() {
                continue;
            }
            while self.event_count.posted() == seen && !ends(self) {
                self.event_count.wait(seen, None);
            }
        }
    }
}

/// A worker polls for work, and sleeps if there is none, while a host notifies the GuC. The worker reads the tail
/// that was written before the notification.
#[test]
fn doorbell_wakes_a_worker() {
    check(|| {
        let card = Card::new();
        let host = {
            let card = card.clone();
            thread::spawn(move || card.host(0))
        };
        card.run(|card| card.guc().seen[0] == 1);
        host.join().unwrap();
    });
}

/// Two functions notify the GuC: one worker reads both tails, regardless of the interleaving.
#[test]
fn two_callers_and_a_worker() {
    check(|| {
        let card = Card::new();
        let hosts = [0, 1].map(|function| {
            let card = card.clone();
            thread::spawn(move || card.host(function))
        });
        card.run(|card| card.guc().seen == [1, 1]);
        hosts.into_iter().for_each(|host| host.join().unwrap());
    });
}

/// A VMM without workers arms its waker when it has found no work. The waker is called for a notification that the VMM has not
/// found, and not for one that it has.
#[test]
fn an_armed_waker_is_called_for_work_that_was_not_found() {
    check(|| {
        let (card, calls) = (Card::new(), Arc::new(AtomicU32::new(0)));
        let waker = calls.clone();
        card.event_count.set_waker(Box::new(move || _ = waker.fetch_add(1, Ordering::Relaxed)));
        let host = {
            let card = card.clone();
            thread::spawn(move || card.host(0))
        };
        let mut found = false;
        let armed = loop {
            let seen = card.event_count.posted();
            if card.work() {
                found = true;
            } else if card.event_count.arm(seen) {
                break true;
            } else if found {
                break false;
            }
        };
        host.join().unwrap();
        // The wakeup of work that was found may come after the waker was armed.
        let calls = calls.load(Ordering::Relaxed);
        assert!(calls <= 1 && (found || calls == 1), "{calls} calls, armed: {armed}, found: {found}");
    });
}

/// One of two workers handles the notification; both terminate after that worker sets the stop flag.
#[test]
fn one_of_two_workers_handles_a_notification() {
    check(|| {
        let card = Card::new();
        let ends = |card: &Card| card.stopping.load(Ordering::Acquire);
        let work = move |card: &Card| {
            while !ends(card) {
                let seen = card.event_count.posted();
                if card.work() {
                    if card.guc().seen[0] == 1 {
                        card.stopping.store(true, Ordering::Release);
                        card.event_count.post();
                    }
                    continue;
                }
                if card.event_count.posted() == seen && !ends(card) {
                    card.event_count.wait(seen, None);
                }
            }
        };
        let workers = [(); 2].map(|()| {
            let card = card.clone();
            thread::spawn(move || work(&card))
        });
        card.host(0);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(card.guc().seen[0], 1);
    });
}

/// A step of the GuC loads an engine and posts a wakeup. The worker that found no work, and may be asleep, then steps
/// the engine.
#[test]
fn wakeup_of_a_guc_step_reaches_a_worker() {
    check(|| {
        let card = Card::new();
        let guc = {
            let card = card.clone();
            thread::spawn(move || {
                card.host(0);
                if card.work() {
                    card.runnable.store(true, Ordering::Release);
                    card.event_count.post();
                }
            })
        };
        loop {
            let seen = card.event_count.posted();
            if card.runnable.load(Ordering::Acquire) {
                break;
            }
            // This worker may handle the host's notification itself.
            if card.work() {
                break;
            }
            card.event_count.wait(seen, None);
        }
        guc.join().unwrap();
    });
}

/// A thread that handles events executes the step for its function itself and wakes no worker (`Card::poll_guc`), while
/// a worker handles another function. Both tails are read, regardless of which thread handles which notification.
#[test]
fn event_thread_executes_its_own_step() {
    check(|| {
        let card = Card::new();
        let host = {
            let card = card.clone();
            thread::spawn(move || card.host(0))
        };
        let events = {
            let card = card.clone();
            thread::spawn(move || {
                card.tails[1].store(1, Ordering::Relaxed);
                card.calls.notify(1 << 1);
                if card.work() && card.guc().seen[0] == 1 {
                    // Leaves the other function's work to the worker, as for a loaded engine.
                    card.event_count.post();
                }
            })
        };
        card.run(|card| card.guc().seen[0] == 1);
        host.join().unwrap();
        events.join().unwrap();
        assert_eq!(card.guc().seen, [1, 1]);
    });
}

/// A step that sets a deadline wakes sleeping workers if the deadline is earlier than the one until which they sleep.
#[test]
fn an_earlier_deadline_wakes_sleepers() {
    check(|| {
        let card = Card::new();
        let guc = {
            let card = card.clone();
            thread::spawn(move || {
                for at in [7, 9, 5] {
                    let _guc = card.guc();
                    if card.calls.set_deadline(Some(at)) {
                        card.event_count.post();
                    }
                }
            })
        };
        loop {
            let seen = card.event_count.posted();
            // The deadline until which this worker would sleep; the model has no time.
            if card.calls.deadline() == 5 {
                break;
            }
            card.event_count.wait(seen, None);
        }
        guc.join().unwrap();
    });
}

/// `Card::stop` stops each worker, whether it is called before, while or after the worker goes to sleep.
#[test]
fn all_workers_stop() {
    check(|| {
        let card = Card::new();
        let workers = [(); 2].map(|()| {
            let card = card.clone();
            thread::spawn(move || card.run(|card| card.stopping.load(Ordering::Acquire)))
        });
        card.stopping.store(true, Ordering::Release);
        card.event_count.post();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}
