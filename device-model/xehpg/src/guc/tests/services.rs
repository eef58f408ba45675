// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Frequency management, engine activity, and engine locks.

use super::*;
use arctic_fidelity::proves;

/// Contract B.11, K.6: SLPC runs immediately; limits are in 16.67 MHz; requested limits are clamped to RPn and RP0.
#[test]
fn slpc() {
    let mut host = Host::up();
    let task = |host: &Host| host.peek(SCRATCH + 0x84);
    host.fast(0x3003, &[2, SCRATCH as u32, 0]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.peek(SCRATCH + 4), 3);
    assert_eq!(host.tracked(0x3003, &[0x502, SCRATCH as u32, 0]), 0xf000_0000);
    assert_eq!(task(&host), 123 | 18 << 8 | 123 << 16 | 18 << 24);
    assert_eq!(host.tracked(0x3003, &[0x602, 7, 1000]), 0xf000_0000);
    for minimum in [9000, u32::MAX / 3 + 1, u32::MAX] {
        assert_eq!(host.tracked(0x3003, &[0x602, 6, minimum]), 0xf000_0000);
        host.tracked(0x3003, &[0x502, SCRATCH as u32, 0]);
        assert_eq!(
            task(&host),
            123 | 123 << 8 | 123 << 16 | 123 << 24,
            "a minimum above the maximum is a fixed request"
        );
    }
    assert_eq!(host.tracked(0x3003, &[0x701, 6]), 0xf000_0000);
    assert_eq!(host.gt.registers.value(0xa008) >> 23, 18);
    assert_eq!(host.tracked(0x3004, &[1]), 0xf000_0000);
    assert_eq!(host.gt.read(0x13_8060), 3, "in C6");
    assert_eq!(host.gt.read(0x13_81b4), 0, "the clock is off");
    host.start(1, EngineClass::Copy, 1, 2);
    // As the command streamer does after reading the context image.
    host.gt.start_context_clock(engine_named("bcs0"));
    assert_eq!(host.gt.read(0x13_8060), 0, "awake");
    assert_eq!(host.gt.read(0x13_81b4) >> 11 & 0x1ff, 60);
    assert_eq!(host.gt.registers.value(0xa008) >> 23, 60);
    assert_eq!(host.tracked(0x3003, &[0x602, 99, 1]), 0xe000_0060);
    assert_eq!(host.tracked(0x3003, &[0x603, 6, 1]), 0xe000_0102);
}

/// Contract B.11: a GuC in reset does not let the GT sleep, even if that was enabled before.
#[test]
fn a_reset_guc_keeps_the_gt_awake() {
    let mut host = Host::up();
    assert_eq!(host.tracked(0x3004, &[1]), 0xf000_0000);
    assert_eq!(host.gt.read(0x13_8060), 3, "in C6");
    host.guc.reset(&host.gt);
    assert_eq!(host.gt.read(0x13_8060), 0, "awake");
}

/// Contract K.6: busy ticks accumulate, change counters are incremented, an idle engine has stamp 0.
#[test]
fn engine_activity() {
    let mut host = Host::up();
    let (metadata, records) = (SCRATCH, SCRATCH + 0x1000);
    assert_eq!(host.tracked(0x550c, &[metadata as u32, 0, records as u32, 0]), 0xf000_0000);
    assert_eq!(host.peek(metadata), 19_200_000);
    let bcs = records + 3 * 32 * 16;
    let first = host.peek(bcs);
    assert_eq!((first >> 16, host.peek(bcs + 4)), (0x8000, 0));
    let changes = host.peek(metadata + 8);
    host.start(1, EngineClass::Copy, 1, 2);
    assert_ne!(host.peek(metadata + 8), changes);
    assert_eq!(u64::from(host.peek(bcs + 4)), host.gt.timestamp());
    assert_ne!(host.peek(bcs), first);
    host.clock.advance(1_000_000);
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!((host.peek(bcs + 4), host.peek(bcs + 8)), (0, 19_200));
}

/// Contract G.4: i915's usage records are updated immediately. While a context runs, the record contains its id and the
/// time at which it was loaded; afterwards, it contains no context and the total (i915: intel_guc_submission.c
/// guc_update_engine_gt_clks, guc_engine_usage_record).
#[test]
fn engine_usage() {
    let mut host = Host::up();
    assert_eq!(host.tracked(0x550a, &[SCRATCH as u32, 0]), 0xf000_0000);
    // 32 instances of 32 bytes per class; the blitter is the GuC's class 3.
    let bcs = SCRATCH + 3 * 32 * 32;
    let record = |host: &Host| [0, 4, 12].map(|at| host.peek(bcs + at));
    assert_eq!(record(&host), [u32::MAX, 0, 0]);
    host.clock.advance(1_000_000);
    host.start(7, EngineClass::Copy, 1, 2);
    assert_eq!(record(&host), [7, host.gt.timestamp() as u32, 0]);
    host.clock.advance(2_000_000);
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(record(&host), [u32::MAX, 0, 38_400]);
    host.start(8, EngineClass::Copy, 1, 2);
    host.clock.advance(1_000_000);
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(record(&host), [u32::MAX, 0, 57_600], "the total of both");
}

/// A thread that waits for an engine gets it at the next step boundary. A worker that steps the engine repeatedly
/// yields to it.
#[test]
fn waiting_thread_gets_a_busy_engine_at_the_step_boundary() {
    let host = Host::new();
    let (engines, bcs) = (&host.engines, engine_named("bcs0"));
    let (done, go) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let step = engines.try_lock(bcs).unwrap();
        let waiter = scope.spawn(move || {
            let _engine = engines.lock(bcs);
            go.recv().unwrap();
        });
        while !engines.wanted(bcs) {
            std::thread::yield_now();
        }
        drop(step);
        let pushed_in = engines.try_lock(bcs).is_some();
        done.send(()).unwrap();
        waiter.join().unwrap();
        assert!(!pushed_in, "the waiter is next");
        assert!(engines.try_lock(bcs).is_some() && !engines.wanted(bcs));
    });
}

#[test]
fn guc_state_is_kept_over_rc6() {
    proves!(V13_181, "the GuC runs on after RC6, without a new load: firmware, contexts and CT buffers are kept");
    let mut host = Host::up();
    assert_eq!(host.tracked(0x3004, &[1]), 0xf000_0000);
    host.register_on(7, EngineClass::Copy, 1);
    host.step();
    let firmware = host.guc.firmware().unwrap();
    assert_eq!(host.gt.read(0x13_8060), 3, "in C6");
    host.pass(10_000_000);
    host.gt.write(0xa188, 0x0001_0001);
    assert_eq!(host.gt.read(0x13_8060), 0, "awake");
    assert_eq!((host.gt.read(0xc000), host.guc.firmware().unwrap()), (0x8001_f0ec, firmware));
    // A context that was registered before can be enabled, and its work is submitted.
    host.policies(7, 2, 1000, 640_000);
    host.set_tail(7, 64);
    host.fast(0x1001, &[7, 1]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 7, 1]]);
    assert_eq!(host.runs("bcs0"), Some(7));
    host.gt.write(0xa188, 0x0001_0000);
    assert_eq!(host.mail(&[0x4100, 0, 0, 0])[0] >> 28, 0xf, "and the mailbox answers");
}
