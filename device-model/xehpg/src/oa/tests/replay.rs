// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports that are made late have the values of their instants.

use super::with_activity;
use crate::oa::counters::{Activity, Setting};
use crate::oa::facts::XE_HPG_OBSERVATION as FACTS;
use crate::oa::format::reason;
use crate::oa::queue::Trigger;
use crate::oa::state::{Due, Flags, Observation, State};
use crate::oa::timer;
use crate::registers::observation::OaDebug;

/// A frequency of 2050 MHz.
const RATIO: u32 = 123;
const BUSY: Activity = Activity { busy: 1, awake: true, ratio: RATIO };
const MOST: u64 = 1 << 20;

/// OAG_OAGLBCTXCTRL: counters advance, timer with an exponent.
fn timer(exponent: u32) -> Setting {
    Setting::Control(3 | exponent << 2)
}

/// The set TestOa.
fn test_oa(state: &mut State, time: u64) {
    let registers = [
        0x4, 0xffff, 0x3, 0xffff, 0x7, 0xffff, 0x10_0002, 0xfff7, 0x10_0002, 0xffcf, 0x10_0082, 0xffef, 0x10_00c2,
        0xffe7, 0x10_0001, 0xffe7,
    ];
    for (n, value) in (0..).zip(registers) {
        state.set(time, Setting::Block(n, value));
    }
    state.set(time, Setting::Pattern(true));
    state.set(time, Setting::Network(true));
}

fn with_state<T>(test: impl FnOnce(&mut State) -> T) -> T {
    with_activity(&FACTS, BUSY, test)
}

/// A report with the counters at its instant.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    at: u64,
    reason: u8,
    context: u32,
    ticks: u64,
    busy: u64,
    b: [u64; 8],
}

fn seen(state: &State, due: Due) -> Seen {
    let values = state.reported();
    let Due { at, trigger: Trigger { reason, context, .. }, ticks, .. } = due;
    Seen { at, reason, context, ticks, busy: values.a(0, 1).next().unwrap(), b: values.b }
}

fn take(state: &mut State, until: u64) -> Vec<Seen> {
    let mut all = Vec::new();
    while let Some(due) = state.next_report(until, OaDebug::new(), MOST) {
        all.push(seen(state, due));
    }
    all
}

/// A sequence of numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn apply(state: &mut State, time: u64, random: &mut Random) {
    match random.below(6) {
        0 => state.note(time, Activity { busy: random.below(3) as u32, ..BUSY }),
        1 => state.note(time, Activity { ratio: 100 + random.below(24) as u32, ..BUSY }),
        2 => state.note(time, Activity { awake: random.below(4) != 0, busy: 0, ratio: RATIO }),
        3 => state.set(time, timer(5 + random.below(4) as u32)),
        4 => state.set(time, Setting::Network(random.below(2) != 0)),
        _ => {
            let context = random.below(1000) as u32;
            state.trigger(time, Trigger { reason: reason::MMIO, source: 1, context, valid: false });
        }
    }
}

/// Reports taken after each event, and reports taken after all of them, are equal: a late worker changes nothing.
#[test]
fn late_reports_are_those_of_their_instants() {
    for seed in 0..200 {
        let run = |late: bool| {
            with_state(|state| {
                let mut random = Random(seed);
                test_oa(state, 0);
                state.set(0, timer(5));
                state.enable(0);
                let (mut time, mut all) = (0, Vec::new());
                for _ in 0..60 {
                    time += random.below(200);
                    apply(state, time, &mut random);
                    if !late {
                        all.extend(take(state, time));
                    }
                }
                all.extend(take(state, time + 1000));
                all
            })
        };
        let (now, late) = (run(false), run(true));
        assert!(now.len() > 10);
        assert_eq!(now, late, "seed {seed}");
        assert!(now.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].ticks <= pair[1].ticks));
    }
}

/// Counters of TestOa over random distances of reports: within one clock of the fraction, and exact where it is 0 or 1.
#[test]
fn test_oa_is_exact_between_any_two_reports() {
    with_state(|state| {
        test_oa(state, 0);
        state.set(0, timer(31));
        state.enable(0);
        let mut random = Random(7);
        let (mut time, mut before) = (0, None::<Seen>);
        for _ in 0..5000 {
            time += random.below(400);
            state.trigger(time, Trigger { reason: reason::MMIO, source: 1, context: 0, valid: false });
            let report = take(state, time).pop().unwrap();
            if let Some(before) = before {
                let ticks = report.ticks - before.ticks;
                let parts = [(0, 1), (1, 1), (1, 1), (1, 2), (1, 3), (1, 3), (1, 6), (2, 3)];
                for (n, (part, of)) in parts.into_iter().enumerate() {
                    let delta = report.b[n] - before.b[n];
                    assert!((delta * of).abs_diff(ticks * part) <= of, "B{n}: {delta} of {ticks}");
                    assert!(of != 1 || delta == ticks * part, "B{n}");
                }
                assert_eq!(report.busy - before.busy, ticks);
            }
            before = Some(report);
        }
    });
}

/// GPU_TICKS count the render clock: 2050 MHz beside a timestamp of 38.4 MHz, without a rounding error that grows.
#[test]
fn clocks_follow_the_frequency() {
    with_state(|state| {
        for second in 1..=10_u64 {
            state.settle(second * 38_400_000, 0);
            assert_eq!(state.now.ticks, second * 2_050_000_000);
        }
        state.note(384_000_000, Activity { ratio: 60, ..BUSY });
        state.settle(384_000_000 + 38_400_000, 0);
        assert_eq!(state.now.ticks, 20_500_000_000 + 1_000_000_000);
    });
}

/// While nobody needs the card's activity, clocks are counted from the time that the GT has slept.
#[test]
fn clocks_are_counted_without_observers() {
    let observation = Observation::new(&FACTS);
    let mut state = observation.state();
    state.set_idle_ratio(RATIO);
    state.settle(38_400_000, 19_200_000);
    assert_eq!(state.now.ticks, 1_025_000_000, "half a second asleep");
    state.begin(BUSY);
    state.settle(2 * 38_400_000, 0);
    assert_eq!((state.now.ticks, state.now.common.busy), (3_075_000_000, 2_050_000_000));
    state.end(38_400_000);
    state.settle(3 * 38_400_000, 2 * 38_400_000);
    assert_eq!((state.now.ticks, state.now.common.busy), (5_125_000_000, 2_050_000_000));
}

/// A backlog is limited to what the buffer holds; instants of an exponent below 4 are thinned. Both are shown as lost.
#[test]
fn reports_that_are_not_made_are_shown() {
    with_state(|state| {
        state.set(0, timer(5));
        state.enable(0);
        let mut reports = Vec::new();
        while let Some(due) = state.next_report(64 * 1000 + 32, OaDebug::new(), 100) {
            reports.push(due.at);
        }
        assert_eq!(
            (reports.len(), reports.first(), reports.last()),
            (101, Some(&(32 + 64 * 900)), Some(&(32 + 64 * 1000)))
        );
        assert_eq!(state.take_flags(), Flags { lost: 900, overflow: true, triggers: false });
        assert_eq!(state.take_flags(), Flags::default());
        state.set(64_100, timer(0));
        let times: Vec<_> = take(state, 64_200).iter().map(|report| report.at).collect();
        assert_eq!(times, [64_096, 64_129, 64_161, 64_193]);
        assert_eq!(state.take_flags().lost, 3);
    });
}

/// More triggers than the queue has: they are dropped and shown, and the others are made.
#[test]
fn triggers_beyond_the_queue_are_dropped() {
    with_state(|state| {
        state.enable(0);
        let trigger = |context| Trigger { reason: reason::MMIO, source: 1, context, valid: false };
        (0..70).for_each(|n| state.trigger(n, trigger(n as u32)));
        assert_eq!(take(state, 100).len(), 64);
        assert_eq!(state.take_flags(), Flags { lost: 6, overflow: false, triggers: true });
        state.trigger(100, trigger(0));
        assert_eq!((take(state, 100).len(), state.take_flags()), (1, Flags::default()));
    });
}

/// More changes than the queue has: nothing is lost but when the counters changed.
#[test]
fn counters_are_right_after_too_many_changes() {
    with_state(|state| {
        state.set(0, Setting::Control(1));
        state.enable(0);
        for n in 0..2000 {
            state.note(n * 10, Activity { busy: (n % 2) as u32, ..BUSY });
        }
        state.settle(30_000, 0);
        assert!(take(state, 30_000).is_empty());
        state.trigger(30_000, Trigger { reason: reason::MMIO, source: 1, context: 0, valid: false });
        let report = take(state, 30_000).pop().unwrap();
        assert_eq!((report.ticks, report.busy), (state.now.ticks, state.now.values.a(0, 1).next().unwrap()));
    });
}

/// A disable is complete when the reports before it were taken; nothing later is made.
#[test]
fn a_disable_ends_with_the_reports_before_it() {
    with_state(|state| {
        state.set(0, timer(5));
        state.enable(0);
        state.disable(200);
        state.trigger(210, Trigger { reason: reason::MMIO, source: 1, context: 0, valid: false });
        assert!(state.enabled() && state.stopping());
        assert_eq!(take(state, 10_000).iter().map(|report| report.at).collect::<Vec<_>>(), [32, 96, 160]);
        assert!(!state.enabled() && state.first_due().is_none());
        let ticks = state.now.values.a(0, 1).next();
        state.settle(20_000, 0);
        assert_eq!(state.now.values.a(0, 1).next(), ticks, "counters stand while OAG is disabled");
    });
}

#[test]
fn the_timer_stops_in_rc6() {
    with_state(|state| {
        state.set(0, timer(5));
        state.enable(0);
        state.note(100, Activity { awake: false, busy: 0, ratio: RATIO });
        state.note(1000, BUSY);
        let all: Vec<_> = take(state, 1100).iter().map(|report| (report.at, report.reason)).collect();
        assert_eq!(all, [(32, reason::TIMER), (96, reason::TIMER), (100, reason::SLEEP), (1056, reason::TIMER)]);
        assert_eq!(timer::next(5, 1000), 1056);
    });
}
