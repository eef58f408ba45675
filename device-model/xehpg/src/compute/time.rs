// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time that a walker takes on the hardware, by the instructions that it has executed. CTX_TIMESTAMP follows it, not the time
//! of the host: drivers limit the time of a job (xe: 5 s), and programs measure kernels by it.

use crate::host::Timebase;

/// Cycles from one instruction of a thread to the next one.
const LATENCY: u64 = 10;
/// Cycles of an execution unit for an instruction: two for 16 channels of 32 bits.
const CYCLES: u64 = 2;
/// Threads of an execution unit.
const SLOTS: u64 = 8;
/// Execution units of a pair (V13-156).
const UNITS_OF_PAIR: u32 = 2;

/// Number and clock of a card's execution units.
#[derive(Clone, Copy, Debug)]
pub struct EuRates {
    /// Execution units of the card.
    units: u64,
    /// Execution units of a dual subslice, on which all threads of a group are.
    units_of_group: u64,
    /// Cycles per second.
    hz: u64,
    timebase: Timebase,
}

impl EuRates {
    /// Those of a card with these fuses at `mhz`: a bit for each dual subslice, and for each pair of execution units of one
    /// (V13-155, V13-156).
    #[allow(clippy::arithmetic_side_effects, reason = "at most 32 dual subslices of 16 units, at most 12.75 GHz")]
    pub fn new(dual_subslices: u32, pairs: u8, mhz: u32, timebase: Timebase) -> EuRates {
        let units_of_group = u64::from(pairs.count_ones() * UNITS_OF_PAIR).max(1);
        let units = u64::from(dual_subslices.count_ones()) * units_of_group;
        EuRates { units: units.max(1), units_of_group, hz: u64::from(mhz) * 1_000_000, timebase }
    }

    /// Ticks of CTX_TIMESTAMP of a walker with `threads` threads a group, that has executed `longest` instructions in the
    /// longest of its groups and `total` in all: a thread waits for each of its instructions, and all threads share the units.
    pub fn ticks(&self, threads: u32, longest: u64, total: u64) -> u64 {
        let at_once = self.at_once(threads);
        let of_group = longest.saturating_mul(LATENCY).checked_div(at_once).unwrap_or(0);
        let of_all = total.saturating_mul(CYCLES).checked_div(self.units).unwrap_or(0);
        let cycles = u128::from(of_group.max(of_all));
        let ticks = cycles.saturating_mul(self.timebase.hz().into()).checked_div(self.hz.into());
        u64::try_from(ticks.unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// Threads of a group with so many that are executed at the same time.
    fn at_once(&self, threads: u32) -> u64 {
        u64::from(threads).clamp(1, self.units_of_group.saturating_mul(LATENCY) / CYCLES)
    }

    /// Clocks of execution units for so many instructions of groups with so many threads each, by the same model as [`EuRates::ticks`].
    pub fn clocks(&self, threads: u32, instructions: u64) -> EuClocks {
        let at_once = self.at_once(threads);
        let units = u64::from(threads).div_ceil(SLOTS).clamp(1, self.units_of_group);
        // A group has its units for `LATENCY / at_once` an instruction, and at least for `CYCLES / units`.
        let loaded = LATENCY.saturating_mul(units).max(CYCLES.saturating_mul(at_once));
        let scaled = |by: u64, of: u64| {
            let clocks = u128::from(instructions).saturating_mul(by.into()).checked_div(of.into()).unwrap_or(0);
            u64::try_from(clocks).unwrap_or(u64::MAX)
        };
        EuClocks {
            active: instructions.saturating_mul(CYCLES),
            loaded: scaled(loaded, at_once),
            occupied: scaled(
                loaded.saturating_mul(threads.into()),
                at_once.saturating_mul(units).saturating_mul(SLOTS),
            ),
        }
    }
}

/// Clocks of execution units: the sums over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EuClocks {
    /// In which an instruction is executed.
    pub active: u64,
    /// In which a thread is loaded; at least `active`.
    pub loaded: u64,
    /// The same, each counted by the part of its slots that have threads.
    pub occupied: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::XE_HPG;

    const SECOND: u64 = 2_050_000_000;

    fn flex170() -> EuRates {
        EuRates { units: 512, units_of_group: 16, hz: SECOND, timebase: XE_HPG.timebase }
    }

    #[test]
    fn a_walker_takes_as_long_as_its_longest_group_and_as_all_groups_on_all_units() {
        let rates = flex170();
        let second = XE_HPG.timebase.hz();
        assert_eq!(rates.ticks(1, 0, 0), 0);
        assert_eq!(rates.ticks(1, SECOND / 10, SECOND / 10), second, "each instruction takes ten cycles");
        assert_eq!(rates.ticks(1, SECOND / 10, SECOND), second, "nine other groups are executed meanwhile");
        assert_eq!(rates.ticks(8, 8 * SECOND / 10, 8 * SECOND / 10), second, "eight threads at once");
        assert_eq!(rates.ticks(128, 8 * SECOND, 8 * SECOND), second, "16 units, two cycles each");
        assert_eq!(rates.ticks(8, 8, 512 * SECOND), 2 * second, "512 units, two cycles each");
        assert_eq!(rates.ticks(64, u64::MAX, u64::MAX), rates.ticks(64, u64::MAX, 0), "no overflow");
        assert_eq!(rates.ticks(0, 10, 10), rates.ticks(1, 10, 10));
    }

    #[test]
    fn units_are_active_stalled_and_occupied_as_long_as_groups_take() {
        let clocks = |threads, instructions| {
            let EuClocks { active, loaded, occupied } = flex170().clocks(threads, instructions);
            (active, loaded, occupied)
        };
        assert_eq!(clocks(1, 800), (1600, 8000, 1000), "one of eight threads, two of ten cycles");
        assert_eq!(clocks(4, 800), (1600, 2000, 1000));
        assert_eq!(clocks(8, 800), (1600, 1600, 1600), "eight threads hide the latency");
        assert_eq!(clocks(128, 800), (1600, 1600, 1600));
        assert_eq!(clocks(0, 0), (0, 0, 0));
        let most = clocks(u32::MAX, u64::MAX);
        assert!(most.0 == u64::MAX && most.1 == u64::MAX, "no overflow");
    }

    #[test]
    fn the_rates_of_a_card_follow_its_fuses() {
        let EuRates { units, units_of_group, hz, .. } = flex170();
        let rates = EuRates::new(u32::MAX, 0xff, 2050, XE_HPG.timebase);
        assert_eq!((rates.units, rates.units_of_group, rates.hz), (units, units_of_group, hz));
        let rates = EuRates::new(0x1f, 0x0f, 1000, XE_HPG.timebase);
        assert_eq!((rates.units, rates.units_of_group), (40, 8));
    }
}
