// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! BARs as devices on a bus of the crate `vm-device`.

use std::sync::Arc;

use vm_device::DeviceMmio;
use vm_device::bus::{MmioAddress, MmioAddressOffset};

use crate::pci::PciDevice;

/// A BAR of a function on the MMIO bus of a VMM that uses `vm-device`. The VMM registers it at the address of each
/// [`Machine::bar_moved`](crate::Machine::bar_moved), with the BAR's size, and deregisters it at `None`; ranges of
/// [`PciDevice::mappings`] that it maps do not reach the bus.
///
/// An access has 1 to 8 bytes. A longer read returns all ones, and a longer write is dropped.
pub struct MmioBar {
    function: Arc<dyn PciDevice>,
    bar: u8,
}

impl MmioBar {
    /// BAR `bar` of `function`.
    pub fn new(function: Arc<dyn PciDevice>, bar: u8) -> Self {
        MmioBar { function, bar }
    }
}

impl DeviceMmio for MmioBar {
    fn mmio_read(&self, _: MmioAddress, offset: MmioAddressOffset, data: &mut [u8]) {
        if data.len() <= 8 {
            self.function.read_bar(self.bar, offset, data);
        } else {
            data.fill(0xff);
        }
    }

    fn mmio_write(&self, _: MmioAddress, offset: MmioAddressOffset, data: &[u8]) {
        if data.len() <= 8 {
            self.function.write_bar(self.bar, offset, data);
        }
    }
}
