// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The general way to execute an operation on lanes: lane by lane, integers exactly, floats in any mode of cr0, all types.
//!
//! The functions of [`super::lanes`] are for the operations, types and modes that compilers use most; this is for the rest.

mod floating;
mod integer;

use super::condition::{float_condition, integer_condition};
use super::operand::{Input, Store};
use super::thread::{ACC, Thread};
use super::uop::Uop;
use crate::float::{self, BF, F, HF, Round};
use crate::isa::Type;
use crate::isa::table::Lane;

/// A lane's value: an exact integer, or the bits of a float.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(i128),
    Float(u32),
}

/// Type in which an operation is executed. ISA-043.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Int,
    F,
    Hf,
}

impl Domain {
    fn format(self) -> float::Format {
        if self == Domain::Hf { HF } else { F }
    }
}

/// The floating-point mode.
#[derive(Clone, Copy)]
struct Mode {
    round: Round,
    keeps_f: bool,
    keeps_hf: bool,
}

impl Mode {
    fn flush(self, format: float::Format, bits: u32) -> u32 {
        let keeps = if format == HF { self.keeps_hf } else { self.keeps_f };
        if keeps { bits } else { format.flush(bits) }
    }
}

/// Parts of an operation that are the same for all lanes.
struct Setting<'u> {
    uop: &'u Uop,
    lane: Lane,
    domain: Domain,
    mode: Mode,
    sources: usize,
}

fn domain(uop: &Uop, sources: usize) -> Domain {
    let types = || uop.src[..sources].iter().map(|source| source.ty);
    if !types().any(Type::is_float) {
        Domain::Int
    } else if types().all(|ty| ty == Type::Hf) && uop.dst.ty != Type::F {
        Domain::Hf
    } else {
        Domain::F
    }
}

/// Executes `lane` of a uop. `modifier` is the function of math, or the condition of an instruction that reads it.
pub fn execute(thread: &mut Thread, uop: &Uop, lane: Lane, sources: usize, modifier: u8) {
    let selects = lane == Lane::Sel && modifier == 0;
    // ISA-131: sel by the predicate keeps denormals.
    let mode =
        Mode { round: thread.round(), keeps_f: selects || thread.keeps_f(), keeps_hf: selects || thread.keeps_hf() };
    let setting = Setting { uop, lane, domain: domain(uop, sources), mode, sources };
    let enabled = if selects { uop.channels(thread) } else { uop.enabled(thread) };
    let chosen = uop.predicate_bits(thread);
    let mut results = [0u64; 32];
    let mut accumulators = [None; 32];
    let mut flags = 0u32;
    for index in 0..u32::from(uop.size) {
        if enabled >> index & 1 == 0 {
            continue;
        }
        let (result, accumulator, flag) = one(&setting, thread, index, modifier, chosen >> index & 1 != 0);
        results[index as usize] = result;
        if uop.acc_write {
            accumulators[index as usize] = accumulator;
        }
        flags |= u32::from(flag) << index;
    }
    let mut dst = uop.dst;
    if dst.indirect.is_some() {
        dst.base = dst.lane_offset(thread, 0) as u32;
        (dst.indirect, dst.general) = (None, true);
    }
    let acc_unit = uop.dst.ty.size() as usize;
    for index in 0..u32::from(uop.size) {
        if enabled >> index & 1 == 0 {
            continue;
        }
        let result = results[index as usize];
        if dst.store != Store::Null {
            dst.write(thread, index, result);
        }
        if uop.acc_write {
            let value = accumulators[index as usize].unwrap_or(result);
            let at = ACC + index as usize * acc_unit;
            if let Some(into) = thread.file.get_mut(at..at + acc_unit) {
                into.copy_from_slice(&value.to_le_bytes()[..acc_unit]);
            }
        }
    }
    if uop.condition != 0 {
        uop.write_flag(thread, flags, enabled);
    }
}

/// Result as bits of the destination's type, what AccWrEn writes if that differs, and the flag.
fn one(setting: &Setting<'_>, thread: &Thread, lane: u32, modifier: u8, chosen: bool) -> (u64, Option<u64>, bool) {
    let uop = setting.uop;
    let dst = uop.dst.ty;
    if is_raw(setting, modifier) {
        let input = &uop.src[usize::from(setting.lane == Lane::Sel && !chosen)];
        let raw = input.raw(thread, lane);
        return (raw, None, condition(uop.condition, raw_value(raw, input.ty), dst));
    }
    let mut values = [Value::Int(0); 3];
    for (value, input) in values.iter_mut().zip(&uop.src[..setting.sources]) {
        *value = read(setting, thread, input, lane);
    }
    let [a, b, c] = values;
    if matches!(setting.lane, Lane::Cmp | Lane::Cmpn) {
        let holds = compare(setting, modifier, a, b);
        let ones = if holds { ones(dst) } else { 0 };
        return (ones, None, holds);
    }
    // ISA-064: of a float, an infinite result of finite numbers.
    let mut overflow = false;
    let (result, accumulator) = match (a, b, c) {
        (Value::Int(a), Value::Int(b), Value::Int(c)) => {
            let acc = extend(accumulator_bits(thread, dst, lane), dst);
            let (mut result, accumulator) = integer::apply(setting, [a, b, c], acc, modifier, chosen);
            if is_logic(setting.lane) {
                result = in_32_bits(result, &uop.src[..setting.sources]);
            }
            (Value::Int(result), accumulator)
        }
        _ => {
            let bits = |value| match value {
                Value::Float(bits) => bits,
                Value::Int(_) => 0,
            };
            let acc = match dst {
                Type::Bf => setting.mode.flush(F, (accumulator_bits(thread, dst, lane) as u32) << 16),
                _ => setting.mode.flush(setting.domain.format(), accumulator_bits(thread, dst, lane) as u32),
            };
            let format = setting.domain.format();
            let sources = [bits(a), bits(b), bits(c), if setting.lane == Lane::Mac { acc } else { 0 }];
            let finite = |bits: &u32| bits & format.infinity() != format.infinity();
            let result = floating::apply(setting, [bits(a), bits(b), bits(c)], acc, modifier, chosen);
            // ISA-132: a NaN is quiet, also that of an operation that only chooses. ISA-131: a denormal result is flushed
            // before it is compared.
            let result = quiet(format, setting.mode.flush(format, result));
            overflow = result & !format.sign() == format.infinity() && sources.iter().all(finite);
            (Value::Float(result), None)
        }
    };
    let result = if uop.saturate { saturate(setting, result, dst) } else { result };
    let bits = convert(setting, result, dst);
    let flag = match result {
        Value::Float(_) if uop.condition == 8 => overflow && !uop.saturate,
        // ISA-064: an integer is compared as the destination has it.
        _ if uop.condition != 8 && !dst.is_float() => integer_condition(uop.condition, extend(bits, dst)),
        _ => condition_in(setting, uop.condition, result, dst),
    };
    (bits, accumulator, flag)
}

fn is_logic(lane: Lane) -> bool {
    matches!(lane, Lane::Not | Lane::And | Lane::Or | Lane::Xor)
}

/// The low 32 bits of a logic operation, signed if a source is. ISA-114.
fn in_32_bits(value: i128, sources: &[Input]) -> i128 {
    let low = value as u32;
    let signed = sources.iter().any(|source| source.ty.is_signed());
    if signed { i128::from(low.cast_signed()) } else { i128::from(low) }
}

/// A lane's element of acc0, which has the layout of general registers. ISA-082.
fn accumulator_bits(thread: &Thread, ty: Type, lane: u32) -> u64 {
    let lane = lane as usize;
    match ty.size() {
        1 => u64::from(thread.file.get(ACC + lane).copied().unwrap_or(0)),
        2 => u64::from(thread.u16(ACC + lane * 2)),
        _ => u64::from(thread.u32(ACC + lane * 4)),
    }
}

/// True for copies without any conversion. ISA-046.
fn is_raw(setting: &Setting<'_>, modifier: u8) -> bool {
    let (uop, sources) = (setting.uop, setting.sources);
    let copies = setting.lane == Lane::Mov || setting.lane == Lane::Sel && modifier == 0;
    copies
        && !uop.saturate
        && uop.src[..sources].iter().all(|source| {
            // ISA-042: an immediate of restricted floats is read as floats.
            let ty = if source.ty == Type::Vf { Type::F } else { source.ty };
            ty == uop.dst.ty && !source.abs && !source.negate
        })
}

fn raw_value(raw: u64, ty: Type) -> Value {
    if ty.is_float() { Value::Float(widen_float(raw, ty)) } else { Value::Int(extend(raw, ty)) }
}

fn widen_float(raw: u64, ty: Type) -> u32 {
    match ty {
        Type::Bf => (raw as u32) << 16,
        Type::Hf => F.convert(raw as u32, HF, Round::NearestEven),
        _ => raw as u32,
    }
}

/// An integer by its type.
fn extend(raw: u64, ty: Type) -> i128 {
    match ty {
        Type::Ub | Type::U4 | Type::U2 => i128::from(raw as u8),
        Type::B | Type::S4 | Type::S2 => i128::from(raw as i8),
        Type::Uw | Type::Uv => i128::from(raw as u16),
        Type::W | Type::V => i128::from(raw as i16),
        Type::D => i128::from(raw as i32),
        Type::Q => i128::from(raw as i64),
        Type::Uq => i128::from(raw),
        _ => i128::from(raw as u32),
    }
}

/// A source in the operation's domain, with its modifiers. ISA-058, ISA-131.
fn read(setting: &Setting<'_>, thread: &Thread, input: &Input, lane: u32) -> Value {
    let raw = input.raw(thread, lane);
    if setting.domain == Domain::Int {
        let mut value = extend(raw, input.ty);
        if input.abs {
            value = value.abs();
        }
        if input.negate {
            value = if is_logic(setting.lane) { !value } else { -value };
        }
        // ISA-058: two's complement, in which the smallest number of a signed type stays as it is. It does not where the
        // instruction saturates, nor as the absolute value in a wider destination.
        let exact = setting.uop.saturate || !input.negate && setting.uop.dst.ty.size() > input.ty.size();
        if (input.abs || input.negate) && input.ty.is_signed() && !exact {
            value = extend(value as u64, input.ty);
        }
        return Value::Int(value);
    }
    let format = setting.domain.format();
    let bits = match input.ty {
        Type::Hf => {
            let bits = setting.mode.flush(HF, raw as u32 & 0xffff);
            if setting.domain == Domain::Hf { bits } else { F.convert(bits, HF, Round::NearestEven) }
        }
        Type::Bf => setting.mode.flush(F, (raw as u32) << 16),
        Type::F | Type::Vf | Type::Df => setting.mode.flush(F, raw as u32),
        // An integer beside a float.
        ty => format.from_integer(extend(raw, ty), setting.mode.round),
    };
    let sign = format.sign();
    let bits = if input.abs { bits & !sign } else { bits };
    Value::Float(if input.negate { bits ^ sign } else { bits })
}

/// All ones of a type.
fn ones(ty: Type) -> u64 {
    if ty.size() == 8 { !0 } else { (1 << (ty.size() * 8)) - 1 }
}

fn as_f32(domain: Domain, bits: u32) -> f32 {
    f32::from_bits(if domain == Domain::Hf { F.convert(bits, HF, Round::NearestEven) } else { bits })
}

/// ISA-065.
fn compare(setting: &Setting<'_>, condition: u8, a: Value, b: Value) -> bool {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        (Value::Float(a), Value::Float(b)) => {
            let (a, b) = (as_f32(setting.domain, a), as_f32(setting.domain, b));
            // For minima and maxima: the second operand is not a number, so the first is chosen.
            if setting.lane == Lane::Cmpn && b.is_nan() {
                return true;
            }
            a.partial_cmp(&b)
        }
        _ => None,
    };
    match condition {
        1 => order.is_some_and(|order| order.is_eq()),
        2 => order.is_none_or(|order| order.is_ne()),
        3 => order.is_some_and(|order| order.is_gt()),
        4 => order.is_some_and(|order| order.is_ge()),
        5 => order.is_some_and(|order| order.is_lt()),
        6 => order.is_some_and(|order| order.is_le()),
        9 => order.is_none(),
        _ => false,
    }
}

/// Comparison of a result with 0. ISA-064.
fn condition(condition: u8, value: Value, dst: Type) -> bool {
    match value {
        Value::Int(value) if condition == 8 => !range(dst).is_none_or(|(low, high)| (low..=high).contains(&value)),
        Value::Int(value) => integer_condition(condition, value),
        Value::Float(bits) => float_condition(condition, f32::from_bits(bits)),
    }
}

fn condition_in(setting: &Setting<'_>, code: u8, value: Value, dst: Type) -> bool {
    let value = match value {
        Value::Float(bits) => Value::Float(as_f32(setting.domain, bits).to_bits()),
        value => value,
    };
    condition(code, value, dst)
}

/// Smallest and largest number of an integer type.
fn range(ty: Type) -> Option<(i128, i128)> {
    if ty.is_float() {
        return None;
    }
    let bits = ty.size() * 8;
    Some(if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
}

/// ISA-044, ISA-068.
fn saturate(setting: &Setting<'_>, value: Value, dst: Type) -> Value {
    match (value, range(dst)) {
        (Value::Int(value), Some((low, high))) => Value::Int(value.clamp(low, high)),
        (Value::Int(value), None) => Value::Int(value.clamp(0, 1)),
        // The conversion clamps.
        (Value::Float(_), Some(_)) => value,
        (Value::Float(bits), None) => {
            let number = as_f32(setting.domain, bits);
            let one = if setting.domain == Domain::Hf { 0x3c00 } else { 0x3f80_0000 };
            Value::Float(if number >= 1.0 {
                one
            } else if number > 0.0 {
                bits
            } else {
                0
            })
        }
    }
}

/// The bits of a result in the destination's type. ISA-044, ISA-045.
fn convert(setting: &Setting<'_>, value: Value, dst: Type) -> u64 {
    let mode = setting.mode;
    match value {
        Value::Int(value) => match dst {
            Type::F => u64::from(F.from_integer(value, mode.round)),
            Type::Hf => u64::from(HF.from_integer(value, mode.round)),
            Type::Bf => u64::from(BF.from_integer(value, mode.round)),
            _ => value as u64 & ones(dst),
        },
        Value::Float(bits) => {
            let from = setting.domain.format();
            let to = match dst {
                Type::F => F,
                Type::Hf => HF,
                Type::Bf => BF,
                _ => return truncate(as_f32(setting.domain, bits), dst),
            };
            if to == from {
                return u64::from(mode.flush(from, bits));
            }
            u64::from(mode.flush(to, to.convert(mode.flush(from, bits), from, mode.round)))
        }
    }
}

/// Float to integer: toward zero, clamped, NaN gives 0. ISA-045.
fn truncate(value: f32, dst: Type) -> u64 {
    let Some((low, high)) = range(dst) else { return 0 };
    // The conversion is exact up to the clamp, which the largest type of 64 bits is within.
    (value as i128).clamp(low, high) as u64 & ones(dst)
}

/// True if sel with this condition gives the first operand. ISA-066.
fn is_first<T: PartialOrd>(condition: u8, a: &T, b: &T, chosen: bool) -> bool {
    match condition {
        0 => chosen,
        1 => a == b,
        2 => a != b,
        3 => a > b,
        4 => a >= b,
        5 => a < b,
        6 => a <= b,
        9 => a.partial_cmp(b).is_none(),
        _ => false,
    }
}

fn quiet(format: float::Format, bits: u32) -> u32 {
    if format.is_nan(bits) { bits | 1 << (format.mantissa - 1) } else { bits }
}
