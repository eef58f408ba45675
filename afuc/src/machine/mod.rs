// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The machine: the processors that execute microcode of a6xx or a7xx. It has no global state and does not panic on any
//! image or packet stream.

mod alu;
mod bus;
mod execute;
mod fast;
mod fault;
mod memory;
mod processors;

pub use bus::{Bus, Effect, Group, INTERRUPT_STATUS, Queue};
use fast::Decoded;
pub use fault::{Fault, FaultKind, Stop};
pub use memory::Memory;
pub use processors::Processor;

use crate::container::Image;
use crate::halves;
use crate::isa::{Instruction, Op, register};
use crate::names::gpu_register;

/// Address of the image, CP_SQE_INSTR_BASE (AFC-010).
pub const INSTR_BASE: u64 = 0x1_0000_0000;
const CP_SQE_INSTR_BASE: usize = gpu_register("CP_SQE_INSTR_BASE");
/// SQE registers (AFC-017).
const PREEMPT_INSTR: usize = 4;
const SP: usize = 5;
const STACK: usize = 8;
const STACK_DEPTH: u32 = 8;
/// The packet-table entry that the end of an indirect buffer enters (AFC-038).
const IN_IB_END: u8 = 0x0a;
/// The packet-table entry for preemption, if the SQE register has none (AF-063).
const IN_PREEMPT: usize = 0x0f;

/// A machine: the SQE of a6xx or the BR of a7xx, with all that it reaches, and the processors that it has started.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Which processor this is: that of the image, or one that it has started.
    pub processor: Processor,
    /// General registers. `$00` stays 0; the special registers have no value here.
    pub gpr: [u32; 32],
    /// SQE registers: call stack and preemption entry.
    pub sqe: [u32; 16],
    /// Word of the next instruction.
    pub pc: u32,
    /// Registers, memory and queues.
    pub bus: Bus,
    /// Instructions executed; each pass of `(rep)` counts.
    pub executed: u64,
    /// Instructions that one packet may take (AFC-040).
    pub packet_budget: u64,
    /// Asks for preemption when this number of instructions was executed since the last one ended (AFC-072).
    pub preempt_every: Option<u64>,
    /// Preemptions that have begun.
    pub preemptions: u64,
    /// Entries into handlers of packets, by opcode, without those in preemption handlers.
    pub packets: [u64; 128],
    /// Packets of which the handler left words, which became the next header (AFC-037).
    pub left_words: u64,
    carry: u32,
    /// Target of the transfer before its delay slot.
    pending: Option<u32>,
    dispatch: Dispatch,
    code: Vec<Decoded>,
    words: Vec<u32>,
    /// The word of the image that is word 0 of this processor.
    offset: usize,
    /// Processors that were started, in the order of their turns (AFC-045).
    others: Vec<processors::Other>,
    /// Executed instructions at which the others have their next turn.
    next_turn: u64,
    /// Instructions of the others while this processor waited for a packet.
    waited: u64,
    /// Entries into `waitin` after which a packet began: the one before had taken words.
    dispatched: u64,
    packet: (u32, u64),
    /// Instructions executed when the packet began, and the words that had been taken then; `None` before the first.
    packet_start: u64,
    packet_words: Option<u64>,
    /// Words taken when all processors last waited for packets.
    idle_words: u64,
    /// What preemption interrupted.
    interrupted: Option<Interrupted>,
    /// Instructions executed when the last preemption ended.
    resumed_at: u64,
}

/// State that no instruction can read, which preemption saves and `iret` restores. That hardware does so is an
/// assumption (AF-047).
#[derive(Debug, Clone, Copy)]
struct Interrupted {
    pc: u32,
    carry: u32,
    target: bus::DataTarget,
    near_address: [u32; 2],
    packet: (u32, u64),
    packet_start: u64,
    packet_words: Option<u64>,
    /// Instructions executed, and words taken.
    executed: u64,
    taken_words: u64,
}

/// Words that processors may take without a wait for packets: a buffer that enters itself never ends.
const STREAM_WORDS: u64 = 1 << 27;

/// NRT_ADDR among the pipe registers.
const NRT_ADDR: usize = 0xa0;

/// What follows the delay slot of `waitin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dispatch {
    None,
    Packet,
    /// The indirect buffer is empty; `$data` reads 0 in the slot.
    BufferEnd,
}

impl Machine {
    /// A machine after reset, with the image at [`INSTR_BASE`].
    pub fn new(image: &Image) -> Self {
        let mut bus = Bus::new(image.set);
        bus.memory.map(INSTR_BASE, (image.words.len() as u64 + 1) * 4);
        for (index, word) in (0_u64..).zip(&image.words) {
            // The range is mapped.
            let _ = bus.memory.write(INSTR_BASE + index * 4, *word);
        }
        [bus.gpu[CP_SQE_INSTR_BASE], bus.gpu[CP_SQE_INSTR_BASE + 1]] = halves(INSTR_BASE);
        let code = image.words.iter().map(|word| Decoded::new(*word, image.generation())).collect();
        Self::of_processor(Processor::First, bus, (code, image.words.clone()), 0)
    }

    /// A processor after reset: its word 0 is the word `offset` of the image that is decoded in `code`, beside its words.
    fn of_processor(processor: Processor, bus: Bus, (code, words): (Vec<Decoded>, Vec<u32>), offset: usize) -> Self {
        Self {
            processor,
            gpr: [0; 32],
            sqe: [0; 16],
            pc: 0,
            bus,
            executed: 0,
            packet_budget: 1_000_000,
            preempt_every: None,
            preemptions: 0,
            packets: [0; 128],
            left_words: 0,
            carry: 0,
            pending: None,
            dispatch: Dispatch::None,
            code,
            words,
            offset,
            others: Vec::new(),
            next_turn: 0,
            waited: 0,
            dispatched: 0,
            packet: (0, 0),
            packet_start: 0,
            packet_words: None,
            idle_words: 0,
            interrupted: None,
            resumed_at: 0,
        }
    }

    /// Makes a buffer of packets the ring. The memory must be mapped and the ring empty.
    pub fn submit(&mut self, address: u64, words: u32) {
        self.bus.set_ring(address, 0);
        self.bus.set_ring_write_pointer(words);
    }

    /// The header of the current packet and its address; 0 before the first.
    pub const fn packet(&self) -> (u32, u64) {
        self.packet
    }

    /// The handler that a word belongs to, as far as the packet table says: its opcode and the distance from its start.
    pub fn handler_of(&self, pc: u32) -> Option<(u8, u32)> {
        let handlers = (0_u8..).zip(self.bus.packet_table).filter(|(_, start)| *start != 0 && *start <= pc);
        handlers.max_by_key(|(opcode, start)| (*start, 255 - *opcode)).map(|(opcode, start)| (opcode, pc - start))
    }

    #[inline]
    fn decoded(&self, pc: u32) -> Option<&Decoded> {
        self.code.get(self.offset.wrapping_add(pc as usize))
    }

    /// The instruction at a word.
    pub fn instruction(&self, pc: u32) -> Option<Instruction> {
        self.decoded(pc).and_then(|decoded| decoded.instruction)
    }

    /// Calls that have not returned.
    pub fn call_depth(&self) -> u32 {
        self.sqe[SP].min(STACK_DEPTH)
    }

    /// True if the next instruction is in a delay slot.
    pub fn is_in_slot(&self) -> bool {
        self.pending.is_some() || self.dispatch != Dispatch::None
    }

    /// True if the current packet has this opcode, and 4 for a type-4 packet.
    pub const fn is_at_packet(&self, opcode: u8) -> bool {
        match self.packet.0 >> 28 {
            4 => opcode == 4,
            7 => self.packet.0 >> 16 & 0x7f == opcode as u32,
            _ => false,
        }
    }

    /// Writes memory as `store` does: a write to the image changes the instruction.
    ///
    /// # Errors
    ///
    /// If the address is not mapped or not a multiple of 4.
    pub fn store(&mut self, address: u64, value: u32) -> Result<(), FaultKind> {
        self.bus.write_memory(address, value)?;
        self.invalidate(address, value);
        Ok(())
    }

    /// True in a preemption handler.
    pub const fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Executes until all processors wait for packets, a fault, or `instructions` are executed. Those of other processors
    /// count only while this one waits.
    pub fn run(&mut self, instructions: u64) -> Stop {
        let end = self.clock().saturating_add(instructions);
        loop {
            let left = end.saturating_sub(self.clock());
            if left == 0 {
                return Stop::Budget;
            }
            let mut limit = self.executed.saturating_add(left);
            // In a preemption handler the ring is another one: the turns wait.
            if !self.others.is_empty() && !self.is_interrupted() {
                if self.executed >= self.next_turn
                    && let Err(fault) = self.turn()
                {
                    return Stop::Fault(fault);
                }
                limit = limit.min(self.next_turn);
            }
            self.run_short(limit);
            if self.executed >= limit {
                continue;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) if self.is_interrupted() || self.others_wait() => return Stop::Idle,
                Ok(false) => match self.turn() {
                    Ok(instructions) => self.waited += instructions,
                    Err(fault) => return Stop::Fault(fault),
                },
                Err(kind) => return Stop::Fault(self.fault(kind)),
            }
        }
    }

    /// What [`Machine::run`] counts: instructions executed, and those of other processors while this one waited.
    pub const fn clock(&self) -> u64 {
        self.executed + self.waited
    }

    /// Sets the bit of CP_INTERRUPT_STATUS, and returns the fault with its place.
    fn fault(&mut self, kind: FaultKind) -> Fault {
        if let Some(status) = self.bus.gpu.get_mut(bus::INTERRUPT_STATUS) {
            *status |= 1 << kind.interrupt_bit(self.processor);
        }
        let (header, address) = self.packet;
        Fault { kind, processor: self.processor, pc: self.pc, header, address }
    }

    /// Executes one instruction. False if it is `waitin` and the ring is empty.
    fn step(&mut self) -> Result<bool, FaultKind> {
        if self.bus.is_preempted() || self.preempt_every.is_some() {
            self.preempt();
        }
        let i = match self.decoded(self.pc) {
            Some(Decoded { instruction: Some(instruction), .. }) => *instruction,
            Some(_) => {
                let word = self.words.get(self.offset.wrapping_add(self.pc as usize));
                return Err(FaultKind::Illegal(word.copied().unwrap_or_default()));
            }
            None => return Err(FaultKind::OutsideImage),
        };
        if i.op == Op::Waitin && self.bus.queue().left == 0 && self.bus.level() == 0 {
            self.packet_start = self.executed;
            self.packet_words = None;
            if !self.is_interrupted() {
                self.idle_words = self.bus.taken_words;
            }
            return Ok(false);
        }
        if self.executed - self.packet_start >= self.packet_budget {
            return Err(FaultKind::Endless);
        }
        let slot_of = self.pending.take();
        let dispatch = std::mem::replace(&mut self.dispatch, Dispatch::None);
        let result = if i.rep { self.repeat(&i, dispatch) } else { self.execute(&i, dispatch) };
        if let Err(kind) = result {
            self.pending = slot_of;
            self.dispatch = dispatch;
            return Err(kind);
        }
        self.executed += 1;
        if self.bus.switches != 0 && self.processor == Processor::First {
            self.switch_processors()?;
        }
        let transfers = self.pending.is_some() || self.dispatch != Dispatch::None;
        let in_slot = slot_of.is_some() || dispatch != Dispatch::None;
        if transfers && in_slot {
            return Err(FaultKind::BothTaken);
        }
        self.pc = match (slot_of, dispatch) {
            (Some(target), _) => target,
            (None, Dispatch::None) => self.pc.wrapping_add(1),
            (None, Dispatch::Packet) => self.handler()?,
            (None, Dispatch::BufferEnd) => match self.bus.packet_table[usize::from(IN_IB_END)] {
                0 => return Err(FaultKind::Opcode(IN_IB_END)),
                handler => handler,
            },
        };
        Ok(true)
    }

    /// A packet begins at `waitin`, with its budget, if words were taken since the last one began. Firmware that takes none
    /// executes the same packet again and again, and has one budget for all of this.
    fn begin_packet(&mut self) -> Result<(), FaultKind> {
        let taken = self.bus.taken_words;
        if self.packet_words == Some(taken) {
            return Ok(());
        }
        if !self.is_interrupted() && taken - self.idle_words > STREAM_WORDS {
            return Err(FaultKind::EndlessStream);
        }
        self.packet_start = self.executed;
        self.packet_words = Some(taken);
        self.dispatched += 1;
        Ok(())
    }

    /// Enters the preemption handler if preemption is due. It is never due in a delay slot (AFC-042).
    fn preempt(&mut self) {
        if self.interrupted.is_some() || self.is_in_slot() {
            return;
        }
        if self.preempt_every.is_some_and(|every| self.executed.saturating_sub(self.resumed_at) >= every) {
            self.bus.request_preemption();
        }
        if !self.bus.is_preempted() {
            return;
        }
        let handler = match self.sqe[PREEMPT_INSTR] {
            0 => self.bus.packet_table[IN_PREEMPT],
            handler => handler,
        };
        self.interrupted = Some(Interrupted {
            pc: self.pc,
            carry: self.carry,
            target: self.bus.target,
            near_address: [self.bus.pipe[NRT_ADDR], self.bus.pipe[NRT_ADDR + 1]],
            packet: self.packet,
            packet_start: self.packet_start,
            packet_words: self.packet_words,
            executed: self.executed,
            taken_words: self.bus.taken_words,
        });
        self.pc = handler;
        self.preemptions += 1;
        self.bus.mark(Effect::Preempted);
    }

    /// `iret`
    fn resume(&mut self) -> Result<(), FaultKind> {
        let interrupted = self.interrupted.take().ok_or(FaultKind::StackUnderflow)?;
        self.pending = Some(interrupted.pc);
        self.carry = interrupted.carry;
        self.bus.target = interrupted.target;
        [self.bus.pipe[NRT_ADDR], self.bus.pipe[NRT_ADDR + 1]] = interrupted.near_address;
        self.packet = interrupted.packet;
        // `iret` and its slot are not counted.
        self.resumed_at = self.executed + 2;
        // The packet has what was left of its budget: otherwise one that never ends would have it again and again.
        self.packet_start = self.executed - (interrupted.executed - interrupted.packet_start);
        let words = self.bus.taken_words - interrupted.taken_words;
        self.packet_words = interrupted.packet_words.map(|start| start + words);
        self.idle_words += words;
        self.bus.mark(Effect::Resumed);
        Ok(())
    }

    /// Decodes a word of the image again after a store to it, for all processors.
    fn invalidate(&mut self, address: u64, value: u32) {
        let Some(index) = address.checked_sub(INSTR_BASE).map(|bytes| bytes / 4) else { return };
        let Ok(index) = usize::try_from(index) else { return };
        if self.change(index, value) && self.processor != Processor::First {
            self.bus.code_changes.push((index, value));
        }
        for other in &mut self.others {
            other.machine.change(index, value);
        }
    }

    /// True if the image has the word.
    fn change(&mut self, index: usize, value: u32) -> bool {
        let (Some(word), Some(code)) = (self.words.get_mut(index), self.code.get_mut(index)) else { return false };
        *word = value;
        *code = Decoded::new(value, self.bus.set().generation());
        true
    }

    /// The handler of the header in `$01`, with `$rem` set (AFC-036, AF-098, AF-099).
    fn handler(&mut self) -> Result<u32, FaultKind> {
        let header = self.gpr[usize::from(register::HEADER)];
        self.packet.0 = header;
        let odd = |value: u32| (value.count_ones() & 1) ^ 1;
        let (opcode, count) = match header >> 28 {
            4 => {
                let count = header & 0x7f;
                let number = header >> 8 & 0x7_ffff;
                if header >> 7 & 1 != odd(count) || header >> 27 & 1 != odd(number) {
                    return Err(FaultKind::Header(header));
                }
                self.gpr[usize::from(register::HEADER)] = header & 0x0fff_ffff;
                (4, count)
            }
            7 => {
                let count = header & 0x3fff;
                let opcode = header >> 16 & 0x7f;
                let wrong = header >> 15 & 1 != odd(count) || header >> 23 & 1 != odd(opcode);
                if wrong || header & 0x0f00_4000 != 0 {
                    return Err(FaultKind::Header(header));
                }
                (opcode, count)
            }
            _ => return Err(FaultKind::Header(header)),
        };
        self.gpr[usize::from(register::REM)] = count;
        self.packets[opcode as usize] += u64::from(self.interrupted.is_none());
        match self.bus.packet_table[opcode as usize] {
            0 => Err(FaultKind::Opcode(opcode.to_le_bytes()[0])),
            handler => Ok(handler),
        }
    }
}
