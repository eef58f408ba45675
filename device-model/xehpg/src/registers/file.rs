// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The register file of a card of Xe-HPG: its tables, the instances that its fuses leave, and the access rules of its
//! engines.

use std::collections::BTreeMap;
use std::ops::Deref;

use arctic_base::registers::{self as base, Table, Touched, Touches};

use super::fuses::{COMPUTE_DSS_ENABLE, GEOMETRY_DSS_ENABLE, MIRROR_FUSE3};
use super::ranges::{Fuses, Replication};
use super::whitelist::Whitelist;
use super::{CardFields, Decoded, REGISTER_BYTES, RegisterTables, XeHpg};
use crate::topology::{EngineId, EngineTable};

/// All registers with their current values ([`base::RegisterFile`], to which it dereferences). Of a register with one
/// value per function, this is the PF's.
pub struct RegisterFile {
    values: base::RegisterFile<XeHpg>,
    tables: &'static RegisterTables,
    engines: EngineTable,
    /// By [`EngineId::index`].
    whitelists: Box<[Whitelist]>,
    asleep: Touched,
}

impl Deref for RegisterFile {
    type Target = base::RegisterFile<XeHpg>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl RegisterFile {
    /// Builds the register file from the tables. The engine table is instantiated once per engine.
    pub fn new(tables: &'static RegisterTables, engines: EngineTable) -> Self {
        let card = tables.card.iter().map(|rows| Table { rows, base: 0, engine: None });
        let of_engine =
            |engine| Table { rows: tables.engine, base: engines.info(engine).mmio_base, engine: Some(engine) };
        let full = Replication::ALL.map(|replication| replication.enabled(Fuses::FULL));
        RegisterFile {
            values: base::RegisterFile::new(
                REGISTER_BYTES,
                card.chain(engines.all().map(of_engine)),
                |offset| tables.ranges.find(offset),
                &full,
            ),
            tables,
            engines,
            whitelists: engines.list().iter().map(|engine| Whitelist::of(tables.whitelists, engine)).collect(),
            asleep: Touched::default(),
        }
    }

    /// Returns the tables of the card's generation.
    pub fn tables(&self) -> &'static RegisterTables {
        self.tables
    }

    /// Returns the whitelists of `engine` for non-privileged batches.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each engine of the table")]
    pub fn whitelist(&self, engine: EngineId) -> &Whitelist {
        &self.whitelists[engine.index()]
    }

    /// Returns the engines of the card's generation.
    #[inline]
    pub fn engines(&self) -> EngineTable {
        self.engines
    }

    /// Replaces reset values of the tables by those of a card, given by offset, and resets all registers. The fuse
    /// registers determine which instances of replicated registers exist. Panics if an offset is not in a table.
    pub fn with_reset_values(mut self, values: &[(u32, u32)]) -> Self {
        for (offset, value) in values {
            self.values.set_reset(*offset, *value);
        }
        self.reset();
        let (geometry, compute) = (self.value(GEOMETRY_DSS_ENABLE), self.value(COMPUTE_DSS_ENABLE));
        let dss = geometry | compute;
        let fuses = Fuses { dss, meml3: self.value(MIRROR_FUSE3) };
        for replication in Replication::ALL {
            self.values.enable(replication as usize, replication.enabled(fuses));
        }
        self
    }

    /// Returns the bit fields of a register.
    #[inline]
    pub fn fields<R: CardFields>(&self) -> R {
        R::from(self.value(R::OFFSET))
    }

    /// Sets the bit fields of a register, without write mask.
    #[inline]
    pub fn set_fields<R: CardFields>(&self, value: R) {
        self.set(R::OFFSET, value.into());
    }

    /// Display name: `vcs2.RING_TAIL`, `SOFT_SCRATCH[3]`, `GDRST`.
    pub fn name(&self, decoded: &Decoded) -> String {
        match decoded.engine {
            Some(engine) => format!("{}.{}", self.engines.info(engine).name, decoded.name()),
            None => decoded.name(),
        }
    }

    /// Counts an access to a register in a forcewake domain that was asleep.
    pub fn note_asleep(&self, offset: u32, write: bool) {
        self.asleep.note(offset, write);
    }

    /// Accesses to registers in a forcewake domain that was asleep. The entry `u32::MAX` counts the offsets beyond the
    /// limit of the list.
    pub fn asleep(&self) -> BTreeMap<u32, Touches> {
        self.asleep.list()
    }
}
