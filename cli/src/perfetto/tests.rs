// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of timelines by a reader of its own (`arctic_timeline`).

use arctic_device_model::trace::{Event, EventKind};
use arctic_timeline::read;
use proptest::prelude::*;

use super::guest::GuestTime;
use super::packets::Packets;
use super::{Counts, GuestClock, Timeline, slice_name};
use crate::decode::engine::FLEX;

/// A slice or an instant of a track: begin, end, names of track and event.
type Shown = (u64, u64, String, String);

/// What a page shows of a trace.
fn shown(trace: &[u8]) -> Vec<Shown> {
    let trace = read(trace).unwrap();
    let shown = |track, begin, end, name: &String| (begin, end, trace.path(track), name.clone());
    let slices = trace.slices.iter().map(|slice| shown(slice.track, slice.begin, slice.end, &slice.name));
    let instants = trace.instants.iter().map(|instant| shown(instant.track, instant.at, instant.at, &instant.name));
    let mut all: Vec<_> = slices.chain(instants).collect();
    all.sort();
    all
}

fn event(ns: u64, function: u8, engine: Option<&'static str>, what: EventKind) -> Event {
    let mut line = serde_json::to_value(what).unwrap();
    let members = line.as_object_mut().unwrap();
    members.insert("ns".into(), ns.into());
    members.insert("function".into(), function.into());
    engine.map(|engine| members.insert("engine".into(), engine.into()));
    serde_json::from_value(line).unwrap()
}

fn timeline_of(events: &[Event], guest: Option<GuestClock>) -> (Vec<u8>, Counts) {
    let mut bytes = Vec::new();
    let mut timeline = Timeline::new(&mut bytes, u64::MAX, "small", FLEX, guest).unwrap();
    events.iter().for_each(|event| timeline.add(event).unwrap());
    let counts = timeline.finish().unwrap();
    (bytes, counts)
}

fn timeline(events: &[Event]) -> (Vec<Shown>, Counts) {
    let (bytes, counts) = timeline_of(events, None);
    (shown(&bytes), counts)
}

/// Slices and instants of the tracks with this end of the name.
fn on_track(all: &[Shown], track: &str) -> Vec<(u64, u64, String)> {
    let of_track = all.iter().filter(|(_, _, name, _)| name.ends_with(track));
    of_track.map(|(begin, end, _, name)| (*begin, *end, name.clone())).collect()
}

fn slices<const N: usize>(all: [(u64, u64, &str); N]) -> Vec<(u64, u64, String)> {
    all.into_iter().map(|(begin, end, name)| (begin, end, name.to_owned())).collect()
}

fn load(context: u32) -> EventKind {
    EventKind::Load { context, descriptor: 0x1000 }
}

fn stop() -> EventKind {
    EventKind::Stop { outcome: "complete".into(), head: 0x20 }
}

fn command(level: u8, header: u32) -> EventKind {
    EventKind::Command { address: 0x40, ppgtt: level != 0, level, length: 1, dwords: vec![header] }
}

const NOOP: u32 = 0;
const WALKER: u32 = 0x7208_0025;

#[test]
fn contexts_batches_kernels_and_waits_are_slices() {
    let ended = EventKind::Walker { kernel: 0x80, groups: 4, instructions: 99, faults: 0, outside: 0, at: None };
    let (all, counts) = timeline(&[
        event(100, 1, Some("ccs0"), load(7)),
        event(110, 1, Some("ccs0"), command(0, NOOP)),
        event(115, 1, Some("ccs0"), command(1, NOOP)),
        event(120, 1, Some("ccs0"), command(1, WALKER)),
        event(150, 1, Some("ccs0"), ended),
        event(155, 1, Some("ccs0"), command(1, NOOP)),
        event(156, 1, Some("ccs0"), EventKind::Wait),
        event(160, 0, Some("bcs0"), load(2)),
        event(162, 1, Some("ccs0"), command(0, NOOP)),
        event(165, 1, Some("ccs0"), EventKind::Wait),
        event(170, 1, Some("ccs0"), stop()),
        event(180, 0, Some("bcs0"), EventKind::Reset),
    ]);
    assert_eq!(counts, Counts { events: 12, missing: 0 });
    let ccs0 =
        [(100, 170, "vf1 (A)"), (115, 162, "batch"), (120, 150, "kernel"), (156, 162, "waits"), (165, 170, "waits")];
    assert_eq!(on_track(&all, "small: engines/ccs0"), slices(ccs0));
    assert_eq!(on_track(&all, "small: functions/vf1/ccs0"), slices([(100, 170, "vf1 (A)")]));
    assert_eq!(on_track(&all, "small: engines/bcs0"), slices([(160, 180, "pf"), (180, 180, "reset")]));
    assert_eq!(on_track(&all, "small: functions/pf/bcs0"), slices([(160, 180, "pf")]));
}

#[test]
fn messages_and_interrupts_are_instants_of_functions() {
    let guc = |header| EventKind::Guc { mailbox: false, fence: 1, dwords: vec![header] };
    let (all, _) = timeline(&[
        event(130, 2, None, guc(0x1000)),
        event(135, 2, None, guc(0xf000_0000)),
        event(140, 3, None, EventKind::Msi { vector: 1 }),
        event(150, 3, None, EventKind::Doorbell { page: 0x40_1000, doorbell: Some(2), notifies: true }),
        event(160, 3, None, EventKind::TlbInvalidation { by: "a full request".into(), all: false }),
        event(170, 3, Some("bcs0"), EventKind::TlbInvalidation { by: "a command".into(), all: false }),
    ]);
    assert_eq!(on_track(&all, "functions/vf2"), slices([(130, 130, "GuC SCHED_CONTEXT"), (135, 135, "GuC success")]));
    let vf3 = [(140, 140, "MSI"), (150, 150, "doorbell"), (160, 160, "TLB invalidation")];
    assert_eq!(on_track(&all, "functions/vf3"), slices(vf3));
    assert_eq!(on_track(&all, "engines/bcs0"), slices([(170, 170, "TLB invalidation")]));
}

/// Events that are lost, ends that are missing and ends without a begin leave a valid timeline.
#[test]
fn gaps_leave_a_valid_timeline() {
    let (all, counts) = timeline(&[
        event(1, 1, Some("rcs0"), stop()),
        event(2, 1, Some("rcs0"), load(1)),
        event(3, 2, Some("rcs0"), load(2)),
        event(4, 2, None, EventKind::Lost { events: 9 }),
        event(5, 2, Some("rcs0"), stop()),
        event(6, 2, Some("rcs0"), load(3)),
        event(7, 2, Some("rcs0"), command(2, NOOP)),
    ]);
    assert_eq!(counts, Counts { events: 7, missing: 9 });
    let rcs0 = [(2, 3, "vf1 (A)"), (3, 4, "vf2 (B)"), (6, 7, "vf2 (B)"), (7, 7, "batch")];
    assert_eq!(on_track(&all, "engines/rcs0"), slices(rcs0));
    assert_eq!(on_track(&all, "small: engines"), slices([(4, 4, "events were lost"), (7, 7, "end of the trace")]));
}

/// Threads may report events out of order.
#[test]
fn times_that_decrease_leave_a_valid_timeline() {
    let (all, _) = timeline(&[
        event(9, 1, Some("rcs0"), load(1)),
        event(3, 1, Some("rcs0"), command(1, NOOP)),
        event(8, 1, Some("rcs0"), EventKind::Wait),
        event(2, 1, Some("rcs0"), stop()),
        event(1, 1, Some("rcs0"), load(1)),
    ]);
    assert_eq!(on_track(&all, "engines/rcs0").len(), 4);
}

#[test]
fn a_timeline_has_a_largest_size_and_counts_what_is_beyond() {
    let mut bytes = Vec::new();
    let mut timeline = Timeline::new(&mut bytes, 1000, "small", FLEX, None).unwrap();
    (0..100).for_each(|ns| timeline.add(&event(ns, 1, Some("rcs0"), load(1))).unwrap());
    let Counts { events, missing } = timeline.finish().unwrap();
    let shown = on_track(&shown(&bytes), "engines/rcs0");
    assert_eq!((events, missing), (100, 100 - shown.len() as u64));
    assert!(shown.len() > 3 && bytes.len() < 1600, "{} slices, {} bytes", shown.len(), bytes.len());
    let (begin, end, _) = shown.last().unwrap();
    assert_eq!(end - begin, 1, "ends at the first event that is missing");
}

#[test]
fn engines_beyond_the_limit_are_missing() {
    let events: Vec<_> = (0..100).map(|n| event(n, 0, Some(format!("e{n}").leak()), EventKind::Wait)).collect();
    let (all, counts) = timeline(&events);
    assert_eq!(counts, Counts { events: 100, missing: 36 });
    assert_eq!(all.len(), 64 + 1);
}

/// The guest's clock was 0 at 5000 ns of the card's, and its axis has no time before.
#[test]
fn the_axis_is_that_of_the_guest() {
    let line = r#"{"monotonic_ns":5000,"engine_cycles":192,"width":36,"hz":19200000}"#;
    let guest: GuestClock = serde_json::from_str(line).unwrap();
    let msi = |ns| event(ns, 0, None, EventKind::Msi { vector: 0 });
    let (bytes, _) = timeline_of(&[msi(2000), msi(5000), msi(12_000)], Some(guest));
    let at: Vec<_> = on_track(&shown(&bytes), "functions/pf").into_iter().map(|(begin, ..)| begin).collect();
    assert_eq!(at, [0, 0, 7000]);
}

/// Any event of a capture, with numbers and texts of any kind.
fn any_event() -> impl Strategy<Value = serde_json::Value> {
    let number = || prop_oneof![Just(0), Just(1), 2..300_u64, Just(u64::MAX), any::<u64>()];
    let engine = prop::sample::select(vec![None, Some("rcs0"), Some("ccs0"), Some("\u{e9}\n"), Some("")]);
    let kinds = [
        r#"{"event":"load","context":1,"descriptor":N}"#,
        r#"{"event":"restore","ring":1,"head":1,"tail":1}"#,
        r#"{"event":"lite_restore","tail":8}"#,
        r#"{"event":"command","address":N,"ppgtt":true,"level":1,"length":1,"dwords":[1912078373]}"#,
        r#"{"event":"command","address":N,"ppgtt":true,"level":255,"length":4294967295,"dwords":[]}"#,
        r#"{"event":"command","address":N,"ppgtt":false,"level":0,"length":1,"dwords":[0]}"#,
        r#"{"event":"skipped","command":"\n","origin":"user","stopped":true}"#,
        r#"{"event":"walker","kernel":N,"groups":N,"instructions":N,"faults":N,"outside":N,"at":"x"}"#,
        r#"{"event":"wait"}"#,
        r#"{"event":"stop","outcome":"","head":1}"#,
        r#"{"event":"reset"}"#,
        r#"{"event":"guc","mailbox":false,"fence":1,"dwords":[]}"#,
        r#"{"event":"guc","mailbox":true,"fence":65535,"dwords":[4294967295,1,2]}"#,
        r#"{"event":"doorbell","page":N,"notifies":false}"#,
        r#"{"event":"tlb_invalidation","by":"","all":true}"#,
        r#"{"event":"lost","events":N}"#,
    ];
    let parts = (prop::sample::select(kinds.to_vec()), number(), number(), any::<u8>(), engine);
    parts.prop_map(|(kind, value, ns, function, engine)| {
        let mut event: serde_json::Value = serde_json::from_str(&kind.replace('N', &value.to_string())).unwrap();
        event["ns"] = ns.into();
        event["function"] = function.into();
        engine.into_iter().for_each(|engine| event["engine"] = engine.into());
        event
    })
}

proptest! {
    /// A capture may have any events in any order; a page can read what is made of them.
    #[test]
    fn any_events_leave_a_valid_timeline(
        events in prop::collection::vec(any_event(), 0..60),
        guest in prop::option::of((any::<u64>(), any::<u64>(), 1..=64_u32, 1..=1_000_000_000_u64)),
        most in 0..5000_u64,
    ) {
        let guest = guest.map(|(monotonic, cycles, width, hz)| {
            let (monotonic, cycles) = (monotonic >> 1, cycles >> (64 - width));
            serde_json::json!({"monotonic_ns": monotonic, "engine_cycles": cycles, "width": width, "hz": hz})
        });
        let guest = guest.map(|clock| GuestClock::parse(&clock.to_string()).unwrap());
        let mut bytes = Vec::new();
        let mut timeline = Timeline::new(&mut bytes, most, "small", FLEX, guest).unwrap();
        for event in &events {
            timeline.add(&serde_json::from_value(event.clone()).unwrap()).unwrap();
        }
        prop_assert_eq!(timeline.finish().unwrap().events, events.len() as u64);
        prop_assert!(read(&bytes).is_ok(), "{:?}", read(&bytes));
    }
}

/// The page's colour depends on the name without digits, and a space before them.
#[test]
fn functions_have_names_that_differ_without_digits() {
    let without_digits = |name: String| name.replace(|c: char| c.is_ascii_digit(), "");
    let names: std::collections::BTreeSet<_> = (0..=63).map(|number| without_digits(slice_name(number))).collect();
    assert_eq!(names.len(), 64);
    assert_eq!([0, 1, 26, 27, 63].map(slice_name), ["pf", "vf1 (A)", "vf26 (Z)", "vf27 (AA)", "vf63 (BK)"]);
}

/// After any number of writes a file has complete packets.
#[test]
fn a_file_has_complete_packets_at_any_time() {
    struct Checked(Vec<u8>);
    impl std::io::Write for Checked {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.extend_from_slice(bytes);
            read(&self.0).unwrap();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut checked = Checked(Vec::new());
    let mut packets = Packets::new(&mut checked, u64::MAX);
    packets.track(1, None, "track", 0).unwrap();
    packets.clocks(GuestTime::default()).unwrap();
    (0..5000).for_each(|ns| packets.instant(ns, 1, "instant".into(), Vec::new()).unwrap());
    drop(packets);
    assert!(checked.0.len() > 64 << 10);
}
