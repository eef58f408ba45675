// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of results of the fast forms with 0. ISA-064. The functions compare without an intermediate order, so
//! that the loop over the lanes has no branch.

use super::uop::Uop;
use crate::isa::{Condition, Type};

/// Flags of the lanes of an operation.
#[inline(never)]
pub fn conditions(uop: &Uop, lanes: &[u32]) -> u32 {
    let Some(condition) = uop.condition else { return 0 };
    if uop.float {
        return flags(lanes, |value| float_condition(condition, f32::from_bits(value)));
    }
    // What the destination has of the result, extended to a signed dword; unsigned dwords moved by half of their range.
    let ty = uop.dst.ty;
    let shift = 32_u32.saturating_sub(ty.size() * 8);
    let flip: u32 = if ty == Type::Ud { 1 << 31 } else { 0 };
    let zero = flip.cast_signed();
    let signed = ty.is_signed();
    let value = |value: u32| {
        let high = value << shift;
        let extended = if signed { (high.cast_signed() >> shift).cast_unsigned() } else { high >> shift };
        (extended ^ flip).cast_signed()
    };
    match condition {
        Condition::Eq => flags(lanes, |lane| value(lane) == zero),
        Condition::Ne => flags(lanes, |lane| value(lane) != zero),
        Condition::Gt => flags(lanes, |lane| value(lane) > zero),
        Condition::Ge => flags(lanes, |lane| value(lane) >= zero),
        Condition::Lt => flags(lanes, |lane| value(lane) < zero),
        Condition::Le => flags(lanes, |lane| value(lane) <= zero),
        // Overflows are known to the general way only.
        Condition::Overflow | Condition::Unordered => 0,
    }
}

/// The bits of the lanes for which a condition holds.
#[inline(always)]
fn flags(lanes: &[u32], holds: impl Fn(u32) -> bool) -> u32 {
    let mut bits = 0;
    for (index, lane) in lanes.iter().enumerate() {
        bits |= u32::from(holds(*lane)) << index;
    }
    bits
}

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
