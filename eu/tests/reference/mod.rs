// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Results of operations on a lane, one function an opcode, written from the items of the document on the ISA.

pub mod exact;

use arctic_eu::isa::Type;
use exact::{BF, Exact, F, Format, HF, Number};

/// A source: bits of its type, and its modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub bits: u64,
    pub ty: Type,
    pub abs: bool,
    pub negate: bool,
}

/// What a lane's operation needs beside its sources.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub dst: Type,
    pub saturate: bool,
    /// Condition modifier.
    pub condition: u8,
    /// Rounding mode of cr0.
    pub round: u32,
    /// Denormals of F and of HF are kept.
    pub keeps: [bool; 2],
    /// Predicate of the lane.
    pub predicate: bool,
    /// Truth table of bfn.
    pub function: u8,
    /// AccWrEn.
    pub acc_write: bool,
}

/// Result of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bits of the destination's type.
    pub bits: u64,
    /// Flag, if the instruction writes it.
    pub flag: bool,
    /// What AccWrEn writes, if it is not the result.
    pub accumulator: Option<u64>,
}

pub fn format(ty: Type) -> Format {
    match ty {
        Type::Hf => HF,
        Type::Bf => BF,
        _ => F,
    }
}

/// ISA-043, ISA-058: an integer as its type has it, absolute value, then negation.
fn integer(operand: &Operand, logic: bool) -> i128 {
    let size = operand.ty.size() * 8;
    let raw = i128::from(operand.bits) & ((1 << size) - 1);
    let signed = matches!(operand.ty, Type::B | Type::W | Type::D | Type::Q);
    let value = if signed && raw >> (size - 1) & 1 != 0 { raw - (1 << size) } else { raw };
    let value = if operand.abs { value.abs() } else { value };
    match (operand.negate, logic) {
        (true, true) => -1 - value,
        (true, false) => -value,
        (false, _) => value,
    }
}

fn limits(ty: Type) -> (i128, i128) {
    let bits = ty.size() * 8;
    if matches!(ty, Type::B | Type::W | Type::D | Type::Q) {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

fn low(value: i128, bits: u32) -> i128 {
    value & ((1 << bits) - 1)
}

/// ISA-064 on an integer result.
fn condition(code: u8, value: i128) -> bool {
    [false, value == 0, value != 0, value > 0, value >= 0, value < 0, value <= 0]
        .get(usize::from(code))
        .copied()
        .unwrap_or(false)
}

/// Result of an operation on integers before saturation, conversion and condition.
fn integers(name: &str, v: &[i128], operands: &[Operand], context: &Context) -> (i128, Option<u64>) {
    let u32s: Vec<i128> = v.iter().map(|value| low(*value, 32)).collect();
    let count = |value: i128| (value & 31) as u32;
    let plain = |value| (value, None);
    match name {
        // ISA-111
        "add" => plain(v[0] + v[1]),
        "mul" => plain(v[0] * v[1]),
        "avg" => plain((v[0] + v[1] + 1).div_euclid(2)),
        "add3" => plain(v[0] + v[1] + v[2]),
        // ISA-112
        "mad" => plain(v[0] + v[1] * v[2]),
        // ISA-113
        "shl" => plain(v[0] * (1i128 << count(v[1]))),
        "shr" => plain(u32s[0] / (1i128 << count(v[1]))),
        "asr" => plain(v[0].div_euclid(1i128 << count(v[1]))),
        "ror" | "rol" => {
            let bits = operands[0].ty.size() * 8;
            let value = low(v[0], bits);
            let turns = (v[1] & i128::from(bits - 1)) as u32;
            let left = if name == "rol" { turns } else { (bits - turns) % bits };
            plain(low(value << left, bits) | value >> (bits - left))
        }
        // ISA-114, ISA-017
        "and" => plain(v[0] & v[1]),
        "or" => plain(v[0] | v[1]),
        "xor" => plain(v[0] ^ v[1]),
        "not" => plain(!v[0]),
        "bfn" => {
            let mut result = 0i128;
            for bit in 0..32 {
                let index = (v[0] >> bit & 1) | (v[1] >> bit & 1) << 1 | (v[2] >> bit & 1) << 2;
                result |= i128::from(context.function >> index & 1) << bit;
            }
            plain(result)
        }
        // ISA-115, ISA-116
        "bfe" => {
            let (width, offset) = (count(v[0]), count(v[1]));
            if width == 0 {
                return plain(0);
            }
            let field = low(v[2] >> offset, width);
            let negative = operands[2].ty == Type::D && field >> (width - 1) & 1 != 0;
            plain(if negative { field - (1 << width) } else { field })
        }
        "bfi1" => plain(low(((1i128 << count(v[0])) - 1) << count(v[1]), 32)),
        "bfi2" => {
            let shift = (0..32).find(|bit| u32s[0] >> bit & 1 != 0).unwrap_or(0);
            plain(low(u32s[1] << shift, 32) & u32s[0] | u32s[2] & low(!u32s[0], 32))
        }
        // ISA-117
        "bfrev" => plain((0..32).map(|bit| (u32s[0] >> bit & 1) << (31 - bit)).sum()),
        "cbit" => plain((0..32).map(|bit| u32s[0] >> bit & 1).sum()),
        "lzd" => plain((0..32).rev().position(|bit| u32s[0] >> bit & 1 != 0).unwrap_or(32) as i128),
        "fbl" => plain((0..32).position(|bit| u32s[0] >> bit & 1 != 0).map_or(0xffff_ffff, |bit| bit as i128)),
        "fbh" => {
            let sign = operands[0].ty == Type::D && u32s[0] >> 31 != 0;
            plain(
                (0..32).rev().position(|bit| (u32s[0] >> bit & 1 != 0) != sign).map_or(0xffff_ffff, |bit| bit as i128),
            )
        }
        // ISA-119
        "dp4a" => {
            let byte = |value: i128, index: usize, ty: Type| {
                let byte = low(value >> (8 * index), 8);
                if ty == Type::D && byte > 127 { byte - 256 } else { byte }
            };
            plain(v[0] + (0..4).map(|i| byte(v[1], i, operands[1].ty) * byte(v[2], i, operands[2].ty)).sum::<i128>())
        }
        // ISA-120
        "mach" => {
            let product = v[0] * v[1];
            if context.acc_write {
                (product.div_euclid(1 << 32), Some(low(product, 32) as u64))
            } else {
                plain(low(product, 32))
            }
        }
        // ISA-122
        "addc" => (low(v[0] + v[1], 32), Some(u64::from(v[0] + v[1] >= 1 << 32))),
        "subb" => (low(v[0] - v[1], 32), Some(u64::from(v[0] < v[1]))),
        // ISA-066
        "sel" => plain(match context.condition {
            0 => {
                if context.predicate {
                    v[0]
                } else {
                    v[1]
                }
            }
            4 => v[0].max(v[1]),
            5 => v[0].min(v[1]),
            code => {
                if compare(code, v[0].cmp(&v[1]).into()) {
                    v[0]
                } else {
                    v[1]
                }
            }
        }),
        // ISA-067
        "csel" => plain(if condition(context.condition, v[2]) { v[0] } else { v[1] }),
        "mov" => plain(v[0]),
        _ => panic!("{name}"),
    }
}

/// ISA-065: an order, `None` for unordered.
fn compare(code: u8, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match code {
        1 => order == Some(Equal),
        2 => order != Some(Equal),
        3 => order == Some(Greater),
        4 => matches!(order, Some(Greater | Equal)),
        5 => order == Some(Less),
        6 => matches!(order, Some(Less | Equal)),
        9 => order.is_none(),
        _ => false,
    }
}

/// A float in the format of the operation: flushed by its own type, then modified. ISA-058, ISA-131.
fn float(operand: &Operand, to: Format, context: &Context) -> u32 {
    let from = format(operand.ty);
    let mut bits = operand.bits as u32;
    let keeps = context.keeps[usize::from(operand.ty == Type::Hf)];
    let sign = 1 << (from.0 + from.1);
    let denormal = bits >> from.0 & ((1 << from.1) - 1) == 0;
    if denormal && !keeps {
        bits &= sign;
    }
    let bits = widen(bits, from, to);
    let sign = 1 << (to.0 + to.1);
    let bits = if operand.abs { bits & !sign } else { bits };
    if operand.negate { bits ^ sign } else { bits }
}

/// The same number in a wider format.
fn widen(bits: u32, from: Format, to: Format) -> u32 {
    match exact::read(bits, from) {
        _ if from == to => bits,
        Number::Nan => exact::nan(to),
        Number::Inf(negative) => exact::infinity(to, negative),
        Number::Finite(value) => value.round(to, 0),
    }
}

/// Product plus addend, exactly. ISA-112.
fn fused(a: u32, b: u32, c: u32, at: Format, round: u32) -> u32 {
    use Number::{Finite, Inf, Nan};
    let sign = |bits: u32| bits >> (at.0 + at.1) & 1 != 0;
    let negative = sign(a) != sign(b);
    match (exact::read(a, at), exact::read(b, at), exact::read(c, at)) {
        (Nan, ..) | (_, Nan, _) | (_, _, Nan) => exact::nan(at),
        (Inf(_), Finite(zero), _) | (Finite(zero), Inf(_), _) if zero.is_zero() => exact::nan(at),
        (Inf(_), _, Inf(other)) | (_, Inf(_), Inf(other)) if other != negative => exact::nan(at),
        (Inf(_), ..) | (_, Inf(_), _) => exact::infinity(at, negative),
        (_, _, Inf(other)) => exact::infinity(at, other),
        (Finite(_), Finite(_), Finite(addend)) => {
            let ((_, m, e), (_, n, f)) = (exact::parts(a, at), exact::parts(b, at));
            let product = Exact::new(negative, m * n, e + f);
            sum(product, addend, round).round(at, round)
        }
    }
}

fn sum(a: Exact, b: Exact, round: u32) -> Exact {
    let mut sum = a.add(b);
    if sum.is_zero() {
        // Zeros of the same sign keep it; others give +0, and -0 when rounding down.
        sum.negative = if a.is_zero() && b.is_zero() && a.negative == b.negative { a.negative } else { round == 2 };
    }
    sum
}

/// To an integral number. ISA-124: 0 up, 1 down, 2 even, 3 toward zero.
fn integral(bits: u32, at: Format, mode: u32) -> u32 {
    let Number::Finite(value) = exact::read(bits, at) else { return bits };
    if !value.has_fraction() {
        return bits;
    }
    let whole = value.truncate();
    let away = match mode {
        0 => !value.negative,
        1 => value.negative,
        2 => {
            let order = value.fraction_against_half();
            order.is_gt() || order.is_eq() && whole & 1 != 0
        }
        _ => false,
    };
    let whole = whole.abs() + i128::from(away);
    Exact::new(value.negative, whole as u64, 0).round(at, 0)
}

fn floats(name: &str, v: &[u32], at: Format, context: &Context) -> u32 {
    let one = 0x7f << 23;
    let one = if at == HF { 0x3c00 } else { one };
    let order = |a: u32, b: u32| match (exact::read(a, at), exact::read(b, at)) {
        (Number::Nan, _) | (_, Number::Nan) => None,
        _ => {
            let value = |bits: u32| f64::from(f32::from_bits(widen(bits, at, F)));
            value(a).partial_cmp(&value(b))
        }
    };
    match name {
        "add" => fused(v[0], one, v[1], at, context.round),
        // The product of two numbers has no addend whose sign could change a zero.
        "mul" => {
            let negative = (v[0] ^ v[1]) >> (at.0 + at.1) & 1;
            fused(v[0], v[1], negative << (at.0 + at.1), at, context.round)
        }
        "mad" => fused(v[1], v[2], v[0], at, context.round),
        "rndu" => integral(v[0], at, 0),
        "rndd" => integral(v[0], at, 1),
        "rnde" => integral(v[0], at, 2),
        "rndz" => integral(v[0], at, 3),
        "sel" => match context.condition {
            0 => {
                if context.predicate {
                    v[0]
                } else {
                    v[1]
                }
            }
            4 | 5 => {
                let nan = |bits| exact::read(bits, at) == Number::Nan;
                if nan(v[1]) {
                    v[0]
                } else if nan(v[0]) {
                    v[1]
                } else {
                    let sign = |bits: u32| bits >> (at.0 + at.1) & 1;
                    let less = match order(v[0], v[1]) {
                        Some(std::cmp::Ordering::Equal) => sign(v[0]) > sign(v[1]),
                        order => order == Some(std::cmp::Ordering::Less),
                    };
                    if less == (context.condition == 5) { v[0] } else { v[1] }
                }
            }
            code => {
                if compare(code, order(v[0], v[1])) {
                    v[0]
                } else {
                    v[1]
                }
            }
        },
        "csel" => {
            if compare(context.condition, order(v[2], 0)) {
                v[0]
            } else {
                v[1]
            }
        }
        "mov" => v[0],
        _ => panic!("{name}"),
    }
}

/// Executes an operation on a lane.
pub fn execute(name: &str, operands: &[Operand], context: &Context) -> Outcome {
    let dst = context.dst;
    let bits = dst.size() * 8;
    let ones = (1u128 << bits) as u64;
    let ones = if bits == 64 { !0 } else { ones - 1 };
    let plain =
        operands.iter().all(|operand| operand.ty == dst && !operand.abs && !operand.negate) && !context.saturate;
    // ISA-046: copies.
    if plain && (name == "mov" || name == "sel" && context.condition == 0) {
        let chosen = usize::from(name == "sel" && !context.predicate);
        let raw = operands[chosen].bits & ones;
        let flag = if dst.is_float() {
            compare(
                context.condition,
                match exact::read(raw as u32, format(dst)) {
                    Number::Nan => None,
                    Number::Inf(negative) => {
                        Some(if negative { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater })
                    }
                    Number::Finite(value) if value.is_zero() => Some(std::cmp::Ordering::Equal),
                    Number::Finite(value) => {
                        Some(if value.negative { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater })
                    }
                },
            )
        } else {
            condition(context.condition, integer(&Operand { bits: raw, ..operands[chosen] }, false))
        };
        return Outcome { bits: raw, flag, accumulator: None };
    }
    if !operands.iter().any(|operand| operand.ty.is_float()) {
        let logic = matches!(name, "and" | "or" | "xor" | "not");
        let values: Vec<i128> = operands.iter().map(|operand| integer(operand, logic)).collect();
        if name == "cmp" {
            let flag = compare(context.condition, Some(values[0].cmp(&values[1])));
            return Outcome { bits: if flag { ones } else { 0 }, flag, accumulator: None };
        }
        let (mut value, accumulator) = integers(name, &values, operands, context);
        if dst.is_float() {
            // ISA-045
            // ISA-068: the result is clamped to 0 to 1.
            let value = if context.saturate { value.clamp(0, 1) } else { value };
            let exact = Exact::new(value < 0, value.unsigned_abs() as u64, 0);
            let flag = condition(context.condition, value);
            return Outcome { bits: exact.round(format(dst), context.round).into(), flag, accumulator };
        }
        if context.saturate {
            let (low, high) = limits(dst);
            value = value.clamp(low, high);
        }
        return Outcome { bits: value as u64 & ones, flag: condition(context.condition, value), accumulator };
    }
    let half = operands.iter().all(|operand| operand.ty == Type::Hf) && dst != Type::F;
    let at = if half { HF } else { F };
    let values: Vec<u32> = operands.iter().map(|operand| float(operand, at, context)).collect();
    let number = |bits: u32| exact::read(bits, at);
    let as_f64 = |bits: u32| f64::from(f32::from_bits(widen(bits, at, F)));
    if name == "cmp" {
        let flag = compare(context.condition, as_f64(values[0]).partial_cmp(&as_f64(values[1])));
        return Outcome { bits: if flag { ones } else { 0 }, flag, accumulator: None };
    }
    let mut result = floats(name, &values, at, context);
    if context.saturate && dst.is_float() {
        // ISA-068
        let value = as_f64(result);
        let one = if at == HF { 0x3c00 } else { 0x3f80_0000 };
        result = if value >= 1.0 {
            one
        } else if value > 0.0 {
            result
        } else {
            0
        };
    }
    let flag = compare(context.condition, as_f64(result).partial_cmp(&0.0));
    if !dst.is_float() {
        let (low, high) = limits(dst);
        let value = match number(result) {
            Number::Nan => 0,
            Number::Inf(negative) => {
                if negative {
                    low
                } else {
                    high
                }
            }
            Number::Finite(value) => value.truncate().clamp(low, high),
        };
        return Outcome { bits: value as u64 & ones, flag, accumulator: None };
    }
    let to = format(dst);
    let flush = |bits: u32, at: Format| {
        let keeps = context.keeps[usize::from(at == HF)];
        if !keeps && bits >> at.0 & ((1 << at.1) - 1) == 0 { bits & 1 << (at.0 + at.1) } else { bits }
    };
    let flushed = flush(result, at);
    let converted = match exact::read(flushed, at) {
        _ if to == at => flushed,
        Number::Nan => exact::nan(to),
        Number::Inf(negative) => exact::infinity(to, negative),
        Number::Finite(value) => flush(value.round(to, context.round), to),
    };
    Outcome { bits: converted.into(), flag, accumulator: None }
}
