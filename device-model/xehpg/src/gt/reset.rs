// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset of the GT's state, and the registers that request resets of several units.

use super::virtual_function::VirtualFunction;
use super::{Gt, SideEffect};
use crate::execlist::buffer::CsbPort;
use crate::pcode::Pcode;
use crate::registers::interrupt::TREE;
use crate::registers::tile::{GuCntl, GuDebug};
use crate::registers::{Access, ResetRegister, Unit, XeHpg};

impl Gt {
    /// Resets the registers, interrupt trees, doorbells, mailboxes and HECI windows to their power-on state.
    pub fn reset(&self) {
        let forcewake = self.forcewake();
        self.registers.reset();
        self.residency.drop_forcewakes(self.clock.now());
        drop(forcewake);
        // Resets these registers again, atomically with the tree, so that a concurrent write affects either both or
        // neither.
        self.interrupts.reset_with(|| self.registers.reset_range(TREE));
        self.vfs.iter().for_each(VirtualFunction::reset);
        self.doorbells.reset();
        self.csb_ports.iter().for_each(CsbPort::clear);
        self.permit_rc6(false);
        *self.pcode() = Pcode::new();
        for window in 0..2 {
            self.heci(window).reset();
        }
    }

    /// Reports completion of the reset requested in GU_CNTL to the driver (GU_DEBUG bit 31).
    pub fn finish_driver_flr(&self) {
        self.registers.set_fields(GuDebug::new().with_driver_flr(true));
    }
}

impl Unit<XeHpg, Gt> for ResetRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.function_value(access.function, access.offset)
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        match self {
            ResetRegister::Gdrst => Some(SideEffect::Reset(value)),
            ResetRegister::GuCntl => {
                let value = GuCntl::from(value);
                gt.registers.update(access.offset, |old| {
                    value.with_driver_flr(false).with_lmem_init(GuCntl::from(old).lmem_init()).into()
                });
                value.driver_flr().then_some(SideEffect::DriverFlr)
            }
        }
    }
}
