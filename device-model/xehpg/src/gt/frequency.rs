// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GT's frequency, the power limit that lowers it, and the sensors.

use std::sync::MutexGuard;

use arctic_base::status::PowerStatus;

use super::Gt;
use crate::registers::power::LIMIT_REASONS;
use crate::registers::power_fields::{FrequencyRequest, LimitReasons, MAX_RATIO, PerfStatus, RpStateCap};
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
        let caps: RpStateCap = self.registers.fields();
        let range = Range { min: u32::from(caps.rpn()) * 3, max: u32::from(caps.rp0()) * 3 };
        Envelope { power: self.power, range, limit: self.registers.fields() }
    }

    /// The requested frequency in units of 16.67 MHz.
    fn requested_ratio(&self) -> u32 {
        self.registers.fields::<PerfStatus>().ratio()
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

    /// Frequency and sleep, for display.
    pub fn power_status(&self) -> PowerStatus {
        // Units of 50/3 MHz.
        let mhz = |ratio: u32| ratio.saturating_mul(50) / 3;
        PowerStatus {
            mhz: self.ratios_if_awake().map_or(0, |ratios| mhz(ratios.actual)),
            requested_mhz: mhz(self.requested_ratio()),
            rc6_ns: self.residency.slept(self.clock.now()),
        }
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
        drop(self.observed_now());
        let meter = self.meter();
        let ratio = ratio.min(MAX_RATIO);
        self.registers.set_fields(FrequencyRequest::new().with_ratio(ratio));
        self.registers.set_fields(PerfStatus::new().with_ratio(ratio));
        drop(meter);
        self.note_request();
    }

    /// GT_PERF_STATUS: frequency and voltage, 0 while the GT sleeps.
    #[allow(clippy::arithmetic_side_effects, reason = "a voltage in mV has 13 bits")]
    pub(super) fn perf_status(&self) -> u32 {
        let Some(Ratios { actual, .. }) = self.ratios_if_awake() else { return 0 };
        // A card file has at most 5000 mV.
        let voltage = (self.envelope().voltage(actual) * 2 / 5).min(0x7ff);
        PerfStatus::new().with_ratio(actual.min(MAX_RATIO)).with_voltage(voltage).into()
    }

    /// GT0_PERF_LIMIT_REASONS: PL1 while the power limit lowers the frequency, and the log.
    pub(super) fn limit_reasons(&self) -> u32 {
        let limited = self.ratios_if_awake().is_some_and(|ratios| ratios.actual < ratios.requested);
        let logged = LimitReasons::new().with_pl1_log(limited);
        self.registers.update(LIMIT_REASONS, |log| log | u32::from(logged));
        self.registers.fields::<LimitReasons>().with_pl1(limited).into()
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
