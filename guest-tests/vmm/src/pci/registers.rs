// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Configuration space of a function that the VMM implements: register bytes, and masks of the writable bits.

use arctic_gpu::pci::CONFIG_BYTES;
use arctic_sriov::number::size;

/// 4 KiB of registers with their write masks.
pub struct Registers {
    bytes: Box<[u8]>,
    writable: Box<[u8]>,
}

impl Registers {
    /// Creates registers that are all zero and read-only.
    pub fn new() -> Self {
        let zeros = || vec![0; size(CONFIG_BYTES)].into_boxed_slice();
        Registers { bytes: zeros(), writable: zeros() }
    }

    /// Sets a register's value and its writable bits.
    pub fn define<const N: usize>(&mut self, at: usize, value: [u8; N], writable: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&value);
        self.writable[at..at + N].copy_from_slice(&writable);
    }

    /// Defines a 16-bit register.
    pub fn define16(&mut self, at: usize, value: u16, writable: u16) {
        self.define(at, value.to_le_bytes(), writable.to_le_bytes());
    }

    /// Defines a 32-bit register.
    pub fn define32(&mut self, at: usize, value: u32, writable: u32) {
        self.define(at, value.to_le_bytes(), writable.to_le_bytes());
    }

    /// Reads registers; reads beyond the end return zeros.
    pub fn read(&self, at: u64, data: &mut [u8]) {
        data.fill(0);
        let from = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        data.iter_mut().zip(from).for_each(|(byte, register)| *byte = *register);
    }

    /// Writes registers; only writable bits change.
    pub fn write(&mut self, at: u64, data: &[u8]) {
        let Ok(at) = usize::try_from(at) else { return };
        let (Some(bytes), Some(masks)) = (self.bytes.get_mut(at..), self.writable.get(at..)) else { return };
        for ((byte, mask), value) in bytes.iter_mut().zip(masks).zip(data) {
            *byte = *byte & !mask | value & mask;
        }
    }

    /// Returns one byte.
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writable_bits_change_and_ends_are_kept() {
        let mut registers = Registers::new();
        registers.define32(0x10, 0x1234_5678, 0xffff_0000);
        registers.write(0x10, &[0xff; 4]);
        let mut data = [0; 4];
        registers.read(0x10, &mut data);
        assert_eq!(u32::from_le_bytes(data), 0xffff_5678);
        registers.write(0xffe, &[1; 4]);
        registers.read(0xffe, &mut data);
        assert_eq!(data, [0; 4]);
        registers.read(u64::MAX, &mut data);
    }
}
