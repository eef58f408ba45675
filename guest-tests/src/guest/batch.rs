// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Batch buffers: MI commands, flushes and jumps, with the names used by the PRM and the driver.
//!
//! Layouts: contract K.8, `xe: instructions/xe_mi_commands.h`. The copy engine's blit commands are in `blt.rs`.

use super::mi_math::Alu;
use crate::number::{count, high, low};

const fn mi(opcode: u32) -> u32 {
    opcode << 23
}

const MI_NOOP: u32 = mi(0x00);
const MI_ARB_CHECK: u32 = mi(0x05);
const MI_BATCH_BUFFER_END: u32 = mi(0x0a);
const MI_MATH: u32 = mi(0x1a);
const MI_SEMAPHORE_WAIT: u32 = mi(0x1c);
const MI_STORE_DATA_IMM: u32 = mi(0x20);
const MI_LOAD_REGISTER_IMM: u32 = mi(0x22);
const MI_STORE_REGISTER_MEM: u32 = mi(0x24);
const MI_FLUSH_DW: u32 = mi(0x26);
const MI_LOAD_REGISTER_MEM: u32 = mi(0x29);
const MI_LOAD_REGISTER_REG: u32 = mi(0x2a);
const MI_ATOMIC: u32 = mi(0x2f);
const MI_BATCH_BUFFER_START: u32 = mi(0x31);
const MI_CONDITIONAL_BATCH_BUFFER_END: u32 = mi(0x36);
const PIPE_CONTROL: u32 = 0x7a00_0000;

const SDI_QWORD: u32 = 1 << 21;
const CS_MMIO: u32 = 1 << 19;
const LRR_SRC_CS_MMIO: u32 = 1 << 18;
const SEMAPHORE_POLL: u32 = 1 << 15;
const BB_PPGTT: u32 = 1 << 8;
const BB_SECOND_LEVEL: u32 = 1 << 22;
const COND_DO_COMPARE: u32 = 1 << 21;
const ATOMIC_INC: u32 = 0x5 << 8;
const PIPE_CONTROL_CS_STALL: u32 = 1 << 20;
const PIPE_CONTROL_FLUSH_ENABLE: u32 = 1 << 7;

/// Maximum number of quadwords of one MI_STORE_DATA_IMM (`xe: MAX_PTE_PER_SDI`).
pub const MAX_QWORDS: usize = 0x1fe;

/// Registers relative to an engine's MMIO base, for commands that add it (CS_MMIO).
pub mod reg {
    /// `RING_TIMESTAMP`: low dword of the 36-bit timestamp.
    pub const TIMESTAMP: u32 = 0x358;
    /// `RING_TIMESTAMP_UDW`.
    pub const TIMESTAMP_UDW: u32 = 0x35c;

    /// Low dword of general purpose register `n`, 0 to 15; the high dword follows.
    pub const fn gpr(n: u32) -> u32 {
        assert!(n < 16);
        0x600 + 8 * n
    }
}

/// Comparison of a semaphore wait or a conditional batch end: memory (left) with the command's data (right).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Compare {
    /// Memory > data.
    Greater = 0,
    /// Memory >= data.
    GreaterOrEqual = 1,
    /// Memory < data.
    Less = 2,
    /// Memory <= data.
    LessOrEqual = 3,
    /// Memory == data.
    Equal = 4,
    /// Memory != data.
    NotEqual = 5,
}

/// The 64-bit value that a flush writes after completion of all preceding work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostSync {
    /// This value.
    Immediate(u64),
    /// The engine's timestamp.
    Timestamp,
}

impl PostSync {
    /// The two-bit field [15:14] that MI_FLUSH_DW and PIPE_CONTROL have in common, shifted into position.
    fn field(self) -> u32 {
        match self {
            PostSync::Immediate(_) => 1 << 14,
            PostSync::Timestamp => 3 << 14,
        }
    }

    fn immediate(self) -> u64 {
        match self {
            PostSync::Immediate(value) => value,
            PostSync::Timestamp => 0,
        }
    }
}

/// A batch under construction, which will be loaded at a fixed GPU virtual address.
#[derive(Clone, Debug)]
pub struct Batch {
    base: u64,
    dwords: Vec<u32>,
}

impl Batch {
    /// An empty batch that will be loaded at GPU virtual address `base`.
    pub fn at(base: u64) -> Self {
        Batch { base, dwords: Vec::new() }
    }

    /// The dwords built so far.
    pub fn dwords(&self) -> &[u32] {
        &self.dwords
    }

    /// Address of the next command, as a target of [`Batch::batch_buffer_start`].
    pub fn here(&self) -> u64 {
        self.base + 4 * self.dwords.len() as u64
    }

    /// Appends one command unchanged.
    pub fn push(&mut self, command: &[u32]) -> &mut Self {
        self.dwords.extend_from_slice(command);
        self
    }

    fn addressed(&mut self, header: u32, address: u64) -> &mut Self {
        self.push(&[header, low(address), high(address)])
    }

    /// MI_NOOP.
    pub fn noop(&mut self) -> &mut Self {
        self.push(&[MI_NOOP])
    }

    /// MI_ARB_CHECK: a point at which the context may be preempted.
    pub fn arbitration_check(&mut self) -> &mut Self {
        self.push(&[MI_ARB_CHECK])
    }

    /// MI_STORE_DATA_IMM of one dword.
    pub fn store_dword(&mut self, address: u64, value: u32) -> &mut Self {
        self.addressed(MI_STORE_DATA_IMM | 2, address).push(&[value])
    }

    /// MI_STORE_DATA_IMM of 1 to [`MAX_QWORDS`] quadwords.
    pub fn store_qwords(&mut self, address: u64, values: &[u64]) -> &mut Self {
        assert!((1..=MAX_QWORDS).contains(&values.len()), "{} quadwords in one store", values.len());
        self.addressed(MI_STORE_DATA_IMM | SDI_QWORD | (2 * count(values.len()) + 1), address);
        self.dwords.extend(values.iter().flat_map(|value| [low(*value), high(*value)]));
        self
    }

    /// MI_LOAD_REGISTER_IMM of (engine-relative register, value) pairs.
    pub fn load_register_imm(&mut self, registers: &[(u32, u32)]) -> &mut Self {
        assert!((1..=127).contains(&registers.len()));
        self.push(&[MI_LOAD_REGISTER_IMM | CS_MMIO | (2 * count(registers.len()) - 1)]);
        self.dwords.extend(registers.iter().flat_map(|&(register, value)| [register, value]));
        self
    }

    /// Loads both halves of general purpose register `n`.
    pub fn load_gpr(&mut self, n: u32, value: u64) -> &mut Self {
        let at = reg::gpr(n);
        self.load_register_imm(&[(at, low(value)), (at + 4, high(value))])
    }

    /// MI_LOAD_REGISTER_REG between registers of this engine.
    pub fn load_register_reg(&mut self, from: u32, to: u32) -> &mut Self {
        self.push(&[MI_LOAD_REGISTER_REG | CS_MMIO | LRR_SRC_CS_MMIO | 1, from, to])
    }

    /// MI_LOAD_REGISTER_MEM of one dword.
    pub fn load_register_mem(&mut self, register: u32, address: u64) -> &mut Self {
        self.push(&[MI_LOAD_REGISTER_MEM | CS_MMIO | 2, register, low(address), high(address)])
    }

    /// MI_STORE_REGISTER_MEM of one dword.
    pub fn store_register_mem(&mut self, register: u32, address: u64) -> &mut Self {
        self.push(&[MI_STORE_REGISTER_MEM | CS_MMIO | 2, register, low(address), high(address)])
    }

    /// Stores both halves of general purpose register `n` to the quadword at `address`.
    pub fn store_gpr(&mut self, n: u32, address: u64) -> &mut Self {
        self.store_register_mem(reg::gpr(n), address).store_register_mem(reg::gpr(n) + 4, address + 4)
    }

    /// MI_MATH with these ALU instructions.
    pub fn math(&mut self, program: &[Alu]) -> &mut Self {
        assert!((1..=255).contains(&program.len()));
        self.push(&[MI_MATH | (count(program.len()) - 1)]);
        self.dwords.extend(program.iter().map(|instruction| instruction.dword()));
        self
    }

    /// MI_SEMAPHORE_WAIT in polling mode: waits until the dword at `address` satisfies `compare` with `data`.
    pub fn semaphore_wait(&mut self, address: u64, compare: Compare, data: u32) -> &mut Self {
        let header = MI_SEMAPHORE_WAIT | SEMAPHORE_POLL | (compare as u32) << 12 | 3;
        self.push(&[header, data, low(address), high(address), 0])
    }

    /// MI_ATOMIC: adds one to the dword at `address`.
    pub fn atomic_increment(&mut self, address: u64) -> &mut Self {
        self.addressed(MI_ATOMIC | ATOMIC_INC | 1, address)
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the dword at `address` satisfies `compare` with `data`, and
    /// ends the batch otherwise.
    pub fn end_unless(&mut self, address: u64, compare: Compare, data: u32) -> &mut Self {
        let header = MI_CONDITIONAL_BATCH_BUFFER_END | COND_DO_COMPARE | (compare as u32) << 12 | 2;
        self.push(&[header, data, low(address), high(address)])
    }

    /// MI_BATCH_BUFFER_START: a jump without return.
    pub fn batch_buffer_start(&mut self, address: u64) -> &mut Self {
        self.addressed(MI_BATCH_BUFFER_START | BB_PPGTT | 1, address)
    }

    /// MI_BATCH_BUFFER_START of a second-level batch: its end returns to the command after this one.
    pub fn call(&mut self, address: u64) -> &mut Self {
        self.addressed(MI_BATCH_BUFFER_START | BB_SECOND_LEVEL | BB_PPGTT | 1, address)
    }

    /// MI_BATCH_BUFFER_END.
    pub fn batch_buffer_end(&mut self) -> &mut Self {
        self.push(&[MI_BATCH_BUFFER_END])
    }

    /// MI_FLUSH_DW with a 64-bit write of `what` to `address` (copy and media engines).
    pub fn flush_dw(&mut self, address: u64, what: PostSync) -> &mut Self {
        let value = what.immediate();
        self.addressed(MI_FLUSH_DW | what.field() | 3, address).push(&[low(value), high(value)])
    }

    /// PIPE_CONTROL with a 64-bit write of `what` to `address` (render and compute engines).
    pub fn pipe_control(&mut self, address: u64, what: PostSync) -> &mut Self {
        let value = what.immediate();
        let flags = PIPE_CONTROL_CS_STALL | PIPE_CONTROL_FLUSH_ENABLE | what.field();
        self.push(&[PIPE_CONTROL | 4, flags, low(address), high(address)]).push(&[low(value), high(value)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::mi_math::{Alu, Operand};

    const VA: u64 = 0x1_2345_6780;

    fn built(build: impl FnOnce(&mut Batch)) -> Vec<u32> {
        let mut batch = Batch::at(0);
        build(&mut batch);
        batch.dwords().to_vec()
    }

    /// Contract K.8: MI_STORE_DATA_IMM, `MI_SDI_NUM_DW`, `MI_SDI_NUM_QW`.
    #[test]
    fn stores() {
        assert_eq!(built(|b| _ = b.store_dword(VA, 7)), [0x1000_0002, 0x2345_6780, 1, 7]);
        assert_eq!(built(|b| _ = b.store_qwords(VA, &[0x2_0000_0001])), [0x1020_0003, 0x2345_6780, 1, 1, 2]);
        let most = built(|b| _ = b.store_qwords(VA, &[0; MAX_QWORDS]));
        assert_eq!(most[0], 0x1020_03fd);
        assert_eq!(most.len(), 0x3fd + 2);
    }

    /// Contract K.8: register commands with CS_MMIO offsets.
    #[test]
    fn registers() {
        assert_eq!(built(|b| _ = b.load_gpr(1, 0x5_0000_0004)), [0x1108_0003, 0x608, 4, 0x60c, 5]);
        assert_eq!(built(|b| _ = b.load_register_reg(0x358, 0x600)), [0x150c_0001, 0x358, 0x600]);
        assert_eq!(built(|b| _ = b.load_register_mem(0x600, VA)), [0x1488_0002, 0x600, 0x2345_6780, 1]);
        assert_eq!(built(|b| _ = b.store_register_mem(0x358, VA)), [0x1208_0002, 0x358, 0x2345_6780, 1]);
    }

    /// Contract K.8, B.9: semaphore, atomic, conditional end (as in IGT's xe_exec_store@basic-cond-batch), jumps.
    #[test]
    fn flow() {
        assert_eq!(
            built(|b| _ = b.semaphore_wait(VA, Compare::GreaterOrEqual, 9)),
            [0x0e00_9003, 9, 0x2345_6780, 1, 0]
        );
        assert_eq!(built(|b| _ = b.atomic_increment(VA)), [0x1780_0501, 0x2345_6780, 1]);
        assert_eq!(built(|b| _ = b.end_unless(VA, Compare::NotEqual, 9)), [0x1b20_5002, 9, 0x2345_6780, 1]);
        assert_eq!(built(|b| _ = b.batch_buffer_start(VA)), [0x1880_0101, 0x2345_6780, 1]);
        assert_eq!(built(|b| _ = b.call(VA)), [0x18c0_0101, 0x2345_6780, 1]);
        assert_eq!(built(|b| _ = b.noop().batch_buffer_end()), [0, 0x0500_0000]);
    }

    /// Contract K.8: MI_FLUSH_DW and PIPE_CONTROL with post-sync writes.
    #[test]
    fn flushes() {
        let value = PostSync::Immediate(0x2_0000_0001);
        assert_eq!(built(|b| _ = b.flush_dw(VA, value)), [0x1300_4003, 0x2345_6780, 1, 1, 2]);
        assert_eq!(built(|b| _ = b.flush_dw(VA, PostSync::Timestamp)), [0x1300_c003, 0x2345_6780, 1, 0, 0]);
        assert_eq!(built(|b| _ = b.pipe_control(VA, value)), [0x7a00_0004, 0x0010_4080, 0x2345_6780, 1, 1, 2]);
    }

    /// Contract K.8: MI_MATH's length counts the ALU dwords.
    #[test]
    fn math_and_addresses() {
        let mut batch = Batch::at(0x1000);
        batch.math(&[Alu::Load(Operand::SrcA, Operand::R(1)), Alu::Add]);
        assert_eq!(batch.dwords(), [0x0d00_0001, 0x0800_8001, 0x1000_0000]);
        assert_eq!(batch.here(), 0x100c);
    }
}
