// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the copy engine in rings and batches: spaces, steps, faults, resets.

use super::*;
use crate::registers::copy::BCS_SWCTRL;

/// Width in pixels and height of a rectangle of many steps: of a pitch of 0, its rows are the same page.
const LONG: u32 = 0x1000 << 16 | 0x400;

/// XY_COLOR_BLT of 32-bit pixels.
fn fill(address: u32, corner: u32, colour: u32) -> [u32; 6] {
    [0x5430_0004, 0x03f0_0000, 0, corner, address, colour]
}

impl EngineBench {
    fn tail(&self) -> u32 {
        self.gt.engine_value(self.engine.id, 0x30)
    }

    fn head(&self) -> u32 {
        self.gt.engine_value(self.engine.id, 0x34)
    }

    /// Steps until the ring is empty; returns the number of steps.
    fn finish(&mut self) -> u32 {
        for steps in 0..10_000 {
            if self.head() == self.tail() && !self.engine.in_batch() {
                return steps;
            }
            assert_eq!(self.step(), Outcome::Progress);
        }
        panic!("the ring is not executed");
    }
}

/// ILK-010, IVB-031: surfaces are in the PPGTT while it is enabled, also for commands of the ring and of a batch in the
/// GGTT; else in the GGTT.
#[test]
fn surfaces_are_in_the_ppgtt_while_it_is_enabled() {
    proves!(
        [IVB_031, ILK_010, ILK_041, ILK_086],
        "surfaces of blits are in the PPGTT while it is enabled, else in the GGTT"
    );
    let mut bench = EngineBench::new(BCS);
    bench.run(&fill(DATA, 0x1_0001, 1));
    bench.batch(BATCH, &fill(DATA + 4, 0x1_0001, 2));
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    bench.batch(BEHIND + BATCH, &fill(DATA + 8, 0x1_0001, 3));
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!([0, 4, 8].map(|at| bench.get(BEHIND + DATA + at)), [1, 2, 3]);
    assert_eq!([0, 4, 8].map(|at| bench.get(DATA + at)), [0; 3]);
    bench.gt.write(0x2_229c, 0x0200_0000, !0);
    bench.run(&fill(DATA, 0x1_0001, 4));
    assert_eq!((bench.get(DATA), bench.get(BEHIND + DATA)), (4, 1));
}

/// G67-121: state of setup commands lasts until the engine is reset.
#[test]
fn setup_state_lasts_until_a_reset() {
    let mut bench = EngineBench::new(BCS);
    bench.run(&[0x4470_0007, 0x83f0_0040, 0, 0, DATA, 0, 0x55, 0, 0]);
    bench.batch(BEHIND + BATCH, &[0x4940_0001, 0x1_0001, 0x2_0003]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!([0x40, 0x44, 0x48, 0x4c].map(|at| bench.get(BEHIND + DATA + at)), [0, 0x55, 0x55, 0]);
    bench.engine.reset();
    bench.run(&[0x4940_0001, 0x3_0003, 0x4_0004]);
    assert_eq!(bench.get(BEHIND + DATA + 3 * 0x40 + 12), 0, "no surface, no raster operation");
}

/// G67-121, IVB-002: BCS_SWCTRL is a masked register of the copy engine alone, which selects Y tiling; a reset of the
/// engine's domain clears it.
#[test]
fn the_control_register_selects_y_tiling() {
    proves!(
        [IVB_002, ILK_064, ILK_069],
        "BCS_SWCTRL is a masked register, which selects Y tiling; without it tiled surfaces are X tiled"
    );
    let mut bench = EngineBench::new(BCS);
    let tiled = |at: u32| {
        let mut dwords = fill(DATA, (at + 1) << 16 | 5, at);
        dwords[0] |= 1 << 11;
        dwords[1] |= 128 / 4;
        dwords[2] = at << 16 | 4;
        dwords
    };
    bench.run(&[&[MI_LOAD_REGISTER_IMM | 1, 0x2_2200, 0x0002_0002][..], &tiled(1)].concat());
    assert_eq!((bench.register(BCS_SWCTRL), bench.get(BEHIND + DATA + 512 + 16)), (2, 1));
    bench.gt.write(0x2_2200, 0x0001_0001, !0);
    assert_eq!(bench.register(BCS_SWCTRL), 3, "masked");
    bench.gt.write(0x2_2200, 0x0003_0000, !0);
    bench.run(&tiled(2));
    assert_eq!(bench.get(BEHIND + DATA + 2 * 512 + 16), 2, "X");
    bench.gt.write(0x2_2200, 0x0003_0003, !0);
    bench.gt.reset_domains(1 << 1);
    assert_eq!(bench.register(BCS_SWCTRL), 3, "the render domain");
    bench.gt.reset_domains(1 << 3);
    assert_eq!(bench.register(BCS_SWCTRL), 0);
    assert!(bench.gt.registers.decode(0x1_2200).is_none() && bench.gt.registers.decode(0x2200).is_none());
}

/// IVB-010: tiled surfaces are swizzled in the mode of ARB_MODE: bit 6 of the second row of an X tile is inverted.
#[test]
fn tiled_surfaces_are_swizzled_by_the_mode_of_the_arbiter() {
    let mut bench = EngineBench::new(BCS);
    let tiled = |colour: u32| {
        let mut dwords = fill(DATA, 2 << 16 | 1, colour);
        dwords[0] |= 1 << 11;
        dwords[1] |= 512 / 4;
        dwords[2] = 1 << 16;
        dwords
    };
    for (mode, at) in [(0x0020_0020, 0x240), (0x0020_0000, 0x200)] {
        bench.gt.write(0x4030, mode, !0);
        bench.run(&tiled(mode));
        assert_eq!(bench.get(BEHIND + DATA + at), mode, "{mode:#x}");
    }
}

/// IVB-010: without translation, addresses of commands, stores and surfaces are those of the guest's memory.
#[test]
fn accesses_are_not_translated_in_the_mode_of_the_arbiter() {
    proves!(
        IVB_010,
        "with bit 14 of ARB_MODE, addresses of both spaces are physical ones: of rings, batches, stores, surfaces and the \
         status page"
    );
    let mut bench = EngineBench::new(BCS);
    bench.run(&[&[0x1000_0002, 0, DATA, 1][..], &fill(DATA + 4, 0x1_0001, 2)].concat());
    assert_eq!([0, 4].map(|at| bench.get(BEHIND + DATA + at)), [1, 2]);
    // The ring and the status page are moved in the GGTT; in memory they are where they were.
    (1..16).for_each(|page| bench.gt.ggtt.set(page, Pte((page % 15 + 1) << 12 | 1)));
    bench.write(0x4030, 0x4000_4000);
    bench.write(0x2_2098, !1);
    bench.batch(BATCH, &[&[0x1000_0002, 0, DATA, 3][..], &fill(DATA + 4, 0x1_0001, 4)].concat());
    bench.put(STATUS, 0xffff);
    bench.run(&[0x1880_0100, BATCH, 0x1040_0002, 0, DATA + 8, 5, 0x0100_0000, 0]);
    assert_eq!([0, 4, 8].map(|at| bench.get(DATA + at)), [3, 4, 5]);
    assert_eq!([0, 4].map(|at| bench.get(BEHIND + DATA + at)), [1, 2]);
    assert_eq!(bench.get(STATUS), 0);
    // The translations are used again; the directory has been moved by nothing.
    bench.write(0x4030, 0x4000_0000);
    (1..16).for_each(|page| bench.gt.ggtt.set(page, Pte(page << 12 | 1)));
    bench.run(&[0x1000_0002, 0, DATA, 6]);
    assert_eq!((bench.get(DATA), bench.get(BEHIND + DATA)), (3, 6));
}

/// A long rectangle takes many steps, in which the head stays at its command; the commands behind it wait.
#[test]
fn long_rectangles_take_many_steps() {
    let mut bench = EngineBench::new(BCS);
    bench.run(&[&fill(DATA, LONG, 7)[..], &[MI_NOOP | WRITE_NOPID | 9, 0]].concat());
    assert_eq!((bench.head(), bench.register(0x94), bench.register(0x74)), (0, 0, RING));
    assert_eq!(bench.register(0x9c) & 1 << 9, 0, "not idle");
    let steps = bench.finish();
    assert!((4..64).contains(&steps), "{steps} steps for 16 MiB");
    assert_eq!((bench.register(0x94), bench.register(0x9c)), (9, 1 << 9));
    // A batch of blits that take a step each.
    bench.batch(BEHIND + BATCH, &[fill(DATA, 0x200 << 16 | 0x400, 8), fill(DATA + 0x40, 0x200 << 16 | 1, 9)].concat());
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    bench.finish();
    assert_eq!((bench.get(BEHIND + DATA), bench.get(BEHIND + DATA + 0x40)), (8, 9));
}

/// Many blits in one batch do not hold the engine: a step ends when their cost reaches the limit of one.
#[test]
fn many_blits_take_several_steps() {
    let mut bench = EngineBench::new(BCS);
    let blits: Vec<u32> = (0..64).flat_map(|_| fill(DATA, 0x40 << 16 | 0x400, 7)).collect();
    bench.batch(BEHIND + BATCH, &blits);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert!((4..32).contains(&bench.finish()), "64 blits of 256 KiB");
}

/// IVB-055: a stopped parser completes the command, and is idle behind it.
#[test]
fn a_stopped_parser_completes_the_rectangle() {
    proves!(IVB_055, "a stopped parser completes the command, and is idle behind it");
    let mut bench = EngineBench::new(BCS);
    bench.run(&[&fill(DATA, LONG, 7)[..], &[MI_NOOP | WRITE_NOPID | 9, 0]].concat());
    bench.gt.write(0x2_209c, 0x0100_0100, !0);
    let mut steps = 0;
    while bench.gt.engine_runnable(BCS) {
        assert_eq!(bench.register(0x9c) & 1 << 9, 0, "not idle");
        assert_eq!(bench.step(), Outcome::Progress);
        steps += 1;
    }
    assert!((4..64).contains(&steps));
    assert_eq!((bench.head(), bench.register(0x94), bench.register(0x9c)), (6 * 4, 0, 3 << 8));
    bench.gt.write(0x2_209c, 0x0100_0000, !0);
    bench.finish();
    assert_eq!(bench.register(0x94), 9);
}

/// G67-110: a rectangle ends with a reset of the engine, or with its ring; the next command is the one at the head.
#[test]
fn a_reset_ends_the_rectangle() {
    for reset in [true, false] {
        let mut bench = EngineBench::new(BCS);
        bench.run(&fill(DATA, LONG, 7));
        if reset {
            bench.engine.reset();
            bench.gt.reset_activity(BCS);
        } else {
            bench.gt.write(0x2_203c, 0x1000, !0);
            assert!(bench.gt.take_restart(BCS));
            bench.engine.restart();
            assert!(!bench.gt.engine_runnable(BCS));
        }
        bench.gt.write(0x2_2034, 0, !0);
        bench.put(RING, MI_NOOP | WRITE_NOPID | 5);
        bench.gt.write(0x2_2030, 8, !0);
        bench.put(RING + 4, 0);
        bench.gt.write(0x2_203c, 0x1001, !0);
        assert_eq!(bench.step(), Outcome::Progress);
        assert_eq!((bench.register(0x94), bench.head()), (5, 8));
        assert!(bench.gt.engine_idle(BCS));
    }
}

/// IVB-039: a missing page ends the command with a fault of the copy engine; the engine continues behind it.
#[test]
fn a_missing_page_ends_the_rectangle() {
    proves!(IVB_039, "a missing page is a fault of the copy engine, with its address and direction");
    let mut bench = EngineBench::new(BCS);
    let mut copy = vec![0x54c0_0006 | 3 << 20, 0x03cc_1000, 0, 0x2_0400, 0x1_f000, 0, 0x1000, DATA];
    assert_eq!(bench.run(&[&copy[..], &[MI_NOOP | WRITE_NOPID | 3, 0]].concat()), Outcome::Progress);
    assert_eq!((bench.gt.read(0x4294), bench.register(0x94)), (0x1_f000 | 8 << 3 | 1, 3), "written");
    assert_eq!(bench.gt.read(0x40a0), 1);
    bench.gt.write(0x4294, 0, !0);
    // The second row of the source is behind the last page of the PPGTT, the first one is copied.
    copy[4] = 0x2000;
    copy[7] = 0xf000;
    bench.put(BEHIND + 0xf000, 0xcafe);
    bench.run(&copy);
    assert_eq!((bench.gt.read(0x4294), bench.get(BEHIND + 0x2000)), (0x1_0001, 0xcafe), "read");
}

/// Commands that are not modelled, of a wrong length or reserved are counted by name; the other engines do not have the
/// client (ILK-097).
#[test]
fn unmodelled_blits_are_counted() {
    proves!(ILK_097, "the render engine has no commands of the client 2D");
    let mut bench = EngineBench::new(BCS);
    bench.run(&[0x5440_0004, 0, 0, 0, 0, 0, 0x5430_0005, 0, 0, 0, 0, 0, 0, 0x5080_0000, 0]);
    bench.run(&[&[0x5c40_00fd_u32][..], &[0; 254]].concat());
    let skipped: Vec<_> = bench.engine.skipped().iter().map(|((_, name), count)| (*name, *count)).collect();
    assert_eq!(
        skipped,
        [("2D command", 1), ("XY_COLOR_BLT", 1), ("XY_MONO_SRC_COPY_IMMEDIATE_BLT", 1), ("XY_PAT_BLT", 1)]
    );
    let mut render = EngineBench::new(RCS);
    assert_eq!(render.run(&fill(DATA, 0x1_0001, 1)), Outcome::Halted);
    assert_eq!(render.register(0xb8), 1, "instruction error");
}
