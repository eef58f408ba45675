// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The host bridge: bus 0, and routing of configuration accesses.

use std::sync::{Arc, Mutex, MutexGuard};

use arctic_gpu::pci::CONFIG_BYTES;
use arctic_gpu::{PciDevice, VirtualCard};
use std::sync::PoisonError;

use super::registers::Registers;
use super::root_port::{Consequence, RootPort};
use crate::layout;

/// The complete configuration space.
pub struct Host {
    bridge: Registers,
    root_port: Mutex<RootPort>,
    card: Option<Arc<VirtualCard>>,
}

/// The target of a configuration access.
enum Target<'h> {
    Bridge,
    RootPort,
    Card(&'h dyn PciDevice),
    Absent,
}

impl Host {
    /// Creates a host bridge with a root port, and the card below it.
    pub fn new(card: Option<Arc<VirtualCard>>) -> Self {
        let mut bridge = Registers::new();
        // QEMU's vendor and device ID of a generic PCIe host bridge; class code: host bridge.
        bridge.define32(0x00, 0x0008_1b36, 0);
        bridge.define32(0x08, 0x0600_0000, 0);
        Host { bridge, root_port: Mutex::new(RootPort::new()), card }
    }

    /// The card in the slot, if any.
    pub fn card(&self) -> Option<&Arc<VirtualCard>> {
        self.card.as_ref()
    }

    /// Decodes an ECAM address into routing ID and register offset.
    pub fn decode(address: u64) -> Option<(u16, u64)> {
        let offset = address.checked_sub(layout::ECAM).filter(|offset| *offset < layout::ECAM_BYTES)?;
        Some(((offset / CONFIG_BYTES & 0xffff) as u16, offset % CONFIG_BYTES))
    }

    /// Handles a read by the guest.
    pub fn read(&self, routing_id: u16, register: u64, data: &mut [u8]) {
        match self.target(routing_id) {
            Target::Bridge => self.bridge.read(register, data),
            Target::RootPort => self.root_port().read(register, data),
            Target::Card(function) => function.read_config(register, data),
            // Unsupported Request: software reads all ones.
            Target::Absent => data.fill(0xff),
        }
    }

    /// Handles a write by the guest.
    pub fn write(&self, routing_id: u16, register: u64, data: &[u8]) {
        match self.target(routing_id) {
            Target::RootPort => {
                let consequence = self.root_port().write(register, data);
                if let (Consequence::ResetBus, Some(card)) = (consequence, &self.card) {
                    // This also disables the VFs.
                    card.pf().reset();
                }
            }
            Target::Card(function) => function.write_config(register, data),
            Target::Bridge | Target::Absent => {}
        }
    }

    fn target(&self, routing_id: u16) -> Target<'_> {
        const ROOT_PORT: u16 = layout::ROOT_PORT as u16;
        match routing_id {
            0 => return Target::Bridge,
            ROOT_PORT => return Target::RootPort,
            _ => {}
        }
        let offset = self.root_port().forward(routing_id);
        let function = offset.and_then(|offset| {
            let functions = self.card.as_ref()?.functions();
            functions.iter().find(|function| function.routing_offset() == offset && function.enabled())
        });
        function.map_or(Target::Absent, |function| Target::Card(&**function))
    }

    fn root_port(&self) -> MutexGuard<'_, RootPort> {
        self.root_port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecam_has_4_kib_per_function() {
        assert_eq!(Host::decode(layout::ECAM), Some((0, 0)));
        assert_eq!(Host::decode(layout::ECAM + 0x10_0000 + 2 * 0x1000 + 0x324), Some((0x102, 0x324)));
        assert_eq!(Host::decode(layout::ECAM + layout::ECAM_BYTES - 1), Some((0xffff, 0xfff)));
        assert_eq!(Host::decode(layout::ECAM + layout::ECAM_BYTES), None);
        assert_eq!(Host::decode(layout::ECAM - 1), None);
    }

    #[test]
    fn absent_functions_read_all_ones() {
        let host = Host::new(None);
        let id = |routing_id| {
            let mut data = [0; 4];
            host.read(routing_id, 0, &mut data);
            u32::from_le_bytes(data)
        };
        assert_eq!(id(0), 0x0008_1b36);
        assert_eq!(id(layout::ROOT_PORT.into()), 0x000c_1b36);
        for absent in [1, 0x0010, 0x0100, 0x0101, 0x0200, 0xffff] {
            assert_eq!(id(absent), u32::MAX, "{absent:#x}");
        }
        host.write(0x0100, 4, &[0xff; 4]);
    }
}
