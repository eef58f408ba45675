// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The type 0 header: function identity, command and status registers.

use crate::config::Field;

/// Offset of the command register.
pub const COMMAND: u16 = 0x04;
/// Command: I/O Space Enable. The function responds to I/O accesses to its BARs.
pub const COMMAND_IO_SPACE: u16 = 1 << 0;
/// Command: Memory Space Enable. The function responds to memory accesses to its BARs.
pub const COMMAND_MEMORY_SPACE: u16 = 1 << 1;
/// Command: Bus Master Enable. The function may send memory requests, including MSI.
pub const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// Command: SERR# Enable. The function may send error messages.
pub const COMMAND_SERR: u16 = 1 << 8;
/// Offset of the status register.
pub const STATUS: u16 = 0x06;
/// Status: Signaled System Error. The function has sent an error message while SERR# was enabled.
pub const STATUS_SIGNALED_SYSTEM_ERROR: u16 = 1 << 14;
/// Offset of the pointer to the first capability.
pub const CAPABILITIES_POINTER: u16 = 0x34;

/// Parity Error Response and Interrupt Disable: writable, but without effect in this model.
const COMMAND_OTHERS: u16 = 1 << 6 | 1 << 10;
/// Status: Capabilities List.
const STATUS_CAPABILITIES: u16 = 1 << 4;
/// Status: the error bits, all RW1C.
const STATUS_ERRORS: u16 = 0xf900;

/// IDs and class code of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Revision ID: the stepping of the die.
    pub revision: u8,
    /// Class code: base class, sub-class, programming interface.
    pub class: u32,
    /// Subsystem vendor ID.
    pub subsystem_vendor: u16,
    /// Subsystem ID.
    pub subsystem: u16,
    /// Device serial number.
    pub serial: u64,
    /// The interrupt pin that the header names; `None` for a function with MSI only. The pin is never asserted: the
    /// functions of this crate send MSI.
    pub pin: Option<Pin>,
}

/// An interrupt pin (PCI 3.0, 6.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// INTA#.
    A = 1,
    /// INTB#.
    B,
    /// INTC#.
    C,
    /// INTD#.
    D,
}

impl Identity {
    /// Returns the identity of an Intel data center GPU: a display controller that is not VGA compatible. Subsystem
    /// 8086:4905 is used by Intel's own DG2 boards.
    pub const fn data_center_gpu(device: u16, revision: u8) -> Self {
        Identity {
            vendor: 0x8086,
            device,
            revision,
            class: 0x03_80_00,
            subsystem_vendor: 0x8086,
            subsystem: 0x4905,
            serial: 0,
            pin: None,
        }
    }

    /// The header registers, without BARs and capability pointer. `spaces` are the bits of the command register that
    /// enable the address spaces of the BARs.
    pub fn fields(&self, spaces: u16) -> [Field; 8] {
        let command = spaces | COMMAND_BUS_MASTER | COMMAND_SERR | COMMAND_OTHERS;
        [
            Field::dword(0x00, u32::from(self.device) << 16 | u32::from(self.vendor)),
            Field::word(COMMAND, 0).writable(command.into()),
            Field::word(0x06, STATUS_CAPABILITIES).write_1_to_clear(STATUS_ERRORS.into()),
            Field::dword(0x08, self.class << 8 | u32::from(self.revision)),
            // Cache Line Size: writable, no effect in PCI Express.
            Field::byte(0x0c, 0).writable(0xff),
            Field::dword(0x2c, u32::from(self.subsystem) << 16 | u32::from(self.subsystem_vendor)),
            // Interrupt Line: scratch byte for system software.
            Field::byte(0x3c, 0).writable(0xff),
            Field::byte(0x3d, self.pin.map_or(0, |pin| pin as u8)),
        ]
    }
}
