// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Instants of the timer: OA time has the bit of the exponent set and all lower bits clear (OA-060).

/// The smallest exponent of which every instant has a report. Instants of smaller ones are closer than 0.8 us; then, one of
/// each 2^(THINNED - e) has a report.
pub const THINNED: u32 = 4;

/// Distance between two reports in ticks.
#[must_use]
pub fn period(exponent: u32) -> u64 {
    2 << exponent.clamp(THINNED, 31)
}

/// Returns the first instant after `time`, of which a report is made.
#[must_use]
pub fn next(exponent: u32, time: u64) -> u64 {
    let (first, period) = (1u64 << exponent.min(31), period(exponent));
    // The instants are `first` beyond multiples of the period.
    let past = time.wrapping_sub(first) & period.wrapping_sub(1);
    time.wrapping_add(period.wrapping_sub(past))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_the_exponents_bit_and_no_lower_one() {
        for exponent in THINNED..32 {
            let mut at = 5;
            for _ in 0..4 {
                let next = next(exponent, at);
                assert!(next > at && next - at <= period(exponent));
                assert_eq!(next & ((2 << exponent) - 1), 1 << exponent, "exponent {exponent}");
                at = next;
            }
        }
        assert_eq!((next(5, 0), next(5, 31), next(5, 32), next(5, 33)), (32, 32, 96, 96));
        assert_eq!(period(31), 1 << 32);
    }

    #[test]
    fn instants_of_short_periods_are_thinned() {
        for exponent in 0..THINNED {
            let first = next(exponent, 1000);
            assert_eq!(first & ((2 << exponent) - 1), 1 << exponent, "still an instant of the exponent");
            assert_eq!(next(exponent, first) - first, 32);
        }
    }
}
