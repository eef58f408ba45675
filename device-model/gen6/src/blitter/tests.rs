// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the copy engine against an independent per-pixel reference.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod commands;
mod hostile;
mod pixels;

use super::*;
use crate::command::blitter;
use crate::guest::Guest;
use crate::memory::{Ggtt, Pte};

const PAGE: u32 = 4096;
/// Opcodes in header bits 28:22, with the client and the length.
const XY_SETUP_BLT: u32 = 2 << 29 | 0x01 << 22 | 6;
const XY_SETUP_CLIP_BLT: u32 = 2 << 29 | 0x03 << 22 | 1;
const XY_SETUP_MONO_PATTERN_SL_BLT: u32 = 2 << 29 | 0x11 << 22 | 7;
const XY_PIXEL_BLT: u32 = 2 << 29 | 0x24 << 22;
const XY_SCANLINES_BLT: u32 = 2 << 29 | 0x25 << 22 | 1;
const COLOR_BLT: u32 = 2 << 29 | 0x40 << 22 | 3;
const SRC_COPY_BLT: u32 = 2 << 29 | 0x43 << 22 | 4;
const XY_COLOR_BLT: u32 = 2 << 29 | 0x50 << 22 | 4;
const XY_SRC_COPY_BLT: u32 = 2 << 29 | 0x53 << 22 | 6;
/// Both bits of the byte mask.
const WRITE: u32 = 3 << 20;

/// The copy engine with a GGTT of `pages` pages that are not in order in guest memory; the pages behind them are absent.
struct BlitBench {
    guest: Guest,
    ggtt: Ggtt,
    setup: Setup,
    swctrl: u32,
    swizzled: bool,
}

impl BlitBench {
    /// `pages` must not be a multiple of 7.
    fn new(pages: u32) -> Self {
        let ggtt = Ggtt::new(pages as usize * 4);
        (0..pages).for_each(|page| ggtt.set(page, Pte((page * 7 % pages) << 12 | 1)));
        let guest = Guest::new(0, (pages * PAGE) as usize);
        BlitBench { guest, ggtt, setup: Setup::default(), swctrl: 0, swizzled: false }
    }

    fn memory(&self) -> Memory<'_> {
        Memory::new(&self.ggtt, &self.guest)
    }

    fn read(&self, address: u32, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.memory().read(Space::Ggtt, address, &mut data).unwrap();
        data
    }

    fn write(&self, address: u32, data: &[u8]) {
        self.memory().write(Space::Ggtt, address, data).unwrap();
    }

    /// Fills memory from address 0 with pseudo-random data derived from `seed`, and returns it.
    fn fill_random(&self, len: usize, seed: u32) -> Vec<u8> {
        let mut state = u64::from(seed) << 1 | 1;
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let data: Vec<u8> = std::iter::repeat_with(next).take(len).collect();
        self.write(0, &data);
        data
    }

    fn decode(&mut self, dwords: &[u32]) -> Result<Option<Blit>, BlitError> {
        let command = blitter::lookup(&blitter::COMMANDS, dwords[0]);
        self.setup.execute(command, dwords, Tiles::new(self.swctrl, self.swizzled))
    }

    /// Executes a command in steps of `budget` bytes; returns the number of steps.
    fn run(&mut self, dwords: &[u32], budget: usize) -> Result<usize, Fault> {
        let Some(mut blit) = self.decode(dwords).unwrap() else { return Ok(0) };
        let mut steps = 1;
        while blit.step(&self.memory(), Space::Ggtt, budget)? == Progress::More {
            steps += 1;
            assert!(steps < 1 << 22, "the blit does not complete");
        }
        Ok(steps)
    }
}

/// Coordinates in a dword.
fn point(x: i64, y: i64) -> u32 {
    (y as u32) << 16 | x as u32 & 0xffff
}

/// A tiling as in the documents.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tile {
    Linear,
    X,
    Y,
}

/// A surface of the reference; the pitch is in bytes.
#[derive(Clone, Copy, Debug)]
struct Picture {
    base: u32,
    tile: Tile,
    cpp: i64,
    pitch: i64,
    /// Tiles are swizzled.
    swizzled: bool,
}

impl Picture {
    /// Offset in memory of a byte of a pixel, by the formulas of ILK-053; swizzling inverts bit 6 by bits 9 and 10 of X tiles
    /// and by bit 9 of Y tiles (G67-064).
    fn at(&self, x: i64, y: i64, byte: i64) -> usize {
        let (column, base) = (x * self.cpp + byte, i64::from(self.base));
        let offset = match self.tile {
            Tile::Linear => y * self.pitch + column,
            Tile::X => {
                let row_size = self.pitch / 512 * 4096;
                row_size * (y / 8) + 4096 * (column / 512) + 512 * (y % 8) + column % 512
            }
            Tile::Y => {
                let row_size = self.pitch / 128 * 4096;
                row_size * (y / 32) + 4096 * (column / 128) + 512 * (column % 128 / 16) + 16 * (y % 32) + column % 16
            }
        };
        let swizzle = match self.tile {
            Tile::X if self.swizzled => (offset >> 9 ^ offset >> 10) & 1,
            Tile::Y if self.swizzled => offset >> 9 & 1,
            _ => 0,
        };
        (base + (offset ^ swizzle << 6)) as usize
    }

    fn tiled(&self) -> bool {
        self.tile != Tile::Linear
    }

    /// The pitch as commands have it.
    fn pitch(&self) -> u32 {
        (if self.tiled() { self.pitch / 4 } else { self.pitch }) as u32 & 0xffff
    }

    /// Code of the colour depth in bits 25:24, for `format` 0 or 1 of 16 bits.
    fn depth(&self, format: u32) -> u32 {
        match self.cpp {
            1 => 0,
            2 => 1 + format % 2,
            _ => 3,
        }
    }
}

/// Pattern or source of an operation of the reference.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Colour(u32),
    /// A surface, and the pixel for the first one of the rectangle.
    From(Picture, (i64, i64)),
}

/// An operation of the reference: a rectangle of pixels from `first` to before `last`, of which those inside `clip` are
/// written, if there is one.
#[derive(Clone, Copy, Debug)]
struct Operation {
    to: Picture,
    first: (i64, i64),
    last: (i64, i64),
    clip: Option<[(i64, i64); 2]>,
    operand: Operand,
    code: u8,
    /// Bit 0: colours of 32-bit pixels are written, bit 1: alpha.
    mask: u32,
}

impl Operation {
    /// Memory after the operation, one bit after the other. The operand that is missing is 0.
    fn apply(&self, image: &mut [u8]) {
        let before = image.to_vec();
        let inside = |x: i64, y: i64| {
            self.clip.is_none_or(|[from, to]| (from.0..to.0).contains(&x) && (from.1..to.1).contains(&y))
        };
        for (x, y) in (self.first.1..self.last.1).flat_map(|y| (self.first.0..self.last.0).map(move |x| (x, y))) {
            if !inside(x, y) {
                continue;
            }
            for byte in 0..self.to.cpp {
                if self.to.cpp == 4 && self.mask >> u32::from(byte == 3) & 1 == 0 {
                    continue;
                }
                let at = self.to.at(x, y, byte);
                let (p, s) = match self.operand {
                    Operand::Colour(colour) => (colour.to_le_bytes()[byte as usize], 0),
                    Operand::From(from, origin) => {
                        (0, before[from.at(origin.0 + x - self.first.0, origin.1 + y - self.first.1, byte)])
                    }
                };
                let d = before[at];
                image[at] = (0..8).fold(0, |out, bit| {
                    let index = (p >> bit & 1) << 2 | (s >> bit & 1) << 1 | d >> bit & 1;
                    out | (self.code >> index & 1) << bit
                });
            }
        }
    }

    /// The XY command of the operation, with `format` of 16 bits.
    fn xy(&self, format: u32) -> Vec<u32> {
        let header = self.mask << 20 | u32::from(self.to.tiled()) << 11;
        let clip = u32::from(self.clip.is_some()) << 30;
        let control = clip | self.to.depth(format) << 24 | u32::from(self.code) << 16 | self.to.pitch();
        let corners = [self.first, self.last].map(|(x, y)| point(x, y));
        let mut dwords = vec![header, control, corners[0], corners[1], self.to.base];
        match self.operand {
            Operand::Colour(colour) => {
                dwords[0] |= XY_COLOR_BLT;
                dwords.push(colour);
            }
            Operand::From(from, origin) => {
                dwords[0] |= XY_SRC_COPY_BLT | u32::from(from.tiled()) << 15;
                dwords.extend([point(origin.0, origin.1), from.pitch(), from.base]);
            }
        }
        dwords
    }

    /// BCS_SWCTRL for its tilings.
    fn swctrl(&self) -> u32 {
        let source = matches!(self.operand, Operand::From(Picture { tile: Tile::Y, .. }, _));
        u32::from(self.to.tile == Tile::Y) << 1 | u32::from(source)
    }
}
