// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers that are captured, and executed again without the card.

use std::time::Duration;

use arctic_eu::capture::{Capture, CaptureError, Content, EndReason, Page, Replay, ReplayStop, SurfaceName};
use arctic_eu::exec::{Host, Way};

use super::kernels::*;
use super::*;
use crate::compute::Captures;
use crate::gpu::{CaptureProgress, WalkerCapture, WalkerRequest};
use crate::trace::Filter;

/// Most bytes of a capture, if nothing else is tested.
const MOST_BYTES: usize = 1 << 20;

impl EngineBench {
    /// Requests the capture of a walker by its number.
    pub(super) fn request(&self, number: u64, most_bytes: usize) -> impl WalkerCapture + use<> {
        let request = WalkerRequest { filter: Filter::default(), number, most_bytes };
        Captures::request(&self.gt.captures, request).unwrap()
    }
}

/// The result of a request.
fn result(waiting: &mut impl WalkerCapture) -> CaptureProgress {
    waiting.wait(Duration::ZERO)
}

/// The capture of a request whose walker has ended.
pub(super) fn captured(waiting: &mut impl WalkerCapture) -> Capture {
    match result(waiting) {
        CaptureProgress::Done(bytes) => {
            let capture = Capture::parse(&bytes).unwrap();
            assert_eq!(capture.to_bytes(), bytes, "each capture has one file");
            capture
        }
        other => panic!("{other:?}"),
    }
}

/// Why a request has failed.
fn failure(waiting: &mut impl WalkerCapture) -> String {
    match result(waiting) {
        CaptureProgress::Failed(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// Executes a capture to its end.
pub(super) fn replay(capture: &Capture) -> Replay<'_> {
    let mut replay = Replay::new(capture, Host::detect(), 1 << 20);
    for _ in 0..10_000 {
        match replay.step(100, Way::Fast, &mut ()) {
            ReplayStop::Budget => {}
            ReplayStop::End(reason) => {
                assert_eq!(reason, capture.end.reason);
                return replay;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the replay does not end");
}

/// Checks that a capture is executed as the card has executed it.
pub(super) fn check(capture: &Capture, what: &str) {
    let replay = replay(capture);
    let comparison = replay.compare();
    assert_eq!((comparison.first, comparison.bytes), (None, 0), "{what}");
    assert!(comparison.written > 0, "{what}: something is written");
    assert_eq!((replay.groups(), replay.instructions()), (capture.end.groups, capture.end.instructions), "{what}");
}

#[test]
fn a_captured_walker_leaves_the_same_memory_without_the_card() {
    for class in CLASSES {
        for (what, walker, indirect) in VECTORS {
            // Steps of any length leave the same capture.
            let captures = [ComputeUnit::default(), ComputeUnit::with_costs(100, 700)].map(|unit| {
                let mut bench = EngineBench::new(class);
                bench.engine.unit = unit;
                bench.vector_add(indirect);
                let mut waiting = bench.request(1, MOST_BYTES);
                let context = bench.walker_context(0, walker);
                while bench.submit_part(context) == Outcome::More {}
                bench.check_vector_add(what);
                captured(&mut waiting)
            });
            let [capture, other] = &captures;
            assert_eq!(capture, other, "{what}");
            check(capture, what);
            assert_eq!(capture.launch.kernel_address() & !0xff, 0x8000_fffe_0000, "{what}");
            assert_eq!(capture.origin.number, 1);
            assert_eq!(capture.walker, walker);
            let names: Vec<SurfaceName> = capture.surfaces.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [0, 1, 2].map(SurfaceName::Binding), "{what}");
            // Code, indirect data or none, states and binding table in one page, three buffers.
            let written = capture.pages.values().filter(|page| matches!(page, Page::Memory { after: Some(_), .. }));
            assert_eq!(written.count(), 1, "{what}: the page of the sums");
            assert!(capture.pages.len() <= 6, "{what}: {:x?}", capture.pages.keys());
        }
    }
}

impl EngineBench {
    /// Loads the context if the engine has none, and steps the engine.
    fn submit_part(&mut self, context: Context) -> Outcome {
        if self.engine.loaded().is_none() {
            self.begin(context);
        }
        self.engine.step(&self.gt, 1000)
    }
}

#[test]
fn a_byte_that_the_card_has_left_otherwise_is_found() {
    let (_, walker, indirect) = VECTORS[0];
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.vector_add(indirect);
    let mut waiting = bench.request(1, MOST_BYTES);
    let context = bench.walker_context(0, walker);
    assert_eq!(bench.submit(context), Outcome::Complete);
    let mut capture = captured(&mut waiting);
    let (name, page) =
        capture.pages.iter_mut().find(|(_, page)| matches!(page, Page::Memory { after: Some(_), .. })).unwrap();
    let Page::Memory { after: Some(Content::Bytes(bytes)), .. } = page else { panic!("{name:?}") };
    bytes[0x123] ^= 0x40;
    let (address, card) = (name.address + 0x123, bytes[0x123]);
    let comparison = replay(&capture).compare();
    assert_eq!(comparison.bytes, 1);
    let first = comparison.first.unwrap();
    assert_eq!((first.address, first.card, first.replay, first.written), (address, card, card ^ 0x40, true));
}

#[test]
fn the_walker_with_the_number_is_captured() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut waiting = bench.request(2, MOST_BYTES);
    let another = WalkerRequest { filter: Filter::default(), number: 1, most_bytes: MOST_BYTES };
    assert!(Captures::request(&bench.gt.captures, another.clone()).is_err(), "one request at a time");
    let run = |bench: &mut EngineBench, number: u64| {
        let context = bench.kernel_context(number, STORE, 1, &target(DATA + number * 4));
        assert_eq!((bench.submit(context), bench.get(DATA + number * 4)), (Outcome::Complete, 7));
    };
    run(&mut bench, 0);
    assert_eq!(result(&mut waiting), CaptureProgress::Waiting { begun: 1, kernel: VA + KERNELS });
    run(&mut bench, 1);
    run(&mut bench, 2);
    let capture = captured(&mut waiting);
    assert_eq!(capture.launch.kernel_address(), VA + KERNELS + 0x1000);
    check(&capture, "the second walker");
    assert!(!bench.gt.captures.armed(), "later walkers are not counted");
    drop(waiting);
    // Walkers of other functions and engines do not count.
    for filter in [
        Filter { functions: vec![3], ..Filter::default() },
        Filter { engines: vec!["rcs0".into()], ..Filter::default() },
    ] {
        let mut waiting = Captures::request(&bench.gt.captures, WalkerRequest { filter, ..another.clone() }).unwrap();
        run(&mut bench, 3);
        assert_eq!(result(&mut waiting), CaptureProgress::Waiting { begun: 0, kernel: 0 });
    }
    assert!(!bench.gt.captures.armed(), "a dropped request has ended");
}

#[test]
fn a_capture_ends_at_the_fault_of_its_walker() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut waiting = bench.request(1, MOST_BYTES);
    // The second of two stores has no translation.
    let text =
        format!("{STORE}(W) mov (1|M0) r12.1<1>:ud 0x7fff:ud\n(W) send.ugm (1|M0) null r12 r10:1 0x0 0x08000584\n");
    let context = bench.kernel_context(0, &text, 3, &target(DATA));
    assert!(matches!(bench.submit(context), Outcome::Halted(Halt::Fault(_))));
    let capture = captured(&mut waiting);
    let EndReason::Fault(place) = capture.end.reason else { panic!("{:?}", capture.end) };
    assert_eq!((place.group, place.thread), ([0; 3], 0));
    assert!(place.address > VA + KERNELS, "{place:x?}");
    check(&capture, "up to the fault");
}

#[test]
fn a_capture_ends_at_a_barrier_that_never_completes() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut waiting = bench.request(1, MOST_BYTES);
    let context = bench.kernel_context(0, &format!("{STORE}{ALONE_AT_BARRIER}"), 1, &target(DATA));
    bench.begin(context);
    for _ in 0..20 {
        bench.engine.step(&bench.gt, 1000);
    }
    match result(&mut waiting) {
        CaptureProgress::Done(bytes) => {
            let capture = Capture::parse(&bytes).unwrap();
            assert!(matches!(capture.end.reason, EndReason::Barrier(_)), "{:?}", capture.end);
            check(&capture, "up to the barrier");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_walker_that_leaves_its_engine_is_not_captured() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.engine.unit = ComputeUnit::with_costs(7, 7);
    let [low, high] = target(DATA);
    let mut waiting = bench.request(1, MOST_BYTES);
    let context = bench.kernel_context(0, COUNT, 5, &[low, high, 10]);
    bench.preempt_each_step(context);
    assert_eq!(bench.get(DATA), 50, "its result is right");
    assert!(failure(&mut waiting).contains("left its engine"));
}

#[test]
fn a_walker_that_is_reset_is_not_captured() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut waiting = bench.request(1, MOST_BYTES);
    let context = bench.kernel_context(0, ENDLESS, 1, &[]);
    bench.begin(context);
    assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    assert_eq!(result(&mut waiting), CaptureProgress::Capturing { kernel: VA + KERNELS });
    bench.engine.reset(&bench.gt);
    assert!(failure(&mut waiting).contains("reset"));
}

#[test]
fn a_capture_has_a_limit_that_the_kernel_does_not_have() {
    let (what, walker, indirect) = VECTORS[0];
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.vector_add(indirect);
    let mut waiting = bench.request(1, 3 * 4096);
    let context = bench.walker_context(0, walker);
    assert_eq!(bench.submit(context), Outcome::Complete);
    bench.check_vector_add(what);
    assert!(failure(&mut waiting).contains("--limit"));
}

#[test]
fn a_request_that_ends_lets_its_walker_go_on() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    bench.engine.unit = ComputeUnit::with_costs(7, 7);
    let [low, high] = target(DATA);
    let waiting = bench.request(1, MOST_BYTES);
    let context = bench.kernel_context(0, COUNT, 2, &[low, high, 10]);
    bench.begin(context);
    for _ in 0..3 {
        assert_eq!(bench.engine.step(&bench.gt, 1000), Outcome::More);
    }
    drop(waiting);
    // Without a capture: it can leave the engine, and has all its groups.
    for _ in 0..20 {
        if bench.engine.step(&bench.gt, 1000) == Outcome::More {
            bench.leave();
            bench.begin(context);
        }
    }
    while bench.engine.step(&bench.gt, 1000) == Outcome::More {}
    assert_eq!(bench.get(DATA), 20);
    drop(bench.request(1, MOST_BYTES));
}

#[test]
fn files_that_are_no_captures_are_refused_in_a_sentence() {
    let mut bench = EngineBench::new(EngineClass::Compute);
    let mut waiting = bench.request(1, MOST_BYTES);
    let context = bench.kernel_context(0, STORE, 1, &target(DATA));
    assert_eq!(bench.submit(context), Outcome::Complete);
    let bytes = captured(&mut waiting).to_bytes();
    for len in 0..bytes.len() {
        assert!(Capture::parse(&bytes[..len]).is_err(), "{len}");
    }
    assert_eq!(Capture::parse(b"\x7fELF"), Err(CaptureError::Magic));
    let mut newer = bytes.clone();
    newer[16] = 9;
    assert_eq!(Capture::parse(&newer), Err(CaptureError::Version(9)));
    let mut more = bytes;
    more.extend(b"more\x03\0\0\0\0\0\0\0abc");
    assert!(Capture::parse(&more).is_ok(), "sections of later versions are passed over");
}
