// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The root port to which the card is connected: a bridge from bus 0 to the card's bus.
//!
//! Its bus numbers determine which configuration accesses reach the card, and ARI Forwarding determines whether
//! functions beyond the first eight are accessible. Its memory windows are writable registers without effect: the VMM
//! decodes a BAR anywhere in the host bridge's windows, even outside the root port's windows.

use arctic_sriov::number::byte;

use super::registers::Registers;
use crate::layout;

/// Capability ID of PCI Express, and its offset.
const EXPRESS: u8 = 0x10;
const EXPRESS_AT: usize = 0x40;
const DEVICE_CONTROL_2_AT: usize = EXPRESS_AT + 0x28;
/// Device Capabilities 2 and Device Control 2: ARI Forwarding.
const ARI_FORWARDING: u8 = 1 << 5;
const SECONDARY_AT: usize = 0x19;
const SUBORDINATE_AT: usize = 0x1a;
const BRIDGE_CONTROL_AT: usize = 0x3e;
/// Bridge Control: the secondary bus is held in reset.
const SECONDARY_RESET: u8 = 1 << 6;
/// x16, 16 GT/s: the same as the card's link.
const LINK: u16 = 16 << 4 | 4;

/// The root port's configuration space.
pub struct RootPort(Registers);

/// Effect of a write to the root port on its secondary bus.
#[derive(Debug, PartialEq, Eq)]
pub enum Consequence {
    /// None.
    None,
    /// Reset of the secondary bus.
    ResetBus,
}

impl RootPort {
    /// Creates the root port as firmware initialises it: bus numbers assigned, windows closed.
    pub fn new() -> Self {
        let mut registers = Registers::new();
        // QEMU's generic root port (Red Hat's vendor ID).
        registers.define32(0x00, 0x000c_1b36, 0);
        // Command: I/O, memory, bus master, parity, SERR, INTx disable. Status: capabilities.
        registers.define32(0x04, 1 << 20, 0x0547);
        // A PCI-to-PCI bridge.
        registers.define32(0x08, 0x0604_0000, 0);
        // Cache line size; header type 1.
        registers.define32(0x0c, 0x0001_0000, 0xff);
        // Primary, secondary, subordinate bus.
        registers.define32(0x18, u32::from(layout::CARD_BUS) << 16 | u32::from(layout::CARD_BUS) << 8, 0x00ff_ffff);
        // No I/O window: 0x1c is read-only zero. Memory window: 1 MiB granules, closed by a base above its limit.
        registers.define32(0x20, 0x0000_fff0, 0xfff0_fff0);
        // Prefetchable window, 64-bit.
        registers.define32(0x24, 0x0001_fff1, 0xfff0_fff0);
        registers.define32(0x28, 0, u32::MAX);
        registers.define32(0x2c, 0, u32::MAX);
        registers.define(0x34, [byte(EXPRESS_AT)], [0]);
        // Interrupt Line is scratch; no interrupt pin. Bridge Control: parity, SERR, secondary bus reset.
        registers.define32(0x3c, 0, 0x0043_00ff);

        // PCI Express, version 2: a root port without a hot-plug slot.
        registers.define16(EXPRESS_AT, EXPRESS.into(), 0);
        registers.define16(EXPRESS_AT + 0x02, 4 << 4 | 2, 0);
        // Device: maximum payload 256 bytes, role-based error reporting; control has the reporting enables and sizes.
        registers.define32(EXPRESS_AT + 0x04, 1 << 15 | 1, 0);
        registers.define32(EXPRESS_AT + 0x08, 0, 0x00ff);
        registers.define32(EXPRESS_AT + 0x0c, u32::from(LINK) | 1 << 20, 0);
        // Link Status: trained to full width and speed, link active.
        registers.define32(EXPRESS_AT + 0x10, u32::from(LINK | 1 << 13) << 16, 0x0fc3);
        // Root Control: error and PME enables, without effect. Root Status: no events.
        registers.define32(EXPRESS_AT + 0x1c, 0, 0x000f);
        registers.define32(EXPRESS_AT + 0x24, ARI_FORWARDING.into(), 0);
        registers.define32(EXPRESS_AT + 0x28, 0, ARI_FORWARDING.into());
        registers.define32(EXPRESS_AT + 0x2c, 0x1e, 0);
        registers.define32(EXPRESS_AT + 0x30, 4, 0xf);
        RootPort(registers)
    }

    /// Reads registers.
    pub fn read(&self, register: u64, data: &mut [u8]) {
        self.0.read(register, data);
    }

    /// Writes registers. Returns the effect on the secondary bus.
    pub fn write(&mut self, register: u64, data: &[u8]) -> Consequence {
        let before = self.0.byte(BRIDGE_CONTROL_AT);
        self.0.write(register, data);
        match self.0.byte(BRIDGE_CONTROL_AT) & !before & SECONDARY_RESET {
            0 => Consequence::None,
            _ => Consequence::ResetBus,
        }
    }

    /// Returns the routing ID relative to device 0 of the secondary bus; `None` if the bridge does not forward the
    /// access.
    pub fn forward(&self, routing_id: u16) -> Option<u16> {
        let bus = (routing_id >> 8) as u8;
        let (secondary, subordinate) = (self.0.byte(SECONDARY_AT), self.0.byte(SUBORDINATE_AT));
        if bus == 0 || bus < secondary || bus > subordinate || self.0.byte(BRIDGE_CONTROL_AT) & SECONDARY_RESET != 0 {
            return None;
        }
        let offset = routing_id - u16::from(secondary) * 0x100;
        // Without ARI only one device is accessible below a port.
        let reached = offset < 8 || self.0.byte(DEVICE_CONTROL_2_AT) & ARI_FORWARDING != 0;
        reached.then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read16(port: &RootPort, at: u64) -> u16 {
        let mut data = [0; 2];
        port.read(at, &mut data);
        u16::from_le_bytes(data)
    }

    #[test]
    fn bus_numbers_decide_what_is_forwarded() {
        let mut port = RootPort::new();
        assert_eq!(port.forward(0x0100), Some(0));
        assert_eq!(port.forward(0x0107), Some(7));
        assert_eq!((port.forward(0x0008), port.forward(0x0200)), (None, None));
        port.write(0x18, &[0, 5, 6]);
        assert_eq!((port.forward(0x0100), port.forward(0x0500), port.forward(0x0700)), (None, Some(0), None));
        // No bus numbers assigned.
        port.write(0x18, &[0, 0, 0]);
        assert_eq!(port.forward(0x0000), None);
    }

    #[test]
    fn functions_beyond_the_first_eight_need_ari_forwarding() {
        let mut port = RootPort::new();
        assert_eq!(port.forward(0x0108), None);
        port.write(DEVICE_CONTROL_2_AT as u64, &[ARI_FORWARDING, 0]);
        assert_eq!((port.forward(0x0108), port.forward(0x013f)), (Some(8), Some(63)));
        // The next bus is also forwarded if it is within the bridge's bus numbers.
        port.write(0x1a, &[2]);
        assert_eq!(port.forward(0x0201), Some(0x101));
    }

    #[test]
    fn a_rising_reset_bit_resets_and_silences_the_bus() {
        let mut port = RootPort::new();
        let control = BRIDGE_CONTROL_AT as u64;
        assert_eq!(port.write(control, &[SECONDARY_RESET, 0]), Consequence::ResetBus);
        assert_eq!(port.forward(0x0100), None);
        assert_eq!(port.write(control, &[SECONDARY_RESET, 0]), Consequence::None);
        assert_eq!(port.write(control, &[0, 0]), Consequence::None);
        assert_eq!(port.forward(0x0100), Some(0));
    }

    #[test]
    fn windows_size_as_a_bridge_does() {
        let mut port = RootPort::new();
        port.write(0x24, &[0xff; 4]);
        assert_eq!((read16(&port, 0x24), read16(&port, 0x26)), (0xfff1, 0xfff1), "64-bit, 1 MiB granules");
        port.write(0x28, &[0xff; 4]);
        assert_eq!(read16(&port, 0x2a), 0xffff);
        port.write(0x1c, &[0xff; 2]);
        assert_eq!(read16(&port, 0x1c), 0, "no I/O window");
        assert_eq!(read16(&port, EXPRESS_AT as u64) & 0xff, u16::from(EXPRESS));
    }
}
