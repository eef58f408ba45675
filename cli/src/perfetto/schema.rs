// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The messages of Perfetto's trace format that a timeline needs, with the field numbers of its published schema
//! (Perfetto v59.1: protos/perfetto/trace/perfetto_trace.proto). Fields that a timeline does not have are left out, which the
//! format permits.

use prost::{Message, Oneof};

/// A trace: packets, one after the other.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// The packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Time in ns of the packet's clock.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The clock.
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    /// The sequence of packets to which it belongs.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Flags of the sequence.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// What it has.
    #[prost(oneof = "Data", tags = "6, 11, 60")]
    pub data: Option<Data>,
}

/// What a packet has.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Values of several clocks at one time.
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    /// An event on a track.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// A track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// Values of several clocks at one time.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    /// The clocks.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// The clock by which the trace is shown.
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// A clock, and its time.
#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    /// The clock: 3 is CLOCK_MONOTONIC, 6 CLOCK_BOOTTIME; 64 to 127 belong to the sequence.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Its time in ns.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// The track below which it is.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Order of the tracks below it: 3 is explicit.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among the tracks below the same one.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// The order of the tracks below a track is that of their ranks.
pub const EXPLICIT: i32 = 3;
/// The packet does not depend on packets before it on the sequence.
pub const INCREMENTAL_STATE_CLEARED: u32 = 1;

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Its kind.
    #[prost(enumeration = "Kind", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Values that are shown with it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// None.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The last slice of the track that has not ended ends.
    SliceEnd = 2,
    /// It has no duration.
    Instant = 3,
}

/// A value with its name.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// The name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// The value.
    #[prost(oneof = "Value", tags = "3, 6, 7")]
    pub value: Option<Value>,
}

/// A value.
#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    /// A number.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// A text.
    #[prost(string, tag = "6")]
    Text(String),
    /// A number that is shown in hexadecimal.
    #[prost(uint64, tag = "7")]
    Hex(u64),
}
