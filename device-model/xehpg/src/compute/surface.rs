// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! RENDER_SURFACE_STATE: what a surface of a kernel is (EU-041, EU-043).

use arctic_base::blitter::tiling::{self, Layout, TILE_4, TILE_X, Tiling};
use arctic_base::command::Field;
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{
    Channel, ChannelOrder, Component, Dimensions, Image, ImageFormat, Levels, MipLayout, SurfaceMemory,
};

use super::formats;
use super::texels::{Planes, Texels};

/// Dwords of a surface state.
pub const STATE_DWORDS: usize = 16;
/// Bytes of a surface state.
pub const STATE_BYTES: usize = STATE_DWORDS * 4;

/// Fields of RENDER_SURFACE_STATE (NEO `hw_cmds_generated_xe_hpg_core.inl`; Mesa gen125.xml). Those of caches are not listed.
mod fields {
    use super::Field;

    pub const TYPE: Field = Field::value("Surface Type", 0, 31, 29);
    pub const ARRAY: Field = Field::flag("Surface Array", 0, 28);
    pub const FORMAT: Field = Field::hex("Surface Format", 0, 26, 18);
    pub const TILE_MODE: Field = Field::value("Tile Mode", 0, 13, 12);
    pub const COLUMN_ALIGNMENT: Field = Field::value("Surface Horizontal Alignment", 0, 15, 14);
    pub const ROW_ALIGNMENT: Field = Field::value("Surface Vertical Alignment", 0, 17, 16);
    pub const QPITCH: Field = Field::value("Surface QPitch", 1, 14, 0);
    pub const WIDTH: Field = Field::value("Width", 2, 13, 0);
    pub const HEIGHT: Field = Field::value("Height", 2, 29, 16);
    pub const PITCH: Field = Field::value("Surface Pitch", 3, 17, 0);
    pub const DEPTH: Field = Field::value("Depth", 3, 31, 21);
    pub const SAMPLES: Field = Field::value("Number of Multisamples", 4, 5, 3);
    pub const MINIMUM_ELEMENT: Field = Field::value("Minimum Array Element", 4, 28, 18);
    pub const LAST_LEVEL: Field = Field::value("MIP Count / LOD", 5, 3, 0);
    pub const MINIMUM_LEVEL: Field = Field::value("Surface Min LOD", 5, 7, 4);
    pub const TAIL: Field = Field::value("Mip Tail Start LOD", 5, 11, 8);
    pub const Y_OFFSET: Field = Field::value("Y Offset", 5, 23, 21);
    pub const X_OFFSET: Field = Field::value("X Offset", 5, 31, 25);
    pub const AUXILIARY_MODE: Field = Field::value("Auxiliary Surface Mode", 6, 2, 0);
    pub const RESOURCE_MINIMUM: Field = Field::value("Resource Min LOD", 7, 11, 0);
    pub const RED: Field = Field::value("Shader Channel Select Red", 7, 27, 25);
    pub const GREEN: Field = Field::value("Shader Channel Select Green", 7, 24, 22);
    pub const BLUE: Field = Field::value("Shader Channel Select Blue", 7, 21, 19);
    pub const ALPHA: Field = Field::value("Shader Channel Select Alpha", 7, 18, 16);
    pub const COMPRESSED: Field = Field::flag("Memory Compression Enable", 7, 30);
    pub const BASE: Field = Field::address("Surface Base Address", 8, 0);
}

/// Values of [`fields::TYPE`].
mod surface_type {
    pub const LINE: u32 = 0;
    pub const PLANE: u32 = 1;
    pub const VOLUME: u32 = 2;
    pub const CUBE: u32 = 3;
    pub const BUFFER: u32 = 4;
    pub const STRUCTURED_BUFFER: u32 = 5;
    pub const SCRATCH: u32 = 6;
    pub const NULL: u32 = 7;
}

/// Values of [`fields::TILE_MODE`].
mod tile_mode {
    pub const LINEAR: u32 = 0;
    pub const TILE_64: u32 = 1;
    pub const X: u32 = 2;
}

/// Values of [`fields::AUXILIARY_MODE`].
mod auxiliary_mode {
    pub const NONE: u32 = 0;
    pub const CCS_E: u32 = 5;
}

/// [`fields::FORMAT`] of a buffer of bytes.
const RAW: u32 = 0x1ff;
/// Bits of a buffer's last entry in the fields of width and height; the rest is in that of the depth.
const LAST_IN_WIDTH: u32 = 7;
const LAST_IN_HEIGHT: u32 = 14;
/// Rows in a unit of [`fields::QPITCH`].
const QPITCH_ROWS: u32 = 4;
/// Bytes that columns of levels are aligned to by the smallest code of [`fields::COLUMN_ALIGNMENT`].
const COLUMN_ALIGNMENT: u32 = 16;
/// Rows that levels are aligned to by the smallest code of [`fields::ROW_ALIGNMENT`], which is 1.
const ROW_ALIGNMENT: u32 = 4;
/// Planes of a cube.
const FACES: u32 = 6;
/// Units of [`fields::RESOURCE_MINIMUM`] in a level.
const LEVEL_STEPS: u32 = 256;
/// Texels in a unit of [`fields::X_OFFSET`] and [`fields::Y_OFFSET`].
const OFFSET_TEXELS: u32 = 4;

/// A surface of a kernel, decoded. All fields are bounded, whatever the state was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceState {
    /// Its memory for messages with untyped elements.
    pub memory: SurfaceMemory,
    /// Its texels for typed, media block and sampler messages. The fault is [`FaultKind::Image`] for an image that is not
    /// modelled, or that the interpreter does not convert, and [`FaultKind::Surface`] for what is no image.
    pub image: Result<StoredImage, FaultKind>,
}

/// An image, and where its texels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// The image. Its handle is 0.
    pub image: Image,
    /// Its texels.
    pub texels: Texels,
}

impl SurfaceState {
    /// Decodes a state. Every state has a meaning: unknown types are surfaces that all messages refuse.
    pub fn decode(words: &[u32; STATE_DWORDS]) -> SurfaceState {
        let base = fields::BASE.wide(words);
        let pitch = u64::from(fields::PITCH.get(words)).saturating_add(1);
        let entries = entries(words);
        let raw = fields::FORMAT.get(words) == RAW;
        let (memory, image) = match fields::TYPE.get(words) {
            surface_type::BUFFER if raw => (SurfaceMemory::Buffer { base, bytes: entries }, Err(FaultKind::Surface)),
            surface_type::BUFFER => {
                let bytes = entries.saturating_mul(pitch);
                (SurfaceMemory::Buffer { base, bytes }, typed_buffer(words, base, pitch, entries))
            }
            surface_type::STRUCTURED_BUFFER => {
                (SurfaceMemory::Buffer { base, bytes: entries.saturating_mul(pitch) }, Err(FaultKind::Surface))
            }
            surface_type::SCRATCH => {
                (SurfaceMemory::Scratch { base, pitch, threads: entries }, Err(FaultKind::Surface))
            }
            surface_type::NULL => (SurfaceMemory::Null, Ok(null_image())),
            _ => (SurfaceMemory::Texels, stored_image(words, base, pitch)),
        };
        SurfaceState { memory, image }
    }
}

/// Number of entries of a buffer, 1 to 2^32: less 1 in the fields of width, height and depth (NEO
/// `SurfaceStateBufferLength`).
fn entries(words: &[u32]) -> u64 {
    let width = u64::from(fields::WIDTH.get(words)) & ((1 << LAST_IN_WIDTH) - 1);
    let height = u64::from(fields::HEIGHT.get(words)) << LAST_IN_WIDTH;
    let depth = u64::from(fields::DEPTH.get(words)) << (LAST_IN_WIDTH + LAST_IN_HEIGHT);
    (width | height | depth).saturating_add(1)
}

fn format(words: &[u32]) -> Result<ImageFormat, FaultKind> {
    formats::format(fields::FORMAT.get(words)).ok_or(FaultKind::Image)
}

/// What samplers return as the components of a color. Sources that are all 0 are those of a surface for messages that do not use
/// them.
fn components(words: &[u32]) -> Result<[Component; 4], FaultKind> {
    let sources = [fields::RED, fields::GREEN, fields::BLUE, fields::ALPHA].map(|field| field.get(words));
    if sources == [0; 4] {
        return Ok(Component::COLOR);
    }
    let mut components = Component::COLOR;
    for (component, source) in components.iter_mut().zip(sources) {
        *component = match source {
            0 => Component::Zero,
            1 => Component::One,
            4 => Component::Red,
            5 => Component::Green,
            6 => Component::Blue,
            7 => Component::Alpha,
            _ => return Err(FaultKind::Image),
        };
    }
    Ok(components)
}

/// The image of one row that a buffer of texels is.
fn typed_buffer(words: &[u32], base: u64, pitch: u64, entries: u64) -> Result<StoredImage, FaultKind> {
    let format = format(words)?;
    // The interpreter has texels one behind the other.
    let width = u32::try_from(entries).map_err(|_| FaultKind::Image)?;
    if pitch != format.texel_bytes() as u64 {
        return Err(FaultKind::Image);
    }
    let bytes = entries.saturating_mul(pitch);
    let image = Image {
        base,
        width,
        height: 1,
        depth: 1,
        pitch: bytes,
        slice: bytes,
        dimensions: Dimensions::One,
        array: false,
        cube: false,
        levels: Levels::ONE,
        format,
        components: components(words)?,
        handle: 0,
    };
    Ok(StoredImage { image, texels: Texels::Planes(linear_planes(&image)) })
}

/// The planes of an image as its fields describe them.
fn linear_planes(image: &Image) -> Planes {
    Planes {
        surface: tiling::Surface::new(image.base, image.pitch.cast_signed(), Tiling::Linear),
        texel_bytes: texel_bytes(image.format),
        rows: 0,
        first: 0,
        corner: [0; 2],
        mips: MipLayout::ONE,
    }
}

/// At most 16.
fn texel_bytes(format: ImageFormat) -> u32 {
    u32::try_from(format.texel_bytes()).unwrap_or(0)
}

/// The levels that a surface has from its least one on. Those of a tail, which are in one tile, have no layout in the model.
fn levels(words: &[u32; STATE_DWORDS]) -> Result<Levels, FaultKind> {
    let [first, further, tail] =
        [fields::MINIMUM_LEVEL, fields::LAST_LEVEL, fields::TAIL].map(|field| field.get(words));
    let last = first.saturating_add(further);
    let has_tail = fields::TILE_MODE.get(words) == tile_mode::TILE_64 && last > 0 && last >= tail;
    if last >= u32::from(MipLayout::MOST) || has_tail {
        return Err(FaultKind::Image);
    }
    // The least level of the resource counts from its level 0 on.
    let least = fields::RESOURCE_MINIMUM.get(words).saturating_sub(first.saturating_mul(LEVEL_STEPS));
    Ok(Levels {
        number: u8::try_from(first).unwrap_or(0),
        count: u8::try_from(further.saturating_add(1)).unwrap_or(1),
        least: u16::try_from(least).unwrap_or(u16::MAX),
    })
}

/// Where levels are in each plane (Mesa isl_gfx12.c: `isl_gfx125_choose_image_alignment_el`): alignments are those of the state, of
/// Tile64 a tile.
fn mips(words: &[u32; STATE_DWORDS], tiling: Tiling, texel: u32, size: [u32; 2]) -> MipLayout {
    let code = |field: Field| field.get(words);
    let bytes = COLUMN_ALIGNMENT.wrapping_shl(code(fields::COLUMN_ALIGNMENT));
    let rows = ROW_ALIGNMENT.wrapping_shl(code(fields::ROW_ALIGNMENT).saturating_sub(1));
    let (bytes, rows) = match tiling {
        Tiling::Tiled(layout) if code(fields::TILE_MODE) == tile_mode::TILE_64 => layout.extent(),
        _ => (bytes, rows),
    };
    // Texels have a power of two of bytes.
    let columns = bytes.checked_div(texel).unwrap_or(1).max(1);
    MipLayout { size, align: [columns, rows], in_line: code(fields::TYPE) == surface_type::LINE }
}

/// An image: the least level of its surface, and those that follow.
fn stored_image(words: &[u32; STATE_DWORDS], base: u64, pitch: u64) -> Result<StoredImage, FaultKind> {
    if fields::SAMPLES.is_set(words) {
        return Err(FaultKind::Image);
    }
    let (format, components) = (format(words)?, components(words)?);
    let size = |field: Field| field.get(words).saturating_add(1);
    let (width, height, depth) = (size(fields::WIDTH), size(fields::HEIGHT), size(fields::DEPTH));
    let (kind, array) = (fields::TYPE.get(words), fields::ARRAY.is_set(words));
    let distance = fields::QPITCH.get(words).saturating_mul(QPITCH_ROWS);
    let rows = if distance == 0 { height } else { distance };
    let (tiling, levels) = (tiling(words, format)?, levels(words)?);
    let mips = mips(words, tiling, texel_bytes(format), [width, height]);
    let (height, depth, pitch, dimensions) = match (kind, array) {
        // Lines have no tiled layout in the model.
        (surface_type::LINE, _) if tiling != Tiling::Linear => return Err(FaultKind::Image),
        (surface_type::LINE, false) => (1, 1, pitch, Dimensions::One),
        // The distance between lines is in texels (Mesa isl_surface_state.c `get_qpitch`).
        (surface_type::LINE, true) => {
            (depth, 1, u64::from(distance).saturating_mul(texel_bytes(format).into()), Dimensions::Two)
        }
        (surface_type::PLANE, false) => (height, 1, pitch, Dimensions::Two),
        (surface_type::PLANE, true) | (surface_type::VOLUME, _) => (height, depth, pitch, Dimensions::Three),
        (surface_type::CUBE, _) => (height, depth.saturating_mul(FACES), pitch, Dimensions::Three),
        _ => return Err(FaultKind::Image),
    };
    let slice = u64::from(rows).saturating_mul(pitch);
    let cube = kind == surface_type::CUBE;
    let image = Image {
        base,
        width,
        height,
        depth,
        pitch,
        slice,
        dimensions,
        array,
        cube,
        levels: Levels::ONE,
        format,
        components,
        handle: 0,
    };
    let image = Image { levels, ..image.level(levels.number) };
    let compressed = match fields::AUXILIARY_MODE.get(words) {
        // NEO's images that are made of buffers are decompressed by the cache.
        auxiliary_mode::NONE => fields::COMPRESSED.is_set(words),
        auxiliary_mode::CCS_E => true,
        _ => return Err(FaultKind::Image),
    };
    let offset = |field: Field| field.get(words).saturating_mul(OFFSET_TEXELS);
    let planes = linear_planes(&image);
    let texels = Texels::Planes(Planes {
        surface: tiling::Surface { tiling, compressed, ..planes.surface },
        rows,
        first: fields::MINIMUM_ELEMENT.get(words),
        corner: [offset(fields::X_OFFSET), offset(fields::Y_OFFSET)],
        mips,
        ..planes
    });
    Ok(StoredImage { image, texels })
}

/// The layout of an image's texels.
fn tiling(words: &[u32], format: ImageFormat) -> Result<Tiling, FaultKind> {
    let layout = match fields::TILE_MODE.get(words) {
        tile_mode::LINEAR => return Ok(Tiling::Linear),
        tile_mode::TILE_64 => {
            let volume = fields::TYPE.get(words) == surface_type::VOLUME;
            Layout::tile64_of(texel_bytes(format), volume).ok_or(FaultKind::Image)?
        }
        tile_mode::X => &TILE_X,
        _ => &TILE_4,
    };
    Ok(Tiling::Tiled(layout))
}

/// The image of a null surface: without texels. Samplers read its only texel, which is 0.
fn null_image() -> StoredImage {
    let image = Image {
        base: 0,
        width: 0,
        height: 0,
        depth: 0,
        pitch: 0,
        slice: 0,
        dimensions: Dimensions::Three,
        array: false,
        cube: false,
        levels: Levels::ONE,
        format: ImageFormat { order: ChannelOrder::Rgba, channel: Channel::Unorm8 },
        components: Component::COLOR,
        handle: 0,
    };
    StoredImage { image, texels: Texels::Null }
}

#[cfg(test)]
mod tests;
