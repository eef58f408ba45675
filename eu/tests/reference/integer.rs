// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Integer operations: one function an opcode, on exact integers.

use arctic_eu::isa::Type;

use super::lane::Lane;
use super::value::{Operand, Outcome, any_signed, signed, width, wrap};

/// ISA-111: computed exactly, then condition, saturation and conversion.
pub fn add(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() + lane.src[1].integer())
}

/// ISA-111. A destination of 32 bits keeps the low 32 bits.
pub fn mul(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() * lane.src[1].integer())
}

/// ISA-110: (a + b + 1) >> 1 in wider precision.
pub fn avg(lane: &Lane) -> Outcome {
    lane.finish.integer((lane.src[0].integer() + lane.src[1].integer() + 1) >> 1)
}

/// ISA-118.
pub fn add3(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() + lane.src[1].integer() + lane.src[2].integer())
}

/// ISA-112: src0 + src1 * src2, exact, then wrap.
pub fn mad(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() + lane.src[1].integer() * lane.src[2].integer())
}

/// ISA-121: the accumulator plus src0 * src1.
pub fn mac(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.accumulator.integer() + lane.src[0].integer() * lane.src[1].integer())
}

/// ISA-119: src0 plus the products of the bytes of src1 and src2, each signed if its operand is D.
pub fn dp4a(lane: &Lane) -> Outcome {
    let byte = |operand: Operand, index: u32| wrap(i128::from(operand.bits >> (8 * index)), 8, signed(operand.ty));
    let dot: i128 = (0..4).map(|index| byte(lane.src[1], index) * byte(lane.src[2], index)).sum();
    lane.finish.integer(lane.src[0].integer() + dot)
}

/// ISA-120: the accumulator of 64 bits, plus the product of src0 and the high word of src1, as bits 63:16: its low dword, or with
/// AccWrEn its high dword, and all of it to the accumulator.
pub fn mach(lane: &Lane) -> Outcome {
    let accumulator = i128::from(i64::from(lane.high as i32)) << 32 | i128::from(lane.accumulator.bits as u32);
    let sum = accumulator + ((lane.src[0].integer() * (lane.src[1].integer() >> 16)) << 16);
    let is_signed = lane.src[..2].iter().any(|operand| signed(operand.ty));
    let wide = wrap(sum, 64, is_signed);
    let mut outcome = lane.finish.integer(if lane.writes_accumulator { wide >> 32 } else { wrap(sum, 32, true) });
    outcome.accumulator = Some(wrap(sum, 64, false) as u64);
    outcome
}

/// ISA-122: the low 32 bits of the sum; the carry to the accumulator.
pub fn addc(lane: &Lane) -> Outcome {
    let sum = lane.src[0].integer() + lane.src[1].integer();
    let mut outcome = lane.finish.integer(wrap(sum, 32, false));
    outcome.accumulator = Some((sum >> 32) as u64);
    outcome
}

/// ISA-122: the low 32 bits of the difference; the borrow to the accumulator.
pub fn subb(lane: &Lane) -> Outcome {
    let difference = lane.src[0].integer() - lane.src[1].integer();
    let mut outcome = lane.finish.integer(wrap(difference, 32, false));
    outcome.accumulator = Some(u64::from(difference < 0));
    outcome
}

/// ISA-045, ISA-044: a conversion between integers, or of an integer to a float.
pub fn mov(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer())
}

/// A source of a logic operation, widened by its own type, then negated bit by bit (ISA-058).
fn logic_source(operand: Operand) -> i128 {
    if operand.negate { !operand.plain() } else { operand.plain() }
}

/// ISA-114: bitwise on 32 bits, signed if a source is (ISA-043). Narrow sources are widened as in shifts (ISA-113), not to
/// words only: compilers invert a byte into a dword by one `not`.
fn logic(lane: &Lane, count: usize, function: impl Fn(i128, i128) -> i128) -> Outcome {
    let sources = &lane.src[..count];
    let second = if count > 1 { logic_source(sources[1]) } else { 0 };
    lane.finish.integer(wrap(function(logic_source(sources[0]), second), 32, any_signed(sources)))
}

/// ISA-114.
pub fn not(lane: &Lane) -> Outcome {
    logic(lane, 1, |a, _| !a)
}

/// ISA-114.
pub fn and(lane: &Lane) -> Outcome {
    logic(lane, 2, |a, b| a & b)
}

/// ISA-114.
pub fn or(lane: &Lane) -> Outcome {
    logic(lane, 2, |a, b| a | b)
}

/// ISA-114.
pub fn xor(lane: &Lane) -> Outcome {
    logic(lane, 2, |a, b| a ^ b)
}

/// ISA-017: each bit by the truth table; its index is src0 | src1 << 1 | src2 << 2.
pub fn bfn(lane: &Lane) -> Outcome {
    let bits = lane.src.iter().map(|source| width(source.ty)).max().unwrap_or(32);
    let value = (0..bits).fold(0i128, |value, bit| {
        let index = (0..3).fold(0, |index, source| index | (lane.src[source].bits >> bit & 1) << source);
        value | i128::from(lane.function >> index & 1) << bit
    });
    lane.finish.integer(value)
}

/// ISA-113: results have 32 bits, so the count is the low 5 bits of source 1.
fn shift_count(lane: &Lane) -> u32 {
    (lane.src[1].integer() & 31) as u32
}

/// ISA-113, ISA-044: the exact product with a power of two, then wrapped or clamped.
pub fn shl(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() << shift_count(lane))
}

/// ISA-113: the source, widened to 32 bits, is shifted as an unsigned number.
pub fn shr(lane: &Lane) -> Outcome {
    lane.finish.integer(wrap(lane.src[0].integer(), 32, false) >> shift_count(lane))
}

/// ISA-113: keeps the sign of the source as widened by its type.
pub fn asr(lane: &Lane) -> Outcome {
    lane.finish.integer(lane.src[0].integer() >> shift_count(lane))
}

/// ISA-113: the count modulo the width.
fn rotate(lane: &Lane, left: bool) -> Outcome {
    let bits = width(lane.src[0].ty);
    let count = (lane.src[1].plain() as u32) % bits;
    let count = if left { count } else { (bits - count) % bits };
    let value = wrap(lane.src[0].plain(), bits, false);
    lane.finish.integer(wrap(value << count | value >> (bits - count), bits, false))
}

/// ISA-113.
pub fn rol(lane: &Lane) -> Outcome {
    rotate(lane, true)
}

/// ISA-113.
pub fn ror(lane: &Lane) -> Outcome {
    rotate(lane, false)
}

/// A source as 32 bits.
fn dword(operand: Operand) -> u32 {
    wrap(operand.integer(), 32, false) as u32
}

/// ISA-115: src0 bits of src2 from bit src1 on; sign-extended in D.
pub fn bfe(lane: &Lane) -> Outcome {
    let (size, offset, value) = (dword(lane.src[0]) & 31, dword(lane.src[1]) & 31, dword(lane.src[2]));
    let is_signed = lane.src[2].ty == Type::D;
    let shifted = wrap(i128::from(value), 32, is_signed) >> offset;
    lane.finish.integer(match size {
        0 => 0,
        _ if offset + size > 32 && is_signed => shifted,
        _ => wrap(shifted, size, is_signed),
    })
}

/// ISA-116: src0 ones at bit src1, in 32 bits.
pub fn bfi1(lane: &Lane) -> Outcome {
    let (size, offset) = (dword(lane.src[0]) & 31, dword(lane.src[1]) & 31);
    lane.finish.integer((((1u32 << size) - 1) << offset).into())
}

/// ISA-116: src1, moved to the lowest one of the mask src0, replaces the bits of src2 under the mask.
pub fn bfi2(lane: &Lane) -> Outcome {
    let [mask, insert, base] = [0, 1, 2].map(|index| dword(lane.src[index]));
    let lowest = (0..32).find(|bit| mask >> bit & 1 == 1).unwrap_or(0);
    lane.finish.integer(i128::from(insert << lowest & mask | base & !mask))
}

/// ISA-117: the 32 bits in reverse order.
pub fn bfrev(lane: &Lane) -> Outcome {
    let value = dword(lane.src[0]);
    lane.finish.integer((0..32).fold(0, |all, bit| all | i128::from(value >> bit & 1) << (31 - bit)))
}

/// ISA-117: the number of ones.
pub fn cbit(lane: &Lane) -> Outcome {
    let value = dword(lane.src[0]);
    lane.finish.integer((0..32).map(|bit| i128::from(value >> bit & 1)).sum())
}

/// Position of the first bit for which the condition holds, counted from the high end.
fn from_high_end(value: u32, one: bool) -> Option<i128> {
    (0..32).find(|bit| (value >> (31 - bit) & 1 == 1) == one)
}

/// ISA-117: leading zeros of the 32 bits; 32 for 0.
pub fn lzd(lane: &Lane) -> Outcome {
    lane.finish.integer(from_high_end(dword(lane.src[0]), true).unwrap_or(32))
}

/// ISA-117: leading zeros, or for negative numbers leading ones; all ones if no bit differs from the sign.
pub fn fbh(lane: &Lane) -> Outcome {
    let value = dword(lane.src[0]);
    let negative = lane.src[0].ty == Type::D && value >> 31 == 1;
    lane.finish.integer(from_high_end(value, !negative).unwrap_or(0xffff_ffff))
}

/// ISA-117: trailing zeros; all ones for 0.
pub fn fbl(lane: &Lane) -> Outcome {
    let value = dword(lane.src[0]);
    lane.finish.integer((0..32).find(|bit| value >> bit & 1 == 1).unwrap_or(0xffff_ffff))
}
