// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decoding of the copy engine's commands, and the state that setup commands leave to later ones (G67-121; i915:
//! gt/intel_gpu_commands.h, gt/intel_migrate.c; libdrm: intel/intel_decode.c).

use super::{Blit, BlitError, Tiles};
use crate::command::{BlitCommand, Blt};
use arctic_base::blitter::raster::Raster;
use arctic_base::blitter::rectangle::{Rectangle, Source};
use arctic_base::blitter::tiling::{Area, Layout, Surface, Tiling};
use arctic_sriov::number::size;

/// Cost of a row in addition to its bytes, in the unit of the budget of a step.
const ROW_COST: usize = 256;

/// Header: the destination is tiled.
const DESTINATION_TILED: u32 = 1 << 11;
/// Header: the source is tiled.
const SOURCE_TILED: u32 = 1 << 15;
/// Header: the colour of 32-bit pixels is written.
const WRITE_RGB: u32 = 1 << 20;
/// Header: the alpha of 32-bit pixels is written.
const WRITE_ALPHA: u32 = 1 << 21;
/// Dword 1 of the XY commands: pixels outside the clipping rectangle are not written.
const CLIPPING: u32 = 1 << 30;
/// Dword 1 of SRC_COPY_BLT: rows are copied from right to left.
const RIGHT_TO_LEFT: u32 = 1 << 30;
/// Dword 1 of XY_SETUP_MONO_PATTERN_SL_BLT: the pattern is the foreground colour.
const SOLID: u32 = 1 << 31;

/// State that setup commands leave to later commands: clipping rectangle, destination and colour. It is saved as it is:
/// commands may set its fields to any values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Corners of the clipping rectangle.
    clip: [u32; 2],
    /// Header of the setup command: the byte mask.
    header: u32,
    /// Its dword 1: pitch, depth, raster operation and clipping.
    control: u32,
    /// Address of the destination.
    destination: u32,
    /// Foreground colour.
    colour: u32,
    /// The pattern of scan lines is the foreground colour.
    solid: bool,
}

/// Dwords of a [`Setup`].
pub const SETUP_DWORDS: usize = 6;

impl Setup {
    /// The state as dwords, and whether the pattern is solid.
    pub fn parts(&self) -> ([u32; SETUP_DWORDS], bool) {
        let Setup { clip: [from, to], header, control, destination, colour, solid } = *self;
        ([from, to, header, control, destination, colour], solid)
    }

    /// The state with these parts, as of [`Setup::parts`].
    pub fn of([from, to, header, control, destination, colour]: [u32; SETUP_DWORDS], solid: bool) -> Self {
        Setup { clip: [from, to], header, control, destination, colour, solid }
    }

    /// Executes `command` as far as it needs no memory: setup commands change the state, others result in a blit. Commands
    /// and features that are not modelled are errors.
    #[inline(never)]
    pub fn execute(
        &mut self,
        command: &'static BlitCommand,
        dwords: &[u32],
        tiles: Tiles,
    ) -> Result<Option<Blit>, BlitError> {
        if command.action != Blt::Skipped && !command.lengths.contains(&dwords.len()) {
            return Err(BlitError::Length { command: command.name, dwords: dwords.len() });
        }
        let fields = Fields(dwords);
        Ok(Some(match command.action {
            Blt::Setup => {
                self.set(fields, false);
                return Ok(None);
            }
            Blt::SetupMono => {
                self.set(fields, fields.dword(1) & SOLID != 0);
                return Ok(None);
            }
            Blt::SetupClip => {
                self.clip = [fields.dword(1), fields.dword(2)];
                return Ok(None);
            }
            Blt::Pixel => {
                let first = Point::new(fields.dword(1));
                self.fill(first, Point { x: first.x.saturating_add(1), y: first.y.saturating_add(1) }, fields, tiles)
            }
            Blt::Scanlines => {
                let code = Control(self.control).raster();
                if !self.solid && uses_pattern(code) {
                    let field = "pattern that is not solid: raster operation";
                    return Err(BlitError::Unmodelled { command: command.name, field, value: code.into() });
                }
                self.fill(Point::new(fields.dword(1)), Point::new(fields.dword(2)), fields, tiles)
            }
            Blt::Color => color(fields),
            Blt::SourceCopy => source_copy(fields),
            Blt::XyColor => self.xy_color(fields, tiles),
            Blt::XySourceCopy => self.xy_source_copy(fields, tiles),
            Blt::Skipped => {
                let value = command.opcode.into();
                return Err(BlitError::Unmodelled { command: command.name, field: "opcode", value });
            }
        }))
    }

    fn set(&mut self, fields: Fields<'_>, solid: bool) {
        *self = Setup {
            clip: [fields.dword(2), fields.dword(3)],
            header: fields.dword(0),
            control: fields.dword(1),
            destination: fields.dword(4),
            colour: fields.dword(6),
            solid,
        };
    }

    /// A rectangle in pixels, from its first corner to the corner behind its last pixel, without what is outside the
    /// clipping rectangle if `control` enables it.
    fn clipped(&self, control: Control, first: Point, last: Point) -> (Point, Point) {
        if control.0 & CLIPPING == 0 {
            return (first, last);
        }
        let [from, to] = self.clip.map(Point::new);
        let (x, y) = (first.x.max(from.x), first.y.max(from.y));
        (Point { x, y }, Point { x: last.x.min(to.x), y: last.y.min(to.y) })
    }

    /// XY_PIXEL_BLT and XY_SCANLINES_BLT: fills a rectangle of the setup's surface with its foreground colour.
    fn fill(&self, first: Point, last: Point, fields: Fields<'_>, tiles: Tiles) -> Blit {
        let control = Control(self.control);
        let surface =
            surface(self.destination, self.control, fields.dword(0) & DESTINATION_TILED != 0, tiles.destination);
        let area = area(self.clipped(control, first, last), control);
        blit(Rectangle::new(surface, area, colour(self.colour, control), control.with_mask(self.header)), area)
    }

    fn xy_color(&self, fields: Fields<'_>, tiles: Tiles) -> Blit {
        let header = fields.dword(0);
        let control = Control(fields.dword(1));
        let surface = surface(fields.dword(4), control.0, header & DESTINATION_TILED != 0, tiles.destination);
        let corners = self.clipped(control, Point::new(fields.dword(2)), Point::new(fields.dword(3)));
        let area = area(corners, control);
        blit(Rectangle::new(surface, area, colour(fields.dword(5), control), control.with_mask(header)), area)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "coordinates have 17 bits, pixels at most 4 bytes")]
    fn xy_source_copy(&self, fields: Fields<'_>, tiles: Tiles) -> Blit {
        let header = fields.dword(0);
        let control = Control(fields.dword(1));
        let to = surface(fields.dword(4), control.0, header & DESTINATION_TILED != 0, tiles.destination);
        let from = surface(fields.dword(7), fields.dword(6), header & SOURCE_TILED != 0, tiles.source);
        let first = Point::new(fields.dword(2));
        let corners = self.clipped(control, first, Point::new(fields.dword(3)));
        let area = area(corners, control);
        let origin = Point::new(fields.dword(5));
        // Clipping does not move the source relative to the destination.
        let (x, y) = (origin.x + corners.0.x - first.x, origin.y + corners.0.y - first.y);
        let source = Source::Surface { surface: from, column: x * i64::from(control.cpp()), row: y };
        blit(Rectangle::new(to, area, source, control.with_mask(header)), area)
    }
}

/// COLOR_BLT: width and height are those of the destination at an address. Without clipping.
fn color(fields: Fields<'_>) -> Blit {
    let control = Control(fields.dword(1));
    let area = extent(fields.dword(2));
    let to = linear(fields.dword(3), control.0);
    blit(Rectangle::new(to, area, colour(fields.dword(4), control), control.with_mask(fields.dword(0))), area)
}

/// SRC_COPY_BLT: the operands may overlap; the command states the horizontal direction, the signs of the pitches are the
/// vertical one. From right to left, the addresses are those of the last bytes of the first rows, as in the older engines
/// with this command (xf86-video-intel: i810_accel.c); the documents of these generations do not state it.
fn source_copy(fields: Fields<'_>) -> Blit {
    let control = Control(fields.dword(1));
    let area = extent(fields.dword(2));
    let backwards = control.0 & RIGHT_TO_LEFT != 0;
    let start = |address: u32| if backwards { address.wrapping_sub(area.width.saturating_sub(1)) } else { address };
    let to = linear(start(fields.dword(3)), control.0);
    let source = Source::Surface { surface: linear(start(fields.dword(5)), fields.dword(4)), column: 0, row: 0 };
    let rectangle = Rectangle::new(to, area, source, control.with_mask(fields.dword(0)));
    blit(if backwards { rectangle.from_right_to_left() } else { rectangle }, area)
}

fn blit(rectangle: Rectangle, area: Area) -> Blit {
    let row = size(area.width.into()).saturating_add(ROW_COST);
    Blit { rectangle, cost: row.saturating_mul(size(area.height.into())) }
}

/// The dwords of a command. Dwords beyond its end read as zero.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u32]);

impl Fields<'_> {
    fn dword(self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }
}

/// Dword 1: depth and raster operation. The pitch is read by [`surface`].
#[derive(Clone, Copy)]
struct Control(u32);

impl Control {
    /// Bytes per pixel: 8 bits, 16 bits in two formats, 32 bits.
    fn cpp(self) -> u32 {
        match self.0 >> 24 & 3 {
            0 => 1,
            1 | 2 => 2,
            _ => 4,
        }
    }

    fn raster(self) -> u8 {
        (self.0 >> 16 & 0xff) as u8
    }

    /// The raster operation with the byte mask in `header`, which applies to pixels of 32 bits.
    fn with_mask(self, header: u32) -> Raster {
        let colours = if header & WRITE_RGB != 0 { 0x7 } else { 0 };
        let alpha = if header & WRITE_ALPHA != 0 { 0x8 } else { 0 };
        Raster { code: self.raster(), channels: if self.cpp() == 4 { colours | alpha } else { 0xf } }
    }
}

/// Returns whether the result of a raster operation depends on the pattern.
fn uses_pattern(code: u8) -> bool {
    code >> 4 != code & 0xf
}

/// Coordinates in pixels, of 16 bits each, signed.
#[derive(Clone, Copy)]
struct Point {
    x: i64,
    y: i64,
}

impl Point {
    fn new(dword: u32) -> Self {
        Point { x: i64::from((dword & 0xffff) as i16), y: i64::from((dword >> 16) as i16) }
    }
}

/// The rectangle in bytes between two corners; empty unless the second is to the right of and below the first.
#[allow(clippy::arithmetic_side_effects, reason = "coordinates have 17 bits, pixels at most 4 bytes")]
fn area((first, last): (Point, Point), control: Control) -> Area {
    let len = |from: i64, to: i64| u32::try_from(to - from).unwrap_or(0);
    let (width, height) = (len(first.x, last.x) * control.cpp(), len(first.y, last.y));
    Area { column: first.x * i64::from(control.cpp()), row: first.y, width, height }
}

/// The rectangle of COLOR_BLT and SRC_COPY_BLT: width in bytes, and height.
fn extent(dword: u32) -> Area {
    Area { column: 0, row: 0, width: dword & 0xffff, height: dword >> 16 }
}

fn linear(base: u32, pitch: u32) -> Surface {
    let pitch = i64::from((pitch & 0xffff) as i16);
    Surface::new(base.into(), pitch, Tiling::Linear)
}

/// A surface. The pitch is signed, in bytes for linear surfaces and in dwords for tiled ones.
#[allow(clippy::arithmetic_side_effects, reason = "a pitch has 16 bits")]
fn surface(base: u32, pitch: u32, tiled: bool, layout: &'static Layout) -> Surface {
    let linear = linear(base, pitch);
    if tiled { Surface { pitch: linear.pitch * 4, tiling: Tiling::Tiled(layout), ..linear } } else { linear }
}

fn colour(value: u32, control: Control) -> Source {
    let mut pixel = [0; 16];
    pixel.iter_mut().zip(value.to_le_bytes()).for_each(|(into, byte)| *into = byte);
    Source::Colour { pixel, cpp: size(control.cpp().into()) }
}
