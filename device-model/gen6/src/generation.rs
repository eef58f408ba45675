// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The descriptor of a generation: what its cards have in common, as data.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::fmt;

use arctic_base::host::Timebase;

use crate::command::{CommandSet, IVY_BRIDGE_COMMANDS};
use crate::registers::{Bits, IVY_BRIDGE_REGISTERS, RegisterTables};
use crate::topology::{EngineId, EngineInfo, IVY_BRIDGE_ENGINES};

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
    /// Rate of the timestamp (IVB-116).
    pub timebase: Timebase,
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

/// Ivy Bridge (Gen7).
pub static IVY_BRIDGE: Generation = Generation {
    name: "ivy-bridge",
    devices: &[0x0162, 0x0152],
    registers: &IVY_BRIDGE_REGISTERS,
    commands: &IVY_BRIDGE_COMMANDS,
    engines: &IVY_BRIDGE_ENGINES,
    fences: 32,
    swizzle: Bits::bit(5),
    timebase: Timebase::new(12_500_000),
};

/// All generations.
pub static GENERATIONS: [&Generation; 1] = [&IVY_BRIDGE];
