// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engine activity: busy time of each engine, in total and per function, in the buffers that the drivers register
//! (contract K.6, G.4).

use arctic_sriov::number::low;

use crate::guc::functions::Functions;
use crate::guc::functions::engine_map::{EngineMap, MAX_LOGICAL};
use crate::guc::functions::function_activity::{ALL_OF_IT, FunctionActivity, Meters};
use crate::host::{Function, Timebase, functions};
use crate::memory::{Fault, Gam, Space};
use crate::topology::{EngineClass, EngineId, MAX_ENGINES};

/// Bytes of one function's record array: 16 classes of 32 logical instances, 16 bytes each.
const ACTIVITY_BYTES: u64 = 16 * 32 * 16;
/// Bytes of one function's metadata.
const METADATA_BYTES: u64 = 16;
/// Maximum number of functions in a buffer.
pub const MAX_FUNCTIONS: u32 = 64;

/// Registered buffers (GGTT addresses), and the total busy times that are written to them.
#[derive(Debug)]
pub struct Activity {
    map: EngineMap,
    timebase: Timebase,
    /// Total of all functions.
    card: Meters,
    /// Function and id of the context running on each engine.
    running: [Option<(Function, u32)>; MAX_ENGINES],
    /// Metadata and records of xe's device-wide buffer.
    device: Option<(u64, u64)>,
    /// xe's per-function buffers: number of functions (the PF is the first), metadata and records.
    functions: Option<(u32, u64, u64)>,
    /// i915's usage records.
    usage: Option<u64>,
    changes: u32,
}

/// An engine and its position in the drivers' arrays.
#[derive(Clone, Copy, Debug)]
struct Place {
    class: EngineClass,
    logical: usize,
    engine: EngineId,
}

impl Place {
    /// Returns the address of its record in an array with `bytes` per record. The array has 32 logical instances per
    /// class, with classes in the GuC's order.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a GGTT address has 32 bits, and a table of records ends within 1 MiB"
    )]
    fn record(self, records: u64, bytes: u64) -> u64 {
        records + (u64::from(self.class.guc()) * 32 + self.logical as u64) * bytes
    }
}

/// Returns the low 32 bits of a tick, but never 0, which the drivers interpret as "idle".
fn stamp(tick: u64) -> u32 {
    low(tick).max(1)
}

impl Activity {
    /// Creates idle meters for the engines of `map`; records are in ticks of `timebase`.
    pub fn new(map: EngineMap, timebase: Timebase) -> Self {
        Activity {
            map,
            timebase,
            card: Meters::default(),
            running: [None; MAX_ENGINES],
            device: None,
            functions: None,
            usage: None,
            changes: 0,
        }
    }

    /// SET_DEVICE_ENGINE_ACTIVITY_BUFFER: sets the buffer for the total of all functions; zeros disable it.
    pub fn set_device(&mut self, gam: &mut Gam<'_>, metadata: u64, records: u64) -> Result<(), Fault> {
        self.device = None;
        if metadata != 0 {
            self.prepare(gam, metadata, records, None)?;
            self.device = Some((metadata, records));
        }
        Ok(())
    }

    /// SET_FUNCTION_ENGINE_ACTIVITY_BUFFER: likewise, with one array element per function; a count of 0 disables it.
    pub fn set_functions(
        &mut self,
        gam: &mut Gam<'_>,
        of: &Functions,
        (count, metadata, records): (u32, u64, u64),
    ) -> Result<(), Fault> {
        self.functions = None;
        if count != 0 {
            let buffers = (count.min(MAX_FUNCTIONS), metadata, records);
            self.prepare_functions(gam, of, buffers)?;
            self.functions = Some(buffers);
        }
        Ok(())
    }

    fn prepare_functions(
        &mut self,
        gam: &mut Gam<'_>,
        of: &Functions,
        (count, metadata, records): (u32, u64, u64),
    ) -> Result<(), Fault> {
        for function in functions(u64::MAX).take(count as usize) {
            let (metadata, records) = element(function, metadata, records);
            self.prepare(gam, metadata, records, Some(&of[function].activity))?;
        }
        Ok(())
    }

    /// Shows changed shares of the functions to the drivers. A function without a quantum gets the full share.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the product of 64 and 16 bits; the sum includes the quantum, which is not 0"
    )]
    pub fn set_shares(&mut self, gam: &mut Gam<'_>, functions: &mut Functions) {
        let sum = functions.iter().fold(0u64, |sum, (_, function)| sum.saturating_add(function.share.quantum));
        for (_, function) in functions.iter_mut() {
            function.activity.part = match function.share.quantum {
                0 => ALL_OF_IT,
                quantum => {
                    u16::try_from(u128::from(quantum) * u128::from(ALL_OF_IT) / u128::from(sum)).unwrap_or(ALL_OF_IT)
                }
            };
        }
        if let Some(buffers) = self.functions {
            // If the driver has unmapped its buffer, only this update is lost.
            let _ = self.prepare_functions(gam, functions, buffers);
        }
    }

    /// SET_ENG_UTIL_BUFF: sets i915's buffer, with a record of 32 bytes per class and logical instance.
    pub fn set_usage(&mut self, gam: &mut Gam<'_>, records: u64) -> Result<(), Fault> {
        self.usage = Some(records);
        for place in self.places() {
            self.write_usage(gam, records, place)?;
        }
        Ok(())
    }

    fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let map = self.map;
        EngineClass::BY_GUC.into_iter().flat_map(move |class| {
            (0..MAX_LOGICAL)
                .filter_map(move |logical| Some(Place { class, logical, engine: map.engine(class, logical)? }))
        })
    }

    fn prepare(
        &mut self,
        gam: &mut Gam<'_>,
        metadata: u64,
        records: u64,
        function: Option<&FunctionActivity>,
    ) -> Result<(), Fault> {
        for place in self.places() {
            self.write_record(gam, records, place, function)?;
        }
        gam.write_u32(Space::Ggtt, metadata, low(self.timebase.hz()))?;
        self.count_change(gam, metadata)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "a GGTT address has 32 bits")]
    fn count_change(&mut self, gam: &mut Gam<'_>, metadata: u64) -> Result<(), Fault> {
        self.changes = self.changes.wrapping_add(1).max(1);
        gam.write_u32(Space::Ggtt, metadata + 8, self.changes)
    }

    /// Writes the record of `function`, or the total of all functions if `None`.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "records follow a 32-bit address, a change count is below 0xffff, and there is a meter for each engine"
    )]
    fn write_record(
        &self,
        gam: &mut Gam<'_>,
        records: u64,
        place: Place,
        function: Option<&FunctionActivity>,
    ) -> Result<(), Fault> {
        let (meters, part) = match function {
            Some(function) => (&function.meters, function.part),
            None => (&self.card, ALL_OF_IT),
        };
        let meter = &meters[place.engine.index()];
        let at = place.record(records, 16);
        gam.write_u64(Space::Ggtt, at + 8, meter.total)?;
        gam.write_u32(Space::Ggtt, at + 4, meter.since.map_or(0, stamp))?;
        gam.write_u32(Space::Ggtt, at, u32::from(meter.changes + 1) | u32::from(part) << 16)
    }

    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "records follow a 32-bit address, and there is an entry for each engine"
    )]
    fn write_usage(&self, gam: &mut Gam<'_>, records: u64, place: Place) -> Result<(), Fault> {
        let at = place.engine.index();
        let meter = &self.card[at];
        let record = place.record(records, 32);
        gam.write_u32(Space::Ggtt, record + 12, low(meter.total))?;
        gam.write_u32(Space::Ggtt, record + 4, meter.since.map_or(0, stamp))?;
        gam.write_u32(Space::Ggtt, record, self.running[at].map_or(u32::MAX, |(_, context)| context))
    }

    /// Records that a context was loaded (`Some`: its function and id) or that the engine became idle (`None`), at
    /// `tick` of the 19.2 MHz counter.
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each engine")]
    pub fn switch(
        &mut self,
        gam: &mut Gam<'_>,
        functions: &mut Functions,
        (engine, context): (EngineId, Option<(Function, u32)>),
        tick: u64,
    ) {
        let at = engine.index();
        let before = std::mem::replace(&mut self.running[at], context);
        let mut changed = 0;
        for (function, busy) in [(before, false), (context, true)] {
            if let Some((function, _)) = function {
                functions[function].activity.meters[at].switch(busy, tick);
                changed |= function.bit();
            }
        }
        self.card[at].switch(context.is_some(), tick);
        // If the driver has unmapped its buffer, only this update is lost.
        let _ = self.publish(gam, functions, engine, changed);
    }

    fn publish(&mut self, gam: &mut Gam<'_>, of: &Functions, engine: EngineId, changed: u64) -> Result<(), Fault> {
        let Some((class, logical)) = self.map.position(engine) else { return Ok(()) };
        let place = Place { class, logical, engine };
        if let Some((metadata, records)) = self.device {
            self.write_record(gam, records, place, None)?;
            self.count_change(gam, metadata)?;
        }
        if let Some((count, metadata, records)) = self.functions {
            for function in functions(changed).filter(|function| u32::from(function.number()) < count) {
                let (metadata, records) = element(function, metadata, records);
                self.write_record(gam, records, place, Some(&of[function].activity))?;
                self.count_change(gam, metadata)?;
            }
        }
        match self.usage {
            Some(records) => self.write_usage(gam, records, place),
            None => Ok(()),
        }
    }
}

/// Returns the addresses of a function's metadata and records in the arrays.
#[allow(clippy::arithmetic_side_effects, reason = "addresses have 32 bits, and a function's number 8")]
fn element(function: Function, metadata: u64, records: u64) -> (u64, u64) {
    let n = u64::from(function.number());
    (metadata + n * METADATA_BYTES, records + n * ACTIVITY_BYTES)
}
