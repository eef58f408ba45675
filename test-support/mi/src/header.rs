// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Opcodes, fields and flags of headers, for forms of commands without a builder. An opcode has no length: the low bits
//! of the header of a command of several dwords are their number less two.
//!
//! Sources: contract K.8, `i915: gt/intel_gpu_commands.h`, `xe: instructions/xe_mi_commands.h`, Mesa: gen125.xml.
#![allow(missing_docs, reason = "names of the documents")]

const fn mi(opcode: u32) -> u32 {
    opcode << 23
}

pub const MI_NOOP: u32 = mi(0x00);
pub const MI_SET_PREDICATE: u32 = mi(0x01);
pub const MI_USER_INTERRUPT: u32 = mi(0x02);
pub const MI_WAIT_FOR_EVENT: u32 = mi(0x03);
pub const MI_ARB_CHECK: u32 = mi(0x05);
pub const MI_REPORT_HEAD: u32 = mi(0x07);
pub const MI_ARB_ON_OFF: u32 = mi(0x08);
pub const MI_BATCH_BUFFER_END: u32 = mi(0x0a);
pub const MI_SUSPEND_FLUSH: u32 = mi(0x0b);
pub const MI_PREDICATE: u32 = mi(0x0c);
pub const MI_SET_APPID: u32 = mi(0x0e);
pub const MI_SEMAPHORE_MBOX: u32 = mi(0x16);
pub const MI_SET_CONTEXT: u32 = mi(0x18);
pub const MI_MATH: u32 = mi(0x1a);
pub const MI_SEMAPHORE_SIGNAL: u32 = mi(0x1b);
pub const MI_SEMAPHORE_WAIT: u32 = mi(0x1c);
pub const MI_FORCE_WAKEUP: u32 = mi(0x1d);
pub const MI_STORE_DATA_IMM: u32 = mi(0x20);
pub const MI_STORE_DATA_INDEX: u32 = mi(0x21);
pub const MI_LOAD_REGISTER_IMM: u32 = mi(0x22);
pub const MI_UPDATE_GTT: u32 = mi(0x23);
pub const MI_STORE_REGISTER_MEM: u32 = mi(0x24);
pub const MI_FLUSH_DW: u32 = mi(0x26);
pub const MI_CLFLUSH: u32 = mi(0x27);
pub const MI_REPORT_PERF_COUNT: u32 = mi(0x28);
pub const MI_LOAD_REGISTER_MEM: u32 = mi(0x29);
pub const MI_LOAD_REGISTER_REG: u32 = mi(0x2a);
pub const MI_COPY_MEM_MEM: u32 = mi(0x2e);
pub const MI_ATOMIC: u32 = mi(0x2f);
pub const MI_BATCH_BUFFER_START: u32 = mi(0x31);
pub const MI_CONDITIONAL_BATCH_BUFFER_END: u32 = mi(0x36);
pub const MI_PRT_BATCH_BUFFER_START: u32 = mi(0x39);
pub const PIPE_CONTROL: u32 = 0x7a00_0000;

/// Use Global GTT, in most commands; in MI_COPY_MEM_MEM the source's.
pub const GGTT: u32 = 1 << 22;
/// MI_COPY_MEM_MEM: Use Global GTT of the destination.
pub const DESTINATION_GGTT: u32 = 1 << 21;
/// MI_NOOP: writes bits 21:0 to NOPID.
pub const WRITE_NOPID: u32 = 1 << 22;
/// MI_STORE_DATA_IMM: stores qwords.
pub const STORE_QWORD: u32 = 1 << 21;
/// MI_STORE_DATA_INDEX: stores to the context's own status page instead of the engine's.
pub const PER_PROCESS_PAGE: u32 = 1 << 21;
/// MI_FLUSH_DW: the address is an offset in a status page.
pub const FLUSH_INDEX: u32 = 1 << 21;
/// Register commands: the offset is relative to the engine's base.
pub const CS_MMIO: u32 = 1 << 19;
/// MI_LOAD_REGISTER_REG: the source's offset is relative to the engine's base.
pub const SOURCE_CS_MMIO: u32 = 1 << 18;
/// Register commands: the offset is that of the class's first engine.
pub const MMIO_REMAP: u32 = 1 << 17;
/// MI_LOAD_REGISTER_REG: the source's offset is that of the class's first engine.
pub const SOURCE_MMIO_REMAP: u32 = 1 << 16;
/// MI_LOAD_REGISTER_IMM: the writes are posted.
pub const FORCE_POSTED: u32 = 1 << 12;
/// MI_SEMAPHORE_MBOX: the value in memory is updated.
pub const MAILBOX_UPDATE: u32 = 1 << 21;
/// MI_SEMAPHORE_MBOX: a value is compared.
pub const MAILBOX_COMPARE: u32 = 1 << 20;
/// MI_SEMAPHORE_MBOX: the compared value is in a register.
pub const MAILBOX_REGISTER: u32 = 1 << 18;
/// MI_SEMAPHORE_WAIT: polls instead of waiting for signals.
pub const SEMAPHORE_POLL: u32 = 1 << 15;
/// MI_SEMAPHORE_WAIT: compares a register instead of memory.
pub const SEMAPHORE_REGISTER: u32 = 1 << 16;
/// MI_CONDITIONAL_BATCH_BUFFER_END: compares memory with the command's data.
pub const COMPARE_SEMAPHORE: u32 = 1 << 21;
/// MI_CONDITIONAL_BATCH_BUFFER_END: memory contains a mask and the data.
pub const COMPARE_MASKED: u32 = 1 << 19;
/// MI_BATCH_BUFFER_START: the batch is in the PPGTT.
pub const BATCH_PPGTT: u32 = 1 << 8;
/// MI_BATCH_BUFFER_START: the batch is nested.
pub const SECOND_LEVEL: u32 = 1 << 22;
/// MI_ATOMIC: operation, to be shifted to bit 8.
pub const ATOMIC_INC: u32 = 0x05;
/// MI_ATOMIC: the operands are in the command.
pub const ATOMIC_INLINE: u32 = 1 << 18;
/// MI_ATOMIC: returns the old value in general purpose register 2.
pub const ATOMIC_RETURN: u32 = 1 << 16;
/// MI_ATOMIC and MI_SEMAPHORE_SIGNAL: executed after a flush.
pub const POST_SYNC: u32 = 1 << 21;
/// MI_FLUSH_DW: writes the immediate data.
pub const FLUSH_WRITE: u32 = 1 << 14;
/// MI_FLUSH_DW: writes the timestamp.
pub const FLUSH_TIMESTAMP: u32 = 3 << 14;
/// MI_FLUSH_DW: raises an interrupt.
pub const FLUSH_NOTIFY: u32 = 1 << 8;
/// MI_FLUSH_DW: invalidates the engine's TLB.
pub const FLUSH_TLB: u32 = 1 << 18;
/// MI_FLUSH_DW, in the address: it is in the GGTT.
pub const FLUSH_GGTT: u32 = 1 << 2;
/// PIPE_CONTROL, in dword 1: stalls the command streamer.
pub const PIPE_CS_STALL: u32 = 1 << 20;
/// PIPE_CONTROL, in dword 1: stalls at the pixel scoreboard.
pub const PIPE_STALL_AT_SCOREBOARD: u32 = 1 << 1;
/// PIPE_CONTROL, in dword 1: waits for preceding flushes.
pub const PIPE_FLUSH_ENABLE: u32 = 1 << 7;
/// PIPE_CONTROL, in dword 1: the address is an offset in the context's status page.
pub const PIPE_INDEX: u32 = 1 << 21;
/// PIPE_CONTROL, in dword 1: the address is a register's offset.
pub const PIPE_REGISTER: u32 = 1 << 23;
/// PIPE_CONTROL, in dword 1: writes the immediate data.
pub const PIPE_WRITE: u32 = 1 << 14;
/// PIPE_CONTROL, in dword 1: writes the depth count.
pub const PIPE_DEPTH_COUNT: u32 = 2 << 14;
/// PIPE_CONTROL, in dword 1: writes the timestamp.
pub const PIPE_TIMESTAMP: u32 = 3 << 14;
/// PIPE_CONTROL, in dword 1: the address is in the GGTT.
pub const PIPE_GGTT: u32 = 1 << 24;

/// Returns the header of a command of the copy engine without flags.
pub const fn xy(opcode: u32, dwords: u32) -> u32 {
    2 << 29 | opcode << 22 | (dwords - 2)
}
