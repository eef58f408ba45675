// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What registers reach: control, pipe and GPU registers, memory, and the queues of packet words.

mod control;

use crate::halves;
use crate::isa::{DataAddress, Generation};
use crate::names::{ControlSet, Space, gpu_register, register_number};

use super::Processor;
use super::fault::FaultKind;
use super::memory::Memory;
use control::{FUNCTIONS, Function, Numbers, PARAMETERS, SHARED};

pub(super) type Access<T> = Result<T, FaultKind>;

/// Words of a buffer that were not read yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Address of the next word.
    pub address: u64,
    /// Words left.
    pub left: u32,
}

/// A draw-state group (AFC-041).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    /// Header word.
    pub header: u32,
    /// Address of the packets.
    pub base: u64,
}

/// A write that the rest of the GPU sees, in order; where preemption begins and ends; and which processor writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The writes that follow are those of this processor. At the beginning it is the first.
    Writer(Processor),
    /// The preemption handler is entered.
    Preempted,
    /// The preemption handler has returned.
    Resumed,
    /// A GPU register.
    Register(u32, u32),
    /// A word of memory.
    Memory(u64, u32),
    /// A pipe register, or the address of one without data.
    Pipe(u8, u32),
}

/// The queue of the draw-state groups.
const SDS: u8 = 4;
/// Switches the check of protected registers on, and the first entry (AFC-025).
const PROTECT_CNTL: usize = gpu_register("CP_PROTECT_CNTL");
const PROTECT: usize = gpu_register("CP_PROTECT");
/// a730 has 48 entries; Mesa names the 32 that a630 has (Linux, drivers/gpu/drm/msm/adreno/a6xx_catalog.c). The driver leaves
/// those 0 that do not exist, and they protect nothing.
const PROTECT_ENTRIES: usize = 48;
const PROTECT_STATUS: usize = gpu_register("CP_PROTECT_STATUS");
/// The ring buffer (AFC-027).
const RB_BASE: usize = gpu_register("CP_RB_BASE");
const RB_CNTL: usize = gpu_register("CP_RB_CNTL");
const RB_WPTR: usize = gpu_register("CP_RB_WPTR");
/// Bit 0 asks for preemption (AFC-042).
const CONTEXT_SWITCH_CNTL: usize = gpu_register("CP_CONTEXT_SWITCH_CNTL");
/// Bit 0 starts LPAC on a6xx, from the address in the other one (AF-121, AF-125).
const LPAC_SQE_CNTL: usize = gpu_register("CP_LPAC_SQE_CNTL");
const LPAC_SQE_INSTR_BASE: usize = gpu_register("CP_LPAC_SQE_INSTR_BASE");
/// CP_INTERRUPT_STATUS (AFC-026)
pub const INTERRUPT_STATUS: usize = gpu_register("CP_INTERRUPT_STATUS");

/// Where `$data` writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataTarget {
    Register { number: u32, keep: bool, checked: bool },
    Pipe { number: u8, keep: bool },
}

/// The state outside the processor core.
#[derive(Debug, Clone)]
pub struct Bus {
    /// Control registers.
    pub control: Vec<u32>,
    /// GPU registers.
    pub gpu: Vec<u32>,
    /// Pipe registers, as last written.
    pub pipe: [u32; 256],
    /// Memory.
    pub memory: Memory,
    /// RB, IB1, IB2, IB3, SDS.
    pub queues: [Queue; 5],
    /// Handlers by opcode.
    pub packet_table: [u32; 128],
    /// Draw-state groups.
    pub groups: [Group; 32],
    /// Writes in order, if [`Bus::record`] is set.
    pub effects: Vec<Effect>,
    /// True to keep the writes in `effects`.
    pub record: bool,
    /// Writes to registers and to words of memory, recorded or not.
    pub writes: (u64, u64),
    /// Buffers that were skipped, because memory is mapped on demand and theirs was not mapped.
    pub missing_buffers: u32,
    /// Words of packets that were taken from the queues.
    pub(super) taken_words: u64,
    set: ControlSet,
    last_control: Option<(u32, u32)>,
    /// Accesses to control registers without a model, by number.
    unmodelled_control: Vec<u32>,
    /// Writes to pipe registers without a model, by number.
    unmodelled_pipe: [u32; 256],
    functions: Vec<Function>,
    numbers: Numbers,
    pub(super) target: DataTarget,
    /// Levels, as bits, of which a base was written but the number of words was not yet.
    staged: u8,
    /// True if preemption is asked for and enabled (AFC-042).
    is_preempted: bool,
    /// Words of the ring buffer, a power of two; 0 if the ring does not wrap.
    ring_words: u32,
    /// The processor that the bus belongs to, and the one that has written last.
    pub(super) processor: Processor,
    pub(super) writer: Processor,
    /// Processors to start and to stop, as bits of [`Processor::switch`].
    pub(super) switches: u32,
    /// Control registers that the processors share beside the shared range.
    pub(super) shared: [Option<usize>; 6],
    /// COPROCESSOR_LOCK: what each processor asks for, and what it holds.
    pub(super) locks: [(u32, u32); 3],
    /// Words of the image that another processor than the first has changed.
    pub(super) code_changes: Vec<(usize, u32)>,
    /// The ring of LPAC: address, write pointer.
    own_ring: Option<(u64, u32)>,
    /// Counts calls of [`Bus::set_ring`].
    pub(super) ring_number: u32,
}

impl Bus {
    /// All zero, with nothing mapped.
    pub fn new(set: ControlSet) -> Self {
        // A register that the set does not have gets a number beyond those that instructions reach.
        let number = |name: &str| register_number(Space::Control, set, name).map_or(CONTROLS, |n| n as usize);
        let mut functions = vec![Function::Storage; CONTROLS + 2];
        for (name, function) in FUNCTIONS {
            functions[number(name)] = function;
            if let Function::Base(level, _) = function {
                functions[number(name) + 1] = Function::Base(level, 1);
            }
        }
        for (name, registers) in PARAMETERS {
            functions[number(name)..][..registers].fill(Function::Parameter);
        }
        functions[CONTROLS..].fill(Function::Storage);
        let numbers = Numbers {
            ib_level: number("IB_LEVEL"),
            mem_read: number("MEM_READ_ADDR"),
            mem_read_dwords: number("MEM_READ_DWORDS"),
            reg_read: number("REG_READ_ADDR"),
            reg_read_dwords: number("REG_READ_DWORDS"),
            reg_write: number("REG_WRITE_ADDR"),
            load_store_hi: number("LOAD_STORE_HI"),
            table_address: number("PACKET_TABLE_WRITE_ADDR"),
            rb_rptr: number("RB_RPTR"),
            preempt_enable: number("PREEMPT_ENABLE"),
            preempt_trigger: number("PREEMPT_TRIGGER"),
            draw_state_active: number("DRAW_STATE_ACTIVE_BITMASK"),
            draw_state_pending: number("DRAW_STATE_SET_PENDING"),
            draw_state_base: number("DRAW_STATE_BASE"),
            draw_state_hdr: number("DRAW_STATE_HDR"),
            sds_base: number("SDS_BASE"),
        };
        Self {
            control: vec![0; CONTROLS + 2],
            gpu: vec![0; 0x1_0000],
            pipe: [0; 256],
            memory: Memory::default(),
            queues: [Queue::default(); 5],
            packet_table: [0; 128],
            groups: [Group::default(); 32],
            effects: Vec::new(),
            record: false,
            writes: (0, 0),
            missing_buffers: 0,
            taken_words: 0,
            set,
            last_control: None,
            unmodelled_control: vec![0; CONTROLS],
            unmodelled_pipe: [0; 256],
            functions,
            numbers,
            target: DataTarget::Register { number: 0, keep: false, checked: false },
            staged: 0,
            is_preempted: false,
            ring_words: 0,
            processor: Processor::First,
            writer: Processor::First,
            switches: 0,
            shared: SHARED
                .map(|(name, index)| register_number(Space::Control, set, name).map(|number| number as usize + index)),
            locks: [(0, 0); 3],
            code_changes: Vec::new(),
            own_ring: None,
            ring_number: 0,
        }
    }

    /// The address of a processor's image.
    pub(super) fn instruction_base(&self, processor: Processor) -> u64 {
        let name = match processor {
            Processor::Bv => "BV_INSTR_BASE",
            Processor::Lpac if self.set.generation() == Generation::A7 => "LPAC_INSTR_BASE",
            _ => return u64::from(self.gpu[LPAC_SQE_INSTR_BASE + 1]) << 32 | u64::from(self.gpu[LPAC_SQE_INSTR_BASE]),
        };
        register_number(Space::Control, self.set, name).map_or(0, |number| self.pair(number as usize))
    }

    /// A ring that is not that of the GPU's registers.
    pub(super) fn set_own_ring(&mut self, address: u64, words: u32) {
        self.own_ring = Some((address, words));
        self.restart_ring();
        self.update_ring();
    }

    pub(super) fn restart_ring(&mut self) {
        self.control[self.numbers.rb_rptr] = 0;
    }

    /// What the queue of the ring is made of.
    pub(super) fn ring_state(&self) -> [u32; 5] {
        let gpu = |number| self.gpu.get(number).copied().unwrap_or_default();
        [gpu(RB_BASE), gpu(RB_BASE + 1), gpu(RB_CNTL), gpu(RB_WPTR), self.ring_number]
    }

    /// Another processor may have changed the ring's registers.
    pub(super) fn follow_ring(&mut self) {
        if self.own_ring.is_none() {
            self.update_ring();
        }
    }

    /// Sets up the ring buffer: its address and its size, which is a power of two, at least 4 words; or 0 for a buffer
    /// that does not wrap. It is empty.
    pub fn set_ring(&mut self, address: u64, words: u32) {
        [self.gpu[RB_BASE], self.gpu[RB_BASE + 1]] = halves(address);
        // The size is the logarithm of the number of pairs of words.
        self.gpu[RB_CNTL] = words.checked_ilog2().map_or(0, |log| log.saturating_sub(1));
        self.gpu[RB_WPTR] = 0;
        self.ring_number = self.ring_number.wrapping_add(1);
        self.restart_ring();
        self.update_ring();
    }

    /// Sets the write pointer of the ring, in words from its start.
    pub fn set_ring_write_pointer(&mut self, pointer: u32) {
        self.gpu[RB_WPTR] = pointer;
        self.update_ring();
    }

    /// The queue of the ring follows its registers.
    fn update_ring(&mut self) {
        if let Some((address, words)) = self.own_ring {
            let read = self.control[self.numbers.rb_rptr];
            let address = address.wrapping_add(u64::from(read) * 4);
            self.queues[0] = Queue { address, left: words.saturating_sub(read) };
            return;
        }
        let size = self.gpu[RB_CNTL] & 0x3f;
        self.ring_words = if size == 0 { 0 } else { 2_u32.checked_shl(size).unwrap_or(0) };
        let base = u64::from(self.gpu[RB_BASE + 1]) << 32 | u64::from(self.gpu[RB_BASE]);
        let read = self.control[self.numbers.rb_rptr] & self.ring_words.wrapping_sub(1);
        let left = self.gpu[RB_WPTR].wrapping_sub(read) & self.ring_words.wrapping_sub(1);
        self.queues[0] = Queue { address: base.wrapping_add(u64::from(read) * 4), left };
    }

    /// True if preemption is asked for and enabled (AFC-042).
    pub const fn is_preempted(&self) -> bool {
        self.is_preempted
    }

    /// Asks for preemption, as a write of bit 0 of CP_CONTEXT_SWITCH_CNTL does.
    pub fn request_preemption(&mut self) {
        self.gpu[CONTEXT_SWITCH_CNTL] |= 1;
        self.update_preemption();
    }

    fn update_preemption(&mut self) {
        let is_requested = self.gpu[CONTEXT_SWITCH_CNTL] & 1 != 0 || self.control[self.numbers.preempt_trigger] != 0;
        self.is_preempted = is_requested && self.control[self.numbers.preempt_enable] & 1 != 0;
    }

    /// The control registers, and with them the generation.
    pub const fn set(&self) -> ControlSet {
        self.set
    }

    /// The last write to a control register since this was called last: number and value.
    pub const fn take_control_write(&mut self) -> Option<(u32, u32)> {
        self.last_control.take()
    }

    /// The queue that IB_LEVEL selects: on a6xx level 3 is SDS, on a7xx level 4 (AFC-039).
    pub fn level(&self) -> usize {
        match (self.control[self.numbers.ib_level] & 7, self.set.generation()) {
            (3, Generation::A6) | (4.., _) => usize::from(SDS),
            (level, _) => level as usize,
        }
    }

    /// Name of the current queue.
    pub fn level_name(&self) -> &'static str {
        ["RB", "IB1", "IB2", "IB3", "SDS"][self.level()]
    }

    /// The current queue.
    pub fn queue(&self) -> Queue {
        self.queues[self.level()]
    }

    /// Reads the next packet word; `peek` leaves it in the queue.
    pub fn next_word(&mut self, peek: bool) -> Access<u32> {
        let level = self.level();
        let queue = &mut self.queues[level];
        if queue.left == 0 {
            #[expect(clippy::cast_possible_truncation, reason = "below 5")]
            return Err(FaultKind::QueueEmpty(level as u32));
        }
        let word = self.memory.read(queue.address)?;
        if !peek {
            queue.address = queue.address.wrapping_add(4);
            queue.left -= 1;
            self.taken_words += 1;
            if level == 0 {
                self.advance_ring();
            }
        }
        Ok(word)
    }

    /// Counts the ring's read pointer up by one word that was read.
    fn advance_ring(&mut self) {
        let mask = self.ring_words.wrapping_sub(1);
        let read = self.control[self.numbers.rb_rptr].wrapping_add(1) & mask;
        self.control[self.numbers.rb_rptr] = read;
        if read == 0 {
            self.queues[0].address = match self.own_ring {
                Some((address, _)) => address,
                None => u64::from(self.gpu[RB_BASE + 1]) << 32 | u64::from(self.gpu[RB_BASE]),
            };
        }
    }

    fn pair(&self, number: usize) -> u64 {
        u64::from(self.control[number + 1]) << 32 | u64::from(self.control[number])
    }

    fn set_pair(&mut self, number: usize, value: u64) {
        [self.control[number], self.control[number + 1]] = halves(value);
    }

    /// `$memdata` (AFC-021).
    pub fn mem_data(&mut self, peek: bool) -> Access<u32> {
        let address = self.pair(self.numbers.mem_read);
        let value = self.memory.read(address)?;
        let left = &mut self.control[self.numbers.mem_read_dwords];
        if !peek && *left > 0 {
            *left -= 1;
            self.set_pair(self.numbers.mem_read, address.wrapping_add(4));
        }
        Ok(value)
    }

    /// `$regdata`
    pub fn reg_data(&mut self, peek: bool) -> u32 {
        let address = self.control[self.numbers.reg_read];
        let value = self.gpu[address as usize & 0xffff];
        let left = &mut self.control[self.numbers.reg_read_dwords];
        if !peek && *left > 0 {
            *left -= 1;
            self.control[self.numbers.reg_read] = address.wrapping_add(1);
        }
        value
    }

    /// The address of `load` and `store`.
    pub fn load_store_address(&self, low: u32) -> u64 {
        u64::from(self.control[self.numbers.load_store_hi]) << 32 | u64::from(low)
    }

    fn write_gpu(&mut self, number: u32, value: u32) {
        let index = number as usize & 0xffff;
        self.gpu[index] = value;
        if (RB_BASE..=RB_WPTR).contains(&index) {
            self.update_ring();
        }
        if index == CONTEXT_SWITCH_CNTL {
            self.update_preemption();
        }
        if index == LPAC_SQE_CNTL && self.set.generation() == Generation::A6 {
            self.switch(Processor::Lpac, value);
        }
        self.record_effect(Effect::Register(number & 0xffff, value));
    }

    /// Starts or stops a processor after this instruction.
    fn switch(&mut self, processor: Processor, value: u32) {
        let start = processor.switch();
        self.switches = self.switches & !(3 * start) | if value & 1 != 0 { start } else { start << 1 };
    }

    fn record_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Register(..) => self.writes.0 += 1,
            Effect::Memory(..) => self.writes.1 += 1,
            _ => {}
        }
        if self.record {
            if self.writer != self.processor {
                self.writer = self.processor;
                self.effects.push(Effect::Writer(self.processor));
            }
            self.effects.push(effect);
        }
    }

    /// Records where preemption begins and ends.
    pub(super) fn mark(&mut self, effect: Effect) {
        self.record_effect(effect);
    }

    /// Writes memory and records the write.
    pub fn write_memory(&mut self, address: u64, value: u32) -> Access<()> {
        self.memory.write(address, value)?;
        self.record_effect(Effect::Memory(address, value));
        Ok(())
    }

    /// `$addr` and `$usraddr` (AFC-023). Writing the address of a pipe register without data triggers it.
    pub fn set_address(&mut self, value: u32, checked: bool) {
        let DataAddress { pipe: number, keep, low } = DataAddress::from_word(value);
        if number == 0 {
            self.target = DataTarget::Register { number: low & 0xffff, keep, checked };
            return;
        }
        self.target = DataTarget::Pipe { number, keep };
        if number < 0xa0 {
            self.record_effect(Effect::Pipe(number, 0));
        }
    }

    /// `$data` as a destination.
    pub fn write_data(&mut self, value: u32) -> Access<()> {
        match self.target {
            DataTarget::Register { number, keep, checked } => {
                if checked && self.is_protected(number) {
                    self.gpu[PROTECT_STATUS] = number;
                    return Err(FaultKind::Protected(number));
                }
                self.write_gpu(number, value);
                let number = if keep { number } else { (number + 1) & 0xffff };
                self.target = DataTarget::Register { number, keep, checked };
            }
            DataTarget::Pipe { number, keep } => {
                self.write_pipe(number, value)?;
                let number = if keep { number } else { number.wrapping_add(1) };
                self.target = DataTarget::Pipe { number, keep };
            }
        }
        Ok(())
    }

    fn write_pipe(&mut self, number: u8, value: u32) -> Access<()> {
        self.pipe[usize::from(number)] = value;
        // NRT_DATA; bit 0 of NRT_ADDR stops the increment (AFC-024).
        if number == 0xa2 {
            let low = self.pipe[0xa0];
            let address = u64::from(self.pipe[0xa1]) << 32 | u64::from(low);
            self.write_memory(address & !3, value)?;
            if low & 1 == 0 {
                [self.pipe[0xa0], self.pipe[0xa1]] = halves(address.wrapping_add(4));
            }
        } else if !(0xa0..0xa2).contains(&number) {
            let count = &mut self.unmodelled_pipe[usize::from(number)];
            *count = count.saturating_add(1);
            self.record_effect(Effect::Pipe(number, value));
        }
        Ok(())
    }

    /// True if an entry of CP_PROTECT covers the register (AFC-025).
    fn is_protected(&self, number: u32) -> bool {
        let entries = &self.gpu[PROTECT..PROTECT + PROTECT_ENTRIES];
        self.gpu[PROTECT_CNTL] & 1 != 0
            && entries.iter().filter(|entry| **entry != 0).any(|entry| {
                let base = entry & 0x3_ffff;
                let length = (entry >> 18 & 0x1fff) + 1;
                (base..base + length).contains(&number)
            })
    }
}

/// Control registers that an instruction can address.
const CONTROLS: usize = 4096;
