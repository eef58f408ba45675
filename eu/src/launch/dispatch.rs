// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of all groups by workers. A group belongs to one worker, which runs its threads in turns: each to the next barrier
//! or the end, or for a bounded number of instructions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Launch;
use crate::exec::{FaultKind, GroupStop, Place, Workgroup};

/// What a group costs until its worker looks whether another one has failed.
const STEP: u64 = 1_000_000;
/// Hardware threads of a worker: a group has at most this many.
pub(super) const SLOTS: u32 = 128;
/// Workers with distinct hardware threads.
const MOST_WORKERS: usize = 32;

/// Place of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Group.
    pub group: [u32; 3],
    /// Thread in the group.
    pub thread: u32,
    /// Index of the instruction.
    pub instruction: u32,
    /// Lane.
    pub lane: Option<u32>,
}

/// A group that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// A thread has executed more instructions than the limit.
    Limit,
    /// All threads that have not ended wait for a barrier that no thread will complete.
    Barrier,
}

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All threads ended.
    Complete,
    /// An instruction could not be executed.
    Fault(FaultKind, Location),
    /// A group does not end.
    Hang(Hang, Location),
}

/// What a launch did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// Instructions that were executed.
    pub instructions: u64,
    /// Groups that ended.
    pub groups: u64,
    /// Accesses outside of a surface or of local memory.
    pub outside: u64,
    /// The first of them.
    pub first_outside: Option<Location>,
}

/// State that the workers share.
struct Shared {
    next: AtomicU64,
    stop: AtomicBool,
    instructions: AtomicU64,
    done: AtomicU64,
    outside: AtomicU64,
    first: Mutex<(Option<Outcome>, Option<Location>)>,
}

impl Launch {
    /// Executes all groups. `progress` is called with the number of groups that have ended.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Report {
        let groups = self.groups();
        let total = groups.iter().fold(1, |total: u64, count| total.saturating_mul(u64::from(*count)));
        let shared = Shared {
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            instructions: AtomicU64::new(0),
            done: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            first: Mutex::new((None, None)),
        };
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if self.settings.workers == 0 { available } else { self.settings.workers };
        let workers = workers.clamp(1, MOST_WORKERS).min(usize::try_from(total).unwrap_or(usize::MAX));
        std::thread::scope(|scope| {
            for worker in 1..workers {
                let shared = &shared;
                scope.spawn(move || self.work(worker as u32, total, shared, progress));
            }
            self.work(0, total, &shared, progress);
        });
        let (outcome, first_outside) = shared.first.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Report {
            outcome: outcome.unwrap_or(Outcome::Complete),
            instructions: shared.instructions.into_inner(),
            groups: shared.done.into_inner(),
            outside: shared.outside.into_inner(),
            first_outside,
        }
    }

    /// A worker: takes groups until none is left.
    fn work(&self, worker: u32, total: u64, shared: &Shared, progress: &(dyn Fn(u64) + Sync)) {
        let [width, height, _] = self.groups().map(u64::from);
        let count = self.threads();
        let mut state = Workgroup::new(count as usize, self.code.registers, self.slm);
        state.set_limit(self.settings.limit);
        while !shared.stop.load(Ordering::Relaxed) {
            let index = shared.next.fetch_add(1, Ordering::Relaxed);
            if index >= total {
                return;
            }
            let group = [(index % width) as u32, (index / width % height) as u32, (index / width / height) as u32];
            state.restart(self.threads_of(group) as usize);
            for (number, thread) in (0..).zip(state.threads_mut()) {
                self.start(thread, group, number, (worker * SLOTS + number) & 0xfff);
            }
            let outcome = self.group(&mut state, group, shared);
            shared.instructions.fetch_add(state.executed(), Ordering::Relaxed);
            match outcome {
                None => {
                    let done = shared.done.fetch_add(1, Ordering::Relaxed) + 1;
                    progress(done);
                }
                Some(outcome) => {
                    let mut first = shared.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    first.0.get_or_insert(outcome);
                    shared.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Runs a group to its end. Returns how it failed.
    fn group(&self, state: &mut Workgroup, group: [u32; 3], shared: &Shared) -> Option<Outcome> {
        let location = |place: Place| {
            let Place { thread, instruction, lane } = place;
            Location { group, thread, instruction, lane }
        };
        let mut memory = &self.space;
        let outcome = loop {
            match state.step(&self.code, &mut memory, STEP, self.settings.way, &mut ()) {
                GroupStop::End => break None,
                GroupStop::Budget if shared.stop.load(Ordering::Relaxed) => break None,
                // The code is there as a whole, and nothing stops a thread.
                GroupStop::Budget | GroupStop::Break(_) | GroupStop::Fetch(_) => {}
                GroupStop::Exception(place, _) => break Some(Outcome::Fault(FaultKind::Illegal, location(place))),
                GroupStop::Fault(place, fault) => break Some(Outcome::Fault(fault.kind, location(place))),
                GroupStop::Limit(place) => break Some(Outcome::Hang(Hang::Limit, location(place))),
                GroupStop::Deadlock(place) => break Some(Outcome::Hang(Hang::Barrier, location(place))),
            }
        };
        let (outside, first_outside) = state.outside();
        if let Some(place) = first_outside {
            shared.outside.fetch_add(outside, Ordering::Relaxed);
            let mut first = shared.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.1.get_or_insert(location(place));
        }
        outcome
    }
}
