// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rings: head and tail, wraps, waits, preemption, the watchdog.

use arctic_fidelity::proves;

use super::*;

/// ILK-099..103, ILK-105, ILK-112, ILK-116: see the claim.
#[test]
fn a_ring_executes_up_to_its_tail() {
    proves!(
        [
            IVB_075, IVB_077, IVB_079, IVB_180, ILK_038, ILK_099, ILK_100, ILK_101, ILK_102, ILK_103, ILK_105, ILK_112,
            ILK_116
        ],
        "a ring may be enabled empty; commands up to the QWord of the tail are executed, and the head then is equal to it"
    );
    let mut bench = EngineBench::new(BCS);
    assert_eq!(bench.step(), Outcome::Idle, "enabled and empty");
    (0..8).for_each(|n| bench.put(RING + n * 4, 0x0040_0001 + n));
    bench.write(0x2_2030, 0x0c);
    assert_eq!((bench.step(), bench.register(0x94), bench.register(0x34)), (Outcome::Progress, 2, 8));
    bench.write(0x2_2030, 0x20);
    bench.step();
    assert_eq!((bench.register(0x94), bench.register(0x34)), (8, 0x20));
    // Disabled, nothing is executed; the registers keep their values. Enabled with commands, they are executed.
    bench.write(0x2_203c, 0x1000);
    (8..10).for_each(|n| bench.put(RING + n * 4, 0x0040_0001 + n));
    bench.write(0x2_2030, 0x28);
    assert_eq!((bench.step(), bench.register(0x94), bench.register(0x34)), (Outcome::Idle, 8, 0x20));
    bench.write(0x2_203c, 0x1001);
    assert_eq!((bench.step(), bench.register(0x94), bench.register(0x38)), (Outcome::Progress, 10, RING));
}

/// ILK-101: sizes of a ring; G67-056: its address may be above 512 MiB.
#[test]
fn a_ring_has_up_to_two_mebibytes() {
    proves!([IVB_077, IVB_078, ILK_101], "the start is a page of the GGTT, the length 1 to 512 pages");
    let mut bench = EngineBench::new(BCS);
    bench.write(0x2_203c, 0);
    bench.write(0x2_2038, 0x7fff_afff);
    assert_eq!(bench.register(0x38), 0x7fff_a000);
    bench.write(0x2_203c, 0x1f_fffe);
    assert_eq!(bench.register(0x3c), 0x1f_f006);
    // All pages of a ring of 2 MiB are one page of the guest.
    bench.write(0x2_2038, 0x0100_0000);
    (0x1001..0x1200).for_each(|page| bench.gt.ggtt.set(page, Pte(0xb001)));
    bench.gt.ggtt.set(0x1000, Pte(0xb001));
    bench.put(0xbff0, MI_NOOP | WRITE_NOPID | 6);
    bench.write(0x2_203c, 0x1f_f001);
    bench.write(0x2_2030, 0x1f_fff8);
    (0..60).for_each(|_| {
        bench.step();
    });
    assert_eq!((bench.register(0x34), bench.register(0x94)), (0x1f_fff8, 6));
    bench.write(0x2_2030, 8);
    bench.step();
    assert_eq!(bench.register(0x34), 1 << 21 | 8);
    // Above 512 MiB.
    bench.write(0x2_203c, 0);
    bench.write(0x2_2034, 0);
    bench.write(0x2_2038, 0x3000_0000);
    bench.gt.ggtt.set(0x3_0000, Pte(0xc001));
    bench.put(0xc000, MI_NOOP | WRITE_NOPID | 7);
    bench.write(0x2_203c, 1);
    bench.step();
    assert_eq!(bench.register(0x94), 7);
}

/// ILK-104, ILK-106: wraps are counted between commands.
#[test]
fn wraps_are_counted_up_to_eleven_bits() {
    proves!(
        [IVB_076, IVB_079, ILK_099, ILK_102, ILK_104, ILK_106],
        "the head's number of wraps increments once per wrap and overflows to 0"
    );
    let mut bench = EngineBench::new(BCS);
    bench.write(0x2_203c, 0);
    bench.write(0x2_2034, 0x7fe << 21);
    bench.write(0x2_203c, 1);
    for wraps in [0x7fe_u32, 0x7ff, 0, 1] {
        for tail in [0x800_u32, 0xff8, 0] {
            bench.write(0x2_2030, tail);
            bench.step();
            let expected = if tail == 0 { (wraps + 1) % 0x800 } else { wraps };
            assert_eq!(bench.register(0x34), expected << 21 | tail);
        }
    }
}

/// ILK-109, ILK-110: reports of the head.
#[test]
fn the_head_is_reported_at_parts_of_the_ring() {
    proves!(
        [IVB_078, IVB_146, ILK_098, ILK_109, ILK_110],
        "an engine other than the render engine reports its head at each 64 KiB or 128 KiB; MI_REPORT_HEAD always does"
    );
    for (id, base, code, reports) in [
        (BCS, 0x2_2000, 1, [0x1_0000, 0x2_0000, 0x3_0000]),
        (BCS, 0x2_2000, 3, [0, 0x2_0000, 0x2_0000]),
        (BCS, 0x2_2000, 2, [0; 3]),
        (RCS, 0x2000, 1, [0; 3]),
    ] {
        let mut bench = EngineBench::new(id);
        bench.write(base + 0x3c, 0);
        bench.write(base + 0x38, 0x0100_0000);
        (0x1000..0x1040).for_each(|page| bench.gt.ggtt.set(page, Pte(0xb001)));
        bench.write(base + 0x3c, 0x3f << 12 | code << 1 | 1);
        for (tail, reported) in [0x1_0008, 0x2_0008, 0x3_0008].into_iter().zip(reports) {
            bench.write(base + 0x30, tail);
            bench.steps(0x2_0000);
            assert_eq!((bench.register(0x34), bench.get(STATUS + 0x10)), (tail, reported), "{id:?} {code}");
        }
    }
    let mut bench = EngineBench::new(RCS);
    bench.run(&[0, 0, MI_REPORT_HEAD]);
    assert_eq!(bench.get(STATUS + 0x10), 8);
    bench.batch(BATCH, &[MI_REPORT_HEAD]);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!(bench.get(STATUS + 0x10), 8, "not of a batch");
}

#[test]
fn a_video_ring_can_be_barred_from_registers() {
    proves!(IVB_078, "bit 8 of a video engine's ring control disables writes of registers by the ring");
    let mut bench = EngineBench::new(EngineId::new(1));
    bench.write(0x1_203c, 0x1101);
    bench.run(&[MI_LOAD_REGISTER_IMM | 1, 0x2430, 5]);
    assert_eq!(bench.gt.read(0x2430), 0);
    bench.batch(BATCH, &[MI_LOAD_REGISTER_IMM | 1, 0x2430, 6]);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!(bench.gt.read(0x2430), 6, "a batch is not the ring");
    let mut bench = EngineBench::new(BCS);
    bench.write(0x2_203c, 0x1101);
    bench.run(&[MI_LOAD_REGISTER_IMM | 1, 0x2430, 5]);
    assert_eq!((bench.gt.read(0x2430), bench.register(0x3c)), (5, 0x1001));
}

#[test]
fn a_stopped_ring_continues_where_it_was() {
    proves!(
        [IVB_055, IVB_080, IVB_103, IVB_182],
        "the stop bit stops the parser, which is then idle, and continues it in the batch"
    );
    let mut bench = EngineBench::new(RCS);
    bench.batch(BATCH, &[MI_NOOP | WRITE_NOPID | 1, MI_NOOP | WRITE_NOPID | 2, MI_NOOP | WRITE_NOPID | 3]);
    bench.put(RING, MI_BATCH_BUFFER_START);
    bench.put(RING + 4, BATCH);
    bench.write(0x2030, 8);
    assert_eq!((bench.steps(2), bench.register(0x94), bench.register(0x9c)), (Outcome::Progress, 1, 0));
    bench.write(0x209c, 0x0100_0100);
    assert_eq!((bench.step(), bench.register(0x94), bench.register(0x9c)), (Outcome::Idle, 1, 0x300));
    assert_eq!((bench.register(0x74), bench.register(0x140)), (BATCH, BATCH | 1), "the last command");
    bench.write(0x209c, 0x0100_0000);
    assert_eq!((bench.step(), bench.register(0x94), bench.register(0x9c)), (Outcome::Progress, 3, 0x200));
}

/// ILK-117, ILK-123: arbitration points. An empty ring, which the older document names, is not one here.
#[test]
fn preemption_is_at_checks_that_arbitration_allows() {
    proves!(
        [IVB_081, IVB_082, IVB_145, IVB_147, ILK_117, ILK_123],
        "MI_ARB_CHECK in the ring or a batch continues at a valid UHPTR, with its number of wraps, unless MI_ARB_ON_OFF \
         has disabled it; the old head is recorded, with bit 0 for a batch"
    );
    for (enable, nop, head) in [(MI_ARB_ON_OFF, 1, 16), (MI_ARB_ON_OFF | 1, 0x42, 5 << 21 | 0x408)] {
        let mut bench = EngineBench::new(RCS);
        bench.batch(BATCH, &[MI_ARB_CHECK, MI_NOOP | WRITE_NOPID | 1]);
        bench.put(RING + 0x400, MI_NOOP | WRITE_NOPID | 0x42);
        (RING..).step_by(4).zip([enable, MI_BATCH_BUFFER_START, BATCH, 0]).for_each(|(at, dword)| bench.put(at, dword));
        bench.write(0x2134, 5 << 21 | 0x401);
        bench.write(0x2030, 16);
        bench.steps(3);
        if nop == 0x42 {
            bench.write(0x2030, 0x408);
            assert_eq!((bench.register(0x14c), bench.register(0x134)), (12 | 1, 5 << 21 | 0x400));
        }
        bench.step();
        assert_eq!((bench.register(0x94), bench.register(0x34)), (nop, head));
    }
}

#[test]
fn a_pointer_that_the_head_reaches_is_invalidated() {
    proves!(
        [IVB_056, IVB_145],
        "UHPTR becomes invalid when the head reaches it, in the mode for that, and at a check at the same place"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2134, 0x11);
    bench.run(&[0, 0, 0, 0, 0, 0]);
    assert_eq!(bench.register(0x134), 0x11);
    bench.write(0x209c, 0x0800_0800);
    bench.write(0x2134, 0x29);
    bench.run(&[0, 0, 0, 0]);
    assert_eq!(bench.register(0x134), 0x28);
    bench.write(0x209c, 0x0800_0000);
    bench.write(0x2134, 0x29);
    assert_eq!(bench.run(&[MI_ARB_CHECK, MI_NOOP | WRITE_NOPID | 5]), Outcome::Progress);
    assert_eq!((bench.register(0x134), bench.register(0x94), bench.register(0x34)), (0x28, 5, 0x30));
}

/// ILK-119, ILK-120, ILK-122: waits for condition codes.
#[test]
fn a_wait_shows_its_condition() {
    proves!(
        [IVB_066, IVB_076, IVB_078, IVB_110, IVB_143, IVB_181, ILK_119, ILK_120, ILK_121, ILK_122],
        "MI_WAIT_FOR_EVENT waits while one of five condition codes is set. Bit 11 of the ring control, bit 0 of the \
         head and the code show the wait; writing 1 to bit 11 ends it, writing 0 does not"
    );
    for code in 0..5 {
        let mut bench = EngineBench::new(RCS);
        bench.write(0x2028, 0x001f_0000 | 1 << code);
        let wait = MI_WAIT_FOR_EVENT | (code + 1) << 16;
        let others = (0..5).filter(|other| *other != code).map(|other| MI_WAIT_FOR_EVENT | (other + 1) << 16);
        assert_eq!(bench.run(&others.chain([wait, MI_NOOP | WRITE_NOPID | 7]).collect::<Vec<_>>()), Outcome::Waiting);
        assert_eq!((bench.register(0x34), bench.register(0x3c), bench.gt.read(0x22d0)), (0x11, 0x1801, 1 << code));
        bench.write(0x203c, 0x1001);
        assert_eq!((bench.step(), bench.register(0x3c)), (Outcome::Waiting, 0x1801));
        match code % 2 {
            0 => bench.write(0x2028, 0x001f_0000),
            _ => bench.write(0x203c, 0x1801),
        }
        assert_eq!((bench.step(), bench.register(0x94)), (Outcome::Progress, 7));
        assert_eq!((bench.register(0x34), bench.register(0x3c), bench.gt.read(0x22d0)), (0x18, 0x1001, 0));
    }
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2028, 0x001f_001f);
    assert_eq!(bench.run(&[0x0180_0000, 0x0180_0000 | 6 << 16]), Outcome::Progress, "no code, and undefined codes");
}

#[test]
fn engines_wait_for_each_other() {
    proves!(
        [IVB_069, IVB_154, IVB_170, IVB_171, IVB_172],
        "an engine waits until a value in its register or in memory is greater than its own, unsigned, while another \
         engine executes commands, and continues when that one writes the register or the memory"
    );
    for (select, register) in [(0, 0x2040), (2, 0x2044), (3, 0x2040)] {
        let (mut bench, mut other) = (EngineBench::new(RCS), Engine::new(BCS));
        let wait = [0x0b14_0001 | select << 16, 0x8000_0000, 0x2040, MI_NOOP | WRITE_NOPID | 1];
        assert_eq!(bench.run(&wait), Outcome::Waiting);
        for (value, outcome) in [(0x8000_0000, Outcome::Waiting), (0x8000_0001, Outcome::Progress)] {
            other.restart();
            bench.write(0x2_203c, 0);
            bench.write(0x2_2034, 0);
            bench.run_other(&mut other, 0x8000, &[0x1100_0001, register, value, 0x0040_0003]);
            assert_eq!(bench.gt.read(0x2_2094), 3, "the other engine is not held up");
            assert_eq!(bench.step(), outcome, "{select}");
        }
        assert_eq!((bench.register(0x94), bench.register(0x3c)), (1, 0x1001));
    }
    // In memory, which both engines map.
    let (mut bench, mut other) = (EngineBench::new(RCS), Engine::new(BCS));
    bench.put(BEHIND + DATA, 5);
    assert_eq!(bench.run(&[0x0b30_0001, 5, DATA, MI_NOOP | WRITE_NOPID | 2]), Outcome::Waiting, "equal is not greater");
    assert_eq!((bench.register(0x3c), bench.get(BEHIND + DATA)), (0x1401, 5));
    bench.run_other(&mut other, 0x8000, &[0x0b20_0001, 6, DATA, 0]);
    assert_eq!((bench.step(), bench.register(0x94)), (Outcome::Progress, 2));
    assert_eq!(bench.get(BEHIND + DATA), 5, "updated after the comparison");
    assert_eq!(bench.run(&[0x0b00_0001, 9, DATA, 0]), Outcome::Progress, "neither compares nor updates");
    assert_eq!(bench.get(BEHIND + DATA), 5);
}

#[test]
fn the_watchdog_expires_at_its_threshold() {
    proves!(
        [IVB_085, IVB_086, IVB_087, IVB_189],
        "0 starts the watchdog, 1 stops and resets it; it counts units of 640 ns, raises interrupt 6 at the threshold and \
         begins anew"
    );
    let bench = EngineBench::new(RCS);
    let iir = || {
        bench.gt.poll_watchdog(RCS);
        let iir = bench.gt.read(0x4_4018);
        bench.write(0x4_4018, !0);
        iir
    };
    assert_eq!(bench.gt.read(0x217c), 0x15_0000);
    bench.write(0x217c, 1000);
    bench.clock.advance(6_400_000);
    assert_eq!((bench.gt.read(0x2190), iir()), (0, 0), "not started");
    bench.write(0x2178, 0);
    bench.clock.advance(640 * 999);
    assert_eq!((bench.gt.read(0x2190), iir()), (999, 0));
    assert_eq!(bench.gt.poll_watchdog(RCS), Some(bench.gt.clock.now() + 20_000), "at the earliest");
    bench.clock.advance(640);
    assert_eq!((iir(), bench.gt.read(0x2190)), (1 << 6, 0));
    bench.clock.advance(640 * 1500);
    assert_eq!((iir(), iir(), bench.gt.read(0x2190)), (1 << 6, 0, 500));
    assert_eq!(bench.gt.poll_watchdog(RCS), Some(bench.gt.clock.now() + 640 * 500));
    bench.write(0x2190, 7);
    assert_eq!(bench.gt.read(0x2190), 500, "read-only");
    bench.write(0x2178, 1);
    bench.clock.advance(640 * 5000);
    assert_eq!((iir(), bench.gt.read(0x2190), bench.gt.poll_watchdog(RCS)), (0, 0, None));
}
