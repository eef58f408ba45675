//! The card's workers: a call is never lost, nobody sleeps past it, and the engines' flags and locks let work through.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Mutex, MutexGuard};
use loom::thread;

use crate::card::bell::Bell;
use crate::card::calls::Calls;

pub const ALL: &[crate::Model] = &[
    ("workers::a_call_wakes_a_worker", a_call_wakes_a_worker),
    ("workers::two_callers_and_a_worker", two_callers_and_a_worker),
    ("workers::one_of_two_workers_hears_a_call", one_of_two_workers_hears_a_call),
    ("workers::a_step_calls_for_more", a_step_calls_for_more),
    ("workers::a_thread_attends_to_its_own_call", a_thread_attends_to_its_own_call),
    ("workers::a_sooner_deadline_is_told", a_sooner_deadline_is_told),
    ("workers::all_workers_stop", all_workers_stop),
];

/// What `Card` has to do with bell and calls; the GuC is a lock around the tails that it has seen.
struct Card {
    bell: Bell,
    calls: Calls,
    guc: Mutex<Guc>,
    /// Tails of two functions' rings, in guest memory: plain stores of a guest.
    tails: [AtomicU32; 2],
    stopping: AtomicBool,
    /// An engine has something to do.
    runnable: AtomicBool,
}

#[derive(Default)]
struct Guc {
    /// Tails at which the GuC has looked.
    seen: [u32; 2],
    /// A step has loaded the engine once.
    loaded: bool,
}

impl Card {
    fn new() -> Arc<Card> {
        Arc::new(Card {
            bell: Bell::new(),
            calls: Calls::new(),
            guc: Mutex::new(Guc::default()),
            tails: [AtomicU32::new(0), AtomicU32::new(0)],
            stopping: AtomicBool::new(false),
            runnable: AtomicBool::new(false),
        })
    }

    /// A guest writes its tail and rings the doorbell register.
    fn host(&self, function: usize) {
        self.tails[function].store(1, Ordering::Relaxed);
        self.calls.ring(1 << function);
        self.bell.ring();
    }

    fn guc(&self) -> MutexGuard<'_, Guc> {
        self.guc.lock().unwrap()
    }

    /// `Card::work`: true if something was done.
    fn work(&self) -> bool {
        if !self.calls.due(0) {
            return false;
        }
        let mut guc = self.guc();
        let rang = self.calls.take_rang();
        for function in 0..2 {
            if rang >> function & 1 != 0 {
                guc.seen[function] = self.tails[function].load(Ordering::Relaxed);
            }
        }
        true
    }

    /// `Card::run`, until `ends`.
    fn run(&self, ends: impl Fn(&Card) -> bool) {
        while !ends(self) {
            let seen = self.bell.rings();
            if self.work() {
                continue;
            }
            while self.bell.rings() == seen && !ends(self) {
                self.bell.sleep(seen, None);
            }
        }
    }
}

/// A worker looks for work and sleeps when there is none, while a host rings: the tail that was written before is seen.
fn a_call_wakes_a_worker() {
    let card = Card::new();
    let host = {
        let card = card.clone();
        thread::spawn(move || card.host(0))
    };
    card.run(|card| card.guc().seen[0] == 1);
    host.join().unwrap();
}

/// Two functions ring: one worker sees both tails, whichever step it is in.
fn two_callers_and_a_worker() {
    let card = Card::new();
    let hosts = [0, 1].map(|function| {
        let card = card.clone();
        thread::spawn(move || card.host(function))
    });
    card.run(|card| card.guc().seen == [1, 1]);
    hosts.into_iter().for_each(|host| host.join().unwrap());
}

/// Of two workers one takes the call; both get to their ends, as the first says when he is there.
fn one_of_two_workers_hears_a_call() {
    let card = Card::new();
    let ends = |card: &Card| card.stopping.load(Ordering::Acquire);
    let work = move |card: &Card| {
        while !ends(card) {
            let seen = card.bell.rings();
            if card.work() {
                if card.guc().seen[0] == 1 {
                    card.stopping.store(true, Ordering::Release);
                    card.bell.ring();
                }
                continue;
            }
            if card.bell.rings() == seen && !ends(card) {
                card.bell.sleep(seen, None);
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
}

/// A step of the GuC loads an engine and rings: the worker that had found nothing, and may sleep, is there to step it.
fn a_step_calls_for_more() {
    let card = Card::new();
    let guc = {
        let card = card.clone();
        thread::spawn(move || {
            card.host(0);
            if card.work() {
                card.runnable.store(true, Ordering::Release);
                card.bell.ring();
            }
        })
    };
    loop {
        let seen = card.bell.rings();
        if card.runnable.load(Ordering::Acquire) {
            break;
        }
        // It may be this worker who hears the host.
        if card.work() {
            break;
        }
        card.bell.sleep(seen, None);
    }
    guc.join().unwrap();
}

/// A thread that serves events does the step for its function itself and wakes nobody for it (`Card::attend_guc`), while a
/// worker hears another: whoever takes which call, both tails are seen.
fn a_thread_attends_to_its_own_call() {
    let card = Card::new();
    let host = {
        let card = card.clone();
        thread::spawn(move || card.host(0))
    };
    let events = {
        let card = card.clone();
        thread::spawn(move || {
            card.tails[1].store(1, Ordering::Relaxed);
            card.calls.ring(1 << 1);
            if card.work() && card.guc().seen[0] == 1 {
                // What the other function asked for is for the worker, as an engine that has been loaded would be.
                card.bell.ring();
            }
        })
    };
    card.run(|card| card.guc().seen[0] == 1);
    host.join().unwrap();
    events.join().unwrap();
    assert_eq!(card.guc().seen, [1, 1]);
}

/// A step that wants the next one at a time rings only where that is sooner than what sleepers know of: they hear of it.
fn a_sooner_deadline_is_told() {
    let card = Card::new();
    let guc = {
        let card = card.clone();
        thread::spawn(move || {
            for at in [7, 9, 5] {
                let _guc = card.guc();
                if card.calls.set_deadline(Some(at)) {
                    card.bell.ring();
                }
            }
        })
    };
    loop {
        let seen = card.bell.rings();
        // What this one would sleep until; the fake clock never gets there.
        if card.calls.deadline() == 5 {
            break;
        }
        card.bell.sleep(seen, None);
    }
    guc.join().unwrap();
}

/// `Card::stop` reaches everybody, before, in and after falling asleep.
fn all_workers_stop() {
    let card = Card::new();
    let workers = [(); 2].map(|()| {
        let card = card.clone();
        thread::spawn(move || card.run(|card| card.stopping.load(Ordering::Acquire)))
    });
    card.stopping.store(true, Ordering::Release);
    card.bell.ring();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}
