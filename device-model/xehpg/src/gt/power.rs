// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Power: forcewake, RC6 and PCODE. The frequency and the sensors are in `gt/frequency.rs`.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use arctic_sriov::number::low;

use super::{Gt, SideEffect, power_context};
use crate::pcode::Pcode;
use crate::registers::power::{FORCEWAKE_GUC_MEDIA, FORCEWAKE_GUC_RENDER};
use crate::registers::power_fields::{CoreStatus, PowergateEnable, RcControl, RcRequest};
use crate::registers::{Access, PowerRegister, Unit, XeHpg, masked};
use crate::residency::Awake;
use crate::sync::IgnorePoison;
use crate::topology::{EngineId, WakeDomain};

/// Domains of each bit of POWERGATE_DOMAIN_STATUS (V13-137).
const SLICES: [&[WakeDomain]; 5] = {
    use WakeDomain::{Render, Vdbox, Vebox};
    [
        &[Vdbox(0), Vdbox(1), Vebox(0)],
        &[Render],
        &[Vdbox(2), Vdbox(3), Vebox(1)],
        &[Vdbox(4), Vdbox(5), Vebox(2)],
        &[Vdbox(6), Vdbox(7), Vebox(3)],
    ]
};

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
    pub(super) fn decide_rc6(&self) {
        let control: RcControl = self.registers.fields();
        let requested = self.registers.fields::<RcRequest>().target() == RcRequest::RC6;
        let host = control.rc6_enable() && (control.hw_enable() || requested);
        self.keep_awake(Awake::Forbidden, !(host || self.guc_permits_rc6.load(Ordering::Relaxed)));
    }

    /// Sets or clears one reason that keeps the GT awake. On wakeup, the engines' registers are restored (V8-190).
    fn keep_awake(&self, reason: Awake, awake: bool) {
        self.residency.set(reason, awake, self.clock.now(), || self.restore_engines());
        self.note_activity();
    }

    /// Applies the effect of RC6 to the engines' registers when the GT wakes (V8-190).
    pub(super) fn restore_engines(&self) {
        power_context::sleep_and_wake(&self.registers);
    }

    /// Returns whether a forcewake domain is asleep. Either the whole GT is asleep, or the domain's power gating is
    /// enabled and neither a forcewake request, of the driver or of the GuC, nor one of its engines keeps it awake
    /// (V13-138).
    #[allow(clippy::arithmetic_side_effects, reason = "there are at most eight media engines of a kind")]
    pub(super) fn asleep(&self, domain: WakeDomain) -> bool {
        let gates: PowergateEnable = self.registers.fields();
        let gated = |enabled: bool, forcewake: u8| {
            enabled
                && !self.residency.holds(Awake::Forcewake(forcewake))
                && !self.residency.holds(Awake::GucForcewake(forcewake))
                && !self.awake_engine(domain)
        };
        match domain {
            WakeDomain::AlwaysOn => false,
            WakeDomain::Gt => self.residency.asleep(),
            WakeDomain::Render => self.residency.asleep() || gated(gates.render(), 1),
            WakeDomain::Vdbox(n) => self.residency.asleep() || gated(gates.media(), 2 + n),
            WakeDomain::Vebox(n) => self.residency.asleep() || gated(gates.media(), 10 + n),
        }
    }

    /// Returns whether an engine of `domain` keeps it awake.
    fn awake_engine(&self, domain: WakeDomain) -> bool {
        let mut engines = self.generation.engines.all();
        engines.any(|engine| self.engine(engine).wake == domain && self.residency.holds(Awake::Engine(engine)))
    }

    /// Clears the GuC's forcewake requests, because it was reset.
    pub fn drop_guc_forcewakes(&self) {
        for register in [FORCEWAKE_GUC_MEDIA, FORCEWAKE_GUC_RENDER] {
            self.write(register, 0xffff_0000);
        }
    }

    /// Performs `access` to the registers of `engine` on behalf of the GuC, which requests the engine's domain for its
    /// duration (V13-136).
    #[allow(clippy::arithmetic_side_effects, reason = "there are at most eight media engines of a kind")]
    pub fn awake_for_guc<T>(&self, engine: EngineId, access: impl FnOnce() -> T) -> T {
        let (register, bit) = match self.engine(engine).wake {
            WakeDomain::AlwaysOn | WakeDomain::Gt => return access(),
            WakeDomain::Render => (FORCEWAKE_GUC_RENDER, 0),
            WakeDomain::Vdbox(n) => (FORCEWAKE_GUC_MEDIA, n),
            WakeDomain::Vebox(n) => (FORCEWAKE_GUC_MEDIA, 8 + n),
        };
        let request = 1 << bit;
        let held = self.registers.value(register) & request;
        self.write(register, request << 16 | request);
        let result = access();
        self.write(register, request << 16 | held);
        result
    }
}

impl Unit<XeHpg, Gt> for PowerRegister {
    type Effect = SideEffect;

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "ordinal 0, the mailbox, is matched before; a slice's bit is below 5"
    )]
    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        match self {
            PowerRegister::Forcewake { .. } | PowerRegister::GucForcewake { .. } | PowerRegister::RcControl => {
                gt.registers.value(access.offset)
            }
            PowerRegister::DomainStatus => (0..).zip(SLICES).fold(0, |status, (bit, domains)| {
                status | u32::from(domains.iter().any(|domain| !gt.asleep(*domain))) << bit
            }),
            PowerRegister::CoreStatus => {
                let state = if gt.residency.asleep() { CoreStatus::RC6 } else { CoreStatus::RC0 };
                CoreStatus::new().with_rc_state(state).into()
            }
            PowerRegister::Rc6Residency => low(gt.residency.slept(gt.clock.now()) / RC6_UNIT),
            PowerRegister::PerfStatus => gt.perf_status(),
            PowerRegister::LimitReasons => gt.limit_reasons(),
            PowerRegister::PowerLimit => gt.registers.value(access.offset),
            PowerRegister::Pcode if access.ordinal() == 0 => gt.pcode().read_mailbox(),
            PowerRegister::Pcode => gt.pcode().read_data(usize::from(access.ordinal()) - 1),
            PowerRegister::Sensor => gt.sensor(access.offset),
        }
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a row of forcewake registers has at most 16 ordinals, and a request of the GuC at most 16 domains; ordinal 0 of the mailbox is matched before"
    )]
    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let (offset, ordinal) = (access.offset, access.ordinal());
        match *self {
            PowerRegister::Forcewake { ack, domain } => {
                let _forcewake = gt.forcewake();
                let held = masked(gt.registers.value(offset), value);
                gt.registers.set(offset, held);
                gt.registers.set(ack + 4 * u32::from(ordinal), held);
                let domain = Awake::Forcewake((domain + ordinal & 0xf) as u8);
                gt.keep_awake(domain, held != 0);
            }
            PowerRegister::GucForcewake { domain, requests } => {
                let _forcewake = gt.forcewake();
                let held = masked(gt.registers.value(offset), value) & requests;
                gt.registers.set(offset, held);
                for bit in (0..16_u8).filter(|bit| requests >> bit & 1 != 0) {
                    gt.keep_awake(Awake::GucForcewake(domain + bit), held >> bit & 1 != 0);
                }
            }
            PowerRegister::RcControl => {
                let _forcewake = gt.forcewake();
                gt.registers.set(offset, value);
                gt.decide_rc6();
            }
            PowerRegister::LimitReasons => gt.clear_limit_reasons(value),
            PowerRegister::PowerLimit => gt.set_power_limit(value),
            PowerRegister::Pcode if ordinal == 0 => gt.pcode().write_mailbox(value),
            PowerRegister::Pcode => gt.pcode().write_data(usize::from(ordinal) - 1, value),
            PowerRegister::CoreStatus
            | PowerRegister::DomainStatus
            | PowerRegister::Rc6Residency
            | PowerRegister::PerfStatus
            | PowerRegister::Sensor => {}
        }
        None
    }
}
