// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interpreter: translation of code to micro-operations, and their execution by threads.
//!
//! An instruction is decoded once. Operations on lanes have a function for each operation and number of lanes, that works on
//! 32-bit lanes; rare types, modes and conditions go through a general way, lane by lane. Instructions are executed
//! in the order of the program, messages included, which is a legal result of every program with a correct scoreboard
//! (ISA-005).

mod atomic;
mod classify;
mod condition;
mod control;
mod dpas;
mod environment;
mod fault;
mod general;
mod image;
mod lanes;
pub mod memory;
mod message;
mod mips;
mod operand;
pub mod payload;
pub mod profile;
mod program;
mod saved;
mod spans;
mod surface;
#[allow(missing_docs, reason = "offsets of registers in the file, named like the registers")]
pub mod thread;
mod translate;
mod uop;
mod workgroup;

pub use environment::{Environment, Exchange, Group, KindCounts, MessageKind};
pub use fault::{AccessKind, Fault, FaultAccess, FaultKind, MemoryFault};
pub use lanes::{Host, Operation};
pub use message::thread_number;
pub use program::{CODE_LIMIT, Fetch, Program};
pub use saved::SavedGroup;
pub use thread::Thread;
pub use translate::Located;
pub use uop::Kind;
pub use workgroup::{GroupStop, Place, ThreadStatus, Workgroup};

use crate::isa::table::{Execute, LaneOp};
use uop::{LaneFunction, Uop};

/// Why a thread does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has ended.
    End,
    /// It waits for the barrier, or for the other thread of its pair.
    Barrier,
    /// The budget is used up.
    Budget,
    /// It has reached the instruction at which it was to stop.
    Break,
    /// It comes to code at this address, relative to the instruction base, that is not decoded: it goes on after
    /// [`Program::extend`].
    Fetch(u32),
    /// It has met an exception, which cr0.1 says; this address, relative to the instruction base, is in cr0.2. It goes on in the
    /// system routine ([`Thread::enter_system_routine`]).
    Exception(u32),
    /// An instruction cannot be executed.
    Fault(Fault),
}

/// How far a thread is executed: at most so many instructions, and until they have cost so much. A thread that has cost its
/// budget stops before the next instruction, so the last one can cost more.
///
/// The cost is counted in instructions: 1 for one that is executed on all lanes at once; 8 for each lane of one that is executed
/// lane by lane; 8 for each multiplication of rows of a product of matrices; [`MESSAGE_COST`] and the number of lanes for a
/// message, and what its accesses have cost in addition ([`memory::Memory::take_cost`]); 100 for an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Instructions.
    pub instructions: u64,
    /// Cost.
    pub cost: u64,
}

/// Cost of a message without its lanes and accesses.
pub const MESSAGE_COST: u64 = 4;

/// Cost of an exception: the thread stops, and its next instruction is found by its address.
const EXCEPTION_COST: u64 = 100;
/// Cost of a lane of an operation that is executed lane by lane.
const LANE_COST: u64 = 8;
/// Cost of a step of the depth of a row of a product of matrices.
const PRODUCT_COST: u64 = 8;

/// What an instruction that is no message costs beyond 1. It does not depend on [`Way`], so that the turns of threads do not.
fn extra_cost(thread: &Thread, uop: &Uop) -> u64 {
    match uop.kind {
        Kind::General | Kind::Movi => LANE_COST * u64::from(uop.size),
        Kind::Floats(function) if float_function(thread, uop, function).is_none() => LANE_COST * u64::from(uop.size),
        Kind::Dpas(_) | Kind::Dpasw => PRODUCT_COST * u64::from(uop.depth) * u64::from(uop.repeat),
        _ => 0,
    }
}

/// The function of an operation on floats in the thread's mode; `None` for the general way.
#[inline(always)]
fn float_function(thread: &Thread, uop: &Uop, plain: LaneFunction) -> Option<LaneFunction> {
    if thread.plain_floats {
        return Some(plain);
    }
    uop.toward_zero.filter(|_| thread.truncates_floats)
}

impl Budget {
    /// At most so many instructions, whatever they cost.
    pub fn instructions(instructions: u64) -> Budget {
        Budget { instructions, cost: u64::MAX }
    }

    /// So much cost.
    pub fn cost(cost: u64) -> Budget {
        Budget { instructions: u64::MAX, cost }
    }
}

/// Observer of executed instructions. The default does nothing and costs nothing. An instruction at which a thread stops for a
/// barrier or for code that is not decoded comes again.
pub trait Observer {
    /// Called before each instruction. Returns true to stop before it.
    #[inline(always)]
    fn before(&mut self, _thread: &Thread, _instruction: u32) -> bool {
        false
    }

    /// Called after each instruction that was executed. Not called for one that ends the thread with a fault, and for one that
    /// comes again.
    #[inline(always)]
    fn executed(&mut self, _thread: &Thread, _instruction: u32) {}
}

impl Observer for () {}

/// Which way operations on lanes are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the functions for all lanes, where there is one.
    Fast,
    /// Lane by lane, on exact integers and with floats of all modes.
    General,
}

/// Executes a thread until it stops or has used up the budget.
pub fn run<O: Observer>(
    code: &Program,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
    budget: Budget,
    way: Way,
    observer: &mut O,
) -> Stop {
    let mut sent = 0;
    let stop = match way {
        Way::Fast => run_counted::<O, true>(code, thread, environment, budget, observer, &mut sent),
        Way::General => run_counted::<O, false>(code, thread, environment, budget, observer, &mut sent),
    };
    // Each message is of one kind, and costs its channels beyond a constant.
    let counts = &mut environment.counts;
    let messages: u64 = counts.accesses.iter().sum();
    let new = messages.wrapping_sub(std::mem::replace(&mut counts.messages, messages));
    counts.channels += sent.wrapping_sub(new.wrapping_mul(MESSAGE_COST - 1));
    environment.cost = environment.cost.saturating_add(sent);
    stop
}

/// As [`run`]. The messages and their channels are not counted, and what they cost without their accesses is added to `sent`.
#[inline(always)]
fn run_counted<O: Observer, const FAST: bool>(
    code: &Program,
    thread: &mut Thread,
    environment: &mut Environment<'_>,
    budget: Budget,
    observer: &mut O,
    sent: &mut u64,
) -> Stop {
    let most = thread.executed.saturating_add(budget.instructions);
    // The number of executed instructions at which the cost is used up, if no message follows.
    let mut paid = thread.executed.saturating_add(budget.cost);
    let mut end = most.min(paid);
    if let Some(stop) = redirected(code, thread) {
        return stop;
    }
    loop {
        let mut uops = code.uops.get(thread.next as usize..).unwrap_or_default().iter();
        let mut left = end.saturating_sub(thread.executed);
        let uop = loop {
            let Some(uop) = uops.next() else {
                return Stop::Fault(Fault { kind: FaultKind::End, instruction: 0, lane: None, access: None });
            };
            // What most instructions are, as long as they follow one another.
            let function = match &uop.kind {
                Kind::Lanes(function) if FAST => *function,
                Kind::Floats(plain) if FAST => match float_function(thread, uop, *plain) {
                    Some(function) => function,
                    None => break uop,
                },
                Kind::Send(message) => {
                    if left == 0 {
                        return Stop::Budget;
                    }
                    if observer.before(thread, uop.instruction) {
                        return Stop::Break;
                    }
                    thread.executed += 1;
                    let result = message.execute(uop, thread, environment);
                    *sent += message.cost;
                    let mut cost = message.cost;
                    let accesses = environment.memory.take_cost();
                    if accesses != 0 {
                        environment.cost = environment.cost.saturating_add(accesses);
                        cost = cost.saturating_add(accesses);
                    }
                    environment.counts.accesses[message.message_kind(thread, uop.size) as usize] += 1;
                    if let Err(fault) = result {
                        return stop_of_message(&fault, uop);
                    }
                    observer.executed(thread, uop.instruction);
                    if message.eot {
                        return Stop::End;
                    }
                    thread.next += 1;
                    if budget.cost != u64::MAX {
                        paid = paid.saturating_sub(cost);
                        end = most.min(paid);
                    }
                    left = end.saturating_sub(thread.executed);
                    continue;
                }
                _ => break uop,
            };
            if left == 0 {
                return Stop::Budget;
            }
            if observer.before(thread, uop.instruction) {
                return Stop::Break;
            }
            left -= 1;
            thread.executed += 1;
            function(thread, uop);
            observer.executed(thread, uop.instruction);
            thread.next += 1;
        };
        if let Kind::Control(control) = &uop.kind {
            if thread.executed >= end {
                return Stop::Budget;
            }
            if observer.before(thread, uop.instruction) {
                return Stop::Break;
            }
            thread.executed += 1;
            if let Err(control::NotDecoded(address)) = control::execute(*control, thread, uop, code) {
                thread.executed -= 1;
                return Stop::Fetch(address);
            }
            environment.counts.control += 1;
            observer.executed(thread, uop.instruction);
            continue;
        }
        if uop.kind.is_link() {
            match uop.kind {
                Kind::Fetch { address, .. } => return Stop::Fetch(address),
                Kind::Rejoin => thread.rejoin(thread.next),
                _ => {}
            }
            thread.next = uop.jip;
            continue;
        }
        if thread.executed >= end {
            return Stop::Budget;
        }
        if observer.before(thread, uop.instruction) {
            return Stop::Break;
        }
        thread.executed += 1;
        let extra = extra_cost(thread, uop);
        if extra != 0 {
            environment.cost = environment.cost.saturating_add(extra);
            if budget.cost != u64::MAX {
                paid = paid.saturating_sub(extra);
                end = most.min(paid);
            }
        }
        match &uop.kind {
            Kind::Lanes(_) | Kind::Floats(_) | Kind::General => {
                general(code, thread, uop);
                observer.executed(thread, uop.instruction);
                thread.next += 1;
                if uop.writes_state && thread.exceptions {
                    let located = &code.instructions[uop.instruction as usize];
                    let next = code.base.wrapping_add(located.address).wrapping_add(located.length);
                    if let Some(address) = thread.control_written(next) {
                        environment.cost = environment.cost.saturating_add(EXCEPTION_COST);
                        return Stop::Exception(address);
                    }
                    if let Some(stop) = redirected(code, thread) {
                        return stop;
                    }
                }
            }
            Kind::Barrier => {
                if !message::gateway::notified(thread, environment.group) {
                    thread.executed -= 1;
                    return Stop::Barrier;
                }
                environment.counts.barriers += 1;
                observer.executed(thread, uop.instruction);
                thread.next += 1;
            }
            Kind::Dpas(_) | Kind::Dpasw if uop.chained && code.is_overwritten(uop, thread.next + 1) => {
                environment.counts.products += 1;
                observer.executed(thread, uop.instruction);
                thread.next += 1;
            }
            Kind::Dpas(function) => {
                function(thread, uop);
                environment.counts.products += 1;
                observer.executed(thread, uop.instruction);
                thread.next += 1;
            }
            Kind::Dpasw => {
                if !dpas::wide(thread, uop, environment.group) {
                    thread.executed -= 1;
                    return Stop::Barrier;
                }
                environment.counts.products += 1;
                observer.executed(thread, uop.instruction);
                thread.next += 1;
            }
            // ISA-123: each lane has an address of its own, as in a move of one-element rows.
            Kind::Movi => {
                general::execute(thread, uop, LaneOp::Mov, 1, 0);
                observer.executed(thread, uop.instruction);
                thread.next += 1;
            }
            Kind::Send(_) | Kind::Control(_) | Kind::Rejoin | Kind::Jump | Kind::Fetch { .. } => {}
            Kind::Fault(kind) if thread.exceptions && kind.is_illegal_opcode() => {
                let address = code.base.wrapping_add(code.instructions[uop.instruction as usize].address);
                if thread.meet_illegal(address) {
                    environment.cost = environment.cost.saturating_add(EXCEPTION_COST);
                    return Stop::Exception(address);
                }
                environment.note_passed_over(uop.instruction);
                thread.next += 1;
            }
            Kind::Fault(kind) => {
                return Stop::Fault(Fault { kind: *kind, instruction: uop.instruction, lane: None, access: None });
            }
        }
    }
}

/// The stop of a thread by a fault of a message.
#[cold]
fn stop_of_message(fault: &message::MessageFault, uop: &Uop) -> Stop {
    let place = fault.place();
    Stop::Fault(Fault { kind: place.kind, instruction: uop.instruction, lane: place.lane, access: place.access })
}

/// Lets a thread go on where it is to: at the uop of that address, or after a stop if there is none yet.
#[inline]
fn redirected(code: &Program, thread: &mut Thread) -> Option<Stop> {
    let address = thread.redirect?;
    match code.find(i64::from(address) - i64::from(code.base), false) {
        Some(next) => {
            thread.next = next;
            thread.redirect = None;
            None
        }
        None => Some(Stop::Fetch(address)),
    }
}

/// An operation in the general way, with the registers that change by themselves. ISA-084, ISA-088.
#[inline(never)]
fn general(code: &Program, thread: &mut Thread, uop: &Uop) {
    let Some(instruction) = &code.instructions[uop.instruction as usize].instruction else { return };
    // Otherwise it has no effect.
    let Execute::Lane(lane) = instruction.row.execute else { return };
    let uop = if let Kind::General = uop.kind { uop } else { &general_form(code, uop, instruction) };
    let address = code.instructions[uop.instruction as usize].address;
    thread.set_u32(thread::IP, code.base.wrapping_add(address));
    thread.set_u32(thread::CE, thread.mask >> uop.channel);
    thread.set_u32(thread::TM, thread.executed as u32);
    thread.set_u32(thread::TM + 4, (thread.executed >> 32) as u32);
    general::execute(thread, uop, lane, instruction.sources(), instruction.modifier);
    if uop.writes_state {
        thread.update_modes();
        thread.update_dispatch();
    }
}

/// The uop with the operands as they are in the instruction: the fast form changes types and constants.
fn general_form(code: &Program, uop: &Uop, instruction: &crate::isa::Instruction) -> Uop {
    let mut copy = uop.clone();
    copy.kind = Kind::General;
    copy.dst.ty = instruction.dst.ty;
    for (index, input) in copy.src.iter_mut().enumerate().take(instruction.sources()) {
        if let Some(original) = operand::Input::new(&instruction.src[index], uop.size, code.registers) {
            *input = original;
        }
    }
    copy
}
