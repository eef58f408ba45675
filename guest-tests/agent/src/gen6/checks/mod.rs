// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The checks of an integrated GPU: its engines, its blitter, and its aperture with fence registers.

mod aperture;
mod blits;
mod clock;
mod fences;
mod flow;
mod registers;
mod stores;

use std::time::Duration;

use anyhow::{Result, ensure};

use super::batch::Batch;
use super::blt::Surface;
use super::gem::{Context, Object, Program};
use super::tiling::{Swizzle, Tiling, offset};
use crate::checks::Random;
use crate::device::{Device, Engine};
use crate::number::count;

/// The result of a check that found no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The check passed; the details.
    Passed(String),
    /// The check does not apply to the card; the reason.
    NotApplicable(String),
}

/// A check of one engine. An error has the expected value, the value found and its location.
pub type EngineCheck = fn(&CheckEnvironment<'_>, Engine) -> Result<Found>;
/// A check of several engines, or of none.
pub type CardCheck = fn(&CheckEnvironment<'_>, &[Engine]) -> Result<Found>;

/// Checks for every engine.
pub const EVERY_ENGINE: [(&str, EngineCheck); 8] = [
    ("stores", stores::stores),
    ("flush writes", stores::flush_writes),
    ("pinned objects", stores::pinned_objects),
    ("chained batches", flow::chained),
    ("timestamp", clock::timestamp),
    ("fence chain", fences::chain),
    ("fence files", fences::files),
    ("waits", fences::waits),
];

/// Checks for the engines that flush with PIPE_CONTROL.
pub const RENDER_ENGINES: [(&str, EngineCheck); 3] = [
    ("registers", registers::registers),
    ("contexts", registers::contexts),
    ("conditional end", flow::conditional_end),
];

/// Checks for the blitter.
pub const COPY_ENGINES: [(&str, EngineCheck); 5] = [
    ("fills", blits::fills),
    ("copies", blits::copies),
    ("tiled copies", blits::tiled_copies),
    ("Y tiles", blits::y_tiles),
    ("raster operations", blits::raster_operations),
];

/// Checks for all engines together.
pub const TOGETHER: [(&str, CardCheck); 3] =
    [("fence ring", fences::ring), ("order by objects", fences::order_by_objects), ("mi_math", flow::math)];

/// Checks of the aperture. They use the blitter where they use an engine.
pub const APERTURE: [(&str, CardCheck); 5] = [
    ("linear objects", aperture::linear),
    ("X tiles", aperture::x_tiles),
    ("Y tiles", aperture::y_tiles),
    ("many tiled objects", aperture::many),
    ("blits to tiles", aperture::blits),
];

/// The environment of a check.
pub struct CheckEnvironment<'d> {
    /// The card.
    pub device: &'d Device,
    /// Time limit of one batch.
    pub timeout: Duration,
    /// Rate of the timestamps in Hz, as reported by the driver.
    pub reference_clock: u32,
    /// The driver has a command parser, so batches can access registers.
    pub parser: bool,
}

impl<'d> CheckEnvironment<'d> {
    /// Allocates `bytes` of zeros.
    fn object(&self, bytes: usize) -> Result<Object<'d>> {
        Ok(Object::new(self.device, bytes)?)
    }

    /// Builds a program that draws to `picture` and runs it in a new context.
    fn run_on<'o>(
        &self,
        engine: Engine,
        picture: &'o Picture<'d>,
        build: impl FnOnce(&mut Batch<'o>, Surface<'o>),
    ) -> Result<()> {
        let program = Program::new(self.device, |batch| build(batch, picture.surface()))?;
        Ok(Context::new(self.device, engine)?.run(&program, self.timeout)?)
    }
}

/// The result of a check that must access registers in batches, on a card on which they cannot.
fn no_registers() -> Result<Found> {
    Ok(Found::NotApplicable("not applicable: without a command parser, batches cannot access registers".into()))
}

fn passed(details: impl Into<String>) -> Result<Found> {
    Ok(Found::Passed(details.into()))
}

/// Compares the memory of `object` with `expected`.
fn compare(what: &str, object: &Object<'_>, expected: &[u8]) -> Result<()> {
    object.prepare(false)?;
    same(what, &object.memory().read(expected.len()), expected)
}

fn same(what: &str, found: &[u8], expected: &[u8]) -> Result<()> {
    if let Some(at) = expected.iter().zip(found).position(|(want, got)| want != got) {
        let at = at & !7;
        let wrong = expected.iter().zip(found).filter(|(want, got)| want != got).count();
        let end = (at + 8).min(expected.len());
        ensure!(
            false,
            "{what}: {wrong} of {} bytes differ, first at {at:#x}: expected {:02x?}, got {:02x?}",
            expected.len(),
            &expected[at..end],
            &found[at..end]
        );
    }
    ensure!(found.len() == expected.len(), "{what}: expected {} bytes, got {}", expected.len(), found.len());
    Ok(())
}

/// A surface of a check: rows of `pitch` bytes, and its contents as linear rows.
struct Picture<'d> {
    object: Object<'d>,
    tiling: Tiling,
    swizzle: Swizzle,
    pitch: usize,
    rows: Vec<u8>,
}

impl<'d> Picture<'d> {
    /// Creates a surface with pseudo-random contents. Its object has the layout `tiling` for the driver, too.
    fn new(
        env: &CheckEnvironment<'d>,
        tiling: Tiling,
        pitch: usize,
        height: usize,
        random: &mut Random,
    ) -> Result<Self> {
        let object = env.object(pitch * height)?;
        let swizzle = object.set_tiling(tiling, count(pitch))?;
        let picture = Picture { object, tiling, swizzle, pitch, rows: random.bytes(pitch * height) };
        picture.object.prepare(false)?;
        picture.object.memory().write(&picture.in_memory());
        Ok(picture)
    }

    /// The surface for a command of the blitter.
    fn surface(&self) -> Surface<'_> {
        Surface { object: &self.object, pitch: count(self.pitch), tiling: self.tiling }
    }

    /// The contents as they are in memory.
    fn in_memory(&self) -> Vec<u8> {
        let mut memory = vec![0; self.rows.len()];
        for (at, byte) in self.rows.iter().enumerate() {
            memory[offset(self.tiling, self.swizzle, self.pitch, at % self.pitch, at / self.pitch)] = *byte;
        }
        memory
    }

    /// Compares the memory with the contents.
    fn compare(&self, what: &str) -> Result<()> {
        compare(what, &self.object, &self.in_memory())
    }
}
