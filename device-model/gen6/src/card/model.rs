// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card as a PCI function: conventional, on the root bus (G67-001..007). The registers have the values of public
//! listings of real cards; docs/integrated.md has the differences.

use std::sync::Arc;

use arctic_base::gpu::{Gpu, Host, Model, PowerOnError, RegisterMap};
use arctic_base::limits::Limits;
use arctic_sriov::bar::{Bar, BarKind};
use arctic_sriov::capability::Capability;
use arctic_sriov::config::Field;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::{CACHE_LINE_SIZE, Command, Identity, Status};
use arctic_sriov::register::Register;

use super::{Card, GMADR_BAR, GTTMMADR_BAR, GTTMMADR_BYTES, IO_BAR, register_map};
use crate::profile::IntegratedProfile;

/// Bits of the command register that the function implements: the address spaces, bus mastering, Interrupt Disable.
const COMMAND: Command =
    Command::new().with_io_space(true).with_memory_space(true).with_bus_master(true).with_interrupt_disable(true);
/// The status register; no error is ever reported.
const STATUS: Status = Status::new().with_capabilities(true).with_fast_back_to_back(true);
/// DEVEN, of which this is a copy of the host bridge's: host bridge and integrated GPU are enabled.
const DEVICES_ENABLED: u32 = 1 << 0 | 1 << 4;
/// SWSCI: the event is an SCI. Without the trigger in bit 0, because no firmware would clear it.
const SCI_SELECT: u16 = 1 << 15;

impl Model for IntegratedProfile {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Identity {
        self.pci_identity()
    }

    fn total_vfs(&self) -> u8 {
        0
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    /// Drivers take a write to the aperture for complete when the CPU's write buffers are empty (i915: `has_coherent_ggtt`
    /// in i915_pci.c, `flush_write_domain` in gem/i915_gem_domain.c).
    fn posted_writes(&self) -> bool {
        false
    }

    fn physical_function(&self, _: u8) -> Result<PciFunction, FunctionError> {
        let bars = vec![
            Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, false)?,
            Bar::memory_64(GMADR_BAR, self.aperture, true)?,
            Bar::new(IO_BAR, 64, BarKind::Io)?,
        ];
        let registers = [
            // GGC, read by drivers and by the kernel's early code (G67-006).
            Field::word(0x50, self.graphics_control()),
            Field::dword(0x54, DEVICES_ENABLED),
            // BDSM: there is no stolen memory (G67-007).
            Field::dword(0x5c, 0),
            // MSAC.
            Field::byte(0x62, self.aperture_control()),
            // SWSMI, ASLE and SWSCI: between drivers and firmware, which the card does not have.
            Field::word(0xe0, 0).writable(0xffff),
            Field::dword(0xe4, 0).writable(u32::MAX),
            Field::word(0xe8, SCI_SELECT).writable(0x7ffe),
            // ASLS: firmware has no OpRegion (G67-013).
            Field::dword(0xfc, 0).writable(u32::MAX),
        ];
        let capabilities =
            [Capability::msi_32(0x90), Capability::power_management_2(0xd0), Capability::advanced_features(0xa4)];
        let header = [
            Field::register(Command::new()).writable(COMMAND.value()),
            Field::register(STATUS).live(Status::new().with_interrupt(true).value()),
            Field::byte(CACHE_LINE_SIZE, 0),
        ];
        Ok(PciFunction::new(&self.pci_identity(), bars, &registers, &capabilities)?.with_header(&header))
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn register_map(&self) -> RegisterMap {
        register_map::register_map(self)
    }

    fn power_on(&self, _: u8, _: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        Ok(Card::power_on(self, host))
    }
}
