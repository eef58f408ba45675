// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Starting the GuC (contract B.4): the firmware image, the ADS with the table of engines, and the registers that
//! locate both.

use std::time::Instant;

use super::{ADS, Driver, FIRMWARE, PF_BASE};
use crate::machine::door::{Machine, PATIENCE};

const KERNEL_DWORDS: u32 = 0x100;
/// Bytes of header and kernel, the part that the DMA copies.
const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;
const GUC_STATUS: u32 = 0xc000;
/// GUC_STATUS when the firmware runs.
pub const READY: u32 = 0x8001_f0ec;

/// Engine instances by GuC class, after the card's fuses (contract K.3): render, video, video enhancement, copy,
/// compute.
const ENGINES: [&[u8]; 5] = [&[0], &[0, 2], &[0, 1], &[0], &[0, 1, 2, 3]];

impl Driver {
    /// Returns the PF's driver without starting the GuC.
    pub fn pf(machine: &mut dyn Machine) -> Self {
        let driver = Driver::new(machine, 0, PF_BASE);
        driver.clear(machine);
        driver.show(machine);
        driver.write_firmware(machine);
        driver.write_ads(machine);
        driver
    }

    fn write_firmware(&self, machine: &mut dyn Machine) {
        let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
        self.poke(machine, FIRMWARE, &header);
        // Version 70.53; VFs negotiate interface version 1.26.
        self.poke(machine, FIRMWARE + 0x40, &[70 << 16 | 53 << 8, 1 << 16 | 26 << 8]);
        self.poke(machine, FIRMWARE + u64::from(DMA_BYTES), &[0x1234_5678]);
    }

    fn write_ads(&self, machine: &mut dyn Machine) {
        let shown = (self.base + ADS) as u32;
        self.poke(machine, ADS + 0x1004, &[shown + 0x11dc, shown + 0x123c]);
        self.poke(machine, ADS + 0x1220, &[1]);
        // The remaining classes have no engines: 0x20 marks an unused entry.
        for class in 0..16_u64 {
            let instances = ENGINES.get(class as usize).copied().unwrap_or(&[]);
            let table: Vec<u8> = (0..32).map(|n| instances.get(n).copied().unwrap_or(0x20)).collect();
            machine.write_ram(self.function, self.address(ADS + 0x123c + class * 32), &table);
            let mask = instances.iter().fold(0, |mask, n| mask | 1 << n);
            self.poke(machine, ADS + 0x143c + class * 4, &[mask]);
        }
    }

    /// Starts the firmware DMA; returns GUC_STATUS.
    pub fn start_guc(&self, machine: &mut dyn Machine) -> u32 {
        let firmware = (self.base + FIRMWARE) as u32;
        let registers = [
            (0xc050, 0x3f_3000),
            (0xc340, 0x4000),
            (0xc180 + 5 * 4, ((self.base + ADS) >> 12 << 1) as u32),
            (0xc180 + 3 * 4, 0x14),
            (0xc180 + 2 * 4, 0x42_4800),
            (0xc200, firmware + DMA_BYTES),
            (0xc300, firmware),
            (0xc304, 0x8_0000),
            (0xc308, 0x2000),
            (0xc30c, 0x7_0000),
            (0xc310, DMA_BYTES),
            (0xc314, 0x11 << 16 | 0x11),
        ];
        for (register, value) in registers {
            machine.set_register(0, register, value);
        }
        let start = Instant::now();
        while machine.shows().asks_for_memory && machine.register(0, 0xc314) & 1 != 0 {
            assert!(start.elapsed() < PATIENCE, "timed out waiting for the firmware DMA");
        }
        assert_eq!(machine.register(0, 0xc314) & 1, 0, "the DMA is still busy after its write has been answered");
        machine.register(0, GUC_STATUS)
    }
}
