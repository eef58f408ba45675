// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engines of each generation: names, bases of their registers, and their registers and bits in other units.

use super::engine::{CTL_NO_WRITES, CTL_REPORT, GFX_MODE};
use super::render::SANDY_BRIDGE_GFX_MODE;
use super::{Register, copy, engine};
use crate::topology::EngineClass;

/// Facts about one engine of a generation.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// Name in the driver.
    pub name: &'static str,
    /// What it executes: 3D, video or copies.
    pub class: EngineClass,
    /// Offset of its first register (IVB-003, G67-070).
    pub base: u32,
    /// Offset of the register with the address of its status page (IVB-044, G67-072).
    pub status_page: u32,
    /// Offset of its fault register (IVB-039, ILK-161).
    pub fault_register: u32,
    /// Offset of the register that enables its PPGTT, which several engines may have in common (G67-061).
    pub translation_mode: u32,
    /// Bits of the ring's control register that only some engines have (IVB-078, ILK-109).
    pub control_bits: u32,
    /// Position of the engine's interrupt bit 0 in the GT's interrupt registers (G67-046).
    pub interrupt_shift: u8,
    /// Mask of its bit in GDRST (G67-110).
    pub reset_mask: u32,
    /// Registers that only this engine has, by offset from its base.
    pub rows: &'static [Register],
}

/// Offset of the first register of the render engine.
const RENDER_BASE: u32 = 0x2000;
/// Offset of the first register of the video engine.
const VIDEO_BASE: u32 = 0x1_2000;
/// Offset of the first register of the copy engine.
const COPY_BASE: u32 = 0x2_2000;

/// The render engine, with the registers that depend on the generation.
const fn render(translation_mode: u32, status_page: u32) -> EngineInfo {
    EngineInfo {
        name: "rcs0",
        class: EngineClass::Render,
        base: RENDER_BASE,
        status_page,
        fault_register: 0x4094,
        translation_mode,
        control_bits: 0,
        interrupt_shift: 0,
        reset_mask: 1 << 1,
        rows: &[],
    }
}

/// The video engine, with the registers that depend on the generation.
const fn video(translation_mode: u32, status_page: u32) -> EngineInfo {
    EngineInfo {
        name: "vcs0",
        class: EngineClass::Video,
        base: VIDEO_BASE,
        status_page,
        fault_register: 0x4194,
        translation_mode,
        control_bits: CTL_REPORT.mask() | CTL_NO_WRITES.mask(),
        interrupt_shift: 12,
        reset_mask: 1 << 2,
        rows: &[],
    }
}

/// The copy engine, with the registers that depend on the generation.
const fn copy(translation_mode: u32, status_page: u32) -> EngineInfo {
    EngineInfo {
        name: "bcs0",
        class: EngineClass::Copy,
        base: COPY_BASE,
        status_page,
        fault_register: 0x4294,
        translation_mode,
        control_bits: CTL_REPORT.mask(),
        interrupt_shift: 22,
        reset_mask: 1 << 3,
        rows: copy::TABLE,
    }
}

/// The engines of Sandy Bridge, by the index of their [`EngineId`](crate::topology::EngineId): render, video, copy.
pub static SANDY_BRIDGE_ENGINES: [EngineInfo; 3] = [
    EngineInfo { control_bits: CTL_REPORT.mask(), ..render(SANDY_BRIDGE_GFX_MODE, 0x4080) },
    EngineInfo { rows: engine::SANDY_BRIDGE_VIDEO, ..video(SANDY_BRIDGE_GFX_MODE, 0x1_4080) },
    copy(SANDY_BRIDGE_GFX_MODE, 0x2_4080),
];

/// The engines of Ivy Bridge, by the index of their [`EngineId`](crate::topology::EngineId): render, video, copy.
pub static IVY_BRIDGE_ENGINES: [EngineInfo; 3] =
    [render(RENDER_BASE + GFX_MODE, 0x4080), video(VIDEO_BASE + GFX_MODE, 0x4180), copy(COPY_BASE + GFX_MODE, 0x4280)];
