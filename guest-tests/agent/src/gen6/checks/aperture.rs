// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses through the aperture: linear, and tiled by fence registers. The CPU's own mapping shows the memory as it is.

use anyhow::{Result, ensure};

use super::{CheckEnvironment, Found, Picture, Random, Tiling, passed, same};
use crate::blt::Area;
use crate::device::Engine;
use crate::gen6::blt::{Depth, rop};
use crate::mapping::Mapping;
use crate::number::{count, low};

/// Row pitch in bytes and height of a surface: few pages, because each access of the CPU is emulated.
const PITCH: usize = 1024;
const HEIGHT: usize = 32;

/// An object without tiling.
pub fn linear(env: &CheckEnvironment<'_>, _engines: &[Engine]) -> Result<Found> {
    through_the_aperture(env, Tiling::Linear)
}

/// An X-tiled object.
pub fn x_tiles(env: &CheckEnvironment<'_>, _engines: &[Engine]) -> Result<Found> {
    through_the_aperture(env, Tiling::X)
}

/// A Y-tiled object.
pub fn y_tiles(env: &CheckEnvironment<'_>, _engines: &[Engine]) -> Result<Found> {
    through_the_aperture(env, Tiling::Y)
}

/// The aperture presents linear rows: reads return what is in memory in the object's layout, and writes go there. A
/// read by system call returns the memory.
fn through_the_aperture(env: &CheckEnvironment<'_>, tiling: Tiling) -> Result<Found> {
    let mut random = Random(8);
    let mut picture = Picture::new(env, tiling, PITCH, HEIGHT, &mut random)?;
    let aperture = picture.object.aperture()?;
    picture.object.prepare(true)?;
    same("reads through the aperture", &aperture.read(picture.rows.len()), &picture.rows)?;

    picture.rows = random.bytes(picture.rows.len());
    write(&picture, &aperture)?;
    let changed = low(random.quadword());
    aperture.write_u32(PITCH * 9 + 600, changed);
    picture.rows[PITCH * 9 + 600..][..4].copy_from_slice(&changed.to_le_bytes());
    ensure!(aperture.read_u32(PITCH * 9 + 600) == changed, "a dword written through the aperture reads differently");
    picture.compare("writes through the aperture")?;
    same("read by system call", &picture.object.read(picture.rows.len())?, &picture.in_memory())?;
    passed(format!("{} bytes read and written, {:?}", picture.rows.len(), picture.swizzle))
}

/// Writes the rows of `picture` through the aperture.
fn write(picture: &Picture<'_>, aperture: &Mapping) -> Result<()> {
    picture.object.prepare(true)?;
    aperture.write(&picture.rows);
    Ok(())
}

/// More tiled objects than there are fence registers: the driver takes registers from one object for another.
pub fn many(env: &CheckEnvironment<'_>, _engines: &[Engine]) -> Result<Found> {
    const OBJECTS: usize = 40;
    /// Where each object is read and written: in different tiles.
    const SPOTS: [(usize, usize); 3] = [(8, 1), (520, 5), (136, 33)];
    let mut random = Random(9);
    let mut pictures = Vec::new();
    for index in 0..OBJECTS {
        let tiling = if index % 2 == 0 { Tiling::X } else { Tiling::Y };
        let picture = Picture::new(env, tiling, PITCH, 64, &mut random)?;
        let aperture = picture.object.aperture()?;
        pictures.push((picture, aperture));
    }
    for round in 0..2 {
        for (index, (picture, aperture)) in pictures.iter_mut().enumerate() {
            picture.object.prepare(true)?;
            for (x, y) in SPOTS {
                let at = y * PITCH + x;
                let want = u32::from_le_bytes(picture.rows[at..at + 4].try_into()?);
                let got = aperture.read_u32(at);
                ensure!(
                    got == want,
                    "object {index} of {OBJECTS}, round {round}, ({x}, {y}): expected {want:#010x}, got {got:#010x}"
                );
                aperture.write_u32(at, !want);
                picture.rows[at..at + 4].copy_from_slice(&(!want).to_le_bytes());
            }
        }
    }
    for (index, (picture, _)) in pictures.iter().enumerate() {
        picture.compare(&format!("object {index} of {OBJECTS}"))?;
    }
    passed(format!("{OBJECTS} objects, two rounds"))
}

/// The blitter draws into an X-tiled object, which the aperture shows as linear rows; it copies what was written through
/// the aperture.
pub fn blits(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<Found> {
    let Some(engine) = engines.iter().find(|engine| engine.copies()) else {
        return Ok(Found::NotApplicable("not applicable: no blitter is selected".into()));
    };
    let mut random = Random(10);
    let mut drawn = Picture::new(env, Tiling::X, PITCH, HEIGHT, &mut random)?;
    let (area, colour) = (Area { x: 100, y: 5, width: 60, height: 20 }, low(random.quadword()));
    env.run_on(*engine, &drawn, |batch, surface| {
        batch.fill(surface, Depth::Bits32, area, rop::PATTERN, colour);
    })?;
    for y in area.y as usize..(area.y + area.height) as usize {
        for x in area.x as usize..(area.x + area.width) as usize {
            drawn.rows[y * PITCH + 4 * x..][..4].copy_from_slice(&colour.to_le_bytes());
        }
    }
    let aperture = drawn.object.aperture()?;
    drawn.object.prepare(true)?;
    same("a fill seen through the aperture", &aperture.read(drawn.rows.len()), &drawn.rows)?;

    drawn.rows = random.bytes(drawn.rows.len());
    write(&drawn, &aperture)?;
    let mut target = Picture::new(env, Tiling::Linear, PITCH, HEIGHT, &mut random)?;
    let all = Area { x: 0, y: 0, width: count(PITCH) / 4, height: count(HEIGHT) };
    env.run_on(*engine, &drawn, |batch, surface| {
        batch.copy(surface, all, target.surface(), 0, 0, Depth::Bits32, rop::SOURCE);
    })?;
    target.rows.clone_from(&drawn.rows);
    target.compare("a copy of what was written through the aperture")?;
    passed("a fill and a copy of an X-tiled object")
}
