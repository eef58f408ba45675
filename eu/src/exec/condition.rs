// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of results of the fast forms with 0. ISA-064. The functions compare without an intermediate order, so
//! that the loop over the lanes has no branch.

use super::uop::Uop;
use crate::isa::Condition;

/// Flags of the lanes of an operation.
#[inline(never)]
pub fn conditions(uop: &Uop, lanes: &[u32]) -> u32 {
    let Some(condition) = uop.condition else { return 0 };
    let holds = |value: u32| {
        if uop.float {
            float_condition(condition, f32::from_bits(value))
        } else {
            integer_condition(condition, value.cast_signed())
        }
    };
    lanes.iter().enumerate().fold(0, |bits, (index, lane)| bits | u32::from(holds(*lane)) << index)
}

/// Overflows are known to the general way only.
fn integer_condition(condition: Condition, value: i32) -> bool {
    match condition {
        Condition::Eq => value == 0,
        Condition::Ne => value != 0,
        Condition::Gt => value > 0,
        Condition::Ge => value >= 0,
        Condition::Lt => value < 0,
        Condition::Le => value <= 0,
        Condition::Overflow | Condition::Unordered => false,
    }
}

/// As [`integer_condition`].
fn float_condition(condition: Condition, value: f32) -> bool {
    match condition {
        Condition::Eq => value == 0.0,
        Condition::Ne => value != 0.0,
        Condition::Gt => value > 0.0,
        Condition::Ge => value >= 0.0,
        Condition::Lt => value < 0.0,
        Condition::Le => value <= 0.0,
        Condition::Overflow => false,
        Condition::Unordered => value.is_nan(),
    }
}
