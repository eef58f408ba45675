// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The type 0 header: function identity, command and status registers.

use bitfield_struct::bitfield;

use crate::config::Field;
use crate::register::{Register, registers};

/// Offset of the command register.
pub const COMMAND: u16 = 0x04;
/// Offset of the status register.
pub const STATUS: u16 = 0x06;
/// Offset of Cache Line Size.
pub const CACHE_LINE_SIZE: u16 = 0x0c;
/// Offset of Interrupt Pin.
pub const INTERRUPT_PIN: u16 = 0x3d;
/// Offset of the pointer to the first capability.
pub const CAPABILITIES_POINTER: u16 = 0x34;

/// The command register.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct Command {
    /// I/O Space Enable. The function responds to I/O accesses to its BARs.
    pub io_space: bool,
    /// Memory Space Enable. The function responds to memory accesses to its BARs.
    pub memory_space: bool,
    /// Bus Master Enable. The function may send memory requests, including MSI.
    pub bus_master: bool,
    #[bits(3)]
    __: u8,
    /// Parity Error Response: writable, but without effect in this model.
    pub parity_error_response: bool,
    __: bool,
    /// SERR# Enable. The function may send error messages.
    pub serr: bool,
    __: bool,
    /// Interrupt Disable. The function does not assert its interrupt pin.
    pub interrupt_disable: bool,
    #[bits(5)]
    __: u8,
}

/// The status register.
#[bitfield(u16)]
pub struct Status {
    #[bits(3)]
    __: u8,
    /// Interrupt Status: the function requests an interrupt, whether Interrupt Disable is set or not.
    pub interrupt: bool,
    /// Capabilities List: the function has capabilities.
    pub capabilities: bool,
    #[bits(2)]
    __: u8,
    /// Fast Back-to-Back Transactions Capable, of conventional functions.
    pub fast_back_to_back: bool,
    /// Master Data Parity Error.
    pub master_data_parity_error: bool,
    #[bits(2)]
    __: u8,
    /// Signaled Target Abort, Received Target Abort, Received Master Abort.
    #[bits(3)]
    pub aborts: u8,
    /// Signaled System Error. The function has sent an error message while SERR# was enabled.
    pub signaled_system_error: bool,
    /// Detected Parity Error.
    pub detected_parity_error: bool,
}

registers! {
    Command: u16 at COMMAND;
    Status: u16 at STATUS;
}

impl Status {
    /// The errors, all cleared by writing 1.
    const ERRORS: Status = Status::new()
        .with_master_data_parity_error(true)
        .with_aborts(0b111)
        .with_signaled_system_error(true)
        .with_detected_parity_error(true);
}

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
    /// The interrupt pin that the header names; `None` for a function with MSI only. See
    /// [`asserts_pin`](crate::function::PciFunction::asserts_pin).
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
    /// The header registers, without BARs and capability pointer. `spaces` has the bits of the command register set that
    /// enable the address spaces of the BARs.
    pub fn fields(&self, spaces: Command) -> [Field; 8] {
        let command =
            spaces.with_bus_master(true).with_parity_error_response(true).with_serr(true).with_interrupt_disable(true);
        let interrupt = Status::new().with_interrupt(self.pin.is_some());
        [
            Field::dword(0x00, u32::from(self.device) << 16 | u32::from(self.vendor)),
            Field::register(Command::new()).writable(command.value()),
            Field::register(Status::new().with_capabilities(true))
                .write_1_to_clear(Status::ERRORS.value())
                .live(interrupt.value()),
            Field::dword(0x08, self.class << 8 | u32::from(self.revision)),
            // Cache Line Size: writable, no effect in PCI Express.
            Field::byte(CACHE_LINE_SIZE, 0).writable(0xff),
            Field::dword(0x2c, u32::from(self.subsystem) << 16 | u32::from(self.subsystem_vendor)),
            // Interrupt Line: scratch byte for system software.
            Field::byte(0x3c, 0).writable(0xff),
            Field::byte(INTERRUPT_PIN, self.pin.map_or(0, |pin| pin as u8)),
        ]
    }
}
