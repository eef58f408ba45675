// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset of the GT's state, and GDRST and GU_CNTL, which request resets.

use std::sync::atomic::Ordering;

use super::virtual_function::VirtualFunction;
use super::{Gt, SideEffect};
use crate::execlist::buffer::CsbPort;
use crate::pcode::Pcode;
use crate::registers::interrupt::TREE;
use crate::registers::tile::{GuCntl, GuDebug};
use crate::registers::{Access, ResetRegister, Unit, XeHpg};
use crate::sync::IgnorePoison;

impl Gt {
    /// Resets to their power-on state: the registers, the interrupt trees, the state of the VFs, the doorbells, the
    /// context status events for the GuC, the forcewake requests, the GuC's permission of RC6, the PCODE mailbox and the
    /// HECI windows. Clocks, residency, energy, and the counters of skipped commands and of unmodelled accesses go on.
    ///
    /// The caller holds the lock of the GuC and all engines, and resets these and the memory.
    pub fn reset(&self) {
        let forcewake = self.forcewake();
        self.registers.reset();
        self.guc_permits_rc6.store(false, Ordering::Relaxed);
        self.decide_rc6();
        self.residency.drop_forcewakes(self.clock.now());
        drop(forcewake);
        // Register writes are still possible here. Resets the interrupt registers together with the tree, under the
        // tree's lock, so that a concurrent write affects both or neither.
        self.interrupts.reset_with(|| self.registers.reset_range(TREE));
        self.vfs.iter().for_each(VirtualFunction::reset);
        self.doorbells.reset();
        self.csb_ports.iter().for_each(CsbPort::clear);
        *self.pcode() = Pcode::new();
        for window in &self.heci {
            window.lock().ignore_poison().reset();
        }
        self.begin_observation();
    }

    /// Reports completion of the reset requested in GU_CNTL to the driver: GU_DEBUG bit 31, which the driver clears by
    /// writing 1 (contract B.12). Call after [`Gt::reset`], which clears GU_DEBUG.
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
            // Nothing is stored: the bits read 0 again immediately (contract B.4).
            ResetRegister::Gdrst => Some(SideEffect::Reset(value)),
            ResetRegister::GuCntl => {
                // DRIVER_FLR reads 0 and LMEM_INIT is read-only; the other bits are stored.
                let value = GuCntl::from(value);
                gt.registers.update(access.offset, |old| {
                    value.with_driver_flr(false).with_lmem_init(GuCntl::from(old).lmem_init()).into()
                });
                value.driver_flr().then_some(SideEffect::DriverFlr)
            }
        }
    }
}
