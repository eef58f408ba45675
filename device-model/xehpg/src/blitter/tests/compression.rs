// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Flat CCS, with the command sequences of the drivers and of IGT's xe_ccs.

use super::*;

/// xe: emit_copy_ccs; `size` bytes of main memory.
fn copy_ccs(from: u64, from_indirect: bool, to: u64, to_indirect: bool, size: u32) -> [u32; 5] {
    let blocks = (size / 256).div_ceil(256);
    let mocs = 3 << 26;
    [
        2 << 29 | 0x48 << 22 | 3 | u32::from(!from_indirect) << 21 | u32::from(!to_indirect) << 20 | (blocks - 1) << 8,
        low(from),
        high(from) | mocs,
        low(to),
        high(to) | mocs,
    ]
}

/// Source or destination of a block copy of 512 by 256 pixels of 32 bits.
#[derive(Clone, Copy)]
struct Side {
    address: u64,
    tiling: u32,
    compressed: bool,
}

const SIZE: u64 = 512 * 256 * 4;

fn linear(address: u64) -> Side {
    Side { address, tiling: 0, compressed: false }
}

/// IGT: fill_data, fill_data_ext.
fn block_copy(from: Side, to: Side, full_resolve: bool) -> [u32; 22] {
    let side = |side: Side, aux: bool| {
        let pitch = if side.tiling == 0 { 2048 } else { 512 };
        side.tiling << 30 | u32::from(side.compressed) << 29 | (u32::from(aux) * 5) << 18 | (pitch - 1)
    };
    let mut dwords = [0; 22];
    dwords[..12].copy_from_slice(&[
        2 << 29 | 0x41 << 22 | 2 << 19 | u32::from(full_resolve) << 12 | 20,
        side(to, to.compressed || full_resolve),
        0,
        point(512, 256),
        low(to.address),
        high(to.address),
        0,
        0,
        side(from, from.compressed),
        low(from.address),
        high(from.address),
        0,
    ]);
    let surface = 1 << 29 | 511 << 14 | 255;
    (dwords[16], dwords[19]) = (surface, surface);
    dwords
}

/// Addresses of the surfaces: source and result are in guest memory, the compressed one is in local memory.
const SOURCE: u64 = MAPPED;
const RESULT: u64 = MAPPED + SIZE;
const CONTROL: u64 = REMOTE;

/// IGT xe_ccs@ctrl-surf-copy, @large-ctrl-surf-copy, for each tiling.
#[test]
fn compressed_copies_and_their_control() {
    proves!([BLT_030, BLT_031], "control data is needed to read compressed pixels, and is copied");
    for tiling in 0..4 {
        let mut bench = BlitBench::new();
        let middle = Side { address: LARGE, tiling, compressed: true };
        let pixels = bench.fill_random(SOURCE, SIZE, 9);
        bench.run(&block_copy(linear(SOURCE), middle, false), 50_000);
        bench.run(&block_copy(Side { compressed: false, ..middle }, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) != pixels, "a raw read of compressed memory must not return the pixels");
        bench.run(&block_copy(middle, linear(RESULT), false), 50_000);
        assert!(bench.read(RESULT, SIZE) == pixels);

        // The control data has no zero byte; modifying it corrupts the pixels, restoring it restores them.
        bench.run(&copy_ccs(LARGE, true, CONTROL, false, SIZE as u32), 300);
        let control = bench.read(CONTROL, SIZE / 256);
        assert!(control.iter().all(|byte| *byte != 0));
        let wrong: Vec<u8> = (0..SIZE as u32 / 1024).flat_map(u32::to_le_bytes).collect();
        bench.write(CONTROL, &wrong);
        bench.run(&copy_ccs(CONTROL, false, LARGE, true, SIZE as u32), 300);
        bench.run(&block_copy(middle, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) != pixels);
        bench.write(CONTROL, &control);
        bench.run(&copy_ccs(CONTROL, false, LARGE, true, SIZE as u32), 300);
        bench.run(&block_copy(middle, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) == pixels);
    }
}

/// IGT xe_ccs@block-multicopy-inplace: a full resolve results in plain pixels and zero control data.
#[test]
fn full_resolve() {
    proves!(BLT_033, "the pixels are plain and the control data 0");
    for tiling in 0..4 {
        let mut bench = BlitBench::new();
        let middle = Side { address: LARGE, tiling, compressed: true };
        let pixels = bench.fill_random(SOURCE, SIZE, 11);
        bench.run(&block_copy(linear(SOURCE), middle, false), usize::MAX);
        let plain = Side { compressed: false, ..middle };
        bench.run(&block_copy(middle, plain, true), 50_000);
        bench.run(&block_copy(plain, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) == pixels);
        bench.run(&copy_ccs(LARGE, true, CONTROL, false, SIZE as u32), usize::MAX);
        assert!(bench.read(CONTROL, SIZE / 256).iter().all(|byte| *byte == 0));
    }
}

/// xe: xe_migrate_clear, xe_evict_ccs: control data is cleared by a copy from NULL pages, and is evicted and restored
/// together with the raw bytes. It belongs to the physical memory, so each scattered page has its own.
#[test]
fn eviction_and_clear() {
    proves!([BLT_030, BLT_031], "control data is evicted, restored and cleared with the memory that it belongs to");
    let mut bench = BlitBench::new();
    let pixels = bench.fill_random(SOURCE, SIZE, 13);
    let scattered = Side { address: 0, tiling: 2, compressed: true };
    bench.run(&block_copy(linear(SOURCE), scattered, false), usize::MAX);
    // Raw copy to guest memory, and back to another address.
    let raw = Side { compressed: false, tiling: 0, ..scattered };
    bench.run(&block_copy(raw, linear(RESULT), false), usize::MAX);
    bench.run(&copy_ccs(0, true, CONTROL, false, SIZE as u32), usize::MAX);
    bench.run(&block_copy(linear(RESULT), linear(LARGE), false), usize::MAX);
    bench.run(&copy_ccs(CONTROL, false, LARGE, true, SIZE as u32), usize::MAX);
    bench.run(&block_copy(Side { address: LARGE, ..scattered }, linear(RESULT), false), usize::MAX);
    assert!(bench.read(RESULT, SIZE) == pixels);
    // Copy control data from surface to surface, then clear it from NULL pages: the surface is uncompressed.
    bench.run(&copy_ccs(LARGE, true, LARGE + MIB, true, SIZE as u32), usize::MAX);
    bench.run(&copy_ccs(LARGE + MIB, true, CONTROL, false, SIZE as u32), usize::MAX);
    assert!(bench.read(CONTROL, SIZE / 256).iter().all(|byte| *byte != 0));
    bench.run(&copy_ccs(NULL_PAGES, false, LARGE + MIB, true, SIZE as u32), usize::MAX);
    bench.run(&copy_ccs(LARGE + MIB, true, CONTROL, false, SIZE as u32), usize::MAX);
    assert!(bench.read(CONTROL, SIZE / 256).iter().all(|byte| *byte == 0));
}

/// Guest memory has no control data: a compressed copy to it stores plain pixels, and its control data reads as zero.
#[test]
fn guest_memory_is_never_compressed() {
    proves!(BLT_034, "pixels are plain, control data reads as 0");
    let mut bench = BlitBench::new();
    let pixels = bench.fill_random(LARGE, SIZE, 15);
    bench.run(&block_copy(linear(LARGE), Side { compressed: true, ..linear(RESULT) }, false), usize::MAX);
    assert!(bench.read(RESULT, SIZE) == pixels);
    bench.write(CONTROL, &[0xff; 4096]);
    bench.run(&copy_ccs(RESULT, true, CONTROL, false, SIZE as u32), usize::MAX);
    assert!(bench.read(CONTROL, SIZE / 256).iter().all(|byte| *byte == 0));
}

/// Pixels next to a small compressed write keep their values, although a block is compressed as a whole.
#[test]
fn partial_blocks() {
    proves!(BLT_032, "neighbours of a small compressed write keep their values");
    for tiling in 0..4 {
        let mut bench = BlitBench::new();
        let pixels = bench.fill_random(SOURCE, SIZE, 19);
        let middle = Side { address: LARGE, tiling, compressed: true };
        bench.run(&block_copy(linear(SOURCE), Side { compressed: false, ..middle }, false), usize::MAX);
        // Pixels (3, 5) to (70, 40) are written again, compressed.
        let mut small = block_copy(linear(SOURCE), middle, false);
        (small[2], small[3], small[7]) = (point(3, 5), point(70, 40), point(3, 5));
        bench.run(&small, 5000);
        bench.run(&block_copy(middle, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) == pixels, "tiling {tiling}");
        bench.run(&block_copy(Side { compressed: false, ..middle }, linear(RESULT), false), usize::MAX);
        assert!(bench.read(RESULT, SIZE) != pixels, "tiling {tiling}: no block was compressed");
    }
}
