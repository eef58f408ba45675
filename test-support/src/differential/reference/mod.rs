// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reference implementation of the command streamer, written only from the specification items that it names. It shares
//! no code with the engine, translates each access separately, and has no fast path.
//!
//! A command needs an entry in [`length`], an arm in [`Machine::execute`] and a function in `commands`. A command
//! without an arm has no effect.

mod alu;
mod atomic;
mod commands;
mod memory;
mod registers;

use std::collections::BTreeMap;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::EngineClass;

use crate::differential::grammar::Case;
use crate::differential::layout::*;
use crate::differential::world::{Fault, FinalState, Stop};
use memory::Memory;
use registers::{Registers, Requester};

/// Number of commands after which a run counts as endless. Batches of the grammar start only batches with higher
/// indices, so its cases end earlier.
const ENDLESS: u32 = 100_000;

/// A batch in execution.
#[derive(Clone, Copy, Debug)]
struct Level {
    address: u64,
    space: Space,
    privileged: bool,
}

/// Reason why the parser stops.
enum End {
    Waits,
    Faults(Fault),
    Illegal,
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        End::Faults(fault)
    }
}

type Done = Result<(), End>;

struct Machine {
    vf: bool,
    class: EngineClass,
    registers: Registers,
    memory: Memory,
    alu: alu::Alu,
    /// Offset of the next command in the ring.
    head: u32,
    tail: u32,
    /// Batches in execution, the innermost last.
    levels: Vec<Level>,
    /// Number of commands executed.
    commands: u32,
}

/// Runs a case; `initial` has the register values at the start. Returns the resulting state and the number of commands
/// executed.
pub fn run(case: &Case, initial: &BTreeMap<u32, u32>) -> (FinalState, u32) {
    let (class, base) = (XE_HPG.engines.info(case.engine).class, XE_HPG.engines.info(case.engine).mmio_base);
    let first = XE_HPG.engines.info(XE_HPG.engines.find(class, 0).expect("a first instance")).mmio_base;
    let work = case.work();
    let mut machine = Machine {
        vf: case.vf,
        class,
        registers: Registers { class, base, first, values: initial.clone() },
        memory: Memory::new(case.vf, &work),
        alu: alu::Alu::default(),
        head: work.head,
        tail: work.tail(),
        levels: Vec::new(),
        commands: 0,
    };
    let stop = machine.run();
    let registers = machine.registers.values;
    let mut image = registers.clone();
    if stop == Stop::Complete {
        image.extend([(base + 0x034, machine.head), (base + 0x030, machine.tail)]);
    }
    (FinalState { stop, memory: machine.memory.into_final(), registers, image }, machine.commands)
}

impl Machine {
    fn run(&mut self) -> Stop {
        loop {
            if self.levels.is_empty() && self.head == self.tail {
                return Stop::Complete;
            }
            if self.commands == ENDLESS {
                return Stop::Endless;
            }
            let at = self.here();
            let words = match self.fetch() {
                Ok(words) => words,
                Err(fault) => return Stop::Fault(fault),
            };
            let Some(words) = words else {
                let header = self.dword(0).unwrap_or(0);
                self.error(1);
                return Stop::Illegal { header, address: at };
            };
            self.commands += 1;
            let header = words[0];
            match self.execute(&words) {
                Ok(()) => {}
                Err(End::Waits) => return Stop::Waiting,
                Err(End::Faults(fault)) => return Stop::Fault(fault),
                Err(End::Illegal) => {
                    self.error(1);
                    return Stop::Illegal { header, address: at };
                }
            }
        }
    }

    /// Returns the address of the next command.
    fn here(&self) -> u64 {
        match self.levels.last() {
            Some(level) => level.address,
            None => BASE + at::RING * PAGE + u64::from(self.head),
        }
    }

    /// Returns dword `n` from the current position.
    fn dword(&mut self, n: u32) -> Result<u32, Fault> {
        match self.levels.last() {
            Some(level) => self.memory.load(level.space, level.address + 4 * u64::from(n)),
            None => {
                let offset = (self.head + 4 * n) % RING_BYTES;
                self.memory.load(Space::Ggtt, BASE + at::RING * PAGE + u64::from(offset))
            }
        }
    }

    /// Returns the next command and advances past it; `None` if the engine does not have it (V8-095, V8-099).
    fn fetch(&mut self) -> Result<Option<Vec<u32>>, Fault> {
        let header = self.dword(0)?;
        let Some(len) = length(header, self.class) else { return Ok(None) };
        let words = (0..len).map(|n| self.dword(n)).collect::<Result<Vec<u32>, Fault>>()?;
        match self.levels.last_mut() {
            Some(level) => level.address += 4 * u64::from(len),
            None => self.head = (self.head + 4 * len) % RING_BYTES,
        }
        Ok(Some(words))
    }

    /// V8-159, V13-044, V13-047: the requester, determined by the ring or batch that contains the command.
    fn requester(&self) -> Requester {
        match (self.levels.last().is_none_or(|level| level.privileged), self.vf) {
            (false, _) => Requester::User,
            (true, true) => Requester::VfKernel,
            (true, false) => Requester::PfKernel,
        }
    }

    fn user(&self) -> bool {
        self.requester() == Requester::User
    }

    /// V8-140, V8-141: if MI_SET_PREDICATE_RESULT is set, all commands are MI_NOOPs except those with their own
    /// predicate enable bit, and MI_SET_PREDICATE.
    fn predicated(&self, header: u32) -> bool {
        if self.registers.own(0x3b8) & 1 == 0 {
            return false;
        }
        let mi = header >> 29 == 0;
        match header >> 23 & 0x3f {
            0x01 if mi => false,
            0x0a | 0x31 | 0x36 if mi => header >> 15 & 1 != 0,
            _ => true,
        }
    }

    fn execute(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        if self.predicated(header) {
            return Ok(());
        }
        if header >> 29 == 3 {
            return if header >> 16 == 0x7a00 { self.pipe_control(words) } else { Ok(()) };
        }
        match header >> 23 {
            0x00 => self.noop(header),
            0x01 => self.set_predicate(header),
            0x02 => {
                self.event(0);
                Ok(())
            }
            0x07 => self.report_head(),
            0x0a => self.batch_buffer_end(),
            0x0c => self.predicate(header),
            0x1a => self.math(words),
            0x1c => self.semaphore_wait(words),
            0x20 => self.store_data_imm(words),
            0x21 => self.store_data_index(words),
            0x22 => self.load_register_imm(words),
            0x23 => self.update_gtt(words),
            0x24 => self.store_register_mem(words),
            0x26 => self.flush_dw(words),
            0x28 => self.report_perf_count(words),
            0x29 => self.load_register_mem(words),
            0x2a => self.load_register_reg(words),
            0x2e => self.copy_mem_mem(words),
            0x2f => self.atomic(words),
            // MI_PRT_BATCH_BUFFER_START without Persistence Enable is an ordinary start in the ring (V8-160).
            0x31 | 0x39 => self.batch_buffer_start(words),
            0x36 => self.conditional_batch_buffer_end(words),
            // Arbitration, flips and context switches are privileged (V8-171, V13-073).
            0x08 | 0x14 | 0x18 => self.refused(),
            // A signal at a GGTT address is also privileged (V13-059).
            0x1b if header >> 22 & 1 != 0 => self.refused(),
            // Display events and scan lines do not exist on this card. Arbitration checks, flushes, wake-ups and
            // signals to other contexts change no compared state (V8-107..109, V8-111, V8-113, V8-115..117, V8-119,
            // V8-121, V8-128).
            _ => Ok(()),
        }
    }
}

/// Returns the length in dwords of the command with this header; `None` if engines of `class` do not have it
/// (V8-095..099; IVB-140; Mesa's gen125.xml for the width of the length fields).
fn length(header: u32, class: EngineClass) -> Option<u32> {
    use EngineClass::{Compute, Copy, Render};
    let pipes = matches!(class, Render | Compute);
    if header >> 29 == 3 && pipes {
        // PIPELINE_SELECT and similar commands have no length field (contract K.8).
        return Some(if header >> 27 & 3 == 1 { 1 } else { (header & 0xff) + 2 });
    }
    if header >> 29 != 0 {
        return None;
    }
    let opcode = header >> 23;
    let present = match opcode {
        0x00..=0x02 | 0x05 | 0x07 | 0x08 | 0x0a | 0x0b | 0x0e => true,
        // Flips, scan lines and events.
        0x03 | 0x04 | 0x12..=0x14 => matches!(class, Render | Copy),
        0x0c => pipes,
        0x0d | 0x27 => class == Render,
        0x18 | 0x28 => pipes,
        0x1d | 0x26 => class != Render,
        0x1a..=0x1c | 0x20..=0x24 | 0x29 | 0x2a | 0x2e | 0x2f | 0x31 | 0x36 | 0x39 => true,
        _ => false,
    };
    let field = match opcode {
        0x00..=0x0f => return present.then_some(1),
        0x20 | 0x23 | 0x27 => 0x3ff,
        0x12 | 0x13 | 0x26 | 0x28 => 0x3f,
        _ => 0xff,
    };
    present.then_some((header & field) + 2)
}
