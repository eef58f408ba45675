// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Encoders of commands: MI commands of all engines, flushes with a write, and commands of the copy engine.
//!
//! Layouts: contract K.8, B.9, `xe: instructions/xe_mi_commands.h`. Each function encodes the form that drivers use.
//! Tests of other forms modify the returned dwords.

/// MI_NOOP.
pub const NOOP: u32 = opcode(0x00);
/// MI_USER_INTERRUPT.
pub const USER_INTERRUPT: u32 = opcode(0x02);
/// MI_ARB_CHECK.
pub const ARB_CHECK: u32 = opcode(0x05);
/// MI_ARB_ON_OFF, off.
pub const ARB_OFF: u32 = opcode(0x08);
/// MI_BATCH_BUFFER_END.
pub const BATCH_BUFFER_END: u32 = opcode(0x0a);

/// Offset of the low dword of general purpose register 0 from the engine's base.
pub const GPR0: u32 = 0x600;
/// Offset of RING_TIMESTAMP from the engine's base.
pub const TIMESTAMP: u32 = 0x358;

/// Use Global GTT, for most commands.
const GLOBAL: u32 = 1 << 22;
/// Register offsets are relative to the engine's base.
const RELATIVE: u32 = 1 << 19;

const fn opcode(opcode: u32) -> u32 {
    opcode << 23
}

const fn high(address: u64) -> u32 {
    (address >> 32) as u32
}

/// An address in the GGTT or in the PPGTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In the GGTT.
    Global(u64),
    /// In the PPGTT of the context.
    Process(u64),
}

pub use At::{Global, Process};

impl At {
    /// Returns an address in the GGTT if `global`, else in the PPGTT.
    pub const fn new(global: bool, address: u64) -> Self {
        if global { Global(address) } else { Process(address) }
    }

    const fn address(self) -> u64 {
        match self {
            Global(address) | Process(address) => address,
        }
    }

    /// Returns `bit` for an address in the GGTT.
    const fn global(self, bit: u32) -> u32 {
        match self {
            Global(_) => bit,
            Process(_) => 0,
        }
    }
}

/// A register operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    /// By its offset in GTTMMADR.
    Mmio(u32),
    /// By its offset from the base of the engine that executes the command.
    Own(u32),
}

impl Reg {
    /// Returns the offset, and `bit` if it is relative.
    const fn split(self, bit: u32) -> (u32, u32) {
        match self {
            Reg::Mmio(offset) => (offset, 0),
            Reg::Own(offset) => (offset, bit),
        }
    }
}

/// Comparison of a semaphore wait: memory (left) with the command's data (right).
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

impl Compare {
    /// All comparisons, by their encoding.
    pub const ALL: [Compare; 6] = [
        Compare::Greater,
        Compare::GreaterOrEqual,
        Compare::Less,
        Compare::LessOrEqual,
        Compare::Equal,
        Compare::NotEqual,
    ];
}

/// Returns `commands` as the contents of a ring, padded to a multiple of a qword (V8-067).
pub fn padded(commands: &[u32]) -> Vec<u32> {
    let mut words = commands.to_vec();
    words.resize(words.len().next_multiple_of(2), NOOP);
    words
}

/// MI_STORE_DATA_IMM of one dword.
pub const fn store_data_imm(to: At, value: u32) -> [u32; 4] {
    [opcode(0x20) | to.global(GLOBAL) | 2, to.address() as u32, high(to.address()), value]
}

/// MI_STORE_DATA_IMM of one qword.
pub const fn store_data_imm_qword(to: At, value: u64) -> [u32; 5] {
    let header = opcode(0x20) | to.global(GLOBAL) | 1 << 21 | 3;
    [header, to.address() as u32, high(to.address()), value as u32, high(value)]
}

/// MI_LOAD_REGISTER_IMM of one register.
pub const fn load_register_imm(to: Reg, value: u32) -> [u32; 3] {
    let (offset, relative) = to.split(RELATIVE);
    [opcode(0x22) | relative | 1, offset, value]
}

/// MI_LOAD_REGISTER_REG.
pub const fn load_register_reg(to: Reg, from: Reg) -> [u32; 3] {
    let ((source, source_relative), (offset, relative)) = (from.split(RELATIVE >> 1), to.split(RELATIVE));
    [opcode(0x2a) | relative | source_relative | 1, source, offset]
}

/// MI_LOAD_REGISTER_MEM.
pub const fn load_register_mem(to: Reg, from: At) -> [u32; 4] {
    let (offset, relative) = to.split(RELATIVE);
    [opcode(0x29) | from.global(GLOBAL) | relative | 2, offset, from.address() as u32, high(from.address())]
}

/// MI_STORE_REGISTER_MEM.
pub const fn store_register_mem(from: Reg, to: At) -> [u32; 4] {
    let (offset, relative) = from.split(RELATIVE);
    [opcode(0x24) | to.global(GLOBAL) | relative | 2, offset, to.address() as u32, high(to.address())]
}

/// MI_COPY_MEM_MEM of one dword.
pub const fn copy_mem_mem(to: At, from: At) -> [u32; 5] {
    let header = opcode(0x2e) | from.global(GLOBAL) | to.global(GLOBAL >> 1) | 3;
    [header, to.address() as u32, high(to.address()), from.address() as u32, high(from.address())]
}

/// MI_ATOMIC of an operation that takes no operand.
pub const fn atomic(operation: u32, at: At) -> [u32; 3] {
    [opcode(0x2f) | at.global(GLOBAL) | operation << 8 | 1, at.address() as u32, high(at.address())]
}

/// MI_ATOMIC: adds one to a dword.
pub const fn atomic_increment(at: At) -> [u32; 3] {
    atomic(5, at)
}

/// MI_SEMAPHORE_WAIT in polling mode: waits until the comparison of a dword of memory with `data` is true.
pub const fn semaphore_wait(at: At, compare: Compare, data: u32) -> [u32; 5] {
    let header = opcode(0x1c) | at.global(GLOBAL) | 1 << 15 | (compare as u32) << 12 | 3;
    [header, data, at.address() as u32, high(at.address()), 0]
}

/// MI_BATCH_BUFFER_START: a jump without return. A batch in the GGTT has the privilege of the batch or ring that
/// starts it; a batch in the PPGTT is unprivileged.
pub const fn batch_buffer_start(to: At) -> [u32; 3] {
    let process = to.global(1 << 8) ^ 1 << 8;
    [opcode(0x31) | process | 1, to.address() as u32, high(to.address())]
}

/// MI_FLUSH_DW with a write of a qword (copy and media engines).
pub const fn flush_dw(to: At, value: u64) -> [u32; 5] {
    let address = to.address() as u32 | to.global(1 << 2);
    [opcode(0x26) | 1 << 14 | 3, address, high(to.address()), value as u32, high(value)]
}

/// PIPE_CONTROL with a stall and a write of a qword (render and compute engines).
pub const fn pipe_control(to: At, value: u64) -> [u32; 6] {
    let flags = 1 << 20 | 1 << 14 | to.global(1 << 24);
    [0x7a00_0004, flags, to.address() as u32, high(to.address()), value as u32, high(value)]
}

/// A surface of the copy engine in linear memory: PPGTT address, and bytes per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// PPGTT address.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: u32,
}

/// Header of a command of the copy engine.
const fn blit(opcode: u32, dwords: u32) -> u32 {
    2 << 29 | opcode << 22 | dwords - 2
}

/// XY_FAST_COPY_BLT of `size` (columns, rows) pixels of 32 bits, between the top left corners of the surfaces.
pub const fn xy_fast_copy(to: Surface, from: Surface, size: (u16, u16)) -> [u32; 10] {
    let end = (size.1 as u32) << 16 | size.0 as u32;
    let (to_high, from_high) = (high(to.address), high(from.address));
    [
        blit(0x42, 10),
        3 << 24 | to.pitch,
        0,
        end,
        to.address as u32,
        to_high,
        0,
        from.pitch,
        from.address as u32,
        from_high,
    ]
}

/// XY_COLOR_BLT of `size` (columns, rows) pixels of 32 bits, at the top left corner of the surface.
pub const fn xy_color(to: Surface, size: (u16, u16), color: u32) -> [u32; 7] {
    let end = (size.1 as u32) << 16 | size.0 as u32;
    [blit(0x50, 7), 3 << 24 | 0xf0 << 16 | to.pitch, 0, end, to.address as u32, high(to.address), color]
}

/// XY_FAST_COLOR_BLT that clears `rows` rows of `columns` pixels of 32 bits, with a pitch of `pitch` bytes, at PPGTT
/// address 0.
pub const fn xy_fast_clear(pitch: u32, columns: u16, rows: u16) -> [u32; 16] {
    let mut words = [0; 16];
    words[0] = blit(0x44, 16) | 2 << 19;
    words[1] = pitch - 1;
    words[3] = (rows as u32) << 16 | columns as u32;
    words
}

/// Source or destination of a copy of compression control data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Memory at a PPGTT address.
    Memory(u64),
    /// The control data of the local memory at a PPGTT address.
    Surface(u64),
}

impl Control {
    /// Returns the address, and `bit` for memory.
    const fn split(self, bit: u32) -> (u64, u32) {
        match self {
            Control::Memory(address) => (address, bit),
            Control::Surface(address) => (address, 0),
        }
    }
}

/// XY_CTRL_SURF_COPY_BLT of `blocks` blocks of 256 bytes of control data.
pub const fn xy_ctrl_surf_copy(to: Control, from: Control, blocks: u32) -> [u32; 5] {
    let ((to, to_memory), (from, from_memory)) = (to.split(1 << 20), from.split(1 << 21));
    let header = blit(0x48, 5) | to_memory | from_memory | (blocks - 1) << 8;
    [header, from as u32, high(from), to as u32, high(to)]
}

#[cfg(test)]
mod tests {
    use arctic_device_model::decode;
    use arctic_device_model::generation::{EngineRef, XE_HPG};
    use arctic_device_model::topology::EngineClass;

    use super::*;

    const VA: u64 = 0x1_2345_6780;

    /// The device's disassembler decodes the name and the length of each command.
    #[test]
    fn commands_are_what_their_names_say() {
        let surface = Surface { address: VA, pitch: 64 };
        let commands: [(&str, EngineClass, &[u32]); 23] = [
            ("MI_NOOP", EngineClass::Copy, &[NOOP]),
            ("MI_USER_INTERRUPT", EngineClass::Copy, &[USER_INTERRUPT]),
            ("MI_ARB_CHECK", EngineClass::Copy, &[ARB_CHECK]),
            ("MI_ARB_ON_OFF", EngineClass::Copy, &[ARB_OFF]),
            ("MI_BATCH_BUFFER_END", EngineClass::Copy, &[BATCH_BUFFER_END]),
            ("MI_STORE_DATA_IMM", EngineClass::Copy, &store_data_imm(Global(VA), 7)),
            ("MI_STORE_DATA_IMM", EngineClass::Copy, &store_data_imm_qword(Global(VA), 7)),
            ("MI_LOAD_REGISTER_IMM", EngineClass::Copy, &load_register_imm(Reg::Own(GPR0), 7)),
            ("MI_LOAD_REGISTER_REG", EngineClass::Copy, &load_register_reg(Reg::Own(GPR0), Reg::Own(TIMESTAMP))),
            ("MI_LOAD_REGISTER_MEM", EngineClass::Copy, &load_register_mem(Reg::Own(GPR0), Global(VA))),
            ("MI_STORE_REGISTER_MEM", EngineClass::Copy, &store_register_mem(Reg::Own(GPR0), Global(VA))),
            ("MI_COPY_MEM_MEM", EngineClass::Copy, &copy_mem_mem(Global(VA), Process(VA))),
            ("MI_ATOMIC", EngineClass::Copy, &atomic_increment(Global(VA))),
            ("MI_SEMAPHORE_WAIT", EngineClass::Copy, &semaphore_wait(Global(VA), Compare::Equal, 1)),
            ("MI_BATCH_BUFFER_START", EngineClass::Copy, &batch_buffer_start(Global(VA))),
            ("MI_FLUSH_DW", EngineClass::Copy, &flush_dw(Global(VA), 7)),
            ("PIPE_CONTROL", EngineClass::Render, &pipe_control(Global(VA), 7)),
            ("XY_FAST_COPY_BLT", EngineClass::Copy, &xy_fast_copy(surface, surface, (16, 16))),
            ("XY_COLOR_BLT", EngineClass::Copy, &xy_color(surface, (16, 16), 7)),
            ("XY_FAST_COLOR_BLT", EngineClass::Copy, &xy_fast_clear(64, 16, 16)),
            (
                "XY_CTRL_SURF_COPY_BLT",
                EngineClass::Copy,
                &xy_ctrl_surf_copy(Control::Memory(VA), Control::Surface(VA), 1),
            ),
            ("MI_BATCH_BUFFER_START", EngineClass::Copy, &batch_buffer_start(Process(VA))),
            ("MI_FLUSH_DW", EngineClass::Copy, &flush_dw(Process(VA), 7)),
        ];
        for (name, class, words) in commands {
            let id = XE_HPG.engines.find(class, 0).unwrap();
            let lines: Vec<_> = decode::split(EngineRef { generation: &XE_HPG, id }, words)
                .map(|command| (command.name, command.dwords.len()))
                .collect();
            assert_eq!(lines, [(Some(name), words.len())], "{words:x?}");
        }
    }

    /// Contract K.8, B.9: fields as drivers encode them.
    #[test]
    fn fields_are_where_drivers_have_them() {
        assert_eq!(store_data_imm(Global(VA), 7), [0x1040_0002, 0x2345_6780, 1, 7]);
        assert_eq!(store_data_imm_qword(Process(VA), 0x2_0000_0001), [0x1020_0003, 0x2345_6780, 1, 1, 2]);
        assert_eq!(load_register_imm(Reg::Own(GPR0), 4), [0x1108_0001, 0x600, 4]);
        assert_eq!(load_register_reg(Reg::Own(GPR0), Reg::Own(TIMESTAMP)), [0x150c_0001, 0x358, 0x600]);
        assert_eq!(load_register_reg(Reg::Mmio(0x2600), Reg::Mmio(0x2358)), [0x1500_0001, 0x2358, 0x2600]);
        assert_eq!(load_register_mem(Reg::Own(GPR0), Process(VA)), [0x1488_0002, 0x600, 0x2345_6780, 1]);
        assert_eq!(store_register_mem(Reg::Own(TIMESTAMP), Global(VA)), [0x1248_0002, 0x358, 0x2345_6780, 1]);
        assert_eq!(copy_mem_mem(Global(8), Process(VA)), [0x1720_0003, 8, 0, 0x2345_6780, 1]);
        assert_eq!(copy_mem_mem(Process(8), Global(VA)), [0x1740_0003, 8, 0, 0x2345_6780, 1]);
        assert_eq!(atomic_increment(Process(VA)), [0x1780_0501, 0x2345_6780, 1]);
        assert_eq!(semaphore_wait(Global(VA), Compare::GreaterOrEqual, 9), [0x0e40_9003, 9, 0x2345_6780, 1, 0]);
        assert_eq!(batch_buffer_start(Global(VA)), [0x1880_0001, 0x2345_6780, 1]);
        assert_eq!(batch_buffer_start(Process(VA)), [0x1880_0101, 0x2345_6780, 1]);
        assert_eq!(flush_dw(Process(VA), 0x2_0000_0001), [0x1300_4003, 0x2345_6780, 1, 1, 2]);
        assert_eq!(flush_dw(Global(VA), 0)[1], 0x2345_6784);
        assert_eq!(pipe_control(Process(VA), 0x2_0000_0001), [0x7a00_0004, 0x0010_4000, 0x2345_6780, 1, 1, 2]);
        assert_eq!(pipe_control(Global(VA), 0)[1], 0x0110_4000);
    }
}
