// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The other processors of an image: BV and LPAC of a7xx, LPAC of a6xx (AF-004, AF-005, AF-121; AFC-045).
//!
//! They are executed in turns, by the number of instructions, so that a run has the same result in one call or in many.
//! Each has registers, control registers, a packet table and queues. Memory, GPU registers, the shared control
//! registers and the locks go to the processor that has its turn.

use std::fmt;

use super::bus::Bus;
use super::{Fault, FaultKind, INSTR_BASE, Machine, Stop};
use crate::isa::Generation;

/// Instructions of a turn.
const TURN: u64 = 64;
/// Control registers that the processors share (AFC-019).
const SHARED: std::ops::Range<usize> = 0x200..0x300;

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Processor {
    /// The SQE of a6xx, the BR of a7xx.
    First,
    /// BV of a7xx.
    Bv,
    /// LPAC.
    Lpac,
}

impl Processor {
    /// The name of its section in text; `None` for the first.
    pub const fn section(self) -> Option<&'static str> {
        match self {
            Self::First => None,
            Self::Bv => Some("BV"),
            Self::Lpac => Some("LPAC"),
        }
    }

    /// The bit in [`Bus::switches`] that starts the processor; the next one stops it.
    pub(super) const fn switch(self) -> u32 {
        1 << (self as u32 * 2)
    }

    /// Its name in a generation.
    pub const fn name(self, generation: Generation) -> &'static str {
        match (self, generation) {
            (Self::First, Generation::A7) => "BR",
            (Self::First, _) => "SQE",
            (Self::Bv, _) => "BV",
            (Self::Lpac, _) => "LPAC",
        }
    }
}

/// `BV ` and `LPAC `; nothing for the first.
impl fmt::Display for Processor {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.section().map_or(Ok(()), |name| write!(formatter, "{name} "))
    }
}

/// A processor that was started.
#[derive(Debug, Clone)]
pub(super) struct Other {
    pub machine: Machine,
    /// False after it was stopped.
    is_running: bool,
    /// The ring that it had read to its end when it had its last turn.
    waits_for: Option<[u32; 5]>,
    /// Packets that the first processor had dispatched when it had its last turn.
    seen: u64,
}

impl Machine {
    /// The processors that are running, beginning with the first.
    pub fn processors(&self) -> impl Iterator<Item = &Machine> {
        std::iter::once(self).chain(self.others.iter().filter(|other| other.is_running).map(|other| &other.machine))
    }

    /// A processor, if it is running. Memory and GPU registers are those of the first.
    pub fn processor(&self, processor: Processor) -> Option<&Machine> {
        self.processors().find(|machine| machine.processor == processor)
    }

    /// Makes a buffer of packets the ring of LPAC: the registers of its ring are not public. Its present ring must be empty. False
    /// if LPAC is not running.
    pub fn submit_to_lpac(&mut self, address: u64, words: u32) -> bool {
        let mut others = self.others.iter_mut().filter(|other| other.is_running);
        let Some(other) = others.find(|other| other.machine.processor == Processor::Lpac) else { return false };
        other.machine.bus.set_own_ring(address, words);
        other.waits_for = None;
        true
    }

    /// Starts and stops processors after the control register of one was written.
    pub(super) fn switch_processors(&mut self) -> Result<(), FaultKind> {
        let switches = std::mem::take(&mut self.bus.switches);
        for processor in [Processor::Bv, Processor::Lpac] {
            if switches & processor.switch() != 0 {
                self.start(processor)?;
            } else if switches & processor.switch() << 1 != 0
                && let Some(other) = self.others.iter_mut().find(|other| other.machine.processor == processor)
            {
                other.is_running = false;
            }
        }
        Ok(())
    }

    /// Starts a processor at its word 0. One that is running goes on.
    fn start(&mut self, processor: Processor) -> Result<(), FaultKind> {
        let base = self.bus.instruction_base(processor);
        let offset = base.checked_sub(INSTR_BASE).filter(|bytes| bytes.is_multiple_of(4)).map(|bytes| bytes / 4);
        let offset = offset.and_then(|word| usize::try_from(word).ok()).filter(|word| *word < self.words.len());
        let offset = offset.ok_or(FaultKind::Start(base))?;
        let place = self.others.iter().position(|other| other.machine.processor == processor);
        if place.is_some_and(|place| self.others[place].is_running) {
            return Ok(());
        }
        // The code of a processor that was stopped is kept: it is that of the whole image.
        let code = match place.map(|place| self.others.remove(place)) {
            Some(old) => (old.machine.code, old.machine.words),
            None => (self.code.clone(), self.words.clone()),
        };
        let bus = Bus::of_processor(&self.bus, processor);
        let packet_budget = self.packet_budget;
        let machine = Machine { packet_budget, ..Machine::of_processor(processor, bus, code, offset) };
        self.others.push(Other { machine, is_running: true, waits_for: None, seen: 0 });
        self.others.sort_by_key(|other| other.machine.processor);
        self.next_turn = self.executed;
        Ok(())
    }

    /// True if no other processor has anything to do.
    pub(super) fn others_wait(&self) -> bool {
        self.others.iter().all(|other| self.waits(other))
    }

    fn waits(&self, other: &Other) -> bool {
        !other.is_running || other.waits_for.is_some_and(|ring| ring == self.bus.ring_state())
    }

    /// Gives each other processor a turn; returns the instructions that they executed.
    pub(super) fn turn(&mut self) -> Result<u64, Fault> {
        self.next_turn = self.executed.saturating_add(TURN);
        let mut others = std::mem::take(&mut self.others);
        let mut result = Ok(0);
        for index in 0..others.len() {
            if self.waits(&others[index]) {
                continue;
            }
            let (stop, executed, switches) = self.execute_other(&mut others[index]);
            for (word, value) in std::mem::take(&mut others[index].machine.bus.code_changes) {
                self.change(word, value);
                others.iter_mut().filter(|other| other.machine.words.get(word) != Some(&value)).for_each(|other| {
                    other.machine.change(word, value);
                });
            }
            self.bus.switches |= switches;
            match (stop, &mut result) {
                (Stop::Fault(fault), result) => {
                    *result = Err(self.other_fault(fault));
                    break;
                }
                (_, Ok(sum)) => *sum += executed,
                (_, Err(_)) => {}
            }
        }
        self.others = others;
        let switched = if self.bus.switches == 0 { Ok(()) } else { self.switch_processors() };
        let instructions = result?;
        switched.map(|()| instructions).map_err(|kind| self.fault(kind))
    }

    fn other_fault(&mut self, fault: Fault) -> Fault {
        if let Some(status) = self.bus.gpu.get_mut(super::INTERRUPT_STATUS) {
            *status |= 1 << fault.kind.interrupt_bit(fault.processor);
        }
        fault
    }

    /// A turn of one processor. The time that a packet may take begins again when another processor has got a new packet: a
    /// wait for another processor is not endless while that one goes on.
    fn execute_other(&mut self, other: &mut Other) -> (Stop, u64, u32) {
        let machine = &mut other.machine;
        machine.packet_budget = self.packet_budget;
        if other.seen != self.dispatched {
            other.seen = self.dispatched;
            machine.packet_start = machine.executed;
        }
        let executed = machine.executed;
        let dispatched = machine.dispatched;
        self.bus.exchange(&mut machine.bus);
        machine.bus.follow_ring();
        let stop = machine.run(TURN);
        let switches = std::mem::take(&mut machine.bus.switches);
        let ring = machine.bus.ring_state();
        self.bus.exchange(&mut machine.bus);
        self.bus.follow_ring();
        other.waits_for = (stop == Stop::Idle).then_some(ring);
        if machine.dispatched != dispatched {
            self.packet_start = self.executed;
        }
        (stop, machine.executed - executed, switches)
    }
}

impl Bus {
    /// A processor's own part; the rest comes with its turn.
    fn of_processor(first: &Bus, processor: Processor) -> Self {
        let mut bus = Self::new(first.set());
        bus.gpu = Vec::new();
        bus.processor = processor;
        bus.ring_number = first.ring_number;
        if processor == Processor::Lpac {
            bus.set_own_ring(0, 0);
        }
        bus
    }

    /// Exchanges what the processors share.
    fn exchange(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.memory, &mut other.memory);
        std::mem::swap(&mut self.gpu, &mut other.gpu);
        std::mem::swap(&mut self.effects, &mut other.effects);
        std::mem::swap(&mut self.record, &mut other.record);
        std::mem::swap(&mut self.writes, &mut other.writes);
        std::mem::swap(&mut self.writer, &mut other.writer);
        std::mem::swap(&mut self.locks, &mut other.locks);
        self.control[SHARED].swap_with_slice(&mut other.control[SHARED]);
        for number in self.shared.into_iter().flatten() {
            std::mem::swap(&mut self.control[number], &mut other.control[number]);
        }
        // A new ring is read from its start by all.
        if other.ring_number < self.ring_number {
            other.ring_number = self.ring_number;
            other.restart_ring();
        }
    }
}
