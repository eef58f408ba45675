// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the copy engine's commands (libdrm: intel/intel_decode.c; i915: gt/intel_gpu_commands.h).

use arctic_base::command::Field;

const DEPTHS: &[(u32, &str)] = &[(0, "8 bits"), (1, "16 bits (565)"), (2, "16 bits (1555)"), (3, "32 bits")];

/// Header bits 21:20.
const WRITE_RGB: Field = Field::flag("Write RGB", 0, 20);
const WRITE_ALPHA: Field = Field::flag("Write Alpha", 0, 21);
/// Dword 1.
const PITCH: Field = Field::signed("Destination Pitch", 1, 15, 0);
const RASTER: Field = Field::hex("Raster Operation", 1, 23, 16);
const DEPTH: Field = Field::choice("Color Depth", 1, 25, 24, DEPTHS);
const CLIPPING: Field = Field::flag("Clipping Enabled", 1, 30);

/// The two corners of the clipping rectangle in dwords `$at` and `$at + 1`.
macro_rules! clip {
    ($at:expr) => {
        [
            Field::signed("Clip X1", $at, 15, 0),
            Field::signed("Clip Y1", $at, 31, 16),
            Field::signed("Clip X2", $at + 1, 15, 0),
            Field::signed("Clip Y2", $at + 1, 31, 16),
        ]
    };
}

const CLIP_OF_SETUP: [Field; 4] = clip!(2);

pub(super) const SETUP_CLIP: &[Field] = &clip!(1);

pub(super) const SETUP: &[Field] = &[
    Field::flag("Tiling Enable", 0, 11),
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    Field::flag("Monochrome Source Transparency", 1, 29),
    CLIPPING,
    CLIP_OF_SETUP[0],
    CLIP_OF_SETUP[1],
    CLIP_OF_SETUP[2],
    CLIP_OF_SETUP[3],
    Field::base("Destination Base Address", 4, 0),
    Field::data("Background Color", 5),
    Field::data("Foreground Color", 6),
    Field::base("Pattern Base Address", 7, 6),
];

pub(super) const SETUP_MONO: &[Field] = &[
    Field::flag("Tiling Enable", 0, 11),
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    Field::flag("Monochrome Pattern Transparency", 1, 28),
    CLIPPING,
    Field::flag("Solid Pattern", 1, 31),
    CLIP_OF_SETUP[0],
    CLIP_OF_SETUP[1],
    CLIP_OF_SETUP[2],
    CLIP_OF_SETUP[3],
    Field::base("Destination Base Address", 4, 0),
    Field::data("Background Color", 5),
    Field::data("Foreground Color", 6),
    Field::data("Monochrome Pattern 0", 7),
    Field::data("Monochrome Pattern 1", 8),
];

pub(super) const PIXEL: &[Field] = &[
    Field::flag("Tiling Enable", 0, 11),
    Field::signed("Destination X1", 1, 15, 0),
    Field::signed("Destination Y1", 1, 31, 16),
];

pub(super) const SCANLINES: &[Field] = &[
    Field::value("Pattern Vertical Seed", 0, 10, 8),
    Field::flag("Tiling Enable", 0, 11),
    Field::value("Pattern Horizontal Seed", 0, 15, 13),
    Field::signed("Destination X1", 1, 15, 0),
    Field::signed("Destination Y1", 1, 31, 16),
    Field::signed("Destination X2", 2, 15, 0),
    Field::signed("Destination Y2", 2, 31, 16),
];

pub(super) const COLOR: &[Field] = &[
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    Field::value("Destination Width in Bytes", 2, 15, 0),
    Field::value("Destination Height", 2, 31, 16),
    Field::base("Destination Address", 3, 0),
    Field::data("Solid Pattern Color", 4),
];

pub(super) const SRC_COPY: &[Field] = &[
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    Field::flag("Right to Left", 1, 30),
    Field::value("Destination Width in Bytes", 2, 15, 0),
    Field::value("Destination Height", 2, 31, 16),
    Field::base("Destination Address", 3, 0),
    Field::signed("Source Pitch", 4, 15, 0),
    Field::base("Source Address", 5, 0),
];

pub(super) const XY_COLOR: &[Field] = &[
    Field::flag("Tiling Enable", 0, 11),
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    CLIPPING,
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::base("Destination Base Address", 4, 0),
    Field::data("Solid Pattern Color", 5),
];

pub(super) const XY_SRC_COPY: &[Field] = &[
    Field::flag("Destination Tiling Enable", 0, 11),
    Field::flag("Source Tiling Enable", 0, 15),
    WRITE_RGB,
    WRITE_ALPHA,
    PITCH,
    RASTER,
    DEPTH,
    CLIPPING,
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::base("Destination Base Address", 4, 0),
    Field::signed("Source X1", 5, 15, 0),
    Field::signed("Source Y1", 5, 31, 16),
    Field::signed("Source Pitch", 6, 15, 0),
    Field::base("Source Base Address", 7, 0),
];
