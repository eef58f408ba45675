// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Results of the ALU (AF-018..034).

use crate::isa::Op;

/// Computes an operation with two operands. `carry` is 0, 1 or, after a borrow, all ones (AFC-035).
///
/// Unknown on hardware, and chosen here: shifts and rotations use the low five bits of their amount, and `bfi` does not
/// clear the field.
pub fn compute(op: Op, a: u32, b: u32, carry: &mut u32) -> u32 {
    match op {
        Op::Add | Op::AddImm => {
            let (sum, overflow) = a.overflowing_add(b);
            *carry = u32::from(overflow);
            sum
        }
        Op::Sub | Op::SubImm => {
            let (difference, borrow) = a.overflowing_sub(b);
            *carry = if borrow { u32::MAX } else { 0 };
            difference
        }
        Op::Addhi | Op::AddhiImm => a.wrapping_add(b).wrapping_add(*carry),
        Op::Subhi | Op::SubhiImm => a.wrapping_sub(b).wrapping_add(*carry),
        Op::And | Op::AndImm => a & b,
        Op::Or | Op::OrImm => a | b,
        Op::Xor | Op::XorImm => a ^ b,
        Op::Not | Op::NotImm => !b,
        Op::Shl | Op::ShlImm => a << (b & 31),
        Op::Ushr | Op::UshrImm => a >> (b & 31),
        Op::Ishr | Op::IshrImm => (a.cast_signed() >> (b & 31)).cast_unsigned(),
        Op::Rot | Op::RotImm => a.rotate_left(b & 31),
        Op::Mul8 | Op::Mul8Imm => (a & 0xff) * (b & 0xff),
        Op::Min | Op::MinImm => a.min(b),
        Op::Max | Op::MaxImm => a.max(b),
        Op::Cmp | Op::CmpImm => match a.cmp(&b) {
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Equal => 0x2b,
            std::cmp::Ordering::Less => 0x1e,
        },
        Op::Bic | Op::BicImm => a & !b,
        Op::Msb => b.checked_ilog2().unwrap_or(0),
        // Bits 5:1 are the number, bit 0 the value.
        Op::Setbit => a & !(1 << (b >> 1 & 31)) | (b & 1) << (b >> 1 & 31),
        Op::SetbitImm => a | 1 << (b & 31),
        Op::Clrbit => a & !(1 << (b & 31)),
        _ => b,
    }
}

/// The bits `low..=high` of a value; 0 if `high` is below `low`.
pub fn extract(value: u32, low: u32, high: u32) -> u32 {
    value >> (low & 31) & field(low, high)
}

/// `width` ones for a field.
pub fn field(low: u32, high: u32) -> u32 {
    let width = (high + 1).saturating_sub(low).min(32);
    1_u32.checked_shl(width).map_or(u32::MAX, |bit| bit - 1)
}
