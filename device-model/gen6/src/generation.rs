// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The descriptor of a generation: what its cards have in common, as data.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

#[cfg(test)]
mod tests;

use std::fmt;

use arctic_base::host::Timebase;

use crate::command::{CommandSet, IVY_BRIDGE_COMMANDS, SANDY_BRIDGE_COMMANDS};
use crate::registers::arbiter::FAULT_TYPE;
use crate::registers::engines::{EngineInfo, IVY_BRIDGE_ENGINES, SANDY_BRIDGE_ENGINES};
use crate::registers::{Bits, IVY_BRIDGE_REGISTERS, RegisterTables, SANDY_BRIDGE_REGISTERS};
use crate::topology::EngineId;

/// Size in bytes of the largest image of a logical context of all generations.
pub const LARGEST_CONTEXT: usize = 105 * 64;

/// A generation.
pub struct Generation {
    /// Name in card files.
    pub name: &'static str,
    /// PCI device IDs of its desktop parts (G67-001).
    pub devices: &'static [u16],
    /// The registers.
    pub registers: &'static RegisterTables,
    /// The commands.
    pub commands: &'static CommandSet,
    /// The engines, by [`EngineId::index`].
    pub engines: &'static [EngineInfo],
    /// Number of fences (G67-062).
    pub fences: u32,
    /// ARB_MODE: engines access tiled surfaces swizzled (IVB-010, G67-064).
    pub swizzle: Bits,
    /// ARB_MODE: accesses of engines are not translated (IVB-010); none if the generation does not have it.
    pub bypass: Option<Bits>,
    /// Rate of the timestamp (IVB-116).
    pub timebase: Timebase,
    /// Bits of the fault registers that have the type of a fault; 0 if they do not tell it (IVB-039, ILK-161).
    pub fault_types: u32,
    /// Interrupt registers of the display: an event of the bank of the PCH (i915: display/intel_display_regs.h,
    /// DE_PCH_EVENT, DE_PCH_EVENT_IVB).
    pub pch_event: Bits,
    /// Size of the image of a logical context in bytes, as drivers derive it from CXT_SIZE (G67-090).
    pub context_bytes: usize,
    /// Drivers read a fuse that tells whether the display is there (G67-020, G67-022).
    pub display_fuse: bool,
}

impl fmt::Debug for Generation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl Generation {
    /// The engines with their identities.
    pub fn engines(&self) -> impl Iterator<Item = (EngineId, &'static EngineInfo)> + use<> {
        (0..).map(EngineId::new).zip(self.engines)
    }

    /// Facts about `engine`.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "an identity is an index into the table")]
    pub fn engine(&self, engine: EngineId) -> &'static EngineInfo {
        &self.engines[engine.index()]
    }
}

/// An engine of a generation.
#[derive(Clone, Copy, Debug)]
pub struct EngineRef {
    /// The generation.
    pub generation: &'static Generation,
    /// The engine.
    pub id: EngineId,
}

impl EngineRef {
    /// The engine of `generation` with this name in the driver.
    pub fn named(generation: &'static Generation, name: &str) -> Option<EngineRef> {
        let (id, _) = generation.engines().find(|(_, info)| info.name == name)?;
        Some(EngineRef { generation, id })
    }

    /// Facts about the engine.
    #[inline]
    pub fn info(self) -> &'static EngineInfo {
        self.generation.engine(self.id)
    }
}

/// Sandy Bridge (Gen6).
pub static SANDY_BRIDGE: Generation = Generation {
    name: "sandy-bridge",
    devices: &[0x0112, 0x0102, 0x0122],
    registers: &SANDY_BRIDGE_REGISTERS,
    commands: &SANDY_BRIDGE_COMMANDS,
    engines: &SANDY_BRIDGE_ENGINES,
    fences: 16,
    swizzle: Bits::bit(4),
    bypass: None,
    timebase: Timebase::new(12_500_000),
    fault_types: 0,
    pch_event: Bits::bit(21),
    context_bytes: 63 * 64,
    display_fuse: false,
};

/// Ivy Bridge (Gen7).
pub static IVY_BRIDGE: Generation = Generation {
    name: "ivy-bridge",
    devices: &[0x0162, 0x0152],
    registers: &IVY_BRIDGE_REGISTERS,
    commands: &IVY_BRIDGE_COMMANDS,
    engines: &IVY_BRIDGE_ENGINES,
    fences: 32,
    swizzle: Bits::bit(5),
    bypass: Some(Bits::bit(14)),
    timebase: Timebase::new(12_500_000),
    fault_types: FAULT_TYPE.mask(),
    pch_event: Bits::bit(28),
    context_bytes: LARGEST_CONTEXT,
    display_fuse: true,
};

/// All generations.
pub static GENERATIONS: [&Generation; 2] = [&SANDY_BRIDGE, &IVY_BRIDGE];
