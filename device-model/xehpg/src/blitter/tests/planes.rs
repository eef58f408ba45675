// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Planes of arrays and volumes: copies and fills of one plane, compared per pixel with all others.

use proptest::prelude::*;

use super::*;
use crate::blitter::BlitError;

/// Bits of a byte's offset in its tile, most significant first: column, row and slice.
type Bits = &'static str;

const TILE_4: Bits = "YYXYXXYYXXXX";
/// Tile64 of planes and of volumes by the code of the colour depth, in gmmlib's order (`CpuSwizzleBlt.c`).
const PLANES: [(u32, i64, Bits); 5] = [
    (0, 1, "YYYXYYXYXXYYXXXX"),
    (1, 2, "YYXXYYXYXXYYXXXX"),
    (2, 4, "YYXXYYXYXXYYXXXX"),
    (3, 8, "YXXXYYXYXXYYXXXX"),
    (5, 16, "YXXXYYXYXXYYXXXX"),
];
const VOLUMES: [(u32, i64, Bits); 5] = [
    (0, 1, "ZZZXYYZYZXYYXXXX"),
    (1, 2, "ZZZYYXZYZXYYXXXX"),
    (2, 4, "ZZYXYXZYZXYYXXXX"),
    (3, 8, "ZZYXXXZYZXYYXXXX"),
    (5, 16, "ZZYXXXZYZXYYXXXX"),
];

/// A surface of the reference model: planes of `rows` rows of `pitch` bytes.
#[derive(Clone, Copy, Debug)]
struct Stack {
    base: u64,
    bits: Bits,
    tiling: u32,
    volume: bool,
    pitch: i64,
    rows: i64,
}

impl Stack {
    fn count(&self, letter: char) -> i64 {
        1 << self.bits.chars().filter(|bit| *bit == letter).count()
    }

    /// Address of the byte at column `x` of row `y` of plane `z`.
    fn byte(&self, x: i64, y: i64, z: i64) -> usize {
        let base = self.base as i64;
        // Planes that are not in the same tiles are rows further down.
        let (y, z) = if self.bits.contains('Z') { (y, z) } else { (y + z * self.rows, 0) };
        if self.bits.is_empty() {
            return (base + y * self.pitch + x) as usize;
        }
        let (width, height, depth) = (self.count('X'), self.count('Y'), self.count('Z'));
        let tiles_of_plane = self.rows / height * (self.pitch / width);
        let tile = z / depth * tiles_of_plane + y / height * (self.pitch / width) + x / width;
        let mut places = [x, y, z];
        let mut offset = 0;
        for (bit, letter) in self.bits.chars().rev().enumerate() {
            let from = &mut places["XYZ".find(letter).unwrap()];
            offset |= (*from & 1) << bit;
            *from >>= 1;
        }
        (base + tile * (width * height * depth) + offset) as usize
    }

    fn control(&self, compressed: bool) -> u32 {
        let pitch = if self.bits.is_empty() { self.pitch } else { self.pitch / 4 };
        let compression = if compressed { 1 << 29 | 5 << 18 } else { 0 };
        self.tiling << 30 | compression | (pitch as u32 - 1)
    }

    /// The three dwords that describe the surface and choose a plane.
    fn description(&self, plane: u32) -> [u32; 3] {
        [if self.volume { 2 << 29 } else { 1 << 29 }, (self.rows as u32 / 4) << 4, plane << 21]
    }
}

/// Surfaces of 48 rows at most, with the code of their colour depth and the bytes of a pixel.
fn stack(kind: usize, depth: usize, base: u64) -> Stack {
    let (_, cpp, plane) = PLANES[depth];
    let (.., volume) = VOLUMES[depth];
    let (bits, tiling, volume) =
        [("", 0, false), (TILE_4, 2, false), (TILE_4, 2, true), (plane, 3, false), (volume, 3, true)][kind];
    let stack = Stack { base, bits, tiling, volume, pitch: 0, rows: 48 };
    match kind {
        0 => Stack { pitch: 40 * cpp, ..stack },
        // Planes of Tile4 and of Tile64 begin within a tile.
        1..=3 => Stack { pitch: stack.count('X'), ..stack },
        _ => Stack { pitch: 2 * stack.count('X'), rows: 64, ..stack },
    }
}

const SECOND: u64 = MIB;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A copy from plane to plane of surfaces of all kinds, in one step and in many, and compressed.
    #[test]
    fn copies_from_plane_to_plane(
        (from, to) in (0usize..5, 0usize..5),
        depth in 0usize..5,
        planes in (0u32..5, 0u32..5),
        corner in (0i64..8, 0i64..20),
        size in (1i64..9, 1i64..24),
        budget in proptest::sample::select(&[1usize, 5000, 1 << 20]),
        compressed: bool,
        seed: u64,
    ) {
        proves!([BLT_010, BLT_011], "copies between planes of arrays and volumes, compared per pixel with all others");
        let (code, cpp, _) = PLANES[depth];
        let (from, to) = (stack(from, depth, 0), stack(to, depth, SECOND));
        let mut bench = BlitBench::new();
        // Without NULL pages, all of local memory.
        let mut image = bench.fill_random(0, 2 * MIB, seed);
        let mut dwords = vec![
            2 << 29 | 0x41 << 22 | code << 19 | 20,
            to.control(compressed), point(3, 5), point(3 + size.0 as i32, 5 + size.1 as i32),
            low(to.base), high(to.base), 0,
            point(corner.0 as i32, corner.1 as i32), from.control(false), low(from.base), high(from.base), 0,
            0, 0, 0, 0,
        ];
        dwords.extend(to.description(planes.1));
        dwords.extend(from.description(planes.0));
        let budget = if from.bits.is_empty() && to.bits.is_empty() { budget.max(64) } else { budget };
        // Both may be in two tiles of a volume that the memory of the test does not have.
        let last = |stack: &Stack, plane: u32| stack.byte(12 * cpp, 47, plane.into());
        prop_assume!(last(&from, planes.0) < SECOND as usize && last(&to, planes.1) < 2 * MIB as usize);
        bench.run(&dwords, budget);
        for (y, x) in (0..size.1).flat_map(|y| (0..size.0 * cpp).map(move |x| (y, x))) {
            let source = from.byte(corner.0 * cpp + x, corner.1 + y, planes.0.into());
            image[to.byte(3 * cpp + x, 5 + y, planes.1.into())] = image[source];
        }
        if compressed {
            // In place, so that pixels of other blocks are as they were.
            dwords[0] |= 1 << 12;
            dwords[3] = point(3 + size.0 as i32, 5 + size.1 as i32);
            bench.run(&dwords, budget);
        }
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }

    /// A fill of one plane.
    #[test]
    fn fills_of_a_plane(
        kind in 0usize..5,
        depth in 0usize..5,
        plane in 0u32..5,
        size in (1i64..9, 1i64..40),
        colour: [u32; 4],
        budget in proptest::sample::select(&[1usize, 5000, 1 << 20]),
        seed: u64,
    ) {
        proves!([BLT_010, BLT_011], "fills of a plane of arrays and volumes, compared per pixel with all others");
        let (code, cpp, _) = PLANES[depth];
        let to = stack(kind, depth, 0);
        prop_assume!(to.byte(12 * cpp, 47, plane.into()) < 2 * MIB as usize);
        let mut bench = BlitBench::new();
        let mut image = bench.fill_random(0, 2 * MIB, seed);
        let mut dwords = vec![
            2 << 29 | 0x44 << 22 | code << 19 | 14, to.control(false),
            point(3, 5), point(3 + size.0 as i32, 5 + size.1 as i32), low(to.base), high(to.base), 0,
            colour[0], colour[1], colour[2], colour[3], 0, 0,
        ];
        dwords.extend(to.description(plane));
        bench.run(&dwords, budget.max(64));
        let pixel: Vec<u8> = colour.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        for (y, x) in (0..size.1).flat_map(|y| (0..size.0 * cpp).map(move |x| (y, x))) {
            image[to.byte(3 * cpp + x, 5 + y, plane.into())] = pixel[(x % cpp) as usize];
        }
        prop_assert!(bench.read(0, 2 * MIB) == image);
    }
}

/// Pixels of 96 bits have no tiled layout in a volume either.
#[test]
fn tile64_of_a_volume_has_no_layout_for_96_bits() {
    let mut dwords = [0; 22];
    (dwords[0], dwords[1], dwords[16]) = (2 << 29 | 0x41 << 22 | 4 << 19 | 20, 3 << 30, 2 << 29);
    assert!(matches!(Blit::decode(&dwords), Err(BlitError::Reserved { value: 96, .. })));
}
