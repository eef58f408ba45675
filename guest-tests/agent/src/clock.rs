// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest clock`: prints the guest's clock beside that of the card, for `--guest-clock` of `arctic trace` and `arctic decode`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::device::{Device, EngineCycles};

/// Number of readings, of which the shortest is printed.
const READINGS: usize = 16;

/// The render node to query.
#[derive(Debug, clap::Args)]
pub struct Clock {
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
}

/// Times of both clocks at one moment.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct GuestClock {
    /// CLOCK_MONOTONIC in nanoseconds.
    monotonic_ns: u64,
    /// Ticks of the card's timestamp counter.
    engine_cycles: u64,
    /// Width of the counter in bits.
    width: u32,
    /// Ticks per second.
    hz: u32,
    /// Nanoseconds in which the counter was read: `monotonic_ns` is in their middle.
    read_ns: u64,
}

/// The reading that took the shortest time.
fn best(readings: impl IntoIterator<Item = EngineCycles>, hz: u32) -> Option<GuestClock> {
    let best = readings.into_iter().min_by_key(|reading| reading.cpu_delta)?;
    Some(GuestClock {
        monotonic_ns: best.cpu_timestamp.saturating_add(best.cpu_delta / 2),
        engine_cycles: best.cycles,
        width: best.width,
        hz,
        read_ns: best.cpu_delta,
    })
}

/// Prints both clocks as one line of JSON. Only xe has the query, and only on the PF.
pub fn run(clock: &Clock) -> Result<()> {
    let device = Device::open(clock.device.as_deref())?;
    let engine = *device.engines()?.first().context("the card has no engine")?;
    let gts = device.gts()?;
    let gt = gts.iter().find(|gt| gt.id == engine.gt).context("the engine's GT is not listed")?;
    let readings: Result<Vec<_>, _> = (0..READINGS).map(|_| device.engine_cycles(engine)).collect();
    let readings = readings.context("the driver does not read the card's clock (only xe does, on the PF)")?;
    println!("{}", serde_json::to_string(&best(readings, gt.reference_clock))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_reading_is_taken_at_its_middle() {
        let reading = |cycles, cpu_timestamp, cpu_delta| EngineCycles { cycles, width: 36, cpu_timestamp, cpu_delta };
        let readings = [reading(1, 1000, 90), reading(2, 2000, 40), reading(3, 3000, 41)];
        let line = serde_json::to_string(&best(readings, 19_200_000)).unwrap();
        assert_eq!(line, r#"{"monotonic_ns":2020,"engine_cycles":2,"width":36,"hz":19200000,"read_ns":40}"#);
        assert_eq!(best([], 1), None);
    }
}
