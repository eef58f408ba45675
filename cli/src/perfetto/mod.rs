// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A timeline of a card's events for Perfetto's page (<https://ui.perfetto.dev>): a track for each engine and for each function.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod engine;
mod ftrace;
mod guest;
mod packets;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use arctic_device_model::decode::Message;
use arctic_device_model::trace::{Event, EventKind};
use arctic_gpu::card::status::name_of;

pub use self::guest::GuestClock;

use self::engine::EngineTrack;
use self::packets::{Packets, hex, number, text};
use crate::decode::engine::{Family, names};

/// Most bytes of a timeline. Later events are dropped and counted. Perfetto's page needs several times as much memory.
const MOST_BYTES: u64 = 256 << 20;
/// Most engines of a timeline; no card has as many. Events of others are dropped and counted.
const MOST_ENGINES: usize = 64;

/// Tracks of engines and of functions.
const ENGINES: u64 = 1;
const FUNCTIONS: u64 = 2;
/// First track of an engine, of a function, and of a function on an engine.
const FIRST_ENGINE: u64 = 0x100;
const FIRST_FUNCTION: u64 = 0x1000;
const FIRST_USE: u64 = 0x1_0000;

/// Writes a timeline, packet by packet. Memory is bounded by the number of engines and functions.
///
/// A slice of an engine's track is a context that the engine executes, with its batches, kernels and waits within it. It is named
/// by its function ([`slice_name`]), because Perfetto's page colours slices by their names.
pub struct Timeline<W> {
    packets: Packets<W>,
    family: Family,
    guest: Option<GuestClock>,
    is_begun: bool,
    engines: BTreeMap<String, EngineTrack>,
    functions: BTreeSet<u8>,
    /// Tracks of the engines that a function uses.
    uses: BTreeMap<(u8, u64), u64>,
    counts: Counts,
    /// Time of the last event.
    last: u64,
}

/// The number of events of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that it is made of.
    pub events: u64,
    /// Events that are missing in it: those that a slow reader has lost, and those beyond its limits.
    pub missing: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "timeline of {} events; {} missing", self.events, self.missing)
    }
}

/// A file, of which errors have the name.
pub struct Named {
    file: File,
    path: PathBuf,
}

impl Named {
    fn name(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{} cannot be written: {error}", self.path.display()))
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.name(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.name(&error))
    }
}

impl Timeline<Named> {
    /// Creates a file with the timeline of a card. `guest` is the path of a file with the line of `arctic guest clock`.
    ///
    /// # Errors
    ///
    /// If a file cannot be created or read, or the guest's clock is not valid.
    pub fn create(path: &Path, card: &str, family: Family, guest: Option<&Path>) -> Result<Self> {
        let guest = guest.map(GuestClock::read).transpose()?;
        let file = File::create(path).with_context(|| format!("{} cannot be created", path.display()))?;
        Ok(Timeline::new(Named { file, path: path.to_owned() }, MOST_BYTES, card, family, guest)?)
    }
}

impl<W: Write> Timeline<W> {
    /// Begins a timeline of the card with this name. With the clock of a guest, it is on the axis of that guest's clocks, as an
    /// ftrace of it with the clock `mono` or `boot`; else on that of the card. After `most` bytes, events are dropped and counted.
    pub fn new(out: W, most: u64, card: &str, family: Family, guest: Option<GuestClock>) -> io::Result<Self> {
        let mut packets = Packets::new(out, most);
        for (uuid, part) in [(ENGINES, "engines"), (FUNCTIONS, "functions")] {
            packets.track(uuid, None, &format!("{card}: {part}"), uuid)?;
        }
        Ok(Timeline {
            packets,
            family,
            guest,
            is_begun: false,
            engines: BTreeMap::new(),
            functions: BTreeSet::new(),
            uses: BTreeMap::new(),
            counts: Counts::default(),
            last: 0,
        })
    }

    /// Adds an event of the card.
    pub fn add(&mut self, event: &Event) -> io::Result<()> {
        let Event { ns, function, engine, what, .. } = event;
        self.begin(*ns)?;
        self.counts.events = self.counts.events.saturating_add(1);
        self.last = self.last.max(*ns);
        if self.packets.is_full() {
            self.counts.missing = self.counts.missing.saturating_add(1);
            return self.end_contexts("unknown: the timeline has its largest size");
        }
        match (what, engine) {
            (EventKind::Lost { events }, _) => self.lose(*ns, *events),
            (_, Some(engine)) => self.of_engine(*ns, *function, engine, what),
            (_, None) => self.of_function(*ns, *function, what),
        }
    }

    /// Writes the relation of the clocks before the first event.
    fn begin(&mut self, ns: u64) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let pair = self.guest.as_ref().map(|guest| guest.near(ns)).unwrap_or_default();
        self.packets.clocks(pair)
    }

    fn of_engine(&mut self, ns: u64, function: u8, name: &str, what: &EventKind) -> io::Result<()> {
        if !self.engines.contains_key(name) {
            if self.engines.len() >= MOST_ENGINES {
                self.counts.missing = self.counts.missing.saturating_add(1);
                return Ok(());
            }
            let uuid = FIRST_ENGINE.saturating_add(self.engines.len() as u64);
            self.packets.track(uuid, Some(ENGINES), name, self.rank(name))?;
            self.engines.insert(name.to_owned(), EngineTrack::new(uuid, self.family.engine(name)));
        }
        let using = if matches!(what, EventKind::Load { .. }) { Some(self.use_of(function, name)?) } else { None };
        let Some(engine) = self.engines.get_mut(name) else { return Ok(()) };
        engine.add(&mut self.packets, ns, function, using, what)
    }

    /// Place of an engine among those of the card.
    fn rank(&self, engine: &str) -> u64 {
        names(self.family).iter().position(|known| *known == engine).unwrap_or(MOST_ENGINES) as u64
    }

    /// The track of a function, which is described when it has the first event.
    fn function(&mut self, number: u8) -> io::Result<u64> {
        let uuid = FIRST_FUNCTION.saturating_add(number.into());
        if self.functions.insert(number) {
            self.packets.track(uuid, Some(FUNCTIONS), &name_of(number), number.into())?;
        }
        Ok(uuid)
    }

    /// The track of a function on an engine, below that of the function.
    fn use_of(&mut self, function: u8, engine: &str) -> io::Result<u64> {
        let below = self.engines.get(engine).map_or(0, |engine| engine.uuid);
        if let Some(uuid) = self.uses.get(&(function, below)) {
            return Ok(*uuid);
        }
        let parent = self.function(function)?;
        let uuid = FIRST_USE.saturating_add(self.uses.len() as u64);
        self.uses.insert((function, below), uuid);
        self.packets.track(uuid, Some(parent), engine, self.rank(engine))?;
        Ok(uuid)
    }

    fn of_function(&mut self, ns: u64, function: u8, what: &EventKind) -> io::Result<()> {
        let track = self.function(function)?;
        let (name, values) = match what {
            EventKind::Msi { vector } => ("MSI".into(), vec![number("vector", (*vector).into())]),
            EventKind::Guc { mailbox, fence, dwords } => {
                let message = Message::new(dwords, Some(*fence));
                let name = if message.name.is_empty() { message.what.clone() } else { message.name };
                let values = vec![
                    text("message", &message.what),
                    text("from", if message.from_guc { "GuC" } else { "driver" }),
                    text("by", if *mailbox { "mailbox" } else { "CT buffer" }),
                    number("fence", (*fence).into()),
                ];
                (format!("GuC {name}"), values)
            }
            EventKind::Stream { unit, enabled, written, lost, .. } => {
                let name = format!("stream of {unit} {}", if *enabled { "begins" } else { "ends" });
                (name, vec![number("written", *written), number("lost", *lost)])
            }
            EventKind::Doorbell { page, doorbell, notifies } => {
                let mut values = vec![hex("page", *page), number("notifies", (*notifies).into())];
                values.extend(doorbell.map(|doorbell| number("doorbell", doorbell.into())));
                (if doorbell.is_some() { "doorbell" } else { "doorbell missed" }.into(), values)
            }
            EventKind::TlbInvalidation { by, all } => {
                ("TLB invalidation".into(), vec![text("by", by), number("of all functions", (*all).into())])
            }
            _ => return Ok(()),
        };
        self.packets.instant(ns, track, name, values)
    }

    /// Ends the slices of all engines.
    fn end_contexts(&mut self, outcome: &str) -> io::Result<()> {
        let (packets, last) = (&mut self.packets, self.last);
        self.engines.values_mut().try_for_each(|engine| engine.end(packets, last, &[text("outcome", outcome)]))
    }

    /// Marks that events are missing. What runs is not known afterwards.
    fn lose(&mut self, ns: u64, events: u64) -> io::Result<()> {
        self.counts.missing = self.counts.missing.saturating_add(events);
        self.end_contexts("unknown: events were lost")?;
        self.packets.instant(ns, ENGINES, "events were lost".into(), vec![number("events", events)])
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.packets.flush()
    }

    /// Ends the timeline.
    pub fn finish(mut self) -> io::Result<Counts> {
        self.begin(0)?;
        self.end_contexts("still running at the end of the trace")?;
        let missing = self.counts.missing;
        self.packets.instant(self.last, ENGINES, "end of the trace".into(), vec![number("missing events", missing)])?;
        self.flush()?;
        Ok(self.counts)
    }
}

/// Name of a function's slices: `pf`, `vf1 (A)`, `vf27 (AA)`.
///
/// Perfetto's page chooses the colour of a slice by its name without the digits (`getColorForSlice` in ui/src/components/colorizer.ts),
/// so that `vf1` and `vf2` would have one colour. The letters tell functions apart.
fn slice_name(function: u8) -> String {
    let mut letters = String::new();
    let mut rest = function;
    while rest != 0 {
        rest = rest.saturating_sub(1);
        letters.insert(0, char::from(b'A'.saturating_add(rest % 26)));
        rest /= 26;
    }
    if letters.is_empty() { name_of(function) } else { format!("{} ({letters})", name_of(function)) }
}
