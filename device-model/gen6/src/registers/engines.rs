// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engines of each generation: names, bases of their registers, and their registers and bits in other units.

use super::engine::{CTL_NO_WRITES, CTL_REPORT};
use super::{Register, copy, engine};
use crate::topology::EngineClass;

/// Facts about one engine of a generation.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// Name in the driver.
    pub name: &'static str,
    /// Function.
    pub class: EngineClass,
    /// Offset of its first register (IVB-003, G67-070).
    pub base: u32,
    /// Offset of the register with the address of its status page (IVB-044, G67-072).
    pub status_page: u32,
    /// Offset of its fault register (IVB-039, ILK-161).
    pub fault: u32,
    /// Offset of the register that enables its PPGTT, which several engines may have in common (G67-061).
    pub translation_mode: u32,
    /// Bits of the ring's control register that only some engines have (IVB-078, ILK-109).
    pub control: u32,
    /// Position of its bit 0 of interrupts in the registers of the GT (G67-046).
    pub interrupts: u8,
    /// Its bit in GDRST (G67-110).
    pub reset: u32,
    /// Registers that only this engine has, by offset from its base.
    pub rows: &'static [Register],
}

/// The render engine, as far as it is the same in all generations.
const RENDER: EngineInfo = EngineInfo {
    name: "rcs0",
    class: EngineClass::Render,
    base: 0x2000,
    status_page: 0x4080,
    fault: 0x4094,
    translation_mode: 0,
    control: 0,
    interrupts: 0,
    reset: 1 << 1,
    rows: &[],
};

/// The video engine, as far as it is the same in all generations.
const VIDEO: EngineInfo = EngineInfo {
    name: "vcs0",
    class: EngineClass::Video,
    base: 0x1_2000,
    status_page: 0,
    fault: 0x4194,
    translation_mode: 0,
    control: CTL_REPORT.mask() | CTL_NO_WRITES.mask(),
    interrupts: 12,
    reset: 1 << 2,
    rows: &[],
};

/// The copy engine, as far as it is the same in all generations.
const COPY: EngineInfo = EngineInfo {
    name: "bcs0",
    class: EngineClass::Copy,
    base: 0x2_2000,
    status_page: 0,
    fault: 0x4294,
    translation_mode: 0,
    control: CTL_REPORT.mask(),
    interrupts: 22,
    reset: 1 << 3,
    rows: copy::TABLE,
};

/// The engines of Sandy Bridge.
pub static SANDY_BRIDGE_ENGINES: [EngineInfo; 3] = [
    EngineInfo { translation_mode: 0x2520, control: CTL_REPORT.mask(), ..RENDER },
    EngineInfo { status_page: 0x1_4080, translation_mode: 0x2520, rows: engine::SANDY_BRIDGE_VIDEO, ..VIDEO },
    EngineInfo { status_page: 0x2_4080, translation_mode: 0x2520, ..COPY },
];

/// The engines of Ivy Bridge.
pub static IVY_BRIDGE_ENGINES: [EngineInfo; 3] = [
    EngineInfo { translation_mode: 0x229c, ..RENDER },
    EngineInfo { status_page: 0x4180, translation_mode: 0x1_229c, ..VIDEO },
    EngineInfo { status_page: 0x4280, translation_mode: 0x2_229c, ..COPY },
];
