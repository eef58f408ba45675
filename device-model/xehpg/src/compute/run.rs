// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A walker in progress: its groups are executed one after the other, in steps that a budget of cost bounds.

use arctic_eu::exec::payload::Payload;
use arctic_eu::exec::{FaultKind, GroupStop, KindCounts, Place, Program, SavedGroup, Way, Workgroup};
use arctic_eu::text;

use super::bases::ADDRESS;
use super::memory::KernelMemory;
use super::replay::{MessageReplay, SavedReplay};
use super::surfaces::Surfaces;
use super::time::EuRates;
use super::unit::ComputeUnit;
use super::walker::{Walker, WalkerWords};
use crate::memory::{Fault, Gam, Space};

/// Cost of the start of a thread: its registers are written.
const START_COST: u64 = 40;
/// Bytes of shared local memory that are cleared for a group at the cost of an instruction.
const SLM_BYTES_PER_COST: u64 = 64;
/// Cost of reading and decoding code up to the next branch.
const DECODE_COST: u64 = 2_000;

/// Timestamps of a walker: CTX_TIMESTAMP and TIMESTAMP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time of the context.
    pub context: u32,
    /// Time of the card, low dword.
    pub card: u32,
}

/// What a walker has executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkerCounts {
    /// Groups that have ended.
    pub groups: u64,
    /// Threads that were started.
    pub threads: u64,
    /// Instructions.
    pub instructions: u64,
    /// Instructions by kind.
    pub kinds: KindCounts,
    /// Threads that have ended at an instruction that cannot be executed.
    pub faults: u64,
    /// Accesses outside of a surface or of shared local memory, which read 0 or are dropped (EU-044).
    pub outside: u64,
    /// Atomic operations that were executed as a read and a write, by messages to a function's client.
    pub remote_atomics: u64,
}

impl WalkerCounts {
    /// The sums.
    #[must_use]
    pub fn plus(self, other: WalkerCounts) -> WalkerCounts {
        self.each(other, u64::saturating_add)
    }

    fn each(self, other: WalkerCounts, of: fn(u64, u64) -> u64) -> WalkerCounts {
        WalkerCounts {
            groups: of(self.groups, other.groups),
            threads: of(self.threads, other.threads),
            instructions: of(self.instructions, other.instructions),
            kinds: self.kinds.each(other.kinds, of),
            faults: of(self.faults, other.faults),
            outside: of(self.outside, other.outside),
            remote_atomics: of(self.remote_atomics, other.remote_atomics),
        }
    }
}

/// Where a thread of a kernel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace {
    /// Virtual address of the kernel.
    pub kernel: u64,
    /// Group.
    pub group: [u32; 3],
    /// Thread of the group.
    pub thread: u32,
    /// Virtual address of the instruction.
    pub address: u64,
    /// The instruction, disassembled.
    pub instruction: String,
}

/// A thread that has ended at an instruction that cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedThread {
    /// Where.
    pub place: KernelPlace,
    /// Why.
    pub reason: FaultKind,
}

/// Result of a step of a walker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStop {
    /// All groups have ended.
    Done,
    /// The budget is used up.
    Budget,
    /// An access was a message to a function's client.
    Message,
    /// A group has ended, and the next one is not begun, as requested.
    Boundary,
    /// All threads of the group that have not ended wait for a barrier that none of them will complete (EU-053).
    Deadlock,
    /// An access has failed. The thread has not executed the instruction: the step can be repeated.
    Fault(Fault, Option<Box<KernelPlace>>),
}

/// Room that a walker takes while its context is on no engine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Of the host's memory, about.
    pub host: usize,
    /// When it is saved, at most.
    pub saved: usize,
}

impl Room {
    /// The sums.
    pub(super) fn plus(self, other: Room) -> Room {
        Room { host: self.host.saturating_add(other.host), saved: self.saved.saturating_add(other.saved) }
    }
}

/// Most bytes of a saved walker with groups of this shape.
pub(super) fn saved_bytes(threads: usize, registers: u32, slm: usize) -> usize {
    SavedGroup::most_bytes(threads, registers, slm).saturating_add(SavedReplay::MOST_BYTES)
}

/// A walker with a group in flight, apart from its command, which the context's image has, and from its code.
#[derive(Clone)]
pub(super) struct SavedRun {
    /// When the walker was begun.
    pub started: Times,
    /// Instructions of the longest group so far.
    pub longest: u64,
    /// Instructions of all groups so far.
    pub instructions: u64,
    /// What a message that is executed again has done.
    pub replay: MessageReplay,
    /// The group.
    pub group: SavedGroup,
}

/// A walker in progress. It can be parked between two steps, and goes on as if it had not been.
pub struct WalkerRun {
    walker: Walker,
    /// When the walker was begun.
    pub started: Times,
    payload: Payload,
    /// The translated kernel; `None` before the first step.
    program: Option<Program>,
    /// The group in flight.
    group: Option<[u32; 3]>,
    /// The next group to begin.
    next: Option<[u32; 3]>,
    /// Threads of the group in flight.
    threads: Workgroup,
    /// The group in flight, if it was restored and no step has been executed since: it goes on by the translated kernel.
    restored: Option<SavedGroup>,
    /// Instructions of the group in flight that are counted.
    counted: u64,
    /// Instructions of the longest group so far.
    longest: u64,
    /// Ticks of CTX_TIMESTAMP that [`WalkerRun::take_ticks`] has returned.
    ticks: u64,
    surfaces: Surfaces,
    counts: WalkerCounts,
    /// Those that [`WalkerRun::take_counts`] has returned.
    taken: WalkerCounts,
    ended: Option<EndedThread>,
    deadlock: bool,
}

#[allow(clippy::arithmetic_side_effects, reason = "counts of 64 bits do not overflow")]
impl WalkerRun {
    /// Begins a walker on the execution units of an engine.
    pub fn new(walker: Walker, started: Times, unit: &mut ComputeUnit) -> WalkerRun {
        let threads = unit.take_threads(walker.dispatch.threads as usize, walker.registers, walker.slm);
        WalkerRun {
            payload: Payload::new(walker.dispatch.clone()),
            program: None,
            group: None,
            next: walker.first,
            threads,
            restored: None,
            counted: 0,
            longest: 0,
            ticks: 0,
            surfaces: unit.take_surfaces(),
            counts: WalkerCounts::default(),
            taken: WalkerCounts::default(),
            ended: None,
            deadlock: false,
            walker,
            started,
        }
    }

    /// Goes on with the group in flight of a saved walker, which this walker begins with. Without effect if that group has another
    /// shape.
    pub(super) fn restore(&mut self, saved: SavedRun, rates: &EuRates) {
        let walker = &self.walker;
        let Some(first) = walker.first else { return };
        if saved.group.shape() != (walker.dispatch.threads as usize, walker.registers, walker.slm) {
            return;
        }
        (self.group, self.next) = (Some(first), walker.after(first));
        (self.started, self.longest) = (saved.started, saved.longest);
        self.counts.instructions = saved.instructions;
        self.taken = self.counts;
        self.ticks = rates.ticks(walker.dispatch.threads, saved.longest, saved.instructions);
        self.surfaces.replay = saved.replay;
        self.restored = Some(saved.group);
    }

    /// What is saved of a walker with a group in flight; `None` without one.
    pub(super) fn save(&self) -> Option<SavedRun> {
        self.group?;
        let group = self.restored.clone().or_else(|| Some(self.threads.save(self.program.as_ref()?)))?;
        let (longest, instructions) = (self.longest, self.counts.instructions);
        Some(SavedRun { started: self.started, longest, instructions, replay: self.surfaces.replay.clone(), group })
    }

    /// The walker.
    pub fn walker(&self) -> &Walker {
        &self.walker
    }

    /// What it has executed.
    pub fn counts(&self) -> WalkerCounts {
        self.counts
    }

    /// What it has executed since the last call.
    pub fn take_counts(&mut self) -> WalkerCounts {
        let before = std::mem::replace(&mut self.taken, self.counts);
        self.counts.each(before, u64::saturating_sub)
    }

    /// Ticks of CTX_TIMESTAMP since the last call, by the instructions that it has executed.
    pub fn take_ticks(&mut self, rates: &EuRates) -> u32 {
        let ticks = rates.ticks(self.walker.dispatch.threads, self.longest, self.counts.instructions);
        let before = std::mem::replace(&mut self.ticks, ticks);
        u32::try_from(ticks.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// Takes the first thread since the last call that has ended at an instruction that cannot be executed.
    pub fn take_ended(&mut self) -> Option<EndedThread> {
        self.ended.take()
    }

    /// Returns whether no group is in flight: then all that is left is in the command of [`WalkerRun::resume_words`].
    pub fn at_boundary(&self) -> bool {
        self.group.is_none()
    }

    /// The command that resumes the walker: at the group in flight, or at the next one.
    pub fn resume_words(&self, ticket: u64) -> WalkerWords {
        self.walker.resume_at(self.group.or(self.next), ticket)
    }

    /// The room that it takes while its context is on no engine.
    pub fn room(&self) -> Room {
        let code = self.program.as_ref().map_or(0, Program::host_bytes);
        let restored = self.restored.as_ref().map_or(0, SavedGroup::host_bytes);
        let host = [size_of::<WalkerRun>(), self.surfaces.host_bytes(), self.threads.host_bytes(), code, restored];
        let Walker { dispatch, registers, slm, .. } = &self.walker;
        Room {
            host: host.into_iter().fold(0, usize::saturating_add),
            saved: saved_bytes(dispatch.threads as usize, *registers, *slm),
        }
    }

    /// Gives what other walkers can use back to the execution units.
    pub fn release(self, unit: &mut ComputeUnit) {
        let WalkerRun { walker, program, threads, surfaces, .. } = self;
        unit.keep_surfaces(surfaces);
        if let Some(program) = program {
            unit.keep_program(walker.kernel, program);
        }
        unit.keep_threads(threads, walker.dispatch.threads as usize, walker.registers, walker.slm);
    }

    /// Executes the walker until it stops, or until the step has cost `budget`, in instructions; the last message can cost more.
    /// With `to_boundary` no further group is begun.
    pub fn step(
        &mut self,
        gam: &mut Gam<'_>,
        space: Space,
        unit: &mut ComputeUnit,
        budget: u64,
        to_boundary: bool,
    ) -> RunStop {
        let mut memory = KernelMemory::new(gam, space, &self.walker.bases, &mut self.surfaces);
        let program = match &mut self.program {
            Some(program) => program,
            none => none.insert(unit.take_program(&self.walker, &mut memory)),
        };
        if let Some(group) = self.restored.take() {
            self.threads = group.into_group(program);
            self.counted = self.threads.executed();
        }
        let mut left = budget;
        loop {
            if memory.messages() != 0 {
                return RunStop::Message;
            }
            let group = match (self.group, self.next) {
                (Some(group), _) => group,
                (None, None) => return RunStop::Done,
                (None, Some(_)) if to_boundary => return RunStop::Boundary,
                (None, Some(_)) if left == 0 => return RunStop::Budget,
                (None, Some(next)) => {
                    let count = self.walker.dispatch.threads;
                    self.threads.restart(count as usize);
                    for (number, thread) in (0..count).zip(self.threads.threads_mut()) {
                        self.payload.write(thread, next, number, number);
                        thread.start_at(self.walker.kernel);
                    }
                    self.counts.threads += u64::from(count);
                    let slm = self.walker.slm as u64 / SLM_BYTES_PER_COST;
                    left = left.saturating_sub(u64::from(count).saturating_mul(START_COST)).saturating_sub(slm);
                    (self.group, self.counted, self.deadlock) = (Some(next), 0, false);
                    self.next = self.walker.after(next);
                    next
                }
            };
            if self.deadlock {
                return RunStop::Deadlock;
            }
            let before = self.threads.cost();
            let stop = self.threads.step(program, &mut memory, left, Way::Fast, &mut ());
            left = left.saturating_sub(self.threads.cost().wrapping_sub(before));
            let executed = self.threads.executed();
            self.counts.instructions += executed.wrapping_sub(self.counted);
            self.counted = executed;
            self.counts.kinds = self.counts.kinds.each(self.threads.take_counts(), u64::wrapping_add);
            self.counts.remote_atomics += memory.take_remote_atomics();
            self.longest = self.longest.max(executed);
            let at = |place: &Place, program: &Program| {
                Box::new(kernel_place(&self.walker, program, group, place.thread, place.instruction))
            };
            let (place, reason) = match stop {
                GroupStop::End => {
                    self.counts.groups += 1;
                    self.counts.outside += self.threads.outside().0;
                    self.group = None;
                    continue;
                }
                GroupStop::Budget if memory.messages() == 0 => return RunStop::Budget,
                GroupStop::Budget => return RunStop::Message,
                GroupStop::Deadlock(_) => {
                    self.deadlock = true;
                    return RunStop::Deadlock;
                }
                GroupStop::Fetch(address) => {
                    left = left.saturating_sub(DECODE_COST);
                    if program.extend(address, &mut memory).is_err()
                        && let Some(fault) = memory.take_fault()
                    {
                        let place = self.threads.place(program);
                        return RunStop::Fault(fault, Some(at(&place, program)));
                    }
                    continue;
                }
                GroupStop::Fault(place, fault) => {
                    if let Some(memory_fault) = memory.take_fault() {
                        return RunStop::Fault(memory_fault, Some(at(&place, program)));
                    }
                    (place, fault.kind)
                }
                // There is no system routine, no limit and no observer.
                GroupStop::Exception(place, _) | GroupStop::Limit(place) | GroupStop::Break(place) => {
                    (place, FaultKind::Illegal)
                }
            };
            self.ended.get_or_insert_with(|| EndedThread { place: *at(&place, program), reason });
            self.counts.faults += 1;
            self.threads.end_thread(place.thread);
        }
    }

    /// Where the thread that has its turn is; `None` if no group is in flight.
    pub fn place(&self) -> Option<KernelPlace> {
        let (program, group) = (self.program.as_ref()?, self.group?);
        let place = self.threads.place(program);
        Some(kernel_place(&self.walker, program, group, place.thread, place.instruction))
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

impl std::fmt::Display for KernelPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KernelPlace { kernel, group: [x, y, z], thread, address, instruction } = self;
        write!(out, "the kernel at {kernel:#x}, group {x},{y},{z}, thread {thread}, at {address:#x}: {instruction}")
    }
}
