// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands whose layout on Gen6 and Gen7 differs from Xe-HPG: addresses have one dword (IVB-140..166, G67-075..081,
//! G67-121, `i915: gt/intel_gpu_commands.h`). Other commands are the same, and so are all opcodes.

use crate::blt::Area;
use crate::header::*;
use crate::{At, PostSync, high, low};

const XY_COLOR_BLT: u32 = xy(0x50, 6);
const XY_SRC_COPY_BLT: u32 = xy(0x53, 8);
const SRC_TILED: u32 = 1 << 15;
const DST_TILED: u32 = 1 << 11;
/// Writes the colours and the alpha of a pixel of 32 bits.
const WRITE_ALPHA_AND_RGB: u32 = 3 << 20;

/// MI_STORE_DATA_IMM of one dword; the address is dword 2.
pub const fn store_data_imm(to: At, value: u32) -> [u32; 4] {
    [MI_STORE_DATA_IMM | to.global(GGTT) | 2, 0, to.low(), value]
}

/// MI_STORE_DATA_IMM of one qword; the address is dword 2.
pub const fn store_data_imm_qword(to: At, value: u64) -> [u32; 5] {
    [MI_STORE_DATA_IMM | to.global(GGTT) | 3, 0, to.low(), low(value), high(value)]
}

/// MI_LOAD_REGISTER_IMM of one register, by its offset in the MMIO BAR.
pub const fn load_register_imm(register: u32, value: u32) -> [u32; 3] {
    [MI_LOAD_REGISTER_IMM | 1, register, value]
}

/// MI_STORE_REGISTER_MEM; the address is dword 2.
pub const fn store_register_mem(register: u32, to: At) -> [u32; 3] {
    [MI_STORE_REGISTER_MEM | to.global(GGTT) | 1, register, to.low()]
}

/// MI_LOAD_REGISTER_MEM; the address is dword 2.
pub const fn load_register_mem(register: u32, from: At) -> [u32; 3] {
    [MI_LOAD_REGISTER_MEM | from.global(GGTT) | 1, register, from.low()]
}

/// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the dword at `at` is greater than `data`; the address is dword 2.
pub const fn end_unless_greater(at: At, data: u32) -> [u32; 3] {
    [MI_CONDITIONAL_BATCH_BUFFER_END | at.global(GGTT) | COMPARE_SEMAPHORE | 1, data, at.low()]
}

/// MI_BATCH_BUFFER_START: a jump; the address is dword 1. A batch in the PPGTT is unprivileged.
pub const fn batch_buffer_start(to: At) -> [u32; 2] {
    [MI_BATCH_BUFFER_START | to.process(BATCH_PPGTT), to.low()]
}

/// MI_FLUSH_DW with a write of a qword; the address is dword 1.
pub const fn flush_dw(to: At, write: PostSync) -> [u32; 4] {
    let value = write.immediate();
    [MI_FLUSH_DW | write.field() | 2, to.low() | to.global(FLUSH_GGTT), low(value), high(value)]
}

/// PIPE_CONTROL with a stall and a write of a qword; the address is dword 2.
pub const fn pipe_control(to: At, write: PostSync) -> [u32; 5] {
    let flags = PIPE_CS_STALL | PIPE_STALL_AT_SCOREBOARD | write.field() | to.global(PIPE_GGTT);
    [PIPE_CONTROL | 3, flags, to.low(), low(write.immediate()), high(write.immediate())]
}

/// Bits per pixel; each discriminant is the commands' code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Depth {
    /// 8 bits.
    Bits8 = 0,
    /// 16 bits.
    Bits16 = 1,
    /// 32 bits.
    Bits32 = 3,
}

impl Depth {
    /// Returns the bytes per pixel.
    pub const fn bytes(self) -> usize {
        match self {
            Depth::Bits8 => 1,
            Depth::Bits16 => 2,
            Depth::Bits32 => 4,
        }
    }

    const fn header(self) -> u32 {
        match self {
            Depth::Bits32 => WRITE_ALPHA_AND_RGB,
            _ => 0,
        }
    }
}

/// A surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Address of the first byte.
    pub address: u32,
    /// Row pitch in bytes.
    pub pitch: u32,
    /// Tiled as X, or as Y if the register BCS_SWCTRL selects it.
    pub tiled: bool,
}

impl Surface {
    /// Pitch in the commands' units: dwords if tiled, bytes if linear.
    const fn pitch_field(&self) -> u32 {
        if self.tiled { self.pitch / 4 } else { self.pitch }
    }

    const fn tiled(&self, bit: u32) -> u32 {
        if self.tiled { bit } else { 0 }
    }
}

/// XY_COLOR_BLT: combines `area` of `to` with `colour` by the raster operation `rop`; the address is dword 4.
pub const fn color(to: &Surface, depth: Depth, area: Area, rop: u32, colour: u32) -> [u32; 6] {
    let header = XY_COLOR_BLT | depth.header() | to.tiled(DST_TILED);
    let format = (depth as u32) << 24 | rop << 16 | to.pitch_field();
    [header, format, area.start(), area.end(), to.address, colour]
}

/// XY_SRC_COPY_BLT: combines `area` of `from` with the pixels at (`x`, `y`) of `to` by the raster operation `rop`; the
/// addresses are dwords 4 (`to`) and 7 (`from`).
pub const fn src_copy(from: &Surface, area: Area, to: &Surface, at: (u32, u32), depth: Depth, rop: u32) -> [u32; 8] {
    let target = area.moved_to(at.0, at.1);
    [
        XY_SRC_COPY_BLT | depth.header() | from.tiled(SRC_TILED) | to.tiled(DST_TILED),
        (depth as u32) << 24 | rop << 16 | to.pitch_field(),
        target.start(),
        target.end(),
        to.address,
        area.start(),
        from.pitch_field(),
        from.address,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Global, Process};

    /// IVB-140..166: MI commands, as i915 encodes them.
    #[test]
    fn commands_have_addresses_of_one_dword() {
        assert_eq!(store_data_imm(Global(0x5000), 7), [0x1040_0002, 0, 0x5000, 7]);
        assert_eq!(store_data_imm_qword(Process(0x5000), 7), [0x1000_0003, 0, 0x5000, 7, 0]);
        assert_eq!(load_register_imm(0x2430, 7), [0x1100_0001, 0x2430, 7]);
        assert_eq!(store_register_mem(0x2430, Global(0x5000)), [0x1240_0001, 0x2430, 0x5000]);
        assert_eq!(load_register_mem(0x2430, Process(0x5000)), [0x1480_0001, 0x2430, 0x5000]);
        assert_eq!(end_unless_greater(Process(0x5000), 7), [0x1b20_0001, 7, 0x5000]);
        assert_eq!(batch_buffer_start(Global(0x4000)), [0x1880_0000, 0x4000]);
        assert_eq!(batch_buffer_start(Process(0x4000)), [0x1880_0100, 0x4000]);
    }

    /// G67-075..081: flushes with post-sync writes.
    #[test]
    fn flushes_have_addresses_of_one_dword() {
        let value = PostSync::Immediate(0x2_0000_0001);
        assert_eq!(flush_dw(Global(0x5000), value), [0x1300_4002, 0x5004, 1, 2]);
        assert_eq!(flush_dw(Process(0x5000), PostSync::Timestamp), [0x1300_c002, 0x5000, 0, 0]);
        assert_eq!(pipe_control(Process(0x5000), value), [0x7a00_0003, 0x0010_4002, 0x5000, 1, 2]);
        assert_eq!(pipe_control(Global(0x5000), value)[1], 0x0110_4002);
    }

    /// G67-121: fills and copies of linear and tiled surfaces.
    #[test]
    fn blits_have_their_fields() {
        let linear = Surface { address: 0x1_0000, pitch: 4096, tiled: false };
        let tiled = Surface { address: 0x2_0000, pitch: 512, tiled: true };
        let area = Area { x: 3, y: 5, width: 10, height: 20 };
        let fill = color(&linear, Depth::Bits32, area, 0xf0, 7);
        assert_eq!(fill, [0x5430_0004, 0x03f0_1000, 5 << 16 | 3, 25 << 16 | 13, 0x1_0000, 7]);
        let copy = src_copy(&linear, area, &tiled, (0, 1), Depth::Bits16, 0xcc);
        assert_eq!(copy[..4], [0x54c0_0806, 0x01cc_0080, 1 << 16, 21 << 16 | 10]);
        assert_eq!(copy[4..], [0x2_0000, 5 << 16 | 3, 4096, 0x1_0000]);
        assert_eq!(src_copy(&tiled, area, &linear, (0, 0), Depth::Bits8, 0xcc)[0], 0x54c0_8006);
    }
}
