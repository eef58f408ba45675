// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Interrupt registers: four banks of status, mask, identity and enable, of which one has the master enable (G67-045,
//! G67-048).

use super::{Bits, Kind, Live, Register};

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

/// A register of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptRegister {
    /// The bank.
    pub bank: Bank,
    /// Which of its registers.
    pub register: BankRegister,
}

/// The registers of a bank, in the order of their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankRegister {
    /// The state of the sources, read-only.
    Isr,
    /// Sources that do not reach IIR.
    Imr,
    /// Sources that have had an event; writing 1 clears.
    Iir,
    /// Events that raise the interrupt.
    Ier,
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
pub const NOT_IN_STATUS_PAGE: u32 = WATCHDOG_INTERRUPT | CONTEXT_SWITCH_INTERRUPT;

/// Interrupt of an engine, relative to its first: a context switch (IVB-090).
pub const CONTEXT_SWITCH_INTERRUPT: u32 = 1 << 8;
const fn isr(offset: u32, name: &'static str, bank: Bank, source: &'static str) -> Register {
    live(offset, name, bank, BankRegister::Isr, 0, source)
}

/// All sources are masked after a reset.
const fn imr(offset: u32, name: &'static str, bank: Bank, source: &'static str) -> Register {
    live(offset, name, bank, BankRegister::Imr, !0, source)
}

const fn iir(offset: u32, name: &'static str, bank: Bank, source: &'static str) -> Register {
    live(offset, name, bank, BankRegister::Iir, 0, source)
}

const fn ier(offset: u32, name: &'static str, bank: Bank, source: &'static str) -> Register {
    live(offset, name, bank, BankRegister::Ier, 0, source)
}

const fn live(
    offset: u32,
    name: &'static str,
    bank: Bank,
    register: BankRegister,
    reset: u32,
    source: &'static str,
) -> Register {
    super::register(offset, name, Kind::Live(Live::Interrupt(InterruptRegister { bank, register })), reset, source)
}

/// The registers.
pub const TABLE: &[Register] = &[
    isr(0x4_4000, "DEISR", Bank::Display, "i915: i915_reg.h"),
    imr(0x4_4004, "DEIMR", Bank::Display, "i915: i915_reg.h"),
    iir(0x4_4008, "DEIIR", Bank::Display, "i915: i915_reg.h"),
    ier(0x4_400c, "DEIER", Bank::Display, "i915: i915_reg.h; G67-048"),
    isr(0x4_4010, "GTISR", Bank::Graphics, "G67-045"),
    imr(0x4_4014, "GTIMR", Bank::Graphics, "G67-045"),
    iir(0x4_4018, "GTIIR", Bank::Graphics, "G67-045"),
    ier(0x4_401c, "GTIER", Bank::Graphics, "G67-045"),
    isr(0x4_4020, "GEN6_PMISR", Bank::Power, "G67-045"),
    imr(0x4_4024, "GEN6_PMIMR", Bank::Power, "G67-045"),
    iir(0x4_4028, "GEN6_PMIIR", Bank::Power, "G67-045"),
    ier(0x4_402c, "GEN6_PMIER", Bank::Power, "G67-045"),
    isr(0xc_4000, "SDEISR", Bank::SouthDisplay, "i915: i915_reg.h"),
    imr(0xc_4004, "SDEIMR", Bank::SouthDisplay, "i915: i915_reg.h"),
    iir(0xc_4008, "SDEIIR", Bank::SouthDisplay, "i915: i915_reg.h"),
    ier(0xc_400c, "SDEIER", Bank::SouthDisplay, "i915: i915_reg.h"),
];
