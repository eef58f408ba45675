// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the PF's interrupt tree.

use super::Gt;
use crate::registers::InterruptRegister::{self, Enable, Mask};

impl Gt {
    pub(super) fn read_interrupt(&self, register: InterruptRegister, offset: u32, ordinal: u16) -> u32 {
        match register {
            Enable | Mask => self.registers.value(offset),
            _ => self.interrupts.read(register, ordinal),
        }
    }

    pub(super) fn write_interrupt(&self, register: InterruptRegister, offset: u32, ordinal: u16, value: u32) {
        match register {
            Enable | Mask => {
                let keep = || self.registers.set(offset, value);
                self.interrupts.write_with(register, offset, ordinal, value, keep);
            }
            _ => self.interrupts.write(register, offset, ordinal, value),
        }
    }
}
