// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Copies and fills in all tilings and pixel sizes, compared per pixel.

use proptest::prelude::*;

use super::*;

/// Tilings as in the PRM: the bits of a byte's offset in its tile, most significant first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tile {
    Linear,
    X,
    Y,
    Four,
    SixtyFour,
}

impl Tile {
    fn bits(self, cpp: i64) -> &'static str {
        match (self, cpp) {
            (Tile::Linear, _) => "",
            (Tile::X, _) => "YYYXXXXXXXXX",
            (Tile::Y, _) => "XXXYYYYYXXXX",
            (Tile::Four, _) => "YYXYXXYYXXXX",
            (Tile::SixtyFour, 1) => "YYYXYYXYXXYYXXXX",
            (Tile::SixtyFour, 2 | 4) => "YYXXYYXYXXYYXXXX",
            (Tile::SixtyFour, _) => "YXXXYYXYXXYYXXXX",
        }
    }

    fn size(self, cpp: i64) -> (i64, i64) {
        let count = |letter| 1 << self.bits(cpp).chars().filter(|bit| *bit == letter).count();
        (count('X'), count('Y'))
    }
}

/// A surface of the reference model.
#[derive(Clone, Copy, Debug)]
struct Picture {
    base: u64,
    tile: Tile,
    cpp: i64,
    pitch: i64,
}

impl Picture {
    fn pixel(&self, x: i64, y: i64) -> usize {
        let mut column = x * self.cpp;
        let mut row = y;
        let base = self.base as i64;
        if self.tile == Tile::Linear {
            return (base + row * self.pitch + column) as usize;
        }
        let (width, height) = self.tile.size(self.cpp);
        let tile = row / height * (self.pitch / width) + column / width;
        let mut offset = 0;
        for (bit, letter) in self.tile.bits(self.cpp).chars().rev().enumerate() {
            let from = if letter == 'X' { &mut column } else { &mut row };
            offset |= (*from & 1) << bit;
            *from >>= 1;
        }
        (base + tile * width * height + offset) as usize
    }

    /// Pitch as encoded in the commands.
    fn pitch_field(&self) -> u32 {
        (if self.tile == Tile::Linear { self.pitch } else { self.pitch / 4 }) as u32
    }
}

const HALF: u64 = MIB;

/// Random numbers from which a case is derived.
type Dice = [u32; 12];

fn picture(base: u64, tile: Tile, cpp: i64, dice: u32) -> Picture {
    let (width, height) = tile.size(cpp);
    match tile {
        // A linear surface may start at any pixel, and so may its rows.
        Tile::Linear => {
            Picture { base: base + u64::from(dice >> 8 & 63) * 16, tile, cpp, pitch: 2048 + i64::from(dice % 40) * cpp }
        }
        _ => {
            let most = (HALF as i64 / (width * height * 2)).clamp(1, 4);
            Picture { base, tile, cpp, pitch: width * (1 + i64::from(dice) % most) }
        }
    }
}

/// Size of the rectangle, and its corners in two pictures, such that it is inside both.
fn place(dice: &Dice, from: &Picture, to: &Picture) -> (i64, i64, (i64, i64), (i64, i64)) {
    let columns = |picture: &Picture| picture.pitch / picture.cpp;
    let rows = |picture: &Picture| (HALF as i64 / 2 / picture.pitch).min(300);
    let width = i64::from(dice[0]) % columns(from).min(columns(to)).min(700);
    let height = i64::from(dice[1]) % rows(from).min(rows(to)).min(80);
    let at = |picture: &Picture, x: u32, y: u32| {
        (i64::from(x) % (columns(picture) - width), i64::from(y) % (rows(picture) - height))
    };
    (width, height, at(from, dice[2], dice[3]), at(to, dice[4], dice[5]))
}

fn copied(image: &mut [u8], from: &Picture, to: &Picture, size: (i64, i64), source: (i64, i64), corner: (i64, i64)) {
    let before = image.to_vec();
    for y in 0..size.1 {
        for x in 0..size.0 {
            let (a, b) = (from.pixel(source.0 + x, source.1 + y), to.pixel(corner.0 + x, corner.1 + y));
            image[b..b + to.cpp as usize].copy_from_slice(&before[a..a + to.cpp as usize]);
        }
    }
}

fn corners(at: (i64, i64), size: (i64, i64)) -> [u32; 2] {
    [point(at.0 as i32, at.1 as i32), point((at.0 + size.0) as i32, (at.1 + size.1) as i32)]
}

fn tile(choices: &'static [Tile]) -> impl Strategy<Value = Tile> {
    proptest::sample::select(choices)
}

const FAST_COPY: &[Tile] = &[Tile::Linear, Tile::X, Tile::Y, Tile::Four, Tile::SixtyFour];
const DG2: &[Tile] = &[Tile::Linear, Tile::X, Tile::Four, Tile::SixtyFour];
const LEGACY: &[Tile] = &[Tile::Linear, Tile::X];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Contract H.3 item 2: XY_FAST_COPY_BLT between all tilings, in one step and in many.
    #[test]
    fn fast_copy(
        tiles in (tile(FAST_COPY), tile(FAST_COPY)),
        depth in proptest::sample::select(&[(0u32, 1i64), (1, 2), (2, 2), (3, 4), (4, 8), (5, 16)]),
        dice: Dice,
        budget in proptest::sample::select(&[1usize, 700, 5000, 1 << 20]),
    ) {
        proves!([BLT_003, BLT_005, BLT_006, BLT_007], "copies between all tilings and pixel sizes, compared per pixel");
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, u64::from(dice[9]));
        let (from, to) = (picture(0, tiles.0, depth.1, dice[6]), picture(HALF, tiles.1, depth.1, dice[7]));
        let (width, height, source, corner) = place(&dice, &from, &to);
        let code = |tile| match tile { Tile::Linear => 0u32, Tile::X => 1, Tile::Y | Tile::Four => 2, Tile::SixtyFour => 3 };
        let four = |tile| u32::from(tile == Tile::Four);
        let [first, second] = corners(corner, (width, height));
        let budget = if tiles == (Tile::Linear, Tile::Linear) && budget == 1 { 64 } else { budget };
        bench.run(&[
            2 << 29 | 0x42 << 22 | code(from.tile) << 20 | code(to.tile) << 13 | 8,
            four(from.tile) << 31 | four(to.tile) << 30 | depth.0 << 24 | to.pitch_field(),
            first, second, low(to.base), high(to.base),
            point(source.0 as i32, source.1 as i32), from.pitch_field(), low(from.base), high(from.base),
        ], budget);
        copied(&mut image, &from, &to, (width, height), source, corner);
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }

    /// Contract H.3 item 2: XY_BLOCK_COPY_BLT, short and extended, with offsets into the surfaces.
    #[test]
    fn block_copy(
        tiles in (tile(DG2), tile(DG2)),
        depth in proptest::sample::select(&[(0u32, 1i64), (1, 2), (2, 4), (3, 8), (4, 12), (5, 16)]),
        dice: Dice,
        extended: bool,
        budget in proptest::sample::select(&[1usize, 5000, 1 << 20]),
    ) {
        proves!([BLT_004, BLT_005, BLT_006, BLT_007, BLT_008], "the same, with offsets into the surfaces");
        // 96-bit pixels have no tiled layout.
        let tiles = if depth.1 == 12 { (Tile::Linear, Tile::Linear) } else { tiles };
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, u64::from(dice[9]));
        let (from, to) = (picture(0, tiles.0, depth.1, dice[6]), picture(HALF, tiles.1, depth.1, dice[7]));
        let (width, height, source, corner) = place(&dice, &from, &to);
        let code = |tile| match tile { Tile::Linear => 0u32, Tile::X => 1, Tile::Four => 2, _ => 3 };
        // Part of the corner's position is in the offset; therefore the coordinates may be negative.
        let offset = |at: u32| (i64::from(at % 300), i64::from(at >> 16) % 300);
        let (enter_to, enter_from) = (offset(dice[10]), offset(dice[11]));
        let inside = |at: (i64, i64), offset: (i64, i64)| (at.0 - offset.0, at.1 - offset.1);
        let [first, second] = corners(inside(corner, enter_to), (width, height));
        let [origin, _] = corners(inside(source, enter_from), (0, 0));
        let mut dwords = vec![
            2 << 29 | 0x41 << 22 | depth.0 << 19 | if extended { 20 } else { 10 },
            code(to.tile) << 30 | 5 << 22 | (to.pitch_field() - 1),
            first, second, low(to.base), high(to.base), point(enter_to.0 as i32, enter_to.1 as i32),
            origin, code(from.tile) << 30 | (from.pitch_field() - 1), low(from.base), high(from.base),
            1 << 31 | point(enter_from.0 as i32, enter_from.1 as i32),
        ];
        if extended {
            let surface = 1 << 29 | (width as u32 & 0x3fff) << 14 | height as u32;
            dwords.extend([0, 0, 0, 0, surface, 0, 0, surface, 0, 0]);
        }
        bench.run(&dwords, if budget == 1 && tiles == (Tile::Linear, Tile::Linear) { 64 } else { budget });
        copied(&mut image, &from, &to, (width, height), source, corner);
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }

    /// Contract B.9: XY_FAST_COLOR_BLT in all pixel sizes and tilings.
    #[test]
    fn fast_color(
        tile in tile(DG2),
        depth in proptest::sample::select(&[(0u32, 1i64), (1, 2), (2, 4), (3, 8), (4, 12), (5, 16)]),
        dice: Dice,
        colour: [u32; 4],
        budget in proptest::sample::select(&[1usize, 5000, 1 << 20]),
    ) {
        proves!([BLT_004, BLT_005, BLT_020], "fills in all tilings and pixel sizes");
        let tile = if depth.1 == 12 && tile == Tile::SixtyFour { Tile::Linear } else { tile };
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, u64::from(dice[9]));
        let to = picture(HALF, tile, depth.1, dice[7]);
        let (width, height, _, corner) = place(&dice, &to, &to);
        let code = match tile { Tile::Linear => 0u32, Tile::X => 1, Tile::Four => 2, _ => 3 };
        let [first, second] = corners(corner, (width, height));
        bench.run(&[
            2 << 29 | 0x44 << 22 | depth.0 << 19 | 14, code << 30 | (to.pitch_field() - 1),
            first, second, low(to.base), high(to.base), 0,
            colour[0], colour[1], colour[2], colour[3], 0, 0, 0, 0, 0,
        ], if tile == Tile::Linear { budget.max(64) } else { budget });
        let pixel: Vec<u8> = colour.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        for y in 0..height {
            for x in 0..width {
                let at = to.pixel(corner.0 + x, corner.1 + y);
                if depth.1 == 12 && tile != Tile::Linear {
                    // The bytes of such a pixel are not contiguous.
                    let bytes = Picture { cpp: 1, ..to };
                    for byte in 0..12 {
                        image[bytes.pixel((corner.0 + x) * 12 + byte, corner.1 + y)] = pixel[byte as usize];
                    }
                } else {
                    image[at..at + depth.1 as usize].copy_from_slice(&pixel[..depth.1 as usize]);
                }
            }
        }
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }

    /// PRM "XY_SRC_COPY_BLT", "XY_COLOR_BLT": raster operations, channel masks, tiles X and (by BCS_SWCTRL) Y.
    #[test]
    fn raster_operations(
        tiles in (tile(LEGACY), tile(LEGACY)),
        depth in proptest::sample::select(&[(0u32, 1i64), (1, 2), (2, 2), (3, 4)]),
        dice: Dice,
        code in prop_oneof![Just(0xccu8), Just(0xf0), any::<u8>()],
        channels in 0u32..4,
        fill: bool,
        y_tiles in 0u32..4,
    ) {
        proves!([BLT_003, BLT_020, BLT_021, BLT_022, BLT_023], "each result is computed bit by bit from pattern, source and destination");
        let y = |tile, bit| if tile == Tile::X && y_tiles & bit != 0 { Tile::Y } else { tile };
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, u64::from(dice[9]));
        let from = picture(0, y(tiles.0, 1), depth.1, dice[6]);
        let to = picture(HALF, y(tiles.1, 2), depth.1, dice[7]);
        let (width, height, source, corner) = place(&dice, &from, &to);
        let [first, second] = corners(corner, (width, height));
        let tiled = |tile: Tile, bit: u32| u32::from(tile != Tile::Linear) << bit;
        let header = 2 << 29 | channels << 20 | tiled(to.tile, 11);
        let control = depth.0 << 24 | u32::from(code) << 16 | to.pitch_field();
        let mut dwords = vec![header, control, first, second, low(to.base), high(to.base)];
        if fill {
            dwords[0] |= 0x50 << 22 | 5;
            dwords.push(dice[8]);
        } else {
            dwords[0] |= 0x53 << 22 | tiled(from.tile, 15) | 8;
            dwords.extend([point(source.0 as i32, source.1 as i32), from.pitch_field(), low(from.base), high(from.base)]);
        }
        let mut blit = Blit::decode_with(&dwords, y_tiles).unwrap();
        while bench.step(&mut blit, SPACE, 9000).unwrap() == Progress::More {}
        let before = image.clone();
        for y in 0..height {
            for x in 0..width {
                let (a, b) = (from.pixel(source.0 + x, source.1 + y), to.pixel(corner.0 + x, corner.1 + y));
                for byte in 0..depth.1 as usize {
                    if depth.1 == 4 && channels >> u32::from(byte == 3) & 1 == 0 {
                        continue;
                    }
                    let (p, s) = if fill { (dice[8].to_le_bytes()[byte], 0) } else { (0, before[a + byte]) };
                    let d = before[b + byte];
                    image[b + byte] = (0..8).fold(0, |out, bit| {
                        let index = (p >> bit & 1) << 2 | (s >> bit & 1) << 1 | (d >> bit & 1);
                        out | (code >> index & 1) << bit
                    });
                }
            }
        }
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }

    /// PRM "XY_SRC_COPY_BLT": a copy within one surface reads each pixel before it is overwritten.
    #[test]
    fn overlapping(
        tile in tile(LEGACY),
        dice: Dice,
        budget in proptest::sample::select(&[1000usize, 1 << 20]),
    ) {
        proves!(BLT_024, "a copy within one surface is that of a copy of the surface");
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, u64::from(dice[9]));
        let picture = picture(0, tile, 4, dice[6]);
        let (width, height, source, corner) = place(&dice, &picture, &picture);
        let [first, second] = corners(corner, (width, height));
        let tiled = u32::from(tile == Tile::X);
        bench.run(&[
            2 << 29 | 0x53 << 22 | 3 << 20 | tiled << 15 | tiled << 11 | 8, 3 << 24 | 0xcc << 16 | picture.pitch_field(),
            first, second, low(picture.base), high(picture.base),
            point(source.0 as i32, source.1 as i32), picture.pitch_field(), low(picture.base), high(picture.base),
        ], budget);
        copied(&mut image, &picture, &picture, (width, height), source, corner);
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }
}
