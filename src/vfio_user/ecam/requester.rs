// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A PCI function that only sends memory requests: the card's accesses to the configuration space window of a guest
//! whose IOMMU translates the PF. QEMU has it on a bus that the IOMMU does not translate (`bypass_iommu=on`).

use std::sync::{Arc, Mutex, MutexGuard};

use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::config::LayoutError;
use arctic_sriov::function::PciFunction;
use arctic_sriov::header::{COMMAND, Command, Identity};

use super::BarPlacer;
use crate::pci::{Bar, BarMapping, Function, PciDevice};
use crate::vfio_user::Device;

/// No driver of Linux or Windows binds to it: QEMU's vendor ID of example devices, and the class of devices that fit
/// in no class.
const IDENTITY: Identity = Identity {
    vendor: 0x1234,
    device: 0xeca0,
    revision: 0,
    class: 0xff_00_00,
    subsystem_vendor: 0x1234,
    subsystem: 0xeca0,
    serial: 0,
    pin: None,
};

/// Bits of the command register that always read 1. No driver enables bus mastering of this function, but firmware and
/// kernel write back what they have read, and QEMU enables bus mastering when the bit is written.
const ALWAYS: u16 = Command::new().with_memory_space(true).with_bus_master(true).into_bits();

/// The function: a configuration space without BARs and capabilities.
pub(in crate::vfio_user) struct Requester {
    config: Mutex<PciFunction>,
    placer: Arc<BarPlacer>,
}

impl Requester {
    pub fn new(placer: Arc<BarPlacer>) -> Result<Self, LayoutError> {
        Ok(Requester { config: Mutex::new(PciFunction::new(&IDENTITY, Vec::new(), &[], &[])?), placer })
    }

    fn config(&self) -> MutexGuard<'_, PciFunction> {
        self.config.lock().ignore_poison()
    }
}

impl PciDevice for Requester {
    /// It has no function of the card behind it.
    fn number(&self) -> Function {
        Function::PF
    }

    fn name(&self) -> String {
        "ecam".into()
    }

    fn bus_master(&self) -> bool {
        true
    }

    fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.config().read_config(offset, data);
        let command = (u64::from(COMMAND)..).zip(ALWAYS.to_le_bytes());
        for (at, always) in command {
            let found = at.checked_sub(offset).and_then(|at| data.get_mut(usize::try_from(at).ok()?));
            found.into_iter().for_each(|byte| *byte |= always);
        }
    }

    fn write_config(&self, offset: u64, data: &[u8]) {
        self.config().write_config(offset, data);
    }

    fn bars(&self) -> &[Bar] {
        &[]
    }

    fn read_bar(&self, _bar: u8, _offset: u64, data: &mut [u8]) {
        data.fill(0xff);
    }

    fn write_bar(&self, _bar: u8, _offset: u64, _data: &[u8]) {}

    fn mappings(&self, _bar: u8) -> Vec<BarMapping<'_>> {
        Vec::new()
    }

    fn reset(&self) {
        self.config().reset();
    }
}

impl Device for Requester {
    fn pci(&self) -> &dyn PciDevice {
        self
    }

    fn admit(&self) -> Result<(), String> {
        self.placer.sender_changed();
        Ok(())
    }

    fn disconnected(&self) {
        PciDevice::reset(self);
        self.placer.sender_changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfio_user::ecam::{Ecam, placer};

    #[test]
    fn the_command_register_keeps_bus_mastering_when_software_writes_back_what_it_has_read() {
        let memory = [Arc::default(), Arc::default()];
        let placer = placer::BarPlacer::start(Ecam::default(), IDENTITY, 1, memory).unwrap();
        let requester = Requester::new(Arc::new(placer)).unwrap();
        let word = |at| {
            let mut data = [0; 2];
            requester.read_config(at, &mut data);
            u16::from_le_bytes(data)
        };
        for written in [0, 0x0107, 0xffff, 0] {
            requester.write_config(4, &u16::to_le_bytes(written));
            assert_eq!(word(4) & ALWAYS, ALWAYS);
            PciDevice::reset(&requester);
        }
        let mut all = [0; 4096];
        requester.read_config(0, &mut all);
        assert_eq!((all[4], all[0xe], &all[0x10..0x2c]), (6, 0, &[0; 0x1c][..]), "type 0, no BARs");
        assert_eq!((word(0), word(2), word(0xa)), (0x1234, 0xeca0, 0xff00));
        let mut high = [0xee; 1];
        requester.read_config(5, &mut high);
        assert_eq!(high, [0]);
    }
}
