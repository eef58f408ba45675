// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the doorbells.

use super::{Gt, SideEffect};
use crate::registers::{Access, DoorbellRegister, Unit, XeHpg};

impl Unit<XeHpg, Gt> for DoorbellRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.doorbells.read(*self, access.ordinal())
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        gt.doorbells.write(*self, access.ordinal(), value).then_some(SideEffect::ServeDoorbells)
    }
}
