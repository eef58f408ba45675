// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on exact integers.

use super::{Setting, Value, condition, is_first};
use crate::isa::Type;
use crate::isa::table::Lane;

/// Returns the result and what AccWrEn writes.
pub fn apply(
    setting: &Setting<'_>,
    [a, b, c]: [i128; 3],
    acc: i128,
    modifier: u8,
    chosen: bool,
) -> (i128, Option<u64>) {
    let low32 = |value: i128| value as u32;
    let width = if setting.uop.src[0].ty.size() == 8 { 63 } else { 31 };
    let wide = |value: i128| if width == 63 { value & i128::from(u64::MAX) } else { value & i128::from(u32::MAX) };
    let result = match setting.lane {
        Lane::Add => a + b,
        Lane::Mul => a * b,
        Lane::Avg => (a + b + 1) >> 1,
        Lane::Mac => acc + a * b,
        Lane::Mach => {
            let product = a * b;
            if setting.uop.acc_write {
                return (product >> 32, Some(u64::from(low32(product))));
            }
            i128::from(low32(product).cast_signed())
        }
        Lane::Addc => return (i128::from(low32(a + b)), Some(u64::from(a + b > i128::from(u32::MAX)))),
        Lane::Subb => return (i128::from(low32(a - b)), Some(u64::from(a < b))),
        Lane::Add3 => a + b + c,
        Lane::Mad => a + b * c,
        Lane::Dp4a => {
            let byte = |value: i128, index: u32, ty: Type| {
                let byte = (value >> (index * 8)) as u8;
                if ty.is_signed() { i128::from(byte.cast_signed()) } else { i128::from(byte) }
            };
            let types = [setting.uop.src[1].ty, setting.uop.src[2].ty];
            a + (0..4).map(|index| byte(b, index, types[0]) * byte(c, index, types[1])).sum::<i128>()
        }
        Lane::Mov | Lane::Math => a,
        Lane::Sel => {
            if is_first(modifier, &a, &b, chosen) {
                a
            } else {
                b
            }
        }
        Lane::Csel => {
            if condition(modifier, Value::Int(c), Type::D) {
                a
            } else {
                b
            }
        }
        Lane::Not => !a,
        Lane::And => a & b,
        Lane::Or => a | b,
        Lane::Xor => a ^ b,
        Lane::Shl => a << (b & width),
        Lane::Shr => wide(a) >> (b & width),
        Lane::Asr => a >> (b & width),
        Lane::Ror | Lane::Rol => {
            let bits = if setting.uop.src[0].ty.size() == 2 { 16 } else { 32 };
            let count = (b & (bits - 1)) as u32;
            let count = if setting.lane == Lane::Ror { (bits as u32 - count) % bits as u32 } else { count };
            let value = a & ((1 << bits) - 1);
            (value << count | value >> (bits as u32 - count)) & ((1 << bits) - 1)
        }
        Lane::Bfn => (0..8u32).filter(|index| setting.uop.function >> index & 1 != 0).fold(0, |result, index| {
            let side = |value: i128, bit: u32| if index >> bit & 1 != 0 { value } else { !value };
            result | side(a, 0) & side(b, 1) & side(c, 2)
        }),
        Lane::Lzd => i128::from(low32(a).leading_zeros()),
        Lane::Fbh => {
            let value = low32(a);
            let same = if setting.uop.src[0].ty.is_signed() && value >> 31 != 0 { !value } else { value };
            if same == 0 { i128::from(u32::MAX) } else { i128::from(same.leading_zeros()) }
        }
        Lane::Fbl => {
            if low32(a) == 0 {
                i128::from(u32::MAX)
            } else {
                i128::from(low32(a).trailing_zeros())
            }
        }
        Lane::Cbit => i128::from(low32(a).count_ones()),
        Lane::Bfrev => i128::from(low32(a).reverse_bits()),
        Lane::Bfe => {
            let (bits, offset) = (a & 31, b & 31);
            let value = c >> offset & ((1 << bits) - 1);
            if setting.uop.src[2].ty.is_signed() && bits > 0 && value >> (bits - 1) & 1 != 0 {
                value - (1 << bits)
            } else {
                value
            }
        }
        Lane::Bfi1 => i128::from(low32(((1 << (a & 31)) - 1) << (b & 31))),
        Lane::Bfi2 => {
            let mask = low32(a);
            let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
            i128::from(low32(b) << shift & mask | low32(c) & !mask)
        }
        Lane::Frc | Lane::Rndu | Lane::Rndd | Lane::Rnde | Lane::Rndz | Lane::Cmp | Lane::Cmpn => a,
    };
    (result, None)
}
