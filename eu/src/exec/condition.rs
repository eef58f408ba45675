// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of results with 0. ISA-064.

use super::uop::Uop;

/// Comparison of an integer result with 0, but for overflow. ISA-064.
#[inline]
pub fn integer_condition<T: Default + PartialOrd>(condition: u8, value: T) -> bool {
    let zero = T::default();
    match condition {
        1 => value == zero,
        2 => value != zero,
        3 => value > zero,
        4 => value >= zero,
        5 => value < zero,
        6 => value <= zero,
        _ => false,
    }
}

/// Flags of the lanes of an operation.
#[inline(never)]
pub fn conditions(uop: &Uop, lanes: &[u32]) -> u32 {
    let holds = |value: u32| {
        if uop.float {
            float_condition(uop.condition, f32::from_bits(value))
        } else {
            integer_condition(uop.condition, value.cast_signed())
        }
    };
    lanes.iter().enumerate().fold(0, |bits, (index, lane)| bits | u32::from(holds(*lane)) << index)
}

/// Comparison of a float with 0.
pub fn float_condition(condition: u8, value: f32) -> bool {
    match condition {
        1 => value == 0.0,
        2 => value != 0.0,
        3 => value > 0.0,
        4 => value >= 0.0,
        5 => value < 0.0,
        6 => value <= 0.0,
        9 => value.is_nan(),
        _ => false,
    }
}
