// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Compares fills and copies of the blitter with a CPU model, over entire surfaces.

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, Picture, Random, Tiling, no_registers, passed};
use crate::blt::Area;
use crate::device::Engine;
use crate::gen6::blt::{Depth, rop};
use crate::gen6::gem::{Context, Program, Trust};
use crate::number::low;

/// Layout, row pitch in bytes, and height of a surface.
type Shape = (Tiling, usize, usize);

const fn area(x: u32, y: u32, width: u32, height: u32) -> Area {
    Area { x, y, width, height }
}

struct Fill {
    name: &'static str,
    depth: Depth,
    to: Shape,
    area: Area,
    rop: u32,
}

const fn fill(name: &'static str, depth: Depth, to: Shape, area: Area) -> Fill {
    Fill { name, depth, to, area, rop: rop::PATTERN }
}

use Depth::{Bits8, Bits16, Bits32};
use Tiling::{Linear, X, Y};

const FILLS: [Fill; 7] = [
    fill("all of 1 MiB", Bits32, (Linear, 4096, 256), area(0, 0, 1024, 256)),
    fill("part of 32 bits", Bits32, (Linear, 4096, 64), area(5, 3, 999, 60)),
    fill("16 bits", Bits16, (Linear, 1024, 64), area(3, 1, 317, 41)),
    fill("8 bits", Bits8, (Linear, 1024, 64), area(3, 1, 517, 41)),
    fill("X tiles", Bits32, (X, 2048, 64), area(30, 5, 301, 33)),
    fill("X tiles of 8 bits", Bits8, (X, 1024, 32), area(509, 7, 7, 11)),
    fill("one pixel", Bits32, (Linear, 4096, 16), area(1023, 15, 1, 1)),
];

struct Copy {
    name: &'static str,
    depth: Depth,
    from: Shape,
    area: Area,
    to: Shape,
    x: u32,
    y: u32,
    rop: u32,
}

const fn copy(name: &'static str, depth: Depth, from: Shape, area: Area, to: Shape, x: u32, y: u32) -> Copy {
    Copy { name, depth, from, area, to, x, y, rop: rop::SOURCE }
}

const COPIES: [Copy; 5] = [
    copy("1 MiB", Bits32, (Linear, 4096, 256), area(0, 0, 1024, 256), (Linear, 4096, 256), 0, 0),
    copy("one page", Bits32, (Linear, 4096, 1), area(0, 0, 1024, 1), (Linear, 4096, 1), 0, 0),
    copy("bytes at odd offsets", Bits8, (Linear, 1024, 64), area(3, 1, 517, 41), (Linear, 2048, 64), 1029, 17),
    copy("16 bits a pixel", Bits16, (Linear, 2048, 32), area(7, 3, 333, 29), (Linear, 1024, 64), 11, 35),
    copy("32 bits a pixel", Bits32, (Linear, 2048, 64), area(13, 5, 301, 55), (Linear, 4096, 64), 701, 7),
];

const X_COPIES: [Copy; 4] = [
    copy("linear to X", Bits32, (Linear, 2048, 64), area(3, 1, 400, 60), (X, 2048, 64), 100, 3),
    copy("X to linear", Bits32, (X, 2048, 64), area(100, 3, 400, 60), (Linear, 2048, 64), 3, 1),
    copy("X to X", Bits32, (X, 1024, 64), area(31, 9, 130, 50), (X, 2048, 64), 5, 1),
    copy("X to X of 16 bits", Bits16, (X, 1024, 64), area(31, 9, 130, 50), (X, 2048, 64), 507, 6),
];

const Y_COPIES: [Copy; 4] = [
    copy("linear to Y", Bits32, (Linear, 2048, 128), area(17, 5, 301, 90), (Y, 2048, 128), 43, 13),
    copy("Y to linear", Bits32, (Y, 2048, 128), area(17, 5, 301, 90), (Linear, 2048, 128), 43, 13),
    copy("Y to X", Bits32, (Y, 1024, 64), area(31, 30, 130, 30), (X, 2048, 64), 5, 1),
    copy("X to Y", Bits8, (X, 1024, 64), area(31, 30, 130, 30), (Y, 1024, 64), 77, 1),
];

const OPERATIONS: [u32; 3] = [rop::SOURCE_XOR, rop::SOURCE_AND, rop::INVERT];

/// The result of a raster operation for each bit of pattern, source and destination.
fn combined(rop: u32, pattern: u8, source: u8, destination: u8) -> u8 {
    (0..8).fold(0, |result, bit| {
        let at = |byte: u8| u32::from(byte >> bit & 1);
        let index = at(pattern) << 2 | at(source) << 1 | at(destination);
        result | ((rop >> index & 1) as u8) << bit
    })
}

/// Fills of parts of linear and X-tiled surfaces.
pub fn fills(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    run_fills(env, engine, &FILLS)?;
    passed(format!("{} fills of 8 to 32 bits a pixel", FILLS.len()))
}

fn run_fills(env: &CheckEnvironment<'_>, engine: Engine, fills: &[Fill]) -> Result<()> {
    let mut random = Random(4);
    for fill in fills {
        let (tiling, pitch, height) = fill.to;
        let mut picture = Picture::new(env, tiling, pitch, height, &mut random)?;
        let colour = low(random.quadword());
        env.run_on(engine, &picture, |batch, surface| {
            batch.fill(surface, fill.depth, fill.area, fill.rop, colour);
        })?;
        let (pixel, bytes) = (fill.depth.bytes(), colour.to_le_bytes());
        let (left, width) = (fill.area.x as usize * pixel, fill.area.width as usize * pixel);
        for y in (fill.area.y as usize..).take(fill.area.height as usize) {
            for byte in 0..width {
                let at = &mut picture.rows[y * pitch + left + byte];
                *at = combined(fill.rop, bytes[byte % pixel], 0, *at);
            }
        }
        picture.compare(fill.name)?;
    }
    Ok(())
}

/// Linear copies.
pub fn copies(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    run_copies(env, engine, &COPIES)
}

/// Copies from and to X-tiled surfaces.
pub fn tiled_copies(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    run_copies(env, engine, &X_COPIES)
}

/// Copies from and to Y-tiled surfaces, which a register selects.
pub fn y_tiles(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    if env.parser { run_copies(env, engine, &Y_COPIES) } else { no_registers() }
}

/// Copies and fills that combine source, colour and destination.
pub fn raster_operations(env: &CheckEnvironment<'_>, engine: Engine) -> Result<Found> {
    let [copy, ..] = X_COPIES;
    for rop in OPERATIONS {
        run_copies(env, engine, &[Copy { rop, name: "raster operation of a copy", ..copy }])?;
    }
    for rop in [rop::PATTERN_XOR, rop::INVERT] {
        let [_, fill, ..] = FILLS;
        run_fills(env, engine, &[Fill { rop, name: "raster operation of a fill", ..fill }])?;
    }
    passed(format!("{} of copies and 2 of fills", OPERATIONS.len()))
}

fn run_copies(env: &CheckEnvironment<'_>, engine: Engine, copies: &[Copy]) -> Result<Found> {
    let context = Context::new(env.device, engine)?;
    let mut random = Random(5);
    let mut total = 0;
    for copy in copies {
        let [from, mut to] = {
            let mut picture = |(tiling, pitch, height): Shape| Picture::new(env, tiling, pitch, height, &mut random);
            [picture(copy.from)?, picture(copy.to)?]
        };
        let old = to.rows.clone();
        total += model(copy, &from.rows, &mut to.rows);
        ensure!(to.rows != old, "{}: the copy would change nothing", copy.name);
        let y = from.tiling == Y || to.tiling == Y;
        let trust = if y { Trust::Parsed } else { Trust::User };
        let program = Program::trusted(env.device, trust, |batch| {
            if y {
                batch.tiles_are(from.tiling, to.tiling);
            }
            batch.copy(from.surface(), copy.area, to.surface(), copy.x, copy.y, copy.depth, copy.rop);
            if y {
                batch.tiles_are(X, X);
            }
        })?;
        context.run(&program, env.timeout)?;
        to.compare(copy.name)?;
        from.compare(copy.name)?;
    }
    passed(format!("{} copies, {total} bytes", copies.len()))
}

/// Performs the copy on the CPU, on linear rows. Returns the number of bytes.
fn model(copy: &Copy, source: &[u8], target: &mut [u8]) -> usize {
    let pixel = copy.depth.bytes();
    let width = copy.area.width as usize * pixel;
    let (x, to_x) = (copy.area.x as usize * pixel, copy.x as usize * pixel);
    for row in 0..copy.area.height as usize {
        let from = (copy.area.y as usize + row) * copy.from.1 + x;
        let to = (copy.y as usize + row) * copy.to.1 + to_x;
        for byte in 0..width {
            target[to + byte] = combined(copy.rop, 0, source[from + byte], target[to + byte]);
        }
    }
    width * copy.area.height as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case stays within its surfaces, and tiled surfaces consist of complete tiles.
    #[test]
    fn cases_stay_inside_their_surfaces() {
        let inside = |name: &str, (tiling, pitch, height): Shape, depth: Depth, x: u32, y: u32, area: Area| {
            let (tile_width, tile_height) = [(8, 1), (512, 8), (128, 32)][tiling as usize];
            assert!(pitch.is_multiple_of(tile_width) && height.is_multiple_of(tile_height), "{name}: shape");
            assert!((x + area.width) as usize * depth.bytes() <= pitch, "{name}: width");
            assert!((y + area.height) as usize <= height, "{name}: height");
        };
        for copy in COPIES.iter().chain(&X_COPIES).chain(&Y_COPIES) {
            inside(copy.name, copy.from, copy.depth, copy.area.x, copy.area.y, copy.area);
            inside(copy.name, copy.to, copy.depth, copy.x, copy.y, copy.area);
        }
        for fill in &FILLS {
            inside(fill.name, fill.to, fill.depth, fill.area.x, fill.area.y, fill.area);
        }
    }

    #[test]
    fn raster_operations_combine_bits() {
        let (pattern, source, destination) = (0b1111_0000, 0b1100_1100, 0b1010_1010);
        let combine = |rop| combined(rop, pattern, source, destination);
        assert_eq!((combine(rop::SOURCE), combine(rop::PATTERN)), (source, pattern));
        assert_eq!(
            (combine(rop::SOURCE_XOR), combine(rop::PATTERN_XOR)),
            (source ^ destination, pattern ^ destination)
        );
        assert_eq!((combine(rop::SOURCE_AND), combine(rop::INVERT)), (source & destination, !destination));
    }
}
