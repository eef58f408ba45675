// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interrupt sources, as data: bank and bit, class and instance, and the halves of enable and mask registers.

use crate::topology::{EngineClass, EngineInfo, MAX_ENGINES, XE_HPG_ENGINES};

/// One 16-bit half of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    /// Offset of the register.
    pub register: u32,
    /// 16 for the upper half (xe: ENGINE1_MASK), 0 for the lower (ENGINE0_MASK).
    pub shift: u8,
}

impl Half {
    /// Extracts the half from a register's value.
    pub const fn of(self, value: u32) -> u16 {
        (value >> self.shift & 0xffff) as u16
    }

    /// A register value with these bits in its half.
    pub const fn placed(self, bits: u16) -> u32 {
        (bits as u32) << self.shift
    }
}

const fn upper(register: u32) -> Half {
    Half { register, shift: 16 }
}

const fn lower(register: u32) -> Half {
    Half { register, shift: 0 }
}

/// A source of interrupts.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Index of the GT_INTR_DW (V13-280).
    pub bank: u8,
    /// Bit in the GT_INTR_DW (xe: regs/xe_irq_regs.h).
    pub bit: u8,
    /// Class in the identity (V13-258).
    pub class: u8,
    /// Instance in the identity.
    pub instance: u8,
    /// Enable bits, shared by the instances of a class (V13-265).
    pub enable: Half,
    /// Mask bits, one half per instance (V13-266).
    pub mask: Half,
}

impl Source {
    /// Identifies the source in the identity register: its class and instance fields (V13-260).
    pub const fn name(self) -> u32 {
        (self.instance as u32) << 20 | (self.class as u32) << 16
    }
}

/// Class "other" of the identity: instance 0 is the GuC, 2 observation, 6 the GSC (V13-258).
const OTHER: u8 = 4;

/// Maximum number of sources of a generation: its engines, GuC, GSC and observation.
pub const MAX_SOURCES: usize = MAX_ENGINES + 3;

/// The interrupt sources of a generation.
#[derive(Debug)]
pub struct InterruptMap {
    /// All sources; the engines come first, by [`crate::topology::EngineId::index`].
    pub sources: &'static [Source],
    /// Index of the GuC.
    pub guc: usize,
    /// Index of the GSC.
    pub gsc: usize,
    /// Index of observation.
    pub observation: usize,
}

const XE_HPG_COUNT: usize = XE_HPG_ENGINES.list().len();
#[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
static XE_HPG_SOURCES: [Source; XE_HPG_COUNT + 3] = {
    let guc = Source { bank: 0, bit: 25, class: OTHER, instance: 0, enable: upper(0x19_0038), mask: upper(0x19_00e8) };
    let gsc = Source { bank: 0, bit: 31, class: OTHER, instance: 6, enable: lower(0x19_0044), mask: lower(0x19_00f4) };
    // i915: intel_gt_regs.h, GEN11_WDPERF; the lower half of the registers is its (WGBOXPERF).
    let observation =
        Source { bank: 0, bit: 20, class: OTHER, instance: 2, enable: lower(0x19_003c), mask: lower(0x19_00ec) };
    let mut sources = [guc; XE_HPG_COUNT + 3];
    sources[XE_HPG_COUNT + 1] = gsc;
    sources[XE_HPG_COUNT + 2] = observation;
    let mut n = 0;
    while n < XE_HPG_COUNT {
        sources[n] = engine(&XE_HPG_ENGINES.list()[n]);
        n += 1;
    }
    sources
};

/// The interrupt sources of Xe-HPG.
pub static XE_HPG_INTERRUPTS: InterruptMap =
    InterruptMap { sources: &XE_HPG_SOURCES, guc: XE_HPG_COUNT, gsc: XE_HPG_COUNT + 1, observation: XE_HPG_COUNT + 2 };

/// Returns the interrupt source of an engine, with its enable and mask registers (contract B.10). If two instances
/// share a mask register, the even one has the upper half.
#[allow(clippy::arithmetic_side_effects, reason = "evaluated at compile time")]
const fn engine(info: &EngineInfo) -> Source {
    let (enable, masks) = match info.class {
        EngineClass::Render => (upper(0x19_0030), 0x19_0090),
        EngineClass::Copy => (lower(0x19_0030), 0x19_00a0),
        EngineClass::VideoDecode => (upper(0x19_0034), 0x19_00a8),
        EngineClass::VideoEnhance => (lower(0x19_0034), 0x19_00d0),
        EngineClass::Compute => (upper(0x19_0048), 0x19_0100),
    };
    let register = masks + info.instance as u32 / 2 * 4;
    Source {
        bank: info.interrupt.0,
        bit: info.interrupt.1,
        class: info.class as u8,
        instance: info.instance,
        enable,
        mask: if info.instance & 1 == 0 { upper(register) } else { lower(register) },
    }
}
