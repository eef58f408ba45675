// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generated images for the tests.
#![allow(dead_code, reason = "each test target uses a part of the module")]

use arctic_afuc::container::Image;
use arctic_afuc::isa::{ENCODINGS, Encoding, Generation};
use arctic_afuc::names::{ControlSet, PACKET_TABLE};

/// A linear congruential generator: the images are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }
}

/// A word of a random row, with ignored bits in one word of eight.
pub fn instruction(random: &mut Random, rows: &[&Encoding]) -> u32 {
    let row = rows[random.below(rows.len())];
    let free = if random.below(8) == 0 { !row.mask } else { !row.mask & !row.ignored };
    row.matching | random.next() & free
}

/// Words of code, data and a packet table; the third of the images has no table.
pub fn section(random: &mut Random, generation: Generation, first: u32, length: usize) -> Vec<u32> {
    let rows: Vec<&Encoding> = ENCODINGS.iter().filter(|row| row.generations.has(generation)).collect();
    let mut words = vec![first, 0];
    while words.len() < length {
        words.push(match random.below(12) {
            0 => random.next(),
            1 => random.next() & 0xffff,
            _ => instruction(random, &rows),
        });
    }
    words.truncate(length);
    if length > 2 && random.below(3) != 0 {
        words.resize(words.len().next_multiple_of(8), generation.nop_literal(0));
        let code = words.len();
        words[1] = generation.nop_literal(u32::try_from(code).unwrap());
        words.extend((0..PACKET_TABLE).map(|_| u32::try_from(random.below(code)).unwrap()));
    }
    words
}

/// An image of at least `length` words; on a7xx with one to three sections.
pub fn image(random: &mut Random, generation: Generation, length: usize) -> Image {
    let first = match generation {
        Generation::A5 => 0x005f_f001,
        Generation::A6 => 0x016e_e001,
        Generation::A7 => 0x0173_0001,
    };
    let first = if random.below(5) == 0 { random.next() } else { first };
    let mut words = section(random, generation, first, length);
    for _ in 0..if generation == Generation::A7 { random.below(3) } else { 0 } {
        let part = section(random, generation, 0x0100_0001, length / 2 + 1);
        words.extend(part);
    }
    words.extend((0..random.below(3)).map(|_| random.next()));
    let bytes: Vec<u8> = std::iter::once(0).chain(words).flat_map(u32::to_le_bytes).collect();
    let mut image = Image::from_bytes(&bytes, Some(generation)).unwrap();
    if random.below(10) == 0 {
        image.set = ControlSet::of(generation);
    }
    image
}
