// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of accesses through the aperture, against a copy of memory that is accessed byte by byte.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::fences::{PAGE, Plain, plain};
use crate::guest::Guest;
use crate::memory::{Aperture, Ggtt, Memory, Pte, Walk};

/// Address of the guest's memory.
const RAM: u64 = 0x3000_0000;

/// A GGTT, its copy, and memory of `frames` pages with its copy.
struct ApertureBench {
    guest: Guest,
    ggtt: Ggtt,
    aperture: Aperture,
    table: Vec<Option<u64>>,
    bytes: Vec<u8>,
    fences: Vec<Plain>,
    swizzled: bool,
}

impl ApertureBench {
    /// The table has the frame of each page; a frame beyond memory does not exist.
    fn new(table: &[Option<u64>], frames: u64) -> Self {
        let guest = Guest::new(RAM, (frames * PAGE) as usize);
        let bytes: Vec<u8> = (0..frames * PAGE).map(|at| (at * 37 ^ at >> 6 ^ at >> 11) as u8).collect();
        guest.fill(&bytes);
        let ggtt = Ggtt::new(4 * table.len());
        for (page, frame) in (0..).zip(table) {
            ggtt.set(page, Pte(frame.map_or(0, |frame| (RAM + frame * PAGE) as u32 | 1)));
        }
        let (aperture, table) = (Aperture::default(), table.to_vec());
        ApertureBench { guest, ggtt, aperture, table, bytes, fences: Vec::new(), swizzled: false }
    }

    fn fence(&mut self, plain: &[Plain], swizzled: bool) {
        (self.fences, self.swizzled) = (plain.to_vec(), swizzled);
        let decode = |plain: &Plain| {
            let [low, high] = plain.register();
            crate::memory::fence::Fence::decode(low, high, swizzled)
        };
        self.aperture.replace(|| plain.iter().filter_map(decode).collect::<Vec<_>>());
    }

    /// Index in the copy of the byte at `address` of the aperture.
    fn byte(&self, address: u64) -> Option<usize> {
        let address = plain(&self.fences, self.swizzled, address);
        let frame = (*self.table.get((address / PAGE) as usize)?)?;
        Some((frame * PAGE + address % PAGE) as usize).filter(|at| *at < self.bytes.len())
    }

    fn check_read(&self, address: u64, len: usize) {
        let mut data = vec![0x5a; len];
        self.aperture.read(&Memory::new(&self.ggtt, &self.guest), address as u32, &mut data);
        for (n, found) in (0..).zip(data) {
            let expected = self.byte(address + n).map_or(0xff, |at| self.bytes[at]);
            assert_eq!(found, expected, "{:?}: byte {n} of a read at {address:#x}", self.fences);
        }
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.aperture.write(&Memory::new(&self.ggtt, &self.guest), address as u32, data);
        for (n, byte) in (0..).zip(data) {
            if let Some(at) = self.byte(address + n) {
                self.bytes[at] = *byte;
            }
        }
    }

    fn check_memory(&self) {
        let found = self.guest.bytes();
        let different = (0..found.len()).find(|at| found[*at] != self.bytes[*at]);
        assert_eq!(different, None, "{:?}", self.fences);
    }
}

/// ILK-034, ILK-044, ILK-047: every table of four entries, each invalid, one of three frames, or a page that the guest
/// does not have, with and without a fence: accesses across all page boundaries.
#[test]
fn every_table_of_four_pages() {
    proves!([ILK_034, ILK_044, ILK_047], "the aperture translates by fence and entry; without a fence it is linear");
    let entries = [None, Some(0), Some(1), Some(2), Some(9)];
    let x = Plain { first: 1, last: 2, pitch: 1024, walk: Walk::X };
    let y = Plain { first: 0, last: 3, pitch: 256, walk: Walk::Y };
    for number in 0..entries.len().pow(4) {
        let table: Vec<_> = (0..4).map(|page| entries[number / entries.len().pow(page) % entries.len()]).collect();
        let mut bench = ApertureBench::new(&table, 3);
        for fence in [&[][..], &[x], &[y]] {
            bench.fence(fence, false);
            for address in [0, 0xffc, 0x1ffd, 0x2fff, 0x3ffa, 0x5000] {
                bench.check_read(address, 8);
                bench.write(address, &(number as u64 ^ address << 32 ^ 0x1122_3344_5566_7788).to_le_bytes());
            }
        }
        bench.check_memory();
    }
}

/// Accesses of up to 64 bytes from every byte around the boundaries of rows, tiles, pages and fences, with an incomplete
/// last row of tiles.
#[test]
fn accesses_across_every_boundary() {
    let table: Vec<_> = (0..16).map(|page| Some((page * 5 + 3) % 16)).collect();
    for (walk, pitch) in [(Walk::X, 1536), (Walk::Y, 384)] {
        let fence = Plain { first: 2, last: 9, pitch, walk };
        for swizzled in [false, true] {
            let mut bench = ApertureBench::new(&table, 16);
            bench.fence(&[fence], swizzled);
            let start = 2 * PAGE;
            let row = u64::from(pitch);
            let tiles = [start, start + 512, start + row, start + row * 8, start + row * 32, 9 * PAGE, 10 * PAGE];
            for boundary in tiles {
                for (address, len) in
                    (boundary - 9..boundary + 9).flat_map(|at| [1, 2, 4, 7, 8, 64].map(|len| (at, len)))
                {
                    let data: Vec<u8> = (0..len).map(|n| (n * 3 + address) as u8).collect();
                    bench.write(address, &data);
                    bench.check_read(address - 8, 80);
                }
            }
            bench.check_memory();
        }
    }
}

/// Accesses near the end of the address space end.
#[test]
fn accesses_at_the_end_of_the_address_space() {
    let bench = ApertureBench::new(&[Some(0); 4], 1);
    let memory = Memory::new(&bench.ggtt, &bench.guest);
    let mut data = [0; 40];
    bench.aperture.read(&memory, u32::MAX - 3, &mut data);
    assert_eq!(data, [0xff; 40]);
    bench.aperture.write(&memory, u32::MAX, &[1, 2, 3]);
    bench.aperture.read(&memory, 0, &mut []);
    bench.check_memory();
}

const PAGES: u64 = 24;

fn fence() -> impl Strategy<Value = Plain> {
    (0..PAGES as u32, 0..PAGES as u32, 1..=16u32, prop::sample::select(vec![Walk::X, Walk::Y]))
        .prop_map(|(first, last, pitch, walk)| Plain { first, last, pitch: pitch * 128, walk })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// ILK-044, ILK-053, ILK-055, ILK-062, G67-064: random tables, fences that change, and accesses of any length.
    #[test]
    fn random_accesses(
        table in prop::collection::vec(prop::option::weighted(0.9, 0..10u64), PAGES as usize),
        rounds in prop::collection::vec(
            (
                prop::collection::vec(fence(), 0..4),
                any::<bool>(),
                prop::collection::vec((0..PAGES * PAGE, 1..200usize, any::<bool>()), 20),
                (0..PAGES * PAGE, 1..9000usize),
            ),
            1..4,
        ),
    ) {
        proves!([ILK_044, ILK_053, ILK_055, ILK_062], "random tables, fences that change, and accesses of any length");
        let mut bench = ApertureBench::new(&table, 9);
        for (plain, swizzled, accesses, (address, len)) in rounds {
            bench.fence(&plain, swizzled);
            for (address, len, write) in accesses {
                if write {
                    let data: Vec<u8> = (0..len).map(|n| (n ^ len ^ address as usize) as u8).collect();
                    bench.write(address, &data);
                } else {
                    bench.check_read(address, len);
                }
            }
            bench.check_read(address, len);
            bench.check_memory();
        }
    }
}
