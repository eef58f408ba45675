// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Each command as drivers send it, setup state, and what is not modelled.

use super::*;

const PAGES: u32 = 16;
const LEN: usize = (PAGES * PAGE) as usize;

fn linear(base: u32, pitch: i64) -> Picture {
    Picture { base, tile: Tile::Linear, cpp: 4, pitch, swizzled: false }
}

/// A fill of the reference with the plain raster operation.
fn fill(to: Picture, first: (i64, i64), last: (i64, i64), colour: u32) -> Operation {
    Operation { to, first, last, clip: None, operand: Operand::Colour(colour), code: 0xf0, mask: 3 }
}

/// i915: gt/intel_migrate.c, emit_copy and emit_clear of Gen6 and Gen7: pages by SRC_COPY_BLT and XY_COLOR_BLT.
#[test]
fn pages_are_copied_and_cleared_as_by_the_driver() {
    let mut bench = BlitBench::new(PAGES);
    let mut image = bench.fill_random(LEN, 3);
    let (size, page) = (4 * PAGE, PAGE as usize);
    bench
        .run(
            &[SRC_COPY_BLT | WRITE, 3 << 24 | 0xcc << 16 | PAGE, (size / PAGE) << 16 | PAGE, 8 * PAGE, PAGE, PAGE],
            1 << 20,
        )
        .unwrap();
    image.copy_within(page..5 * page, 8 * page);
    assert!(bench.read(0, LEN) == image);
    let corner = (size / PAGE) << 16 | (PAGE / 4);
    bench.run(&[XY_COLOR_BLT | WRITE, 3 << 24 | 0xf0 << 16 | PAGE, 0, corner, 2 * PAGE, 0xdead_beef], 1 << 20).unwrap();
    image[2 * page..6 * page].chunks_mut(4).for_each(|pixel| pixel.copy_from_slice(&0xdead_beef_u32.to_le_bytes()));
    assert!(bench.read(0, LEN) == image);
}

/// G67-121: XY_SETUP_MONO_PATTERN_SL_BLT with a solid pattern, and XY_SCANLINES_BLT, as xf86-video-intel (sna_blt.c) fills
/// boxes: without clipping, the clipping rectangle of zeros has no effect. The tiling is that of each command.
#[test]
fn scan_lines_are_filled_with_the_colour_of_the_setup() {
    let mut bench = BlitBench::new(PAGES);
    let mut image = bench.fill_random(LEN, 4);
    let control = 1 << 31 | 3 << 24 | 0xf0 << 16 | 512;
    let setup = [XY_SETUP_MONO_PATTERN_SL_BLT | WRITE, control, 0, 0, PAGE, 0x1111_1111, 0x2233_4455, 0, 0];
    assert_eq!(bench.run(&setup, 1), Ok(0));
    for (first, last) in [((3, 2), (9, 5)), ((0, 0), (1, 1)), ((-2, 3), (4, 4))] {
        bench.run(&[XY_SCANLINES_BLT, point(first.0, first.1), point(last.0, last.1)], 1 << 20).unwrap();
        fill(linear(PAGE, 512), first, last, 0x2233_4455).apply(&mut image);
    }
    bench.run(&[XY_SCANLINES_BLT | 1 << 11, point(100, 7), point(140, 12)], 1 << 20).unwrap();
    let tiled = Picture { tile: Tile::X, ..linear(PAGE, 2048) };
    fill(tiled, (100, 7), (140, 12), 0x2233_4455).apply(&mut image);
    assert!(bench.read(0, LEN) == image);
}

/// G67-121: with clipping, XY_PIXEL_BLT and XY_SCANLINES_BLT write inside the rectangle of the setup; its last corner is
/// outside; XY_SETUP_CLIP_BLT changes the rectangle alone.
#[test]
fn clipping_limits_pixels_and_scan_lines() {
    let mut bench = BlitBench::new(PAGES);
    let mut image = bench.fill_random(LEN, 5);
    let to = Picture { cpp: 2, ..linear(2 * PAGE, 256) };
    let control = 1 << 31 | 1 << 30 | 2 << 24 | 0x5a << 16 | 256;
    let setup =
        [XY_SETUP_MONO_PATTERN_SL_BLT, control, point(4, 4), point(10, 9), to.base, 0, 0xffff_1234, 0x1234_5678, 0];
    bench.run(&setup, 1).unwrap();
    let mut clip = [(4, 4), (10, 9)];
    for round in 0..2 {
        let operation =
            |first: (i64, i64), last| Operation { code: 0x5a, clip: Some(clip), ..fill(to, first, last, 0xffff_1234) };
        for (x, y) in [(4, 4), (3, 4), (4, 3), (9, 8), (10, 8), (9, 9), (-1, 5), (20, 20)] {
            bench.run(&[XY_PIXEL_BLT, point(x, y)], 1).unwrap();
            operation((x, y), (x + 1, y + 1)).apply(&mut image);
        }
        bench.run(&[XY_SCANLINES_BLT, point(0, 0), point(30, 7)], 1 << 20).unwrap();
        operation((0, 0), (30, 7)).apply(&mut image);
        assert!(bench.read(0, LEN) == image, "round {round}");
        clip = [(7, 2), (30, 6)];
        bench.run(&[XY_SETUP_CLIP_BLT, point(7, 2), point(30, 6)], 1).unwrap();
    }
}

/// G67-121: a copy that is clipped on the left and at the top reads the pixels that belong to the rest. A rectangle without
/// area, or with the corners exchanged, clips everything.
#[test]
fn clipping_does_not_move_the_source() {
    let mut bench = BlitBench::new(PAGES);
    let mut image = bench.fill_random(LEN, 6);
    for (clip, bit) in [([(5, 4), (9, 8)], 1), ([(9, 8), (5, 4)], 1), ([(5, 4), (5, 9)], 1), ([(7, 7), (8, 8)], 0)] {
        bench.run(&[XY_SETUP_CLIP_BLT, point(clip[0].0, clip[0].1), point(clip[1].0, clip[1].1)], 1).unwrap();
        let operation = Operation {
            clip: (bit == 1).then_some(clip),
            operand: Operand::From(linear(0, 512), (20, 3)),
            code: 0xcc,
            ..fill(linear(8 * PAGE, 512), (2, 2), (12, 12), 0)
        };
        bench.run(&operation.xy(0), 1 << 20).unwrap();
        operation.apply(&mut image);
        assert!(bench.read(0, LEN) == image, "{clip:?}");
    }
}

/// A negative pitch: rows are below each other in memory in the other order.
#[test]
fn rows_of_a_negative_pitch_are_in_descending_order() {
    let mut bench = BlitBench::new(PAGES);
    let mut image = bench.fill_random(LEN, 7);
    let operation = Operation {
        operand: Operand::From(linear(3 * PAGE, 128), (0, 0)),
        code: 0xcc,
        ..fill(linear(6 * PAGE, -256), (0, 0), (32, 16), 0)
    };
    bench.run(&operation.xy(0), 1 << 20).unwrap();
    operation.apply(&mut image);
    assert!(bench.read(0, LEN) == image);
}

/// Scan lines with a pattern that is not solid are not modelled, unless the raster operation does not depend on it; pixels
/// have no pattern.
#[test]
fn patterns_that_are_not_solid_are_not_modelled() {
    let mut bench = BlitBench::new(PAGES);
    let mono = [XY_SETUP_MONO_PATTERN_SL_BLT | WRITE, 3 << 24 | 512, 0, 0, PAGE, 1, 2, 3, 4];
    let colour = [XY_SETUP_BLT | WRITE, 1 << 31 | 3 << 24 | 512, 0, 0, PAGE, 1, 2, 3 * PAGE];
    for setup in [&mono[..], &colour[..]] {
        for (code, modelled) in [(0xf0, false), (0x5a, false), (0x0f, false), (0x55, true), (0x00, true), (0xff, true)]
        {
            let mut setup = setup.to_vec();
            setup[1] |= code << 16;
            bench.run(&setup, 1).unwrap();
            let lines = bench.decode(&[XY_SCANLINES_BLT, 0, point(4, 4)]);
            assert_eq!(matches!(lines, Ok(Some(_))), modelled, "{code:#x}");
            assert_eq!(matches!(lines, Err(BlitError::Unmodelled { .. })), !modelled);
            assert!(bench.decode(&[XY_PIXEL_BLT, 0]).unwrap().is_some());
        }
    }
}

/// Commands that are not modelled, and lengths that a command does not have, are errors and change no state.
#[test]
fn unmodelled_commands_are_errors() {
    let mut bench = BlitBench::new(PAGES);
    let mut count = 0;
    for row in &blitter::COMMANDS {
        let header = 2 << 29 | u32::from(row.opcode) << 22;
        let length = row.lengths.first().copied().unwrap_or(6);
        if row.lengths.is_empty() {
            let error = bench.decode(&vec![header | (length as u32 - 2); length]).unwrap_err();
            assert_eq!(error.to_string(), format!("{}: opcode = {} is not modelled", row.name, row.opcode));
            count += 1;
        }
        for wrong in [length - 1, length + 1].into_iter().filter(|wrong| *wrong >= 2 && !row.lengths.is_empty()) {
            let error = bench.decode(&vec![header | (wrong as u32 - 2); wrong]).unwrap_err();
            assert_eq!(error, BlitError::Length { command: row.name, dwords: wrong });
        }
    }
    assert_eq!(count, 17);
}
