// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tile layouts of families before Xe-HP: vectors of the document's figures, and each byte against its formulas.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

use arctic_fidelity::proves;

use super::*;

const PAGE: u32 = 4096;

/// [`TILE_W`] with swizzling, which is that of Y.
static TILE_W_SWIZZLED: Layout = Layout::new("W", 0xe15, 0x1ea, 0x200);

static ALL: [&Layout; 6] = [&TILE_X, &TILE_Y, &TILE_W, &TILE_X_SWIZZLED, &TILE_Y_SWIZZLED, &TILE_W_SWIZZLED];

/// Offset in a tiled region of tile pitch `pitch`, by the document's algorithm (ILK-053, with the W term of ILK-054),
/// and then bit 6 by the bits that the driver names for each layout (G67-064).
fn algorithm(layout: &Layout, pitch: u32, x: u32, y: u32) -> u32 {
    let (width, height) = match layout.name {
        "X" => (512, 8),
        "Y" => (128, 32),
        "W" => (64, 64),
        name => panic!("no algorithm for {name}"),
    };
    let (row, column) = (y % height, x % width);
    let inside = match layout.name {
        "X" => 512 * row + column,
        "Y" => height * 16 * (column / 16) + row * 16 + column % 16,
        _ => {
            let block = 512 * (column / 8) + 64 * (row / 8);
            let quarter = 32 * (row / 4 % 2) + 16 * (column / 4 % 2);
            block + quarter + 8 * (row / 2 % 2) + 4 * (column / 2 % 2) + 2 * (row % 2) + column % 2
        }
    };
    let offset = pitch * PAGE * (y / height) + PAGE * (x / width) + inside;
    let odd = match (layout.swizzle, layout.name) {
        (0, _) => 0,
        (_, "X") => offset / 512 % 2 ^ offset / 1024 % 2,
        _ => offset / 512 % 2,
    };
    offset ^ odd * 64
}

/// ILK-048, ILK-049, ILK-053, ILK-054, G67-064: every byte of regions of 1 to 3 tiles by 3 rows of tiles.
#[test]
fn every_byte_of_small_regions_is_at_the_offset_of_the_algorithm() {
    proves!([ILK_048, ILK_049, ILK_053, ILK_054], "every byte of regions of 1 to 3 tiles by 3 rows of tiles");
    for layout in ALL {
        let (width, height) = layout.extent();
        assert_eq!((width * height, layout.block_extent()), (PAGE, (width, height)), "{layout:?}");
        for pitch in 1..=3 {
            let surface = Surface::new(7 * u64::from(PAGE), i64::from(pitch * width), Tiling::Tiled(layout));
            let mut hit = vec![false; (3 * pitch * PAGE) as usize];
            for (x, y) in (0..3 * height).flat_map(|y| (0..pitch * width).map(move |x| (x, y))) {
                let offset = algorithm(layout, pitch, x, y);
                let address = u64::from(7 * PAGE + offset);
                assert_eq!(surface.address(x.into(), y.into()), address, "{layout:?}, pitch {pitch}: ({x}, {y})");
                assert!(!std::mem::replace(&mut hit[offset as usize], true), "{layout:?}: two bytes at {offset:#x}");
            }
            assert!(hit.into_iter().all(|hit| hit), "{layout:?}: a byte of the region is not used");
        }
    }
}

/// ILK-052, ILK-054: the 64 cells of the document's figure "W-Major Block Layout", row by row.
#[test]
fn w_tile_block_matches_the_figure() {
    proves!([ILK_052, ILK_054], "the 64 cells of the figure of a W block");
    const FIGURE: [[u32; 8]; 8] = [
        [0, 1, 4, 5, 16, 17, 20, 21],
        [2, 3, 6, 7, 18, 19, 22, 23],
        [8, 9, 12, 13, 24, 25, 28, 29],
        [10, 11, 14, 15, 26, 27, 30, 31],
        [32, 33, 36, 37, 48, 49, 52, 53],
        [34, 35, 38, 39, 50, 51, 54, 55],
        [40, 41, 44, 45, 56, 57, 60, 61],
        [42, 43, 46, 47, 58, 59, 62, 63],
    ];
    for (y, row) in (0..).zip(FIGURE) {
        for (x, offset) in (0..).zip(row) {
            assert_eq!(TILE_W.offset(x, y), offset, "({x}, {y})");
        }
    }
    // Blocks follow each other down a column of blocks.
    assert_eq!([TILE_W.offset(0, 8), TILE_W.offset(0, 56), TILE_W.offset(8, 0)], [64, 448, 512]);
}

#[test]
fn owords_of_x_tiles_follow_by_row_and_of_y_tiles_by_column() {
    proves!(ILK_050, "X tiles store OWords row by row, Y tiles column by column");
    let oword = |layout: &Layout, x: u32, y: u32| layout.offset(x * 16, y) / 16;
    for (x, y) in (0..8).flat_map(|y| (0..32).map(move |x| (x, y))) {
        assert_eq!(oword(&TILE_X, x, y), y * 32 + x);
        assert_eq!(oword(&TILE_Y, y, x), y * 32 + x);
    }
}

#[test]
fn x_tiled_region_of_one_tile_pitch_is_linear() {
    proves!(ILK_051, "an X-tiled region with a pitch of one tile is linear");
    let surface = Surface::new(0, 512, Tiling::Tiled(&TILE_X));
    assert!((0..64).all(|y| (0..512).all(|x| surface.address(x, y) == (y * 512 + x).unsigned_abs())));
}

#[test]
fn row_pairs_of_y_tiles_share_a_line_of_64_bytes() {
    proves!(ILK_056, "in each column, a row pair of a Y tile shares a line of 64 bytes");
    for (column, row) in (0..32).step_by(2).flat_map(|row| (0..128).map(move |column| (column, row))) {
        assert_eq!(TILE_Y.offset(column, row) / 64, TILE_Y.offset(column, row + 1) / 64, "({column}, {row})");
    }
}

/// G67-064: rows 1 and 2 of each four have their halves of 128 bytes exchanged.
#[test]
fn swizzled_x_tile_has_the_vectors_of_the_driver() {
    let x = |column, row| TILE_X_SWIZZLED.offset(column, row);
    assert_eq!([x(0, 0), x(0, 1), x(0, 2), x(0, 3), x(0, 4), x(0, 5)], [0, 0x240, 0x440, 0x600, 0x800, 0xa40]);
    assert_eq!([x(63, 1), x(64, 1), x(128, 1), x(511, 1)], [0x27f, 0x200, 0x2c0, 0x3bf]);
}

/// G67-064: every second column of OWords has its groups of four rows exchanged in pairs.
#[test]
fn swizzled_y_tile_has_the_vectors_of_the_driver() {
    let y = |column, row| TILE_Y_SWIZZLED.offset(column, row);
    assert_eq!([y(0, 0), y(0, 4), y(16, 0), y(16, 4), y(17, 3), y(32, 0)], [0, 0x40, 0x240, 0x200, 0x271, 0x400]);
}

#[test]
fn run_is_the_number_of_consecutive_bytes_of_a_row() {
    assert_eq!(ALL.map(Layout::run), [512, 16, 2, 64, 16, 2]);
}

/// `unpack` and `pack` of each layout, byte by byte against the algorithm.
#[test]
fn unpack_gives_row_order_and_pack_restores_memory_order() {
    for layout in ALL {
        let raw: [u8; BLOCK_BYTES] = std::array::from_fn(|at| (at ^ at >> 8).to_le_bytes()[0]);
        let (mut rows, mut packed) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
        layout.unpack(&raw, &mut rows);
        let (width, height) = layout.extent();
        for (column, row) in (0..height).flat_map(|row| (0..width).map(move |column| (column, row))) {
            assert_eq!(rows[(row * width + column) as usize], raw[algorithm(layout, 1, column, row) as usize]);
        }
        layout.pack(&rows, &mut packed);
        assert!(packed == raw, "{layout:?}");
    }
}
