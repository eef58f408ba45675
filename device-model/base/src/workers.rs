// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The threads that run a card.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::gpu::{Gpu, WorkStatus};

/// Maximum time until the next step is due for which a worker polls instead of sleeping, in nanoseconds.
const SLEEPLESS: u64 = 20_000;
/// Time for which a worker that has no more work polls for a wakeup before it sleeps: the host takes about as long to wake it, and
/// software often submits the next work as soon as it sees the end of the last.
const LINGER: Duration = Duration::from_micros(20);

/// The threads that run a card. Dropping this stops and joins them, and ends the card's own threads.
pub struct Workers {
    pool: Arc<Pool>,
    threads: Vec<JoinHandle<()>>,
}

struct Pool {
    gpu: Arc<dyn Gpu>,
    /// Held by the worker that polls for a wakeup, or until the next step is due.
    polling: Mutex<()>,
    stopping: AtomicBool,
}

impl Workers {
    /// Starts `count` worker threads, and the card's own threads. `names` is the beginning of their names; Linux shows 15
    /// bytes of a name.
    pub fn start(gpu: Arc<dyn Gpu>, count: usize, names: &str) -> io::Result<Self> {
        let pool = Pool { gpu: gpu.clone(), polling: Mutex::new(()), stopping: AtomicBool::new(false) };
        let mut workers = Workers { pool: Arc::new(pool), threads: Vec::new() };
        if let Some(own) = gpu.own_threads() {
            own.start_threads(names)?;
        }
        for n in 0..count {
            let pool = workers.pool.clone();
            workers.threads.push(thread::Builder::new().name(format!("{names}gt{n}")).spawn(move || pool.run())?);
        }
        Ok(workers)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.pool.stopping.store(true, Ordering::Release);
        self.pool.gpu.wakeups().post();
        if let Some(own) = self.pool.gpu.own_threads() {
            own.stop_threads();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Pool {
    /// Body of a worker thread: runs steps until [`Pool::stopping`] is set.
    fn run(&self) {
        while !self.stopping() {
            let seen = self.gpu.wakeups().posted();
            if let WorkStatus::Idle(until) = self.gpu.work() {
                self.wait(seen, until);
            }
        }
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn wait(&self, seen: u64, until: Option<u64>) {
        let wakeups = self.gpu.wakeups();
        let start = Instant::now();
        while wakeups.posted() == seen && !self.stopping() {
            let left = until.map(|until| until.saturating_sub(self.gpu.clock().now()));
            if left == Some(0) {
                return;
            }
            // A timer of the host expires 50 to 100 us late, and a wakeup takes time: one worker polls until then.
            if (start.elapsed() < LINGER || left.is_some_and(|left| left <= SLEEPLESS))
                && let Ok(_turn) = self.polling.try_lock()
            {
                thread::yield_now();
                continue;
            }
            wakeups.wait(seen, left.map(Duration::from_nanos));
        }
    }
}
