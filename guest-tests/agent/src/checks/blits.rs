// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares fills and copies of the copy engine with a CPU model, over entire buffers.

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Random, compare};
use crate::blt::{Area, Depth, Surface, Tiling, offset};
use crate::device::Engine;
use crate::number::{count, low};
use crate::vm::{Buffer, Place, Vm};

/// The layout of a test surface.
#[derive(Clone, Copy)]
struct Shape {
    place: Place,
    tiling: Tiling,
    /// In bytes.
    pitch: usize,
    height: usize,
}

const fn linear(place: Place, pitch: usize, height: usize) -> Shape {
    Shape { place, tiling: Tiling::Linear, pitch, height }
}

const fn tiled(place: Place, tiling: Tiling, pitch: usize, height: usize) -> Shape {
    Shape { place, tiling, pitch, height }
}

impl Shape {
    fn len(&self) -> usize {
        self.pitch * self.height
    }

    fn surface(&self, buffer: &Buffer<'_>) -> Surface {
        Surface {
            address: buffer.address(),
            pitch: count(self.pitch),
            height: count(self.height),
            tiling: self.tiling,
            system: self.place == Place::System,
        }
    }

    /// Creates a buffer of this shape, filled with pseudo-random bytes. Returns the buffer and its contents.
    fn buffer<'v>(&self, vm: &'v Vm<'_>, random: &mut Random) -> Result<(Buffer<'v>, Vec<u8>)> {
        let buffer = vm.buffer(self.place, self.len() as u64)?;
        let bytes = random.bytes(self.len());
        buffer.mapping().write(&bytes);
        Ok((buffer, bytes))
    }
}

/// The copy command to use.
#[derive(Clone, Copy, Debug)]
enum Command {
    Fast,
    Block,
}

struct Copy {
    name: &'static str,
    command: Command,
    depth: Depth,
    from: Shape,
    area: Area,
    to: Shape,
    x: u32,
    y: u32,
}

const fn area(x: u32, y: u32, width: u32, height: u32) -> Area {
    Area { x, y, width, height }
}

use Place::{System, Vram};

const fn full_copy(name: &'static str, from: Place, to: Place, pitch: usize, height: usize) -> Copy {
    Copy {
        name,
        command: Command::Fast,
        depth: Depth::Bits32,
        from: linear(from, pitch, height),
        area: area(0, 0, count(pitch) / 4, count(height)),
        to: linear(to, pitch, height),
        x: 0,
        y: 0,
    }
}

const COPIES: [Copy; 11] = [
    // 4 MiB in page-sized rows, as in the driver's memory moves.
    full_copy("4 MiB local to local", Vram, Vram, 4096, 1024),
    full_copy("4 MiB system to local", System, Vram, 4096, 1024),
    full_copy("4 MiB local to system", Vram, System, 4096, 1024),
    full_copy("one page", Vram, Vram, 4096, 1),
    full_copy("64 KiB system to system", System, System, 4096, 16),
    Copy {
        name: "bytes at odd offsets",
        command: Command::Fast,
        depth: Depth::Bits8,
        from: linear(System, 1024, 64),
        area: area(3, 1, 517, 41),
        to: linear(Vram, 2048, 64),
        x: 1029,
        y: 17,
    },
    Copy {
        name: "16 bits a pixel",
        command: Command::Fast,
        depth: Depth::Bits16,
        from: linear(Vram, 2048, 32),
        area: area(7, 3, 333, 29),
        to: linear(System, 1024, 64),
        x: 11,
        y: 35,
    },
    Copy {
        name: "64 bits a pixel",
        command: Command::Fast,
        depth: Depth::Bits64,
        from: linear(Vram, 2048, 32),
        area: area(5, 3, 123, 29),
        to: linear(Vram, 4096, 64),
        x: 301,
        y: 35,
    },
    Copy {
        name: "128 bits a pixel",
        command: Command::Fast,
        depth: Depth::Bits128,
        from: linear(System, 4096, 32),
        area: area(9, 3, 100, 29),
        to: linear(Vram, 2048, 64),
        x: 1,
        y: 2,
    },
    Copy {
        name: "block copy of 32 bits",
        command: Command::Block,
        depth: Depth::Bits32,
        from: linear(System, 2048, 64),
        area: area(13, 5, 301, 55),
        to: linear(Vram, 4096, 64),
        x: 701,
        y: 7,
    },
    Copy {
        name: "block copy of bytes",
        command: Command::Block,
        depth: Depth::Bits8,
        from: linear(Vram, 1024, 64),
        area: area(1, 5, 1001, 55),
        to: linear(System, 1024, 64),
        x: 23,
        y: 9,
    },
];

const TILED: [Copy; 6] = [
    Copy {
        name: "linear to Tile4",
        command: Command::Fast,
        depth: Depth::Bits32,
        from: linear(System, 2048, 128),
        area: area(17, 5, 301, 90),
        to: tiled(Vram, Tiling::Tile4, 2048, 128),
        x: 43,
        y: 13,
    },
    Copy {
        name: "Tile4 to linear",
        command: Command::Fast,
        depth: Depth::Bits32,
        from: tiled(Vram, Tiling::Tile4, 2048, 128),
        area: area(17, 5, 301, 90),
        to: linear(System, 2048, 128),
        x: 43,
        y: 13,
    },
    Copy {
        name: "Tile4 to Tile4",
        command: Command::Fast,
        depth: Depth::Bits32,
        from: tiled(Vram, Tiling::Tile4, 1024, 128),
        area: area(31, 30, 130, 70),
        to: tiled(Vram, Tiling::Tile4, 2048, 128),
        x: 5,
        y: 1,
    },
    Copy {
        name: "linear to X",
        command: Command::Fast,
        depth: Depth::Bits32,
        from: linear(Vram, 2048, 64),
        area: area(3, 1, 400, 60),
        to: tiled(Vram, Tiling::X, 2048, 64),
        x: 100,
        y: 3,
    },
    Copy {
        name: "block copy of linear to Tile4",
        command: Command::Block,
        depth: Depth::Bits32,
        from: linear(System, 2048, 128),
        area: area(17, 5, 301, 90),
        to: tiled(Vram, Tiling::Tile4, 2048, 128),
        x: 43,
        y: 13,
    },
    Copy {
        name: "block copy of Tile4 to linear, 16 bits",
        command: Command::Block,
        depth: Depth::Bits16,
        from: tiled(Vram, Tiling::Tile4, 1024, 64),
        area: area(9, 2, 400, 60),
        to: linear(System, 2048, 64),
        x: 6,
        y: 4,
    },
];

/// Linear copies within and between the two memories.
pub fn copies(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    run_copies(env, engine, &COPIES)
}

/// Copies to and from tiled surfaces, checked against the tile layouts.
pub fn tiled_copies(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    run_copies(env, engine, &TILED)
}

fn run_copies(env: &CheckEnvironment<'_>, engine: Engine, copies: &[Copy]) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let mut random = Random(4);
    let (mut total, mut crcs) = (0, crc32fast::Hasher::new());
    for copy in copies {
        let (from, source) = copy.from.buffer(&vm, &mut random)?;
        let (to, mut expected) = copy.to.buffer(&vm, &mut random)?;
        let (surface, target) = (copy.from.surface(&from), copy.to.surface(&to));
        env.run(&vm, &queue, Place::System, |batch| {
            match copy.command {
                Command::Fast => batch.fast_copy(&surface, copy.area, &target, copy.x, copy.y, copy.depth),
                Command::Block => batch.block_copy(&surface, copy.area, &target, copy.x, copy.y, copy.depth),
            };
        })?;
        total += model_copy(copy, &source, &mut expected);
        crcs.update(&compare(copy.name, &to, &expected)?.to_le_bytes());
        compare(copy.name, &from, &source)?;
    }
    Ok(format!("{} copies, {total} bytes, CRC-32 of all {:08x}", copies.len(), crcs.finalize()))
}

/// Performs the copy on the CPU. Returns the number of bytes copied.
fn model_copy(copy: &Copy, source: &[u8], target: &mut [u8]) -> usize {
    let pixel = copy.depth.bytes();
    let width = copy.area.width as usize * pixel;
    for row in 0..copy.area.height as usize {
        let (x, y) = (copy.area.x as usize * pixel, copy.area.y as usize + row);
        let (to_x, to_y) = (copy.x as usize * pixel, copy.y as usize + row);
        let from_at = |byte| offset(copy.from.tiling, copy.from.pitch, x + byte, y);
        let to_at = |byte| offset(copy.to.tiling, copy.to.pitch, to_x + byte, to_y);
        if copy.from.tiling == Tiling::Linear && copy.to.tiling == Tiling::Linear {
            target[to_at(0)..][..width].copy_from_slice(&source[from_at(0)..][..width]);
        } else {
            (0..width).for_each(|byte| target[to_at(byte)] = source[from_at(byte)]);
        }
    }
    width * copy.area.height as usize
}

/// Copies linear to tiled and back, with each of the two commands in each direction. The data must be unchanged.
pub fn round_trips(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let mut random = Random(5);
    let flat = linear(System, 2048, 256);
    let all = area(0, 0, 512, 256);
    let mut count = 0;
    for tiling in [Tiling::X, Tiling::Tile4, Tiling::Tile64] {
        for (there, back) in [(Command::Fast, Command::Block), (Command::Block, Command::Fast)] {
            let between = tiled(Vram, tiling, 2048, 256);
            let (from, source) = flat.buffer(&vm, &mut random)?;
            let (middle, old) = between.buffer(&vm, &mut random)?;
            let (to, _) = flat.buffer(&vm, &mut random)?;
            for (command, from, to) in [
                (there, flat.surface(&from), between.surface(&middle)),
                (back, between.surface(&middle), flat.surface(&to)),
            ] {
                env.run(&vm, &queue, Place::System, |batch| {
                    match command {
                        Command::Fast => batch.fast_copy(&from, all, &to, 0, 0, Depth::Bits32),
                        Command::Block => batch.block_copy(&from, all, &to, 0, 0, Depth::Bits32),
                    };
                })?;
            }
            compare(&format!("{tiling:?}, {there:?} there, {back:?} back"), &to, &source)?;
            // Detects copies that do nothing or do not tile, which would otherwise pass.
            let tiles = middle.mapping().read(between.len());
            ensure!(tiles != old, "{tiling:?}: the tiled surface did not change");
            ensure!(tiles != source, "{tiling:?}: the intermediate surface is linear");
            count += 1;
        }
    }
    Ok(format!("{count} round trips through X, Tile4 and Tile64"))
}

struct Fill {
    name: &'static str,
    depth: Depth,
    to: Shape,
    area: Area,
}

const FILLS: [Fill; 8] = [
    Fill { name: "all of 4 MiB", depth: Depth::Bits32, to: linear(Vram, 4096, 1024), area: area(0, 0, 1024, 1024) },
    Fill { name: "system memory", depth: Depth::Bits32, to: linear(System, 4096, 64), area: area(5, 3, 999, 60) },
    Fill { name: "8 bits", depth: Depth::Bits8, to: linear(Vram, 1024, 64), area: area(3, 1, 517, 41) },
    Fill { name: "16 bits", depth: Depth::Bits16, to: linear(Vram, 1024, 64), area: area(3, 1, 317, 41) },
    Fill { name: "64 bits", depth: Depth::Bits64, to: linear(Vram, 4096, 64), area: area(3, 1, 317, 41) },
    Fill { name: "128 bits", depth: Depth::Bits128, to: linear(Vram, 4096, 64), area: area(3, 1, 217, 41) },
    Fill { name: "Tile4", depth: Depth::Bits32, to: tiled(Vram, Tiling::Tile4, 2048, 64), area: area(30, 30, 301, 33) },
    Fill { name: "one pixel", depth: Depth::Bits32, to: linear(Vram, 4096, 16), area: area(1023, 15, 1, 1) },
];

/// Fills at every colour depth.
pub fn fills(env: &CheckEnvironment<'_>, engine: Engine) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(engine)?;
    let mut random = Random(6);
    for fill in &FILLS {
        let (to, mut expected) = fill.to.buffer(&vm, &mut random)?;
        let colour = [0; 4].map(|_| low(random.quadword()));
        let surface = fill.to.surface(&to);
        env.run(&vm, &queue, Place::System, |batch| {
            batch.fast_color(&surface, fill.depth, fill.area, colour);
        })?;
        let bytes: Vec<u8> = colour.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let pixel = fill.depth.bytes();
        let (left, width) = (fill.area.x as usize * pixel, fill.area.width as usize * pixel);
        for y in (fill.area.y as usize..).take(fill.area.height as usize) {
            for byte in 0..width {
                expected[offset(fill.to.tiling, fill.to.pitch, left + byte, y)] = bytes[byte % pixel];
            }
        }
        compare(fill.name, &to, &expected)?;
    }
    Ok(format!("{} fills of 8 to 128 bits per pixel", FILLS.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case stays within its surfaces, and tiled surfaces consist of complete tiles.
    #[test]
    fn cases_stay_inside_their_surfaces() {
        let inside = |name: &str, shape: &Shape, depth: Depth, x: u32, y: u32, area: &Area| {
            let (width, height) = match shape.tiling {
                Tiling::Linear => (64, 1),
                Tiling::X => (512, 8),
                Tiling::Tile4 => (128, 32),
                Tiling::Tile64 => unreachable!(),
            };
            assert!(shape.pitch.is_multiple_of(width) && shape.height.is_multiple_of(height), "{name}: shape");
            assert!((x + area.width) as usize * depth.bytes() <= shape.pitch, "{name}: width");
            assert!((y + area.height) as usize <= shape.height, "{name}: height");
        };
        for copy in COPIES.iter().chain(&TILED) {
            inside(copy.name, &copy.from, copy.depth, copy.area.x, copy.area.y, &copy.area);
            inside(copy.name, &copy.to, copy.depth, copy.x, copy.y, &copy.area);
        }
        for fill in &FILLS {
            inside(fill.name, &fill.to, fill.depth, fill.area.x, fill.area.y, &fill.area);
        }
    }

    #[test]
    fn the_model_moves_pixels_to_their_tile() {
        let copy = &TILED[0];
        let source: Vec<u8> = Random(7).bytes(copy.from.len());
        let mut target = vec![0; copy.to.len()];
        assert_eq!(model_copy(copy, &source, &mut target), 301 * 90 * 4);
        // Pixel (17, 5) is copied to (43, 13): byte 172 of row 13, which is tile 1, column 44, row 13.
        let at = 4096 + 1024 + 256 + 2 * 64 + 16 + 12;
        assert_eq!(target[at..at + 4], source[5 * 2048 + 68..][..4]);
    }
}
