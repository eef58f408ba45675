// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The register file: current values of all modelled registers, and counts of accesses to unmodelled ones.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;

use super::cell::Cell;
use super::fuses::{COMPUTE_DSS_ENABLE, GEOMETRY_DSS_ENABLE, MIRROR_FUSE3};
use super::ranges::{Fuses, Range, Replication};
use super::whitelist::Whitelist;
use super::{Copies, Kind, REGISTER_BYTES, Register, RegisterTables};
use crate::sync::IgnorePoison;
use crate::topology::{EngineId, EngineTable};

/// Result of decoding an offset.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Definition of the register.
    pub register: &'static Register,
    /// Index of the array element.
    pub ordinal: u16,
    /// The engine that owns the register, for engine registers.
    pub engine: Option<EngineId>,
    /// Value after reset: from the table, or computed from the card's profile.
    pub reset: u32,
    /// Forcewake domain and replication, for a register of the GT (V13-129).
    pub range: Option<&'static Range>,
    /// Index of a VF's value in its [`super::FunctionRegisters`], for a register with [`Copies::PerFunction`].
    pub function_copy: Option<u16>,
    /// Replication of a register with one value per instance, and the index of the first of these values.
    instances: Option<(Replication, u16)>,
}

impl Decoded {
    /// Returns whether the register has one value per steered instance.
    #[inline]
    pub fn replicated(&self) -> bool {
        self.instances.is_some()
    }

    /// Assigns values from index `first` if the register is replicated; returns the index after them.
    fn place_instances(&mut self, first: u16) -> u16 {
        let steered = |range: &&Range| range.replication.instances() > 1;
        match (self.range.filter(steered), self.register.kind) {
            (None, _) | (_, Kind::Live(_)) => first,
            (Some(Range { replication, .. }), _) => {
                self.instances = Some((*replication, first));
                first.checked_add(replication.instances()).expect("at most 65535 values of instances")
            }
        }
    }

    /// Display name: `vcs2 RING_TAIL`, `SOFT_SCRATCH[3]`, `GDRST`. `engines` is the card's table of engines.
    pub fn name(&self, engines: EngineTable) -> String {
        let engine = self.engine.map_or(String::new(), |engine| format!("{} ", engines.info(engine).name));
        let element = if self.register.count > 1 { format!("[{}]", self.ordinal) } else { String::new() };
        format!("{engine}{}{element}", self.register.name)
    }
}

/// Access counts of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touches {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
}

/// Maximum number of offsets that are counted separately; accesses to further offsets are counted together.
const MOST_TOUCHED: usize = 4096;

/// Access counts by offset. The number of entries is bounded, regardless of guest accesses.
#[derive(Default)]
struct Touched(Mutex<BTreeMap<u32, Touches>>);

impl Touched {
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn note(&self, offset: u32, write: bool) {
        let mut map = self.0.lock().ignore_poison();
        let key = if map.len() < MOST_TOUCHED || map.contains_key(&offset) { offset } else { u32::MAX };
        let touches = map.entry(key).or_default();
        if write { touches.writes += 1 } else { touches.reads += 1 }
    }

    fn list(&self) -> BTreeMap<u32, Touches> {
        self.0.lock().ignore_poison().clone()
    }
}

/// All registers with their current values. Of a register with one value per function, this is the PF's.
pub struct RegisterFile {
    tables: &'static RegisterTables,
    engines: EngineTable,
    /// By [`EngineId::index`].
    whitelists: Box<[Whitelist]>,
    /// By dword; of a replicated register, the value of the first instance that exists.
    values: Box<[Cell]>,
    /// Values of the other instances of the replicated registers, by [`Decoded::instances`] plus the instance.
    instances: Box<[Cell]>,
    /// The existing instances of each replication, one bit each.
    enabled: [u32; Replication::ALL.len()],
    index: Box<[u16]>,
    decoded: Vec<Decoded>,
    /// Indices of dwords that have a register, ascending.
    places: Vec<u32>,
    unmodelled: Touched,
    asleep: Touched,
}

impl RegisterFile {
    /// Builds the register file from the tables. The engine table is instantiated once per engine.
    pub fn new(tables: &'static RegisterTables, engines: EngineTable) -> Self {
        let dwords = (REGISTER_BYTES / 4) as usize;
        let whitelists = engines.list().iter().map(|engine| Whitelist::of(tables.whitelists, engine)).collect();
        let mut file = RegisterFile {
            tables,
            engines,
            whitelists,
            values: (0..dwords).map(|_| Cell::new(0)).collect(),
            instances: Box::default(),
            enabled: Replication::ALL.map(|replication| replication.enabled(Fuses::FULL)),
            index: vec![0; dwords].into_boxed_slice(),
            decoded: Vec::new(),
            places: Vec::new(),
            unmodelled: Touched::default(),
            asleep: Touched::default(),
        };
        for register in tables.card.iter().flat_map(|table| table.iter()) {
            file.place(register, 0, None);
        }
        for engine in engines.all() {
            for register in tables.engine {
                file.place(register, engines.info(engine).mmio_base, Some(engine));
            }
        }
        file.places.sort_unstable();
        file.number_function_copies();
        let instances = file.decoded.iter_mut().fold(0, |first, decoded| decoded.place_instances(first));
        file.instances = (0..instances).map(|_| Cell::new(0)).collect();
        file.reset();
        file
    }

    /// Returns the tables of the card's generation.
    pub fn tables(&self) -> &'static RegisterTables {
        self.tables
    }

    /// Returns the whitelists of `engine` for non-privileged batches.
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each engine of the table")]
    pub fn whitelist(&self, engine: EngineId) -> &Whitelist {
        &self.whitelists[engine.index()]
    }

    /// Returns the engines of the card's generation.
    #[inline]
    pub fn engines(&self) -> EngineTable {
        self.engines
    }

    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "rows are constants; one that does not lie below 4 MiB, where the index ends, fails every construction"
    )]
    fn place(&mut self, register: &'static Register, base: u32, engine: Option<EngineId>) {
        for ordinal in 0..register.count {
            let at = (base + register.offset + u32::from(ordinal) * register.stride) / 4;
            let slot = &mut self.index[at as usize];
            assert_eq!(*slot, 0, "two registers at {:#x}", at * 4);
            let range = self.tables.ranges.find(at * 4);
            self.places.push(at);
            self.decoded.push(Decoded {
                register,
                ordinal,
                engine,
                reset: register.reset,
                range,
                function_copy: None,
                instances: None,
            });
            *slot = u16::try_from(self.decoded.len()).expect("tables of at most 65535 registers");
        }
    }

    /// Numbers the registers with one value per function by offset.
    #[allow(clippy::indexing_slicing, reason = "`places` contains only indices of `index`")]
    fn number_function_copies(&mut self) {
        let mut copies = 0..;
        for at in &self.places {
            let decoded =
                usize::from(self.index[*at as usize]).checked_sub(1).and_then(|slot| self.decoded.get_mut(slot));
            if let Some(decoded) = decoded.filter(|decoded| decoded.register.copies != Copies::One) {
                decoded.function_copy = copies.next();
            }
        }
    }

    /// Offset and reset value in a VF of each register with one value per function, in the order of
    /// [`Decoded::function_copy`].
    pub(super) fn function_copies(&self) -> impl Iterator<Item = (u32, u32)> {
        self.listing().filter_map(|(offset, decoded)| match decoded.register.copies {
            Copies::PerFunction { vf_reset } => Some((offset, vf_reset)),
            Copies::One => None,
        })
    }

    /// Replaces reset values of the tables by those of a card, given by offset, and resets all registers. The fuse
    /// registers determine which instances of replicated registers exist. Panics if an offset is not in a table.
    pub fn with_reset_values(mut self, values: &[(u32, u32)]) -> Self {
        for (offset, value) in values {
            self.set_reset(*offset, *value);
        }
        self.reset();
        let (geometry, compute) = (self.value(GEOMETRY_DSS_ENABLE), self.value(COMPUTE_DSS_ENABLE));
        let dss = geometry | compute;
        let fuses = Fuses { dss, meml3: self.value(MIRROR_FUSE3) };
        self.enabled = Replication::ALL.map(|replication| replication.enabled(fuses));
        self
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "a profile's offsets are constants below 4 MiB, where the index ends; a slot refers to an entry of `decoded`"
    )]
    fn set_reset(&mut self, offset: u32, value: u32) {
        let slot = usize::from(self.index[(offset / 4) as usize]);
        self.decoded[slot.checked_sub(1).expect("a register with a profile value must be in a table")].reset = value;
    }

    /// Sets every register to its reset value.
    pub fn reset(&self) {
        for (offset, decoded) in self.listing() {
            self.set_instances(offset, decoded, decoded.reset);
        }
    }

    /// Sets the registers of one engine's block to their reset values.
    #[allow(clippy::arithmetic_side_effects, reason = "an engine's block lies below 4 MiB")]
    pub fn reset_engine(&self, engine: EngineId) {
        let base = self.engines.info(engine).mmio_base;
        self.reset_range(base..base + 0x800);
    }

    /// Sets the registers in a range of offsets to their reset values.
    pub fn reset_range(&self, range: std::ops::Range<u32>) {
        range.step_by(4).for_each(|offset| self.reset_register(offset));
    }

    /// Sets the register at `offset`, in all its instances, to its reset value.
    pub fn reset_register(&self, offset: u32) {
        if let Some(decoded) = self.decode(offset) {
            self.set_instances(offset, decoded, decoded.reset);
        }
    }

    fn decoded_slot(&self, slot: u16) -> Option<&Decoded> {
        self.decoded.get(usize::from(slot).checked_sub(1)?)
    }

    /// The register of the dword at byte `offset`, if one is modelled there.
    #[inline]
    pub fn decode(&self, offset: u32) -> Option<&Decoded> {
        self.decoded_slot(*self.index.get((offset / 4) as usize)?)
    }

    #[inline]
    fn cell(&self, offset: u32) -> Option<&Cell> {
        self.values.get((offset / 4) as usize)
    }

    /// The stored value, without side effects; 0 if no register exists. Of a replicated register, this is the value of
    /// the first instance that exists, as in a context image (V13-163).
    #[inline]
    pub fn value(&self, offset: u32) -> u32 {
        self.cell(offset).map_or(0, Cell::value)
    }

    /// The value after reset of the register at `offset`; 0 if no register exists.
    pub fn reset_value(&self, offset: u32) -> u32 {
        self.decode(offset).map_or(0, |decoded| decoded.reset)
    }

    /// Stores a value, without side effects or write mask. Only for the unit that owns the register, which must not be
    /// replicated.
    #[inline]
    pub fn set(&self, offset: u32, value: u32) {
        debug_assert!(self.decode(offset).is_none_or(|decoded| !decoded.replicated()), "{offset:#x} is replicated");
        if let Some(cell) = self.cell(offset) {
            cell.set(value);
        }
    }

    /// Atomically sets bits, without side effects; returns the previous value.
    pub fn set_bits(&self, offset: u32, bits: u32) -> u32 {
        self.cell(offset).map_or(0, |cell| cell.set_bits(bits))
    }

    /// Atomically clears bits, without side effects; returns the previous value.
    pub fn clear_bits(&self, offset: u32, bits: u32) -> u32 {
        self.cell(offset).map_or(0, |cell| cell.clear_bits(bits))
    }

    /// Atomically replaces the value with the result of `new`; returns the old and the new value.
    pub fn update(&self, offset: u32, new: impl Fn(u32) -> u32) -> (u32, u32) {
        self.cell(offset).map_or((0, 0), |cell| cell.update(new))
    }

    /// Like [`RegisterFile::set`]; stores the value in every instance of a replicated register.
    pub fn set_all(&self, offset: u32, value: u32) {
        if let Some(decoded) = self.decode(offset) {
            self.set_instances(offset, decoded, value);
        }
    }

    fn set_instances(&self, offset: u32, decoded: &Decoded, value: u32) {
        for cell in self.cell(offset).into_iter().chain(self.others(decoded)) {
            cell.set(value);
        }
    }

    /// Values of the instances of a replicated register; the one of the first instance that exists is not used.
    #[allow(clippy::arithmetic_side_effects, reason = "the sum of two 16-bit numbers")]
    fn others(&self, decoded: &Decoded) -> &[Cell] {
        let values = decoded.instances.and_then(|(replication, first)| {
            let first = usize::from(first);
            self.instances.get(first..first + usize::from(replication.instances()))
        });
        values.unwrap_or_default()
    }

    /// The value of `instance` of a replicated register; `None` if it does not exist.
    fn instance(&self, offset: u32, instance: u16) -> Option<&Cell> {
        let decoded = self.decode(offset)?;
        let (replication, _) = decoded.instances?;
        let enabled = self.enabled.get(replication as usize)?;
        match enabled.checked_shr(u32::from(instance))? {
            missing if missing & 1 == 0 => None,
            _ if enabled.trailing_zeros() == u32::from(instance) => self.cell(offset),
            _ => self.others(decoded).get(usize::from(instance)),
        }
    }

    /// The value of `instance` of a replicated register ([`Replication::selected`]); 0 if it does not exist (V13-161).
    pub fn instance_value(&self, offset: u32, instance: u16) -> u32 {
        self.instance(offset, instance).map_or(0, Cell::value)
    }

    /// Stores the value of `instance` of a replicated register, without side effects or write mask; no effect if it
    /// does not exist. Only for the unit that owns the register.
    pub fn set_instance(&self, offset: u32, instance: u16, value: u32) {
        if let Some(cell) = self.instance(offset, instance) {
            cell.set(value);
        }
    }

    /// Applies a guest's write to `instance` of a replicated register; dropped if it does not exist (V13-161).
    pub fn write_instance(&self, offset: u32, instance: u16, kind: Kind, value: u32) {
        if let Some(cell) = self.instance(offset, instance) {
            cell.write(kind, value);
        }
    }

    /// Applies a guest's write to every instance of a replicated register.
    pub fn write_all(&self, offset: u32, decoded: &Decoded, kind: Kind, value: u32) {
        for cell in self.cell(offset).into_iter().chain(self.others(decoded)) {
            cell.write(kind, value);
        }
    }

    /// Applies a guest's write to a register that has no side effects and is not replicated. Atomic: concurrent writes
    /// of different bits by two vCPUs are not lost.
    #[inline]
    pub fn write_plain(&self, offset: u32, kind: Kind, value: u32) {
        if let Some(cell) = self.cell(offset) {
            cell.write(kind, value);
        }
    }

    /// Counts an access to an offset without a modelled register.
    pub fn note_unmodelled(&self, offset: u32, write: bool) {
        self.unmodelled.note(offset, write);
    }

    /// Accesses to unmodelled offsets so far. The entry `u32::MAX` counts the offsets beyond the limit of the list.
    pub fn unmodelled(&self) -> BTreeMap<u32, Touches> {
        self.unmodelled.list()
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

    /// All registers of the card, by offset.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`places` contains only indices of `index`, which ends at 4 MiB"
    )]
    pub fn listing(&self) -> impl Iterator<Item = (u32, &Decoded)> {
        self.places.iter().filter_map(|at| Some((at * 4, self.decoded_slot(self.index[*at as usize])?)))
    }
}

/// The bits of `value` that a full-width write stores in a register without side effects.
pub fn admitted(kind: Kind, value: u32) -> u32 {
    match kind {
        Kind::Storage(mask) => value & mask,
        Kind::Masked => value & 0xffff,
        Kind::Write1Clear(_) | Kind::ReadOnly | Kind::Live(_) => 0,
    }
}
