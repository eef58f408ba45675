// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of all groups by workers. A group belongs to one worker, which runs its threads in turns: each to the next barrier
//! or the end, or for a bounded number of instructions. Groups that wait for one another have their turns too, as many as the
//! card has places for.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Launch, payload};
use crate::exec::{FaultKind, GroupStop, Place, Program, ThreadStatus, Workgroup};

/// What a group costs until its worker looks at others: so much, and so much for each of its threads, the registers of which are
/// to stay in the caches of a core.
const STEP: u64 = 100_000;
const THREAD_STEP: u64 = 25_000;
/// Largest number of groups that a worker takes at once.
const MOST_GROUPS: u64 = 16;
/// Hardware threads of a dual subslice: a group has at most this many. EU-091.
pub(super) const SLOTS: u32 = 128;
/// Dual subslices of the card, and what each has of shared local memory and of barriers. EU-050, EU-091.
const SUBSLICES: u64 = 32;
const SUBSLICE_SLM: usize = 65536;
const SUBSLICE_BARRIERS: u64 = 32;
/// Largest number of workers.
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
    /// The threads of the launch have executed more instructions than the limit of all of them.
    Total,
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

/// A group that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Group.
    pub group: [u32; 3],
    /// What each of its threads does.
    pub threads: Vec<ThreadStatus>,
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
    /// After a hang, the groups that have begun and not ended; first the one of the outcome.
    pub unfinished: Vec<GroupStatus>,
}

/// State that the workers share.
struct Shared {
    /// Number of groups.
    total: u64,
    /// Number of workers.
    workers: u64,
    /// Groups that may be resident at once.
    resident: u64,
    /// First group that no worker has taken.
    next: AtomicU64,
    /// First place that no worker has taken.
    places: AtomicU64,
    /// Groups between two steps.
    parked: Mutex<VecDeque<Resident>>,
    stop: AtomicBool,
    instructions: AtomicU64,
    done: AtomicU64,
    outside: AtomicU64,
    first: Mutex<(Option<Outcome>, Option<Location>)>,
}

impl Shared {
    fn parked(&self) -> MutexGuard<'_, VecDeque<Resident>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> MutexGuard<'_, (Option<Outcome>, Option<Location>)> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Launch {
    /// Executes all groups. `progress` is called with the number of groups that have ended.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Report {
        let groups = self.groups();
        let total = groups.iter().fold(1, |total: u64, count| total.saturating_mul(u64::from(*count)));
        let resident = self.resident();
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if self.settings.workers == 0 { available } else { self.settings.workers };
        let workers = (workers.clamp(1, MOST_WORKERS) as u64).min(total).min(resident);
        let shared = Shared {
            total,
            workers,
            resident,
            next: AtomicU64::new(0),
            places: AtomicU64::new(0),
            parked: Mutex::default(),
            stop: AtomicBool::new(false),
            instructions: AtomicU64::new(0),
            done: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            first: Mutex::new((None, None)),
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|| self.work(&shared, progress));
            }
            self.work(&shared, progress);
        });
        let (outcome, first_outside) = shared.first.into_inner().unwrap_or_else(PoisonError::into_inner);
        let outcome = outcome.unwrap_or(Outcome::Complete);
        let mut unfinished = Vec::new();
        if let Outcome::Hang(_, Location { group, .. }) = &outcome {
            let parked = shared.parked.into_inner().unwrap_or_else(PoisonError::into_inner);
            unfinished.extend(parked.iter().map(|resident| resident.status(&self.code)));
            unfinished.sort_by_key(|status| (status.group != *group, [2, 1, 0].map(|axis| status.group[axis])));
        }
        Report {
            outcome,
            instructions: shared.instructions.into_inner(),
            groups: shared.done.into_inner(),
            outside: shared.outside.into_inner(),
            first_outside,
            unfinished,
        }
    }

    /// Groups that are resident at once: as many as the card has threads and shared local memory for, or fewer by the
    /// settings.
    pub fn resident(&self) -> u64 {
        let threads = u64::from(self.threads().max(1));
        // With 256 registers a thread has the place of two.
        let slots = if self.code.registers > 128 { SLOTS / 2 } else { SLOTS };
        let by_threads = u64::from(slots) / threads;
        let by_slm = (SUBSLICE_SLM / self.slm.max(1)) as u64;
        let by_barriers = if self.kernel.barriers > 0 { SUBSLICE_BARRIERS } else { u64::MAX };
        let most = SUBSLICES * by_threads.min(by_slm).min(by_barriers).max(1);
        match self.settings.resident {
            0 => most,
            // Each thread needs a place of its own in scratch and private memory.
            wanted => wanted.min(payload::HARDWARE_THREADS as u64 / threads).max(1),
        }
    }

    /// A worker: starts groups as long as there are places for them, and runs each for a step. Those that have not ended are
    /// parked, and go on when their turn comes, with any worker.
    fn work(&self, shared: &Shared, progress: &(dyn Fn(u64) + Sync)) {
        let mut share = Share::default();
        while !shared.stop.load(Ordering::Relaxed) {
            // If none is parked, each group that has not ended is with another worker, or was taken by it.
            let Some(mut resident) = self.begin(&mut share, shared).or_else(|| shared.parked().pop_front()) else {
                break;
            };
            let step = self.step(&mut resident);
            let executed = resident.state.executed();
            share.instructions += executed - resident.counted;
            resident.counted = executed;
            let outcome = match step {
                Step::Ends => {
                    self.note_outside(&resident, shared);
                    share.idle.push(resident);
                    share.done += 1;
                    if share.groups.is_empty() {
                        share.report(shared, progress);
                    }
                    continue;
                }
                Step::Continues if share.report(shared, progress) >= self.settings.total_limit => {
                    Outcome::Hang(Hang::Total, resident.location(resident.state.place(&self.code)))
                }
                Step::Continues => {
                    shared.parked().push_back(resident);
                    continue;
                }
                Step::Fails(outcome) => outcome,
            };
            self.note_outside(&resident, shared);
            shared.first().0.get_or_insert(outcome);
            shared.parked().push_back(resident);
            shared.stop.store(true, Ordering::Relaxed);
        }
        share.report(shared, progress);
    }

    /// Starts the next group, in the place of one that has ended or in a new one. `None` if there is no group or no place.
    fn begin(&self, share: &mut Share, shared: &Shared) -> Option<Resident> {
        if share.groups.is_empty() {
            share.take(shared);
        }
        let index = share.groups.next()?;
        let count = self.threads();
        let mut resident = match share.idle.pop() {
            Some(resident) => resident,
            None => {
                let place = share.places.next()?;
                let mut state = Workgroup::new(count as usize, self.code.registers, self.slm);
                state.set_limit(self.settings.limit);
                Resident { state, group: [0; 3], place, counted: 0 }
            }
        };
        let [width, height, _] = self.groups().map(u64::from);
        let group = [(index % width) as u32, (index / width % height) as u32, (index / width / height) as u32];
        resident.group = group;
        resident.counted = 0;
        resident.state.restart(self.threads_of(group) as usize);
        let first = (resident.place * u64::from(count)) as u32;
        for (number, thread) in (first..).zip(resident.state.threads_mut()) {
            self.start(thread, group, number - first, number & 0xfff);
        }
        Some(resident)
    }

    /// Runs a group for a bounded time.
    fn step(&self, resident: &mut Resident) -> Step {
        let mut memory = &self.space;
        let budget = STEP.max(THREAD_STEP * resident.state.threads().len() as u64);
        let stop = resident.state.step(&self.code, &mut memory, budget, self.settings.way, &mut ());
        let resident = &*resident;
        Step::Fails(match stop {
            GroupStop::End => return Step::Ends,
            // The code is there as a whole, and nothing stops a thread.
            GroupStop::Budget | GroupStop::Break(_) | GroupStop::Fetch(_) => return Step::Continues,
            GroupStop::Exception(place, _) => Outcome::Fault(FaultKind::Exception, resident.location(place)),
            GroupStop::Fault(place, fault) => Outcome::Fault(fault.kind, resident.location(place)),
            GroupStop::Limit(place) => Outcome::Hang(Hang::Limit, resident.location(place)),
            GroupStop::Deadlock(place) => Outcome::Hang(Hang::Barrier, resident.location(place)),
        })
    }

    /// Adds the accesses of a group outside of a surface to those of the launch.
    fn note_outside(&self, resident: &Resident, shared: &Shared) {
        let (outside, first_outside) = resident.state.outside();
        if let Some(place) = first_outside {
            shared.outside.fetch_add(outside, Ordering::Relaxed);
            shared.first().1.get_or_insert(resident.location(place));
        }
    }
}

/// What a worker has taken: consecutive groups, the results of which are often on the same cache lines, and places.
#[derive(Default)]
struct Share {
    /// Groups that have not begun, at most as many as the places.
    groups: Range<u64>,
    /// Places in which no group has been.
    places: Range<u64>,
    /// Places of groups that have ended.
    idle: Vec<Resident>,
    /// Instructions that were executed and groups that have ended since the last report.
    instructions: u64,
    /// See `instructions`.
    done: u64,
}

impl Share {
    /// Adds what was done to the counts of the launch, which all workers write. Returns the instructions of all.
    fn report(&mut self, shared: &Shared, progress: &(dyn Fn(u64) + Sync)) -> u64 {
        let done = std::mem::take(&mut self.done);
        if done > 0 {
            progress(shared.done.fetch_add(done, Ordering::Relaxed) + done);
        }
        let instructions = std::mem::take(&mut self.instructions);
        shared.instructions.fetch_add(instructions, Ordering::Relaxed) + instructions
    }

    /// Takes the next groups, fewer if few are left, and a place for each: a group that was taken can begin whatever the others
    /// wait for.
    fn take(&mut self, shared: &Shared) {
        let most = MOST_GROUPS.min(shared.resident / shared.workers);
        let wanted = |next: u64| ((shared.total - next) / (shared.workers * 2)).clamp(1, most);
        let has_groups = shared.next.load(Ordering::Relaxed) < shared.total;
        if has_groups && self.places.is_empty() && (self.idle.len() as u64) < most {
            let more = most - self.idle.len() as u64;
            self.places = take(&shared.places, shared.resident, |_| more);
        }
        let places = self.idle.len() as u64 + self.places.end - self.places.start;
        if places > 0 {
            self.groups = take(&shared.next, shared.total, |next| wanted(next).min(places));
        }
    }
}

/// Takes the next numbers below `end`, as many as `count` says of the first of them. None if there are no more.
fn take(next: &AtomicU64, end: u64, count: impl Fn(u64) -> u64) -> Range<u64> {
    let after = |first: u64| (first < end).then(|| end.min(first + count(first)));
    match next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after) {
        Ok(first) => first..after(first).unwrap_or(first),
        Err(_) => end..end,
    }
}

/// A group that has a place on the card.
struct Resident {
    state: Workgroup,
    group: [u32; 3],
    place: u64,
    /// Instructions that the launch has counted.
    counted: u64,
}

impl Resident {
    fn status(&self, code: &Program) -> GroupStatus {
        GroupStatus { group: self.group, threads: self.state.statuses(code).collect() }
    }

    fn location(&self, Place { thread, instruction, lane }: Place) -> Location {
        Location { group: self.group, thread, instruction, lane }
    }
}

/// What came of a step of a group.
enum Step {
    Ends,
    Continues,
    Fails(Outcome),
}
