// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the sensors: the driver's arithmetic on their registers, and the model of power and heat.

use super::*;

const SECOND: u64 = 1_000_000_000;
const RANGE: Range = Range { min: 18, max: 123 };
/// Shares of two engines.
const SHARES: [u16; 2] = [500, 100];

fn envelope(watts: u32) -> Envelope {
    Envelope {
        power: Power::FLEX_170,
        range: RANGE,
        limit: RaplLimit::new().with_power(watts << POWER_SHIFT).with_enable(true),
    }
}

fn at(offset: u32, meter: &Meter) -> u32 {
    reading(offset, Power::FLEX_170, meter).unwrap()
}

/// Advances by `seconds`, in which the first engine runs for `busy` of them.
fn advance(meter: &mut Meter, envelope: Envelope, seconds: u64, busy: u64) {
    let mut engines = meter.engines;
    engines[0] += busy * SECOND;
    let now = meter.now + seconds * SECOND;
    meter.advance(envelope, now, RANGE.max, &engines, SHARES.into_iter());
}

fn joules(meter: &Meter) -> u32 {
    at(0x14_593c, meter) >> ENERGY_SHIFT
}

fn field(value: u32, high: u32, low: u32) -> u32 {
    value >> low & ((1 << (high - low + 1)) - 1)
}

/// Contract B.5b: the arithmetic of xe_hwmon.c on these registers gives the limit in uW and the window in ms.
#[test]
fn limit_and_units_give_the_drivers_watts_and_seconds() {
    let meter = Meter::new(Power::FLEX_170, 0);
    let limit = u32::from(Power::FLEX_170.limit());
    let units = at(0x14_5938, &meter);
    let (power, time) = (field(units, 3, 0), field(units, 19, 16));
    assert_eq!((u64::from(field(limit, 14, 0)) * 1_000_000) >> power, 150_000_000);
    assert_eq!(limit & 1 << 15, 1 << 15);
    let window = u64::from(4 | field(limit, 23, 22)) << field(limit, 21, 17);
    assert_eq!((window * 1000) >> (time + 2), 28_000);
    assert_eq!((u64::from(at(0x14_5930, &meter)) * 1_000_000) >> power, 150_000_000);
    assert_eq!(reading(0x14_5900, Power::FLEX_170, &meter), None);
}

#[test]
fn energy_without_work_is_that_of_the_idle_card() {
    let mut meter = Meter::new(Power::FLEX_170, 7 * SECOND);
    advance(&mut meter, envelope(150), 10, 0);
    assert_eq!(joules(&meter), 400);
    assert_eq!((at(0x14_5978, &meter), at(0x13_82c0, &meter)), (43, 41), "25 degrees, and 18 and 16 for 40 W");
}

#[test]
fn energy_follows_engine_time_and_frequency() {
    let mut meter = Meter::new(Power::FLEX_170, 0);
    advance(&mut meter, envelope(150), 10, 10);
    assert_eq!(joules(&meter), 400 + 550, "half of 110 W");
    advance(&mut meter, envelope(150), 10, 5);
    assert_eq!(joules(&meter), 950 + 400 + 275, "half of the time");
    let mut engines = meter.engines;
    engines[0] += 10 * SECOND;
    let before = meter.energy;
    meter.advance(envelope(150), meter.now + 10 * SECOND, RANGE.min, &engines, SHARES.into_iter());
    let watts = (meter.energy - before) as f64 / 1e10;
    // 18 of 123, and the square of 650 of 1050.
    assert!((watts - (40.0 + 55.0 * 18.0 / 123.0 * (650.0_f64 / 1050.0).powi(2))).abs() < 1e-6, "{watts}");
}

/// An engine cannot run longer than the interval, and all engines need no more than the board's power.
#[test]
fn power_of_an_interval_is_at_most_that_of_the_board() {
    let mut meter = Meter::new(Power::FLEX_170, 0);
    meter.advance(envelope(4000), SECOND, RANGE.max, &[u64::MAX; MAX_ENGINES], std::iter::repeat(u16::MAX));
    assert_eq!(joules(&meter), 150);
    meter.advance(envelope(150), u64::MAX, u32::MAX, &[u64::MAX; MAX_ENGINES], std::iter::repeat(u16::MAX));
    meter.advance(envelope(150), 0, 0, &[0; MAX_ENGINES], std::iter::empty());
}

#[test]
fn limit_below_the_load_lowers_frequency_and_power() {
    let load = Load::of(SHARES[..1].iter().copied());
    assert_eq!(envelope(150).actual(RANGE.max, load), RANGE.max);
    assert_eq!(envelope(95).actual(RANGE.max, load), RANGE.max, "95 W are needed");
    let ratio = envelope(50).actual(RANGE.max, load);
    assert!(ratio < RANGE.max && ratio > RANGE.min, "{ratio}");
    assert!(envelope(50).watts(0.5, ratio) <= 50.0 && envelope(50).watts(0.5, ratio + 1) > 50.0);
    assert_eq!(envelope(50).actual(RANGE.max, Load::of([].into_iter())), RANGE.max, "without load");
    assert_eq!(envelope(10).actual(RANGE.max, load), RANGE.min, "not below the minimum");
    assert_eq!(envelope(10).actual(10, load), 10, "the driver's frequency is lower");
    let disabled = Envelope { limit: envelope(50).limit.with_enable(false), ..envelope(50) };
    assert_eq!(disabled.actual(RANGE.max, load), RANGE.max);
    let mut meter = Meter::new(Power::FLEX_170, 0);
    advance(&mut meter, envelope(50), 10, 10);
    assert!((480..=500).contains(&joules(&meter)), "{}", joules(&meter));
}

#[test]
fn temperature_approaches_the_value_of_the_power() {
    let mut meter = Meter::new(Power::FLEX_170, 0);
    let full = |meter: &mut Meter, seconds| {
        let mut engines = meter.engines;
        engines.iter_mut().for_each(|time| *time += seconds * SECOND);
        let now = meter.now + seconds * SECOND;
        meter.advance(envelope(150), now, RANGE.max, &engines, std::iter::repeat(500));
    };
    full(&mut meter, 10);
    // 43 to 92.5 degrees: 1 - 1/e of the way after a time constant.
    assert_eq!(at(0x14_5978, &meter), 74);
    full(&mut meter, 100);
    assert_eq!((at(0x14_5978, &meter), at(0x13_82c0, &meter)), (92, 85));
    advance(&mut meter, envelope(150), 1000, 0);
    assert_eq!((at(0x14_5978, &meter), at(0x13_82c0, &meter)), (43, 41));
}

#[test]
fn voltage_is_proportional_to_the_frequency_within_its_limits() {
    let volts = [0, 18, 70, 123, 200].map(|ratio| envelope(150).voltage(ratio));
    assert_eq!(volts, [650, 650, 848, 1050, 1050]);
    let fixed = Envelope { range: Range { min: 18, max: 18 }, ..envelope(150) };
    assert_eq!(fixed.voltage(18), 650);
}

/// The counter wraps at 32 bits: differences across the wrap are correct.
#[test]
fn energy_counter_wraps() {
    let mut meter = Meter::new(Power::FLEX_170, 0);
    // 2^32 / 2^14 J at 40 W: 6553.6 s.
    let mut counter = |now| {
        meter.advance(envelope(150), now, RANGE.max, &[0; MAX_ENGINES], SHARES.into_iter());
        at(0x14_593c, &meter)
    };
    let wrap = 6_553_600_000_000;
    let before = counter(wrap - SECOND);
    assert_eq!(counter(wrap), 0);
    assert_eq!(counter(wrap + SECOND).wrapping_sub(before), 80 << ENERGY_SHIFT);
}
