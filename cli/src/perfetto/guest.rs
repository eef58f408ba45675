// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The clock of a guest beside that of the card.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::packets::LATEST;

/// Longest file with a guest's clock.
const MOST_OF_FILE: u64 = 4096;
const NS_PER_S: u128 = 1_000_000_000;

/// Times of a guest's clock and of the card's at one moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestTime {
    /// CLOCK_MONOTONIC of the guest.
    pub monotonic: u64,
    /// Time of the card.
    pub card: u64,
}

/// The line of `arctic guest clock`: times of a guest's clock and of the card's counter of ticks at one moment.
///
/// The counter and the time of events are 0 at the card's power-on, and the counter starts again after `2^width` ticks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct GuestClock {
    /// CLOCK_MONOTONIC of the guest in nanoseconds.
    monotonic_ns: u64,
    /// Ticks of the card.
    engine_cycles: u64,
    /// Width of the counter in bits.
    width: u32,
    /// Ticks per second.
    hz: u64,
}

impl GuestClock {
    /// Reads a file with the line.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has something else.
    pub fn read(path: &Path) -> Result<Self> {
        let mut text = String::new();
        let read = fs::File::open(path).and_then(|file| file.take(MOST_OF_FILE).read_to_string(&mut text));
        read.with_context(|| format!("{} cannot be read", path.display()))?;
        GuestClock::parse(&text)
            .with_context(|| format!("{} is not a guest's clock of `arctic guest clock`", path.display()))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let clock: GuestClock = serde_json::from_str(text.trim())?;
        if !(1..=64).contains(&clock.width) || clock.engine_cycles.checked_shr(clock.width).unwrap_or(0) != 0 {
            bail!("a counter of {} bits has no value {:#x}", clock.width, clock.engine_cycles);
        }
        if clock.monotonic_ns > LATEST {
            bail!("a clock has no {} ns", clock.monotonic_ns);
        }
        if !(1..=NS_PER_S).contains(&clock.hz.into()) {
            bail!("hz is {}, and a card has 1 to {NS_PER_S} ticks per second", clock.hz);
        }
        Ok(clock)
    }

    /// The times of both clocks. The counter has started again as often as brings them closest to `ns`, a time of the card.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "products of 64 and 30 bits; hz is not 0, and neither is the period"
    )]
    pub fn near(&self, ns: u64) -> GuestTime {
        let [cycles, hz] = [self.engine_cycles, self.hz].map(u128::from);
        let period = (1_u128 << self.width) * NS_PER_S;
        // In units of 1/hz ns, in which a period is a whole number.
        let (first, at) = (cycles * NS_PER_S, u128::from(ns) * hz);
        let periods = (at + period / 2).saturating_sub(first) / period;
        let card = (first + periods * period) / hz;
        GuestTime { monotonic: self.monotonic_ns, card: u64::try_from(card).unwrap_or(LATEST).min(LATEST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(line: &str) -> Result<GuestClock> {
        GuestClock::parse(line)
    }

    fn flex(engine_cycles: u64) -> GuestClock {
        GuestClock { monotonic_ns: 7, engine_cycles, width: 36, hz: 19_200_000 }
    }

    #[test]
    fn ticks_are_times_of_the_card() {
        assert_eq!(flex(0).near(0), GuestTime { monotonic: 7, card: 0 });
        assert_eq!(flex(192).near(5).card, 10_000);
        assert_eq!(flex(19_200_000 * 60).near(0).card, 60_000_000_000);
    }

    /// The counter of 36 bits starts again after 3579 s.
    #[test]
    fn a_counter_that_has_started_again_is_close_to_the_events() {
        let periods = |count: u64| (count << 36) * 625 / 12;
        let early = flex(192);
        assert_eq!(early.near(periods(1) / 2).card, 10_000);
        assert_eq!(early.near(periods(1) / 2 + 20_000).card, periods(1) + 10_000);
        assert_eq!(early.near(periods(3) + 99).card, periods(3) + 10_000);
        let late = flex((1 << 36) - 192);
        assert_eq!(late.near(periods(2)).card, periods(2) - 10_000);
        assert_eq!(late.near(0).card, periods(1) - 10_000, "a time before power-on is none");
    }

    #[test]
    fn values_of_no_counter_are_refused() {
        let line = |cycles: &str, width: &str, hz: &str| {
            clock(&format!(r#"{{"monotonic_ns":7,"engine_cycles":{cycles},"width":{width},"hz":{hz},"read_ns":4}}"#))
        };
        assert_eq!(line("192", "36", "19200000").unwrap(), flex(192));
        assert!(line("68719476736", "36", "19200000").is_err(), "37 bits");
        assert!(line("0", "0", "19200000").is_err() && line("0", "65", "19200000").is_err());
        assert!(line("0", "36", "0").is_err() && line("0", "36", "1000000001").is_err());
        assert!(clock("{}").is_err() && clock("").is_err());
        let most = line("18446744073709551615", "64", "1").unwrap();
        assert_eq!(most.near(u64::MAX).card, LATEST, "saturates");
    }
}
