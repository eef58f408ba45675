// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execution of a trace: a machine with a ring buffer, and beside it, if wanted, the interpreter.

use std::ops::RangeInclusive;

use crate::container::Image;
use crate::halves;
use crate::isa::Generation;
use crate::machine::{Fault, FaultKind, INSTR_BASE, Machine, Stop};
use crate::names::gpu_register;
use crate::pm4::{Difference, Histogram, Interpreter, Limit, Sums, Unsupported, compare, operation, walk};
use crate::trace::Record;

/// Address of the ring buffer, and behind it of the preemption record and the second ring.
pub const RING: u64 = 0x7f00_0000_0000;
const RING_WORDS: u32 = 4096;
/// The record that IN_PREEMPT of the open firmware uses.
const RECORD: u64 = RING + 0x1_0000;
const SECOND_RING: u64 = RING + 0x1_1000;
const SECOND_BUFFER: u64 = RING + 0x1_2000;
/// A word that the second ring counts up at each preemption.
pub const COUNTER: u64 = RING + 0x1_3000;
/// LPAC's ring.
const LPAC_RING: u64 = RING + 0x1_4000;
const LPAC_RING_WORDS: usize = 4096;
const OWN_BYTES: u64 = 0x1_8000;
/// Instructions that a bootstrap may take (AFC-058).
const BOOT_BUDGET: u64 = 10_000_000;
/// The address of the preemption record.
const RESTORE_ADDRESS: usize = gpu_register("CP_CONTEXT_SWITCH_PRIV_NON_SECURE_RESTORE_ADDR");
/// VSC_STATE: one bit for each bin that has something visible. The visibility unit writes it, which the model does not
/// have.
pub const VISIBILITY: RangeInclusive<u32> = 0xc38..=0xc57;

/// How a trace is executed.
#[derive(Debug, Clone)]
pub struct Options {
    /// Maps memory that the trace does not have when it is accessed first.
    pub map_on_demand: bool,
    /// Instructions that a packet may take.
    pub packet_budget: u64,
    /// Preempts when this number of instructions was executed.
    pub preempt_every: Option<u64>,
    /// Runs the interpreter too.
    pub compare: bool,
    /// Keeps the writes in [`crate::machine::Bus::effects`]. A comparison keeps them in any case.
    pub record: bool,
    /// Registers with a value that another unit of the GPU would have written.
    pub registers: Vec<(RangeInclusive<u32>, u32)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            map_on_demand: true,
            packet_budget: 1_000_000,
            preempt_every: None,
            compare: false,
            record: true,
            registers: vec![(VISIBILITY, u32::MAX)],
        }
    }
}

/// Executes a machine until it is idle or has a fault; [`Stop::Budget`] ends the execution of the trace.
pub type Drive<'d> = &'d mut dyn FnMut(&mut Machine) -> Stop;

/// The usual [`Drive`].
pub fn run_to_idle(machine: &mut Machine) -> Stop {
    machine.run(u64::MAX)
}

/// Why a trace cannot be executed further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The machine has no PFP and no ME.
    #[error("the machine executes firmware of a6xx and a7xx; that of a5xx needs the processors PFP and ME")]
    Generation,
    /// The firmware did not start.
    #[error("the firmware did not reach waitin: {0}")]
    Boot(String),
    /// The machine stopped.
    #[error("{0}")]
    Fault(Fault),
    /// The drive ended the execution.
    #[error("the execution was ended")]
    Stopped,
    /// A buffer of the trace is where the emulator has its own memory.
    #[error("the trace has a buffer at {0:#x}, where the emulator keeps the firmware and the ring")]
    Overlap(u64),
    /// The trace needs more memory than a machine has.
    #[error("the trace's buffer at {0:#x}: {1}")]
    Memory(u64, FaultKind),
    /// There are packets for LPAC, but no LPAC.
    #[error("the firmware has not started LPAC, so it cannot execute the trace for LPAC")]
    NoLpac,
    /// LPAC's ring is full.
    #[error("the trace for LPAC has more than {} command buffers", LPAC_RING_WORDS / 4)]
    LpacRing,
    /// A command buffer is too long for one packet.
    #[error("the command buffer at {0:#x} has more than 1,048,575 words")]
    Long(u64),
    /// The interpreter cannot execute the stream, but the machine did.
    #[error("the interpreter stopped: {0}")]
    Interpreter(#[from] Unsupported),
    /// The writes are different.
    #[error("{0}")]
    Different(#[from] Difference),
}

/// The execution of a trace.
#[derive(Debug, Clone)]
pub struct Replay {
    /// The machine.
    pub machine: Machine,
    /// The interpreter, if it runs too.
    pub interpreter: Option<Interpreter>,
    /// All packets of the command buffers, executed or not.
    pub stream: Histogram,
    /// Instructions to the first `waitin`.
    pub boot_instructions: u64,
    /// Command buffers that were executed.
    pub command_buffers: u32,
    /// Command buffers that the trace does not have.
    pub missing_buffers: u32,
    image_bytes: u64,
    write_pointer: u32,
}

impl Replay {
    /// Starts the firmware.
    ///
    /// # Errors
    ///
    /// If it does not reach `waitin`.
    pub fn new(image: &Image, options: &Options) -> Result<Self, ReplayError> {
        if image.generation() == Generation::A5 {
            return Err(ReplayError::Generation);
        }
        let mut machine = Machine::new(image);
        for (range, value) in &options.registers {
            for number in range.clone() {
                machine.bus.gpu[number as usize & 0xffff] = *value;
            }
        }
        machine.bus.memory.map(RING, OWN_BYTES);
        machine.bus.set_ring(RING, RING_WORDS);
        machine.packet_budget = BOOT_BUDGET;
        match machine.run(BOOT_BUDGET) {
            Stop::Idle => {}
            Stop::Budget => return Err(ReplayError::Boot(format!("{BOOT_BUDGET} instructions were executed"))),
            Stop::Fault(fault) => return Err(ReplayError::Boot(fault.to_string())),
        }
        machine.packet_budget = options.packet_budget;
        machine.preempt_every = options.preempt_every;
        machine.bus.memory.map_on_demand = options.map_on_demand;
        machine.bus.writes = (0, 0);
        machine.bus.record = options.record || options.compare;
        let depth = if image.generation() == Generation::A7 { 3 } else { 2 };
        let interpreter = options.compare.then(|| {
            let mut interpreter = Interpreter::new(Limit { depth, ..Limit::default() });
            interpreter.map_on_demand = options.map_on_demand;
            interpreter.ring = (RING, RING_WORDS);
            for (range, value) in &options.registers {
                interpreter.registers.extend(range.clone().map(|number| (number & 0xffff, *value)));
            }
            interpreter
        });
        let mut replay = Self {
            boot_instructions: machine.executed,
            machine,
            interpreter,
            stream: Histogram::default(),
            command_buffers: 0,
            missing_buffers: 0,
            image_bytes: image.words.len() as u64 * 4,
            write_pointer: 0,
        };
        replay.second_ring();
        Ok(replay)
    }

    /// Puts a second ring into memory, for preemption: it counts preemptions and writes a register from a buffer.
    fn second_ring(&mut self) {
        let [counter, high] = halves(COUNTER);
        let [[buffer, _], [ring, _], [record, _]] = [SECOND_BUFFER, SECOND_RING, RECORD].map(halves);
        let buffer_words = operation(0x4c, &[7 << 20, 0x55]);
        #[expect(clippy::cast_possible_truncation, reason = "a few words")]
        let indirect = operation(0x3f, &[buffer, high, buffer_words.len() as u32]);
        let one = operation(0x3d, &[counter + 4, high, 1]);
        let add = operation(0x73, &[0, counter, high, counter, high, counter + 4, high]);
        let words = [one, indirect, add, operation(0x6b, &[])].concat();
        #[expect(clippy::cast_possible_truncation, reason = "a few words")]
        let header = [ring, high, 0, words.len() as u32];
        for (address, words) in [(SECOND_BUFFER, &buffer_words[..]), (SECOND_RING, &words), (RECORD, &header)] {
            self.store(address, words);
        }
        (self.machine.bus.gpu[RESTORE_ADDRESS], self.machine.bus.gpu[RESTORE_ADDRESS + 1]) = (record, high);
    }

    /// Writes mapped memory of the machine.
    fn store(&mut self, address: u64, words: &[u32]) {
        for (index, word) in (0..).zip(words) {
            // The ranges are mapped and aligned.
            let _ = self.machine.bus.memory.write(address + index * 4, *word);
        }
    }

    /// Executes a record of a trace. `drive` executes the machine until it is idle.
    ///
    /// # Errors
    ///
    /// If the machine stops with a fault, or the interpreter writes something else.
    pub fn record(&mut self, record: &Record, drive: Drive) -> Result<(), ReplayError> {
        match record {
            Record::GpuId(_) => Ok(()),
            Record::Buffer { address, length, words } => self.buffer(*address, *length, words),
            Record::Commands { address, dword_count } => self.commands(*address, *dword_count, drive),
        }
    }

    fn buffer(&mut self, address: u64, length: u64, words: &[u32]) -> Result<(), ReplayError> {
        let length = length.max(words.len() as u64 * 4);
        let overlaps = |start: u64, bytes: u64| address < start + bytes && start < address.saturating_add(length);
        if overlaps(INSTR_BASE, self.image_bytes) || overlaps(RING, OWN_BYTES) {
            return Err(ReplayError::Overlap(address));
        }
        let memory = &mut self.machine.bus.memory;
        memory.map(address, length);
        let mut stored = (0..).zip(words);
        stored
            .try_for_each(|(index, word)| memory.write(address.wrapping_add(index * 4), *word))
            .map_err(|kind| ReplayError::Memory(address, kind))?;
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.map(address, length);
            interpreter.load(address, words)?;
        }
        Ok(())
    }

    /// Makes the command buffers of another trace the ring of LPAC, which executes them beside the packets of the trace.
    ///
    /// # Errors
    ///
    /// If the firmware has no LPAC, or the trace's memory or ring does not fit.
    pub fn lpac(&mut self, records: &[Record]) -> Result<(), ReplayError> {
        let mut packets = Vec::new();
        for record in records {
            match record {
                Record::GpuId(_) => {}
                Record::Buffer { address, length, words } => self.buffer(*address, *length, words)?,
                Record::Commands { address, dword_count } if *dword_count <= 0xf_ffff => {
                    let [low, high] = halves(*address);
                    packets.extend(operation(0x3f, &[low, high, *dword_count]));
                }
                Record::Commands { address, .. } => return Err(ReplayError::Long(*address)),
            }
        }
        let words = u32::try_from(packets.len()).ok().filter(|_| packets.len() <= LPAC_RING_WORDS);
        let words = words.ok_or(ReplayError::LpacRing)?;
        self.store(LPAC_RING, &packets);
        if self.machine.submit_to_lpac(LPAC_RING, words) { Ok(()) } else { Err(ReplayError::NoLpac) }
    }

    fn commands(&mut self, address: u64, words: u32, drive: Drive) -> Result<(), ReplayError> {
        if words > 0xf_ffff {
            return Err(ReplayError::Long(address));
        }
        if !self.machine.bus.memory.is_mapped(address) {
            self.missing_buffers += 1;
            return Ok(());
        }
        let memory = &self.machine.bus.memory;
        walk(&mut self.stream, &|at| memory.get(at), address, words);
        let mut packets = Vec::new();
        if self.command_buffers == 0 {
            packets.extend(operation(0x48, &[0x2f, 3, 0x2000_0000, 0, 0, 0, 0, 0]));
            packets.extend([operation(0x5f, &[0]), operation(0x5f, &[1])].concat());
        }
        let [low, high] = halves(address);
        packets.extend(operation(0x3f, &[low, high, words]));
        self.command_buffers += 1;
        self.submit(&packets, drive)
    }

    /// Puts packets into the ring and executes them.
    fn submit(&mut self, packets: &[u32], drive: Drive) -> Result<(), ReplayError> {
        let start = self.write_pointer;
        for word in packets {
            self.store(RING + u64::from(self.write_pointer) * 4, &[*word]);
            self.write_pointer = (self.write_pointer + 1) % RING_WORDS;
        }
        self.machine.bus.set_ring_write_pointer(self.write_pointer);
        match drive(&mut self.machine) {
            Stop::Idle => {}
            Stop::Budget => return Err(ReplayError::Stopped),
            Stop::Fault(fault) => return Err(ReplayError::Fault(fault)),
        }
        if let Some(interpreter) = &mut self.interpreter {
            interpreter.execute_ring(packets, RING + u64::from(start) * 4)?;
        }
        Ok(())
    }

    /// Compares all writes of machine and interpreter. `None` without interpreter.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn compare(&self) -> Result<Option<Sums>, Difference> {
        self.interpreter.as_ref().map(|other| compare(&self.machine.bus.effects, &other.writes)).transpose()
    }
}
