// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters and clocks.

use super::*;

#[test]
fn rc6_stops_clocks_and_timer() {
    proves!(
        [V13_215, V13_228],
        "in RC6 GPU_TICKS and counters stand, the timer makes no report, and they go on afterwards"
    );
    let stream = Stream::new();
    stream.gt.write(0xa188, 0x0001_0001);
    stream.gt.permit_rc6(true);
    stream.gt.write(DEBUG, 1 << 18);
    stream.enable(Some(5));
    stream.at(100);
    stream.gt.write(0xa188, 0x0001_0000);
    let asleep = stream.gt.read(0xda90);
    stream.at(50_000);
    assert_eq!(stream.gt.read(0xda90), asleep);
    stream.gt.write(0xa188, 0x0001_0001);
    stream.at(50_100);
    assert!(stream.gt.read(0xda90) > asleep);
    stream.settle();
    assert_eq!(stream.reasons(0), [reason::TIMER, reason::TIMER, reason::SLEEP, reason::TIMER, reason::TIMER]);
    let times: Vec<_> = stream.reports(0).iter().map(|report| report[1]).collect();
    assert_eq!(times, [32, 96, 100, 50_016, 50_080]);
    // Also while OAG is off.
    stream.write(CONTROL, 0);
    stream.gt.write(0xa188, 0x0001_0000);
    let asleep = stream.gt.read(0xda90);
    stream.at(90_000);
    assert_eq!(stream.gt.read(0xda90), asleep);
    stream.gt.write(0xa188, 0x0001_0001);
    stream.at(90_000 + 288);
    assert_eq!(stream.gt.read(0xda90) - asleep, stream.gt.actual_ratio() * 125);
}

/// A0 has the clocks in which any engine runs a context; it needs the enable and the resume bit.
#[test]
fn a0_counts_the_time_of_the_engines() {
    proves!(
        [V13_209, V13_214, V13_236, V13_243],
        "A0 advances while an engine runs a context and the counters are resumed and enabled"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    let [render, copy] = [EngineClass::Render, EngineClass::Copy].map(|class| XE_HPG.engines.find(class, 0).unwrap());
    let clocks = |ticks: u32| ticks / 288 * gt.actual_ratio() * 125;
    stream.enable(None);
    stream.at(2880);
    assert_eq!(gt.read(0xd980), 0, "idle");
    gt.start_context_clock(render);
    stream.at(2 * 2880);
    gt.start_context_clock(copy);
    stream.at(3 * 2880);
    gt.stop_context_clock(render, gt.timestamp());
    stream.at(4 * 2880);
    gt.stop_context_clock(copy, gt.timestamp());
    stream.at(10 * 2880);
    assert_eq!((gt.read(0xd980), gt.read(0xda90)), (clocks(3 * 2880), clocks(10 * 2880)));
    gt.start_context_clock(render);
    gt.write(GLOBAL_CONTROL, 0);
    stream.at(11 * 2880);
    assert_eq!(gt.read(0xd980), clocks(3 * 2880), "stopped");
    gt.write(GLOBAL_CONTROL, 1);
    stream.write(CONTROL, 0);
    stream.at(12 * 2880);
    assert_eq!(gt.read(0xd980), clocks(3 * 2880), "disabled");
    // A driver may load counters.
    gt.write(0xd984, 0x7f);
    gt.write(0xdb28, 5);
    assert_eq!((gt.read(0xd984), gt.read(0xd980), gt.read(0xdb28)), (0x7f, clocks(3 * 2880), 5));
}

/// The set TestOa, as drivers write it.
#[test]
fn the_self_test_counts_its_fractions() {
    proves!(
        V13_255,
        "B counters have the clocks in which a comparison of the considered signals with a value holds; all signals are 0 while \
        their network is off or the generator is not connected"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    let registers = [
        0x4, 0xffff, 0x3, 0xffff, 0x7, 0xffff, 0x10_0002, 0xfff7, 0x10_0002, 0xffcf, 0x10_0082, 0xffef, 0x10_00c2,
        0xffe7, 0x10_0001, 0xffe7,
    ];
    for (at, value) in (0xd940..).step_by(4).zip(registers) {
        gt.write(at, value);
    }
    stream.enable(None);
    let tick = std::cell::Cell::new(0);
    let deltas = || {
        let b = || [0, 1, 2, 3, 4, 5, 6, 7].map(|n| gt.read(0xda94 + 4 * n));
        let (before, ticks) = (b(), gt.read(0xda90));
        tick.set(tick.get() + 2880);
        stream.at(tick.get());
        let ticks = gt.read(0xda90) - ticks;
        let after = b();
        [0, 1, 2, 3, 4, 5, 6, 7].map(|n| f64::from(after[n] - before[n]) / f64::from(ticks))
    };
    let constant = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    assert_eq!(deltas(), constant);
    gt.write(0x9888, 0x1008_0ff3);
    assert_eq!(deltas(), constant, "the network is off");
    gt.write(0xd04, 1 << 9);
    let fractions = [0.0, 1.0, 1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0, 2.0 / 3.0];
    assert!(deltas().iter().zip(fractions).all(|(seen, exact)| (seen - exact).abs() < 1e-4));
    gt.write(0x9888, 0x1007_0000);
    assert!((deltas()[3] - 0.5).abs() < 1e-4, "another node");
    gt.write(0x9888, 0x1008_0000);
    assert_eq!(deltas(), constant);
}

#[test]
fn device_memory_is_counted_in_the_unit_of_the_super_queue() {
    proves!(
        V13_246,
        "A36 and A37 have reads and writes of device memory in units of 128 bytes, or of four transactions of 64 bytes"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    gt.count_memory_traffic([4096, 4096]);
    stream.enable(None);
    gt.count_memory_traffic([4096, 8192]);
    assert_eq!([0xdb20, 0xdb28].map(|register| gt.read(register)), [16, 32], "since the enable");
    gt.write(0x8718, 1 << 30 | 1 << 29);
    gt.count_memory_traffic([4096, 8192]);
    assert_eq!([0xdb20, 0xdb28].map(|register| gt.read(register)), [16 + 32, 32 + 64]);
    for _ in 0..5 {
        gt.count_memory_traffic([100, 28]);
    }
    assert_eq!([0xdb20, 0xdb28].map(|register| gt.read(register)), [16 + 32 + 3, 32 + 64 + 1], "parts of units add up");
}

#[test]
fn the_clock_is_twice_that_of_the_engines() {
    proves!(
        V13_230,
        "timestamps of reports count at 38.4 MHz, twice the rate of the engines' timestamps, from the same zero"
    );
    let stream = Stream::new();
    stream.clock.advance(1_000_000_000);
    assert_eq!((stream.gt.oa_time(), stream.gt.timestamp()), (38_400_000, 19_200_000));
    assert_eq!((stream.gt.read(0xa500), stream.gt.read(0xc3e8)), (38_400_000, 19_200_000));
    for _ in 0..100 {
        stream.clock.advance(37);
        assert_eq!(stream.gt.oa_time() / 2, stream.gt.timestamp());
    }
}
