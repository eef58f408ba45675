// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to the interrupt registers, and interrupts of engines.

use arctic_base::registers::Unit;

use super::{Gt, SideEffect};
use crate::registers::interrupt::BankRegister;
use crate::registers::{Access, Bank, Gen6, InterruptRegister, engine};
use crate::topology::EngineId;

impl Unit<Gen6, Gt> for InterruptRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, _access: Access<'_>) -> u32 {
        gt.interrupts.read(self.bank, self.register)
    }

    fn write(&self, gt: &Gt, _access: Access<'_>, value: u32) -> Option<SideEffect> {
        gt.interrupts.write(self.bank, self.register, value);
        if *self == (InterruptRegister { bank: Bank::Graphics, register: BankRegister::Iir }) {
            gt.renew_events();
        }
        None
    }
}

impl InterruptRegister {
    /// Value of the bits that a write stores as they are: those of masks and enables.
    pub(super) fn stored(self, gt: &Gt, access: Access<'_>) -> u32 {
        match self.register {
            BankRegister::Imr | BankRegister::Ier => self.read(gt, access),
            BankRegister::Isr | BankRegister::Iir => 0,
        }
    }
}

impl Gt {
    /// An engine has events, one bit each as in the documents (IVB-090). They pass the engine's own mask, then the one of
    /// the GT (G67-047).
    pub fn interrupt_by_engine(&self, engine: EngineId, bits: u32) {
        let info = self.generation.engine(engine);
        let bits = bits << info.interrupt_shift & !self.registers.value(info.base.saturating_add(engine::IMR));
        if bits != 0 {
            self.interrupts.event(Bank::Graphics, bits);
        }
    }
}
