// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of preemption points, and of several Loads before a preemption.

use super::switches::{end, spinner};
use super::*;
use arctic_fidelity::proves;

#[test]
fn last_of_several_loads_takes_effect() {
    proves!(
        [V8_019, V8_020],
        "of several Loads before the running context has left the engine, only the last takes effect. The others \
        have no visible effect (trap T14), even if the last Load is for the running context itself, or empty"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let held = |host: &Host, number| {
        host.with(number, &commands(&[&[ARB_OFF], &wait(data, 1), &[ARB_ON, ARB_CHECK], &wait(data, 2)]))
    };
    let others: Vec<_> = (4..7).map(|n| host.with(n, &store(data + 8 * n, 1))).collect();
    let first = held(&host, 0);
    host.load(&[first]);
    host.work();
    host.load(&others[..1]);
    host.work();
    host.load(&others[1..2]);
    host.submit(&[]);
    host.load(&others[2..]);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, 1, 0)]);
    host.put(data, 1);
    host.work();
    assert_eq!(host.switches(), [switch(1, 1, 7, 5), switch(0, 7, IDLE, 0)]);
    assert_eq!([4, 5, 6].map(|n| host.get(data + 8 * n)), [0, 0, 1]);

    host.put(data, 0);
    let second = held(&host, 1);
    host.load(&[second]);
    host.work();
    host.load(&others[..1]);
    host.load(&[second]);
    host.put(data, 1);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, 2, 0), switch(1, 2, 2, 0)], "the context stays on the engine");
    host.put(data, 2);
    host.work();
    assert_eq!((host.switches(), host.get(data + 32)), (vec![switch(0, 2, IDLE, 0)], 0));

    host.put(data, 0);
    let third = held(&host, 2);
    host.load(&[third]);
    host.work();
    host.load(&others[..1]);
    host.submit(&[]);
    host.put(data, 1);
    host.work();
    assert_eq!(host.switches(), [switch(1, IDLE, 3, 0), switch(1, 3, IDLE, 5)]);
    assert_eq!(host.get(data + 32), 0);
}

#[test]
fn preemption_points() {
    proves!(
        V8_076,
        "MI_ARB_CHECK, the end of an element and unsuccessful waits are preemption points. Stores and MI_NOOPs are \
        not, even if they take many steps"
    );
    let mut host = Host::new();
    let data = host.data(0);
    // Many more commands than one step of the engine executes.
    let plain: Vec<u32> = (0..2500).flat_map(|n| store(data + 4 * (n % 64), n as u32)).collect();
    for (tail, detail) in [(vec![ARB_CHECK], 5), (wait(data + 0x1000, 1).to_vec(), 4), (vec![], 0)] {
        for (n, dword) in commands(&[&plain, &tail, &store(data + 0x1008, 1), &[BATCH_END]]).into_iter().enumerate() {
            host.put(BATCH + 4 * n as u64, dword);
        }
        host.put(data + 0x1000, 0);
        host.put(data + 0x1008, 0);
        let context = host.with(0, &start(BATCH));
        let other = host.with(1, &store(data + 0x1010, 1));
        host.load(&[context]);
        host.card.step();
        host.load(&[other]);
        host.work();
        assert_eq!(host.get(data + 4 * (2499 % 64)), 2499, "all stores before the preemption point are executed");
        let expected = [switch(1, IDLE, 1, 0), switch(1, 1, 2, detail), switch(0, 2, IDLE, 0)];
        assert_eq!(host.switches(), expected);
        assert_eq!(host.get(data + 0x1008), u32::from(detail == 0), "no command after the preemption point");
        if detail != 0 {
            // The context resumes exactly at the preemption point.
            let at = u64::from(host.get(context.image(0x0f)) & !3);
            let point = VA + BATCH + 4 * plain.len() as u64;
            assert_eq!(at, if detail == 5 { point + 4 } else { point });
            host.put(data + 0x1000, 1);
            host.load(&[context]);
            host.work();
            assert_eq!(host.get(data + 0x1008), 1);
            assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(0, 1, IDLE, 0)]);
        }
    }
}

#[test]
fn a_blit_is_a_preemption_point() {
    proves!(V8_077, "on the copy engine every blit is also a preemption point");
    let mut host = Host::new();
    let data = host.data(0);
    // XY_FAST_COLOR_BLT of one dword, after more stores than one step executes.
    let fill = [0x5100_000e, 3, 0, 1 << 16 | 1, (VA + data) as u32, 0, 0, 0x55, 0, 0, 0, 0, 0, 0, 0, 0];
    let plain: Vec<u32> = (0..2500).flat_map(|n| store(data + 8, n as u32)).collect();
    for (n, dword) in commands(&[&plain, &fill, &[BATCH_END]]).into_iter().enumerate() {
        host.put(BATCH + 4 * n as u64, dword);
    }
    let (context, other) = (host.with(0, &start(BATCH)), host.with(1, &[0, 0]));
    host.load(&[context]);
    host.card.step();
    host.load(&[other]);
    host.work();
    let expected = [switch(1, IDLE, 1, 0), switch(1, 1, 2, 5), switch(0, 2, IDLE, 0)];
    assert_eq!(host.switches(), expected);
    assert_eq!((host.get(data + 8), host.get(data)), (2499, 0));
}

#[test]
fn arbitration_gates_preemption() {
    proves!(
        V8_078,
        "with arbitration off there is no preemption. A queue loaded meanwhile starts once arbitration is on again"
    );
    for (held, free, detail) in
        [(vec![ARB_CHECK, ARB_CHECK], vec![ARB_CHECK], 5), (vec![0], commands(&[&wait(DATA + 0x8_0000, 9)]), 4)]
    {
        let mut host = Host::new();
        let data = host.data(0);
        let ring =
            commands(&[&[ARB_OFF], &wait(data, 1), &held, &store(data + 8, 1), &[ARB_ON], &free, &store(data + 8, 2)]);
        let (context, other) = (host.with(0, &ring), host.with(1, &store(data + 16, 1)));
        host.load(&[context]);
        host.work();
        host.load(&[other]);
        host.work();
        assert_eq!((host.switches(), host.get(data + 16)), (vec![switch(1, IDLE, 1, 0)], 0));
        host.put(data, 1);
        host.work();
        assert_eq!((host.get(data + 8), host.get(data + 16)), (1, 1), "preempted only at the point after ARB_ON");
        assert_eq!(host.switches(), [switch(1, 1, 2, detail), switch(0, 2, IDLE, 0)]);
    }
}

#[test]
fn a_preempted_context_resumes() {
    proves!(
        [V8_075, V8_018],
        "the image of the preempted context contains its position. When resubmitted with other contexts, it resumes \
        exactly there, with its registers"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let a = spinner(&host, 0);
    host.emit(a, &store_register(0x600, data));
    let b = host.with(1, &commands(&[&[0x1108_0001, 0x600, 0xb], &store_register(0x600, data + 8)]));
    // The spinner first sets one of its registers.
    let batch = BATCH + 0x8000;
    for (n, dword) in commands(&[&[0x1108_0001, 0x600, 0xa], &start(BATCH)]).into_iter().enumerate() {
        host.put(batch + 4 * n as u64, dword);
    }
    host.put(a.at + 4, (VA + batch) as u32);
    host.load(&[a]);
    host.work();
    host.load(&[b, a]);
    host.work();
    end(&host, 0);
    host.work();
    assert_eq!((host.get(data), host.get(data + 8)), (0xa, 0xb));
    let expected = [switch(1, IDLE, 1, 0), switch(1, 1, 2, 5), switch(0, 2, 1, 0), switch(0, 1, IDLE, 0)];
    assert_eq!(host.switches(), expected);
}

#[test]
fn a_preempted_context_resumes_behind_its_restore_batch() {
    proves!(
        [V8_075, V8_161],
        "with a batch of any length that runs during the restore (INDIRECT_CTX), the context resumes at the wait in \
        its own batch, where it was preempted"
    );
    // Length used by i915, and one longer than a step of the engine.
    for cachelines in [1, 0x3f] {
        let mut host = Host::new();
        let data = host.data(0);
        for (n, dword) in commands(&[&wait(data, 1), &store(data + 8, 1), &[BATCH_END]]).into_iter().enumerate() {
            host.put(BATCH + 4 * n as u64, dword);
        }
        let context = host.with(0, &commands(&[&start(BATCH), &store(data + 16, 1)]));
        let indirect = BATCH + 0x1_0000;
        for at in (0..0x1000).step_by(16) {
            for (n, dword) in [0x1040_0002, data as u32 + 24, 0, at].into_iter().enumerate() {
                host.put(indirect + u64::from(at) + 4 * n as u64, dword);
            }
        }
        host.put(context.image(0x15), indirect as u32 | cachelines);
        for round in 0..3 {
            host.load(&[context]);
            host.work();
            assert_eq!((host.status() >> 7 & 1, host.get(data + 24)), (1, cachelines * 64 - 16));
            if round < 2 {
                host.submit(&[]);
                host.work();
                assert_eq!(host.switches(), [switch(1, IDLE, 1, 0), switch(1, 1, IDLE, 4)]);
                assert_eq!(host.get(context.image(0x0f)), (VA + BATCH) as u32 | 1);
            }
        }
        // Force Restore by the driver: the image is read again while the context runs.
        host.submit(&[context.descriptor() | 1 << 2]);
        host.work();
        assert_eq!((host.get(data + 8), host.get(data + 16)), (0, 0));
        host.put(data, 1);
        host.work();
        assert_eq!((host.get(data + 8), host.get(data + 16)), (1, 1));
    }
}

#[test]
fn engine_reset_clears_queue_and_restores_power_on_state() {
    proves!(
        [V8_018, V8_211],
        "a context that cannot make progress stays on its engine until the engine is reset. The reset clears the \
        queue, reports no switch, and leaves the engine in its power-on state (V8-211)"
    );
    let mut host = Host::new();
    let data = host.data(0);
    // A reserved opcode.
    let (hung, next) = (host.with(0, &[0x0800_0000, 0]), host.with(1, &store(data, 1)));
    host.load(&[hung, next]);
    host.work();
    host.load(&[next]);
    host.work();
    assert_eq!((host.switches(), host.get(data)), (vec![switch(1, IDLE, 1, 0)], 0));
    host.write(0xd0, 0x0001_0001);
    host.write_card(0x941c, 1 << 2);
    host.write(0xd0, 0x0001_0000);
    host.work();
    assert_eq!((host.status(), host.read(SQ), host.get(data)), (1, 0, 0));
    assert!(host.switches().is_empty());
    host.enable();
    host.head = 11;
    host.load(&[next]);
    host.work();
    assert_eq!(host.get(data), 1);
    assert_eq!(host.switches(), [switch(1, IDLE, 2, 0), switch(0, 2, IDLE, 0)]);
}
