// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt registers and the function's MSI (G67-045..048).
//!
//! An event of a source that is not masked sets its bit of IIR, which stays until software clears it. The interrupt is
//! the level of: the master enable, and a bit set in IIR and IER of a bank. The level is that of the function's pin, INTA#,
//! and a rising level sends the MSI; the function's configuration space decides which of them it uses. The bank of the
//! PCH has no place in the level of its own, but an event in the display's bank.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

#[cfg(test)]
mod model;
pub mod saved;

use std::sync::Arc;

use crate::registers::interrupt::{BankRegister, MASTER_ENABLE};
use crate::registers::{Bank, Bits};
use arctic_base::host::{Function, InterruptSink};
use arctic_base::interrupts::{Delivery, Sources};

/// The four registers of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Registers {
    status: u32,
    mask: u32,
    identity: u32,
    enable: u32,
}

/// After a reset every source is masked.
const RESET: Registers = Registers { status: 0, mask: !0, identity: 0, enable: 0 };

impl Registers {
    fn pending(&self) -> u32 {
        self.identity & self.enable
    }

    fn event(&mut self, bits: u32) {
        self.identity |= bits & !self.mask;
    }
}

/// The registers of all banks.
pub struct Banks {
    display: Registers,
    graphics: Registers,
    power: Registers,
    south: Registers,
    /// What differs between cards.
    setup: InterruptSetup,
    /// The level when it was last evaluated.
    level: bool,
}

/// Properties of a card's interrupts.
#[derive(Clone, Copy, Debug)]
pub struct InterruptSetup {
    /// Interrupt registers of the display: an event of the bank of the PCH.
    pub pch_event: Bits,
    /// Firmware has set the master enable (G67-021).
    pub enabled_by_firmware: bool,
}

impl Banks {
    /// The registers in their reset state.
    fn new(setup: InterruptSetup) -> Self {
        let enable = if setup.enabled_by_firmware { MASTER_ENABLE.mask() } else { 0 };
        let display = Registers { enable, ..RESET };
        Banks { display, graphics: RESET, power: RESET, south: RESET, setup, level: false }
    }

    fn bank(&mut self, bank: Bank) -> &mut Registers {
        match bank {
            Bank::Display => &mut self.display,
            Bank::Graphics => &mut self.graphics,
            Bank::Power => &mut self.power,
            Bank::SouthDisplay => &mut self.south,
        }
    }
}

impl Sources for Banks {
    fn enabled(&self) -> bool {
        MASTER_ENABLE.is_set(self.display.enable)
    }

    fn settle(&mut self) -> bool {
        let event = self.setup.pch_event.mask();
        let south = if self.south.pending() != 0 { event } else { 0 };
        let risen = south & !self.display.status;
        self.display.status = self.display.status & !event | south;
        self.display.event(risen);
        let display = self.display.pending() & !MASTER_ENABLE.mask();
        let level = self.enabled() && (display | self.graphics.pending() | self.power.pending()) != 0;
        let send = level && !self.level;
        self.level = level;
        send
    }

    fn level(&self) -> bool {
        self.level
    }
}

/// The interrupt of the function.
pub struct Interrupts(Delivery<Banks>);

impl Interrupts {
    /// Creates the registers in their reset state; `sink` receives the MSI.
    pub fn new(sink: Arc<dyn InterruptSink>, setup: InterruptSetup) -> Self {
        Interrupts(Delivery::new(Function::PF, sink, Banks::new(setup)))
    }

    /// Reads a register.
    pub fn read(&self, bank: Bank, register: BankRegister) -> u32 {
        self.0.with(|banks| {
            let bank = banks.bank(bank);
            match register {
                BankRegister::Isr => bank.status,
                BankRegister::Imr => bank.mask,
                BankRegister::Iir => bank.identity,
                BankRegister::Ier => bank.enable,
            }
        })
    }

    /// Writes a register.
    pub fn write(&self, bank: Bank, register: BankRegister, value: u32) {
        self.0.change(|banks| {
            let bank = banks.bank(bank);
            match register {
                BankRegister::Isr => {}
                BankRegister::Imr => {
                    bank.mask = value;
                    // A source that is still active is seen when its mask is removed (IVB-092).
                    bank.event(bank.status);
                }
                BankRegister::Iir => bank.identity &= !value,
                BankRegister::Ier => bank.enable = value,
            }
        });
    }

    /// Records events of sources, one bit each.
    pub fn event(&self, bank: Bank, bits: u32) {
        self.0.change(|banks| banks.bank(bank).event(bits));
    }

    /// Sets the states of the sources `mask` of a bank. A state that begins is no event by itself.
    pub fn set_status(&self, bank: Bank, mask: u32, states: u32) {
        self.0.change(|banks| {
            let bank = banks.bank(bank);
            bank.status = bank.status & !mask | states & mask;
        });
    }

    /// Sets all registers to their reset values.
    pub fn reset(&self) {
        self.0.change(|banks| *banks = Banks::new(banks.setup));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use arctic_fidelity::proves;

    use super::*;
    use crate::generation::GENERATIONS;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl InterruptSink for Counter {
        fn raise(&self, _: Function, _: u16) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }

        fn set_line(&self, _: Function, _: bool) {}
    }

    const GT: Bank = Bank::Graphics;
    const DE: Bank = Bank::Display;
    const SDE: Bank = Bank::SouthDisplay;
    const MASTER: u32 = 1 << 31;

    const PCH_EVENT: Bits = Bits::bit(28);

    fn interrupts() -> (Arc<Counter>, Interrupts) {
        let counter = Arc::new(Counter::default());
        (counter.clone(), Interrupts::new(counter, InterruptSetup { pch_event: PCH_EVENT, enabled_by_firmware: false }))
    }

    /// G67-045: a masked source leaves no trace; IIR is cleared by writing 1.
    #[test]
    fn events_pass_the_mask_and_stay_until_they_are_cleared() {
        proves!(
            [ILK_144, ILK_156],
            "a masked source does not reach IIR; IIR is cleared by writing 1; ISR is read-only"
        );
        let (_, interrupts) = interrupts();
        interrupts.event(Bank::Graphics, 1);
        assert_eq!(interrupts.read(GT, BankRegister::Iir), 0, "all sources are masked after a reset");
        interrupts.write(GT, BankRegister::Imr, !0x1);
        interrupts.event(Bank::Graphics, 1 | 1 << 22);
        assert_eq!(interrupts.read(GT, BankRegister::Iir), 1);
        interrupts.write(GT, BankRegister::Iir, 1 << 22);
        assert_eq!(interrupts.read(GT, BankRegister::Iir), 1);
        interrupts.write(GT, BankRegister::Iir, 1);
        assert_eq!(interrupts.read(GT, BankRegister::Iir), 0);
        interrupts.write(GT, BankRegister::Isr, !0);
        assert_eq!(interrupts.read(GT, BankRegister::Isr), 0, "read-only");
    }

    /// G67-048: the MSI is sent when the level rises: by an event, and when a handler sets the master enable again while
    /// something is pending.
    #[test]
    fn the_msi_follows_the_rising_level() {
        proves!(
            [ILK_156, ILK_173],
            "IER lets IIR raise the interrupt; after a reset all sources are masked and none is enabled"
        );
        let (counter, interrupts) = interrupts();
        let sent = || counter.0.load(Ordering::SeqCst);
        interrupts.write(GT, BankRegister::Imr, 0);
        interrupts.write(GT, BankRegister::Ier, 0x3);
        interrupts.event(Bank::Graphics, 1);
        assert_eq!(sent(), 0, "no master enable");
        interrupts.write(DE, BankRegister::Ier, MASTER);
        assert_eq!(sent(), 1);
        interrupts.event(Bank::Graphics, 2);
        assert_eq!(sent(), 1, "the level is high");
        // The handler.
        interrupts.write(DE, BankRegister::Ier, 0);
        interrupts.write(GT, BankRegister::Iir, 1);
        interrupts.write(DE, BankRegister::Ier, MASTER);
        assert_eq!(sent(), 2, "bit 1 is still pending");
        interrupts.write(GT, BankRegister::Iir, 2);
        interrupts.event(Bank::Graphics, 4);
        assert_eq!(sent(), 2, "not enabled");
        interrupts.event(Bank::Graphics, 1);
        assert_eq!(sent(), 3);
        interrupts.reset();
        assert_eq!(
            (sent(), interrupts.read(GT, BankRegister::Imr), interrupts.read(DE, BankRegister::Ier)),
            (3, !0, 0)
        );
    }

    /// G67-021: the master enable that firmware has set is there after each reset.
    #[test]
    fn interrupts_are_sent_if_firmware_has_enabled_them() {
        let counter = Arc::new(Counter::default());
        let setup = InterruptSetup { pch_event: PCH_EVENT, enabled_by_firmware: true };
        let interrupts = Interrupts::new(counter.clone(), setup);
        for sent in [1, 2] {
            interrupts.write(GT, BankRegister::Imr, 0);
            interrupts.write(GT, BankRegister::Ier, 1);
            interrupts.event(Bank::Graphics, 1);
            assert_eq!(counter.0.load(Ordering::SeqCst), sent);
            interrupts.write(DE, BankRegister::Ier, 0);
            interrupts.reset();
            assert_eq!(interrupts.read(DE, BankRegister::Ier), MASTER);
        }
    }

    /// The PCH's bank is an event of the display's bank, at each rise of its level. The bit is the generation's.
    #[test]
    fn the_pch_is_an_event_of_the_display() {
        for generation in GENERATIONS {
            the_pch_is_event(generation.pch_event);
        }
        assert_eq!(GENERATIONS.map(|generation| generation.pch_event), [Bits::bit(21), Bits::bit(28)]);
    }

    fn the_pch_is_event(event: Bits) {
        let counter = Arc::new(Counter::default());
        let setup = InterruptSetup { pch_event: event, enabled_by_firmware: false };
        let interrupts = Interrupts::new(counter.clone(), setup);
        interrupts.write(DE, BankRegister::Imr, !event.mask());
        interrupts.write(DE, BankRegister::Ier, MASTER | event.mask());
        interrupts.write(SDE, BankRegister::Imr, 0);
        interrupts.write(SDE, BankRegister::Ier, 1 << 17);
        interrupts.event(Bank::SouthDisplay, 1 << 17);
        assert_eq!(interrupts.read(DE, BankRegister::Iir), event.mask());
        assert_eq!(interrupts.read(DE, BankRegister::Isr), event.mask());
        assert_eq!(counter.0.load(Ordering::SeqCst), 1);
        interrupts.write(DE, BankRegister::Iir, event.mask());
        assert_eq!(interrupts.read(DE, BankRegister::Iir), 0, "no new edge");
        interrupts.write(SDE, BankRegister::Ier, 0);
        interrupts.write(SDE, BankRegister::Ier, 1 << 17);
        assert_eq!(interrupts.read(DE, BankRegister::Iir), event.mask());
    }
}
