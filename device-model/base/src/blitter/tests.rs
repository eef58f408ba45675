// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Copies and fills through the memory of a test: one-level tables of 4 KiB pages, without compressed data.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

use std::convert::Infallible;

use proptest::prelude::*;
use vm_memory::{Bytes, VolatileSlice};

use super::ranges::TranslatedRanges;
use super::raster::{PAT_COPY, Raster, SRC_COPY};
use super::rectangle::{Rectangle, Resolve, Source};
use super::tiling::{Area, BLOCK_BYTES, Layout, Surface, TILE_W, TILE_X, TILE_Y, Tiling};
use super::{BlitMemory, Progress};
use crate::host::{Access, DmaView};
use crate::memory::region::SharedRegion;
use crate::memory::{Span, Zeroed};

const PAGE: u64 = 4096;

/// What a page of an address space maps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    Frame(u64),
    Null,
    /// A frame whose control data cannot be accessed.
    WithoutControl(u64),
    /// Guest memory that the VMM does not map.
    Unmapped,
    Absent,
}

/// Memory, and two address spaces.
struct Machine {
    memory: SharedRegion,
    tables: [Vec<Page>; 2],
}

#[derive(Debug, PartialEq)]
enum Reason {
    Absent,
    NotMapped,
}

#[derive(Debug, PartialEq)]
struct Fault {
    space: usize,
    address: u64,
    access: Access,
    reason: Reason,
}

/// The machine's memory for one step.
struct Translator<'m> {
    machine: &'m Machine,
    /// Pages on which `zero` succeeded.
    zeroed: u64,
}

struct Nothing;

impl DmaView for Nothing {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }
}

impl<'m> BlitMemory<'m> for Translator<'m> {
    type Space = usize;
    type Fault = Fault;
    type Control = Infallible;

    fn span(&mut self, space: usize, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let len = len.min((PAGE - address % PAGE) as usize);
        match self.machine.page(space, address) {
            Page::Frame(frame) | Page::WithoutControl(frame) => {
                Ok(Span::Mapped(self.machine.memory.slice(frame * PAGE + address % PAGE, len).unwrap()))
            }
            Page::Null => Ok(Span::Null(len)),
            Page::Unmapped => Ok(Span::Remote { view: &Nothing, iova: address, len }),
            Page::Absent => Err(Fault { space, address, access, reason: Reason::Absent }),
        }
    }

    fn zero(&mut self, space: usize, address: u64, len: u64) -> Result<Option<Zeroed>, Fault> {
        match self.machine.page(space, address) {
            Page::Frame(_) if address.is_multiple_of(PAGE) && len >= PAGE => {
                self.span(space, address, PAGE as usize, Access::Write)?.fill(&[0]).unwrap();
                self.zeroed += 1;
                Ok(Some(Zeroed { len: PAGE, held: PAGE }))
            }
            _ => Ok(None),
        }
    }

    fn control(&mut self, space: usize, address: u64, _: usize, access: Access) -> Result<Option<Infallible>, Fault> {
        match self.machine.page(space, address) {
            Page::WithoutControl(_) => Err(Fault { space, address, access, reason: Reason::Absent }),
            _ => Ok(None),
        }
    }

    fn not_mapped(space: usize, address: u64, access: Access) -> Fault {
        Fault { space, address, access, reason: Reason::NotMapped }
    }

    fn with_address(fault: Fault, address: u64) -> Fault {
        Fault { address, ..fault }
    }
}

/// The address space of the tests; the other one is empty.
const SPACE: usize = 1;

impl Machine {
    /// A machine with pages that map different frames in another order, filled with data.
    fn new(pages: u64) -> Self {
        let memory = SharedRegion::anonymous((pages * PAGE) as usize).unwrap();
        let data: Vec<u8> = (0..pages * PAGE).map(|at| (at * 31 ^ at >> 7 ^ at >> 13) as u8).collect();
        memory.slice(0, data.len()).unwrap().write_slice(&data, 0).unwrap();
        Machine { memory, tables: [Vec::new(), (0..pages).rev().map(Page::Frame).collect()] }
    }

    fn page(&self, space: usize, address: u64) -> Page {
        self.tables[space].get((address / PAGE) as usize).copied().unwrap_or(Page::Absent)
    }

    /// The memory as the address space shows it.
    fn image(&self) -> Vec<u8> {
        let mut image = vec![0; self.tables[SPACE].len() * PAGE as usize];
        for (page, bytes) in self.tables[SPACE].iter().zip(image.chunks_mut(PAGE as usize)) {
            if let Page::Frame(frame) = page {
                self.memory.slice(frame * PAGE, bytes.len()).unwrap().read_slice(bytes, 0).unwrap();
            }
        }
        image
    }

    fn step(&self, rectangle: &mut Rectangle, budget: usize) -> Result<Progress, Fault> {
        rectangle.step(&mut Translator { machine: self, zeroed: 0 }, SPACE, budget)
    }

    fn run(&self, rectangle: &mut Rectangle, budget: usize) {
        while self.step(rectangle, budget).unwrap() == Progress::More {}
    }
}

fn linear(base: u64, pitch: i64) -> Surface {
    Surface::new(base, pitch, Tiling::Linear)
}

fn tiled(base: u64, pitch: i64, layout: &'static Layout) -> Surface {
    Surface { tiling: Tiling::Tiled(layout), ..linear(base, pitch) }
}

fn area(column: i64, row: i64, width: u32, height: u32) -> Area {
    Area { column, row, width, height }
}

fn copy(to: Surface, area: Area, surface: Surface, column: i64, row: i64, code: u8) -> Rectangle {
    Rectangle::new(to, area, Source::Surface { surface, column, row }, Raster { code, channels: 0xf })
}

fn fill(to: Surface, area: Area, colour: u32, cpp: usize, code: u8) -> Rectangle {
    let mut pixel = [0; 16];
    pixel[..4].copy_from_slice(&colour.to_le_bytes());
    Rectangle::new(to, area, Source::Colour { pixel, cpp }, Raster { code, channels: 0xf })
}

/// Address of a byte by the formulas of the documents, one operation per term.
fn reference(surface: &Surface, column: i64, row: i64) -> usize {
    let (x, y) = (column, row);
    let tile = |width: i64, height: i64| (y / height * (surface.pitch / width) + x / width) * PAGE as i64;
    let offset = match surface.tiling {
        Tiling::Linear => y * surface.pitch + x,
        Tiling::Tiled(layout) => match layout.name {
            "X" => tile(512, 8) + y % 8 * 512 + x % 512,
            "Y" => tile(128, 32) + x % 128 / 16 * 512 + y % 32 * 16 + x % 16,
            _ => {
                let bits = y / 4 % 2 * 32 + x / 4 % 2 * 16 + y / 2 % 2 * 8 + x / 2 % 2 * 4 + y % 2 * 2 + x % 2;
                tile(64, 64) + x % 64 / 8 * 512 + y % 64 / 8 * 64 + bits
            }
        },
    };
    surface.base as usize + offset as usize
}

/// Addresses of bytes in the tilings of older families.
#[test]
fn addresses_in_legacy_tiles() {
    let address = |layout, pitch, column, row| tiled(0, pitch, layout).address(column, row);
    assert_eq!(address(&TILE_X, 1024, 600, 9), 12888);
    assert_eq!(address(&TILE_Y, 256, 130, 33), 12306);
    assert_eq!(address(&TILE_W, 64, 5, 6), 0x39);
    assert_eq!([TILE_X.extent(), TILE_Y.extent(), TILE_W.extent()], [(512, 8), (128, 32), (64, 64)]);
    for layout in [&TILE_X, &TILE_Y, &TILE_W] {
        let surface = tiled(5 * PAGE, 1024, layout);
        for (column, row) in (0..64).flat_map(|row| (0..1024).map(move |column| (column, row))) {
            assert_eq!(surface.address(column, row), reference(&surface, column, row) as u64, "{layout:?}");
        }
    }
}

/// A block in row order is the block in memory order, byte by byte.
#[test]
fn blocks_in_row_order() {
    for layout in [&TILE_X, &TILE_Y, &TILE_W] {
        let raw: [u8; BLOCK_BYTES] = std::array::from_fn(|at| (at ^ at >> 8) as u8);
        let (mut rows, mut packed) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        layout.unpack(&raw, &mut rows);
        let (width, height) = layout.extent();
        for (column, row) in (0..height).flat_map(|row| (0..width).map(move |column| (column, row))) {
            assert_eq!(rows[(row * width + column) as usize], raw[layout.offset(column, row) as usize]);
        }
        layout.pack(&rows, &mut packed);
        assert!(packed == raw, "{layout:?}");
        assert_eq!(layout.in_row_order(), rows == raw, "{layout:?}");
    }
}

/// Pages of a surface in the tests of pixels.
const PAGES: u64 = 16;
const SURFACE: i64 = (PAGES * PAGE) as i64;

fn surface(base: u64) -> impl Strategy<Value = Surface> {
    let tilings = [Tiling::Linear, Tiling::Tiled(&TILE_X), Tiling::Tiled(&TILE_Y), Tiling::Tiled(&TILE_W)];
    (proptest::sample::select(tilings.to_vec()), proptest::sample::select(vec![512, 1024]))
        .prop_map(move |(tiling, pitch)| Surface::new(base, pitch, tiling))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Copies and fills between linear, X, Y and W-tiled surfaces, plain and with raster operations, in few and in many
    /// steps, compared per pixel. One page of each surface is a NULL page.
    #[test]
    fn pixels(
        from in surface(0),
        to in surface(PAGES * PAGE),
        cpp in proptest::sample::select(vec![1i64, 2, 4]),
        colour: Option<u32>,
        code in prop_oneof![Just(None), any::<u8>().prop_map(Some)],
        null in 0..PAGES as usize,
        budget in proptest::sample::select(vec![64usize, 5000, 1 << 20]),
        dice: [u32; 6],
    ) {
        let mut machine = Machine::new(2 * PAGES);
        machine.tables[SPACE][null] = Page::Null;
        machine.tables[SPACE][PAGES as usize + null] = Page::Null;
        let before = machine.image();
        let size = |surface: &Surface| (surface.pitch / cpp, SURFACE / surface.pitch);
        let pick = |dice: u32, count: i64| i64::from(dice) % count;
        let (columns, rows) = (size(&from).0.min(size(&to).0), size(&from).1.min(size(&to).1));
        let (width, height) = (1 + pick(dice[0], columns), 1 + pick(dice[1], rows));
        let at = |surface: &Surface, x: u32, y: u32| {
            (pick(x, size(surface).0 - width + 1), pick(y, size(surface).1 - height + 1))
        };
        let (source, corner) = (at(&from, dice[2], dice[3]), at(&to, dice[4], dice[5]));
        let area = area(corner.0 * cpp, corner.1, (width * cpp) as u32, height as u32);
        let code = code.unwrap_or(if colour.is_some() { PAT_COPY } else { SRC_COPY });
        machine.run(&mut match colour {
            Some(colour) => fill(to, area, colour, cpp as usize, code),
            None => copy(to, area, from, source.0 * cpp, source.1, code),
        }, budget);

        let mut wanted = before.clone();
        for (x, y) in (0..height).flat_map(|y| (0..width * cpp).map(move |x| (x, y))) {
            let old = reference(&to, corner.0 * cpp + x, corner.1 + y);
            let (p, s) = match colour {
                Some(colour) => (colour.to_le_bytes()[(x % cpp) as usize], 0),
                None => (0, before[reference(&from, source.0 * cpp + x, source.1 + y)]),
            };
            let d = before[old];
            if machine.page(SPACE, old as u64) != Page::Null {
                wanted[old] = (0..8).fold(0, |out, bit| {
                    let index = (p >> bit & 1) << 2 | (s >> bit & 1) << 1 | d >> bit & 1;
                    out | (code >> index & 1) << bit
                });
            }
        }
        prop_assert!(machine.image() == wanted);
    }
}

/// A copy from right to left in the same memory, with other bases, reads each byte before it is overwritten, in one step and
/// in many.
#[test]
fn from_right_to_left() {
    let (machine, distance, width) = (Machine::new(8), 100, 5 * PAGE - 300);
    let copy = copy(linear(64 + distance, 0), area(0, 0, width as u32, 1), linear(64, 0), 0, 0, SRC_COPY);
    for budget in [1, 9000, 1 << 20] {
        let before = machine.image();
        machine.run(&mut copy.from_right_to_left(), budget);
        let mut wanted = before.clone();
        wanted[(64 + distance) as usize..][..width as usize].copy_from_slice(&before[64..][..width as usize]);
        assert!(machine.image() == wanted, "in steps of {budget}");
    }
}

/// A copy to two pages, a NULL page and an absent page fails at the absent page. Once it is present, the copy continues
/// there.
#[test]
fn faults_and_continues() {
    let mut machine = Machine::new(8);
    machine.tables[SPACE][2] = Page::Null;
    machine.tables[SPACE][3] = Page::Absent;
    let before = machine.image();
    let mut rectangle = copy(linear(0, 4096), area(0, 0, 4096, 4), linear(4 * PAGE, 4096), 0, 0, SRC_COPY);
    let fault = Fault { space: SPACE, address: 3 * PAGE, access: Access::Write, reason: Reason::Absent };
    assert_eq!(machine.step(&mut rectangle, usize::MAX), Err(fault));
    let (page, copied) = (PAGE as usize, machine.image());
    assert!(copied[..2 * page] == before[4 * page..6 * page]);
    machine.tables[SPACE][3] = Page::Frame(4);
    // The first pages are not copied again.
    machine.memory.slice(3 * PAGE, page).unwrap().write_slice(&[0; PAGE as usize], 0).unwrap();
    assert_eq!(machine.step(&mut rectangle, usize::MAX), Ok(Progress::Done));
    let after = machine.image();
    assert!(after[..2 * page] == before[4 * page..6 * page]);
    assert!(after[2 * page..3 * page].iter().all(|byte| *byte == 0), "the NULL page");
    assert!(after[3 * page..4 * page] == before[7 * page..]);
}

/// Surfaces whose tiles and rows cross pages are copied as others.
#[test]
fn copies_of_tiles_that_cross_pages() {
    let layouts = [Tiling::Linear, Tiling::Tiled(&TILE_X), Tiling::Tiled(&TILE_Y)];
    for (from, to) in layouts.into_iter().flat_map(|from| layouts.map(|to| (from, to))) {
        let machine = Machine::new(20);
        let before = machine.image();
        let surface = |base, tiling| Surface { tiling, ..linear(base, 1024) };
        let (from, to) = (surface(40, from), surface(10 * PAGE + 72, to));
        let area = area(0, 0, 1024, 32);
        machine.run(&mut copy(to, area, from, 0, 0, SRC_COPY), 1 << 20);
        let mut wanted = before.clone();
        for (column, row) in (0..32).flat_map(|row| (0..1024).map(move |column| (column, row))) {
            wanted[reference(&to, column, row)] = before[reference(&from, column, row)];
        }
        assert!(machine.image() == wanted, "{from:?} to {to:?}");
    }
}

/// A copy of tiles that faults has copied those before the fault and no byte of the tile with the fault, whichever operand is
/// absent, and continues there.
#[test]
fn a_tiled_copy_continues_at_the_tile_of_its_fault() {
    for (absent, access, cells) in [(5, Access::Read, 5), (11, Access::Write, 3)] {
        let mut machine = Machine::new(16);
        let before = machine.image();
        let present = std::mem::replace(&mut machine.tables[SPACE][absent], Page::Absent);
        // Four tiles in a row, two rows of tiles; the source is below.
        let (from, to) = (tiled(0, 2048, &TILE_X), tiled(8 * PAGE, 2048, &TILE_X));
        let mut rectangle = copy(to, area(0, 0, 2048, 16), from, 0, 0, SRC_COPY);
        let fault = Fault { space: SPACE, address: absent as u64 * PAGE, access, reason: Reason::Absent };
        assert_eq!(machine.step(&mut rectangle, usize::MAX), Err(fault));
        machine.tables[SPACE][absent] = present;
        let (copied, bytes) = (machine.image(), cells * PAGE as usize);
        assert!(copied[8 * PAGE as usize..][..bytes] == before[..bytes]);
        assert!(copied[8 * PAGE as usize + bytes..] == before[8 * PAGE as usize + bytes..]);
        // The first tiles are not copied again.
        let Page::Frame(frame) = machine.tables[SPACE][0] else { panic!("a NULL page") };
        machine.memory.slice(frame * PAGE, PAGE as usize).unwrap().write_slice(&[0; PAGE as usize], 0).unwrap();
        assert_eq!(machine.step(&mut rectangle, usize::MAX), Ok(Progress::Done));
        assert!(machine.image()[8 * PAGE as usize..] == before[..8 * PAGE as usize]);
    }
}

/// A fault has the address that was requested, not the start of its page, and the type of its access.
#[test]
fn faults_name_address_and_access() {
    let mut machine = Machine::new(4);
    let at = |rectangle: &mut Rectangle, machine: &Machine| {
        let fault = machine.step(rectangle, usize::MAX).unwrap_err();
        assert_eq!(fault.space, SPACE);
        (fault.address, fault.access, fault.reason)
    };
    // Byte 40 of row 3 of the X tile in page 1.
    let (tile, start) = (tiled(PAGE, 512, &TILE_X), PAGE + 3 * 512 + 40);
    let mut write = fill(tile, area(40, 3, 16, 1), 7, 4, PAT_COPY);
    let mut read = copy(linear(0, 64), area(0, 0, 16, 1), tile, 40, 3, SRC_COPY);
    for (page, wanted) in [(Page::Absent, Reason::Absent), (Page::Unmapped, Reason::NotMapped)] {
        machine.tables[SPACE][1] = page;
        assert_eq!(at(&mut read, &machine).0, start);
        assert_eq!(at(&mut read, &machine).1, Access::Read);
        assert_eq!(at(&mut write, &machine), (start, Access::Write, wanted));
    }
    // A linear copy reports the operand that the VMM does not map.
    let mut from = copy(linear(0, 64), area(0, 0, 64, 1), linear(PAGE + 8, 64), 0, 0, SRC_COPY);
    assert_eq!(at(&mut from, &machine), (PAGE + 8, Access::Read, Reason::NotMapped));
    let mut to = copy(linear(PAGE + 8, 64), area(0, 0, 64, 1), linear(0, 64), 0, 0, SRC_COPY);
    assert_eq!(at(&mut to, &machine), (PAGE + 8, Access::Write, Reason::NotMapped));
}

/// A linear fill with zeros asks the memory to zero whole pages, and fills what the memory does not.
#[test]
fn zeros() {
    let mut machine = Machine::new(4);
    machine.tables[SPACE][1] = Page::Null;
    let before = machine.image();
    let zeroed = |colour, base, height| {
        let mut translator = Translator { machine: &machine, zeroed: 0 };
        let mut rectangle = fill(linear(base, 256), area(0, 0, 256, height), colour, 4, PAT_COPY);
        assert_eq!(rectangle.step(&mut translator, SPACE, usize::MAX), Ok(Progress::Done));
        (translator.zeroed, machine.image())
    };
    let (pages, image) = zeroed(0, 0, 47);
    assert_eq!(pages, 1, "page 0: page 1 is a NULL page, and page 2 is not filled to its end");
    assert!(image[..47 * 256].iter().all(|byte| *byte == 0) && image[47 * 256..] == before[47 * 256..]);
    assert_eq!(zeroed(0, 256, 16).0, 0, "the fill starts inside page 0, and page 1 is a NULL page");
    assert_eq!(zeroed(1, 0, 16).0, 0, "a colour that is not zero");
}

/// Without compression, a compressed surface is accessed like any other, and there is nothing to resolve.
#[test]
fn memory_without_compression() {
    let machine = Machine::new(4);
    let before = machine.image();
    let compressed = |base| Surface { compressed: true, ..tiled(base, 512, &TILE_Y) };
    let mut translator = Translator { machine: &machine, zeroed: 0 };
    let mut resolve = Resolve::new(compressed(0), area(0, 0, 512, 32));
    assert_eq!(resolve.step(&mut translator, SPACE, usize::MAX), Ok(Progress::Done));
    assert!(machine.image() == before);
    machine.run(&mut copy(compressed(0), area(0, 0, 128, 32), compressed(PAGE), 0, 0, SRC_COPY), usize::MAX);
    let (page, after) = (PAGE as usize, machine.image());
    assert!(after[..page] == before[page..2 * page] && after[page..] == before[page..]);
}

/// A fault of control data is reported at the requested address, like a fault of the memory, not at the start of its page.
#[test]
fn fault_of_control_data_has_the_requested_address() {
    let mut machine = Machine::new(2);
    machine.tables[SPACE] = vec![Page::WithoutControl(0), Page::Absent];
    let mut memory = Translator { machine: &machine, zeroed: 0 };
    let mut compressed = TranslatedRanges::<Translator<'_>>::new(SPACE, Access::Read, true);
    for address in [0x123, PAGE + 0x123] {
        let fault = Fault { space: SPACE, address, access: Access::Read, reason: Reason::Absent };
        assert_eq!(compressed.read(&mut memory, address, &mut [0; 8]), Err(fault));
    }
    let mut plain = TranslatedRanges::<Translator<'_>>::new(SPACE, Access::Read, false);
    assert_eq!(plain.read(&mut memory, 0x123, &mut [0; 8]), Ok(()));
}

/// The cost of an access depends on the memory that is accessed, not on that of the access before.
#[test]
fn cost_of_mapped_memory_does_not_depend_on_the_access_before() {
    let mut machine = Machine::new(2);
    machine.tables[SPACE] = vec![Page::Unmapped, Page::Frame(0)];
    let mut memory = Translator { machine: &machine, zeroed: 0 };
    let mut ranges = TranslatedRanges::<Translator<'_>>::new(SPACE, Access::Write, false);
    let mut costs = Vec::new();
    for address in [PAGE, 0, PAGE] {
        let span = ranges.open(&mut memory, address, 64).unwrap();
        let before = ranges.spent();
        ranges.charge(&span, 64);
        let charged = ranges.spent();
        ranges.charge_mapped(64);
        costs.push((charged - before, ranges.spent() - charged));
    }
    let (mapped, remote) = (costs[0].0, costs[1].0);
    assert!(remote > 2 * mapped);
    assert_eq!(costs, [(mapped, mapped), (remote, mapped), (mapped, mapped)]);
}
