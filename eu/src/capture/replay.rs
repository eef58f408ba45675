// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays of captures: the groups are executed one after the other, in the order in which the card has executed them, each by
//! turns of its threads as on the card.

use super::{ADDRESS, Capture, Comparison, EndPlace, EndReason, ReplayMemory};
use crate::exec::payload::Payload;
use crate::exec::{FaultKind, GroupStop, Host, Observer, Place, Program, Thread, Way, Workgroup};

/// Cost of the start of a thread.
const START_COST: u64 = 40;

/// Why a replay does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayStop {
    /// The budget of the step is used up.
    Budget,
    /// The walker has ended, for this reason.
    End(EndReason),
    /// A thread has executed as many instructions as it may.
    Limit(EndPlace),
    /// The observer has stopped a thread before an instruction. [`Replay::thread`] has it.
    Break(EndPlace),
}

/// Threads that have ended at an instruction that cannot be executed, as the card ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How many.
    pub count: u64,
    /// Where the first one was.
    pub place: EndPlace,
    /// Why.
    pub reason: FaultKind,
}

/// A captured walker that is executed again.
pub struct Replay<'c> {
    capture: &'c Capture,
    memory: ReplayMemory<'c>,
    program: Program,
    payload: Payload,
    threads: Workgroup,
    group: Option<[u32; 3]>,
    next: Option<[u32; 3]>,
    groups: u64,
    /// Instructions of the groups that have ended.
    instructions: u64,
    outside: u64,
    ended: Option<Ended>,
    end: Option<EndReason>,
}

impl<'c> Replay<'c> {
    /// Begins a replay. A thread may execute this number of instructions.
    pub fn new(capture: &'c Capture, host: Host, limit: u64) -> Replay<'c> {
        let launch = &capture.launch;
        let mut program = Program::new(0, launch.instruction_base, launch.registers, host);
        program.set_limit(launch.code_limit as usize);
        let count = launch.dispatch.threads as usize;
        let mut threads = Workgroup::new(count, launch.registers, launch.slm as usize);
        threads.set_limit(limit);
        Replay {
            memory: ReplayMemory::new(capture),
            program,
            payload: Payload::new(launch.dispatch.clone()),
            threads,
            group: None,
            next: launch.first.filter(|_| count != 0),
            groups: 0,
            instructions: 0,
            outside: 0,
            ended: None,
            end: None,
            capture,
        }
    }

    /// The code as far as it is decoded. Addresses of its instructions are relative to the instruction base.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// A thread of the group that is executed.
    pub fn thread(&self, number: u32) -> Option<&Thread> {
        self.threads.threads().get(number as usize)
    }

    /// The group that is executed; `None` between groups.
    pub fn group(&self) -> Option<[u32; 3]> {
        self.group
    }

    /// Number of groups of the range.
    pub fn total(&self) -> u64 {
        self.capture.launch.groups()
    }

    /// Groups that have ended.
    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// Instructions that were executed.
    pub fn instructions(&self) -> u64 {
        self.instructions + self.group.map_or(0, |_| self.threads.executed())
    }

    /// Accesses outside of a surface or of shared local memory, by groups that have ended.
    pub fn outside(&self) -> u64 {
        self.outside
    }

    /// Threads that have ended at an instruction that cannot be executed.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// The virtual address of an instruction of the program by its index; that of the kernel if there is none.
    pub fn address(&self, instruction: u32) -> u64 {
        let located = self.program.instructions.get(instruction as usize);
        let offset =
            located.map_or(self.capture.launch.kernel, |located| self.program.base.wrapping_add(located.address));
        self.capture.launch.instruction_base.wrapping_add(offset.into()) & ADDRESS
    }

    fn place(&self, place: &Place) -> EndPlace {
        let group = self.group.unwrap_or_default();
        EndPlace { group, thread: place.thread, address: self.address(place.instruction) }
    }

    /// Executes the walker until it stops, or until the step has cost `budget`. `before` is called for a thread that is executed, with
    /// the group, the number of the thread and the virtual address of the instruction; it returns true to stop before it.
    pub fn step<O: ReplayObserver>(&mut self, mut budget: u64, way: Way, observer: &mut O) -> ReplayStop {
        loop {
            if let Some(reason) = self.end {
                return ReplayStop::End(reason);
            }
            if budget == 0 {
                return ReplayStop::Budget;
            }
            if self.group.is_none() {
                let Some(group) = self.next else {
                    self.end = Some(EndReason::Complete);
                    continue;
                };
                self.begin(group);
                let count = u64::from(self.capture.launch.dispatch.threads);
                budget = budget.saturating_sub(count.saturating_mul(START_COST)).saturating_sub(self.slm_cost());
            }
            let group = self.group.unwrap_or_default();
            let before = self.threads.cost();
            let stop = {
                let mut each = Watch { observer, program: &self.program, group };
                self.threads.step(&self.program, &mut self.memory, budget, way, &mut each)
            };
            budget = budget.saturating_sub(self.threads.cost().wrapping_sub(before));
            let (place, reason) = match stop {
                GroupStop::End => {
                    self.groups += 1;
                    self.instructions += self.threads.executed();
                    self.outside += self.threads.outside().0;
                    self.group = None;
                    continue;
                }
                GroupStop::Budget => return ReplayStop::Budget,
                GroupStop::Deadlock(_) => {
                    let place = self.threads.place(&self.program);
                    self.end = Some(EndReason::Barrier(self.place(&place)));
                    continue;
                }
                GroupStop::Fetch(address) => {
                    // Decoding costs something, so that a step ends in any case.
                    budget = budget.saturating_sub(START_COST);
                    if self.program.extend(address, &mut self.memory).is_err() {
                        let place = self.threads.place(&self.program);
                        self.end = Some(EndReason::Fault(self.place(&place)));
                    }
                    continue;
                }
                GroupStop::Limit(place) => return ReplayStop::Limit(self.place(&place)),
                GroupStop::Break(place) => return ReplayStop::Break(self.place(&place)),
                GroupStop::Fault(place, fault) if fault.kind == FaultKind::Address => {
                    self.end = Some(EndReason::Fault(self.place(&place)));
                    continue;
                }
                GroupStop::Fault(place, fault) => (place, fault.kind),
                GroupStop::Exception(place, _) => match self.capture.launch.system_routine {
                    Some(address) => {
                        self.threads.enter_system_routine(place.thread, address);
                        continue;
                    }
                    None => (place, FaultKind::Exception),
                },
            };
            let at = self.place(&place);
            let ended = self.ended.get_or_insert(Ended { count: 0, place: at, reason });
            ended.count += 1;
            self.threads.end_thread(place.thread);
        }
    }

    fn begin(&mut self, group: [u32; 3]) {
        let launch = &self.capture.launch;
        self.next = launch.after(group);
        self.group = Some(group);
        let count = launch.dispatch.threads;
        self.threads.restart(count as usize);
        for (number, thread) in (0..count).zip(self.threads.threads_mut()) {
            self.payload.write(thread, group, number, number);
            thread.start_at(launch.kernel);
        }
    }

    /// Cost of the shared local memory of a group, which is cleared.
    fn slm_cost(&self) -> u64 {
        u64::from(self.capture.launch.slm) / 64
    }

    /// Compares memory with what the card has left.
    pub fn compare(&self) -> Comparison {
        self.memory.compare()
    }

    /// Bytes of memory as the replay has left them; `None` if the capture does not have them.
    pub fn memory(&mut self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.memory.peek(address, bytes)
    }
}

/// Sees the instructions of a replay.
pub trait ReplayObserver {
    /// An instruction is executed next by a thread of `group`: the one with this index in the program. Returns true to stop before it.
    fn before(&mut self, group: [u32; 3], number: u32, thread: &Thread, program: &Program, instruction: u32) -> bool;
}

/// Sees nothing.
impl ReplayObserver for () {
    fn before(&mut self, _: [u32; 3], _: u32, _: &Thread, _: &Program, _: u32) -> bool {
        false
    }
}

/// Passes the instructions of a group on.
struct Watch<'o, O> {
    observer: &'o mut O,
    program: &'o Program,
    group: [u32; 3],
}

impl<O: ReplayObserver> Observer for Watch<'_, O> {
    #[inline]
    fn before(&mut self, thread: &Thread, instruction: u32) -> bool {
        // The number of a thread of a walker is its hardware thread: sr0 has it. EU-032.
        let number = crate::exec::thread_number(thread.u32(crate::exec::thread::SR));
        self.observer.before(self.group, number, thread, self.program, instruction)
    }
}
