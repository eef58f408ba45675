// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What makes a report, and when none is written.

use super::*;

#[test]
fn the_timer_reports_at_its_instants() {
    proves!(
        [V13_216, V13_228, V13_230, V13_240],
        "with a timer, OAG writes a report to its buffer in the GGTT at each instant: timestamp, source and reason 0, render \
        clocks, no context"
    );
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(1000);
    assert_eq!(stream.tail(), 0, "a register read writes no report");
    stream.settle();
    let reports = stream.reports(0);
    assert_eq!(reports.len(), 16, "32, 96, ... 928 and 992");
    let ratio = u64::from(stream.gt.actual_ratio());
    for (n, [id, time, context, ticks]) in (0..).zip(&reports) {
        let tick = 32 + 64 * n;
        assert_eq!((*id, u64::from(*time), *context), (1 << 19 | 1 << 18, tick, 0));
        assert_eq!(u64::from(*ticks), tick * ratio * 125 / 288);
    }
    assert_eq!(stream.gt.read(STATUS), 0);
}

#[test]
fn nothing_is_written_while_oag_is_disabled() {
    proves!(V13_239, "counters advance and reports are made from the enable on, until the disable");
    let stream = Stream::new();
    stream.at(500);
    stream.settle();
    stream.write(TRIGGER, 1);
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(0xd980)), (0, 0));
    stream.enable(Some(5));
    stream.at(1000);
    stream.write(CONTROL, 0);
    let written = stream.tail();
    assert_eq!(written, 8 * 256, "reports due before the disable: 544 to 992");
    assert_eq!(stream.gt.read(CONTROL), 0);
    stream.at(5000);
    stream.settle();
    assert_eq!(stream.tail(), written);
}

/// Where a worker writes the reports, OAG reads as enabled until it has.
#[test]
fn a_disable_is_complete_when_its_reports_are_written() {
    let stream = Stream::sized(5);
    stream.enable(Some(5));
    stream.at(64 * 700);
    assert_eq!(stream.gt.write(CONTROL, 5 << 2), Some(SideEffect::Observe));
    assert_eq!(stream.gt.read(CONTROL), 5 << 2 | 1);
    assert!(stream.step().0);
    assert_eq!(stream.gt.read(CONTROL), 5 << 2 | 1);
    stream.settle();
    assert_eq!((stream.gt.read(CONTROL), stream.tail()), (5 << 2, 700 * 256));
    // An enable in the meantime drops what is left.
    stream.write(CONTROL, 5 << 2 | 1);
    stream.at(64 * 1400);
    stream.gt.write(CONTROL, 5 << 2);
    stream.gt.write(CONTROL, 5 << 2 | 1);
    stream.at(64 * 1402);
    stream.settle();
    assert_eq!(stream.tail(), 702 * 256);
}

#[test]
fn a_write_of_the_trigger_register_makes_a_report() {
    proves!(
        [V13_216, V13_232, V13_234, V13_240],
        "a write of OAG_MMIOTRIGGER by the CPU makes a report with reason 6, source CPU and the value as context, behind the \
        reports that are due before it"
    );
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(100);
    stream.write(TRIGGER, 0xcafe);
    assert_eq!(stream.gt.read(TRIGGER), 0);
    assert_eq!(stream.reasons(0), [reason::TIMER, reason::TIMER, reason::MMIO], "the write has moved the tail");
    assert_eq!(stream.reports(0)[2][..3], [1 << 26 | 1 << 25 | 1 << 18, 100, 0xcafe]);
    stream.gt.write(DEBUG, 1 << 30 | 1 << 14);
    stream.write(TRIGGER, 1);
    assert_eq!(stream.tail(), 3 * 256);
}

#[test]
fn internal_triggers_report_at_a_change() {
    proves!([V13_232, V13_240], "a trigger that is on makes a report with its reason when its condition is inverted");
    let stream = Stream::new();
    stream.enable(None);
    stream.at(100);
    for value in [1 << 31, 1 << 31 | 1 << 22, 1 << 31 | 1 << 22] {
        stream.write(0xd924, value);
    }
    stream.write(0xd934, 1 << 22);
    stream.write(0xd934, 1 << 31);
    stream.write(0xd934, 1 << 31 | 1 << 22);
    assert_eq!(stream.reasons(0), [reason::INTERNAL, reason::INTERNAL << 1]);
}

#[test]
fn a_change_of_the_frequency_makes_a_report() {
    proves!(
        V13_242,
        "a request of a frequency makes a report with reason 5, also of the same one, unless it is disabled; the id has the \
        frequency if it is requested"
    );
    let stream = Stream::new();
    stream.gt.write(DEBUG, 1 << 21 | 1 << 22 | 1 << 6);
    stream.enable(None);
    stream.at(100);
    stream.gt.request_ratio(90);
    stream.at(200);
    stream.gt.request_ratio(90);
    stream.settle();
    assert_eq!(stream.reasons(0), [reason::FREQUENCY; 2]);
    assert!(stream.reports(0).iter().all(|report| report[0] & 0x1ff == 90));
    assert_eq!(stream.reports(0)[1][3] - stream.reports(0)[0][3], 100 * 90 * 125 / 288);
    stream.gt.write(DEBUG, 1 << 21 | 1 << 5);
    stream.gt.request_ratio(80);
    stream.settle();
    assert_eq!(stream.tail(), 512);
}
