// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the functions' interrupt trees.

use super::Gt;
use crate::host::Function;
use crate::registers::InterruptRegister::{self, Enable, Mask};

impl Gt {
    pub(super) fn read_interrupt(
        &self,
        register: InterruptRegister,
        function: Function,
        offset: u32,
        ordinal: u16,
    ) -> u32 {
        match register {
            Enable | Mask => self.function_value(function, offset),
            _ => self.interrupts_of(function).read(register, ordinal),
        }
    }

    pub(super) fn write_interrupt(
        &self,
        register: InterruptRegister,
        function: Function,
        offset: u32,
        ordinal: u16,
        value: u32,
    ) {
        let tree = self.interrupts_of(function);
        match register {
            Enable | Mask => {
                tree.write_with(register, offset, ordinal, value, || self.set_function_value(function, offset, value));
            }
            _ => tree.write(register, offset, ordinal, value),
        }
    }
}
