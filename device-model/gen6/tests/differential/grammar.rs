// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Well-formed random commands, with a few that are not.

use std::ops::Range;

use arctic_test_support::differential::choice::{Choice, of};
use arctic_test_support::differential::minimise::Reducible;

/// The ring, of two pages: its address in the GGTT, and its size.
pub const RING: u32 = 0x1000;
pub const RING_BYTES: u32 = 0x2000;
/// The status page.
pub const STATUS: u32 = 0x3000;
/// Pages of data, which commands read and write.
pub const DATA: [u32; 2] = [0x4000, 0x5000];
/// Images of contexts.
pub const CONTEXTS: [u32; 2] = [0x6000, 0x8000];
/// Batches, one a page.
pub const BATCHES: [u32; 3] = [0xa000, 0xb000, 0xc000];
/// The page table of the PPGTT. It maps page n to page n + 16 of the guest, the GGTT page n to page n.
pub const TABLE: u32 = 0xe000;
/// Distance of the pages of the two spaces in the guest.
pub const BEHIND: u32 = 0x1_0000;
/// Size of the guest.
pub const GUEST: u32 = 0x2_0000;
/// First entry of the page directory in the GGTT's table.
pub const DIRECTORY: u32 = 0x400;
/// First of the pages of the GGTT that MI_UPDATE_GTT changes, up to [`DIRECTORY`].
pub const SPARE: u32 = 0x20;

/// Registers that commands load and store, all stored as they are.
pub const PLAIN: [u32; 12] =
    [0x2300, 0x2400, 0x2404, 0x2408, 0x240c, 0x2410, 0x2414, 0x2430, 0x2434, 0x2440, 0x2500, 0x5200];

/// Bits of a register's offset in commands.
pub const OFFSET_MASK: u32 = 0x03ff_fffc;

/// MI_BATCH_BUFFER_END.
pub const END: [u32; 1] = [0x0500_0000];

/// The class of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Render,
    Copy,
}

/// A program for an engine.
#[derive(Clone, Debug)]
pub struct Case {
    pub class: Class,
    /// Commands of the ring.
    pub ring: Vec<Vec<u32>>,
    /// Commands of the batches in the GGTT, then of those in the PPGTT.
    pub batches: Vec<Vec<Vec<u32>>>,
    /// Commands of the images in [`CONTEXTS`] at the start.
    pub images: [Vec<Vec<u32>>; CONTEXTS.len()],
    /// Values of [`PLAIN`] at the start, and of the condition codes and the semaphore registers.
    pub values: Vec<u32>,
    /// Head at the start.
    pub head: u32,
    /// The PPGTT is enabled.
    pub ppgtt: bool,
}

impl Case {
    /// Makes a case of at most `most` commands a batch.
    pub fn generate(choice: &mut dyn Choice, most: u32) -> Case {
        let class = of(choice, &[Class::Render, Class::Render, Class::Copy]);
        let mut part = |in_batch: bool| {
            let commands = choice.below(most);
            (0..commands).map(|_| command(choice, class, in_batch)).collect::<Vec<_>>()
        };
        let mut ring = part(false);
        // The ring must have room for all.
        while ring.iter().map(Vec::len).sum::<usize>() > 0x6e0 {
            ring.pop();
        }
        let mut batches: Vec<_> = (0..2 * BATCHES.len()).map(|_| part(true)).collect();
        for batch in &mut batches {
            while batch.iter().map(Vec::len).sum::<usize>() > 0x380 {
                batch.pop();
            }
            batch.push(END.to_vec());
        }
        let images = CONTEXTS.map(|_| (0..choice.below(4)).map(|_| image_command(choice)).collect());
        let values = (0..PLAIN.len() + 4).map(|_| small(choice)).collect();
        let head = choice.below(RING_BYTES / 8) * 8;
        Case { class, ring, batches, images, values, head, ppgtt: !choice.one_in(6) }
    }

    /// The ring's dwords, of an even number.
    pub fn ring_words(&self) -> Vec<u32> {
        let mut words = self.ring.concat();
        words.resize(words.len().next_multiple_of(2), 0);
        words
    }
}

impl Reducible for Case {
    fn lists(&self) -> usize {
        1 + self.batches.len()
    }

    fn length(&self, list: usize) -> usize {
        list.checked_sub(1).map_or(&self.ring, |batch| &self.batches[batch]).len()
    }

    fn without(&self, list: usize, range: Range<usize>) -> Case {
        let mut case = self.clone();
        match list.checked_sub(1) {
            None => case.ring.drain(range),
            Some(batch) => case.batches[batch].drain(range),
        };
        case
    }

    /// Each batch ends with MI_BATCH_BUFFER_END: nothing but zeros follows it.
    fn is_well_formed(&self) -> bool {
        self.batches.iter().all(|batch| batch.last().is_some_and(|words| words[..] == END))
    }

    /// Starts with empty images, the ring at 0, and all registers with 0.
    fn simpler(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        if self.images.iter().any(|commands| !commands.is_empty()) {
            cases.push(Case { images: Default::default(), ..self.clone() });
        }
        if self.head != 0 {
            cases.push(Case { head: 0, ..self.clone() });
        }
        if self.values.iter().any(|value| *value != 0) {
            cases.push(Case { values: vec![0; self.values.len()], ..self.clone() });
        }
        cases
    }
}

/// A value that is often equal to another one.
fn small(choice: &mut dyn Choice) -> u32 {
    if choice.one_in(4) { choice.dword() } else { choice.below(3) }
}

/// An address of data; rarely one without a translation, or across pages.
fn address(choice: &mut dyn Choice) -> u32 {
    match choice.below(24) {
        0 => 0x30_0000,
        1 => 0x40_0000,
        2 => 0x0400_0000,
        3 => 0x4ffc,
        4 => (SPARE + choice.below(4)) << 12,
        _ => of(choice, &DATA) + choice.below(16) * 4,
    }
}

/// A register in a command, sometimes with bits that are not of its offset.
fn register(choice: &mut dyn Choice) -> u32 {
    let other_bits = if choice.one_in(8) { choice.dword() & !OFFSET_MASK } else { 0 };
    of(choice, &PLAIN) | other_bits
}

/// MI_LOAD_REGISTER_IMM, sometimes of an even length: then a dword without a partner is at its end.
fn load_registers(choice: &mut dyn Choice) -> Vec<u32> {
    let pairs = 1 + choice.below(3);
    let bytes = if choice.one_in(3) { choice.below(16) << 8 } else { 0 };
    let even = u32::from(choice.one_in(6));
    let mut words = vec![0x1100_0000 | bytes | (2 * pairs - 1 + even)];
    words.extend((0..pairs).flat_map(|_| [register(choice), small(choice)]));
    words.extend((0..even).map(|_| register(choice)));
    words
}

/// A command of an image that software has written. Images of these commands are shorter than the part that every save
/// writes, so a save leaves none of them.
fn image_command(choice: &mut dyn Choice) -> Vec<u32> {
    match choice.below(6) {
        0 => vec![0],
        // Without a pair: too short for a batch.
        1 => vec![0x1100_0000, register(choice)],
        // NOPID, which contexts do not have.
        2 => vec![0x1100_0001, 0x2094, choice.below(3)],
        _ => load_registers(choice),
    }
}

/// A random command.
fn command(choice: &mut dyn Choice, class: Class, in_batch: bool) -> Vec<u32> {
    let ggtt = choice.below(2) << 22;
    let kind = choice.below(27);
    // The copy engine lacks some of them, which are errors there.
    let absent = class == Class::Copy && [2, 7, 8, 22, 25, 26].contains(&kind) && !choice.one_in(16);
    match if absent { 10 } else { kind } {
        0 => vec![choice.below(2) << 22 | choice.dword() & 0x3f_ffff],
        1 => vec![0x0100_0000],
        2 => vec![0x0200_0000 | choice.below(2) << 3],
        3 => vec![0x0400_0000 | choice.below(2)],
        4 => vec![0x0380_0000],
        5 if in_batch => vec![0x0500_0000],
        5 | 6 => vec![0x1880_0000 | choice.below(2) << 8, of(choice, &BATCHES)],
        7 | 8 => vec![0x0600_0000 | choice.below(4) << 6 | choice.below(4) << 3 | choice.below(4)],
        9 => {
            let bits = of(choice, &[1, 2, 3, 4, 5, 0]);
            let register = of(choice, &[0, 2]) << 16;
            let bits = (bits & 1) << 21 | (bits & 2) << 19 | (bits & 4) << 16;
            vec![0x0b00_0001 | ggtt | bits | register, small(choice), address(choice)]
        }
        10..=12 => {
            let data = 1 + choice.below(3);
            let mut words = vec![0x1000_0001 + data | ggtt, 0, address(choice)];
            words.extend((0..data).map(|_| small(choice)));
            words
        }
        13 => {
            let data = 1 + choice.below(2);
            let mut words = vec![0x1080_0000 | data, 0x40 + choice.below(0x3f0) * 4];
            words.extend((0..data).map(|_| choice.dword()));
            words
        }
        14 | 15 => load_registers(choice),
        16 => {
            let entries = 1 + choice.below(2);
            let mut words = vec![0x11c0_0000 | entries, (SPARE + choice.below(4)) << 12];
            words.extend(
                (0..entries)
                    .map(|_| if choice.one_in(3) { 0 } else { of(choice, &DATA) + choice.below(2) * BEHIND | 1 }),
            );
            words
        }
        17 | 18 => vec![0x1200_0001 | ggtt, register(choice), address(choice)],
        19 | 20 => vec![0x1480_0001 | ggtt, register(choice), address(choice)],
        21 => vec![0x1b00_0001 | ggtt | choice.below(2) << 21, small(choice), address(choice) & !7],
        22 => vec![0x0c00_0000, of(choice, &CONTEXTS) | 0x100 | of(choice, &[0xc, 0xd, 0xe, 0x9, 0x4, 0x8])],
        23 if class == Class::Render => {
            let length = 4 + choice.below(2);
            let flags = choice.below(2) << 24 | choice.below(3) << 14 | choice.below(2) << 8 | choice.below(2) << 19;
            let index = if choice.one_in(4) { 1 << 21 } else { 0 };
            let mut words = vec![0x7a00_0000 | (length - 2), flags | index, address(choice) & !7];
            words.extend((3..length).map(|_| choice.dword()));
            words
        }
        23 => {
            let length = 3 + choice.below(2);
            let flags = choice.below(2) << 14 | choice.below(2) << 8;
            let mut words = vec![0x1300_0000 | flags | (length - 2), address(choice) & !7 | choice.below(2) << 2];
            words.extend((2..length).map(|_| choice.dword()));
            words
        }
        24 => vec![0x0180_0000 | choice.below(7) << 16],
        25 if choice.one_in(8) => vec![of(choice, &[0x2000_0000, 0x0080_0000, 0x1000_0000, 0x0d00_0000])],
        _ => vec![0x1380_0003, address(choice), 0, choice.dword(), choice.dword()],
    }
}
