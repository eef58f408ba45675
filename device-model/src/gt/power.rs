// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Power: forcewake, RC6, frequency, PCODE and sensors.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use arctic_sriov::number::low;

use super::{Gt, power_context};
use crate::pcode::{self, Activity, Pcode};
use crate::registers::power::{
    ACTUAL_RATIO, MEDIA_POWERGATE, POWERGATE_ENABLE, RC_CONTROL, RC_HW_ENABLE, RC_REQUEST, RC_STATE, RC_TARGET, RC0,
    RC6, RC6_ENABLE, RC6_TARGET, RENDER_POWERGATE,
};
use crate::registers::{Bits, PowerRegister, masked};
use crate::residency::Awake;
use crate::sync::IgnorePoison;
use crate::topology::WakeDomain;

/// Unit of the RC6 residency counter in ns.
const RC6_UNIT: u64 = 1280;
impl Gt {
    /// The power controller's mailbox.
    pub fn pcode(&self) -> MutexGuard<'_, Pcode> {
        self.pcode.lock().ignore_poison()
    }

    pub(super) fn forcewake(&self) -> MutexGuard<'_, ()> {
        self.forcewake.lock().ignore_poison()
    }

    /// Sets whether the GuC may put the GT into RC6 (SETUP_PC_GUCRC, contract B.11). Any reset of the GuC forbids it
    /// again.
    pub fn permit_rc6(&self, permitted: bool) {
        let _forcewake = self.forcewake();
        self.guc_permits_rc6.store(permitted, Ordering::Relaxed);
        self.decide_rc6();
    }

    /// Permits RC6 if the GuC permits it, or if the host has enabled it and either lets the hardware enter it or
    /// requests it (i915: intel_rc6.c). [`Gt::forcewake`] must be locked.
    fn decide_rc6(&self) {
        let control = self.registers.value(RC_CONTROL);
        let requested = RC_TARGET.get(self.registers.value(RC_REQUEST)) == RC6_TARGET;
        let host = RC6_ENABLE.is_set(control) && (RC_HW_ENABLE.is_set(control) || requested);
        self.keep_awake(Awake::Forbidden, !(host || self.guc_permits_rc6.load(Ordering::Relaxed)));
    }

    /// Sets or clears one reason that keeps the GT awake. On wakeup, the engines' registers are restored (V8-190).
    fn keep_awake(&self, reason: Awake, awake: bool) {
        self.residency.set(reason, awake, self.clock.now(), || self.restore_engines());
    }

    /// Applies the effect of RC6 to the engines' registers when the GT wakes (V8-190).
    pub(super) fn restore_engines(&self) {
        power_context::sleep_and_wake(&self.registers);
    }

    /// Returns whether a forcewake domain is asleep. Either the whole GT is asleep, or the domain's power gating is
    /// enabled and neither a forcewake request nor one of its engines keeps it awake (V13-138).
    #[allow(clippy::arithmetic_side_effects, reason = "there are at most eight media engines of a kind")]
    pub(super) fn asleep(&self, domain: WakeDomain) -> bool {
        let gated = |enable: Bits, forcewake: u8| {
            enable.is_set(self.registers.value(POWERGATE_ENABLE))
                && !self.residency.holds(Awake::Forcewake(forcewake))
                && !self.awake_engine(domain)
        };
        match domain {
            WakeDomain::AlwaysOn => false,
            WakeDomain::Gt => self.residency.asleep(),
            WakeDomain::Render => self.residency.asleep() || gated(RENDER_POWERGATE, 1),
            WakeDomain::Vdbox(n) => self.residency.asleep() || gated(MEDIA_POWERGATE, 2 + n),
            WakeDomain::Vebox(n) => self.residency.asleep() || gated(MEDIA_POWERGATE, 10 + n),
        }
    }

    /// Returns whether an engine of `domain` keeps it awake.
    fn awake_engine(&self, domain: WakeDomain) -> bool {
        let mut engines = self.generation.engines.all();
        engines.any(|engine| self.engine(engine).wake == domain && self.residency.holds(Awake::Engine(engine)))
    }

    #[allow(clippy::arithmetic_side_effects, reason = "ordinal 0, the mailbox, is matched before")]
    pub(super) fn read_power(&self, register: PowerRegister, offset: u32, ordinal: u16) -> u32 {
        match register {
            PowerRegister::Forcewake { .. } | PowerRegister::RcControl => self.registers.value(offset),
            PowerRegister::CoreStatus if self.residency.asleep() => RC_STATE.of(RC6),
            PowerRegister::CoreStatus => RC_STATE.of(RC0),
            PowerRegister::Rc6Residency => low(self.residency.slept(self.clock.now()) / RC6_UNIT),
            PowerRegister::PerfStatus => {
                let sleeping = if self.residency.asleep() { ACTUAL_RATIO.mask() } else { 0 };
                self.registers.value(offset) & !sleeping
            }
            PowerRegister::Pcode if ordinal == 0 => self.pcode().read_mailbox(),
            PowerRegister::Pcode => self.pcode().read_data(usize::from(ordinal) - 1),
            PowerRegister::Sensor => {
                let now = self.clock.now();
                let activity = Activity { power: self.power, now, busy: now.saturating_sub(self.residency.slept(now)) };
                pcode::reading(offset, activity).unwrap_or(0)
            }
        }
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a row of forcewake registers has at most 16 ordinals; ordinal 0 of the mailbox is matched before"
    )]
    pub(super) fn write_power(&self, register: PowerRegister, offset: u32, ordinal: u16, value: u32) {
        match register {
            PowerRegister::Forcewake { ack, domain } => {
                let _forcewake = self.forcewake();
                let held = masked(self.registers.value(offset), value);
                self.registers.set(offset, held);
                self.registers.set(ack + 4 * u32::from(ordinal), held);
                let domain = Awake::Forcewake((domain + ordinal & 0xf) as u8);
                self.keep_awake(domain, held != 0);
            }
            PowerRegister::RcControl => {
                let _forcewake = self.forcewake();
                self.registers.set(offset, value);
                self.decide_rc6();
            }
            PowerRegister::Pcode if ordinal == 0 => self.pcode().write_mailbox(value),
            PowerRegister::Pcode => self.pcode().write_data(usize::from(ordinal) - 1, value),
            PowerRegister::CoreStatus
            | PowerRegister::Rc6Residency
            | PowerRegister::PerfStatus
            | PowerRegister::Sensor => {}
        }
    }
}
