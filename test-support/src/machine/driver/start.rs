// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Start of the GuC by the PF's driver.

use std::time::Instant;

use arctic_guc_driver::GucDriver;

use super::{Driver, PF_BASE};
use crate::firmware;
use crate::machine::transport::Machine;
use crate::poll::TIMEOUT;

/// Engine instances that the card's fuses enable, by GuC class (contract K.3): render, video, video enhancement, copy,
/// compute.
const ENGINES: [&[u8]; 5] = [&[0], &[0, 2], &[0, 1], &[0], &[0, 1, 2, 3]];

impl Driver {
    /// Returns the PF's driver without starting the GuC.
    pub fn pf(machine: &mut dyn Machine) -> Self {
        let mut driver = Driver::new(machine, 0, PF_BASE);
        driver.clear(machine);
        driver.show(machine);
        driver.with(machine).write_firmware(&ENGINES.map(<[u8]>::to_vec));
        driver
    }

    /// Starts the firmware DMA; returns GUC_STATUS.
    pub fn start_guc(&mut self, machine: &mut dyn Machine) -> u32 {
        self.with(machine).start_firmware();
        let start = Instant::now();
        while machine.visibility().memory_by_messages && machine.register(0, firmware::DMA_CTRL) & 1 != 0 {
            assert!(start.elapsed() < TIMEOUT, "timed out waiting for the firmware DMA");
        }
        assert_eq!(
            machine.register(0, firmware::DMA_CTRL) & 1,
            0,
            "the DMA is still busy after the reply to the write that started it"
        );
        machine.register(0, firmware::STATUS)
    }
}
