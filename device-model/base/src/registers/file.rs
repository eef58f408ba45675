// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The register file: current values of all modelled registers, and counts of accesses to unmodelled ones.

use std::collections::BTreeMap;

use super::cell::Cell;
use super::{Copies, Family, Kind, Register, Replicated, Touched, Touches};

/// A table of registers, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Table<F: Family> {
    /// The rows.
    pub rows: &'static [Register<F>],
    /// Added to the offset of each row.
    pub base: u32,
    /// The engine that has these registers.
    pub engine: Option<F::Engine>,
}

/// Result of decoding an offset.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<F: Family> {
    /// Definition of the register.
    pub register: &'static Register<F>,
    /// Index of the array element.
    pub ordinal: u16,
    /// The engine that owns the register, for engine registers.
    pub engine: Option<F::Engine>,
    /// Value after reset: from the table, or computed from the card's profile.
    pub reset: u32,
    /// Properties of the range in which the register lies.
    pub range: Option<&'static F::Range>,
    /// Index of a VF's value in its [`super::FunctionRegisters`], for a register with [`Copies::PerFunction`].
    pub function_copy: Option<u16>,
    /// Index of the first value, for a register with one value per instance of its range's unit.
    instances: Option<u16>,
}

impl<F: Family> Decoded<F> {
    /// Returns whether the register has one value per instance.
    #[inline]
    pub fn replicated(&self) -> bool {
        self.instances.is_some()
    }

    /// Assigns values from index `first` if the register is replicated; returns the index after them.
    fn place_instances(&mut self, first: u16) -> u16 {
        let instances = self.range.map_or(1, Replicated::instances);
        if instances <= 1 || matches!(self.register.kind, Kind::Live(_)) {
            return first;
        }
        self.instances = Some(first);
        first.checked_add(instances).expect("at most 65535 values of instances")
    }

    /// Name of the element: `GDRST`, `SOFT_SCRATCH[3]`.
    pub fn name(&self) -> String {
        let element = if self.register.count > 1 { format!("[{}]", self.ordinal) } else { String::new() };
        format!("{}{element}", self.register.name)
    }
}

/// All registers with their current values. Of a register with one value per function, this is the physical function's.
pub struct RegisterFile<F: Family> {
    /// By dword; of a replicated register, the value of the first instance that exists.
    values: Box<[Cell]>,
    /// Values of the other instances of the replicated registers, by [`Decoded::instances`] plus the instance.
    instances: Box<[Cell]>,
    /// The existing instances of each replication ([`Replicated::replication`]), one bit each.
    enabled: Box<[u32]>,
    index: Box<[u16]>,
    decoded: Vec<Decoded<F>>,
    /// Indices of dwords that have a register, ascending.
    places: Vec<u32>,
    unmodelled: Touched,
}

impl<F: Family> RegisterFile<F> {
    /// Builds the register file of a register space of `bytes` from tables, in the reset state. `range` has the
    /// properties of an offset, and `enabled` the instances that exist of each replication, one bit each. Panics if two
    /// registers have the same offset, or one is outside the space: tables are constants.
    pub fn new(
        bytes: u32,
        tables: impl IntoIterator<Item = Table<F>>,
        range: impl Fn(u32) -> Option<&'static F::Range>,
        enabled: &[u32],
    ) -> Self {
        let dwords = (bytes / 4) as usize;
        let mut file = RegisterFile {
            values: (0..dwords).map(|_| Cell::new(0)).collect(),
            instances: Box::default(),
            enabled: enabled.into(),
            index: vec![0; dwords].into_boxed_slice(),
            decoded: Vec::new(),
            places: Vec::new(),
            unmodelled: Touched::default(),
        };
        for table in tables {
            for register in table.rows {
                file.place(register, &table, &range);
            }
        }
        file.places.sort_unstable();
        file.number_function_copies();
        let instances = file.decoded.iter_mut().fold(0, |first, decoded| decoded.place_instances(first));
        file.instances = (0..instances).map(|_| Cell::new(0)).collect();
        file.reset();
        file
    }

    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "rows are constants; one that is outside the space, where the index ends, fails every construction"
    )]
    fn place(
        &mut self,
        register: &'static Register<F>,
        table: &Table<F>,
        range: &impl Fn(u32) -> Option<&'static F::Range>,
    ) {
        let engine = table.engine;
        for ordinal in 0..register.count {
            let at = (table.base + register.offset + u32::from(ordinal) * register.stride) / 4;
            let slot = &mut self.index[at as usize];
            assert_eq!(*slot, 0, "two registers at {:#x}", at * 4);
            self.places.push(at);
            self.decoded.push(Decoded {
                register,
                ordinal,
                engine,
                reset: register.reset,
                range: range(at * 4),
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
    pub fn function_copies(&self) -> impl Iterator<Item = (u32, u32)> {
        self.listing().filter_map(|(offset, decoded)| match decoded.register.copies {
            Copies::PerFunction { vf_reset } => Some((offset, vf_reset)),
            Copies::One => None,
        })
    }

    /// Replaces the reset value of the register at `offset`; its value changes at the next reset. Panics if it is not in
    /// a table: the offsets of a card's own values are constants.
    pub fn set_reset(&mut self, offset: u32, value: u32) {
        let slot = self.index.get((offset / 4) as usize).copied().unwrap_or(0);
        let decoded = usize::from(slot).checked_sub(1).and_then(|slot| self.decoded.get_mut(slot));
        decoded.expect("a register with a value of its own must be in a table").reset = value;
    }

    /// States which instances of a replication ([`Replicated::replication`]) exist, one bit each.
    pub fn enable(&mut self, replication: usize, instances: u32) {
        if let Some(enabled) = self.enabled.get_mut(replication) {
            *enabled = instances;
        }
    }

    /// Sets every register to its reset value.
    pub fn reset(&self) {
        for (offset, decoded) in self.listing() {
            self.set_instances(offset, decoded, decoded.reset);
        }
    }

    /// Sets the registers in a range of offsets to their reset values.
    pub fn reset_range(&self, range: std::ops::Range<u32>) {
        range.step_by(4).for_each(|offset| self.reset_register(offset));
    }

    /// Sets the register at `offset`, in all its instances, to its reset value.
    #[inline]
    pub fn reset_register(&self, offset: u32) {
        if let Some(decoded) = self.decode(offset) {
            self.set_instances(offset, decoded, decoded.reset);
        }
    }

    fn decoded_slot(&self, slot: u16) -> Option<&Decoded<F>> {
        self.decoded.get(usize::from(slot).checked_sub(1)?)
    }

    /// The register of the dword at byte `offset`, if one is modelled there.
    #[inline]
    pub fn decode(&self, offset: u32) -> Option<&Decoded<F>> {
        self.decoded_slot(*self.index.get((offset / 4) as usize)?)
    }

    #[inline]
    fn cell(&self, offset: u32) -> Option<&Cell> {
        self.values.get((offset / 4) as usize)
    }

    /// The stored value, without side effects; 0 if no register exists. Of a replicated register, this is the value of
    /// the first instance that exists.
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

    #[inline]
    fn set_instances(&self, offset: u32, decoded: &Decoded<F>, value: u32) {
        if let Some(cell) = self.cell(offset) {
            cell.set(value);
        }
        if decoded.instances.is_some() {
            self.others(decoded).iter().for_each(|cell| cell.set(value));
        }
    }

    /// Values of the instances of a replicated register; the one of the first instance that exists is not used.
    #[allow(clippy::arithmetic_side_effects, reason = "the sum of two 16-bit numbers")]
    fn others(&self, decoded: &Decoded<F>) -> &[Cell] {
        let values = decoded.instances.zip(decoded.range).and_then(|(first, range)| {
            let first = usize::from(first);
            self.instances.get(first..first + usize::from(range.instances()))
        });
        values.unwrap_or_default()
    }

    /// Number of values of a register: of a replicated one, that of the instances that exist.
    pub fn existing_instances(&self, decoded: &Decoded<F>) -> u32 {
        let range = decoded.range.filter(|_| decoded.replicated());
        range.and_then(|range| self.enabled.get(range.replication())).map_or(1, |enabled| enabled.count_ones())
    }

    /// The value of `instance` of a replicated register; `None` if it does not exist.
    fn instance(&self, offset: u32, instance: u16) -> Option<&Cell> {
        let decoded = self.decode(offset)?;
        let range = decoded.range.filter(|_| decoded.replicated())?;
        let enabled = self.enabled.get(range.replication())?;
        match enabled.checked_shr(u32::from(instance))? {
            missing if missing & 1 == 0 => None,
            _ if enabled.trailing_zeros() == u32::from(instance) => self.cell(offset),
            _ => self.others(decoded).get(usize::from(instance)),
        }
    }

    /// The value of `instance` of a replicated register; 0 if it does not exist.
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

    /// Applies a guest's write to `instance` of a replicated register; dropped if it does not exist.
    pub fn write_instance(&self, offset: u32, instance: u16, kind: Kind<F::Live>, value: u32) {
        if let Some(cell) = self.instance(offset, instance) {
            cell.write(kind, value);
        }
    }

    /// Applies a guest's write to every instance of a replicated register.
    #[inline]
    pub fn write_all(&self, offset: u32, decoded: &Decoded<F>, kind: Kind<F::Live>, value: u32) {
        self.write_plain(offset, kind, value);
        if decoded.instances.is_some() {
            self.others(decoded).iter().for_each(|cell| cell.write(kind, value));
        }
    }

    /// Applies a guest's write to a register that has no side effects and is not replicated. Atomic: concurrent writes
    /// of different bits by two vCPUs are not lost.
    #[inline]
    pub fn write_plain(&self, offset: u32, kind: Kind<F::Live>, value: u32) {
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

    /// All registers of the card, by offset.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`places` contains only indices of `index`, which ends at 4 MiB"
    )]
    pub fn listing(&self) -> impl Iterator<Item = (u32, &Decoded<F>)> {
        self.places.iter().filter_map(|at| Some((at * 4, self.decoded_slot(self.index[*at as usize])?)))
    }
}
