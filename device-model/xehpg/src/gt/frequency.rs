// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GT's frequency, the power limit that lowers it, and the sensors.

use std::sync::MutexGuard;

use super::Gt;
use crate::registers::power::{
    ACTUAL_RATIO, ACTUAL_VOLTAGE, GT_PERF_STATUS, LIMIT_REASONS, LIMIT_REASONS_LOG, LIMITED_BY_PL1, REQUESTED_RATIO,
    RP_STATE_CAP, RP0, RPN, RPNSWREQ,
};
use crate::residency::Awake;
use crate::sensors::{self, Envelope, Load, Meter, RAPL_LIMIT, RAPL_LIMIT_MASK, Range};
use crate::sync::IgnorePoison;
use crate::topology::MAX_ENGINES;

/// Frequencies of the GT in units of 16.67 MHz.
struct Ratios {
    /// The requested one.
    requested: u32,
    /// That which the power limit permits for the engines that run now, at most `requested`.
    actual: u32,
}

impl Gt {
    /// What determines the card's power now.
    #[allow(clippy::arithmetic_side_effects, reason = "a frequency in units of 50 MHz has eight bits")]
    fn envelope(&self) -> Envelope {
        let caps = self.registers.value(RP_STATE_CAP);
        let range = Range { min: RPN.get(caps) * 3, max: RP0.get(caps) * 3 };
        Envelope { power: self.power, range, limit: self.registers.value(RAPL_LIMIT) }
    }

    /// The requested frequency in units of 16.67 MHz.
    fn requested_ratio(&self) -> u32 {
        ACTUAL_RATIO.get(self.registers.value(GT_PERF_STATUS))
    }

    /// The frequencies while the GT is awake.
    fn ratios(&self) -> Ratios {
        let engines = self.generation.engines.all().filter(|engine| self.residency.holds(Awake::Engine(*engine)));
        let load = Load::of(engines.map(|engine| self.engine(engine).power));
        let requested = self.requested_ratio();
        Ratios { requested, actual: self.envelope().actual(requested, load) }
    }

    /// The frequencies now; `None` while the GT sleeps.
    fn ratios_if_awake(&self) -> Option<Ratios> {
        (!self.residency.asleep()).then(|| self.ratios())
    }

    /// The frequency in units of 16.67 MHz while the GT is awake: the requested one, or that which the power limit
    /// permits for the engines that run now.
    pub fn actual_ratio(&self) -> u32 {
        self.ratios().actual
    }

    /// The meter, which has counted up to now.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine, and at most MAX_ENGINES engines")]
    fn meter(&self) -> MutexGuard<'_, Meter> {
        let mut meter = self.meter.lock().ignore_poison();
        let mut times = [0; MAX_ENGINES];
        let engines = self.generation.engines;
        engines.all().for_each(|engine| times[engine.index()] = self.engine_clocks[engine.index()].time());
        let shares = engines.all().map(|engine| self.engine(engine).power);
        meter.advance(self.envelope(), self.clock.now(), self.requested_ratio(), &times, shares);
        meter
    }

    /// Requests a frequency, in units of 16.67 MHz.
    pub fn request_ratio(&self, ratio: u32) {
        // The time before is counted with the frequency before.
        let _meter = self.meter();
        self.registers.set(RPNSWREQ, REQUESTED_RATIO.of(ratio));
        self.registers.set(GT_PERF_STATUS, ACTUAL_RATIO.of(ratio));
    }

    /// GT_PERF_STATUS: frequency and voltage, 0 while the GT sleeps.
    #[allow(clippy::arithmetic_side_effects, reason = "a voltage in mV has 13 bits")]
    pub(super) fn perf_status(&self) -> u32 {
        let Some(Ratios { actual, .. }) = self.ratios_if_awake() else { return 0 };
        ACTUAL_RATIO.of(actual) | ACTUAL_VOLTAGE.of(self.envelope().voltage(actual) * 2 / 5)
    }

    /// GT0_PERF_LIMIT_REASONS: PL1 while the power limit lowers the frequency, and the log.
    pub(super) fn limit_reasons(&self) -> u32 {
        let limited = self.ratios_if_awake().is_some_and(|ratios| ratios.actual < ratios.requested);
        let now = if limited { LIMITED_BY_PL1.mask() } else { 0 };
        self.registers.update(LIMIT_REASONS, |log| log | LIMIT_REASONS_LOG.of(now));
        self.registers.value(LIMIT_REASONS) | now
    }

    /// Clears the bits of the log that are 0 in `value`.
    pub(super) fn clear_limit_reasons(&self, value: u32) {
        self.registers.update(LIMIT_REASONS, |log| log & value);
    }

    /// Writes the power limit.
    pub(super) fn set_power_limit(&self, value: u32) {
        let _meter = self.meter();
        self.registers.update(RAPL_LIMIT, |old| old & !RAPL_LIMIT_MASK | value & RAPL_LIMIT_MASK);
    }

    /// The value of a sensor.
    pub(super) fn sensor(&self, offset: u32) -> u32 {
        sensors::reading(offset, self.power, &self.meter()).unwrap_or(0)
    }
}
