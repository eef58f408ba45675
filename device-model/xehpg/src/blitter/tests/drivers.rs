// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands exactly as xe and i915 send them.

use super::*;
use crate::command::{XE_HPG_COMMANDS, blt};

/// xe: emit_xy_fast_copy; rows of 4096 bytes.
fn emit_copy(from: u64, to: u64, size: u32) -> [u32; 10] {
    [
        2 << 29 | 0x42 << 22 | 8,
        3 << 24 | 4096 | 1 << 31 | 1 << 30,
        0,
        ((size / 4096) << 16) | (4096 / 4),
        low(to),
        high(to),
        0,
        4096,
        low(from),
        high(from),
    ]
}

/// xe: emit_clear_main_copy.
pub fn emit_clear(to: u64, size: u32, colour: u32) -> [u32; 16] {
    let mut dwords = [0; 16];
    dwords[..6].copy_from_slice(&[
        2 << 29 | 0x44 << 22 | 2 << 19 | 14,
        3 << 22 | 4095,
        0,
        ((size / 4096) << 16) | (4096 / 4),
        low(to),
        high(to),
    ]);
    dwords[7..11].fill(colour);
    dwords
}

/// Contract B.9: headers of the three commands used by the kernel drivers and of those added by IGT.
#[test]
fn table() {
    proves_table!(BLT_001, "opcode and length of each command");
    for (header, name, dwords) in [
        (emit_copy(0, 0, 0)[0], "XY_FAST_COPY_BLT", 10),
        (emit_clear(0, 0, 0)[0], "XY_FAST_COLOR_BLT", 16),
        (2 << 29 | 0x48 << 22 | 3, "XY_CTRL_SURF_COPY_BLT", 5),
        (2 << 29 | 0x41 << 22 | 20, "XY_BLOCK_COPY_BLT", 22),
        (2 << 29 | 0x53 << 22 | 8, "XY_SRC_COPY_BLT", 10),
        (2 << 29 | 0x50 << 22 | 5, "XY_COLOR_BLT", 7),
        (2 << 29 | 3 << 22 | 1, "XY_SETUP_CLIP_BLT", 3),
    ] {
        let command = blt::lookup(XE_HPG_COMMANDS.blt, header).unwrap();
        assert_eq!((command.name, command.dwords(header)), (name, dwords));
        assert!(command.lengths.contains(&(dwords as usize)));
    }
    assert!(blt::lookup(XE_HPG_COMMANDS.blt, 0x42 << 22 | 8).is_none(), "not the 2D client");
    assert!(blt::lookup(XE_HPG_COMMANDS.blt, 2 << 29 | 0x5a << 22).is_none(), "MEM_COPY exists only on later cards");
}

/// Contract B.9: xe copies between local memory in scattered and large pages, and mapped and remote guest memory.
#[test]
fn xe_emit_copy() {
    proves!(BLT_005, "rows of 4096 bytes are copied, and no further row");
    for (from, to) in
        [(0, LARGE), (LARGE, 0), (0, MAPPED), (MAPPED, LARGE), (LARGE, REMOTE), (REMOTE, 0), (REMOTE, MAPPED)]
    {
        let mut bench = BlitBench::new();
        let data = bench.fill_random(from, MIB, 7);
        bench.write(to, &vec![0; MIB as usize]);
        bench.run(&emit_copy(from, to, 255 * 4096), 1 << 20);
        assert!(bench.read(to, 255 * 4096) == data[..255 * 4096], "from {from:#x} to {to:#x}");
        assert!(bench.read(to + 255 * 4096, 4096) == [0; 4096], "wrote beyond the rectangle");
    }
}

/// Contract B.9, E.2: a clear of 2 MiB, a fill, and NULL pages that drop writes and read zeros.
#[test]
fn xe_emit_clear_and_null_pages() {
    proves!(BLT_020, "a fill writes the colour to each pixel");
    let mut bench = BlitBench::new();
    bench.fill_random(0, 2 * MIB, 3);
    bench.run(&emit_clear(0, 2 << 20, 0), usize::MAX);
    assert!(bench.read(0, 2 * MIB).iter().all(|byte| *byte == 0));
    bench.run(&emit_clear(NULL_PAGES, 1 << 20, 0x1234_5678), usize::MAX);
    bench.run(&emit_clear(MAPPED, 2 << 20, 0x1234_5678), usize::MAX);
    assert!(bench.read(MAPPED, 2 * MIB).chunks(4).all(|pixel| pixel == 0x1234_5678u32.to_le_bytes()));
    bench.run(&emit_copy(NULL_PAGES, MAPPED, 1 << 20), usize::MAX);
    assert!(bench.read(MAPPED, MIB).iter().all(|byte| *byte == 0));
}

#[test]
fn fill_in_several_steps_continues_within_a_pixel() {
    proves!(BLT_020, "a linear fill with pixels of 12 bytes, in steps that end within a pixel");
    const PIXEL: u32 = 12;
    let colour = [0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0];
    // Shorter than two blocks; longer, in steps shorter and longer than a block.
    for (pixels, budget) in [(600, 1000), (2000, 1000), (2000, 5000)] {
        let mut bench = BlitBench::new();
        let mut dwords = [0; 16];
        let pitch = pixels * PIXEL;
        dwords[..6].copy_from_slice(&[
            2 << 29 | 0x44 << 22 | 4 << 19 | 14,
            pitch - 1,
            0,
            1 << 16 | pixels,
            low(LARGE),
            high(LARGE),
        ]);
        dwords[7..11].copy_from_slice(&colour);
        assert!(bench.run(&dwords, budget) > 1);
        let filled = bench.read(LARGE, pitch.into());
        let wrong = filled.iter().zip((0..PIXEL as u8).cycle()).position(|(byte, expected)| *byte != expected);
        assert_eq!(wrong, None, "{pixels} pixels in steps of {budget} bytes");
    }
}

/// i915: the fill of Wa_16018031267 in the per-context batch: 1 by 4 pixels of 8 bits, also in the GGTT.
#[test]
fn i915_workaround_fill() {
    proves!([BLT_004, BLT_005], "one pixel of 8 bits in each of four rows of 64 bytes");
    let mut bench = BlitBench::new();
    for page in 0..2 {
        bench.global_entry(page, FRAMES[2] + page * 4096);
    }
    let dwords = [
        2 << 29 | 0x44 << 22 | 14,
        3 << 22 | 0x3f,
        0,
        4 << 16 | 1,
        0x20,
        0,
        0,
        0xab,
        0,
        0,
        0,
        0,
        0,
        0x2000_4004,
        0x10,
        0,
    ];
    let mut blit = Blit::decode(&dwords).unwrap();
    assert_eq!(blit.command().name, "XY_FAST_COLOR_BLT");
    while bench.step(&mut blit, Space::Ggtt, 4096).unwrap() == Progress::More {}
    let written: Vec<usize> = (0..1024).filter(|at| bench.read(LARGE, 1024)[*at] == 0xab).collect();
    assert_eq!(written, [0x20, 0x60, 0xa0, 0xe0]);
}

/// A blit in steps of one row has the same result as in one step and takes one step per row. Steps are bounded.
#[test]
fn steps() {
    proves!(BLT_042, "a copy in steps of a row has the result of one step");
    let mut bench = BlitBench::new();
    let data = bench.fill_random(0, MIB, 5);
    assert_eq!(bench.run(&emit_copy(0, LARGE, 1 << 20), 4096), 256);
    assert!(bench.read(LARGE, MIB) == data);
    assert!(bench.run(&emit_copy(LARGE, LARGE + MIB, 1 << 20), usize::MAX) == 1);
    assert!(bench.read(LARGE + MIB, MIB) == data);
    assert!(bench.run(&emit_copy(LARGE, REMOTE, 1 << 20), 1 << 20) >= 32, "messages to the VMM cost budget");
}

/// IGT: intel_bb_emit_blt_copy ends a copy within one surface with XY_SETUP_CLIP_BLT.
#[test]
fn setup_clip_does_nothing() {
    assert_eq!(BlitBench::new().run(&[2 << 29 | 3 << 22 | 1, 0, 0], 1), 1);
}
