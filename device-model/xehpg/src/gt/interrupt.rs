// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the functions' interrupt trees.

use super::{Gt, SideEffect};
use crate::registers::InterruptRegister::{self, Enable, Mask};
use crate::registers::{Access, Unit, XeHpg};

impl Unit<XeHpg, Gt> for InterruptRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        match self {
            Enable | Mask => gt.function_value(access.function, access.offset),
            _ => gt.interrupts_of(access.function).read(*self, access.ordinal()),
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let Access { function, offset, decoded } = access;
        let tree = gt.interrupts_of(function);
        match self {
            Enable | Mask => {
                let store = || gt.set_function_value(function, offset, value);
                tree.write_with(*self, offset, decoded.ordinal, value, store);
            }
            _ => tree.write(*self, offset, decoded.ordinal, value),
        }
        None
    }
}
