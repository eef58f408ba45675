// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the fences, against the document's conversion of addresses with one operation per term.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

use arctic_base::blitter::tiling::{Surface, Tiling};
use arctic_fidelity::proves;
use proptest::prelude::*;

use crate::memory::Walk;
use crate::memory::fence::{Fence, Fences};

pub(super) const PAGE: u64 = 4096;

/// A fence by the fields of its register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub first: u32,
    pub last: u32,
    /// The pitch in bytes, a multiple of 128.
    pub pitch: u32,
    pub walk: Walk,
}

impl Plain {
    /// The dwords of the register (ILK-058).
    pub(super) fn register(&self) -> [u32; 2] {
        let walk = u32::from(self.walk == Walk::Y);
        [self.first << 12 | walk << 1 | 1, self.last << 12 | (self.pitch / 128 - 1)]
    }

    fn fence(&self, swizzled: bool) -> Option<Fence> {
        let [low, high] = self.register();
        Fence::decode(low, high, swizzled)
    }

    fn tile(&self) -> (u64, u64) {
        if self.walk == Walk::Y { (128, 32) } else { (512, 8) }
    }

    /// Tiles of a row.
    fn tiles(&self) -> u64 {
        (u64::from(self.pitch) / self.tile().0).max(1)
    }

    fn start(&self) -> u64 {
        u64::from(self.first) * PAGE
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start()..(u64::from(self.last) + 1) * PAGE).contains(&address)
    }

    /// ILK-055 with the corrected line for X, ILK-053, and G67-064.
    fn tiled(&self, swizzled: bool, address: u64) -> u64 {
        let (width, height) = self.tile();
        let linear = address - self.start();
        let in_width = linear / width;
        let (tile, y, x) = (in_width % self.tiles(), in_width / self.tiles(), linear % width);
        let (inside, bits): (_, &[u64]) = match self.walk {
            Walk::X => (512 * (y % 8) + x, &[512, 1024]),
            Walk::Y => (512 * (x / 16) + 16 * (y % 32) + x % 16, &[512]),
        };
        let offset = self.tiles() * PAGE * (y / height) + PAGE * tile + inside;
        let inverted = swizzled && bits.iter().filter(|bit| offset / **bit % 2 == 1).count() % 2 == 1;
        self.start() + if inverted { offset ^ 64 } else { offset }
    }

    /// The inverse: the address at which a CPU finds the byte that is at `address`.
    fn linear(&self, swizzled: bool, address: u64) -> u64 {
        let (width, height) = self.tile();
        let mut offset = address - self.start();
        if swizzled && (offset / 512 + if self.walk == Walk::X { offset / 1024 } else { 0 }) % 2 == 1 {
            offset ^= 64;
        }
        let (tile, inside) = (offset / PAGE, offset % PAGE);
        let (x, y) = match self.walk {
            Walk::X => (inside % 512, inside / 512),
            Walk::Y => (inside / 512 * 16 + inside % 16, inside / 16 % 32),
        };
        let (x, y) = (tile % self.tiles() * width + x, tile / self.tiles() * height + y);
        self.start() + y * self.tiles() * width + x
    }
}

/// The graphics address that the aperture shows at `address`: the fence with the lowest number applies.
pub(super) fn plain(fences: &[Plain], swizzled: bool, address: u64) -> u64 {
    let fence = fences.iter().find(|fence| fence.contains(address));
    fence.map_or(address, |fence| fence.tiled(swizzled, address))
}

fn fences(plain: &[Plain], swizzled: bool) -> Fences {
    plain.iter().filter_map(|plain| plain.fence(swizzled)).collect()
}

fn at(fences: &Fences, address: u64) -> (u64, usize) {
    let (address, len) = fences.place(u32::try_from(address).unwrap(), usize::MAX);
    (address.into(), len)
}

/// ILK-053, ILK-055: vectors, from the CPU's address to the tiled one and back.
#[test]
fn vectors_of_fences() {
    proves!([ILK_053, ILK_055], "vectors from the address of a CPU to the tiled one and back");
    let x = Plain { first: 5, last: 20, pitch: 1024, walk: Walk::X };
    let y = Plain { first: 0, last: 15, pitch: 256, walk: Walk::Y };
    for (fence, swizzled, (column, row), offset) in [
        (x, false, (600, 9), 12888),
        (x, false, (0, 0), 0),
        (x, false, (511, 7), 4095),
        (x, false, (512, 0), 4096),
        (x, false, (0, 8), 8192),
        (x, true, (600, 9), 12888 - 64),
        (x, true, (600, 11), 12888 + 1024),
        (y, false, (130, 33), 12306),
        (y, false, (15, 31), 511),
        (y, false, (16, 0), 512),
        (y, false, (128, 0), 4096),
        (y, false, (0, 32), 8192),
        (y, true, (146, 33), 12306 + 512 + 64),
    ] {
        let address = fence.start() + row * u64::from(fence.pitch) + column;
        let tiled = fence.start() + offset;
        assert_eq!(at(&fences(&[fence], swizzled), address).0, tiled, "{fence:?}, ({column}, {row})");
        assert_eq!(fence.linear(swizzled, tiled), address, "{fence:?}, {offset}");
    }
}

/// ILK-048, ILK-049, ILK-053, ILK-055, ILK-059, ILK-061, ILK-066, G67-064: every address of small apertures, in runs that
/// are contiguous on both sides, for fences of 1 to 6 pages from page 0 on, 1 to 3 tiles wide, with complete and
/// incomplete last rows of tiles. No two addresses share a byte; with complete rows, a fence permutes its region.
#[test]
fn every_address_of_small_apertures() {
    proves!([ILK_048, ILK_049, ILK_053, ILK_055, ILK_059, ILK_061, ILK_066], "every address of small apertures");
    const PAGES: u64 = 12;
    for number in 0..3 * 6 * 3 * 2 * 2_u32 {
        let (first, pages, tiles) = ([0, 1, 3][number as usize % 3], 1 + number / 3 % 6, 1 + number / 18 % 3);
        let (walk, width) = [(Walk::X, 512), (Walk::Y, 128)][number as usize / 54 % 2];
        let swizzled = number / 108 == 1;
        let fence = Plain { first, last: first + pages - 1, pitch: tiles * width, walk };
        let fences = fences(&[fence], swizzled);
        let mut shown = vec![false; 2 * (PAGES * PAGE) as usize];
        let mut address = 0;
        while address < PAGES * PAGE {
            let (target, len) = at(&fences, address);
            assert!(len > 0, "{fence:?}");
            for n in 0..(len as u64).min(PAGES * PAGE - address) {
                assert_eq!(target + n, plain(&[fence], swizzled, address + n), "{fence:?}, {:#x}", address + n);
                if fence.contains(address + n) {
                    assert!(!std::mem::replace(&mut shown[(target + n) as usize], true), "{fence:?}: twice");
                    assert_eq!(fence.linear(swizzled, target + n), address + n, "{fence:?}: back");
                }
            }
            address += len as u64;
        }
        let region = fence.start() as usize..((u64::from(fence.last) + 1) * PAGE) as usize;
        let complete = pages % tiles == 0;
        assert_eq!(shown[region].iter().all(|shown| *shown), complete, "{fence:?}");
    }
}

/// An access may begin at any byte: the run is what remains of the one that contains it.
#[test]
fn runs_begin_at_any_byte() {
    for (walk, pitch, swizzled, run) in
        [(Walk::X, 1536, false, 512), (Walk::X, 1536, true, 64), (Walk::Y, 384, false, 16), (Walk::Y, 384, true, 16)]
    {
        let fence = Plain { first: 1, last: 6, pitch, walk };
        let fences = fences(&[fence], swizzled);
        for address in PAGE..7 * PAGE {
            let rest = (run - address % run) as usize;
            assert_eq!(at(&fences, address), (fence.tiled(swizzled, address), rest), "{fence:?}, {address:#x}");
            assert_eq!(fences.place(address as u32, 5).1, rest.min(5));
        }
        assert_eq!((at(&fences, PAGE - 3), at(&fences, 7 * PAGE).0), ((PAGE - 3, 3), 7 * PAGE));
    }
}

/// ILK-058, ILK-059, ILK-068, G67-062: the fields of the register, with the widest pitches of 10 and of 11 bits: 128 KiB,
/// and 256 KiB. The fence is as large as the largest aperture.
#[test]
fn fields_of_the_register() {
    proves!([ILK_058, ILK_059, ILK_068], "the fields of the register, with the widest pitches");
    for (high, pitch) in [(0x3ff, 128 << 10), (0x7ff, 256 << 10)] {
        for (walk, low, height) in [(Walk::X, 1, 8), (Walk::Y, 3, 32)] {
            let fence = Plain { first: 0, last: 0x1_ffff, pitch, walk };
            assert_eq!(fence.register(), [low, 0x1fff_f000 | high]);
            let fences = fences(&[fence], false);
            // The second row, the second row of tiles, and the last byte of the last row.
            let (pitch, second) = (u64::from(pitch), if walk == Walk::X { 512 } else { 16 });
            assert_eq!(at(&fences, pitch).0, second);
            assert_eq!(at(&fences, pitch * height).0, pitch * height);
            assert_eq!(at(&fences, (512 << 20) - 1).0, (512 << 20) - 1);
            assert_eq!(at(&fences, 512 << 20).0, 512 << 20, "behind the fence");
        }
    }
    assert_eq!(Fence::decode(0x1002, 0x5000, false), None, "not valid");
}

/// ILK-065, ILK-067: a surface with the start of a row of tiles as its base in the fence, with the fence's pitch, has its
/// pixels where the CPU finds them.
#[test]
fn surfaces_shared_with_an_engine() {
    proves!(
        [ILK_065, ILK_067],
        "a surface whose base is the start of a row of tiles has its pixels where the CPU finds them"
    );
    for (walk, pitch, height, swizzled) in
        [(Walk::X, 1024, 8, false), (Walk::X, 1024, 8, true), (Walk::Y, 256, 32, true)]
    {
        let fence = Plain { first: 3, last: 20, pitch, walk };
        let fences = fences(&[fence], swizzled);
        for row_of_tiles in 0..3 {
            let skipped = row_of_tiles * height * u64::from(pitch);
            let base = fence.start() + skipped;
            let tiling = Tiling::Tiled(walk.layout(swizzled));
            let surface = Surface::new(base, pitch.into(), tiling);
            for (x, y) in (0..2 * height).flat_map(|y| (0..u64::from(pitch)).step_by(7).map(move |x| (x, y))) {
                let cpu = fence.start() + skipped + y * u64::from(pitch) + x;
                assert_eq!(at(&fences, cpu).0, surface.address(x as i64, y as i64), "{fence:?}, ({x}, {y})");
            }
        }
    }
}

/// Registers without a sensible fence: reversed bounds, an X pitch below a tile or between two (ILK-058), fences that
/// overlap (ILK-060), and one at the end of the address space.
#[test]
fn registers_without_a_meaning() {
    proves!([ILK_058, ILK_060], "reversed bounds, pitches between two tiles, fences that overlap");
    let fence = |first, last, pitch, walk| Plain { first, last, pitch, walk };
    assert_eq!(fence(5, 4, 512, Walk::X).fence(false), None);
    for (pitch, same) in [(128, 512), (384, 512), (640, 512), (1920, 1536)] {
        let of = |pitch| fence(2, 9, pitch, Walk::X).fence(false);
        assert_eq!(of(pitch), of(same), "{pitch}");
    }
    let overlapping = [
        fence(4, 7, 512, Walk::X),
        fence(2, 9, 128, Walk::Y),
        fence(0, 30, 1024, Walk::X),
        fence(8, 20, 384, Walk::Y),
        fence(25, 40, 256, Walk::Y),
    ];
    let all = fences(&overlapping, false);
    for address in (0..50 * PAGE).step_by(13) {
        assert_eq!(at(&all, address).0, plain(&overlapping, false, address), "{address:#x}");
    }
    let last = fence(0xf_ffff, 0xf_ffff, 128, Walk::Y);
    assert_eq!(at(&fences(&[last], false), 0xffff_f011), (0xffff_f201, 15));
    let covering = fences(&[fence(0, 0xf_ffff, 256 << 10, Walk::X)], true);
    assert!((0..0xffff_ffff).step_by(0xfff_fff1).all(|address| covering.place(address, 64).1 > 0));
    // The tiles of an incomplete row may be beyond the address space; the address is truncated.
    let beyond = fence(0xf_fffe, 0xf_ffff, 3 * 128, Walk::Y);
    assert_eq!(at(&fences(&[beyond], false), 0xffff_e100).0, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Random contents of all registers, near to each other so that they overlap: every address has one place, and a run
    /// does not cross a boundary.
    #[test]
    fn random_registers(
        registers in proptest::collection::vec((any::<u32>(), any::<u32>(), 0..64u32, 0..64u32), 32),
        swizzled: bool,
        addresses in proptest::collection::vec(0..66 * PAGE, 200),
    ) {
        let registers: Vec<_> = registers
            .into_iter()
            .map(|(low, high, first, last)| (low & 0xfff | first << 12, high & 0x7ff | last << 12))
            .collect();
        let fields = registers.iter().filter(|(low, _)| low & 1 == 1).map(|(low, high)| Plain {
            first: low >> 12,
            last: high >> 12,
            pitch: ((high & 0x7ff) + 1) * 128,
            walk: if low & 2 == 0 { Walk::X } else { Walk::Y },
        });
        let fields: Vec<_> = fields.collect();
        let fences: Fences = registers.iter().filter_map(|(low, high)| Fence::decode(*low, *high, swizzled)).collect();
        for address in addresses {
            let (target, len) = at(&fences, address);
            for n in [0, 1, len / 2, len - 1].map(|n| n.min(len - 1).min(9000) as u64) {
                prop_assert_eq!(target + n, plain(&fields, swizzled, address + n), "{:#x} + {}", address, n);
            }
        }
    }
}
