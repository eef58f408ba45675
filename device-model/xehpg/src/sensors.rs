// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's power, energy, temperatures and voltage, and its power limit, as registers of the PCU report them.
//!
//! The power is that of the idle card, and for each busy engine its share of the rest. The rest falls with the frequency
//! and with the square of the voltage. Energy is counted from engine time, so a card without work consumes its idle power,
//! asleep or awake. Temperatures approach the value that belongs to the power exponentially.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use bitfield_struct::bitfield;

use crate::topology::MAX_ENGINES;

/// Fractional bits of a power in PCU registers: 1/8 watt.
const POWER_SHIFT: u32 = 3;
/// Fractional bits of an energy: 1/16384 joule.
const ENERGY_SHIFT: u32 = 14;
/// Fractional bits of a time: 1/1024 second.
const TIME_SHIFT: u32 = 10;

/// Power and heat of a card, from its card file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power of the board in watts: the limit, and the power with all engines busy at the maximum frequency.
    pub board: u16,
    /// Power of the idle card in watts, at most `board`.
    pub idle: u16,
    /// Voltage of the GT.
    #[serde(default = "Voltage::estimate")]
    pub voltage: Voltage,
    /// Temperature of the inlet air in degrees Celsius.
    #[serde(default = "inlet")]
    pub inlet: u8,
    /// The package.
    #[serde(default = "Heat::package")]
    pub package: Heat,
    /// Local memory.
    #[serde(default = "Heat::memory")]
    pub memory: Heat,
}

/// Voltage of the GT in mV, between the limits proportional to the frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voltage {
    /// At the minimum frequency.
    pub min: u16,
    /// At the maximum frequency.
    pub max: u16,
}

/// How a part of the card becomes warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heat {
    /// Temperature above the inlet air in thousandths of a degree, per watt of the card.
    pub per_watt: u16,
    /// Time constant in seconds, at least 1.
    pub seconds: u16,
}

/// An estimate.
const fn inlet() -> u8 {
    25
}

impl Voltage {
    /// An estimate.
    const fn estimate() -> Self {
        Voltage { min: 650, max: 1050 }
    }
}

impl Heat {
    /// An estimate: 45 degrees at 40 W, 92 degrees at 150 W after half a minute.
    const fn package() -> Self {
        Heat { per_watt: 450, seconds: 10 }
    }

    /// An estimate: slower than the package.
    const fn memory() -> Self {
        Heat { per_watt: 400, seconds: 20 }
    }
}

impl Power {
    /// A Flex 170. The limit is Intel's; the rest are estimates, the idle power by a card that shows 43.7 W at 2050 MHz
    /// (intel/xpumanager, issue 69).
    pub const FLEX_170: Power = Power {
        board: 150,
        idle: 40,
        voltage: Voltage::estimate(),
        inlet: inlet(),
        package: Heat::package(),
        memory: Heat::memory(),
    };

    /// Power of the board in PCU registers.
    fn board_units(self) -> u32 {
        u32::from(self.board) << POWER_SHIFT
    }

    /// Reset value of the power limit ([`RAPL_LIMIT`]): the board's power, enabled, averaged over 28 s (1.75 * 2^14
    /// time units).
    pub fn limit(self) -> RaplLimit {
        RaplLimit::new()
            .with_power(self.board_units() & 0x7fff)
            .with_enable(true)
            .with_window_exponent(14)
            .with_window_quarters(3)
    }

    /// Temperature in thousandths of a degree that a part has when the card has consumed `watts` for long.
    fn settled(self, part: Heat, watts: f64) -> f64 {
        f64::from(self.inlet) * 1000.0 + f64::from(part.per_watt) * watts
    }
}

/// PCU_CR_PACKAGE_RAPL_LIMIT, a read/write register; [`RAPL_LIMIT_MASK`] are its writable bits.
pub const RAPL_LIMIT: u32 = 0x14_59a0;
/// Writable bits: limit, enable, clamp and time window.
pub const RAPL_LIMIT_MASK: u32 = 0x00ff_ffff;

/// PCU_CR_PACKAGE_RAPL_LIMIT: the power limit PL1 (xe: regs/xe_mchbar_regs.h).
#[bitfield(u32)]
pub struct RaplLimit {
    /// The limit in units of 1/8 watt.
    #[bits(15)]
    pub power: u32,
    /// The limit is enabled.
    pub enable: bool,
    /// The frequency may fall below the minimum. The model ignores it.
    pub clamp: bool,
    /// The limit is averaged over 1 + `window_quarters` / 4, times 2 to this power, time units.
    #[bits(5)]
    pub window_exponent: u8,
    /// See [`RaplLimit::window_exponent`].
    #[bits(2)]
    pub window_quarters: u8,
    __: u8,
}

/// Frequency range of the GT, in units of 16.67 MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Minimum.
    pub min: u32,
    /// Maximum, at least 1.
    pub max: u32,
}

/// The load of the GT in an interval: thousandths of the power that all engines need, at most 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load(u32);

impl Load {
    /// The load of busy engines with these shares, in thousandths.
    pub fn of(shares: impl Iterator<Item = u16>) -> Self {
        Load(shares.fold(0_u32, |sum, share| sum.saturating_add(share.into())).min(1000))
    }
}

/// What determines the power of the GT: the card, its frequency range and the power limit in RAPL_LIMIT.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// The card.
    pub power: Power,
    /// Its frequencies.
    pub range: Range,
    /// The power limit.
    pub limit: RaplLimit,
}

impl Envelope {
    /// Voltage in mV at the frequency `ratio`.
    pub fn voltage(self, ratio: u32) -> u32 {
        let Voltage { min, max } = self.power.voltage;
        let above = u32::from(max.saturating_sub(min)).saturating_mul(ratio.saturating_sub(self.range.min));
        let share = above.checked_div(self.range.max.saturating_sub(self.range.min)).unwrap_or(0);
        u32::from(min).saturating_add(share).min(max.max(min).into())
    }

    /// Power of the card in watts with `load` at the frequency `ratio`.
    fn watts(self, load: f64, ratio: u32) -> f64 {
        let Power { board, idle, .. } = self.power;
        let relative = |value: u32, highest: u32| f64::from(value) / f64::from(highest.max(1));
        let voltage = relative(self.voltage(ratio), self.voltage(self.range.max));
        f64::from(idle)
            + f64::from(board.saturating_sub(idle)) * load * relative(ratio, self.range.max) * voltage * voltage
    }

    /// The frequency that the power limit permits with `load`: at most `requested`, and at least the minimum.
    ///
    /// The model applies the limit to the load at once, not to the average over the window of RAPL_LIMIT.
    fn limited(self, requested: u32, load: f64) -> u32 {
        if !self.limit.enable() {
            return requested;
        }
        let watts = f64::from(self.limit.power()) / f64::from(1_u32 << POWER_SHIFT);
        let within = |ratio: &u32| self.watts(load, *ratio) <= watts;
        (self.range.min.min(requested)..=requested).rev().find(within).unwrap_or(self.range.min.min(requested))
    }

    /// The actual frequency while engines with `load` are busy and `requested` is the frequency of the driver.
    pub fn actual(self, requested: u32, load: Load) -> u32 {
        self.limited(requested, f64::from(load.0) / 1000.0)
    }
}

/// Time of each engine, in ns, by its index.
pub type EngineTimes = [u64; MAX_ENGINES];

/// Energy and temperatures up to a time.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Time of the card's clock in ns.
    now: u64,
    /// Engine times at `now`.
    engines: EngineTimes,
    /// Energy since power-on in nJ.
    energy: u128,
    /// Temperatures in thousandths of a degree.
    package: f64,
    memory: f64,
}

impl Meter {
    /// A meter at power-on of a card that has been idle for long, at time `now`.
    pub fn new(power: Power, now: u64) -> Self {
        let settled = |part| power.settled(part, f64::from(power.idle));
        let (package, memory) = (settled(power.package), settled(power.memory));
        Meter { now, engines: [0; MAX_ENGINES], energy: 0, package, memory }
    }

    /// Adds the interval from the last call to `now`, in which the driver requested the frequency `requested`. `engines`
    /// are the engine times at `now`, `shares` the thousandths of the power that each engine has.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a power has at most 13 bits, a time 64; the product is positive, and rounded to 53 bits"
    )]
    pub fn advance(
        &mut self,
        envelope: Envelope,
        now: u64,
        requested: u32,
        engines: &EngineTimes,
        shares: impl Iterator<Item = u16>,
    ) {
        let passed = now.saturating_sub(self.now);
        if passed == 0 {
            return;
        }
        let ran = engines.iter().zip(self.engines).map(|(time, before)| time.saturating_sub(before).min(passed));
        let weighted: u128 = ran.zip(shares).map(|(time, share)| u128::from(time) * u128::from(share)).sum();
        let load = (weighted as f64 / (passed as f64 * 1000.0)).min(1.0);
        let watts = envelope.watts(load, envelope.limited(requested, load));
        let idle = envelope.power.idle;
        // The idle energy is exact, for long intervals.
        let rest = (watts - f64::from(idle)) * passed as f64;
        self.energy = self.energy.saturating_add(u128::from(passed) * u128::from(idle) + rest.max(0.0) as u128);
        let warm = |part: Heat, before: f64| {
            let settled = envelope.power.settled(part, watts);
            settled + (before - settled) * (-(passed as f64) / (f64::from(part.seconds.max(1)) * 1e9)).exp()
        };
        self.package = warm(envelope.power.package, self.package);
        self.memory = warm(envelope.power.memory, self.memory);
        (self.now, self.engines) = (now, *engines);
    }

    /// Energy in units of 1/16384 joule. The counter has 32 bits and wraps (xe: xe_hwmon_energy_get).
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "an energy has fewer than 80 bits, and the counter has the lowest 32"
    )]
    fn energy(&self) -> u32 {
        ((self.energy << ENERGY_SHIFT) / 1_000_000_000 & 0xffff_ffff) as u32
    }
}

/// A temperature in whole degrees Celsius, 8 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range of the register")]
fn degrees(thousandths: f64) -> u32 {
    (thousandths / 1000.0).round().clamp(0.0, 255.0) as u32
}

/// A read-only sensor register.
struct Reading {
    offset: u32,
    value: fn(Power, &Meter) -> u32,
}

/// The sensor registers (xe: regs/xe_mchbar_regs.h, regs/xe_pcode_regs.h, xe_hwmon.c).
const READINGS: [Reading; 7] = [
    // PCU_CR_PACKAGE_POWER_SKU: thermal design power; no minimum.
    Reading { offset: 0x14_5930, value: |power, _| power.board_units() },
    // Upper half: maximum power, longest time window 2^18 time units (256 s).
    Reading { offset: 0x14_5934, value: |power, _| power.board_units() | 0x12 << 16 },
    // PCU_CR_PACKAGE_POWER_SKU_UNIT
    Reading { offset: 0x14_5938, value: |_, _| TIME_SHIFT << 16 | ENERGY_SHIFT << 8 | POWER_SHIFT },
    // PCU_CR_PACKAGE_ENERGY_STATUS
    Reading { offset: 0x14_593c, value: |_, meter| meter.energy() },
    // PCU_CR_PACKAGE_TEMPERATURE, degrees Celsius
    Reading { offset: 0x14_5978, value: |_, meter| degrees(meter.package) },
    // VRAM temperature, degrees Celsius
    Reading { offset: 0x13_82c0, value: |_, meter| degrees(meter.memory) },
    // PCU_PWM_FAN_SPEED (i915): the card has no fan, so the pulse counter does not change.
    Reading { offset: 0x13_8140, value: |_, _| 0 },
];

/// The sensor value at `offset` of GTTMMADR, `None` if there is no such register.
pub fn reading(offset: u32, power: Power, meter: &Meter) -> Option<u32> {
    READINGS.iter().find(|reading| reading.offset == offset).map(|reading| (reading.value)(power, meter))
}

#[cfg(test)]
mod tests;
