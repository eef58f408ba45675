// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Effects of single commands.

use arctic_fidelity::proves;

use super::*;
use crate::registers::engine::{CTL, EMR, PP_DCLV, WATCHDOG_THRESHOLD};

fn set64(bench: &EngineBench, register: u32, value: u64) {
    bench.write(register, arctic_sriov::number::low(value));
    bench.write(register + 4, arctic_sriov::number::high(value));
}

#[test]
fn the_predicate_follows_all_operations() {
    proves!(
        [IVB_120, IVB_150],
        "MI_PREDICATE compares, combines with the predicate and loads it: all 4 x 4 x 4 operations, for equal operands, \
         for others, and for a difference equal to DATA"
    );
    let wide = 0x1_0000_0005_u64;
    for code in 0..64_u32 {
        let (compare, combine, load) = (code & 3, code >> 2 & 3, code >> 4);
        for present in [false, true] {
            for (first, second, data) in [(wide, wide, 1), (wide, 5, 1 << 32), (5, wide, 1 << 32), (7, 7, 0)] {
                let mut bench = EngineBench::new(RCS);
                set64(&bench, 0x2400, first);
                set64(&bench, 0x2408, second);
                set64(&bench, 0x2410, data);
                bench.write(0x2418, present.into());
                bench.run(&[MI_PREDICATE | load << 6 | combine << 3 | compare]);
                let difference = first.wrapping_sub(second);
                let compared = [true, false, first == second, difference == data][compare as usize];
                let combined = [compared, present && compared, present || compared, present != compared];
                let combined = combined[combine as usize];
                let expected = [present, present, combined, !combined][load as usize];
                let data = if compare == 2 { difference } else { data };
                let after = u64::from(bench.gt.read(0x2414)) << 32 | u64::from(bench.gt.read(0x2410));
                assert_eq!((bench.gt.read(0x2418), after), (expected.into(), data), "{code} {present} {first:#x}");
            }
        }
    }
}

#[test]
fn a_predicated_primitive_is_not_drawn() {
    proves!(
        [IVB_151, IVB_152, IVB_156],
        "a 3DPRIMITIVE with its predicate bit is skipped while the predicate is clear; the others, MI_TOPOLOGY_FILTER \
         and MI_URB_CLEAR are counted as not executed"
    );
    let mut bench = EngineBench::new(RCS);
    let draw = |bit: u32| [0x7b00_0005 | bit, 0, 3, 0, 1, 0, 0];
    bench.run(&draw(1 << 8));
    assert!(bench.engine.skipped().is_empty());
    bench.run(&draw(0));
    bench.write(0x2418, 1);
    bench.run(&draw(1 << 8));
    bench.run(&[0x0680_0003, 0x0c80_0000, 1 << 16, MI_NOOP | WRITE_NOPID | 5]);
    let counts: Vec<_> = bench.engine.skipped().iter().map(|((_, name), count)| (*name, *count)).collect();
    assert_eq!(counts, [("3DPRIMITIVE", 2), ("MI_TOPOLOGY_FILTER", 1), ("MI_URB_CLEAR", 1)]);
    assert_eq!(bench.register(0x94), 5);
}

#[test]
fn a_noop_may_name_itself() {
    proves!([IVB_067, IVB_141], "MI_NOOP writes its 22 bits to NOPID if bit 22 is set");
    let mut bench = EngineBench::new(BCS);
    bench.run(&[MI_NOOP | WRITE_NOPID | 0x3fffff]);
    assert_eq!(bench.register(0x94), 0x3f_ffff);
    bench.run(&[0x003f_1234]);
    assert_eq!(bench.register(0x94), 0x3f_ffff);
}

#[test]
fn a_user_interrupt_is_sent_per_command() {
    proves!([IVB_090, IVB_142, ILK_153], "MI_USER_INTERRUPT raises bit 0 of the engine, and the parser continues");
    for (index, bit) in [(0, 0), (1, 12), (2, 22)] {
        let mut bench = EngineBench::new(EngineId::new(index));
        bench.run(&[MI_USER_INTERRUPT, MI_NOOP | WRITE_NOPID | 1]);
        assert_eq!((bench.gt.read(0x4_4018), bench.register(0x94)), (1 << bit, 1));
        bench.write(0x4_4018, 1 << bit);
        bench.run(&[MI_USER_INTERRUPT]);
        assert_eq!(bench.gt.read(0x4_4018), 1 << bit);
    }
}

/// ILK-142: MI_FLUSH.
#[test]
fn flush_with_statistics_bit_resets_statistics() {
    proves!(
        [IVB_115, IVB_118, IVB_144, IVB_186, ILK_142],
        "MI_FLUSH with bit 3, if MI_MODE enables it, and PIPE_CONTROL with bit 19 set the statistics to 0, but not the \
         timestamp; software sets statistics"
    );
    for (mode, words, kept) in [
        (0x1000_1000, [0x0200_0008, 0], 0),
        (0x1000_0000, [0x0200_0008, 0], 5),
        (0x1000_1000, [0x0200_0030, 0], 5),
        (0x1000_0000, [0x7a00_0000, 1 << 19], 0),
        (0x1000_0000, [0x7a00_0000, 0], 5),
    ] {
        let mut bench = EngineBench::new(RCS);
        bench.clock.advance(800);
        (0x2300..0x2358).step_by(4).for_each(|at| bench.write(at, 5));
        bench.write(0x209c, mode);
        bench.run(&words);
        (0x2300..0x2358).step_by(4).for_each(|at| assert_eq!(bench.gt.read(at), kept, "{at:#x}"));
        assert_eq!(bench.gt.read(0x2358), 10);
    }
}

#[test]
fn cache_line_flushes_toggle_a_bit() {
    proves!(
        [IVB_064, IVB_162],
        "MI_CLFLUSH is skipped by its length, which counts half lines, and flips INSTPM bit 11"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x20c0, 0x0040_0040);
    let flush = |bench: &mut EngineBench| {
        let mut words = vec![MI_CLFLUSH | 3, DATA, 0, 0xffff_ffff, 0xffff_ffff];
        words.push(MI_NOOP | WRITE_NOPID | 3);
        bench.run(&words);
        bench.register(0xc0)
    };
    assert_eq!((flush(&mut bench), flush(&mut bench), bench.register(0x94)), (0x840, 0x40, 3));
}

/// ILK-143, ILK-147: the sync flush.
#[test]
fn a_suspended_flush_completes_when_it_is_resumed() {
    proves!(
        [IVB_065, IVB_091, IVB_111, IVB_149, ILK_143, ILK_147],
        "a sync flush completes at once, or when MI_SUSPEND_FLUSH ends its suspension. It flips SYNC_FLIP_STATUS_1 bit 11 \
         and bit 2 of the status page, and raises interrupt 2"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2098, !4);
    for toggled in [1, 0] {
        bench.write(0x20c0, 0x0020_0020);
        assert_eq!((bench.register(0xc0), bench.gt.read(0x22d4) >> 11, bench.get(STATUS)), (0, toggled, toggled << 2));
        assert_eq!((bench.gt.read(0x4_4018), bench.gt.read(0x4_4010)), (4, toggled << 2));
        bench.write(0x4_4018, 4);
        assert_eq!(bench.gt.read(0x4_4018), 0, "it is no lasting state");
    }
    bench.run(&[MI_SUSPEND_FLUSH | 1]);
    bench.write(0x20c0, 0x0020_0020);
    assert_eq!((bench.register(0xc0), bench.gt.read(0x22d4)), (0x20, 0));
    bench.run(&[MI_SUSPEND_FLUSH]);
    assert_eq!((bench.register(0xc0), bench.gt.read(0x22d4), bench.get(STATUS)), (0, 0x800, 4));
}

#[test]
fn stores_have_the_length_of_their_header() {
    proves!(
        [IVB_140, IVB_157, IVB_168],
        "MI_STORE_DATA_IMM stores one dword or more by its length; a command is executed before the next one"
    );
    let mut bench = EngineBench::new(BCS);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 4, 0, DATA + 3, 1, 2, 3, MI_STORE_DATA_IMM | GGTT | 2, 0, DATA + 4, 9]);
    assert_eq!([bench.get(DATA), bench.get(DATA + 4), bench.get(DATA + 8)], [1, 9, 3]);
}

#[test]
fn registers_are_written_by_bytes_and_pairs() {
    proves!(
        [IVB_159],
        "bits 11:8 disable the bytes of all registers of MI_LOAD_REGISTER_IMM; 8800-88FF and C0000 upwards are not written"
    );
    let mut bench = EngineBench::new(RCS);
    for disabled in 0..16_u32 {
        bench.write(0x2430, 0x1111_1111);
        bench.write(0x2434, 0x2222_2222);
        bench.run(&[MI_LOAD_REGISTER_IMM | 3 | disabled << 8, 0x2430, 0xaabb_ccdd, 0x2434, 0x1234_5678]);
        let expect = |old: u32, new: u32| {
            let bytes = |value: u32, n: u32| value >> (n * 8) & 0xff;
            (0..4).fold(0, |all, n| all | bytes(if disabled >> n & 1 == 0 { new } else { old }, n) << (n * 8))
        };
        assert_eq!(bench.gt.read(0x2430), expect(0x1111_1111, 0xaabb_ccdd), "{disabled:#x}");
        assert_eq!(bench.gt.read(0x2434), expect(0x2222_2222, 0x1234_5678));
    }
    bench.run(&[MI_LOAD_REGISTER_IMM | 3, 0x8800, 1, 0x5_0380, 4]);
    assert_eq!(bench.gt.read(0x5_0380), 4);
    let unmodelled: Vec<_> = bench.gt.report().unmodelled.iter().map(|register| register.offset).collect();
    assert!(!unmodelled.contains(&0x8800), "not even written");
}

#[test]
fn draw_parameters_are_loaded_from_memory() {
    proves!(
        [IVB_117, IVB_125, IVB_126, IVB_127, IVB_163],
        "MI_LOAD_REGISTER_MEM loads the registers of indirect draws and dispatches; a dispatch of 0 groups ends the batch \
         where a guard asks for it"
    );
    let mut bench = EngineBench::new(RCS);
    let registers = [0x2420, 0x2430, 0x2434, 0x2438, 0x243c, 0x2440, 0x2500, 0x2504, 0x2508];
    for (n, register) in (0..).zip(registers) {
        let (at, value) = (DATA + n * 4, 0x100 + n);
        bench.put(BEHIND + at, value);
        bench.batch(BEHIND + BATCH, &[MI_LOAD_REGISTER_MEM | 1, register, at]);
        bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
        assert_eq!(bench.gt.read(register), value);
    }
    bench.put(BEHIND + DATA, 0);
    let guarded = [0x1480_0001, 0x2500, DATA, 0x1b20_0001, 0, DATA, 0x7105_0009];
    bench.batch(BEHIND + BATCH, &guarded);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!((bench.gt.read(0x2500), bench.engine.skipped().len()), (0, 0), "GPGPU_WALKER is not reached");
    bench.write(0x2290, 5);
    bench.write(0x5200, 6);
    bench.write(0x5240, 7);
    assert_eq!([0x2290, 0x5200, 0x5240].map(|at| bench.gt.read(at)), [0, 6, 0], "written as 0, stored, read-only");
}

/// ILK-154: the store precedes the notification; ILK-093: timestamps.
#[test]
fn flushes_store_and_notify() {
    proves!(
        [IVB_116, IVB_166, ILK_093, ILK_154],
        "PIPE_CONTROL and MI_FLUSH_DW store a value or the time, then raise interrupt 4; PIPE_CONTROL writes a register \
         with privilege"
    );
    let mut bench = EngineBench::new(RCS);
    bench.clock.advance(80 * 0x1234);
    bench.run(&[PIPE_CONTROL | 3, 1 << 24 | 3 << 14 | 1 << 8, DATA, 0, 0]);
    assert_eq!((bench.get(DATA), bench.gt.read(0x4_4018)), (0x1234, 1 << 4));
    bench.write(0x2350, 0x77);
    bench.run(&[PIPE_CONTROL | 3, 1 << 24 | 2 << 14, DATA, 0, 0, PIPE_CONTROL | 3, 1 << 23 | 1 << 14, 0x2430, 0x99, 0]);
    assert_eq!((bench.get(DATA), bench.gt.read(0x2430)), (0x77, 0x99));
    let mut bench = EngineBench::new(BCS);
    bench.clock.advance(80 * 0x4321);
    bench.run(&[MI_FLUSH_DW | FLUSH_TIMESTAMP | FLUSH_NOTIFY | 2, DATA | 4, 0, 0]);
    assert_eq!((bench.get(DATA), bench.gt.read(0x4_4018)), (0x4321, 1 << 26));
    assert_eq!(bench.gt.read(0x1_2358), 0x4321, "each engine reads the time");
    // The reserved operation stores nothing.
    bench.put(DATA, 0x5555);
    bench.run(&[MI_FLUSH_DW | 2 << 14 | 2, DATA | 4, 0, 0]);
    assert_eq!(bench.get(DATA), 0x5555);
}

/// Offsets have 24 bits (25:2) for the executor and for the disassembler: a register beyond 8 MiB does not exist.
#[test]
fn register_offsets_beyond_8_mib_are_not_those_below() {
    proves!([IVB_161, IVB_163], "a store of a register at 8 MiB and 2430h stores 0, a load does not change 2430h");
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2430, 0x77);
    bench.put(DATA, 0x5555);
    bench.run(&[MI_LOAD_REGISTER_MEM | GGTT | 1, 0x80_2430, DATA]);
    bench.run(&[MI_LOAD_REGISTER_IMM | 1, 0x80_2430, 0x66]);
    assert_eq!(bench.gt.read(0x2430), 0x77);
    bench.run(&[MI_STORE_REGISTER_MEM | GGTT | 1, 0x80_2430, DATA]);
    assert_eq!(bench.get(DATA), 0);
}

/// ILK-141: an in-order parser satisfies every order that software asks for.
#[test]
fn commands_take_effect_in_order() {
    proves!(
        [IVB_168, IVB_169, ILK_133, ILK_135, ILK_136, ILK_138, ILK_141],
        "a register that is loaded, stored, changed and stored again, with and without flushes between"
    );
    for flush in [&[][..], &[PIPE_CONTROL | 2, 1 << 20 | 1 << 18 | 1 << 12, 0, 0], &[0x0200_0000]] {
        let mut bench = EngineBench::new(RCS);
        let steps = [
            &[MI_LOAD_REGISTER_IMM | 1, 0x2430, 1][..],
            &[MI_STORE_REGISTER_MEM | GGTT | 1, 0x2430, DATA],
            &[MI_LOAD_REGISTER_MEM | GGTT | 1, 0x2434, DATA],
            &[MI_STORE_DATA_IMM | GGTT | 2, 0, DATA, 2],
            &[MI_LOAD_REGISTER_MEM | GGTT | 1, 0x2438, DATA],
            &[MI_UPDATE_GTT | 1 << 22 | 1, 0xb000, 0x7001],
            &[MI_STORE_DATA_IMM | GGTT | 2, 0, 0xb000, 3],
        ];
        let words: Vec<u32> = steps.iter().flat_map(|step| step.iter().chain(flush).copied()).collect();
        assert_eq!(bench.run(&words), Outcome::Progress);
        assert_eq!([0x2430, 0x2434, 0x2438].map(|at| bench.gt.read(at)), [1, 1, 2]);
        assert_eq!((bench.get(0x7000), bench.get(0xb000)), (3, 0));
    }
}

#[test]
fn the_batch_is_described_while_it_runs() {
    proves!(
        [IVB_103, IVB_104, IVB_105, IVB_148, IVB_164, ILK_113],
        "BB_ADDR has the address of the current fetch and a valid bit, BB_STATE the space, BB_ADDR_DIFF the distance from \
         the start; MI_BATCH_BUFFER_END returns to the ring"
    );
    for (header, offset, state) in [(MI_BATCH_BUFFER_START | BATCH_PPGTT, BEHIND, 0x20), (MI_BATCH_BUFFER_START, 0, 0)]
    {
        let mut bench = EngineBench::new(RCS);
        bench.write(0x2028, 0x0001_0001);
        bench.batch(offset + BATCH, &[0, 0, 0x0b30_0001 | 1 << 18 | 1 << 21, 0, 0]);
        assert_eq!(bench.run(&[header, BATCH, MI_NOOP | WRITE_NOPID | 6]), Outcome::Waiting);
        assert_eq!([0x140, 0x110, 0x154].map(|at| bench.register(at)), [BATCH + 8 | 1, state, 8]);
        assert_eq!((bench.register(0x74), bench.register(0x34)), (BATCH + 8, 8), "behind the start");
        bench.write(0x2040, 1);
        assert_eq!((bench.step(), bench.register(0x94)), (Outcome::Progress, 6));
        assert_eq!((bench.register(0x140) & 1, bench.register(0x154)), (0, 0));
    }
}

/// Runs of stores in a batch of the PPGTT have a fast path: it must not differ from the other one.
#[test]
fn runs_of_stores_are_executed_as_single_ones() {
    proves!(
        IVB_157,
        "consecutive stores of a batch, across pages, to pages without translations, and to the batch itself"
    );
    let mut bench = EngineBench::new(BCS);
    // The second page of the batch is not behind the first one in memory; the store at their boundary has a part in each.
    let start = BATCH + 0x1000 - 0x28;
    bench.put(TABLE + 5 * 4, 0x1_7001);
    let store = |at: u32, value: u32| [0x1000_0002, 0, at, value];
    let words = [
        store(0x8000, 1),
        store(0x8ffc, 2),
        store(0x8004, 3),
        // Without a translation.
        store(0x40_0000, 4),
        // Changes the value of the next command.
        store(0, 6),
        store(0x8008, 5),
        [0x1000_0003, 0, 0x8010, 7],
    ]
    .concat();
    let place = |n: u32| if start + n * 4 < DATA { BEHIND + start + n * 4 } else { 0x1_7000 + (start + n * 4 - DATA) };
    (0..).zip(words.iter().chain(&[8, 0x0500_0000])).for_each(|(n, word)| bench.put(place(n), *word));
    let changed = (0..).map(|n| start + n * 4).nth(5 * 4 + 3).unwrap();
    bench.put(place(4 * 4 + 2), changed);
    bench.run(&[0x1880_0100, start, 0x0040_0001, 0]);
    let stored = [0x8000, 0x8ffc, 0x8004, 0x8008, 0x8010, 0x8014].map(|at| bench.get(BEHIND + at));
    assert_eq!(stored, [1, 2, 3, 6, 7, 8]);
    assert_eq!((bench.register(0x94), bench.gt.read(0x4294)), (1, 0x40_0000 | 8 << 3 | 1 << 1 | 1));
    // The registers show the last command of a step, and the parser stops behind it.
    bench.batch(BEHIND + BATCH, &[store(0x8000, 9), store(0x8004, 10), store(0x8008, 11)].concat());
    bench.put(RING + bench.tail, 0x1880_0100);
    bench.put(RING + bench.tail + 4, BATCH);
    bench.tail += 8;
    bench.write(0x2_2030, bench.tail);
    assert_eq!(bench.steps(3), Outcome::Progress);
    assert_eq!([0x8000, 0x8004, 0x8008].map(|at| bench.get(BEHIND + at)), [9, 10, 6]);
    assert_eq!([0x74, 0x68].map(|at| bench.register(at)), [BATCH + 16, 0x1000_0002]);
    assert_eq!((bench.register(0x140), bench.register(0x154)), (BATCH + 16 | 1, 16));
    bench.write(0x2_209c, 0x0100_0100);
    assert_eq!((bench.step(), bench.get(BEHIND + 0x8008)), (Outcome::Idle, 6));
    bench.write(0x2_209c, 0x0100_0000);
    assert_eq!((bench.step(), bench.get(BEHIND + 0x8008)), (Outcome::Progress, 11));
}

#[test]
fn registers_with_side_effects_keep_disabled_bytes() {
    proves!(IVB_159, "a byte that is disabled keeps its value also in registers whose writes have side effects");
    let mut bench = EngineBench::new(RCS);
    for (register, value, expected) in
        [(PP_DCLV, 0x1122_3344, 0xaa22_cc44), (WATCHDOG_THRESHOLD, 0x1122_3344, 0xaa22_cc44), (EMR, 0x44, 0xffff_ff44)]
    {
        bench.write_register(register, value);
        bench.run(&[MI_LOAD_REGISTER_IMM | 0x501, 0x2000 + register, 0xaabb_ccdd, 0]);
        assert_eq!(bench.register(register), expected, "{register:#x}");
    }
    // The ring remains enabled, and a byte of its size is written.
    bench.run(&[MI_LOAD_REGISTER_IMM | 0xd01, 0x2000 + CTL, 0x1000, 0]);
    assert_eq!(bench.register(CTL), 0x1001);
}
