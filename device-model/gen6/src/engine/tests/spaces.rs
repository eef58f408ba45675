// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Address spaces, privilege and translation.

use arctic_fidelity::proves;

use super::*;

/// ILK-001, ILK-010, ILK-011, ILK-087, ILK-088: see the claim.
#[test]
fn command_bit_selects_the_space() {
    proves!(
        [
            IVB_030, IVB_130, IVB_131, IVB_133, IVB_134, IVB_157, IVB_161, IVB_166, ILK_001, ILK_010, ILK_011, ILK_038,
            ILK_087, ILK_088, ILK_098
        ],
        "the bit of a command selects the space in the ring and in a batch of the GGTT. In a batch of the PPGTT a command \
         with an address in the GGTT is a NOOP, and MI_SEMAPHORE_MBOX ignores the bit"
    );
    // A command with its bit clear and set, whether a batch of the PPGTT executes these, and whether it takes the bit as
    // it is. Each sets the dword at DATA of a space to 7.
    const MAILBOX: u32 = 0x0b00_0001 | 1 << 21;
    type Case<'c> = ([&'c [u32]; 2], [bool; 2], bool);
    let commands: [Case<'_>; 5] = [
        ([&[MI_STORE_DATA_IMM | 2, 0, DATA, 7], &[MI_STORE_DATA_IMM | GGTT | 2, 0, DATA, 7]], [true, false], true),
        ([&[MAILBOX, 7, DATA], &[MAILBOX | 1 << 22, 7, DATA]], [true, true], false),
        ([&[0x1200_0001, 0x2430, DATA], &[0x1240_0001, 0x2430, DATA]], [false, false], true),
        ([&[PIPE_CONTROL | 2, 1 << 14, DATA, 7], &[PIPE_CONTROL | 2, 1 << 24 | 1 << 14, DATA, 7]], [true, false], true),
        ([&[0x7a00_0003, 1 << 14, DATA, 7, 0], &[0x7a00_0003, 1 << 24 | 1 << 14, DATA, 7, 0]], [true, false], true),
    ];
    for (forms, allowed, strict) in commands {
        for (bit, words) in forms.into_iter().enumerate() {
            for place in ["ring", "GGTT", "PPGTT"] {
                let mut bench = EngineBench::new(RCS);
                bench.write(0x2430, 7);
                match place {
                    "ring" => bench.run(words),
                    "GGTT" => {
                        bench.batch(BATCH, words);
                        bench.run(&[MI_BATCH_BUFFER_START, BATCH])
                    }
                    _ => {
                        bench.batch(BEHIND + BATCH, words);
                        bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH])
                    }
                };
                let changed = [bench.get(BEHIND + DATA), bench.get(DATA)].map(|value| value == 7);
                let user = place == "PPGTT";
                let executed = !user || allowed[bit];
                let global = bit == 1 && (!user || strict);
                assert_eq!(changed, [executed && !global, executed && global], "{:#x} {bit} in {place}", words[0]);
            }
        }
    }
}

#[test]
fn command_bit_selects_the_space_of_reads() {
    proves!(
        [IVB_130, IVB_134, IVB_163, IVB_165, ILK_001],
        "MI_LOAD_REGISTER_MEM and MI_CONDITIONAL_BATCH_BUFFER_END read the space of their bit, and the GGTT only with \
         privilege"
    );
    let mut bench = EngineBench::new(RCS);
    bench.put(DATA, 1);
    bench.put(BEHIND + DATA, 2);
    for (start, at, header, value) in [
        (MI_BATCH_BUFFER_START, BATCH, MI_LOAD_REGISTER_MEM | 1, 2),
        (MI_BATCH_BUFFER_START, BATCH, MI_LOAD_REGISTER_MEM | GGTT | 1, 1),
        (MI_BATCH_BUFFER_START | BATCH_PPGTT, BEHIND + BATCH, MI_LOAD_REGISTER_MEM | 1, 2),
        (MI_BATCH_BUFFER_START | BATCH_PPGTT, BEHIND + BATCH, MI_LOAD_REGISTER_MEM | GGTT | 1, 0xff),
    ] {
        bench.write(0x2430, 0xff);
        bench.batch(at, &[header, 0x2430, DATA]);
        bench.run(&[start, BATCH]);
        assert_eq!(bench.gt.read(0x2430), value, "{header:#x}");
    }
    // The batch ends where the value, 1 or 2, is not greater than 1.
    for (start, at, header, ended) in [
        (MI_BATCH_BUFFER_START, BATCH, MI_CONDITIONAL_BATCH_BUFFER_END | COMPARE_SEMAPHORE | 1, false),
        (MI_BATCH_BUFFER_START, BATCH, MI_CONDITIONAL_BATCH_BUFFER_END | GGTT | COMPARE_SEMAPHORE | 1, true),
        (MI_BATCH_BUFFER_START, BATCH, MI_CONDITIONAL_BATCH_BUFFER_END | GGTT | 1, false),
        (0x1880_0100, BEHIND + BATCH, 0x1b20_0001, false),
        (0x1880_0100, BEHIND + BATCH, 0x1b60_0001, false),
    ] {
        bench.batch(at, &[header, 1, DATA, MI_NOOP | WRITE_NOPID | 5]);
        bench.run(&[MI_NOOP | WRITE_NOPID | 1, 0, start, BATCH]);
        assert_eq!(bench.register(0x94), if ended { 1 } else { 5 }, "{header:#x}");
    }
}

/// ILK-113, ILK-124: chains of batches.
#[test]
fn a_chained_batch_keeps_the_space_of_the_first() {
    proves!(
        [IVB_131, IVB_164, ILK_113, ILK_124],
        "a chained batch has the space and the privilege of the first one, whatever its bit is"
    );
    let mut bench = EngineBench::new(RCS);
    bench.batch(BATCH, &[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH + 0x100]);
    bench.batch(BATCH + 0x100, &[MI_STORE_DATA_IMM | GGTT | 2, 0, DATA, 1]);
    bench.batch(BEHIND + BATCH + 0x100, &[MI_STORE_DATA_IMM | 2, 0, DATA, 2]);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!([bench.get(DATA), bench.get(BEHIND + DATA)], [1, 0]);
    bench.batch(BEHIND + BATCH, &[MI_BATCH_BUFFER_START, BATCH + 0x100]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH, MI_NOOP | WRITE_NOPID | 4]);
    assert_eq!([bench.get(DATA), bench.get(BEHIND + DATA), bench.register(0x94)], [1, 2, 4]);
}

#[test]
fn privileged_commands_are_noops_in_a_batch_of_the_ppgtt() {
    proves!(
        [IVB_133, IVB_143, IVB_145, IVB_147, IVB_153, IVB_158, IVB_159, IVB_160, IVB_161],
        "a batch without privilege executes MI_LOAD_REGISTER_IMM, MI_UPDATE_GTT, MI_STORE_REGISTER_MEM, MI_DISPLAY_FLIP, \
         MI_ARB_ON_OFF, MI_ARB_CHECK, MI_WAIT_FOR_EVENT and MI_STORE_DATA_INDEX as MI_NOOP"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x2028, 0x0001_0001);
    bench.write(0x2134, 0x101);
    let user = [
        MI_LOAD_REGISTER_IMM | 1,
        0x2430,
        7,
        MI_UPDATE_GTT | 1 << 22 | 1,
        0x9000,
        0x5001,
        MI_STORE_REGISTER_MEM | 1,
        0x2038,
        DATA,
        0x0a00_0001,
        0,
        0x5000,
        MI_ARB_ON_OFF,
        MI_ARB_CHECK,
        MI_WAIT_FOR_EVENT | 1 << 16,
        MI_STORE_DATA_INDEX | 1,
        0x100,
        7,
        MI_REPORT_HEAD,
        MI_NOOP | WRITE_NOPID | 9,
    ];
    bench.batch(BEHIND + BATCH, &user);
    assert_eq!(bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]), Outcome::Progress);
    assert_eq!(bench.register(0x94), 9, "the batch was executed to its end");
    assert_eq!((bench.gt.read(0x2430), bench.gt.ggtt.entry(9), bench.get(BEHIND + DATA)), (0, Pte(0x9001), 0));
    assert_eq!([bench.get(STATUS + 0x100), bench.get(STATUS + 0x10), bench.register(0x134)], [0, 0, 0x101]);
    assert!(bench.engine.arbitration && bench.engine.skipped().is_empty());
    // The same in the ring, where they are executed.
    bench.write(0x2028, 0x0001_0000);
    bench.write(0x2134, 0);
    bench.run(&user);
    assert_eq!((bench.gt.read(0x2430), bench.gt.ggtt.entry(9), bench.get(BEHIND + DATA)), (7, Pte(0x5001), RING));
    assert_eq!(bench.get(STATUS + 0x100), 7);
    assert!(!bench.engine.arbitration && bench.engine.skipped().len() == 1, "the flip is counted");
}

/// ILK-019, ILK-022: the directory registers decide the translation.
#[test]
fn the_directory_registers_select_the_page_tables() {
    proves!(
        [IVB_031, IVB_032, IVB_033, IVB_059, ILK_012, ILK_015, ILK_019, ILK_022],
        "PP_DIR_BASE selects the directory, of which PP_DCLV enables groups of 64 MiB; commands load both. Without the \
         enable bit the accesses use the GGTT"
    );
    let mut bench = EngineBench::new(RCS);
    // A second directory, 16 entries of the GGTT's table further, with a table that maps page n to page n + 8.
    bench.gt.ggtt.set(0x1010, Pte(0xd001));
    (0..8).for_each(|page| bench.put(0xd000 + page * 4, (page + 8) << 12 | 1));
    bench.run(&[MI_STORE_DATA_IMM | 2, 0, DATA, 1]);
    bench.run(&[0x1100_0003, 0x2220, !0, 0x2228, 0x0101_0000, 0x1000_0002, 0, DATA, 2]);
    assert_eq!([bench.get(BEHIND + DATA), bench.get(DATA + 0x8000)], [1, 2]);
    bench.run(&[MI_LOAD_REGISTER_IMM | 1, 0x2220, !1, MI_STORE_DATA_IMM | 2, 0, DATA, 3]);
    assert_eq!((bench.get(DATA + 0x8000), bench.gt.read(0x4094) >> 1 & 3), (2, 2), "its group is not loaded");
    bench.write(0x229c, 0x0200_0000);
    bench.run(&[MI_STORE_DATA_IMM | 2, 0, DATA, 4]);
    assert_eq!((bench.get(DATA + 0x8000), bench.get(DATA)), (2, 4));
}

/// ILK-013: the pages of a table may have 32 KiB.
#[test]
fn big_pages_have_one_entry_for_eight_pages() {
    proves!([IVB_035, ILK_013], "a directory entry with the size bit has pages of 32 KiB, with natural alignment");
    let mut bench = EngineBench::new(RCS);
    bench.gt.ggtt.set(0x1000, Pte(TABLE | 0b11));
    bench.put(TABLE, 0x1_a001);
    for page in 0..8 {
        bench.run(&[MI_STORE_DATA_IMM | 2, 0, page << 12 | 0x20, 0x100 + page]);
        assert_eq!(bench.get(0x1_8020 + (page << 12)), 0x100 + page, "the entry's address is aligned to 32 KiB");
    }
    bench.put(TABLE + 8 * 4, 0x1_0001);
    bench.run(&[MI_STORE_DATA_IMM | 2, 0, 0x9020, 5]);
    assert_eq!(bench.get(0x1_1020), 5, "the entry of the next big page");
}

/// ILK-018, ILK-090, ILK-134, ILK-139: entries in all places, with an invalidation before their use.
#[test]
fn changed_entries_hold_for_the_next_access() {
    proves!(
        [IVB_036, IVB_046, IVB_160, IVB_169, IVB_177, ILK_018, ILK_071, ILK_090, ILK_134, ILK_139],
        "entries that the CPU, MI_UPDATE_GTT or a store changes hold for the next access after an invalidation, in both \
         modes of invalidation"
    );
    let mut bench = EngineBench::new(RCS);
    for mode in [0x2000_0000, 0x2000_2000] {
        bench.write(0x229c, mode);
        // A store to the page table, through the GGTT; then an access through the PPGTT.
        let entry = TABLE + 5 * 4;
        let invalidate = [PIPE_CONTROL | 2, 1 << 20 | 1 << 18, 0, 0];
        for (page, value) in [(0x1_5000, 1), (0x1_6000, 2)] {
            let store = [MI_STORE_DATA_IMM | GGTT | 2, 0, entry, page | 1];
            bench.run(&[&store[..], &invalidate, &[MI_STORE_DATA_IMM | 2, 0, 0x5040, value]].concat());
            assert_eq!(bench.get(page + 0x40), value);
        }
        for (page, value) in [(0x7000, 3), (0x8000, 4)] {
            let update = [MI_UPDATE_GTT | 1 << 22 | 1, 0xb000, page | 1];
            bench.run(&[&update[..], &invalidate, &[MI_STORE_DATA_IMM | GGTT | 2, 0, 0xb040, value]].concat());
            assert_eq!(bench.get(page + 0x40), value);
        }
        bench.gt.ggtt.write(0xb * 4, &0x9001_u32.to_le_bytes());
        bench.write(0x10_1008, 1);
        bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0xb040, 5]);
        assert_eq!((bench.get(0x9040), bench.gt.read(0x10_1008)), (5, 0));
    }
}

#[test]
fn a_reset_keeps_no_translation() {
    proves!(IVB_037, "after a reset of the engine and an invalidation, an access uses the entries of that time");
    let mut bench = EngineBench::new(RCS);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0xb040, 1]);
    bench.gt.ggtt.set(0xb, Pte(0x7001));
    bench.gt.reset_domains(1 << 1);
    bench.engine.restart();
    bench.tail = 0;
    bench.start(RCS, RING);
    bench.run(&[MI_STORE_DATA_IMM | GGTT | 2, 0, 0xb040, 2]);
    assert_eq!([bench.get(0xb040), bench.get(0x7040)], [1, 2]);
}

/// ILK-005, ILK-137: commands are fetched only as far as they reach.
#[test]
fn the_page_behind_a_batch_may_be_missing() {
    proves!(
        [IVB_045, ILK_005, ILK_137],
        "a batch that ends at the end of a page is executed although the next page has no translation"
    );
    let mut bench = EngineBench::new(RCS);
    bench.gt.ggtt.set(0xc, Pte(0));
    bench.batch(0xbff8, &[MI_NOOP | WRITE_NOPID | 3]);
    assert_eq!(bench.run(&[MI_BATCH_BUFFER_START, 0xbff8]), Outcome::Progress);
    assert_eq!((bench.register(0x94), bench.gt.read(0x4094)), (3, 0));
}

#[test]
fn each_engine_has_its_status_page() {
    proves!(
        [IVB_044, IVB_094, IVB_158, ILK_037],
        "the status pages of the engines have addresses in 4080, 4180 and 4280, in the GGTT; MI_STORE_DATA_INDEX stores \
         one or two dwords at an offset"
    );
    let bench = EngineBench::new(RCS);
    for (index, register, ring) in [(0, 0x4080, 0x5000), (1, 0x4180, 0x7000), (2, 0x4280, 0x9000)] {
        let id = EngineId::new(index);
        let index = u32::from(index);
        let mut engine = Engine::new(id);
        bench.start(id, ring);
        bench.gt.ggtt.set(0x20 + index, Pte((0xb + index) << 12 | 1));
        let commands =
            [MI_STORE_DATA_INDEX | 1, 0x40, index + 1, MI_STORE_DATA_INDEX | 2, 0xffc, index + 4, index + 7, 0];
        (ring..).step_by(4).zip(commands).for_each(|(at, dword)| bench.put(at, dword));
        bench.write(register, (0x20 + index) << 12 | 0xfff);
        assert_eq!(bench.gt.read(register), (0x20 + index) << 12);
        bench.write(bench.gt.generation.engine(id).base + 0x30, 0x20);
        engine.step(&bench.gt, &*bench.gt.view(), 100);
        let page = (0xb + index) << 12;
        assert_eq!([page + 0x40, page + 0xffc, page].map(|at| bench.get(at)), [index + 1, index + 4, index + 7]);
    }
}

/// ILK-031: commands cannot read the memory controller.
#[test]
fn registers_that_commands_cannot_store_are_harmless() {
    proves!(
        [IVB_047, ILK_030, ILK_031],
        "MI_STORE_REGISTER_MEM of a fence stores some value; a CPU reads and writes fences"
    );
    let mut bench = EngineBench::new(RCS);
    bench.write(0x10_0008, 0x5001);
    assert_eq!(bench.run(&[0x1240_0001, 0x10_0008, DATA, 0x1240_0001, 0x14_5004, DATA + 4]), Outcome::Progress);
    assert_eq!((bench.gt.read(0x10_0008), bench.get(DATA + 4)), (0x5001, 0));
    bench.run(&[MI_LOAD_REGISTER_IMM | 1, 0x10_0008, 0]);
    assert_eq!(bench.gt.read(0x10_0008), 0x5001, "commands do not write beyond C0000h");
}
