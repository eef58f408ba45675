// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interrupt registers: four banks of status, mask, identity and enable, of which one has the master enable (G67-045,
//! G67-048).

use super::{Bits, Kind, Live, Register, array};

/// A group of interrupt sources with the same four registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    /// The display engine, with the master enable in its enable register.
    Display,
    /// The engines.
    Graphics,
    /// Power management.
    Power,
    /// The display's part in the PCH (south display engine).
    SouthDisplay,
}

impl Bank {
    /// The banks, by [`Bank::index`].
    pub const ALL: [Bank; 4] = [Bank::Display, Bank::Graphics, Bank::Power, Bank::SouthDisplay];

    /// Index in arrays with an element for each bank.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A bank; the register's ordinal is its number in [`Four`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptRegister(pub Bank);

/// The registers of a bank, in the order of their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Four {
    /// ISR: the state of the sources, read-only.
    Status,
    /// IMR: sources that do not reach IIR.
    Mask,
    /// IIR: sources that have had an event; writing 1 clears.
    Identity,
    /// IER: events that raise the interrupt.
    Enable,
}

impl Four {
    /// The register with this number in its bank.
    pub fn at(ordinal: u16) -> Four {
        match ordinal & 3 {
            0 => Four::Status,
            1 => Four::Mask,
            2 => Four::Identity,
            _ => Four::Enable,
        }
    }
}

/// Enable register of the display: the master enable of all banks (G67-048).
pub const MASTER_ENABLE: Bits = Bits::bit(31);
/// Interrupt of an engine, relative to its first: user interrupt (G67-046).
pub const USER_INTERRUPT: u32 = 1;
/// Interrupt of an engine, relative to its first: a sync flush is complete (IVB-090).
pub const SYNC_INTERRUPT: u32 = 1 << 2;
/// Interrupt of an engine, relative to its first: error (G67-046).
pub const ERROR_INTERRUPT: u32 = 1 << 3;
/// Interrupt of an engine, relative to its first: PIPE_CONTROL notification, MI_FLUSH_DW notification (G67-046).
pub const NOTIFY_INTERRUPT: u32 = 1 << 4;
/// Interrupt of an engine, relative to its first: the watchdog has expired (IVB-090, IVB-189).
pub const WATCHDOG_INTERRUPT: u32 = 1 << 6;
/// Interrupt of an engine, relative to its first: an access without a translation (IVB-090).
pub const PAGE_FAULT_INTERRUPT: u32 = 1 << 7;
/// Events that are not written to the status page: the watchdog's and that of a context switch (IVB-091).
pub const NOT_IN_STATUS_PAGE: u32 = WATCHDOG_INTERRUPT | 1 << 8;

const fn bank(offset: u32, name: &'static str, bank: Bank) -> Register {
    array(offset, name, Kind::Live(Live::Interrupt(InterruptRegister(bank))), 0, 4, "G67-045")
}

/// The registers.
pub const TABLE: &[Register] = &[
    bank(0x4_4000, "DE_INTERRUPT", Bank::Display),
    bank(0x4_4010, "GT_INTERRUPT", Bank::Graphics),
    bank(0x4_4020, "PM_INTERRUPT", Bank::Power),
    bank(0xc_4000, "SDE_INTERRUPT", Bank::SouthDisplay),
];
