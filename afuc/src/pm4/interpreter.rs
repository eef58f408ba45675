// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A plain interpreter of packets: what a command processor writes, without microcode (AFC-069, AFC-071).
//!
//! It knows no 3D engine, and of several processors only the first, BR.  Where a document leaves a choice it makes the one that README.md lists for the open firmware.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Header, header};
use crate::halves;

/// A write, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// A GPU register.
    Register(u32, u32),
    /// A word of memory.
    Memory(u64, u32),
}

/// A packet that the interpreter cannot execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The word is no header.
    #[error("word {1:08x} at {0:#x} is no packet header")]
    Header(u64, u32),
    /// The opcode, or a form of the packet, is unknown.
    #[error("packet {1:#04x} at {0:#x} has a form that is not supported")]
    Packet(u64, u8),
    /// The packet is longer than its buffer, or too short for its fields.
    #[error("packet {1:#04x} at {0:#x} has a wrong length")]
    Length(u64, u8),
    /// Memory is not there.
    #[error("address {0:#x} is not mapped")]
    Unmapped(u64),
    /// A wait for a value that no packet writes.
    #[error("packet at {0:#x} waits for a value that no packet writes")]
    Waits(u64),
    /// Buffers contain each other.
    #[error("buffers are nested deeper than the queues IB1 to IB3")]
    Depth,
    /// The stream needs more memory than the limit.
    #[error("the stream uses more memory than the limit")]
    MemoryFull,
    /// The stream is longer than the limit.
    #[error("the stream has more packets than the limit")]
    Long,
    /// The packets of the stream read and write more memory than the limit.
    #[error("the stream reads and writes more words of memory than the limit")]
    Words,
}

/// Limits that a stream cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Packets in all.
    pub packets: u64,
    /// Words of memory that are read and written in all: one packet can copy 16 GiB.
    pub words: u64,
    /// Indirect buffers in each other.
    pub depth: u32,
    /// Pages of memory, of 4 KiB each.
    pub pages: usize,
}

impl Default for Limit {
    fn default() -> Self {
        Self { packets: 100_000_000, words: 1 << 27, depth: 2, pages: 1 << 18 }
    }
}

type Done<T> = Result<T, Unsupported>;

/// Draw-state groups, and modes in which draws execute them.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    modes: u32,
    words: u32,
    address: u64,
    is_set: bool,
    is_new: bool,
}

/// The interpreter.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// GPU registers that are not 0.
    pub registers: HashMap<u32, u32>,
    /// Memory by number of its page of 4 KiB. A mapped page without an entry is all zero.
    memory: HashMap<u64, Box<[u32; 1024]>>,
    /// Mapped pages: the first, and the last.
    mapped: Vec<(u64, u64)>,
    /// True to read 0 from memory that is not there.
    pub map_on_demand: bool,
    /// Writes in order.
    pub writes: Vec<Write>,
    /// Packets that were executed, by opcode; type-4 packets are at 4.
    pub packets: [u64; 128],
    /// Groups that were executed.
    pub groups_executed: u64,
    limit: Limit,
    count: u64,
    /// Words of memory that were read or written.
    words: u64,
    states: [State; 32],
    /// Binning, GMEM or system memory: bits 0 to 2.
    mode: u32,
    predicate: bool,
    /// False while CP_THREAD_CONTROL excludes BR: the writes are those of BR.
    is_active: bool,
    /// Address of the ring and its number of words, a power of two: for its read pointer.
    pub ring: (u64, u32),
    /// Address after the packet of the ring that is executed.
    ring_position: u64,
}

/// The packet that is executed.
struct Packet<'w> {
    address: u64,
    opcode: u8,
    words: &'w [u32],
}

impl Packet<'_> {
    fn word(&self, index: usize) -> Done<u32> {
        self.words.get(index).copied().ok_or(Unsupported::Length(self.address, self.opcode))
    }

    /// A 64-bit address in two words.
    fn address(&self, index: usize) -> Done<u64> {
        Ok(u64::from(self.word(index + 1)?) << 32 | u64::from(self.word(index)?))
    }

    const fn unsupported(&self) -> Unsupported {
        Unsupported::Packet(self.address, self.opcode)
    }
}

/// A register number in bits 17:0; the model has 65,536.
const fn register(word: u32) -> u32 {
    word & 0xffff
}

impl Interpreter {
    /// An interpreter after reset.
    pub fn new(limit: Limit) -> Self {
        Self {
            registers: HashMap::new(),
            memory: HashMap::new(),
            mapped: Vec::new(),
            map_on_demand: false,
            writes: Vec::new(),
            packets: [0; 128],
            groups_executed: 0,
            limit,
            count: 0,
            words: 0,
            states: [State::default(); 32],
            mode: 4,
            predicate: false,
            is_active: true,
            ring: (0, 0),
            ring_position: 0,
        }
    }

    /// Maps memory.
    pub fn map(&mut self, address: u64, bytes: u64) {
        self.mapped.push((address >> 12, address.saturating_add(bytes.saturating_sub(1)) >> 12));
    }

    fn is_mapped(&self, address: u64) -> bool {
        let page = address >> 12;
        self.memory.contains_key(&page) || self.mapped.iter().any(|(first, last)| (*first..=*last).contains(&page))
    }

    /// Puts words into memory without recording them.
    ///
    /// # Errors
    ///
    /// If that is more memory than the limit.
    pub fn load(&mut self, address: u64, words: &[u32]) -> Done<()> {
        for (index, word) in (0..).zip(words) {
            *self.word(address.wrapping_add(index * 4))? = *word;
        }
        Ok(())
    }

    fn word(&mut self, address: u64) -> Done<&mut u32> {
        let pages = self.memory.len();
        let page = match self.memory.entry(address >> 12) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(_) if pages >= self.limit.pages => return Err(Unsupported::MemoryFull),
            Entry::Vacant(place) => place.insert(Box::new([0; 1024])),
        };
        Ok(&mut page[(address >> 2 & 1023) as usize])
    }

    /// Executes words of the ring buffer, which begin at `address` and do not wrap.
    ///
    /// # Errors
    ///
    /// At the first packet that cannot be executed.
    pub fn execute_ring(&mut self, words: &[u32], address: u64) -> Done<()> {
        self.execute(words, address, 0)
    }

    /// Counts an access to a word of memory.
    fn count_access(&mut self) -> Done<()> {
        self.words += 1;
        if self.words > self.limit.words { Err(Unsupported::Words) } else { Ok(()) }
    }

    fn read(&mut self, address: u64) -> Done<u32> {
        self.count_access()?;
        match self.memory.get(&(address >> 12)) {
            Some(page) => Ok(page[(address >> 2 & 1023) as usize]),
            None if self.map_on_demand || self.is_mapped(address) => Ok(0),
            None => Err(Unsupported::Unmapped(address)),
        }
    }

    fn write(&mut self, address: u64, value: u32) -> Done<()> {
        self.count_access()?;
        // The two low bits of an address are flags.
        let address = address & !3;
        if !self.map_on_demand && !self.is_mapped(address) {
            return Err(Unsupported::Unmapped(address));
        }
        *self.word(address)? = value;
        self.writes.push(Write::Memory(address, value));
        Ok(())
    }

    fn register(&self, number: u32) -> u32 {
        self.registers.get(&register(number)).copied().unwrap_or_default()
    }

    fn set_register(&mut self, number: u32, value: u32) {
        self.registers.insert(register(number), value);
        self.writes.push(Write::Register(register(number), value));
    }

    /// Sets consecutive registers. `first` may be any word of a packet; numbers wrap.
    fn set_registers(&mut self, first: u32, values: &[u32]) {
        (0..).zip(values).for_each(|(index, value)| self.set_register(first.wrapping_add(index), *value));
    }

    fn buffer(&mut self, address: u64, words: u32, depth: u32) -> Done<()> {
        // A buffer that is not in memory at all is skipped.
        if self.map_on_demand && !self.is_mapped(address) {
            return Ok(());
        }
        let at = |index| address.wrapping_add(u64::from(index) * 4);
        let words = (0..words).map(|index| self.read(at(index))).collect::<Done<Vec<u32>>>()?;
        self.execute(&words, address, depth)
    }

    fn execute(&mut self, words: &[u32], base: u64, depth: u32) -> Done<()> {
        let mut index = 0;
        while let Some(first) = words.get(index) {
            let address = base.wrapping_add(index as u64 * 4);
            self.count += 1;
            if self.count > self.limit.packets {
                return Err(Unsupported::Long);
            }
            let header = header(*first).ok_or(Unsupported::Header(address, *first))?;
            let end = index + 1 + header.count() as usize;
            let opcode = match header {
                Header::Registers { .. } => 4,
                Header::Operation { opcode, .. } => opcode,
            };
            let payload = words.get(index + 1..end).ok_or(Unsupported::Length(address, opcode))?;
            self.packets[usize::from(opcode)] += 1;
            let mut skip = 0;
            match header {
                _ if !self.is_active && !matches!(opcode, 0x17 | 0x3f) => {}
                Header::Registers { first, .. } => {
                    self.set_registers(first, payload);
                }
                Header::Operation { opcode, .. } => {
                    if depth == 0 {
                        self.ring_position = base.wrapping_add(end as u64 * 4);
                    }
                    skip = self.operation(&Packet { address, opcode, words: payload }, depth)?;
                }
            }
            index = end + skip as usize;
            if index > words.len() {
                return Err(Unsupported::Length(address, opcode));
            }
        }
        Ok(())
    }

    /// Executes a type-7 packet; returns how many words after it are skipped.
    fn operation(&mut self, packet: &Packet, depth: u32) -> Done<u32> {
        match packet.opcode {
            // No effect here: nops, waits for units that are always idle, state of the 3D engine, modes.
            0x10
            | 0x12
            | 0x13
            | 0x26
            | 0x2c
            | 0x2e
            | 0x2f
            | 0x30..=0x36
            | 0x40
            | 0x41
            | 0x48
            | 0x53
            | 0x55
            | 0x56
            | 0x58..=0x5b
            | 0x5e
            | 0x5f
            | 0x63
            | 0x64
            | 0x66
            | 0x6b
            | 0x1d
            | 0x23 => {}
            0x17 => self.is_active = packet.word(0)? & 1 != 0,
            0x22 | 0x24 | 0x28..=0x2a | 0x38 => self.draw(depth)?,
            0x21 => self.register_read_modify_write(packet)?,
            0x39 => self.predicate = self.register(packet.word(0)?) >> (packet.word(0)? >> 20 & 31) & 1 != 0,
            0x3c | 0x14 => self.wait(packet)?,
            0x3d => self.store(packet.address(0)?, packet.words.get(2..).unwrap_or_default())?,
            0x3e => self.registers_to_memory(packet)?,
            0x3f => {
                if depth >= self.limit.depth {
                    return Err(Unsupported::Depth);
                }
                self.buffer(packet.address(0)?, packet.word(2)? & 0xf_ffff, depth + 1)?;
            }
            0x42 => self.memory_to_registers(packet)?,
            0x43 => self.set_draw_state(packet)?,
            0x44 => {
                let below = self.read(packet.address(2)?)?.cast_signed() < packet.word(4)?.cast_signed();
                if self.read(packet.address(0)?)? == 0 || !below {
                    return Ok(packet.word(5)? & 0x00ff_ffff);
                }
            }
            0x45 => {
                if self.condition(packet, packet.word(0)?, packet.word(3)?, packet.word(4)?)? {
                    match packet.word(0)? >> 8 & 1 {
                        0 => self.set_register(packet.word(5)?, packet.word(7)?),
                        _ => self.store(packet.address(5)?, &packet.words[7..])?,
                    }
                }
            }
            0x46 => {
                if packet.words.len() > 1 {
                    self.store(packet.address(1)?, &packet.words[3..])?;
                }
            }
            0x47 => return self.conditional(packet),
            0x4c => self.set_register(0x883 + (packet.word(0)? >> 20 & 7), packet.word(1)?),
            0x5c => {
                for pair in packet.words.chunks(2) {
                    let [number, value] = *pair else { return Err(Unsupported::Length(packet.address, 0x5c)) };
                    self.set_register(number, value);
                }
            }
            0x62 => {
                #[expect(clippy::cast_possible_truncation, reason = "a ring has less than 2^32 words")]
                let read_pointer = (self.ring_position.wrapping_sub(self.ring.0) / 4) as u32;
                let read_pointer = read_pointer & self.ring.1.wrapping_sub(1);
                self.write(packet.address(0)?, read_pointer)?;
            }
            0x65 => self.marker(packet.word(0)?),
            0x6d => {
                self.set_registers(packet.word(1)?, &packet.words[2..]);
            }
            0x73 => self.memory_to_memory(packet)?,
            0x75 => {
                for offset in (0..u64::from(packet.word(0)?)).map(|index| index * 4) {
                    let value = self.read(packet.address(1)?.wrapping_add(offset))?;
                    self.write(packet.address(3)?.wrapping_add(offset), value)?;
                }
            }
            _ => return Err(packet.unsupported()),
        }
        Ok(0)
    }

    fn store(&mut self, address: u64, values: &[u32]) -> Done<()> {
        (0..).zip(values).try_for_each(|(index, value)| self.write((address & !3).wrapping_add(index * 4), *value))
    }

    fn draw(&mut self, depth: u32) -> Done<()> {
        // A group cannot draw.
        if depth > self.limit.depth {
            return Err(Unsupported::Depth);
        }
        for number in 0..self.states.len() {
            let state = self.states[number];
            if state.is_set && state.is_new && state.modes & self.mode != 0 {
                self.states[number].is_new = false;
                self.groups_executed += 1;
                self.buffer(state.address, state.words, self.limit.depth + 1)?;
            }
        }
        Ok(())
    }

    fn set_draw_state(&mut self, packet: &Packet) -> Done<()> {
        for group in packet.words.chunks(3) {
            let [head, low, high] = *group else { return Err(Unsupported::Length(packet.address, packet.opcode)) };
            if head >> 18 & 1 != 0 {
                self.states = [State::default(); 32];
            }
            let is_set = head >> 17 & 1 == 0 && head & 0xffff != 0;
            self.states[(head >> 24 & 31) as usize] = State {
                modes: head >> 20 & 7,
                words: head & 0xffff,
                address: u64::from(high) << 32 | u64::from(low),
                is_set,
                is_new: is_set,
            };
        }
        Ok(())
    }

    fn marker(&mut self, word: u32) {
        self.mode = match word & 0x10f {
            2 => 1,
            3..=6 => 2,
            1 | 8 | 12 => 4,
            _ => self.mode,
        };
    }

    /// CP_COND_REG_EXEC
    fn conditional(&mut self, packet: &Packet) -> Done<u32> {
        let word = packet.word(0)?;
        let (value, length) = match word >> 28 {
            // Predicates beyond the first are never set.
            1 => (self.predicate && word >> 18 & 31 == 0, packet.word(1)?),
            2 => (self.register(word) == self.register(packet.word(1)?), packet.word(2)?),
            3 => (word >> 25 & self.mode != 0, packet.word(1)?),
            4 => (self.register(word) == packet.word(1)?, packet.word(2)?),
            5 => (word >> 26 & 1 != 0, packet.word(1)?),
            _ => return Err(packet.unsupported()),
        };
        Ok(if value { 0 } else { length & 0x00ff_ffff })
    }

    /// The condition of a wait or a conditional write.
    fn condition(&mut self, packet: &Packet, flags: u32, reference: u32, mask: u32) -> Done<bool> {
        let polled = match flags >> 4 & 3 {
            0 => self.register(packet.word(1)?),
            1 => self.read(packet.address(1)?)?,
            _ => return Err(packet.unsupported()),
        };
        // Signed numbers in order, as unsigned ones.
        let order = |value: u32| if flags >> 3 & 1 != 0 { value ^ 1 << 31 } else { value };
        let (value, reference) = (order(polled & mask), order(reference));
        Ok(match flags & 7 {
            0 => true,
            1 => value < reference,
            2 => value <= reference,
            3 => value == reference,
            4 => value != reference,
            5 => value >= reference,
            6 => value > reference,
            _ => return Err(packet.unsupported()),
        })
    }

    /// CP_WAIT_REG_MEM, and CP_WAIT_MEM_GTE, which waits for memory to be at least a value. All writes are done already.
    fn wait(&mut self, packet: &Packet) -> Done<()> {
        let (flags, mask) = match packet.opcode {
            0x14 => (0x15, u32::MAX),
            _ => (packet.word(0)?, packet.word(4)?),
        };
        let is_met = self.condition(packet, flags, packet.word(3)?, mask)?;
        if is_met { Ok(()) } else { Err(Unsupported::Waits(packet.address)) }
    }

    fn registers_to_memory(&mut self, packet: &Packet) -> Done<()> {
        let word = packet.word(0)?;
        if word >> 31 != 0 {
            return Err(packet.unsupported());
        }
        let values: Vec<u32> = (0..(word >> 18 & 0xfff).max(1)).map(|index| self.register(word + index)).collect();
        self.store(packet.address(1)?, &values)
    }

    fn memory_to_registers(&mut self, packet: &Packet) -> Done<()> {
        let word = packet.word(0)?;
        if word >> 30 & 1 != 0 {
            return Err(packet.unsupported());
        }
        for index in 0..(word >> 19 & 0x7ff).max(1) {
            let value = self.read(packet.address(1)?.wrapping_add(u64::from(index) * 4))?;
            self.set_register(word + index, value);
        }
        Ok(())
    }

    fn register_read_modify_write(&mut self, packet: &Packet) -> Done<()> {
        let word = packet.word(0)?;
        let source = |index, is_register: u32| {
            packet.word(index).map(|value| if is_register & 1 != 0 { self.register(value) } else { value })
        };
        let (and, other) = (source(1, word >> 31)?, source(2, word >> 30)?);
        let rotated = (self.register(word) & and).rotate_left(word >> 24 & 31);
        let value = if word >> 29 & 1 != 0 { rotated.wrapping_add(other) } else { rotated | other };
        self.set_register(word, value);
        Ok(())
    }

    fn memory_to_memory(&mut self, packet: &Packet) -> Done<()> {
        let flags = packet.word(0)?;
        let is_wide = flags >> 29 & 1 != 0;
        let mut sum = 0_u64;
        for (number, index) in (3..packet.words.len()).step_by(2).enumerate() {
            let address = packet.address(index)?;
            let high = if is_wide { self.read(address.wrapping_add(4))? } else { 0 };
            let value = u64::from(high) << 32 | u64::from(self.read(address)?);
            let is_negative = number < 3 && flags >> number & 1 != 0;
            sum = if is_negative { sum.wrapping_sub(value) } else { sum.wrapping_add(value) };
        }
        self.store(packet.address(1)?, &halves(sum)[..1 + usize::from(is_wide)])
    }
}
