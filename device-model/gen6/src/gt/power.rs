// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Forcewake, RC6, frequency and the mailbox of the power controller (G67-031..040).

use arctic_base::registers::{Unit, masked};
use arctic_base::status::PowerStatus;
use arctic_sriov::number::low;

use super::{Gt, SideEffect};
use crate::registers::power::{
    CURRENT, FORCEWAKE, FORCEWAKE_ACK, FORCEWAKE_MT, FORCEWAKE_MT_ACK, PCODE_COMMAND, PCODE_DATA, PCODE_READY,
    RC_CONTROL, RC_HW_ENABLE, RC_STATE, RC_STATE_RC6, RC6_ENABLE, REQUESTED, RESIDENCY_NANOSECONDS, RPNSWREQ,
};
use crate::registers::{Access, Gen6, PowerRegister};
use crate::sync::IgnorePoison;

impl Unit<Gen6, Gt> for PowerRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        match self {
            PowerRegister::Frequency => CURRENT.of(REQUESTED.get(gt.registers.value(RPNSWREQ))),
            PowerRegister::Residency => low(gt.residency.spent(gt.now()) / RESIDENCY_NANOSECONDS),
            _ => gt.registers.value(access.offset),
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        match self {
            PowerRegister::ForcewakeMt => {
                let (_, requests) = gt.registers.update(FORCEWAKE_MT, |old| masked(old, value));
                gt.registers.set(FORCEWAKE_MT_ACK, requests);
                gt.update_residency();
            }
            PowerRegister::Forcewake => {
                gt.registers.set(FORCEWAKE, value & 1);
                gt.registers.set(FORCEWAKE_ACK, value & 1);
                gt.update_residency();
            }
            PowerRegister::RcControl => {
                gt.registers.set(access.offset, value);
                gt.update_residency();
            }
            PowerRegister::Mailbox => gt.mailbox(access.offset, value),
            PowerRegister::Frequency | PowerRegister::Residency => {}
        }
        None
    }
}

impl PowerRegister {
    /// Bits that a write stores as they are.
    pub(super) fn stored_bits(self) -> u32 {
        match self {
            PowerRegister::Forcewake => 1,
            PowerRegister::RcControl | PowerRegister::Mailbox => !0,
            // Each bit of the low half has a bit that selects it.
            PowerRegister::ForcewakeMt | PowerRegister::Frequency | PowerRegister::Residency => 0,
        }
    }
}

impl Gt {
    /// Frequency and sleep, for display.
    pub(crate) fn power_status(&self) -> PowerStatus {
        let mhz = REQUESTED.get(self.registers.value(RPNSWREQ)).saturating_mul(50);
        let rc6_ns = self.residency.spent(self.now());
        PowerStatus { mhz: if self.residency.is_in() { 0 } else { mhz }, requested_mhz: mhz, rc6_ns }
    }

    /// Enters or leaves RC6 after a change of its conditions: RC6 is enabled or requested, nothing keeps the GT awake.
    pub(crate) fn update_residency(&self) {
        self.residency.update(self.now(), || {
            let control = self.registers.value(RC_CONTROL);
            let by_hardware = RC_HW_ENABLE.is_set(control) && RC6_ENABLE.is_set(control);
            let by_software = RC_STATE_RC6.is_set(self.registers.value(RC_STATE));
            (by_hardware || by_software) && !self.awake() && self.engines_idle()
        });
    }

    /// Executes the command of a write to the mailbox. It is complete when the write is.
    fn mailbox(&self, offset: u32, value: u32) {
        if !PCODE_READY.is_set(value) {
            self.registers.set(offset, value);
            return;
        }
        let [command, ..] = PCODE_COMMAND.get(value).to_le_bytes();
        let data = self.registers.value(PCODE_DATA);
        let (status, data) = self.pcode.lock().ignore_poison().run(command, data);
        self.registers.set(PCODE_DATA, data);
        self.registers.set(offset, value & !PCODE_READY.mask() & !PCODE_COMMAND.mask() | status as u32);
    }
}
