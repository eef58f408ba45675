// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! RENDER_SURFACE_STATE: what a surface of a kernel is (EU-041, EU-043).

use arctic_base::command::Field;
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::{Channel, ChannelOrder, Dimensions, Image, ImageFormat};

use super::formats;

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
    pub const QPITCH: Field = Field::value("Surface QPitch", 1, 14, 0);
    pub const WIDTH: Field = Field::value("Width", 2, 13, 0);
    pub const HEIGHT: Field = Field::value("Height", 2, 29, 16);
    pub const PITCH: Field = Field::value("Surface Pitch", 3, 17, 0);
    pub const DEPTH: Field = Field::value("Depth", 3, 31, 21);
    pub const SAMPLES: Field = Field::value("Number of Multisamples", 4, 5, 3);
    pub const MINIMUM_ELEMENT: Field = Field::value("Minimum Array Element", 4, 28, 18);
    pub const MINIMUM_LEVEL: Field = Field::value("Surface Min LOD", 5, 7, 4);
    pub const OFFSET: Field = Field::hex("X Offset, Y Offset", 5, 31, 21);
    pub const AUXILIARY_MODE: Field = Field::value("Auxiliary Surface Mode", 6, 2, 0);
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
    pub const BUFFER: u32 = 4;
    pub const STRUCTURED_BUFFER: u32 = 5;
    pub const SCRATCH: u32 = 6;
    pub const NULL: u32 = 7;
}

/// [`fields::FORMAT`] of a buffer of bytes.
const RAW: u32 = 0x1ff;
/// Bits of a buffer's last entry in the fields of width and height; the rest is in that of the depth.
const LAST_IN_WIDTH: u32 = 7;
const LAST_IN_HEIGHT: u32 = 14;
/// Rows in a unit of [`fields::QPITCH`].
const QPITCH_ROWS: u64 = 4;

/// [`Image::handle`] of an image in linear memory.
pub const LINEAR: u64 = 0;
/// [`Image::handle`] of a null surface: its texels read 0 and are not written.
pub const NULL_IMAGE: u64 = 1;

/// The memory of a surface, as messages with untyped elements access it. Addresses have 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceMemory {
    /// None: reads give 0, writes are dropped.
    Null,
    /// Bytes from `base` on.
    Buffer {
        /// Virtual address of the first byte.
        base: u64,
        /// Number of bytes, 1 to 2^50.
        bytes: u64,
    },
    /// `pitch` bytes for each hardware thread, that of the first one from `base` on (EU-041).
    Scratch {
        /// Virtual address of the first byte.
        base: u64,
        /// Bytes of a thread, 1 to 2^18.
        pitch: u64,
        /// Number of hardware threads.
        threads: u64,
    },
    /// An image, which has no untyped elements.
    Texels,
}

/// A surface of a kernel, decoded. All fields are bounded, whatever the state was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceState {
    /// Its memory for messages with untyped elements.
    pub memory: SurfaceMemory,
    /// Its texels for typed, media block and sampler messages. The fault is [`FaultKind::Image`] for an image that is tiled
    /// or compressed, or that the interpreter does not convert, and [`FaultKind::Surface`] for what is no image.
    pub image: Result<Image, FaultKind>,
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
            _ => (SurfaceMemory::Texels, linear_image(words, base, pitch)),
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
    let sources = [fields::RED, fields::GREEN, fields::BLUE, fields::ALPHA].map(|field| field.get(words));
    formats::format(fields::FORMAT.get(words), sources).ok_or(FaultKind::Image)
}

/// The image of one row that a buffer of texels is.
fn typed_buffer(words: &[u32], base: u64, pitch: u64, entries: u64) -> Result<Image, FaultKind> {
    let format = format(words)?;
    // The interpreter has texels one behind the other.
    let width = u32::try_from(entries).map_err(|_| FaultKind::Image)?;
    if pitch != format.texel_bytes() as u64 {
        return Err(FaultKind::Image);
    }
    let bytes = entries.saturating_mul(pitch);
    Ok(Image {
        base,
        width,
        height: 1,
        depth: 1,
        pitch: bytes,
        slice: bytes,
        dimensions: Dimensions::One,
        array: false,
        format,
        handle: LINEAR,
    })
}

/// A linear image of one level.
fn linear_image(words: &[u32; STATE_DWORDS], base: u64, pitch: u64) -> Result<Image, FaultKind> {
    let refused = [
        fields::TILE_MODE,
        fields::SAMPLES,
        fields::MINIMUM_ELEMENT,
        fields::MINIMUM_LEVEL,
        fields::OFFSET,
        fields::AUXILIARY_MODE,
        fields::COMPRESSED,
    ];
    if refused.iter().any(|field| field.is_set(words)) {
        return Err(FaultKind::Image);
    }
    let format = format(words)?;
    let size = |field: Field| field.get(words).saturating_add(1);
    let (width, height, depth) = (size(fields::WIDTH), size(fields::HEIGHT), size(fields::DEPTH));
    let array = fields::ARRAY.is_set(words);
    let qpitch = u64::from(fields::QPITCH.get(words)).saturating_mul(QPITCH_ROWS);
    let rows = if qpitch == 0 { u64::from(height) } else { qpitch };
    let (height, depth, pitch, dimensions) = match (fields::TYPE.get(words), array) {
        (surface_type::LINE, false) => (1, 1, pitch, Dimensions::One),
        // The distance between lines is in texels (Mesa isl_surface_state.c `get_qpitch`).
        (surface_type::LINE, true) => (depth, 1, qpitch.saturating_mul(format.texel_bytes() as u64), Dimensions::Two),
        (surface_type::PLANE, false) => (height, 1, pitch, Dimensions::Two),
        (surface_type::PLANE, true) | (surface_type::VOLUME, _) => (height, depth, pitch, Dimensions::Three),
        _ => return Err(FaultKind::Image),
    };
    Ok(Image {
        base,
        width,
        height,
        depth,
        pitch,
        slice: rows.saturating_mul(pitch),
        dimensions,
        array,
        format,
        handle: LINEAR,
    })
}

/// The image of a null surface: without texels. Samplers read its only texel, which is 0 ([`NULL_IMAGE`]).
fn null_image() -> Image {
    Image {
        base: 0,
        width: 0,
        height: 0,
        depth: 0,
        pitch: 0,
        slice: 0,
        dimensions: Dimensions::Three,
        array: false,
        format: ImageFormat { order: ChannelOrder::Rgba, channel: Channel::Unorm8 },
        handle: NULL_IMAGE,
    }
}

#[cfg(test)]
mod tests {
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
        let image = typed.image.unwrap();
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
        assert_eq!((null.memory, null.image.unwrap().handle), (SurfaceMemory::Null, NULL_IMAGE));
    }

    #[test]
    fn linear_images() {
        const SELECT: (usize, u32) = (7, 4 << 25 | 5 << 22 | 6 << 19 | 7 << 16);
        let image = |changes: &[(usize, u32)]| with(&[&[SELECT], changes].concat()).image;
        // 20 x 10 texels of RGBA8 in rows of 128 bytes; three of them, at distances of 12 rows.
        let (size, pitch) = ((2, 9 << 16 | 19), (3, 2 << 21 | 127));
        let plane = image(&[(0, 1 << 29 | 0xc7 << 18), size, pitch]).unwrap();
        assert_eq!((plane.width, plane.height, plane.depth), (20, 10, 1));
        assert_eq!((plane.dimensions, plane.array, plane.pitch), (Dimensions::Two, false, 128));
        assert_eq!(plane.texel([3, 2, 0]), 0x80ff_ffdf_0000 + 2 * 128 + 12);
        let planes = image(&[(0, 1 << 29 | 1 << 28 | 0xc7 << 18), (1, 3), size, pitch]).unwrap();
        assert_eq!((planes.depth, planes.slice, planes.array), (3, 12 * 128, true));
        let volume = image(&[(0, 2 << 29 | 0xc7 << 18), (1, 3), size, pitch]).unwrap();
        assert_eq!((volume.depth, volume.slice, volume.dimensions), (3, 12 * 128, Dimensions::Three));
        let line = image(&[(0, 0xc7 << 18), size, pitch]).unwrap();
        assert_eq!((line.width, line.height, line.dimensions), (20, 1, Dimensions::One));
        let lines = image(&[(0, 1 << 28 | 0xc7 << 18), (1, 8), size, pitch]).unwrap();
        assert_eq!((lines.height, lines.depth, lines.pitch, lines.array), (3, 1, 32 * 4, true));
    }

    #[test]
    fn other_images_are_refused() {
        proves!(
            EU_043,
            "tiled and compressed images, cubes, levels and unknown formats are refused by name; untyped messages have no access"
        );
        let changes = [
            (0, 1 << 29 | 0xc7 << 18 | 3 << 12),
            (0, 3 << 29 | 0xc7 << 18),
            (0, 1 << 29 | 0x1ff << 18),
            (4, 1 << 3),
            (4, 1 << 18),
            (5, 1 << 4),
            (5, 1 << 25),
            (6, 5),
            (7, 1 << 30),
        ];
        for change in changes {
            let state = with(&[(0, 1 << 29 | 0xc7 << 18), change]);
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
                    // Without tiling and compression, and with a format that is known.
                    words[0] = words[0] & !(0x1ff << 18 | 3 << 12) | 0xc7 << 18;
                    (words[4], words[5], words[6], words[7]) = (0, 0, 0, 0);
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
                if let Ok(image) = state.image {
                    proptest::prop_assert!(image.base <= ADDRESS && image.pitch <= 1 << 50 && image.slice <= 1 << 50);
                    let _ = image.texel([image.width, image.height, image.depth]);
                }
            }
        }
    }
}
