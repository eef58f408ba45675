// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of surface states.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

use arctic_fidelity::proves;

use super::*;
use crate::compute::bases::ADDRESS;

/// The state of the first argument of NEO's vector add (eu-vectors.md).
pub const NEO: [u32; 16] = [
    0x87fd_c000,
    0x0600_0000,
    0x001f_001f,
    0,
    0,
    0x0002_0000,
    0,
    0, //
    0xffdf_0000,
    0xffff_80ff,
    0,
    0,
    0,
    0,
    0,
    0,
];

fn with(changes: &[(usize, u32)]) -> SurfaceState {
    let mut words = NEO;
    for (dword, value) in changes {
        words[*dword] = *value;
    }
    SurfaceState::decode(&words)
}

/// The base comes sign-extended (EU-006).
#[test]
fn a_buffer_of_the_driver() {
    proves!(EU_043, "a buffer of bytes by NEO and by IGT, with the length in three fields");
    let buffer = SurfaceMemory::Buffer { base: 0x80ff_ffdf_0000, bytes: 4000 };
    assert_eq!(with(&[]), SurfaceState { memory: buffer, image: Err(FaultKind::Surface) });
    let bytes = |width_height, depth| match with(&[(2, width_height), (3, depth)]).memory {
        SurfaceMemory::Buffer { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    };
    // IGT's compute-square: 0x87fdc000 with a length of 0x1000 bytes.
    assert_eq!(bytes(31 << 16 | 0x7f, 0), 0x1000);
    assert_eq!((bytes(0, 0), bytes(1 << 16, 0), bytes(0, 1 << 21)), (1, 129, (1 << 21) + 1));
    assert_eq!(bytes(0x3fff_3fff, 0xffe0_0000), 1 << 32);
    assert_eq!(bytes(0x3fff, 0), 128, "bits 13:7 of the width have no meaning");
}

#[test]
fn buffers_of_entries() {
    proves!(EU_043, "structured and typed buffers are entries at a distance");
    let memory = SurfaceMemory::Buffer { base: 0x80ff_ffdf_0000, bytes: 10 * 12 };
    let structured = with(&[(0, 5 << 29 | 0x1ff << 18), (2, 9), (3, 11)]);
    assert_eq!(structured, SurfaceState { memory, image: Err(FaultKind::Surface) });
    let typed = with(&[(0, 4 << 29 | 0xd7 << 18), (2, 9), (3, 3)]);
    assert_eq!(typed.memory, SurfaceMemory::Buffer { base: 0x80ff_ffdf_0000, bytes: 40 });
    let image = typed.image.unwrap().image;
    assert_eq!((image.width, image.height, image.dimensions), (10, 1, Dimensions::One));
    let gaps = with(&[(0, 4 << 29 | 0xd7 << 18), (2, 9), (3, 7)]);
    assert_eq!(
        (gaps.image, gaps.memory),
        (Err(FaultKind::Image), SurfaceMemory::Buffer { base: 0x80ff_ffdf_0000, bytes: 80 },)
    );
}

#[test]
fn scratch_and_null() {
    proves!(EU_041, "the length of a scratch surface counts threads, and its pitch bytes of a thread");
    let scratch = with(&[(0, 6 << 29 | 0x1ff << 18), (2, 0x1f << 16 | 0x7f), (3, 0xfff)]);
    assert_eq!(scratch.memory, SurfaceMemory::Scratch { base: 0x80ff_ffdf_0000, pitch: 0x1000, threads: 4096 });
    let null = with(&[(0, 7 << 29)]);
    assert_eq!((null.memory, null.image.unwrap().texels), (SurfaceMemory::Null, Texels::Null));
}

const SELECT: (usize, u32) = (7, 4 << 25 | 5 << 22 | 6 << 19 | 7 << 16);

fn image(changes: &[(usize, u32)]) -> Result<StoredImage, FaultKind> {
    with(&[&[SELECT], changes].concat()).image
}

fn planes(changes: &[(usize, u32)]) -> Planes {
    match image(changes).unwrap().texels {
        Texels::Planes(planes) => planes,
        Texels::Null => panic!("a null surface"),
    }
}

const BASE: u64 = 0x80ff_ffdf_0000;

#[test]
fn linear_images() {
    let image = |changes: &[(usize, u32)]| image(changes).map(|stored| stored.image);
    // 20 x 10 texels of RGBA8 in rows of 128 bytes; three of them, at distances of 12 rows.
    let (size, pitch) = ((2, 9 << 16 | 19), (3, 2 << 21 | 127));
    let plane = image(&[(0, 1 << 29 | 0xc7 << 18), size, pitch]).unwrap();
    assert_eq!((plane.width, plane.height, plane.depth), (20, 10, 1));
    assert_eq!((plane.dimensions, plane.array, plane.pitch), (Dimensions::Two, false, 128));
    assert_eq!(plane.texel([3, 2, 0]), BASE + 2 * 128 + 12);
    let array = [(0, 1 << 29 | 1 << 28 | 0xc7 << 18), (1, 3), size, pitch];
    let elements = image(&array).unwrap();
    assert_eq!((elements.depth, elements.slice, elements.array), (3, 12 * 128, true));
    assert_eq!(planes(&array).texel(0, [3, 2, 1]).address, BASE + (12 + 2) * 128 + 12);
    let volume = image(&[(0, 2 << 29 | 0xc7 << 18), (1, 3), size, pitch]).unwrap();
    assert_eq!((volume.depth, volume.slice, volume.dimensions), (3, 12 * 128, Dimensions::Three));
    let line = image(&[(0, 0xc7 << 18), size, pitch]).unwrap();
    assert_eq!((line.width, line.height, line.dimensions), (20, 1, Dimensions::One));
    let array = [(0, 1 << 28 | 0xc7 << 18), (1, 8), size, pitch];
    let lines = image(&array).unwrap();
    assert_eq!((lines.height, lines.depth, lines.pitch, lines.array), (3, 1, 32 * 4, true));
    assert_eq!(planes(&array).texel(0, [3, 2, 0]).address, BASE + 2 * 32 * 4 + 12);
}

/// The layouts are the copy engine's: places of some texels of each, of element 5 of arrays whose elements begin within a
/// tile, of slices of volumes, and beside the corner of an image within a surface.
#[test]
fn tiled_images() {
    proves!(EU_085, "places of texels in Tile4, Tile64, Tile64 of volumes and X, of array elements and slices");
    let place = |mode: u32, kind: u32, changes: &[(usize, u32)], at| {
        let shape = [(0, kind << 29 | 0xc7 << 18 | mode << 12), (1, 9), (2, 99 << 16 | 99), (3, 99 << 21 | 511)];
        planes(&[&shape, changes].concat()).texel(0, at).address - BASE
    };
    let tile4 = |at, changes: &[(usize, u32)]| place(3, 1, changes, at);
    assert_eq!(tile4([4, 0, 0], &[]), 0x40);
    assert_eq!([tile4([16, 0, 0], &[]), tile4([0, 1, 0], &[]), tile4([0, 4, 0], &[])], [0x200, 0x10, 0x100]);
    assert_eq!([tile4([32, 0, 0], &[]), tile4([0, 32, 0], &[])], [0x1000, 0x4000]);
    // Element 1 begins in row 36, which is row 4 of the second row of tiles.
    assert_eq!(place(3, 1, &[(0, 1 << 29 | 1 << 28 | 0xc7 << 18 | 3 << 12)], [0, 0, 1]), 0x4100);
    assert_eq!(tile4([0, 0, 0], &[(4, 1 << 18)]), 0x4100, "the first element");
    assert_eq!(tile4([0, 0, 0], &[(5, 4 << 25 | 1 << 21)]), 0x300, "16 texels to the right and 4 rows down");
    assert_eq!([place(2, 1, &[], [0, 1, 0]), place(2, 1, &[], [127, 0, 0])], [0x200, 0x1fc]);
    assert_eq!([place(1, 1, &[], [32, 0, 0]), place(1, 1, &[], [0, 32, 0])], [0x1000, 0x4000]);
    // Slices of volumes: in one tile, and 36 rows, which is one row of four tiles, further on.
    let volume = |at| place(1, 2, &[], at);
    assert_eq!([volume([0, 0, 1]), volume([0, 0, 4]), volume([0, 0, 8])], [0x80, 0x4000, 0x8000]);
    assert_eq!([volume([32, 0, 0]), volume([0, 32, 0]), volume([0, 0, 16])], [0x1_0000, 0x4_0000, 0x4_0000]);
    assert!(image(&[(0, 3 << 12 | 0xc7 << 18)]).is_err(), "a tiled line");
}

#[test]
fn components_of_colors() {
    proves!(EU_082, "samplers return the components that the sources of a surface select");
    use Component::{Alpha, Blue, Green, One, Red, Zero};
    let components = |sources: [u32; 4]| {
        let word = sources[0] << 25 | sources[1] << 22 | sources[2] << 19 | sources[3] << 16;
        with(&[(0, 1 << 29 | 0x140 << 18), (7, word)]).image.map(|stored| stored.image.components)
    };
    assert_eq!(components([4, 5, 6, 7]), Ok(Component::COLOR));
    assert_eq!(components([0; 4]), Ok(Component::COLOR));
    assert_eq!(components([6, 5, 4, 1]), Ok([Blue, Green, Red, One]));
    assert_eq!(components([0, 0, 7, 4]), Ok([Zero, Zero, Alpha, Red]));
    assert_eq!(components([4, 4, 4, 2]), Err(FaultKind::Image), "a source that is reserved");
}

/// Levels of a surface of 100 by 60 texels of RGBA8 in rows of 512 bytes, aligned to 32 bytes and 4 rows, from level 1 on.
#[test]
fn levels_of_images() {
    proves!(EU_043, "levels from the least one on: their number, their sizes and their places");
    let shape = |kind: u32, mode: u32| {
        [(0, kind << 29 | 1 << 16 | 1 << 14 | 0xc7 << 18 | mode << 12), (1, 32), (2, 59 << 16 | 99), (3, 4 << 21 | 511)]
    };
    let levels = [(5, 15 << 8 | 1 << 4 | 2), (SELECT.0, SELECT.1 | 0x180)];
    let of = |kind, mode| image(&[&shape(kind, mode)[..], &levels].concat()).unwrap();
    let plane = of(1, 0).image;
    assert_eq!((plane.width, plane.height, plane.depth), (50, 30, 1));
    assert_eq!(plane.levels, Levels { number: 1, count: 3, least: 0x80 }, "half a level above level 1 of the resource");
    let volume = of(2, 3);
    assert_eq!((volume.image.width, volume.image.height, volume.image.depth), (50, 30, 2));
    // Level 2 begins behind 56 columns of level 1 and below 60 rows of level 0, and is 128 rows further in each slice.
    let Texels::Planes(planes) = volume.texels else { panic!("a null surface") };
    assert_eq!(planes.mips.corner(2), [56, 60]);
    let linear = |x: u64, y: u64| BASE + y * 512 + x * 4;
    let Texels::Planes(planes) = of(1, 0).texels else { panic!("a null surface") };
    let places =
        [(0, [0; 3]), (1, [0; 3]), (2, [3, 2, 0]), (3, [0, 1, 0])].map(|(level, at)| planes.texel(level, at).address);
    assert_eq!(places, [linear(0, 0), linear(0, 60), linear(59, 62), linear(56, 77)]);
    // Tile64 aligns levels to its tiles of 128 by 128 texels.
    let tiled = [(5, 3 << 8 | 2), SELECT];
    let Texels::Planes(planes) = image(&[&shape(1, 1)[..], &tiled].concat()).unwrap().texels else { panic!("null") };
    assert_eq!([1, 2].map(|level| planes.mips.corner(level)), [[0, 128], [128, 128]]);
    // Lines have their levels one behind the other.
    let Texels::Planes(planes) = of(0, 0).texels else { panic!("a null surface") };
    assert_eq!(planes.texel(2, [1, 0, 0]).address, BASE + (104 + 56 + 1) * 4);
}

#[test]
fn cubes_are_six_planes() {
    proves!(EU_043, "cubes and arrays of them");
    let cubes = |array: u32, count: u32| {
        let changes = [(0, 3 << 29 | array << 28 | 0xc7 << 18 | 0x3f), (1, 16), (2, 63 << 16 | 63)];
        image(&[&changes[..], &[(3, (count - 1) << 21 | 255), (4, 6 << 18)]].concat()).unwrap()
    };
    let one = cubes(0, 1).image;
    assert_eq!((one.cube, one.array, one.depth, one.dimensions), (true, false, 6, Dimensions::Three));
    let stored = cubes(1, 3);
    assert_eq!((stored.image.cube, stored.image.array, stored.image.depth), (true, true, 18));
    let Texels::Planes(planes) = stored.texels else { panic!("a null surface") };
    assert_eq!(planes.texel(0, [0, 0, 2]).address, BASE + (6 + 2) * 64 * 256, "from the first element on");
}

#[test]
fn compressed_images() {
    let compressed = |mode, enabled: u32| {
        let changes = [(0, 1 << 29 | 0xc7 << 18), (6, mode), (7, SELECT.1 | enabled << 30)];
        planes(&changes).texel(0, [0; 3]).compressed
    };
    assert_eq!([compressed(0, 0), compressed(5, 0), compressed(0, 1)], [false, true, true]);
}

#[test]
fn other_images_are_refused() {
    proves!(
        EU_043,
        "samples, tails of levels, other compression and unknown formats are refused by name; untyped messages have no access"
    );
    let changes = [(0, 1 << 29 | 0xc7 << 18 | 1 << 12), (0, 1 << 29 | 0x1ff << 18), (4, 1 << 3), (5, 0xff), (6, 4)];
    for change in changes {
        // Two levels; those of Tile64 are in a tail from level 0 on.
        let state = with(&[(0, 1 << 29 | 0xc7 << 18), (5, 1), change]);
        assert_eq!((state.memory, state.image), (SurfaceMemory::Texels, Err(FaultKind::Image)), "{change:x?}");
    }
}

proptest::proptest! {
    /// Every state decodes, and what it decodes to is bounded.
    #[test]
    fn every_state_decodes(words in proptest::array::uniform16(proptest::prelude::any::<u32>()), kind in 0..8u32) {
        let mut words = words;
        words[0] = words[0] & !(7 << 29) | kind << 29;
        for plain in [false, true] {
            if plain {
                // With one sample, one level, and a format that is known.
                words[0] = words[0] & !(0x1ff << 18) | 0xc7 << 18;
                (words[4], words[5], words[6], words[7]) = (words[4] & !0x38, words[5] & !0x88, words[6] & 5, 0);
            }
            let state = SurfaceState::decode(&words);
            match state.memory {
                SurfaceMemory::Buffer { base, bytes } => {
                    proptest::prop_assert!(base <= ADDRESS && (1..=1 << 50).contains(&bytes));
                }
                SurfaceMemory::Scratch { base, pitch, threads } => {
                    proptest::prop_assert!(base <= ADDRESS && pitch <= 1 << 18 && threads <= 1 << 32);
                }
                SurfaceMemory::Null | SurfaceMemory::Texels => {}
            }
            if let Ok(StoredImage { image, texels }) = state.image {
                proptest::prop_assert!(image.base <= ADDRESS && image.pitch <= 1 << 50 && image.slice <= 1 << 50);
                let _ = image.texel([image.width, image.height, image.depth]);
                let Levels { number, count, .. } = image.levels;
                proptest::prop_assert!(count > 0 && number + count <= MipLayout::MOST);
                if let Texels::Planes(planes) = texels {
                    let place = planes.texel(image.levels.number, [image.width, image.height, image.depth]);
                    proptest::prop_assert!(place.address <= ADDRESS && place.run > 0);
                    let _ = planes.byte(u8::MAX, u64::MAX, u32::MAX, u32::MAX);
                }
            }
        }
    }
}
