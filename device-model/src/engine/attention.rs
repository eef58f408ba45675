//! Which engines have something to do, and when a waiting one is looked at again. Flags that workers read without a lock;
//! an engine's are changed with its lock held, but for the news that memory has changed.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// First and longest pause between two looks at a semaphore that is not satisfied, in nanoseconds.
const LOOK_AGAIN: (u64, u64) = (20_000, 1_000_000);

/// Counts the steps by which memory may have changed.
pub struct Changes(AtomicU64);

impl Changes {
    /// None so far.
    pub fn new() -> Self {
        Changes(AtomicU64::new(0))
    }

    /// How many there were: to be read before a look at memory.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Memory has changed: all of `waiting` are to be looked at at once.
    pub fn tell<'a>(&self, waiting: impl Iterator<Item = &'a Attention>) {
        self.0.fetch_add(1, Ordering::AcqRel);
        // Who is being put off at this moment sees the change, or his pause is ended here.
        fence(Ordering::SeqCst);
        for attention in waiting {
            attention.look_at.store(0, Ordering::Release);
        }
    }
}

/// What the workers have to know of one engine.
pub struct Attention {
    runnable: AtomicBool,
    /// When a waiting engine is looked at again (ns), and how long it waited for that.
    look_at: AtomicU64,
    pause: AtomicU64,
}

impl Attention {
    /// An engine that has nothing to do.
    pub fn new() -> Self {
        Attention { runnable: AtomicBool::new(false), look_at: AtomicU64::new(0), pause: AtomicU64::new(0) }
    }

    /// It has something to do at once, or nothing.
    pub fn set_runnable(&self, runnable: bool) {
        self.pause.store(0, Ordering::Relaxed);
        self.look_at.store(0, Ordering::Release);
        self.runnable.store(runnable, Ordering::Release);
    }

    /// Whether it has something to do.
    pub fn runnable(&self) -> bool {
        self.runnable.load(Ordering::Acquire)
    }

    /// Puts the next look off, longer each time, unless memory has changed since `changes` counted `seen`, which was
    /// before the last look; true for the first time in a row.
    pub fn put_off(&self, now: u64, changes: &Changes, seen: u64) -> bool {
        let last = self.pause.load(Ordering::Relaxed);
        let pause = if last == 0 { LOOK_AGAIN.0 } else { (last * 2).min(LOOK_AGAIN.1) };
        self.pause.store(pause, Ordering::Relaxed);
        self.look_at.store(now.saturating_add(pause), Ordering::Release);
        fence(Ordering::SeqCst);
        if changes.count() != seen {
            self.look_at.store(0, Ordering::Release);
        }
        last == 0
    }

    /// The next look is at `at` (ns) at the latest.
    pub fn look_by(&self, at: u64) {
        self.look_at.fetch_min(at, Ordering::AcqRel);
    }

    /// When it is to be stepped next if it is runnable, in ns of the card's clock.
    pub fn look_at(&self) -> u64 {
        self.look_at.load(Ordering::Acquire)
    }

    /// Whether its last look found that it has to wait for memory to change.
    pub fn waiting(&self) -> bool {
        self.pause.load(Ordering::Relaxed) != 0
    }
}
