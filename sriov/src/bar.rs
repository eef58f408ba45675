// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Base address registers: memory and I/O BARs, and their registers.

use crate::config::Field;
use arctic_number::{high, low};

/// Number of base address registers in a type 0 header.
pub const BAR_REGISTERS: u8 = 6;

/// Offset of base address register 0.
pub const BAR0: u16 = 0x10;

const IO_SPACE: u32 = 1 << 0;
const MEMORY_64: u32 = 0b10 << 1;
const PREFETCHABLE: u32 = 1 << 3;

/// The address space that a BAR decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// Memory below 4 GiB. The BAR has one register.
    Memory32 {
        /// Whether reads have no side effects, and writes may be merged.
        prefetchable: bool,
    },
    /// Memory. The BAR has two registers.
    Memory64 {
        /// Whether reads have no side effects, and writes may be merged.
        prefetchable: bool,
    },
    /// I/O ports, with 16-bit addresses. The BAR has one register.
    Io,
}

impl BarKind {
    /// Number of registers.
    pub fn registers(self) -> u8 {
        match self {
            BarKind::Memory64 { .. } => 2,
            BarKind::Memory32 { .. } | BarKind::Io => 1,
        }
    }

    /// The read-only low bits of the register.
    fn bits(self) -> u32 {
        match self {
            BarKind::Memory32 { prefetchable } => {
                if prefetchable {
                    PREFETCHABLE
                } else {
                    0
                }
            }
            BarKind::Memory64 { prefetchable } => MEMORY_64 | if prefetchable { PREFETCHABLE } else { 0 },
            BarKind::Io => IO_SPACE,
        }
    }

    /// The smallest and the largest size in bytes (PCI 3.0, 6.2.5.1). Memory has whole pages.
    fn sizes(self) -> (u64, u64) {
        match self {
            BarKind::Memory32 { .. } => (4096, 1 << 31),
            BarKind::Memory64 { .. } => (4096, 1 << 63),
            BarKind::Io => (4, 256),
        }
    }

    /// The address bits that a register of this kind can have.
    fn addresses(self) -> u64 {
        match self {
            BarKind::Memory32 { .. } => u32::MAX.into(),
            BarKind::Memory64 { .. } => u64::MAX,
            BarKind::Io => u16::MAX.into(),
        }
    }
}

/// A BAR. It occupies the registers from `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    index: u8,
    size: u64,
    kind: BarKind,
}

/// Invalid BAR size or register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarError {
    /// The size in bytes is not a power of two that a BAR of this kind can have.
    #[error("invalid BAR size {0:#x}: must be a power of two from {least:#x} to {most:#x}", least = .1.sizes().0, most = .1.sizes().1)]
    Size(u64, BarKind),
    /// A BAR of this kind cannot start at this register.
    #[error(
        "a BAR of {registers} registers cannot start at register {0}, only at 0 to {last}",
        registers = .1.registers(),
        last = BAR_REGISTERS.saturating_sub(.1.registers())
    )]
    Index(u8, BarKind),
}

impl Bar {
    /// Creates a BAR of `size` bytes at register `index`. The size is a power of two: 4 KiB to 2 GiB of 32-bit memory,
    /// at least 4 KiB of 64-bit memory, 4 to 256 I/O ports. The registers are among the six of a header.
    pub fn new(index: u8, size: u64, kind: BarKind) -> Result<Self, BarError> {
        if index > BAR_REGISTERS.saturating_sub(kind.registers()) {
            return Err(BarError::Index(index, kind));
        }
        let (least, most) = kind.sizes();
        if !size.is_power_of_two() || !(least..=most).contains(&size) {
            return Err(BarError::Size(size, kind));
        }
        Ok(Bar { index, size, kind })
    }

    /// Creates a BAR of 64-bit memory, see [`Bar::new`].
    pub fn memory_64(index: u8, size: u64, prefetchable: bool) -> Result<Self, BarError> {
        Self::new(index, size, BarKind::Memory64 { prefetchable })
    }

    /// Index of the first of its registers. Drivers and transports identify the BAR by this number.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The address space that it decodes.
    pub fn kind(&self) -> BarKind {
        self.kind
    }

    /// Offset of the first register in configuration space.
    #[allow(clippy::arithmetic_side_effects, reason = "the index is at most 5")]
    pub fn register(&self) -> u16 {
        BAR0 + 4 * u16::from(self.index)
    }

    /// The registers as fields. Address bits below the size read 0, so software can size the BAR by writing all ones.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        self.fields_at(self.register())
    }

    /// The same registers at another offset, for a VF BAR in the SR-IOV capability, which has the same layout (PCIe
    /// 9.3.3.14).
    #[allow(clippy::arithmetic_side_effects, reason = "registers lie below 4096")]
    pub fn fields_at(&self, register: u16) -> impl Iterator<Item = Field> + use<> {
        let first = Field::dword(register, self.kind.bits()).writable(low(self.address_mask()));
        let second = Field::dword(register + 4, 0).writable(high(self.address_mask()));
        [first, second].into_iter().take(self.kind.registers().into())
    }

    /// The address bits that are writable by software.
    #[allow(clippy::arithmetic_side_effects, reason = "the size is not 0")]
    pub fn address_mask(&self) -> u64 {
        !(self.size - 1) & self.kind.addresses()
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
        const MEMORY: BarKind = BarKind::Memory64 { prefetchable: true };
        assert_eq!(Bar::memory_64(2, 12 << 30, true), Err(BarError::Size(12 << 30, MEMORY)));
        assert_eq!(Bar::memory_64(2, 0, true), Err(BarError::Size(0, MEMORY)));
        assert_eq!(Bar::memory_64(5, 4096, true), Err(BarError::Index(5, MEMORY)));
    }

    /// Every register, kind and power of two: a BAR that is accepted returns its size and kind when all ones are
    /// written, and leaves the other registers alone.
    #[test]
    fn every_kind_has_its_registers_and_sizes() {
        let kinds = [false, true]
            .into_iter()
            .flat_map(|prefetchable| [BarKind::Memory32 { prefetchable }, BarKind::Memory64 { prefetchable }]);
        for kind in kinds.chain([BarKind::Io]) {
            let (registers, sizes, low_bits) = match kind {
                BarKind::Memory32 { prefetchable } => (1, 12..=31, u32::from(prefetchable) << 3),
                BarKind::Memory64 { prefetchable } => (2, 12..=63, u32::from(prefetchable) << 3 | 4),
                BarKind::Io => (1, 2..=8, 1),
            };
            for (index, bit) in (0..=u8::MAX).flat_map(|index| (0..64).map(move |bit| (index, bit))) {
                let possible = index <= 6 - registers && sizes.contains(&bit);
                let bar = Bar::new(index, 1 << bit, kind);
                assert_eq!(bar.is_ok(), possible, "{kind:?} {index} 2^{bit}");
                let Ok(bar) = bar else { continue };
                let mut space = ConfigSpace::new(bar.fields()).unwrap();
                space.write(0, &[0xff; 64]);
                let at = 0x10 + 4 * u16::from(index);
                let read = u64::from(space.dword(at + 4)) << 32 | u64::from(space.dword(at));
                let expected = match kind {
                    BarKind::Memory64 { .. } => u64::MAX << bit,
                    BarKind::Memory32 { .. } => u64::MAX << bit & 0xffff_ffff,
                    BarKind::Io => u64::MAX << bit & 0xffff,
                };
                assert_eq!(read, expected | u64::from(low_bits), "{kind:?} {index} 2^{bit}");
                let others = (0..64).step_by(4).filter(|other| !(at..at + 4 * u16::from(registers)).contains(other));
                assert!(others.map(|other| space.dword(other)).all(|value| value == 0), "{kind:?} {index}");
            }
        }
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
