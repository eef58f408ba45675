// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fills and copies in all depths, tilings and raster operations, compared per pixel.

use proptest::prelude::*;

use super::*;

/// G67-121, BLT-021, BLT-022: all raster operations of all depths and byte masks, of the commands with surfaces and with
/// addresses.
#[test]
fn raster_operations_combine_the_operands_bit_by_bit() {
    const LEN: usize = 3 * PAGE as usize;
    let mut bench = BlitBench::new(3);
    let mut image = bench.fill_random(LEN, 5);
    for code in 0..=255u8 {
        for (cpp, format) in [(1, 0), (2, 0), (2, 1), (4, 0)] {
            let picture = |base| Picture { base, tile: Tile::Linear, cpp, pitch: 60, swizzled: false };
            let mask = u32::from(code) + format & 3;
            let operands = [Operand::Colour(0x1357_9bdf ^ u32::from(code)), Operand::From(picture(4090), (3, 1))];
            for operand in operands {
                let (first, last) = ((2, 1), (7, 4));
                let operation = Operation { to: picture(8180), first, last, clip: None, operand, code, mask };
                assert_ne!(bench.run(&operation.xy(format), 1 << 20), Ok(0));
                operation.apply(&mut image);
                assert!(bench.read(0, LEN) == image, "{code:#x} {cpp}: {operand:?}");
                // The same rectangle by address, width in bytes and height.
                let control = picture(0).depth(format) << 24 | u32::from(code) << 16 | 60;
                let (size, at) = (3 << 16 | (5 * cpp as u32), |base, x, y| picture(base).at(x, y, 0) as u32);
                let to = at(8180, 2, 1);
                let dwords = match operand {
                    Operand::Colour(colour) => vec![COLOR_BLT | mask << 20, control, size, to, colour],
                    Operand::From(..) => vec![SRC_COPY_BLT | mask << 20, control, size, to, 60, at(4090, 3, 1)],
                };
                assert_ne!(bench.run(&dwords, 1 << 20), Ok(0));
                operation.apply(&mut image);
                assert!(bench.read(0, LEN) == image, "{code:#x} {cpp}: {operand:?} by address");
            }
        }
    }
}

/// Pages of each of two surfaces.
const PAGES: u32 = 32;
const HALF: i64 = (PAGES * PAGE) as i64;

fn picture(base: u32, tile: Tile, cpp: i64, dice: u32) -> Picture {
    let picture = Picture { base, tile, cpp, pitch: 0, swizzled: dice >> 16 & 1 != 0 };
    match tile {
        Tile::Linear => {
            let base = base + (dice >> 8) % 64 * cpp as u32;
            Picture { base, pitch: 700 + i64::from(dice % 90) * cpp, ..picture }
        }
        Tile::X => Picture { pitch: 512 * (1 + i64::from(dice % 3)), ..picture },
        Tile::Y => Picture { pitch: 128 * (1 + i64::from(dice % 9)), ..picture },
    }
}

fn tile() -> impl Strategy<Value = Tile> {
    proptest::sample::select(&[Tile::Linear, Tile::X, Tile::Y])
}

/// Size in pixels of the part of a surface that is in its pages, with whole tiles.
fn extent(picture: &Picture) -> (i64, i64) {
    let rows = (HALF - 64 * 4) / picture.pitch;
    (picture.pitch / picture.cpp, if picture.tiled() { rows / 32 * 32 } else { rows })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// G67-121, ILK-053, ILK-064, IVB-010: fills and copies between linear, X and Y tiled surfaces with clipping, in few and in many
    /// steps.
    #[test]
    fn rectangles_of_all_tilings_are_those_of_the_reference(
        tiles in (tile(), tile()),
        depth in proptest::sample::select(&[(1i64, 0u32), (2, 0), (2, 1), (4, 0)]),
        fill: bool,
        clipped: bool,
        code in prop_oneof![Just(0xccu8), Just(0xf0), any::<u8>()],
        mask in prop_oneof![Just(3u32), 0u32..4],
        budget in proptest::sample::select(&[64usize, 5000, 1 << 20]),
        dice: [u32; 16],
    ) {
        let mut bench = BlitBench::new(2 * PAGES);
        let mut image = bench.fill_random(2 * HALF as usize, dice[0]);
        let to = picture(HALF as u32, tiles.1, depth.0, dice[2]);
        // One mode applies to both.
        let from = Picture { swizzled: to.swizzled, ..picture(0, tiles.0, depth.0, dice[1]) };
        let pick = |dice: u32, count: i64| i64::from(dice) % count;
        let (columns, rows) = (extent(&from).0.min(extent(&to).0), extent(&from).1.min(extent(&to).1));
        let (width, height) = (1 + pick(dice[3], columns), 1 + pick(dice[4], rows.min(90)));
        let corner = |picture: &Picture, x: u32, y: u32| {
            (pick(x, extent(picture).0 - width + 1), pick(y, extent(picture).1 - height + 1))
        };
        let (origin, first) = (corner(&from, dice[5], dice[6]), corner(&to, dice[7], dice[8]));
        let clip = clipped.then(|| {
            let at = |x: u32, y: u32| (first.0 - 3 + pick(x, width + 6), first.1 - 3 + pick(y, height + 6));
            [at(dice[9], dice[10]), at(dice[11], dice[12])]
        });
        let operation = Operation {
            to,
            first,
            last: (first.0 + width, first.1 + height),
            clip,
            operand: if fill { Operand::Colour(dice[13]) } else { Operand::From(from, origin) },
            code,
            mask,
        };
        if let Some([from, to]) = clip {
            bench.run(&[XY_SETUP_CLIP_BLT, point(from.0, from.1), point(to.0, to.1)], 1).unwrap();
        }
        (bench.swctrl, bench.swizzled) = (operation.swctrl(), to.swizzled);
        bench.run(&operation.xy(depth.1), budget).unwrap();
        operation.apply(&mut image);
        prop_assert!(bench.read(0, image.len()) == image);
    }

    /// BLT-024: a copy within one surface reads each pixel before it is overwritten: the engine chooses the direction by the
    /// coordinates.
    #[test]
    fn copies_within_a_surface_may_overlap(
        tile in tile(),
        cpp in proptest::sample::select(&[1i64, 2, 4]),
        budget in proptest::sample::select(&[1000usize, 1 << 20]),
        dice: [u32; 8],
    ) {
        let mut bench = BlitBench::new(PAGES);
        let mut image = bench.fill_random(HALF as usize, dice[0]);
        let picture = picture(0, tile, cpp, dice[1]);
        let (columns, rows) = extent(&picture);
        let pick = |dice: u32, count: i64| i64::from(dice) % count;
        let (width, height) = (1 + pick(dice[2], columns), 1 + pick(dice[3], rows.min(90)));
        let corner = |x: u32, y: u32| (pick(x, columns - width + 1), pick(y, (rows - height + 1).min(40)));
        let (origin, first) = (corner(dice[4], dice[5]), corner(dice[6], dice[7]));
        let last = (first.0 + width, first.1 + height);
        let operand = Operand::From(picture, origin);
        let operation = Operation { to: picture, first, last, clip: None, operand, code: 0xcc, mask: 3 };
        (bench.swctrl, bench.swizzled) = (operation.swctrl(), picture.swizzled);
        bench.run(&operation.xy(0), budget).unwrap();
        operation.apply(&mut image);
        prop_assert!(bench.read(0, image.len()) == image);
    }

    /// G67-121: SRC_COPY_BLT states the horizontal direction in bit 30, and the vertical one by negative pitches. With the
    /// directions for the position of the operands, each byte is read before it is overwritten.
    #[test]
    fn copies_by_address_have_separate_directions(
        raster in proptest::sample::select(&[0xccu8, 0x66]),
        budget in proptest::sample::select(&[1000usize, 1 << 20]),
        width in 1u32..2000,
        height in 1u32..20,
        distance in -3000i64..3000,
        seed: u32,
    ) {
        const PITCH: u32 = 2100;
        let mut bench = BlitBench::new(PAGES);
        let before = bench.fill_random(HALF as usize, seed);
        let from = 20_000u32;
        let to = (i64::from(from) + distance) as u32;
        let backwards = to > from;
        // From the last byte of the last row, or from the first byte of the first one.
        let last = if backwards { (height - 1) * PITCH + width - 1 } else { 0 };
        let pitch = if backwards { PITCH.wrapping_neg() & 0xffff } else { PITCH };
        bench.run(&[
            SRC_COPY_BLT, u32::from(backwards) << 30 | u32::from(raster) << 16 | pitch, height << 16 | width,
            to + last, pitch, from + last,
        ], budget).unwrap();
        let mut wanted = before.clone();
        for (row, x) in (0..height).flat_map(|row| (0..width).map(move |x| (row, x))) {
            let at = (row * PITCH + x) as usize;
            let (source, old) = (before[from as usize + at], before[to as usize + at]);
            wanted[to as usize + at] = if raster == 0xcc { source } else { source ^ old };
        }
        prop_assert!(bench.read(0, before.len()) == wanted);
    }
}
