// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Hardware generations as data: one descriptor for each, which refers to the tables of the units. Units receive the
//! descriptor, or the parts of it that they need, as a parameter.

use std::fmt;

use crate::registers::ranges::{self, Range};
use crate::registers::{ENGINE_TABLE, Register, TABLES};
use crate::topology::{EngineId, EngineInfo, EngineTable, XE_HPG_ENGINES};

/// Facts that all cards of a hardware generation have in common. Differences between its dies and cards are in the
/// [`crate::profile::CardProfile`].
pub struct Generation {
    /// Name of the generation.
    pub name: &'static str,
    /// All engines, before fusing.
    pub engines: EngineTable,
    /// Registers by absolute offset, one table per unit.
    pub registers: &'static [&'static [Register]],
    /// Registers of every engine, by offset from its base.
    pub engine_registers: &'static [Register],
    /// Forcewake domain and replication of the GT's registers, by offset.
    pub ranges: &'static [Range],
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An engine of a generation, with its properties.
#[derive(Clone, Copy, Debug)]
pub struct EngineRef {
    /// The generation.
    pub generation: &'static Generation,
    /// The engine.
    pub id: EngineId,
}

impl PartialEq for EngineRef {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.generation, other.generation) && self.id == other.id
    }
}

impl Eq for EngineRef {}

impl EngineRef {
    /// Returns the engine's fixed properties.
    #[inline]
    pub fn info(self) -> &'static EngineInfo {
        self.generation.engines.info(self.id)
    }
}

/// Xe-HPG with graphics IP 12.55: DG2, ATS-M.
pub static XE_HPG: Generation = Generation {
    name: "xe-hpg",
    engines: XE_HPG_ENGINES,
    registers: TABLES,
    engine_registers: ENGINE_TABLE,
    ranges: ranges::RANGES,
};
