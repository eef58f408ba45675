// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Start of the GuC (contract B.4): a firmware image without code, the ADS with the table of engines, and the registers
//! that point to both.

use alloc::vec;
use alloc::vec::Vec;

use arctic_mi::low;

const KERNEL_DWORDS: u32 = 0x100;
/// Size in bytes of header and kernel, which the DMA copies. The signature follows.
pub const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;

/// GUC_STATUS.
pub const STATUS: u32 = 0xc000;
/// Value of GUC_STATUS while the firmware runs.
pub const READY: u32 = 0x8001_f0ec;
/// DMA_CTRL, which is written last; its lowest bit is set while the DMA is in progress.
pub const DMA_CTRL: u32 = 0xc314;

/// Returns the parts of the firmware image, with their offsets. The image has version 70.55; VFs negotiate interface
/// version 1.27.
pub fn image() -> [(u64, Vec<u32>); 3] {
    let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
    let versions = [70 << 16 | 55 << 8, 1 << 16 | 27 << 8];
    [(0, header.to_vec()), (0x40, versions.to_vec()), (DMA_BYTES.into(), vec![0x1234_5678])]
}

/// Returns the part of the ADS that the GuC reads, with its offset. The ADS is at GGTT address `shown`; `engines`
/// contains the instance numbers of each class.
pub fn ads(shown: u64, engines: &[Vec<u8>]) -> (u64, Vec<u32>) {
    const FROM: usize = 0x1000;
    /// Number of classes in the table of engines; classes above the card's have no engines.
    const CLASSES: usize = 16;
    let mut words = vec![0; 0x480 / 4];
    let mut put = |at: usize, word: u32| words[(at - FROM) / 4] = word;
    put(0x1004, low(shown) + 0x11dc);
    put(0x1008, low(shown) + 0x123c);
    put(0x1220, 1);
    for class in 0..CLASSES {
        let instances = engines.get(class).map_or(&[][..], Vec::as_slice);
        // 0x20 marks an unused entry.
        let table: [u8; 32] = core::array::from_fn(|n| instances.get(n).copied().unwrap_or(0x20));
        for (n, quad) in table.chunks_exact(4).enumerate() {
            put(0x123c + class * 32 + n * 4, u32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]));
        }
        put(0x143c + class * 4, instances.iter().fold(0, |mask, n| mask | 1 << n));
    }
    (FROM as u64, words)
}

/// Returns the register writes that start the firmware, in order. Both addresses are GGTT addresses.
pub const fn start(firmware: u64, ads: u64) -> [(u32, u32); 12] {
    let firmware = low(firmware);
    [
        (0xc050, 0x3f_3000),
        (0xc340, 0x4000),
        (0xc180 + 5 * 4, low(ads >> 12 << 1)),
        (0xc180 + 3 * 4, 0x14),
        (0xc180 + 2 * 4, 0x42_4800),
        (0xc200, firmware + DMA_BYTES),
        (0xc300, firmware),
        (0xc304, 0x8_0000),
        (0xc308, 0x2000),
        (0xc30c, 0x7_0000),
        (0xc310, DMA_BYTES),
        (DMA_CTRL, 0x11 << 16 | 0x11),
    ]
}
