// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on exact integers.

use super::{Context, is_first};
use crate::isa::Type;
use crate::isa::table::LaneOp;

/// Returns the result, and what AccWrEn writes if that is not the result. `predicate` is the lane's, by which sel
/// without a condition chooses.
pub fn apply(context: &Context<'_>, [a, b, c]: [i128; 3], accumulated: i128, predicate: bool) -> (i128, Option<u64>) {
    let low32 = |value: i128| value as u32;
    let width = if context.uop.src[0].ty.size() == 8 { 63 } else { 31 };
    let wide = |value: i128| if width == 63 { value & i128::from(u64::MAX) } else { value & i128::from(u32::MAX) };
    let result = match context.operation {
        LaneOp::Add => a + b,
        LaneOp::Mul => a * b,
        LaneOp::Avg => (a + b + 1) >> 1,
        LaneOp::Mac => accumulated + a * b,
        LaneOp::Mach => {
            // ISA-120: `mul` has left the product of the low word of the second source there.
            let product = accumulated + (a * (b >> 16) << 16);
            if context.uop.acc_write {
                let signed = context.inputs().iter().any(|input| input.ty.is_signed());
                let wide = product as u64;
                let high = if signed { i128::from(wide.cast_signed() >> 32) } else { i128::from(wide >> 32) };
                return (high, Some(wide));
            }
            i128::from(low32(product).cast_signed())
        }
        LaneOp::Addc => return (i128::from(low32(a + b)), Some(u64::from(a + b > i128::from(u32::MAX)))),
        LaneOp::Subb => return (i128::from(low32(a - b)), Some(u64::from(a < b))),
        LaneOp::Add3 => a + b + c,
        LaneOp::Mad => a + b * c,
        LaneOp::Dp4a => {
            let byte = |value: i128, index: u32, ty: Type| {
                let byte = (value >> (index * 8)) as u8;
                if ty.is_signed() { i128::from(byte.cast_signed()) } else { i128::from(byte) }
            };
            let types = [context.uop.src[1].ty, context.uop.src[2].ty];
            a + (0..4).map(|index| byte(b, index, types[0]) * byte(c, index, types[1])).sum::<i128>()
        }
        LaneOp::Mov | LaneOp::Math => a,
        LaneOp::Sel => {
            if is_first(context, &a, &b, predicate) {
                a
            } else {
                b
            }
        }
        LaneOp::Csel => {
            if context.condition.is_some_and(|condition| condition.holds(Some(c.cmp(&0)))) {
                a
            } else {
                b
            }
        }
        LaneOp::Not => !a,
        LaneOp::And => a & b,
        LaneOp::Or => a | b,
        LaneOp::Xor => a ^ b,
        LaneOp::Shl => a << (b & width),
        LaneOp::Shr => wide(a) >> (b & width),
        LaneOp::Asr => a >> (b & width),
        LaneOp::Ror | LaneOp::Rol => {
            let bits = if context.uop.src[0].ty.size() == 2 { 16 } else { 32 };
            let count = (b & (bits - 1)) as u32;
            let count = if context.operation == LaneOp::Ror { (bits as u32 - count) % bits as u32 } else { count };
            let value = a & ((1 << bits) - 1);
            (value << count | value >> (bits as u32 - count)) & ((1 << bits) - 1)
        }
        LaneOp::Bfn => (0..8u32).filter(|index| context.uop.function >> index & 1 != 0).fold(0, |result, index| {
            let side = |value: i128, bit: u32| if index >> bit & 1 != 0 { value } else { !value };
            result | side(a, 0) & side(b, 1) & side(c, 2)
        }),
        LaneOp::Lzd => i128::from(low32(a).leading_zeros()),
        LaneOp::Fbh => {
            let value = low32(a);
            let same = if context.uop.src[0].ty.is_signed() && value >> 31 != 0 { !value } else { value };
            if same == 0 { i128::from(u32::MAX) } else { i128::from(same.leading_zeros()) }
        }
        LaneOp::Fbl => {
            if low32(a) == 0 {
                i128::from(u32::MAX)
            } else {
                i128::from(low32(a).trailing_zeros())
            }
        }
        LaneOp::Cbit => i128::from(low32(a).count_ones()),
        LaneOp::Bfrev => i128::from(low32(a).reverse_bits()),
        LaneOp::Bfe => {
            let (bits, offset) = (a & 31, b & 31);
            let value = c >> offset & ((1 << bits) - 1);
            if context.uop.src[2].ty.is_signed() && bits > 0 && value >> (bits - 1) & 1 != 0 {
                value - (1 << bits)
            } else {
                value
            }
        }
        LaneOp::Bfi1 => i128::from(low32(((1 << (a & 31)) - 1) << (b & 31))),
        LaneOp::Bfi2 => {
            let mask = low32(a);
            let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
            i128::from(low32(b) << shift & mask | low32(c) & !mask)
        }
        LaneOp::Frc | LaneOp::Rndu | LaneOp::Rndd | LaneOp::Rnde | LaneOp::Rndz | LaneOp::Cmp | LaneOp::Cmpn => a,
    };
    (result, None)
}
