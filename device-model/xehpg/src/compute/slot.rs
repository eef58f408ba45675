// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Where the groups of a walker are executed: one group at a time, by one thread of the host. The engine has a slot of its own;
//! clusters that help it have further ones.

use arctic_eu::exec::memory::Memory;
use arctic_eu::exec::payload::Payload;
use arctic_eu::exec::profile::{Profile, Profiler};
use arctic_eu::exec::{FaultKind, GroupStop, Place, Program, SavedGroup, Way, Workgroup};
use arctic_eu::text;

use super::bases::ADDRESS;
use super::capture::CaptureJob;
use super::memory::{CapturingMemory, KernelMemory};
use super::replay::MessageReplay;
use super::report::{KernelPlace, Unexecuted, WalkerCounts};
use super::surfaces::Surfaces;
use super::walker::Walker;
use crate::memory::{Fault, Gam, Space};

/// Cost of the start of a thread: its registers are written.
const START_COST: u64 = 40;
/// Bytes of shared local memory that are cleared for a group at the cost of an instruction.
const SLM_BYTES_PER_COST: u64 = 64;
/// Numbers of hardware threads of a slot (EU-032): those of the largest group.
const THREADS: u32 = 128;

/// What all slots of a walker have in common.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub walker: &'a Walker,
    pub payload: &'a Payload,
    pub space: Space,
    /// Instructions are counted by class.
    pub profiled: bool,
}

/// Gives the groups of a walker, each once: its number in the order of the walker and its ids.
pub(super) trait Groups {
    fn next(&mut self) -> Option<(u64, [u32; 3])>;
}

/// Gives no group: those in flight go on to their end.
pub(super) struct NoGroup;

impl Groups for NoGroup {
    fn next(&mut self) -> Option<(u64, [u32; 3])> {
        None
    }
}

/// How the threads of a slot access memory.
pub(super) struct Accesses<'c> {
    /// Accesses may be messages to a function's client. Otherwise one that would be is not made: it is the fault of its instruction.
    pub messages: bool,
    /// Where it is recorded what they access.
    pub capture: Option<&'c mut CaptureJob>,
}

/// Why a slot does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlotStop {
    /// No group is in flight, and there is no other one.
    Idle,
    /// The budget is used up.
    Budget,
    /// An access was a message to a function's client.
    Message,
    /// All threads of the group that have not ended wait for a barrier that none of them will complete (EU-053).
    Deadlock,
    /// The instruction at this offset is not in the program.
    Fetch(u32),
    /// An access has failed. The thread has not executed the instruction.
    Fault(Fault, Option<Box<KernelPlace>>),
}

/// A group of a walker that is being executed, and how it is to be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    /// Its number in the order of the walker.
    pub number: u64,
    /// Its ids.
    pub group: [u32; 3],
}

/// A group in flight as it is saved.
#[derive(Clone)]
pub(super) struct SavedInFlight {
    pub group: InFlight,
    pub threads: SavedGroup,
    /// What a message that is executed again has done.
    pub replay: MessageReplay,
}

/// A slot.
pub(super) struct Slot {
    /// First hardware thread.
    first_thread: u32,
    /// The group in flight.
    pub flight: Option<InFlight>,
    /// Threads of the group in flight.
    threads: Workgroup,
    /// The group in flight, if it was restored and no step has been executed since: it goes on by the translated kernel.
    restored: Option<SavedGroup>,
    /// Instructions of the group in flight that are counted.
    counted: u64,
    surfaces: Box<Surfaces>,
    /// What it has executed and has not been taken.
    counts: WalkerCounts,
    /// Its instructions by class, as far as the walker was profiled and they have not been taken.
    pub profile: Option<Box<Profile>>,
    /// Instructions of its longest group.
    pub longest: u64,
    unexecuted: Option<Unexecuted>,
    deadlock: bool,
}

#[allow(clippy::arithmetic_side_effects, reason = "counts of 64 bits do not overflow")]
impl Slot {
    /// A slot without a group: the one with this number among those of a walker.
    pub fn new(number: u32, threads: Workgroup, surfaces: Box<Surfaces>) -> Slot {
        Slot {
            first_thread: number.wrapping_mul(THREADS),
            flight: None,
            threads,
            restored: None,
            counted: 0,
            surfaces,
            counts: WalkerCounts::default(),
            profile: None,
            longest: 0,
            unexecuted: None,
            deadlock: false,
        }
    }

    /// The slot's number among those of its walker: 0 is the engine's.
    pub fn number(&self) -> u32 {
        self.first_thread / THREADS
    }

    /// Goes on with a saved group, which has the shape of the walker's groups.
    pub fn restore(&mut self, saved: SavedInFlight) {
        self.flight = Some(saved.group);
        self.surfaces.replay = saved.replay;
        self.restored = Some(saved.threads);
    }

    /// Makes a restored group go on by the translated kernel. To be called before the slot runs.
    pub fn go_on(&mut self, program: &mut Program) {
        if let Some(group) = self.restored.take() {
            self.threads = group.into_group(program);
            self.counted = self.threads.executed();
        }
    }

    /// What is saved of the group in flight; `None` without one.
    pub fn save(&self, program: Option<&Program>) -> Option<SavedInFlight> {
        let group = self.flight?;
        let threads = self.restored.clone().or_else(|| Some(self.threads.save(program?)))?;
        Some(SavedInFlight { group, threads, replay: self.surfaces.replay.clone() })
    }

    /// Takes what it has executed since the last call.
    pub fn take_counts(&mut self) -> WalkerCounts {
        std::mem::take(&mut self.counts)
    }

    /// Takes the first instruction since the last call that was not executed.
    pub fn take_unexecuted(&mut self) -> Option<Unexecuted> {
        self.unexecuted.take()
    }

    /// Bytes of the host's memory that it has, about.
    pub fn host_bytes(&self) -> usize {
        let restored = self.restored.as_ref().map_or(0, SavedGroup::host_bytes);
        let profile = self.profile.as_ref().map_or(0, |_| size_of::<Profile>());
        let parts = [size_of::<Slot>(), self.surfaces.host_bytes(), self.threads.host_bytes(), restored, profile];
        parts.into_iter().fold(0, usize::saturating_add)
    }

    /// What other walkers can use.
    pub fn into_parts(self) -> (Workgroup, Box<Surfaces>) {
        (self.threads, self.surfaces)
    }

    /// The memory of its threads during a step.
    pub fn memory<'s, 'm>(&'s mut self, gam: &'s mut Gam<'m>, job: Job<'s>) -> KernelMemory<'s, 'm> {
        KernelMemory::new(gam, job.space, &job.walker.bases, &mut self.surfaces)
    }

    /// Executes groups until the slot stops, or has cost `left`, which is reduced; the last message can cost more.
    pub fn run(
        &mut self,
        job: Job<'_>,
        program: &Program,
        gam: &mut Gam<'_>,
        groups: &mut impl Groups,
        accesses: Accesses<'_>,
        left: &mut u64,
    ) -> SlotStop {
        let Accesses { messages, mut capture } = accesses;
        debug_assert!(self.restored.is_none(), "a restored group has no threads yet");
        let Job { walker, payload, space, profiled } = job;
        let mut memory = KernelMemory::new(gam, space, &walker.bases, &mut self.surfaces);
        memory.permit_messages(messages);
        loop {
            if memory.messages() != 0 {
                return SlotStop::Message;
            }
            let InFlight { group, .. } = match self.flight {
                Some(flight) => flight,
                None if *left == 0 => return SlotStop::Budget,
                None => {
                    let Some((number, group)) = groups.next() else { return SlotStop::Idle };
                    let count = walker.dispatch.threads;
                    self.threads.restart(count as usize);
                    for (number, thread) in (0..count).zip(self.threads.threads_mut()) {
                        payload.write(thread, group, number, self.first_thread + number);
                        thread.start_at(walker.kernel);
                    }
                    self.counts.threads += u64::from(count);
                    let slm = walker.slm as u64 / SLM_BYTES_PER_COST;
                    *left = left.saturating_sub(u64::from(count).saturating_mul(START_COST)).saturating_sub(slm);
                    (self.counted, self.deadlock) = (0, false);
                    *self.flight.insert(InFlight { number, group })
                }
            };
            if self.deadlock {
                return SlotStop::Deadlock;
            }
            let before = self.threads.cost();
            let profile = profiled.then(|| &mut **self.profile.get_or_insert_default());
            let stop = match capture.as_deref_mut() {
                None => step(&mut self.threads, program, &mut memory, *left, profile),
                Some(job) => {
                    let mut memory = CapturingMemory::new(&mut memory, job);
                    step(&mut self.threads, program, &mut memory, *left, profile)
                }
            };
            *left = left.saturating_sub(self.threads.cost().wrapping_sub(before));
            let executed = self.threads.executed();
            self.counts.instructions += executed.wrapping_sub(self.counted);
            self.counted = executed;
            self.counts.kinds = self.counts.kinds.each(self.threads.take_counts(), u64::wrapping_add);
            self.counts.remote_atomics += memory.take_remote_atomics();
            self.longest = self.longest.max(executed);
            let at = |place: &Place| Box::new(kernel_place(walker, program, group, place.thread, place.instruction));
            if let Some((count, place)) = self.threads.take_passed_over() {
                self.counts.passed_over += count;
                self.unexecuted.get_or_insert_with(|| Unexecuted { place: *at(&place), ended: None });
            }
            let (place, reason) = match stop {
                GroupStop::End => {
                    self.counts.groups += 1;
                    self.counts.outside += self.threads.outside().0;
                    self.flight = None;
                    continue;
                }
                GroupStop::Budget if memory.messages() == 0 => return SlotStop::Budget,
                GroupStop::Budget => return SlotStop::Message,
                GroupStop::Deadlock(_) => {
                    self.deadlock = true;
                    return SlotStop::Deadlock;
                }
                GroupStop::Fetch(address) => return SlotStop::Fetch(address),
                GroupStop::Fault(place, fault) => {
                    if let Some(memory_fault) = memory.take_fault() {
                        return SlotStop::Fault(memory_fault, Some(at(&place)));
                    }
                    (place, fault.kind)
                }
                GroupStop::Exception(place, _) => match walker.system_routine {
                    Some(address) => {
                        self.threads.enter_system_routine(place.thread, address);
                        continue;
                    }
                    None => (place, FaultKind::Exception),
                },
                // There is no limit and no observer.
                GroupStop::Limit(place) | GroupStop::Break(place) => (place, FaultKind::Unsupported),
            };
            self.unexecuted.get_or_insert_with(|| Unexecuted { place: *at(&place), ended: Some(reason) });
            self.counts.faults += 1;
            self.threads.end_thread(place.thread);
        }
    }

    /// Where the thread that has its turn is; `None` if no group is in flight.
    pub fn place(&self, walker: &Walker, program: &Program) -> Option<KernelPlace> {
        let InFlight { group, .. } = self.flight?;
        let place = self.threads.place(program);
        Some(kernel_place(walker, program, group, place.thread, place.instruction))
    }
}

/// Executes a group until it stops, or until the step has cost `budget`.
#[inline(always)]
fn step(
    threads: &mut Workgroup,
    program: &Program,
    memory: &mut dyn Memory,
    budget: u64,
    profile: Option<&mut Profile>,
) -> GroupStop {
    match profile {
        None => threads.step(program, memory, budget, Way::Fast, &mut ()),
        Some(profile) => threads.step(program, memory, budget, Way::Fast, &mut Profiler::new(program, profile)),
    }
}

/// Describes the place of a thread. Only for reports: it allocates.
#[cold]
fn kernel_place(walker: &Walker, program: &Program, group: [u32; 3], thread: u32, instruction: u32) -> KernelPlace {
    let located = program.instructions.get(instruction as usize);
    let offset = located.map_or(walker.kernel, |located| program.base.wrapping_add(located.address));
    let decoded = located.and_then(|located| located.instruction.as_ref());
    let text = decoded.and_then(|instruction| text::format(instruction, offset));
    KernelPlace {
        kernel: walker.kernel_address(),
        group,
        thread,
        address: walker.bases.instruction.wrapping_add(offset.into()) & ADDRESS,
        instruction: text.map_or_else(|| "no instruction".to_owned(), |text| text.trim().to_owned()),
    }
}
