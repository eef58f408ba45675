// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Encoders of commands for tests and guests: MI commands, flushes, commands of the copy engine and of the compute pipeline.
//!
//! The layouts are those of drivers and documents, not of the device model's tables, which tests check with them. The
//! builders in this module have the form of Xe-HPG, with addresses of two dwords (contract K.8, B.9,
//! `xe: instructions/xe_mi_commands.h`); [`gen6`] has those that differ on Gen6 and Gen7. [`header`] has opcodes and
//! fields, for forms without a builder. A builder returns the command's dwords, and tests of other forms modify them.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod alu;
pub mod blt;
pub mod compute;
pub mod gen6;
pub mod header;
pub mod kernels;
mod operand;

use alloc::vec::Vec;

pub use alu::{Alu, Operand};
use header::*;
pub use operand::{At, Compare, Global, PostSync, Process, Reg, high, low};

/// MI_NOOP.
pub const NOOP: u32 = MI_NOOP;
/// MI_USER_INTERRUPT.
pub const USER_INTERRUPT: u32 = MI_USER_INTERRUPT;
/// MI_ARB_CHECK.
pub const ARB_CHECK: u32 = MI_ARB_CHECK;
/// MI_ARB_ON_OFF, off.
pub const ARB_OFF: u32 = MI_ARB_ON_OFF;
/// MI_BATCH_BUFFER_END.
pub const BATCH_BUFFER_END: u32 = MI_BATCH_BUFFER_END;

/// Offset of RING_TIMESTAMP's low dword from the engine's base.
pub const TIMESTAMP: u32 = 0x358;
/// Offset of RING_TIMESTAMP's high dword.
pub const TIMESTAMP_UDW: u32 = 0x35c;
/// Offset of the low dword of general purpose register 0 from the engine's base.
pub const GPR0: u32 = 0x600;

/// Maximum number of qwords of one MI_STORE_DATA_IMM (`xe: MAX_PTE_PER_SDI`).
pub const MAX_QWORDS: usize = 0x1fe;

/// Returns the offset of the low dword of general purpose register `n`, 0 to 15, from the engine's base; the high dword
/// follows.
pub const fn gpr(n: u32) -> u32 {
    assert!(n < 16, "there are 16 general purpose registers");
    GPR0 + 8 * n
}

/// Returns `commands` as the contents of a ring, padded to a multiple of a qword (V8-067).
pub fn padded(commands: &[u32]) -> Vec<u32> {
    let mut words = commands.to_vec();
    words.resize(words.len().next_multiple_of(2), NOOP);
    words
}

/// Returns the number of a command's dwords without the first two, as the length field of its header counts.
fn length(dwords: usize) -> u32 {
    u32::try_from(dwords - 2).expect("a command has fewer dwords")
}

/// MI_NOOP that writes `number`, of 22 bits, to NOPID.
pub const fn noop_id(number: u32) -> u32 {
    MI_NOOP | WRITE_NOPID | number
}

/// MI_STORE_DATA_IMM of one dword.
pub const fn store_data_imm(to: At, value: u32) -> [u32; 4] {
    [MI_STORE_DATA_IMM | to.global(GGTT) | 2, to.low(), to.high(), value]
}

/// MI_STORE_DATA_IMM of one qword.
pub const fn store_data_imm_qword(to: At, value: u64) -> [u32; 5] {
    [MI_STORE_DATA_IMM | to.global(GGTT) | STORE_QWORD | 3, to.low(), to.high(), low(value), high(value)]
}

/// MI_STORE_DATA_IMM of 1 to [`MAX_QWORDS`] qwords.
pub fn store_data_imm_qwords(to: At, values: &[u64]) -> Vec<u32> {
    assert!((1..=MAX_QWORDS).contains(&values.len()), "{} qwords in one store", values.len());
    let header = MI_STORE_DATA_IMM | to.global(GGTT) | STORE_QWORD | length(2 * values.len() + 3);
    let mut words = Vec::from([header, to.low(), to.high()]);
    words.extend(values.iter().flat_map(|value| [low(*value), high(*value)]));
    words
}

/// MI_LOAD_REGISTER_IMM of one register.
pub const fn load_register_imm(to: Reg, value: u32) -> [u32; 3] {
    [MI_LOAD_REGISTER_IMM | to.relative(CS_MMIO) | 1, to.offset(), value]
}

/// MI_LOAD_REGISTER_IMM of 1 to 127 registers of the engine that executes the command, by their offsets from its base.
pub fn load_registers_imm(registers: &[(u32, u32)]) -> Vec<u32> {
    assert!((1..=127).contains(&registers.len()), "{} registers in one load", registers.len());
    let mut words = Vec::from([MI_LOAD_REGISTER_IMM | CS_MMIO | length(2 * registers.len() + 1)]);
    words.extend(registers.iter().flat_map(|(register, value)| [*register, *value]));
    words
}

/// MI_LOAD_REGISTER_IMM of both dwords of general purpose register `n`.
pub const fn load_gpr(n: u32, value: u64) -> [u32; 5] {
    [MI_LOAD_REGISTER_IMM | CS_MMIO | 3, gpr(n), low(value), gpr(n) + 4, high(value)]
}

/// MI_LOAD_REGISTER_REG.
pub const fn load_register_reg(to: Reg, from: Reg) -> [u32; 3] {
    let header = MI_LOAD_REGISTER_REG | to.relative(CS_MMIO) | from.relative(SOURCE_CS_MMIO) | 1;
    [header, from.offset(), to.offset()]
}

/// MI_LOAD_REGISTER_MEM.
pub const fn load_register_mem(to: Reg, from: At) -> [u32; 4] {
    let header = MI_LOAD_REGISTER_MEM | from.global(GGTT) | to.relative(CS_MMIO) | 2;
    [header, to.offset(), from.low(), from.high()]
}

/// MI_STORE_REGISTER_MEM.
pub const fn store_register_mem(from: Reg, to: At) -> [u32; 4] {
    let header = MI_STORE_REGISTER_MEM | to.global(GGTT) | from.relative(CS_MMIO) | 2;
    [header, from.offset(), to.low(), to.high()]
}

/// MI_REPORT_PERF_COUNT: a report of the context's counters, with this identifier.
pub const fn report_perf_count(to: At, id: u32) -> [u32; 4] {
    [MI_REPORT_PERF_COUNT | 2, to.low() | to.global(1), to.high(), id]
}

/// MI_COPY_MEM_MEM of one dword.
pub const fn copy_mem_mem(to: At, from: At) -> [u32; 5] {
    let header = MI_COPY_MEM_MEM | from.global(GGTT) | to.global(DESTINATION_GGTT) | 3;
    [header, to.low(), to.high(), from.low(), from.high()]
}

/// MI_MATH of 1 to 255 instructions.
pub fn math(program: &[Alu]) -> Vec<u32> {
    assert!((1..=255).contains(&program.len()), "{} instructions in one command", program.len());
    let mut words = Vec::from([MI_MATH | length(program.len() + 1)]);
    words.extend(program.iter().map(|instruction| instruction.dword()));
    words
}

/// MI_ATOMIC of an operation that takes no operand.
pub const fn atomic(operation: u32, at: At) -> [u32; 3] {
    [MI_ATOMIC | at.global(GGTT) | operation << 8 | 1, at.low(), at.high()]
}

/// MI_ATOMIC: adds one to a dword.
pub const fn atomic_increment(at: At) -> [u32; 3] {
    atomic(ATOMIC_INC, at)
}

/// MI_SEMAPHORE_WAIT in polling mode: waits until the comparison of a dword of memory with `data` is true.
pub const fn semaphore_wait(at: At, compare: Compare, data: u32) -> [u32; 5] {
    [MI_SEMAPHORE_WAIT | at.global(GGTT) | SEMAPHORE_POLL | compare.field() | 3, data, at.low(), at.high(), 0]
}

/// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the comparison of a dword of memory with `data` is true, and ends the
/// batch otherwise.
pub const fn conditional_batch_buffer_end(at: At, compare: Compare, data: u32) -> [u32; 4] {
    let header = MI_CONDITIONAL_BATCH_BUFFER_END | at.global(GGTT) | COMPARE_SEMAPHORE | compare.field() | 2;
    [header, data, at.low(), at.high()]
}

/// MI_BATCH_BUFFER_START: a jump without return. A batch in the GGTT has the privilege of the batch or ring that
/// starts it; a batch in the PPGTT is unprivileged.
pub const fn batch_buffer_start(to: At) -> [u32; 3] {
    [MI_BATCH_BUFFER_START | to.process(BATCH_PPGTT) | 1, to.low(), to.high()]
}

/// MI_BATCH_BUFFER_START of a second-level batch: its end returns to the command after this one.
pub const fn second_level_batch(to: At) -> [u32; 3] {
    [MI_BATCH_BUFFER_START | SECOND_LEVEL | to.process(BATCH_PPGTT) | 1, to.low(), to.high()]
}

/// MI_FLUSH_DW with a write of a qword (copy and media engines).
pub const fn flush_dw(to: At, write: PostSync) -> [u32; 5] {
    let value = write.immediate();
    [MI_FLUSH_DW | write.field() | 3, to.low() | to.global(FLUSH_GGTT), to.high(), low(value), high(value)]
}

/// PIPE_CONTROL with a stall and a write of a qword (render and compute engines).
pub const fn pipe_control(to: At, write: PostSync) -> [u32; 6] {
    let (value, flags) = (write.immediate(), PIPE_CS_STALL | write.field() | to.global(PIPE_GGTT));
    [PIPE_CONTROL | 4, flags, to.low(), to.high(), low(value), high(value)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const VA: u64 = 0x1_2345_6780;
    const VALUE: PostSync = PostSync::Immediate(0x2_0000_0001);

    /// Contract K.8: MI_STORE_DATA_IMM, `MI_SDI_NUM_DW`, `MI_SDI_NUM_QW`.
    #[test]
    fn stores_are_encoded_as_by_the_driver() {
        assert_eq!(store_data_imm(Global(VA), 7), [0x1040_0002, 0x2345_6780, 1, 7]);
        assert_eq!(store_data_imm(Process(VA), 7), [0x1000_0002, 0x2345_6780, 1, 7]);
        assert_eq!(store_data_imm_qword(Process(VA), 0x2_0000_0001), [0x1020_0003, 0x2345_6780, 1, 1, 2]);
        assert_eq!(store_data_imm_qwords(Process(VA), &[0x2_0000_0001]), [0x1020_0003, 0x2345_6780, 1, 1, 2]);
        let longest = store_data_imm_qwords(Process(VA), &[0; MAX_QWORDS]);
        assert_eq!((longest[0], longest.len()), (0x1020_03fd, 0x3fd + 2));
        assert_eq!(copy_mem_mem(Global(8), Process(VA)), [0x1720_0003, 8, 0, 0x2345_6780, 1]);
        assert_eq!(copy_mem_mem(Process(8), Global(VA)), [0x1740_0003, 8, 0, 0x2345_6780, 1]);
        assert_eq!(padded(&[1]), [1, 0]);
    }

    /// Contract K.8: register commands with absolute offsets and with CS_MMIO offsets; the length of MI_MATH.
    #[test]
    fn register_commands_are_encoded_as_by_the_driver() {
        let (gpr0, time) = (Reg::Own(GPR0), Reg::Own(TIMESTAMP));
        assert_eq!(noop_id(0x1234), 0x0040_1234);
        assert_eq!(load_register_imm(gpr0, 4), [0x1108_0001, 0x600, 4]);
        assert_eq!(load_registers_imm(&[(0x608, 4), (0x60c, 5)]), [0x1108_0003, 0x608, 4, 0x60c, 5]);
        assert_eq!(load_gpr(1, 0x5_0000_0004), [0x1108_0003, 0x608, 4, 0x60c, 5]);
        assert_eq!(load_register_reg(gpr0, time), [0x150c_0001, 0x358, 0x600]);
        assert_eq!(load_register_reg(Reg::Mmio(0x2600), Reg::Mmio(0x2358)), [0x1500_0001, 0x2358, 0x2600]);
        assert_eq!(load_register_mem(gpr0, Process(VA)), [0x1488_0002, 0x600, 0x2345_6780, 1]);
        assert_eq!(store_register_mem(time, Global(VA)), [0x1248_0002, 0x358, 0x2345_6780, 1]);
        assert_eq!(store_register_mem(time, Process(VA)), [0x1208_0002, 0x358, 0x2345_6780, 1]);
        let program = [Alu::Load(Operand::SrcA, Operand::R(1)), Alu::Add];
        assert_eq!(math(&program), [0x0d00_0001, 0x0800_8001, 0x1000_0000]);
    }

    /// Contract K.8, B.9: semaphore, atomic, conditional end (as in IGT's xe_exec_store@basic-cond-batch), jumps.
    #[test]
    fn control_flow_is_encoded_as_by_the_driver() {
        let wait = |at| semaphore_wait(at, Compare::GreaterOrEqual, 9);
        assert_eq!(wait(Global(VA)), [0x0e40_9003, 9, 0x2345_6780, 1, 0]);
        assert_eq!(wait(Process(VA)), [0x0e00_9003, 9, 0x2345_6780, 1, 0]);
        assert_eq!(atomic_increment(Process(VA)), [0x1780_0501, 0x2345_6780, 1]);
        let end = conditional_batch_buffer_end(Process(VA), Compare::NotEqual, 9);
        assert_eq!(end, [0x1b20_5002, 9, 0x2345_6780, 1]);
        assert_eq!(batch_buffer_start(Global(VA)), [0x1880_0001, 0x2345_6780, 1]);
        assert_eq!(batch_buffer_start(Process(VA)), [0x1880_0101, 0x2345_6780, 1]);
        assert_eq!(second_level_batch(Process(VA)), [0x18c0_0101, 0x2345_6780, 1]);
        assert_eq!([USER_INTERRUPT, ARB_CHECK, ARB_OFF], [0x0100_0000, 0x0280_0000, 0x0400_0000]);
        assert_eq!([NOOP, BATCH_BUFFER_END], [0, 0x0500_0000]);
    }

    /// Contract K.8: MI_FLUSH_DW and PIPE_CONTROL with post-sync writes.
    #[test]
    fn flushes_are_encoded_as_by_the_driver() {
        assert_eq!(flush_dw(Process(VA), VALUE), [0x1300_4003, 0x2345_6780, 1, 1, 2]);
        assert_eq!(flush_dw(Process(VA), PostSync::Timestamp), [0x1300_c003, 0x2345_6780, 1, 0, 0]);
        assert_eq!(flush_dw(Global(VA), VALUE)[1], 0x2345_6784);
        assert_eq!(pipe_control(Process(VA), VALUE), [0x7a00_0004, 0x0010_4000, 0x2345_6780, 1, 1, 2]);
        assert_eq!(pipe_control(Global(VA), VALUE)[1], 0x0110_4000);
    }
}
