// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the ten cases of a context switch (V8-052): the contents and number of their reports.

use super::*;
use arctic_fidelity::proves;

/// A context that loops in a batch with a preemption point until [`end`] replaces its first command.
pub(super) fn spinner(host: &Host, number: u64) -> Context {
    let batch = BATCH + number * 0x1000;
    let mut at = batch;
    for dword in commands(&[&[ARB_CHECK], &start(batch)]) {
        host.put(at, dword);
        at += 4;
    }
    host.with(number, &start(batch))
}

/// Ends the batch of a spinner.
pub(super) fn end(host: &Host, number: u64) {
    host.put(BATCH + number * 0x1000, BATCH_END);
}

#[test]
fn a_queue_that_runs_to_its_end() {
    proves!(
        [V8_016, V8_052, V8_053, V8_054],
        "n elements cause n + 1 status quadwords, all with detail \"complete\": idle to active with the idle ID as \
        away, element switches, and active to idle (rows 1, 8, 10)"
    );
    for n in 1..=8 {
        let mut host = Host::new();
        let contexts: Vec<_> = (0..n).map(|number| host.with(number, &store(host.data(8 * number), 1))).collect();
        host.load(&contexts);
        host.work();
        let mut expected = vec![switch(1, IDLE, 1, 0)];
        expected.extend((1..n as u32).map(|id| switch(0, id, id + 1, 0)));
        expected.push(switch(0, n as u32, IDLE, 0));
        assert_eq!(host.switches(), expected);
        assert!((0..n).all(|number| host.get(host.data(8 * number)) == 1));
    }
}

#[test]
fn an_empty_queue_preempts_to_idle() {
    proves!(
        [V8_020, V8_052, V8_080],
        "an empty queue preempts and saves the running context. On an idle engine the empty queue is also reported. \
        Row 2 differs from row 10 by the new-queue bit (rows 2, 3)"
    );
    let mut host = Host::new();
    host.submit(&[]);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, IDLE, 0)]);
    let context = spinner(&host, 0);
    host.load(&[context]);
    host.work();
    host.submit(&[]);
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0)], "no report before the context has left");
    host.work();
    assert_eq!(host.switches(), [switch(1, 1, IDLE, 5)]);
    assert_eq!(host.status(), 1);
    assert_ne!(host.get(context.image(0x0f)) & 1, 0, "the image must contain that it was in a batch");
    // When resubmitted, the context resumes there.
    end(&host, 0);
    host.load(&[context]);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(0, 1, IDLE, 0)]);
    // Preemption of a waiting context, and of one that ends without a preemption point.
    let (waiting, ending) = (host.with(1, &wait(host.data(0), 1)), host.with(2, &[ARB_OFF, 0, 0, 0]));
    host.load(&[waiting]);
    host.work();
    host.submit(&[]);
    host.work();
    host.load(&[ending]);
    host.submit(&[]);
    host.work();
    let expected = [switch(1, IDLE, 2, 0), switch(1, 2, IDLE, 4), switch(1, IDLE, 3, 0), switch(1, 3, IDLE, 0)];
    assert_eq!(host.switches(), expected);
}

#[test]
fn a_new_queue_takes_the_engine() {
    proves!(
        [V8_018, V8_021, V8_052, V8_075],
        "a Load replaces the queue immediately. Its first element starts once the running context has ended, has \
        reached a preemption point, or has stopped at an unsuccessful wait. The rest of the old queue is dropped \
        (rows 4, 5, 6)"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let next = host.with(7, &store(data + 8, 1));
    let cases = [
        (host.with(1, &[ARB_OFF, 0, 0, 0]), 0),
        (spinner(&host, 2), 5),
        (host.with(3, &wait(data, 1)), 4),
        (host.with(4, &commands(&[&[0], &[0x0e00_0003 | 4 << 12], &wait(data, 1)[1..]])), 4),
    ];
    let never = host.with(5, &store(data + 16, 1));
    for (n, (context, detail)) in cases.into_iter().enumerate() {
        host.put(data + 8, 0);
        host.load(&[context, never]);
        if n > 0 {
            host.work();
        }
        host.put(next.image(5), 0);
        host.load(&[next]);
        host.work();
        let away = context.id;
        let expected = [switch(1, IDLE, away, 0), switch(1, away, 8, detail), switch(0, 8, IDLE, 0)];
        assert_eq!(host.switches(), expected, "case {n}");
        assert_eq!((host.get(data + 8), host.get(data + 16)), (1, 0));
    }
}

#[test]
fn a_lite_restore() {
    proves!(
        [V8_052, V8_079],
        "a Load with the running context as its first element is a lite restore. It causes one status quadword, \
        with away = to and the new-queue bit, but no save and no restore. The new tail is used, and the following \
        elements run afterwards (row 7)"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let (context, other) = (host.with(0, &wait(data, 1)), host.with(1, &store(data + 16, 1)));
    host.load(&[context]);
    host.work();
    let image: Vec<u32> = (0..0x180).map(|n| host.get(context.image(n))).collect();
    host.emit(context, &store(data + 8, 1));
    host.submit(&[0, context.descriptor(), other.descriptor()]);
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(1, 1, 1, 0)]);
    assert!((0..0x180).filter(|n| *n != 7).all(|n| host.get(context.image(n)) == image[n as usize]), "no save");
    host.work();
    assert_eq!((host.get(data + 8), host.status() >> 8 & 0xf), (0, 1));
    host.put(data, 1);
    host.work();
    assert_eq!((host.get(data + 8), host.get(data + 16)), (1, 1), "both the new commands and the new element ran");
    assert_eq!(host.switches(), [switch(0, 1, 2, 0), switch(0, 2, IDLE, 0)]);
}

#[test]
fn a_forced_restore() {
    proves!(
        V8_079,
        "with Force Restore (i915: CTX_DESC_FORCE_RESTORE, for a tail that was moved back) the same context is \
        saved and read again. This is reported like a lite restore"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let context = host.with(0, &commands(&[&[0x1108_0001, 0x600, 0x77], &wait(data, 1)]));
    host.load(&[context]);
    host.work();
    host.submit(&[context.descriptor() | 1 << 2]);
    host.work();
    let switches = host.switches();
    assert_eq!((switches.len(), switches[1].new_queue, switches[1].away, switches[1].to), (2, true, 1, 1));
    assert_eq!(host.get(context.image(0x85)), 0x77, "saved");
    assert_eq!(host.status() >> 7 & 1, 1, "and active again");
    host.put(data, 1);
    host.work();
    assert_eq!(host.switches(), [switch(0, 1, IDLE, 0)]);
}

#[test]
fn a_wait_switches_elements() {
    proves!(
        [V8_017, V8_052, V8_081],
        "at an unsuccessful wait the engine switches to the next element, and the waiting context is removed from \
        the queue. Only a new Load resumes it, at the wait. Without a next element the engine becomes idle (trap \
        T13) (rows 9, 10)"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let yields = |host: &Host, number: u64, ring: &[u32]| {
        let context = host.with(number, ring);
        // Restore inhibited, synchronous switches not inhibited.
        host.put(context.image(3), 0x0009_0001);
        context
    };
    let waiting = yields(&host, 0, &commands(&[&wait(data, 1), &store(data + 8, 1)]));
    let next = host.with(1, &store(data + 16, 1));
    host.load(&[waiting, next]);
    host.work();
    let expected = [switch(1, IDLE, 1, 0), switch(0, 1, 2, 4), switch(0, 2, IDLE, 0)];
    assert_eq!(host.switches(), expected);
    host.put(data, 1);
    host.work();
    assert_eq!((host.get(data + 8), host.get(data + 16)), (0, 1), "wait satisfied, but context not queued");
    host.load(&[waiting]);
    host.work();
    assert_eq!((host.get(data + 8), host.head_of(waiting)), (1, host.tail_of(waiting)));
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(0, 1, IDLE, 0)]);
    let alone = yields(&host, 2, &wait(data, 2));
    host.load(&[alone]);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, 3, 0), switch(0, 3, IDLE, 4)]);
    assert_eq!(host.head_of(alone), 0, "the head must point to the wait");
}

#[test]
fn a_wait_holds_the_engine_if_requested() {
    proves!(
        [V8_081, V8_078],
        "with the inhibit bit in CTXT_SR_CTL (bit 3), which every driver sets, the same wait blocks the engine and \
        its queue. It also does so with arbitration off (V8-078)"
    );
    for (control, ring) in [(0x0009_0009, vec![]), (0x0009_0001, vec![ARB_OFF, 0])] {
        let mut host = Host::new();
        let data = host.data(0);
        let waiting = host.with(0, &commands(&[&ring, &wait(data, 1), &[ARB_ON]]));
        host.put(waiting.image(3), control);
        let next = host.with(1, &store(data + 16, 1));
        host.load(&[waiting, next]);
        host.work();
        assert_eq!((host.switches(), host.get(data + 16)), (vec![switch(1, IDLE, 1, 0)], 0));
        host.put(data, 1);
        host.work();
        assert_eq!(host.get(data + 16), 1);
        assert_eq!(host.switches(), [switch(0, 1, 2, 0), switch(0, 2, IDLE, 0)]);
    }
}

#[test]
fn the_driver_promotes_once_a_load() {
    proves!(
        [V8_052, V8_021],
        "check against the driver's logic, with random queues. i915's condition for a new queue (away idle, or the \
        new-queue bit) is true for exactly one status quadword per Load, and those that it takes for a completion \
        have detail 0"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    // Ports as in i915: running contexts, and contexts that are loaded but not yet acknowledged.
    let (mut inflight, mut pending): (Vec<u32>, Option<Vec<u32>>) = (Vec::new(), None);
    for round in 0..400 {
        if pending.is_none() {
            let mut contexts = Vec::new();
            for number in 0..8 {
                if random(3) != 0 {
                    continue;
                }
                let context = host.context_at(number);
                // A running context keeps its ring and gets more commands; other contexts are created anew.
                if !inflight.contains(&context.id) {
                    host.context(number);
                }
                match random(3) {
                    0 => host.emit(context, &commands(&[&wait(data, round), &[ARB_CHECK]])),
                    1 => host.emit(context, &store(data + 8 * number, round)),
                    _ => host.emit(context, &[ARB_CHECK, 0, 0, ARB_CHECK]),
                }
                contexts.push(context);
            }
            if contexts.is_empty() {
                continue;
            }
            pending = Some(contexts.iter().map(|context| context.id).collect());
            host.load(&contexts);
        }
        host.put(data, round);
        if random(2) == 0 {
            host.work();
        } else {
            host.card.step();
        }
        for switch in host.switches() {
            if switch.away == IDLE || switch.new_queue {
                assert_ne!(switch.to, IDLE);
                inflight = pending.take().expect("a Load is not acknowledged yet");
                assert_eq!(inflight.first(), Some(&switch.to));
            } else {
                assert_eq!((switch.detail, Some(&switch.away)), (0, inflight.first()), "round {round}");
                inflight.remove(0);
                assert_eq!(switch.to, inflight.first().copied().unwrap_or(IDLE));
            }
        }
    }
}
