// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Writes the packets of a timeline, complete packets at a time.

use std::io::{self, Write};

use prost::Message;

use super::guest::GuestTime;
use super::schema::{
    Clock, ClockSnapshot, Data, DebugAnnotation, EXPLICIT, INCREMENTAL_STATE_CLEARED, Kind, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Value,
};

/// The clock of the card, among those of the sequence of packets.
const CARD_CLOCK: u32 = 64;
/// CLOCK_MONOTONIC and CLOCK_BOOTTIME of Linux.
const MONOTONIC: u32 = 3;
const BOOTTIME: u32 = 6;
/// The sequence of packets that has them all.
const SEQUENCE: u32 = 1;
/// The latest time of an axis, which Perfetto's times of 64 bits with a sign have; the earliest is 0.
pub const LATEST: u64 = i64::MAX.cast_unsigned();
/// Bytes that are written at once.
const BUFFER: usize = 64 << 10;

/// Values that are shown with an event.
pub type Values = Vec<DebugAnnotation>;

/// Writes packets. A file that it has been writing to has no part of a packet at its end.
pub struct Packets<W> {
    out: W,
    buffer: Vec<u8>,
    written: u64,
    most: u64,
    /// The earliest and the latest time of the card that is on the axis.
    earliest: u64,
    latest: u64,
}

impl<W: Write> Packets<W> {
    /// Writes to `out`. [`Packets::is_full`] after `most` bytes.
    pub fn new(out: W, most: u64) -> Self {
        Packets { out, buffer: Vec::with_capacity(BUFFER), written: 0, most, earliest: 0, latest: LATEST }
    }

    /// Returns whether no further events should be written, but the ends of slices.
    pub fn is_full(&self) -> bool {
        self.written >= self.most
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: (self.written == 0).then_some(INCREMENTAL_STATE_CLEARED),
            ..packet
        };
        let before = self.buffer.len();
        Trace { packet: vec![packet] }.encode(&mut self.buffer)?;
        self.written = self.written.saturating_add(self.buffer.len().saturating_sub(before) as u64);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }

    /// The card's clock and the guest's have these values at one time.
    pub fn clocks(&mut self, GuestTime { monotonic, card }: GuestTime) -> io::Result<()> {
        self.earliest = card.saturating_sub(monotonic);
        self.latest = LATEST.saturating_sub(monotonic.saturating_sub(card));
        let clocks = [(CARD_CLOCK, card), (MONOTONIC, monotonic), (BOOTTIME, monotonic)];
        let clocks = clocks.map(|(id, time)| Clock { clock_id: Some(id), timestamp: Some(time) }).to_vec();
        self.packet(TracePacket {
            data: Some(Data::ClockSnapshot(ClockSnapshot { clocks, primary_trace_clock: Some(BOOTTIME) })),
            ..TracePacket::default()
        })
    }

    /// Describes a track below another one, at the place `rank` there.
    pub fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, rank: u64) -> io::Result<()> {
        let track = TrackDescriptor {
            uuid: Some(uuid),
            parent_uuid: parent,
            name: Some(name.to_owned()),
            child_ordering: Some(EXPLICIT),
            sibling_order_rank: i32::try_from(rank).ok(),
        };
        self.packet(TracePacket { data: Some(Data::TrackDescriptor(track)), ..TracePacket::default() })
    }

    fn event(
        &mut self,
        (ns, clock): (u64, u32),
        track: u64,
        kind: Kind,
        name: Option<String>,
        values: Values,
    ) -> io::Result<()> {
        let event = TrackEvent { r#type: Some(kind.into()), track_uuid: Some(track), name, debug_annotations: values };
        self.packet(TracePacket {
            timestamp: Some(ns),
            timestamp_clock_id: Some(clock),
            data: Some(Data::TrackEvent(event)),
            ..TracePacket::default()
        })
    }

    fn card_time(&self, ns: u64) -> (u64, u32) {
        (ns.max(self.earliest).min(self.latest), CARD_CLOCK)
    }

    /// A slice begins at a time of the card.
    pub fn begin(&mut self, ns: u64, track: u64, name: String, values: Values) -> io::Result<()> {
        self.event(self.card_time(ns), track, Kind::SliceBegin, Some(name), values)
    }

    /// The innermost slice of the track ends.
    pub fn end(&mut self, ns: u64, track: u64, values: Values) -> io::Result<()> {
        self.event(self.card_time(ns), track, Kind::SliceEnd, None, values)
    }

    /// An event without duration, at a time of the guest's CLOCK_MONOTONIC.
    pub fn guest_instant(&mut self, ns: u64, track: u64, name: String, values: Values) -> io::Result<()> {
        self.event((ns.min(LATEST), MONOTONIC), track, Kind::Instant, Some(name), values)
    }

    /// An event without duration.
    pub fn instant(&mut self, ns: u64, track: u64, name: String, values: Values) -> io::Result<()> {
        self.event(self.card_time(ns), track, Kind::Instant, Some(name), values)
    }
}

/// A number.
pub fn number(name: &'static str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Uint(value)) }
}

/// A number that is shown in hexadecimal.
pub fn hex(name: &'static str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Hex(value)) }
}

/// A text.
pub fn text(name: &'static str, value: &str) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), value: Some(Value::Text(value.to_owned())) }
}
