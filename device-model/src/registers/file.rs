//! The register file: every modelled register with its present value, and what was touched that is not modelled.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;

use super::cell::Cell;
use super::ranges::{self, Range};
use super::{ENGINE_TABLE, Kind, REGISTER_BYTES, Register, TABLES};
use crate::engine::id::EngineId;
use crate::profile::CardProfile;

/// A register that an offset decodes to.
#[derive(Clone, Copy, Debug)]
pub struct Decoded {
    /// Its definition.
    pub register: &'static Register,
    /// Element of the array.
    pub ordinal: u16,
    /// The engine whose block it is in, for engine registers.
    pub engine: Option<EngineId>,
    /// Value after reset: the table's, or what the card's profile makes of it.
    pub reset: u32,
    /// Its wake domain and replication, for a register of the GT (V13-129).
    pub range: Option<&'static Range>,
}

impl Decoded {
    /// Name for people: `vcs2 RING_TAIL`, `SOFT_SCRATCH[3]`, `GDRST`.
    pub fn name(&self) -> String {
        let engine = self.engine.map_or(String::new(), |engine| format!("{} ", engine.info().name));
        let element = if self.register.count > 1 { format!("[{}]", self.ordinal) } else { String::new() };
        format!("{engine}{}{element}", self.register.name)
    }
}

/// How often a register was touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Touches {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// Offsets that a list of touches keeps apart; more are counted together.
const MOST_TOUCHED: usize = 4096;

/// Touched offsets with how often; of bounded size whatever a guest does.
#[derive(Default)]
struct Touched(Mutex<BTreeMap<u32, Touches>>);

impl Touched {
    fn note(&self, offset: u32, write: bool) {
        let mut map = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = if map.len() < MOST_TOUCHED || map.contains_key(&offset) { offset } else { u32::MAX };
        let touches = map.entry(key).or_default();
        if write { touches.writes += 1 } else { touches.reads += 1 }
    }

    fn list(&self) -> BTreeMap<u32, Touches> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// All registers with their present values.
pub struct RegisterFile {
    values: Box<[Cell]>,
    index: Box<[u16]>,
    decoded: Vec<Decoded>,
    /// Dwords that have a register, rising.
    places: Vec<u32>,
    unmodelled: Touched,
    asleep: Touched,
}

impl RegisterFile {
    /// The registers of the card that `profile` describes, as after power-on.
    pub fn of_card(profile: &CardProfile) -> Self {
        let mut file = RegisterFile::new(TABLES, ENGINE_TABLE, EngineId::all());
        for (offset, value) in super::personality::values(profile) {
            file.set_reset(offset, value);
        }
        file.reset();
        file
    }

    /// Builds the file from the card-wide tables and the table of engine registers, the latter once an engine.
    pub fn new(
        tables: &[&'static [Register]],
        engine_table: &'static [Register],
        engines: impl Iterator<Item = EngineId>,
    ) -> Self {
        let dwords = (REGISTER_BYTES / 4) as usize;
        let mut file = RegisterFile {
            values: (0..dwords).map(|_| Cell::new(0)).collect(),
            index: vec![0; dwords].into_boxed_slice(),
            decoded: Vec::new(),
            places: Vec::new(),
            unmodelled: Touched::default(),
            asleep: Touched::default(),
        };
        for register in tables.iter().flat_map(|table| table.iter()) {
            file.place(register, 0, None);
        }
        for engine in engines {
            for register in engine_table {
                file.place(register, engine.info().mmio_base, Some(engine));
            }
        }
        file.places.sort_unstable();
        file.reset();
        file
    }

    fn place(&mut self, register: &'static Register, base: u32, engine: Option<EngineId>) {
        for ordinal in 0..register.count {
            let at = (base + register.offset + u32::from(ordinal) * register.stride) / 4;
            let slot = &mut self.index[at as usize];
            assert_eq!(*slot, 0, "two registers at {:#x}", at * 4);
            let range = ranges::find(at * 4);
            self.places.push(at);
            self.decoded.push(Decoded { register, ordinal, engine, reset: register.reset, range });
            *slot = u16::try_from(self.decoded.len()).expect("tables of at most 65535 registers");
        }
    }

    fn set_reset(&mut self, offset: u32, value: u32) {
        let slot = usize::from(self.index[(offset / 4) as usize]);
        self.decoded[slot.checked_sub(1).expect("a register to personalise is in a table")].reset = value;
    }

    /// Gives every register its reset value.
    pub fn reset(&self) {
        for (offset, decoded) in self.listing() {
            self.values[(offset / 4) as usize].set(decoded.reset);
        }
    }

    /// Gives the registers of one engine's block their reset values.
    pub fn reset_engine(&self, engine: EngineId) {
        let base = engine.info().mmio_base;
        self.reset_range(base..base + 0x800);
    }

    /// Gives the registers of a range of offsets their reset values.
    pub fn reset_range(&self, range: std::ops::Range<u32>) {
        for at in (range.start / 4) as usize..(range.end / 4) as usize {
            if let Some(decoded) = self.decoded_slot(self.index[at]) {
                self.values[at].set(decoded.reset);
            }
        }
    }

    fn decoded_slot(&self, slot: u16) -> Option<&Decoded> {
        self.decoded.get(usize::from(slot).checked_sub(1)?)
    }

    /// The register at byte `offset` (its dword), if one is modelled there.
    #[inline]
    pub fn decode(&self, offset: u32) -> Option<&Decoded> {
        self.decoded_slot(*self.index.get((offset / 4) as usize)?)
    }

    #[inline]
    fn cell(&self, offset: u32) -> Option<&Cell> {
        self.values.get((offset / 4) as usize)
    }

    /// The stored value, without side effect; 0 outside.
    #[inline]
    pub fn value(&self, offset: u32) -> u32 {
        self.cell(offset).map_or(0, Cell::value)
    }

    /// Stores a value, without side effect or mask: for the unit that owns the register.
    #[inline]
    pub fn set(&self, offset: u32, value: u32) {
        if let Some(cell) = self.cell(offset) {
            cell.set(value);
        }
    }

    /// Sets bits, as [`RegisterFile::set`], and tells what was there: none of what another thread sets is lost.
    pub fn set_bits(&self, offset: u32, bits: u32) -> u32 {
        self.cell(offset).map_or(0, |cell| cell.set_bits(bits))
    }

    /// Clears bits, as [`RegisterFile::set_bits`] sets them.
    pub fn clear_bits(&self, offset: u32, bits: u32) -> u32 {
        self.cell(offset).map_or(0, |cell| cell.clear_bits(bits))
    }

    /// Replaces the value by what `new` makes of it, in one piece to other threads; tells the value before and after.
    pub fn update(&self, offset: u32, new: impl Fn(u32) -> u32) -> (u32, u32) {
        self.cell(offset).map_or((0, 0), |cell| cell.update(new))
    }

    /// Applies a guest's write to a register without behaviour of its own. Two processors may write it at once, each its
    /// own bits: neither undoes the other.
    pub fn write_plain(&self, offset: u32, kind: Kind, value: u32) {
        if let Some(cell) = self.cell(offset) {
            cell.write(kind, value);
        }
    }

    /// Notes that something touched an offset where no register is modelled.
    pub fn note_unmodelled(&self, offset: u32, write: bool) {
        self.unmodelled.note(offset, write);
    }

    /// Unmodelled offsets touched so far (`u32::MAX` stands for all beyond the list's limit).
    pub fn unmodelled(&self) -> BTreeMap<u32, Touches> {
        self.unmodelled.list()
    }

    /// Notes that a register was touched while its wake domain slept.
    pub fn note_asleep(&self, offset: u32, write: bool) {
        self.asleep.note(offset, write);
    }

    /// Registers touched while their wake domain slept (`u32::MAX` stands for all beyond the list's limit).
    pub fn asleep(&self) -> BTreeMap<u32, Touches> {
        self.asleep.list()
    }

    /// Every register that the card models, by offset.
    pub fn listing(&self) -> impl Iterator<Item = (u32, &Decoded)> {
        self.places.iter().filter_map(|at| Some((at * 4, self.decoded_slot(self.index[*at as usize])?)))
    }
}

/// What a register without behaviour of its own takes of a value that it is given as a whole.
pub fn admitted(kind: Kind, value: u32) -> u32 {
    match kind {
        Kind::Storage(mask) => value & mask,
        Kind::Masked => value & 0xffff,
        Kind::Write1Clear(_) | Kind::ReadOnly | Kind::Live(_) => 0,
    }
}
