// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Base address registers: 64-bit memory BARs and their register pairs.

use std::fmt;

use crate::config::Field;
use crate::number::{high, low};

/// Number of base address registers in a type 0 header.
pub const BAR_REGISTERS: u8 = 6;

/// Offset of base address register 0.
const BAR0: u16 = 0x10;

const MEMORY_64: u32 = 0b10 << 1;
const PREFETCHABLE: u32 = 1 << 3;

/// A 64-bit memory BAR. It occupies the registers `index` and `index + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    index: u8,
    size: u64,
    prefetchable: bool,
}

/// Invalid BAR size or register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarError {
    /// The size in bytes is not a power of two of at least 4 KiB.
    Size(u64),
    /// A 64-bit BAR cannot start at this register.
    Index(u8),
}

impl fmt::Display for BarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarError::Size(size) => {
                write!(f, "invalid BAR size {size:#x}: must be a power of two of at least 4 KiB")
            }
            BarError::Index(index) => write!(f, "a 64-bit BAR cannot start at register {index}"),
        }
    }
}

impl std::error::Error for BarError {}

impl Bar {
    /// Creates a BAR of `size` bytes, a power of two of at least 4 KiB, at register `index` (0 to 4).
    pub fn memory_64(index: u8, size: u64, prefetchable: bool) -> Result<Self, BarError> {
        if index >= BAR_REGISTERS - 1 {
            return Err(BarError::Index(index));
        }
        if !size.is_power_of_two() || size < 4096 {
            return Err(BarError::Size(size));
        }
        Ok(Bar { index, size, prefetchable })
    }

    /// Index of the first of the two registers. Drivers and transports identify the BAR by this number.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Offset of the lower register in configuration space.
    #[allow(clippy::arithmetic_side_effects, reason = "the index is at most 4")]
    pub fn register(&self) -> u16 {
        BAR0 + 4 * u16::from(self.index)
    }

    /// The two registers as fields. Address bits below the size read 0, so software can size the BAR by writing all
    /// ones.
    pub fn fields(&self) -> [Field; 2] {
        self.fields_at(self.register())
    }

    /// The same registers at another offset, for a VF BAR in the SR-IOV capability, which has the same layout (PCIe
    /// 9.3.3.14).
    #[allow(clippy::arithmetic_side_effects, reason = "registers lie below 4096")]
    pub fn fields_at(&self, register: u16) -> [Field; 2] {
        let kind = MEMORY_64 | if self.prefetchable { PREFETCHABLE } else { 0 };
        [
            Field::dword(register, kind).writable(low(self.address_mask())),
            Field::dword(register + 4, 0).writable(high(self.address_mask())),
        ]
    }

    /// The address bits that are writable by software.
    #[allow(clippy::arithmetic_side_effects, reason = "the size is at least 4096")]
    pub fn address_mask(&self) -> u64 {
        !(self.size - 1)
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::config::ConfigSpace;

    fn sized(bar: Bar) -> u64 {
        let mut space = ConfigSpace::new(bar.fields()).unwrap();
        space.write(bar.register().into(), &[0xff; 8]);
        u64::from(space.dword(bar.register() + 4)) << 32 | u64::from(space.dword(bar.register()))
    }

    #[test]
    fn writing_all_ones_returns_size_and_type() {
        proves!([V13_004, V13_013], "writing all ones to a BAR and reading it back returns its size and type bits");
        assert_eq!(sized(Bar::memory_64(0, 16 << 20, false).unwrap()), 0xffff_ffff_ff00_0004);
        assert_eq!(sized(Bar::memory_64(2, 16 << 30, true).unwrap()), 0xffff_fffc_0000_000c);
    }

    #[test]
    fn impossible_windows_are_refused() {
        assert_eq!(Bar::memory_64(2, 12 << 30, true), Err(BarError::Size(12 << 30)));
        assert_eq!(Bar::memory_64(2, 0, true), Err(BarError::Size(0)));
        assert_eq!(Bar::memory_64(5, 4096, true), Err(BarError::Index(5)));
    }

    /// Tests every index (256) with sizes of 2^n, 2^n + 1 and 2^n - 1, and with `u64::MAX` (193 sizes): 49 408
    /// combinations. An accepted BAR decodes every address that is a multiple of its size and no other address bit.
    /// Each register keeps only the address bits of its half, for each of the 64 bits written alone, for all ones, for
    /// all ones except one bit, and for zero.
    #[test]
    fn every_index_and_size() {
        let powers = (0..64).map(|bit| 1_u64 << bit);
        let sizes = powers.flat_map(|size| [size, size.wrapping_add(1), size - 1]).chain([u64::MAX]);
        let (mut windows, mut accepted) = (0, 0);
        for size in sizes {
            for index in 0..=u8::MAX {
                windows += 1;
                let possible = index <= 4 && size >= 4096 && size.count_ones() == 1;
                let Ok(bar) = Bar::memory_64(index, size, index % 2 == 0) else {
                    assert!(!possible, "{index} {size:#x}");
                    continue;
                };
                assert!(possible, "{index} {size:#x}");
                accepted += 1;
                assert_eq!((bar.index(), bar.size(), bar.register()), (index, size, 0x10 + 4 * u16::from(index)));
                let kind = if index % 2 == 0 { 0xc } else { 4 };
                let ones = (0..64).flat_map(|bit| [1_u64 << bit, !(1 << bit)]).chain([0, u64::MAX]);
                for written in ones {
                    let mut space = ConfigSpace::new(bar.fields()).unwrap();
                    space.write(bar.register().into(), &written.to_le_bytes());
                    let [low, high] = [0, 4].map(|half| u64::from(space.dword(bar.register() + half)));
                    // Computed by division; the implementation uses a mask.
                    assert_eq!(high << 32 | low, written / size * size + kind, "{size:#x} {written:#x}");
                }
            }
        }
        assert_eq!((windows, accepted), (193 * 256, 5 * 52));
    }
}
