// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The display's bus for the identification data of monitors: no monitor answers (G67-025).

use arctic_base::registers::Unit;

use super::{Gt, SideEffect};
use crate::registers::pch::{GMBUS_CLEAR, GMBUS_CYCLE, GMBUS_NAK, GMBUS_START, GMBUS_STATUS};
use crate::registers::{Access, DisplayRegister, Gen6};

impl Unit<Gen6, Gt> for DisplayRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.registers.value(access.offset)
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        gt.registers.set(access.offset, value);
        if GMBUS_CLEAR.is_set(value) {
            gt.registers.clear_bits(GMBUS_STATUS, GMBUS_NAK.mask());
        } else if GMBUS_START.is_set(value) && GMBUS_CYCLE.is_set(value) {
            gt.registers.set_bits(GMBUS_STATUS, GMBUS_NAK.mask());
        }
        None
    }
}
