// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engine tracing: each command is traced once, in order, and tracing does not change execution.

use std::time::Duration;

use super::*;
use crate::trace::{EventKind, Filter};

const USER_INTERRUPT: u32 = MI_USER_INTERRUPT;

fn whats(subscription: &crate::trace::Subscription) -> Vec<EventKind> {
    subscription.take(Duration::ZERO).into_iter().map(|event| event.what).collect()
}

/// Load, commands with their addresses, interrupts and completion are traced in order. Tracing does not change the
/// results.
#[test]
fn a_submission_is_followed_command_by_command() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let trace = bench.gt.trace.clone();
    let all = trace.subscribe(Filter::default());
    let batch = VA + BATCH;
    bench.write(BATCH, &store(VA + DATA, 7));
    bench.put(BATCH + 16, END);
    let context = bench.context(0);
    bench.emit(context, &start(batch));
    bench.emit(context, &[USER_INTERRUPT, 0]);
    assert_eq!(bench.submit(context), Outcome::Complete);
    assert_eq!(bench.get(DATA), 7);
    let mut received = whats(&all).into_iter();
    let switches = |what: Option<EventKind>| match what {
        Some(EventKind::Switch { status }) => crate::decode::status::quadword(status),
        other => panic!("{other:?}"),
    };
    assert!(switches(received.next()).starts_with("idle to active: "));
    assert!(matches!(received.next(), Some(EventKind::Load { .. })));
    assert!(matches!(received.next(), Some(EventKind::Restore { head: 0, .. })));
    let commands: Vec<_> = received
        .map(|what| match what {
            EventKind::Command { address, level, dwords, .. } => (address, level, dwords),
            EventKind::Interrupt { bits } => (u64::from(bits), 0xff, vec![]),
            EventKind::Msi { .. } => (0, 0xfe, vec![]),
            EventKind::Stop { outcome, .. } => (0, 0xfd, vec![outcome.len() as u32]),
            EventKind::Switch { .. } => (0, 0xfc, vec![]),
            other => panic!("{other:?}"),
        })
        .collect();
    let ring = context.at;
    let wanted = [
        (ring, 0, start(batch).to_vec()),
        (batch, 1, store(VA + DATA, 7).to_vec()),
        (batch + 16, 1, vec![END]),
        (ring + 12, 0, vec![0]),
        (ring + 16, 0, vec![USER_INTERRUPT]),
        (1, 0xff, vec![]),
    ];
    assert_eq!(commands[..6], wanted, "{commands:x?}");
    let [.., stop, switch] = &commands[..] else { panic!("{commands:x?}") };
    assert_eq!((stop.1, switch.1), (0xfd, 0xfc));
}

/// MI_FLUSH_DW and PIPE_CONTROL invalidate translations if they say so.
#[test]
fn invalidations_of_translations_are_traced() {
    let flush = |tlb: bool| [MI_FLUSH_DW | u32::from(tlb) << 18 | 1, 0, 0];
    let control = |tlb: bool| [PIPE_CONTROL | 4, u32::from(tlb) << 18, 0, 0, 0, 0];
    for (class, invalidates, flushes) in [
        (EngineClass::Copy, &flush(true)[..], &flush(false)[..]),
        (EngineClass::Render, &control(true), &control(false)),
    ] {
        let mut bench = EngineBench::new(class);
        let all = bench.gt.trace.subscribe(Filter::default());
        assert_eq!(bench.ring(&[flushes, invalidates].concat()), Outcome::Complete);
        let received = whats(&all);
        let by = EventKind::TlbInvalidation { by: "a command".into(), all: false };
        let at: Vec<_> = (0..received.len()).filter(|at| received[*at] == by).collect();
        let [at] = at[..] else { panic!("{received:?}") };
        assert!(matches!(&received[at - 1], EventKind::Command { dwords, .. } if dwords == invalidates));
    }
}

/// A semaphore wait is traced once per subscriber, regardless of retries. A later subscriber also receives it.
#[test]
fn a_wait_is_traced_once() {
    let mut bench = EngineBench::new(EngineClass::Copy);
    let trace = bench.gt.trace.clone();
    let all = trace.subscribe(Filter::default());
    let context = bench.context(0);
    bench.emit(context, &wait(4, VA + DATA, 1));
    assert_eq!(bench.submit(context), Outcome::Waiting);
    for _ in 0..3 {
        assert_eq!(bench.run(), Outcome::Waiting);
    }
    let waits = |received: Vec<EventKind>| received.iter().filter(|what| **what == EventKind::Wait).count();
    assert_eq!(waits(whats(&all)), 1);
    let late = trace.subscribe(Filter::default());
    assert_eq!(bench.run(), Outcome::Waiting);
    assert_eq!(waits(whats(&late)), 1);
}
