// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Identities of the engines: names, bases of their registers, and their bits in registers of other units.

use crate::registers::{Register, copy, engine};

/// An engine, by its index in the generation's table of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(u8);

impl EngineId {
    /// The engine with this index in the table.
    pub const fn new(index: u8) -> Self {
        EngineId(index)
    }

    /// Index in the table, and in arrays with an element for each engine.
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Function of an engine, which determines the commands that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineClass {
    /// 3D and media pipelines, logical contexts.
    Render,
    /// The video decoder (BSD).
    Video,
    /// The copy engine (BLT).
    Copy,
}

/// A set of engine classes, one bit per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// Every class.
    pub const ALL: Classes = Classes(Self::RENDER.0 | Self::NOT_RENDER.0);
    /// Render.
    pub const RENDER: Classes = Self::of(EngineClass::Render);
    /// Render and copy.
    pub const RENDER_COPY: Classes = Classes(Self::RENDER.0 | Self::of(EngineClass::Copy).0);
    /// Video and copy.
    pub const NOT_RENDER: Classes = Classes(Self::of(EngineClass::Video).0 | Self::of(EngineClass::Copy).0);

    const fn of(class: EngineClass) -> Classes {
        Classes(1 << class as u8)
    }

    /// Returns whether `class` is in the set.
    #[inline]
    pub const fn has(self, class: EngineClass) -> bool {
        self.0 >> class as u8 & 1 != 0
    }
}

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
    interrupts: 22,
    reset: 1 << 3,
    rows: copy::TABLE,
};

/// The engines of Sandy Bridge.
pub static SANDY_BRIDGE_ENGINES: [EngineInfo; 3] = [
    EngineInfo { translation_mode: 0x2520, ..RENDER },
    EngineInfo { status_page: 0x1_4080, translation_mode: 0x2520, rows: engine::SANDY_BRIDGE_VIDEO, ..VIDEO },
    EngineInfo { status_page: 0x2_4080, translation_mode: 0x2520, ..COPY },
];

/// The engines of Ivy Bridge.
pub static IVY_BRIDGE_ENGINES: [EngineInfo; 3] = [
    EngineInfo { translation_mode: 0x229c, ..RENDER },
    EngineInfo { status_page: 0x4180, translation_mode: 0x1_229c, ..VIDEO },
    EngineInfo { status_page: 0x4280, translation_mode: 0x2_229c, ..COPY },
];
