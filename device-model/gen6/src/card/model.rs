// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card as a PCI function: conventional, on the root bus (G67-001..007).

use std::sync::Arc;

use arctic_base::gpu::{Gpu, Host, Model, PowerOnError};
use arctic_base::limits::Limits;
use arctic_sriov::bar::{Bar, BarKind};
use arctic_sriov::capability::Capability;
use arctic_sriov::config::Field;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;

use super::{Card, GMADR_BAR, GTTMMADR_BAR, GTTMMADR_BYTES, IO_BAR};
use crate::profile::IntegratedProfile;

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
            // BDSM: there is no stolen memory (G67-007).
            Field::dword(0x5c, 0),
            // ASLS: firmware has no OpRegion (G67-013).
            Field::dword(0xfc, 0).writable(u32::MAX),
        ];
        let capabilities = [Capability::msi_32(0x90), Capability::power_management(0xd0)];
        Ok(PciFunction::new(&self.pci_identity(), bars, &registers, &capabilities)?)
    }

    fn virtual_function(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn virtual_function_on_bus(&self) -> Result<PciFunction, FunctionError> {
        Err(FunctionError::NoVirtualFunctions)
    }

    fn power_on(&self, _: u8, _: bool, host: Host) -> Result<Arc<dyn Gpu>, PowerOnError> {
        Ok(Card::power_on(self, host))
    }
}
