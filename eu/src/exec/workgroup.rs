// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A group of threads with its shared local memory and barrier: plain data, stepped by a budget of cost. It can be parked at any
//! time, and goes on as if it had not been.

use super::environment::{Environment, Group, KindCounts};
use super::fault::Fault;
use super::memory::Memory;
use super::program::Program;
use super::thread::Thread;
use super::uop::Kind;
use super::{Budget, Observer, Stop, Way, run};

/// Cost of a thread until the next thread of its group has its turn: one may wait for what another stores.
const TURN: u64 = 10_000;

/// Why a group does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStop {
    /// All threads have ended.
    End,
    /// The budget is used up.
    Budget,
    /// The instruction at this address is not in the program: it goes on after [`Program::extend`].
    Fetch(u32),
    /// All threads that have not ended wait for a barrier that none of them will complete.
    Deadlock(Place),
    /// A thread has executed as many instructions as it may.
    Limit(Place),
    /// The observer has stopped a thread before an instruction.
    Break(Place),
    /// A thread has met an exception: it goes on at the address in cr0.2, after the system routine
    /// ([`Workgroup::enter_system_routine`]), or ends if there is none.
    Exception(Place, u32),
    /// An instruction of a thread cannot be executed.
    Fault(Place, Fault),
}

/// A thread of a group at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the thread.
    pub thread: u32,
    /// Index of the instruction in the program.
    pub instruction: u32,
    /// Lane, if it concerns one.
    pub lane: Option<u32>,
}

/// What a thread of a group does when the group is between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStatus {
    /// It executes instructions.
    Runs,
    /// It waits for the barrier.
    AtBarrier,
    /// It waits for the rows of the other thread of its pair (`dpasw`).
    AtPair,
    /// It has ended.
    Ended,
}

/// A group of threads. Threads run in turns, in ascending order: each to the barrier, to its end, or until its turn has cost
/// 10,000; where the budget of a step ends does not change the order.
#[derive(Clone)]
pub struct Workgroup {
    pub(super) threads: Vec<Thread>,
    /// Threads that take part: the first ones.
    count: usize,
    pub(super) ended: Vec<bool>,
    pub(super) shared: Group,
    /// Instructions that a thread may execute.
    limit: u64,
    /// Thread that has its turn.
    pub(super) current: usize,
    /// What its turn has cost.
    pub(super) turn: u64,
    /// Instructions that it had executed before its turn.
    pub(super) before: u64,
    /// A thread has executed something since the first one had its turn.
    pub(super) progress: bool,
    pub(super) cost: u64,
    pub(super) outside: u64,
    first_outside: Option<Place>,
    passed_over: u64,
    first_passed_over: Option<Place>,
    counts: KindCounts,
}

impl Workgroup {
    /// A group of `threads` threads with `registers` registers each and `slm` bytes of shared local memory. The state of each
    /// thread is written by [`super::payload::Payload::write`] to [`Workgroup::threads_mut`].
    pub fn new(threads: usize, registers: u32, slm: usize) -> Workgroup {
        Workgroup {
            threads: (0..threads).map(|_| Thread::new(registers, 0)).collect(),
            count: threads,
            ended: vec![false; threads],
            shared: Group { slm: vec![0; slm], ..Group::default() },
            limit: u64::MAX,
            current: 0,
            turn: 0,
            before: 0,
            progress: false,
            cost: 0,
            outside: 0,
            first_outside: None,
            passed_over: 0,
            first_passed_over: None,
            counts: KindCounts::default(),
        }
    }

    /// Sets the number of instructions that a thread may execute. Without it there is no limit.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Makes it the next group, with this number of threads, at most those that it was made with: shared local memory is 0
    /// (ISA-222), the barrier has no arrivals. The states of the threads are to be written.
    pub fn restart(&mut self, threads: usize) {
        self.count = threads.min(self.threads.len());
        self.ended.fill(false);
        self.shared.slm.fill(0);
        self.shared.arrived = 0;
        self.shared.completed = 0;
        self.shared.exchanges.clear();
        self.current = 0;
        self.turn = 0;
        self.before = 0;
        self.progress = false;
        self.cost = 0;
        self.outside = 0;
        self.first_outside = None;
        self.passed_over = 0;
        self.first_passed_over = None;
        self.counts = KindCounts::default();
    }

    /// The threads.
    pub fn threads(&self) -> &[Thread] {
        &self.threads[..self.count]
    }

    /// As [`Workgroup::threads`].
    pub fn threads_mut(&mut self) -> &mut [Thread] {
        &mut self.threads[..self.count]
    }

    /// Ends a thread, for example one that has met a fault. The others go on without it.
    pub fn end_thread(&mut self, thread: u32) {
        if let Some(ended) = self.ended.get_mut(thread as usize) {
            *ended = true;
            self.progress = true;
        }
    }

    /// Lets a thread that has met an exception go on in the system routine at this address, relative to the instruction base.
    pub fn enter_system_routine(&mut self, thread: u32, address: u32) {
        if let Some(thread) = self.threads.get_mut(thread as usize) {
            thread.enter_system_routine(address);
        }
    }

    /// Bytes of the host's memory that it has, about.
    pub fn host_bytes(&self) -> usize {
        self.threads.len() * (size_of::<Thread>() + super::thread::FILE_BYTES) + self.shared.slm.len()
    }

    /// Shared local memory and barrier.
    pub fn shared(&self) -> &Group {
        &self.shared
    }

    /// Instructions that the threads have executed.
    pub fn executed(&self) -> u64 {
        self.threads().iter().map(|thread| thread.executed).sum()
    }

    /// What the group has cost so far. See [`Budget`].
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Accesses outside of a surface or of shared local memory, and the first of them.
    pub fn outside(&self) -> (u64, Option<Place>) {
        (self.outside, self.first_outside)
    }

    /// Takes the number of instructions with an illegal opcode that threads have passed over since the last call, and the first of
    /// them.
    pub fn take_passed_over(&mut self) -> Option<(u64, Place)> {
        let count = std::mem::take(&mut self.passed_over);
        self.first_passed_over.take().map(|place| (count, place))
    }

    /// Takes the instructions by kind since the last call.
    pub fn take_counts(&mut self) -> KindCounts {
        std::mem::take(&mut self.counts)
    }

    /// Where the group is: the thread that has its turn, at its next instruction.
    pub fn place(&self, program: &Program) -> Place {
        let thread = self.current.min(self.count.saturating_sub(1));
        let instruction = self.threads.get(thread).map_or(0, |thread| program.instruction_of(thread.next));
        Place { thread: thread as u32, instruction, lane: None }
    }

    /// What each thread does.
    pub fn statuses(&self, program: &Program) -> impl Iterator<Item = ThreadStatus> {
        let threads = self.threads().iter().zip(&self.ended).enumerate();
        threads.map(|(number, (thread, ended))| {
            let exchange = self.shared.exchanges.get(number);
            match program.kind(thread.next) {
                _ if *ended => ThreadStatus::Ended,
                Some(Kind::Barrier) if thread.notifications == self.shared.completed => ThreadStatus::AtBarrier,
                Some(Kind::Dpasw) if exchange.is_some_and(|own| own.given > own.taken) => ThreadStatus::AtPair,
                _ => ThreadStatus::Runs,
            }
        })
    }

    /// Executes the group until it stops, or until the step has cost `budget`; the last message can cost more.
    pub fn step<O: Observer>(
        &mut self,
        program: &Program,
        memory: &mut dyn Memory,
        budget: u64,
        way: Way,
        observer: &mut O,
    ) -> GroupStop {
        let end = self.cost.saturating_add(budget);
        let mut environment = Environment::new(memory, &mut self.shared);
        loop {
            let Some(thread) = self.threads[..self.count].get_mut(self.current) else {
                // Each thread has had its turn.
                if self.ended[..self.count].iter().all(|ended| *ended) {
                    return GroupStop::End;
                }
                let waiting = self.ended.iter().position(|ended| !ended).unwrap_or(0);
                self.current = 0;
                self.turn = 0;
                self.before = self.threads[0].executed;
                if !std::mem::take(&mut self.progress) {
                    let instruction = program.instruction_of(self.threads[waiting].next);
                    return GroupStop::Deadlock(Place { thread: waiting as u32, instruction, lane: None });
                }
                continue;
            };
            let number = self.current as u32;
            let mut turn_ends = true;
            if !self.ended[self.current] {
                let left = end.saturating_sub(self.cost);
                if left == 0 {
                    return GroupStop::Budget;
                }
                let budget = Budget {
                    instructions: self.limit.saturating_sub(thread.executed),
                    cost: left.min(TURN.saturating_sub(self.turn)),
                };
                environment.group.current = number;
                let before = (thread.executed, environment.cost);
                let stop = run(program, thread, &mut environment, budget, way, observer);
                let cost = (thread.executed - before.0).saturating_add(environment.cost - before.1);
                self.cost = self.cost.saturating_add(cost);
                self.turn = self.turn.saturating_add(cost);
                self.counts = self.counts.each(std::mem::take(&mut environment.counts), u64::wrapping_add);
                self.outside += std::mem::take(&mut environment.outside);
                if let Some((instruction, lane)) = environment.first_outside.take() {
                    self.first_outside.get_or_insert(Place { thread: number, instruction, lane: Some(lane) });
                }
                if let Some(instruction) = environment.first_passed_over.take() {
                    self.passed_over += std::mem::take(&mut environment.passed_over);
                    self.first_passed_over.get_or_insert(Place { thread: number, instruction, lane: None });
                }
                self.progress |= thread.executed > self.before;
                let place = |instruction, lane| Place { thread: number, instruction, lane };
                match stop {
                    Stop::End => {
                        self.ended[self.current] = true;
                        self.progress = true;
                    }
                    Stop::Barrier => {}
                    Stop::Budget if thread.executed >= self.limit => {
                        return GroupStop::Limit(place(program.instruction_of(thread.next), None));
                    }
                    Stop::Budget => turn_ends = self.turn >= TURN,
                    Stop::Break => return GroupStop::Break(place(program.instruction_of(thread.next), None)),
                    Stop::Fetch(address) => return GroupStop::Fetch(address),
                    Stop::Exception(address) => {
                        return GroupStop::Exception(place(program.instruction_of(thread.next), None), address);
                    }
                    Stop::Fault(fault) => return GroupStop::Fault(place(fault.instruction, fault.lane), fault),
                }
            }
            if turn_ends {
                self.current += 1;
                self.turn = 0;
                self.before = self.threads.get(self.current).map_or(0, |thread| thread.executed);
            }
        }
    }
}
