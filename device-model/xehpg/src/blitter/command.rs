// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decoding of the copy engine's commands (Mesa genxml gen125; IGT lib/intel_blt.c; xe_migrate.c).

use super::control::{Control, ControlCopy};
use super::raster::{PAT_COPY, Raster, SRC_COPY};
use super::rectangle::{Rectangle, Resolve, Source};
use super::tiling::{ADDRESS_MASK, Area, Layout, Surface, TILE_4, TILE_X, TILE_Y, Tiling};
use super::{BlitError, Work};
use crate::command::blt::{BlitCommand, Blt};

/// Not inlined, so that the command streamer's loop stays small.
#[inline(never)]
pub(super) fn decode(command: &BlitCommand, dwords: &[u32], swctrl: u32) -> Result<Work, BlitError> {
    let header = dwords.first().copied().unwrap_or(0);
    if command.dwords(header) as usize != dwords.len() || !command.lengths.contains(&dwords.len()) {
        return Err(BlitError::Length { command: command.name, dwords: dwords.len() });
    }
    let fields = &Fields { dwords, swctrl, command: command.name };
    let work = match command.action {
        Blt::SetupClip => Work::Nothing,
        Blt::BlockCopy => block_copy(fields)?,
        Blt::FastCopy => fast_copy(fields)?,
        Blt::FastColor => fast_color(fields)?,
        Blt::ControlSurfaceCopy => ctrl_surf_copy(fields)?,
        Blt::Color => color(fields)?,
        Blt::SourceCopy => src_copy(fields)?,
    };
    Ok(work)
}

/// The dwords of a command with a valid length. Dwords beyond the end of a short form read as zero.
struct Fields<'a> {
    dwords: &'a [u32],
    swctrl: u32,
    command: &'static str,
}

/// Coordinates of a corner, in pixels.
#[derive(Clone, Copy)]
struct Point {
    x: i64,
    y: i64,
}

impl Point {
    /// The point `rows` rows further down, at most 2^28.
    #[allow(clippy::arithmetic_side_effects, reason = "a coordinate has at most 17 bits")]
    fn below(self, rows: i64) -> Point {
        Point { y: self.y + rows, ..self }
    }
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "indices and bit positions are constants below 32; coordinates have 16 bits, pixels at most 16 bytes"
)]
impl Fields<'_> {
    fn dword(&self, index: usize) -> u32 {
        self.dwords.get(index).copied().unwrap_or(0)
    }

    /// Bits `high:low` of a dword.
    fn bits(&self, index: usize, high: u32, low: u32) -> u32 {
        self.dword(index) >> low & (u32::MAX >> (31 - (high - low)))
    }

    fn address(&self, index: usize) -> u64 {
        (u64::from(self.dword(index + 1)) << 32 | u64::from(self.dword(index))) & ADDRESS_MASK
    }

    /// A corner encoded in one dword as two signed 16-bit values.
    fn point(&self, index: usize) -> Point {
        let dword = self.dword(index);
        Point { x: i64::from((dword & 0xffff) as i16), y: i64::from((dword >> 16) as i16) }
    }

    /// A corner plus the surface offset in another dword (bits 13:0 and 29:16).
    fn point_with_offset(&self, index: usize, offset: usize) -> Point {
        let point = self.point(index);
        Point { x: point.x + i64::from(self.bits(offset, 13, 0)), y: point.y + i64::from(self.bits(offset, 29, 16)) }
    }

    /// The destination rectangle in bytes. Its top-left corner is `first` (including the surface offset); its size is
    /// the difference of the coordinates in dwords `index` and `index + 1`. Empty unless the second corner is to the
    /// right of and below the first.
    fn area(&self, first: Point, index: usize, cpp: u32) -> Area {
        let (from, to) = (self.point(index), self.point(index + 1));
        let size = |from: i64, to: i64| u32::try_from(to - from).unwrap_or(0);
        let (width, height) = (size(from.x, to.x) * cpp, size(from.y, to.y));
        Area { column: first.x * i64::from(cpp), row: first.y, width, height }
    }

    fn reserved(&self, field: &'static str, value: u32) -> BlitError {
        BlitError::Reserved { command: self.command, field, value }
    }

    /// Returns an error if a field that selects an unmodelled feature is not zero.
    fn must_be_zero(&self, field: &'static str, value: u32) -> Result<(), BlitError> {
        match value {
            0 => Ok(()),
            value => Err(BlitError::Unmodelled { command: self.command, field, value }),
        }
    }

    /// Bytes per pixel for the XY_BPP code of XY_BLOCK_COPY_BLT and XY_FAST_COLOR_BLT.
    fn color_depth(&self) -> Result<u32, BlitError> {
        let code = self.bits(0, 21, 19);
        let depths = [1, 2, 4, 8, 12, 16];
        depths.get(code as usize).copied().ok_or_else(|| self.reserved("Color Depth", code))
    }

    /// Bytes per pixel for the Color Depth code of the older commands (bits 25:24, or 26:24 of XY_FAST_COPY_BLT).
    fn br13_depth(&self, code: u32) -> Result<u32, BlitError> {
        let depths = [1, 2, 2, 4, 8, 16];
        depths.get(code as usize).copied().ok_or_else(|| self.reserved("Color Depth", code))
    }

    fn tile64(&self, cpp: u32, volume: bool) -> Result<&'static Layout, BlitError> {
        Layout::tile64_of(cpp, volume).ok_or_else(|| self.reserved("Tile64 with Color Depth", cpp * 8))
    }

    /// A surface of XY_BLOCK_COPY_BLT or XY_FAST_COLOR_BLT: pitch, auxiliary mode and tiling are in dword `control`; its
    /// type, its planes and the number of the plane in three dwords from `description` on, which the short forms do not have.
    /// Returns the plane and the number of its first row.
    fn surface(
        &self,
        control: usize,
        address: usize,
        description: usize,
        cpp: u32,
    ) -> Result<(Surface, i64), BlitError> {
        self.must_be_zero("LOD", self.bits(description + 1, 3, 0))?;
        let volume = self.bits(description, 31, 29) == SURFTYPE_3D;
        let tiling = match self.bits(control, 31, 30) {
            0 => Tiling::Linear,
            1 => Tiling::Tiled(&TILE_X),
            2 => Tiling::Tiled(&TILE_4),
            _ => Tiling::Tiled(self.tile64(cpp, volume)?),
        };
        let pitch = i64::from(self.bits(control, 17, 0)) + 1;
        let compressed = self.bits(control, 29, 29) == 1 && self.bits(control, 20, 18) == AUX_CCS_E;
        let surface = Surface::new(self.address(address), pitch_bytes(pitch, tiling), tiling);
        let (index, rows) = (self.bits(description + 2, 31, 21), self.bits(description + 1, 18, 4) * QPITCH_ROWS);
        Ok(Surface { compressed, ..surface }.slice_of(index, rows))
    }

    /// A surface of the two pre-Gen12 commands. The pitch is signed, in bytes for linear surfaces and in dwords for
    /// tiled ones.
    fn legacy_surface(&self, pitch: u32, address: usize, tiled: bool, y: bool) -> Surface {
        let tiling = match (tiled, y) {
            (false, _) => Tiling::Linear,
            (true, false) => Tiling::Tiled(&TILE_X),
            (true, true) => Tiling::Tiled(&TILE_Y),
        };
        let pitch = pitch_bytes(i64::from((pitch & 0xffff) as i16), tiling);
        Surface::new(self.address(address), pitch, tiling)
    }

    /// Raster operation and channel mask of the older commands.
    fn raster(&self, cpp: u32) -> Raster {
        let colours = if self.bits(0, 20, 20) == 1 { 0x7 } else { 0 };
        let alpha = if self.bits(0, 21, 21) == 1 { 0x8 } else { 0 };
        Raster { code: (self.bits(1, 23, 16) & 0xff) as u8, channels: if cpp == 4 { colours | alpha } else { 0xf } }
    }
}

/// Auxiliary Surface Mode: compressed by CCS.
const AUX_CCS_E: u32 = 5;
/// Surface Type of volumes.
const SURFTYPE_3D: u32 = 2;
/// Rows in a unit of the distance between planes.
const QPITCH_ROWS: u32 = 4;
/// Special Mode of Operation: decompress the destination in place.
const FULL_RESOLVE: u32 = 1;
/// Special Mode of Operation: fill fast-cleared blocks; the model has none.
const PARTIAL_RESOLVE: u32 = 2;

/// Converts a pitch to bytes: fields are in bytes for linear surfaces, in dwords for tiled ones.
#[allow(clippy::arithmetic_side_effects, reason = "a pitch has at most 18 bits")]
fn pitch_bytes(pitch: i64, tiling: Tiling) -> i64 {
    if tiling == Tiling::Linear { pitch } else { pitch * 4 }
}

fn plain(code: u8) -> Raster {
    Raster { code, channels: 0xf }
}

fn pixel(dwords: [u32; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.chunks_exact_mut(4).zip(dwords).for_each(|(bytes, dword)| bytes.copy_from_slice(&dword.to_le_bytes()));
    bytes
}

#[allow(clippy::arithmetic_side_effects, reason = "a coordinate has at most 17 bits, a pixel 16 bytes")]
fn from_surface(surface: Surface, point: Point, cpp: u32) -> Source {
    Source::Surface { surface, column: point.x * i64::from(cpp), row: point.y }
}

fn fast_copy(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let cpp = fields.br13_depth(fields.bits(1, 26, 24))?;
    let surface = |tiling: u32, tile4: u32, pitch: u32, address: usize| {
        let tiling = match (tiling, tile4) {
            (0, _) => Tiling::Linear,
            (1, _) => Tiling::Tiled(&TILE_X),
            (2, 0) => Tiling::Tiled(&TILE_Y),
            (2, _) => Tiling::Tiled(&TILE_4),
            _ => Tiling::Tiled(fields.tile64(cpp, false)?),
        };
        let pitch = pitch_bytes(i64::from(pitch), tiling);
        Ok(Surface::new(fields.address(address), pitch, tiling))
    };
    let destination = surface(fields.bits(0, 14, 13), fields.bits(1, 30, 30), fields.bits(1, 15, 0), 4)?;
    let source = surface(fields.bits(0, 21, 20), fields.bits(1, 31, 31), fields.bits(7, 15, 0), 8)?;
    let area = fields.area(fields.point(2), 2, cpp);
    let source = from_surface(source, fields.point(6), cpp);
    Ok(Work::Rectangle(Rectangle::new(destination, area, source, plain(SRC_COPY))))
}

fn block_copy(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let cpp = fields.color_depth()?;
    fields.must_be_zero("Number of Multisamples", fields.bits(0, 11, 9))?;
    let (destination, top) = fields.surface(1, 4, 16, cpp)?;
    let (source, source_top) = fields.surface(8, 9, 19, cpp)?;
    let area = fields.area(fields.point_with_offset(2, 6).below(top), 2, cpp);
    match fields.bits(0, 13, 12) {
        0 => {
            let source = from_surface(source, fields.point_with_offset(7, 11).below(source_top), cpp);
            Ok(Work::Rectangle(Rectangle::new(destination, area, source, plain(SRC_COPY))))
        }
        FULL_RESOLVE => Ok(Work::Resolve(Resolve::new(destination, area))),
        PARTIAL_RESOLVE => Ok(Work::Nothing),
        mode => Err(fields.reserved("Special Mode of Operation", mode)),
    }
}

fn fast_color(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let cpp = fields.color_depth()?;
    fields.must_be_zero("Number of Multisamples", fields.bits(0, 11, 9))?;
    let (destination, top) = fields.surface(1, 4, 13, cpp)?;
    let area = fields.area(fields.point_with_offset(2, 6).below(top), 2, cpp);
    let pixel = pixel([7, 8, 9, 10].map(|index| fields.dword(index)));
    let source = Source::Colour { pixel, cpp: cpp as usize };
    Ok(Work::Rectangle(Rectangle::new(destination, area, source, plain(PAT_COPY))))
}

fn color(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let cpp = fields.br13_depth(fields.bits(1, 25, 24))?;
    let tiled = fields.bits(0, 11, 11) == 1;
    let destination = fields.legacy_surface(fields.bits(1, 15, 0), 4, tiled, fields.swctrl & 2 != 0);
    let source = Source::Colour { pixel: pixel([fields.dword(6), 0, 0, 0]), cpp: cpp as usize };
    let area = fields.area(fields.point(2), 2, cpp);
    Ok(Work::Rectangle(Rectangle::new(destination, area, source, fields.raster(cpp))))
}

fn src_copy(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let cpp = fields.br13_depth(fields.bits(1, 25, 24))?;
    let (from_tiled, to_tiled) = (fields.bits(0, 15, 15) == 1, fields.bits(0, 11, 11) == 1);
    let destination = fields.legacy_surface(fields.bits(1, 15, 0), 4, to_tiled, fields.swctrl & 2 != 0);
    let source = fields.legacy_surface(fields.bits(7, 15, 0), 8, from_tiled, fields.swctrl & 1 != 0);
    let area = fields.area(fields.point(2), 2, cpp);
    let source = from_surface(source, fields.point(6), cpp);
    Ok(Work::Rectangle(Rectangle::new(destination, area, source, fields.raster(cpp))))
}

#[allow(clippy::arithmetic_side_effects, reason = "the field has 10 bits")]
fn ctrl_surf_copy(fields: &Fields<'_>) -> Result<Work, BlitError> {
    let control = |direct: u32, address: usize| {
        // The upper dword contains MOCS and protection in bits 31:25, above the address.
        let address = fields.address(address);
        if direct == 1 { Control::Memory(address) } else { Control::Surface(address) }
    };
    let from = control(fields.bits(0, 21, 21), 1);
    let to = control(fields.bits(0, 20, 20), 3);
    let len = (u64::from(fields.bits(0, 17, 8)) + 1) * CONTROL_BLOCK;
    Ok(Work::Control(ControlCopy { from, to, len, done: 0 }))
}

/// Unit of the size field of XY_CTRL_SURF_COPY_BLT in control bytes (xe: NUM_CCS_BYTES_PER_BLOCK).
const CONTROL_BLOCK: u64 = 256;
