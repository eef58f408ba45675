// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Copies and fills of 2 MiB by the copy engine, compared with `memcpy` and `memset` on the same core.
//!
//! Prints the ratio of the two speeds (1.0: equal; the target is 0.5). A result is the median of many short alternating
//! rounds, so that noise on the host affects both equally, with its quartiles. The surfaces are in the PPGTT, in pages that
//! are not consecutive in guest memory, as drivers have them.
#![allow(clippy::cast_possible_truncation, reason = "numbers are chosen by the benchmark")]

use std::hint::black_box;

use arctic_base::host::{Access, DmaView};
use arctic_gen6::blitter::{Progress, Setup, Tiles};
use arctic_gen6::command::blitter;
use arctic_gen6::memory::{Directory, Ggtt, Memory, Pte, Space};
use arctic_test_support::measure;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

const SIZE: usize = 2 << 20;
const BUFFERS: usize = 16;
const ROUNDS: usize = 301;
const PAGE: u32 = 4096;
/// Number of pages of the buffers.
const PAGES: u32 = (BUFFERS * SIZE) as u32 / PAGE;
/// Budget of a step, as that of the engine.
const STEP: usize = 2 << 20;
/// Bytes of a row of pixels.
const ROW: u32 = 4096;

/// Guest memory: the pages of the buffers, then those of the page tables.
struct Guest(MmapRegion);

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        self.0.get_slice(iova as usize, len).ok()
    }
}

/// The copy engine with the buffers at addresses 0, 2 MiB, 4 MiB … of a PPGTT.
struct BlitBench {
    guest: Guest,
    ggtt: Ggtt,
    setup: Setup,
    space: Space,
}

impl BlitBench {
    fn new() -> Self {
        let tables = PAGES.div_ceil(1024);
        let guest = Guest(MmapRegion::new(((PAGES + tables) * PAGE) as usize).expect("memory"));
        guest.0.get_slice(0, BUFFERS * SIZE).expect("inside").write_slice(&[0x11; BUFFERS * SIZE], 0).expect("inside");
        let ggtt = Ggtt::new(4096);
        for table in 0..tables {
            ggtt.set(table, Pte((PAGES + table) * PAGE | 1));
        }
        for page in 0..PAGES {
            // Multiplication by an odd number is a permutation of a power of two.
            let entry = (page * 77 % PAGES) * PAGE | 1;
            let at = (PAGES * PAGE + page * 4) as usize;
            guest.0.get_slice(at, 4).expect("inside").write_obj(entry, 0).expect("inside");
        }
        let space = Space::Ppgtt(Directory { first: 0, loaded: !0 });
        BlitBench { guest, ggtt, setup: Setup::default(), space }
    }

    fn run(&mut self, dwords: &[u32], swctrl: u32) {
        let command = blitter::lookup(&blitter::COMMANDS, dwords[0]);
        let blit = self.setup.execute(command, dwords, Tiles::new(swctrl, false));
        let mut blit = blit.expect("a valid command").expect("a blit");
        let memory = Memory::new(&self.ggtt, &self.guest);
        while blit.step(&memory, self.space, STEP).expect("mapped") == Progress::More {}
    }
}

/// A layout: linear, X or Y tiled.
#[derive(Clone, Copy, PartialEq)]
enum Tile {
    Linear,
    X,
    Y,
}

impl Tile {
    fn pitch(self) -> u32 {
        if self == Tile::Linear { ROW } else { ROW / 4 }
    }
}

/// The last corner of a buffer.
const CORNER: u32 = (SIZE as u32 / ROW) << 16 | ROW / 4;

/// XY_SRC_COPY_BLT of a buffer, with BCS_SWCTRL.
fn copy(from: (u32, Tile), to: (u32, Tile), raster: u32) -> ([u32; 8], u32) {
    let tiled = |tile: Tile, bit: u32| u32::from(tile != Tile::Linear) << bit;
    let header = 2 << 29 | 0x53 << 22 | 3 << 20 | tiled(from.1, 15) | tiled(to.1, 11) | 6;
    let control = 3 << 24 | raster << 16 | to.1.pitch();
    let swctrl = u32::from(from.1 == Tile::Y) | u32::from(to.1 == Tile::Y) << 1;
    ([header, control, 0, CORNER, to.0, 0, from.1.pitch(), from.0], swctrl)
}

/// XY_COLOR_BLT of a buffer, with BCS_SWCTRL.
fn fill(to: (u32, Tile), raster: u32) -> ([u32; 6], u32) {
    let header = 2 << 29 | 0x50 << 22 | 3 << 20 | u32::from(to.1 != Tile::Linear) << 11 | 4;
    let control = 3 << 24 | raster << 16 | to.1.pitch();
    ([header, control, 0, CORNER, to.0, 0x1234_5678], u32::from(to.1 == Tile::Y) << 1)
}

/// Measures alternating rounds, and prints the result.
fn compare(name: &str, ours: impl FnMut(usize), reference: impl FnMut(usize)) {
    measure::compare(ROUNDS, SIZE, ours, reference).print(name);
}

fn main() {
    let (mut bench, mut lines) = (BlitBench::new(), vec![0x11u8; BUFFERS * SIZE]);
    let at = |buffer: usize| (buffer % BUFFERS * SIZE) as u32;
    println!("speed of the copy engine relative to the reference: median and quartiles of {ROUNDS} rounds");
    for (name, from, to, raster) in [
        ("linear copy / memcpy", Tile::Linear, Tile::Linear, 0xcc),
        ("linear to X / memcpy", Tile::Linear, Tile::X, 0xcc),
        ("X to linear / memcpy", Tile::X, Tile::Linear, 0xcc),
        ("X to X / memcpy", Tile::X, Tile::X, 0xcc),
        ("linear to Y / memcpy", Tile::Linear, Tile::Y, 0xcc),
        ("Y to linear / memcpy", Tile::Y, Tile::Linear, 0xcc),
        ("linear exclusive or / memcpy", Tile::Linear, Tile::Linear, 0x66),
    ] {
        compare(
            name,
            |round| {
                let (dwords, swctrl) = copy((at(round * 2), from), (at(round * 2 + 1), to), raster);
                bench.run(&dwords, swctrl);
            },
            |round| {
                let first = round * 2 % BUFFERS * SIZE;
                let (from, to) = lines[first..first + 2 * SIZE].split_at_mut(SIZE);
                black_box(to).copy_from_slice(black_box(from));
            },
        );
    }
    for (name, to, raster) in [
        ("linear fill / memset", Tile::Linear, 0xf0),
        ("X fill / memset", Tile::X, 0xf0),
        ("Y fill / memset", Tile::Y, 0xf0),
        ("linear inversion / memset", Tile::Linear, 0x5a),
    ] {
        compare(
            name,
            |round| {
                let (dwords, swctrl) = fill((at(round), to), raster);
                bench.run(&dwords, swctrl);
            },
            |round| {
                let first = round % BUFFERS * SIZE;
                black_box(&mut lines[first..first + SIZE]).fill(black_box(0x12));
            },
        );
    }
}
