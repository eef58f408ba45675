// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images that are tiled and compressed, against the copy engine.

use super::*;
use crate::blitter::{Blit, Progress};

/// A surface state of RGBA8 texels at the page of 2 MiB, 100 by 60 texels, in planes of 64 rows.
pub(super) fn state(kind: u32, tile_mode: u32, compressed: bool) -> [u32; 16] {
    let mut words = buffer(LARGE_VA, 1);
    words[0] = kind << 29 | u32::from(kind == 1) << 28 | 0xc7 << 18 | tile_mode << 12;
    words[1] = 64 / 4;
    words[2] = 59 << 16 | 99;
    words[3] = 4 << 21 | 511;
    words[6] = if compressed { 5 } else { 0 };
    words
}

impl World {
    /// Copies a plane to memory from `LARGE_VA + 1 MiB` on, in rows of 400 bytes.
    fn blit_out(&self, kind: u32, tiling: u32, compressed: bool, plane: u32) {
        let source = LARGE_VA;
        let into = LARGE_VA + (1 << 20);
        let compression = if compressed { 1 << 29 | 5 << 18 } else { 0 };
        let pitch = if tiling == 0 { 511 } else { 127 };
        let mut dwords = [0; 22];
        dwords[..12].copy_from_slice(&[
            2 << 29 | 0x41 << 22 | 2 << 19 | 20,
            399,
            0,
            60 << 16 | 100,
            into as u32,
            (into >> 32) as u32,
            0,
            0,
            tiling << 30 | compression | pitch,
            source as u32,
            (source >> 32) as u32,
            0,
        ]);
        (dwords[16], dwords[19], dwords[20], dwords[21]) = (1 << 29, kind << 29, (64 / 4) << 4, plane << 21);
        let (views, mut tlb) = (self.card.views(), Tlb::default());
        let mut gam = self.card.gam(Function::PF, &views, &mut tlb);
        let mut blit = Blit::decode(&dwords).unwrap();
        while blit.step(&mut gam, SPACE, 1 << 20).unwrap() == Progress::More {}
    }

    /// Makes all blocks of the page compressed or not, without regard to their bytes.
    pub(super) fn set_control(&self, value: u8) {
        let control = vec![value; (2 << 20) / 256];
        let at = FLAT_CCS + local_of(LARGE_VA) / 256;
        self.card.local().slice(at, control.len()).unwrap().write_slice(&control, 0).unwrap();
    }
}

/// Surface type, tile mode of a surface state, and tiling of the copy engine's commands.
pub(super) const SHAPES: [(u32, u32, u32); 7] =
    [(1, 0, 0), (1, 3, 2), (1, 1, 3), (1, 2, 1), (2, 0, 0), (2, 3, 2), (2, 1, 3)];

#[test]
fn what_a_kernel_writes_is_what_the_copy_engine_reads() {
    proves!([EU_084, EU_085], "texels of all planes, tiled and compressed, by the kernel and by the copy engine");
    let world = World::new();
    let color = |x: u32, y: u32, z: u32| (x | y << 8 | z << 16 | 0x5a << 24).to_le_bytes();
    for (kind, tile_mode, tiling) in SHAPES {
        // Not compressed; compressed, in blocks that are not and that are.
        for (compressed, control) in [(false, 0), (true, 0), (true, 0x5c)] {
            let what =
                format!("type {kind}, tile mode {tile_mode}, compressed: {compressed}, control data {control:#x}");
            world.set_control(control);
            world.put_state(0x40, &state(kind, tile_mode, compressed));
            world.once(|memory| {
                let image = memory.image(Surface::State(0x40, 0)).unwrap();
                assert_eq!((image.width, image.height, image.depth), (100, 60, 5));
                for (x, y, z) in (0..5).flat_map(|z| (0..60).flat_map(move |y| (0..100).map(move |x| (x, y, z)))) {
                    memory.write_texel(&image, [x, y, z], &color(x, y, z)).unwrap();
                }
                for (x, y, z) in [(0, 0, 0), (99, 59, 4), (31, 17, 2), (64, 32, 3)] {
                    let mut bytes = [0; 4];
                    memory.read_texel(&image, [x, y, z], &mut bytes).unwrap();
                    assert_eq!(bytes, color(x, y, z), "{what}");
                }
            });
            for z in 0..5 {
                world.blit_out(kind, tiling, compressed, z);
                let found: [u8; 60 * 400] = world.read(LARGE_VA + (1 << 20));
                let wrong = (0..6000).find(|at| found[at * 4..][..4] != color(*at as u32 % 100, *at as u32 / 100, z));
                assert_eq!(wrong, None, "{what}, plane {z}");
            }
            if compressed && control != 0 {
                world.blit_out(kind, tiling, false, 0);
                let raw: [u8; 4] = world.read(LARGE_VA + (1 << 20));
                assert_ne!(raw, color(0, 0, 0), "{what}: a raw read does not give pixels");
            }
        }
    }
}

/// Rows of media blocks cross runs of tiles and blocks of compressed memory.
#[test]
fn rows_of_tiled_images() {
    proves!([EU_045, EU_085], "rows of media blocks on tiled and compressed surfaces");
    let world = World::new();
    for (_, tile_mode, _) in &SHAPES[..4] {
        for (compressed, control) in [(false, 0), (true, 0x5c)] {
            world.set_control(control);
            world.put_state(0x40, &state(1, *tile_mode, compressed));
            world.once(|memory| {
                let image = memory.image(Surface::State(0x40, 0)).unwrap();
                let row: [u8; 400] = std::array::from_fn(|at| (at * 7) as u8);
                for (start, len) in [(0, 64), (64, 64), (128, 61), (189, 3), (192, 64), (256, 64), (320, 64), (384, 16)]
                {
                    memory.write_row(&image, start as u32, 37, &row[start..start + len]).unwrap();
                }
                for x in 0..100 {
                    let mut texel = [0; 4];
                    memory.read_texel(&image, [x, 37, 0], &mut texel).unwrap();
                    assert_eq!(texel, row[x as usize * 4..][..4], "tile mode {tile_mode}, texel {x}");
                }
                let mut found = [0; 64];
                memory.read_row(&image, 37, 37, &mut found).unwrap();
                assert_eq!(found, row[37..101]);
            });
        }
    }
}

/// Pages without memory: their texels are 0, and are not written.
#[test]
fn texels_of_a_null_page() {
    proves!(EU_085, "texels in NULL pages read 0, compressed or not");
    let world = World::new();
    for mode in [0, 5] {
        let mut words = state(1, 3, false);
        (words[3], words[6]) = (127, mode);
        (words[8], words[9]) = (NULL_VA as u32, (NULL_VA >> 32) as u32);
        world.put_state(0x40, &words);
        world.once(|memory| {
            let image = memory.image(Surface::State(0x40, 0)).unwrap();
            let mut bytes = [1; 4];
            memory.write_texel(&image, [5, 6, 0], &[9; 4]).unwrap();
            memory.read_texel(&image, [5, 6, 0], &mut bytes).unwrap();
            assert_eq!(bytes, [0; 4]);
        });
    }
}

/// A state of RGBA8 texels in five planes of cubes or slices, with all levels that 100 by 60 texels have.
fn with_levels(kind: u32, tile_mode: u32, compressed: bool) -> [u32; 16] {
    let mut words = state(kind, tile_mode, compressed);
    words[0] |= 1 << 16 | 1 << 14;
    // Planes of 256 rows of 1024 bytes in Tile64, whose levels begin at tiles, and of 128 rows of 512 bytes in others.
    let (rows, pitch) = if tile_mode == 1 { (256, 1024) } else { (128, 512) };
    words[1] = rows / 4;
    words[3] = (if kind == 3 { 0 } else { 4 }) << 21 | (pitch - 1);
    words[5] = 15 << 8 | if tile_mode == 1 { 2 } else { 6 };
    words
}

/// Each texel of each level and plane has its own memory, whatever the layout is.
#[test]
fn texels_of_levels_are_apart() {
    proves!([EU_043, EU_085], "texels of all levels of planes, cubes and volumes in each layout, compressed or not");
    let world = World::new();
    for (kind, tile_mode) in [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 3), (3, 0), (3, 3)] {
        for (compressed, control) in [(false, 0), (true, 0x5c)] {
            world.set_control(control);
            world.put_state(0x40, &with_levels(kind, tile_mode, compressed));
            world.once(|memory| {
                let image = memory.image(Surface::State(0x40, 0)).unwrap();
                let texels: Vec<_> = (0..image.levels.count)
                    .map(|level| image.level(level))
                    .flat_map(|image| {
                        let Image { width, height, depth, .. } = image;
                        (0..width * height * depth)
                            .map(move |at| (image, [at % width, at / width % height, at / width / height]))
                    })
                    .collect();
                for (number, (image, at)) in (1u32..).zip(&texels) {
                    memory.write_texel(image, *at, &number.to_le_bytes()).unwrap();
                }
                for (number, (image, at)) in (1u32..).zip(&texels) {
                    let mut bytes = [0; 4];
                    memory.read_texel(image, *at, &mut bytes).unwrap();
                    assert_eq!(u32::from_le_bytes(bytes), number, "{kind} {tile_mode} {:?} {at:?}", image.levels);
                }
            });
        }
    }
}

/// Atomic operations on texels are those on their memory, at their places in tiles; compressed images have none.
#[test]
fn atomic_operations_on_texels() {
    proves!(EU_045, "atomic operations on texels of linear and tiled images; compressed ones are refused by name");
    let world = World::new();
    for (kind, tile_mode, _) in SHAPES {
        world.put_state(0x40, &state(kind, tile_mode, false));
        world.put_state(0x80, &state(kind, tile_mode, true));
        world.once(|memory| {
            let image = memory.image(Surface::State(0x40, 0)).unwrap();
            for at in [[0; 3], [99, 59, 4], [31, 17, 2]] {
                memory.write_texel(&image, at, &7u32.to_le_bytes()).unwrap();
                assert_eq!(memory.atomic_texel(&image, at, Atomic::Add, [5, 0]), Ok(7));
                assert_eq!(memory.atomic_texel(&image, at, Atomic::Cas, [12, 1000]), Ok(12));
                let mut bytes = [0; 4];
                memory.read_texel(&image, at, &mut bytes).unwrap();
                assert_eq!(u32::from_le_bytes(bytes), 1000, "{kind} {tile_mode} {at:?}");
            }
            let image = memory.image(Surface::State(0x80, 0)).unwrap();
            let refused = memory.atomic_texel(&image, [0; 3], Atomic::Add, [1, 0]);
            assert_eq!(refused, Err(FaultKind::Image.into()));
        });
    }
}
