//! Engine activity: how long each engine was busy, in the buffers that the drivers register (contract K.6, G.4).

use crate::engine::id::{EngineClass, EngineId};
use crate::memory::{Fault, Gam, Space};
use crate::world::TIMESTAMP_HZ;

use super::ads::{EngineMap, MAX_LOGICAL};

/// Bytes of one function's record array: 16 classes of 32 logical instances, 16 bytes each.
const ACTIVITY_BYTES: u64 = 16 * 32 * 16;
/// Bytes of one function's metadata.
const METADATA_BYTES: u64 = 16;
/// Share of an engine that a function owns when it shares with nobody.
const WHOLE: u16 = 0x8000;
/// Most functions that a buffer can be for.
pub const MAX_FUNCTIONS: u32 = 64;

/// What has happened on one engine.
#[derive(Clone, Copy, Debug, Default)]
struct Meter {
    /// Tick at which the running context came on; `None` while idle.
    since: Option<u64>,
    /// Ticks of all contexts that have left.
    total: u64,
    /// Context that runs.
    context: u32,
    /// Below 0xffff: the record carries one more, never 0.
    changes: u16,
}

/// Registered buffers (GGTT addresses; 0 = none) and the meters behind them.
#[derive(Debug, Default)]
pub struct Activity {
    map: EngineMap,
    meters: [Meter; EngineId::COUNT],
    /// Metadata and records of xe's whole-device buffer.
    device: Option<(u64, u64)>,
    /// Metadata and records of xe's per-function buffers; the physical function is the first.
    functions: Option<(u64, u64)>,
    /// i915's usage records.
    usage: Option<u64>,
    changes: u32,
}

/// An engine and where the drivers' arrays have it.
#[derive(Clone, Copy, Debug)]
struct Place {
    class: EngineClass,
    logical: usize,
    engine: EngineId,
}

impl Place {
    /// Address of its record in an array of `bytes` each: 32 logical instances a class, in the GuC's order.
    fn record(self, records: u64, bytes: u64) -> u64 {
        records + (u64::from(self.class.guc()) * 32 + self.logical as u64) * bytes
    }
}

/// Low 32 bits of a tick, never 0: the drivers take 0 for "idle".
fn stamp(tick: u64) -> u32 {
    (tick as u32).max(1)
}

impl Activity {
    /// Meters for the engines of `map`.
    pub fn new(map: EngineMap) -> Self {
        Activity { map, ..Activity::default() }
    }

    /// SET_DEVICE_ENGINE_ACTIVITY_BUFFER: from now on `records` tells about all functions together; zeros end it.
    pub fn set_device(&mut self, gam: &mut Gam<'_>, metadata: u64, records: u64) -> Result<(), Fault> {
        self.device = None;
        if metadata != 0 {
            self.prepare(gam, metadata, records)?;
            self.device = Some((metadata, records));
        }
        Ok(())
    }

    /// SET_FUNCTION_ENGINE_ACTIVITY_BUFFER: as above with an array element a function; none ends it.
    pub fn set_functions(&mut self, gam: &mut Gam<'_>, count: u32, metadata: u64, records: u64) -> Result<(), Fault> {
        self.functions = None;
        if count != 0 {
            for n in 0..u64::from(count) {
                self.prepare(gam, metadata + n * METADATA_BYTES, records + n * ACTIVITY_BYTES)?;
            }
            self.functions = Some((metadata, records));
        }
        Ok(())
    }

    /// SET_ENG_UTIL_BUFF: i915's records, one of 32 bytes a class and logical instance.
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

    fn prepare(&mut self, gam: &mut Gam<'_>, metadata: u64, records: u64) -> Result<(), Fault> {
        for place in self.places() {
            self.write_record(gam, records, place)?;
        }
        gam.write_u32(Space::Ggtt, metadata, TIMESTAMP_HZ as u32)?;
        self.count_change(gam, metadata)
    }

    fn count_change(&mut self, gam: &mut Gam<'_>, metadata: u64) -> Result<(), Fault> {
        self.changes = self.changes.wrapping_add(1).max(1);
        gam.write_u32(Space::Ggtt, metadata + 8, self.changes)
    }

    fn write_record(&self, gam: &mut Gam<'_>, records: u64, place: Place) -> Result<(), Fault> {
        let meter = &self.meters[place.engine.index()];
        let at = place.record(records, 16);
        gam.write_u64(Space::Ggtt, at + 8, meter.total)?;
        gam.write_u32(Space::Ggtt, at + 4, meter.since.map_or(0, stamp))?;
        gam.write_u32(Space::Ggtt, at, u32::from(meter.changes + 1) | u32::from(WHOLE) << 16)
    }

    fn write_usage(&self, gam: &mut Gam<'_>, records: u64, place: Place) -> Result<(), Fault> {
        let meter = &self.meters[place.engine.index()];
        let at = place.record(records, 32);
        gam.write_u32(Space::Ggtt, at + 12, meter.total as u32)?;
        gam.write_u32(Space::Ggtt, at + 4, meter.since.map_or(0, stamp))?;
        gam.write_u32(Space::Ggtt, at, if meter.since.is_some() { meter.context } else { u32::MAX })
    }

    /// A context came on (`Some`) or the engine fell idle, at `tick` of the 19.2 MHz counter.
    pub fn switch(&mut self, gam: &mut Gam<'_>, engine: EngineId, context: Option<u32>, tick: u64) {
        let meter = &mut self.meters[engine.index()];
        if let Some(since) = meter.since.take() {
            meter.total += tick.saturating_sub(since);
        }
        meter.since = context.map(|_| tick);
        meter.context = context.unwrap_or(0);
        meter.changes = meter.changes % 0xfffe + 1;
        // A driver that took its buffer away without saying so loses the news, nothing else.
        let _ = self.publish(gam, engine);
    }

    fn publish(&mut self, gam: &mut Gam<'_>, engine: EngineId) -> Result<(), Fault> {
        let Some(logical) = self.map.logical(engine) else { return Ok(()) };
        let place = Place { class: engine.info().class, logical, engine };
        for (metadata, records) in [self.device, self.functions].into_iter().flatten() {
            self.write_record(gam, records, place)?;
            self.count_change(gam, metadata)?;
        }
        match self.usage {
            Some(records) => self.write_usage(gam, records, place),
            None => Ok(()),
        }
    }
}
