// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Control registers: those with a function, those that the model reads, and plain storage.

use crate::halves;

use super::{Bus, CONTROLS, Group, Processor, Queue, SDS};

/// Control registers with a function, by their number in the chip's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    /// Plain storage, and nothing in the model uses the value.
    Storage,
    /// Plain storage; the model reads it at use.
    Parameter,
    /// The read pointer of the ring.
    RingReadPointer,
    /// The address of a queue, low and high half. Reading gives the address of the next word.
    Base(u8, u8),
    /// Writing arms the queue of a level; reading gives the words left.
    Dwords(u8),
    /// PREEMPT_ENABLE, and PREEMPT_TRIGGER, of which a value that is not 0 asks for preemption.
    Preemption,
    RegWrite,
    PacketTableWrite,
    DrawStateSelect,
    DrawStateSetHeader,
    /// Bit 0 starts a processor; without it the processor stops.
    Switch(Processor),
    /// COPROCESSOR_LOCK: the bits that are written are asked for; those that are read are held (AFC-019).
    Lock,
}

pub(super) const FUNCTIONS: [(&str, Function); 18] = [
    ("BV_CNTL", Function::Switch(Processor::Bv)),
    ("LPAC_CNTL", Function::Switch(Processor::Lpac)),
    ("COPROCESSOR_LOCK", Function::Lock),
    ("RB_RPTR", Function::RingReadPointer),
    ("PREEMPT_ENABLE", Function::Preemption),
    ("PREEMPT_TRIGGER", Function::Preemption),
    ("IB1_BASE", Function::Base(1, 0)),
    ("IB2_BASE", Function::Base(2, 0)),
    ("IB3_BASE", Function::Base(3, 0)),
    ("SDS_BASE", Function::Base(SDS, 0)),
    ("IB1_DWORDS", Function::Dwords(1)),
    ("IB2_DWORDS", Function::Dwords(2)),
    ("IB3_DWORDS", Function::Dwords(3)),
    ("SDS_DWORDS", Function::Dwords(SDS)),
    ("REG_WRITE", Function::RegWrite),
    ("PACKET_TABLE_WRITE", Function::PacketTableWrite),
    ("DRAW_STATE_SEL", Function::DrawStateSelect),
    ("DRAW_STATE_SET_HDR", Function::DrawStateSetHeader),
];

/// Control registers that the model reads, with their number.
pub(super) const PARAMETERS: [(&str, usize); 13] = [
    ("BV_INSTR_BASE", 2),
    ("LPAC_INSTR_BASE", 2),
    ("IB_LEVEL", 1),
    ("MEM_READ_ADDR", 2),
    ("MEM_READ_DWORDS", 1),
    ("REG_READ_ADDR", 1),
    ("REG_READ_DWORDS", 1),
    ("REG_WRITE_ADDR", 1),
    ("LOAD_STORE_HI", 1),
    ("PACKET_TABLE_WRITE_ADDR", 1),
    ("DRAW_STATE_ACTIVE_BITMASK", 1),
    ("DRAW_STATE_SET_PENDING", 1),
    ("DRAW_STATE_HDR", 1),
];

/// Control registers outside of the shared range that all processors see: BV and LPAC read their own address there
/// (AFC-045a).
pub(super) const SHARED: [(&str, usize); 6] = [
    ("BV_INSTR_BASE", 0),
    ("BV_INSTR_BASE", 1),
    ("BV_CNTL", 0),
    ("LPAC_INSTR_BASE", 0),
    ("LPAC_INSTR_BASE", 1),
    ("LPAC_CNTL", 0),
];

/// The first control register of the scratch ranges (AF-057).
const SCRATCH: usize = 0x100;
/// Numbers of control registers that are read at use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub ib_level: usize,
    pub mem_read: usize,
    pub mem_read_dwords: usize,
    pub reg_read: usize,
    pub reg_read_dwords: usize,
    pub reg_write: usize,
    pub load_store_hi: usize,
    pub table_address: usize,
    pub rb_rptr: usize,
    pub preempt_enable: usize,
    pub preempt_trigger: usize,
    pub draw_state_active: usize,
    pub draw_state_pending: usize,
    pub draw_state_base: usize,
    pub draw_state_hdr: usize,
    pub sds_base: usize,
}

impl Bus {
    /// Reads a control register for an instruction: an access to one without a model is counted.
    pub(in crate::machine) fn load_control(&mut self, number: u32) -> u32 {
        let index = number as usize & (CONTROLS - 1);
        match self.functions[index] {
            Function::Storage => self.count_unmodelled(index),
            Function::Lock => self.control[index] = self.acquire_locks(),
            _ => {}
        }
        self.read_control(number)
    }

    /// Takes the locks that the processor asks for and no other holds; returns those that it holds.
    fn acquire_locks(&mut self) -> u32 {
        let own = self.processor as usize;
        let others =
            (0..self.locks.len()).filter(|index| *index != own).fold(0, |sum, index| sum | self.locks[index].1);
        self.locks[own].1 = self.locks[own].0 & !others;
        self.locks[own].1
    }

    /// Registers from 0x100 on are scratch.
    fn count_unmodelled(&mut self, number: usize) {
        if number < SCRATCH {
            self.unmodelled_control[number] = self.unmodelled_control[number].saturating_add(1);
        }
    }

    /// Control registers without a model that were accessed, with the number of accesses (AFC-066).
    pub fn unmodelled_control_registers(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.unmodelled_control.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Pipe registers without a model that were written, with the number of writes.
    pub fn unmodelled_pipe_registers(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.unmodelled_pipe).filter(|(_, count)| *count > 0)
    }

    /// Reads a control register.
    pub fn read_control(&self, number: u32) -> u32 {
        let number = number as usize & (CONTROLS - 1);
        match self.functions[number] {
            Function::Dwords(level) => self.queues[usize::from(level)].left,
            Function::Base(level, half) if self.staged >> level & 1 == 0 => {
                halves(self.queues[usize::from(level)].address)[usize::from(half)]
            }
            _ => self.control[number],
        }
    }

    /// Writes a control register. `more` are the words of `(sdsN)`, low half first.
    pub fn write_control(&mut self, number: u32, value: u32, more: [u32; 2]) {
        self.last_control = Some((number & 0xfff, value));
        let number = number as usize & (CONTROLS - 1);
        self.control[number] = value;
        match self.functions[number] {
            Function::Storage => self.count_unmodelled(number),
            Function::Parameter => {}
            Function::Preemption => self.update_preemption(),
            Function::Base(level, _) => self.stage(number, level),
            Function::RingReadPointer => self.update_ring(),
            Function::Switch(processor) => self.switch(processor, value),
            Function::Lock => {
                self.locks[self.processor as usize].0 = value;
                self.control[number] = self.acquire_locks();
            }
            // The base is the pair before.
            Function::Dwords(level) => {
                let address = self.pair(number - 2);
                let is_missing = value != 0 && self.memory.map_on_demand && !self.memory.is_mapped(address);
                self.missing_buffers += u32::from(is_missing);
                let left = if is_missing { 0 } else { value };
                self.queues[usize::from(level)] = Queue { address, left };
                self.staged &= !(1 << level);
            }
            Function::RegWrite => {
                let address = self.control[self.numbers.reg_write];
                self.write_gpu(address & 0xffff, value);
                self.control[self.numbers.reg_write] = address & 0xffff_0000 | address.wrapping_add(1) & 0xffff;
            }
            Function::PacketTableWrite => {
                let at = self.control[self.numbers.table_address];
                self.packet_table[at as usize & 127] = value;
                self.control[self.numbers.table_address] = at.wrapping_add(1);
            }
            Function::DrawStateSetHeader => {
                let group = value >> 24 & 31;
                let base = u64::from(more[1]) << 32 | u64::from(more[0]);
                self.groups[group as usize] = Group { header: value, base };
                // Bit 17 disables the group, bit 18 all of them. A group without words is disabled too.
                let is_set = value & 0xffff != 0 && value >> 17 & 1 == 0;
                for mask in [self.numbers.draw_state_active, self.numbers.draw_state_pending] {
                    let kept = if value >> 18 & 1 != 0 { 0 } else { self.control[mask] & !(1 << group) };
                    self.control[mask] = kept | u32::from(is_set) << group;
                }
            }
            Function::DrawStateSelect => {
                let group = self.groups[value as usize & 31];
                self.set_pair(self.numbers.sds_base, group.base);
                self.staged |= 1 << SDS;
                self.set_pair(self.numbers.draw_state_base, group.base);
                // The mode mask is in the high half, the number of words in the low half.
                self.control[self.numbers.draw_state_hdr] = (group.header >> 20 & 7) << 16 | group.header & 0xffff;
            }
        }
    }

    /// A half of a queue's base was written. If it is the first, the other half is that of the queue's address.
    fn stage(&mut self, number: usize, level: u8) {
        if self.staged >> level & 1 == 0 {
            let Function::Base(_, half) = self.functions[number] else { return };
            let value = self.control[number];
            let low = number - usize::from(half);
            self.set_pair(low, self.queues[usize::from(level)].address);
            self.control[number] = value;
            self.staged |= 1 << level;
        }
    }
}
