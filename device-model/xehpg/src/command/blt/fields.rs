// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the copy engine's commands (IGT: lib/intel_blt.c; Mesa: gen125.xml; xe: xe_gpu_commands.h).

use arctic_base::command::Field;

const TILINGS: &[(u32, &str)] = &[(0, "linear"), (1, "X-major"), (2, "Tile4"), (3, "Tile64")];
const OLD_TILINGS: &[(u32, &str)] = &[(0, "linear"), (1, "X-major"), (2, "Y-major"), (3, "Tile64")];
const DEPTHS: &[(u32, &str)] =
    &[(0, "8 bits"), (1, "16 bits"), (2, "32 bits"), (3, "64 bits"), (4, "96 bits"), (5, "128 bits")];
const OLD_DEPTHS: &[(u32, &str)] =
    &[(0, "8 bits"), (1, "16 bits (565)"), (2, "16 bits (1555)"), (3, "32 bits"), (4, "64 bits"), (5, "128 bits")];
const MODES: &[(u32, &str)] = &[(0, "none"), (1, "full resolve"), (2, "partial resolve")];
const TYPES: &[(u32, &str)] = &[(0, "1D"), (1, "2D"), (2, "3D"), (3, "cube")];
const MEMORY: &[(u32, &str)] = &[(0, "local"), (1, "system")];
const ACCESS: &[(u32, &str)] = &[(0, "indirect"), (1, "direct")];

pub(super) const SETUP_CLIP: &[Field] = &[
    Field::signed("Clip X1", 1, 15, 0),
    Field::signed("Clip Y1", 1, 31, 16),
    Field::signed("Clip X2", 2, 15, 0),
    Field::signed("Clip Y2", 2, 31, 16),
];

pub(super) const BLOCK_COPY: &[Field] = &[
    Field::value("Number of Multisamples", 0, 11, 9),
    Field::choice("Special Mode of Operation", 0, 13, 12, MODES),
    Field::choice("Color Depth", 0, 21, 19, DEPTHS),
    Field::value("Destination Pitch - 1", 1, 17, 0),
    Field::value("Destination Auxiliary Surface Mode", 1, 20, 18),
    Field::hex("Destination MOCS", 1, 27, 21),
    Field::value("Destination Control Surface Type", 1, 28, 28),
    Field::flag("Destination Compression Enable", 1, 29),
    Field::choice("Destination Tiling", 1, 31, 30, TILINGS),
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::address("Destination Base Address", 4, 0),
    Field::value("Destination X Offset", 6, 13, 0),
    Field::value("Destination Y Offset", 6, 29, 16),
    Field::choice("Destination Target Memory", 6, 31, 31, MEMORY),
    Field::signed("Source X1", 7, 15, 0),
    Field::signed("Source Y1", 7, 31, 16),
    Field::value("Source Pitch - 1", 8, 17, 0),
    Field::value("Source Auxiliary Surface Mode", 8, 20, 18),
    Field::hex("Source MOCS", 8, 27, 21),
    Field::value("Source Control Surface Type", 8, 28, 28),
    Field::flag("Source Compression Enable", 8, 29),
    Field::choice("Source Tiling", 8, 31, 30, TILINGS),
    Field::address("Source Base Address", 9, 0),
    Field::value("Source X Offset", 11, 13, 0),
    Field::value("Source Y Offset", 11, 29, 16),
    Field::choice("Source Target Memory", 11, 31, 31, MEMORY),
    Field::hex("Source Compression Format", 12, 4, 0),
    Field::flag("Source Clear Value Enable", 12, 5),
    Field::address("Source Clear Address", 12, 6),
    Field::hex("Destination Compression Format", 14, 4, 0),
    Field::flag("Destination Clear Value Enable", 14, 5),
    Field::address("Destination Clear Address", 14, 6),
    Field::value("Destination Surface Height - 1", 16, 13, 0),
    Field::value("Destination Surface Width - 1", 16, 27, 14),
    Field::choice("Destination Surface Type", 16, 31, 29, TYPES),
    Field::value("Destination LOD", 17, 3, 0),
    Field::value("Destination QPitch", 17, 18, 4),
    Field::value("Destination Depth - 1", 17, 31, 21),
    Field::value("Destination Horizontal Align", 18, 1, 0),
    Field::value("Destination Vertical Align", 18, 4, 3),
    Field::value("Destination Mip Tail Start LOD", 18, 11, 8),
    Field::flag("Destination Depth Stencil Resource", 18, 18),
    Field::value("Destination Array Index", 18, 31, 21),
    Field::value("Source Surface Height - 1", 19, 13, 0),
    Field::value("Source Surface Width - 1", 19, 27, 14),
    Field::choice("Source Surface Type", 19, 31, 29, TYPES),
    Field::value("Source LOD", 20, 3, 0),
    Field::value("Source QPitch", 20, 18, 4),
    Field::value("Source Depth - 1", 20, 31, 21),
    Field::value("Source Horizontal Align", 21, 1, 0),
    Field::value("Source Vertical Align", 21, 4, 3),
    Field::value("Source Mip Tail Start LOD", 21, 11, 8),
    Field::flag("Source Depth Stencil Resource", 21, 18),
    Field::value("Source Array Index", 21, 31, 21),
];

pub(super) const FAST_COPY: &[Field] = &[
    Field::choice("Destination Tiling Method", 0, 14, 13, OLD_TILINGS),
    Field::choice("Source Tiling Method", 0, 21, 20, OLD_TILINGS),
    Field::value("Destination Pitch", 1, 15, 0),
    Field::choice("Color Depth", 1, 26, 24, OLD_DEPTHS),
    Field::flag("Destination Tile4", 1, 30),
    Field::flag("Source Tile4", 1, 31),
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::address("Destination Base Address", 4, 0),
    Field::signed("Source X1", 6, 15, 0),
    Field::signed("Source Y1", 6, 31, 16),
    Field::value("Source Pitch", 7, 15, 0),
    Field::address("Source Base Address", 8, 0),
];

pub(super) const FAST_COLOR: &[Field] = &[
    Field::value("Number of Multisamples", 0, 11, 9),
    Field::choice("Color Depth", 0, 21, 19, DEPTHS),
    Field::value("Destination Pitch - 1", 1, 17, 0),
    Field::value("Destination Auxiliary Surface Mode", 1, 20, 18),
    Field::hex("Destination MOCS", 1, 27, 21),
    Field::value("Destination Control Surface Type", 1, 28, 28),
    Field::flag("Destination Compression Enable", 1, 29),
    Field::choice("Destination Tiling", 1, 31, 30, TILINGS),
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::address("Destination Base Address", 4, 0),
    Field::value("Destination X Offset", 6, 13, 0),
    Field::value("Destination Y Offset", 6, 29, 16),
    Field::choice("Destination Target Memory", 6, 31, 31, MEMORY),
    Field::data("Fill Color 0", 7),
    Field::data("Fill Color 1", 8),
    Field::data("Fill Color 2", 9),
    Field::data("Fill Color 3", 10),
    Field::hex("Destination Compression Format", 11, 4, 0),
    Field::flag("Destination Clear Value Enable", 11, 5),
    Field::address("Destination Clear Address", 11, 6),
    Field::value("Destination Surface Height - 1", 13, 13, 0),
    Field::value("Destination Surface Width - 1", 13, 27, 14),
    Field::choice("Destination Surface Type", 13, 31, 29, TYPES),
    Field::value("Destination LOD", 14, 3, 0),
    Field::value("Destination QPitch", 14, 18, 4),
    Field::value("Destination Depth - 1", 14, 31, 21),
    Field::value("Destination Horizontal Align", 15, 1, 0),
    Field::value("Destination Vertical Align", 15, 4, 3),
    Field::value("Destination Mip Tail Start LOD", 15, 11, 8),
    Field::flag("Destination Depth Stencil Resource", 15, 18),
    Field::value("Destination Array Index", 15, 31, 21),
];

pub(super) const CTRL_SURF_COPY: &[Field] = &[
    Field::value("Size of Control Surface Copy - 1", 0, 17, 8),
    Field::choice("Destination Access Type", 0, 20, 20, ACCESS),
    Field::choice("Source Access Type", 0, 21, 21, ACCESS),
    Field::address("Source Address", 1, 0),
    Field::hex("Source MOCS", 2, 31, 25),
    Field::address("Destination Address", 3, 0),
    Field::hex("Destination MOCS", 4, 31, 25),
];

pub(super) const COLOR: &[Field] = &[
    Field::flag("Tiling Enable", 0, 11),
    Field::flag("Write RGB", 0, 20),
    Field::flag("Write Alpha", 0, 21),
    Field::signed("Destination Pitch", 1, 15, 0),
    Field::hex("Raster Operation", 1, 23, 16),
    Field::choice("Color Depth", 1, 25, 24, OLD_DEPTHS),
    Field::flag("Clipping Enabled", 1, 30),
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::address("Destination Base Address", 4, 0),
    Field::data("Solid Pattern Color", 6),
];

pub(super) const SRC_COPY: &[Field] = &[
    Field::flag("Destination Tiling Enable", 0, 11),
    Field::flag("Source Tiling Enable", 0, 15),
    Field::flag("Write RGB", 0, 20),
    Field::flag("Write Alpha", 0, 21),
    Field::signed("Destination Pitch", 1, 15, 0),
    Field::hex("Raster Operation", 1, 23, 16),
    Field::choice("Color Depth", 1, 25, 24, OLD_DEPTHS),
    Field::flag("Clipping Enabled", 1, 30),
    Field::signed("Destination X1", 2, 15, 0),
    Field::signed("Destination Y1", 2, 31, 16),
    Field::signed("Destination X2", 3, 15, 0),
    Field::signed("Destination Y2", 3, 31, 16),
    Field::address("Destination Base Address", 4, 0),
    Field::signed("Source X1", 6, 15, 0),
    Field::signed("Source Y1", 6, 31, 16),
    Field::signed("Source Pitch", 7, 15, 0),
    Field::address("Source Base Address", 8, 0),
];
