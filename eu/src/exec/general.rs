// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The general way to execute an operation on lanes: lane by lane, integers exactly, floats in any mode of cr0, all
//! types of at most 32 bits, and copies of 64.
//!
//! The functions of [`super::lanes`] are for the operations, types and modes that compilers use most; this is for the
//! rest.

mod floating;
mod integer;

use std::cmp::Ordering;

use super::operand::{Input, Output};
use super::thread::{ACC, ACC_HIGH, ACCUMULATORS, Thread};
use super::uop::Uop;
use crate::float::{self, BF, F, HF, Round};
use crate::isa::table::LaneOp;
use crate::isa::{Condition, Type};

/// A lane's value: an exact integer, or the bits of a float in the format of the execution type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Int(i128),
    Float(u32),
}

/// Type in which an operation is executed. ISA-043.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecutionType {
    /// Exact integers.
    Int,
    /// Floats of 32 bits.
    F,
    /// Floats of 16 bits: all sources are.
    Hf,
}

impl ExecutionType {
    /// Format of floats; that of F for integers.
    fn format(self) -> float::Format {
        if self == ExecutionType::Hf { HF } else { F }
    }

    fn of(uop: &Uop, sources: usize) -> ExecutionType {
        let types = || uop.src[..sources].iter().map(|source| source.ty);
        if !types().any(Type::is_float) {
            ExecutionType::Int
        } else if types().all(|ty| ty == Type::Hf) && uop.dst.ty != Type::F {
            ExecutionType::Hf
        } else {
            ExecutionType::F
        }
    }
}

/// The floating-point mode. ISA-131.
#[derive(Clone, Copy)]
struct FloatMode {
    round: Round,
    /// Denormals of F and BF are kept.
    keeps_f: bool,
    /// Denormals of HF are kept.
    keeps_hf: bool,
}

impl FloatMode {
    fn flush(self, format: float::Format, bits: u32) -> u32 {
        let keeps = if format == HF { self.keeps_hf } else { self.keeps_f };
        if keeps { bits } else { format.flush(bits) }
    }
}

/// Parts of an operation that are the same for all lanes.
struct Context<'u> {
    uop: &'u Uop,
    operation: LaneOp,
    execution: ExecutionType,
    mode: FloatMode,
    /// Number of sources, at most 3.
    sources: usize,
    /// Function of math, 1 to 7.
    function: u8,
    /// Condition that the operation reads: of a comparison, and that by which sel and csel choose. `None` for sel by
    /// the predicate.
    condition: Option<Condition>,
}

impl Context<'_> {
    fn inputs(&self) -> &[Input] {
        &self.uop.src[..self.sources]
    }

    /// The number that a float of the execution type is.
    fn number(&self, bits: u32) -> f32 {
        f32::from_bits(if self.execution == ExecutionType::Hf { F.convert(bits, HF, Round::NearestEven) } else { bits })
    }
}

/// What an operation gives in one lane.
struct LaneResult {
    /// Bits of the destination's type.
    bits: u64,
    /// What AccWrEn writes, if it differs: a dword with its high bits.
    accumulator: Option<u64>,
    /// Bits 63:32 of an integer, for accumulators. ISA-082.
    high: u32,
    /// The condition of the instruction holds.
    flag: bool,
}

impl LaneResult {
    /// A result of the type `ty`.
    fn plain(bits: u64, ty: Type, flag: bool) -> LaneResult {
        LaneResult { bits, accumulator: None, high: (extend(bits, ty) >> 32) as u32, flag }
    }
}

/// Executes a uop of at most 32 lanes and three sources. `modifier` is bits 95:92 of the instruction: the function of
/// math, the condition that cmp, cmpn, sel and csel read; other operations have their condition in the uop, and do not
/// read this one.
///
/// All lanes are computed before the first is written, as destination, address registers, accumulator and flag may be
/// sources.
pub fn execute(thread: &mut Thread, uop: &Uop, operation: LaneOp, sources: usize, modifier: u8) {
    let selects = operation == LaneOp::Sel && modifier == 0;
    // ISA-131: sel by the predicate keeps denormals.
    let mode = FloatMode {
        round: thread.round(),
        keeps_f: selects || thread.keeps_f(),
        keeps_hf: selects || thread.keeps_hf(),
    };
    let context = Context {
        uop,
        operation,
        execution: ExecutionType::of(uop, sources),
        mode,
        sources,
        function: modifier,
        condition: if operation == LaneOp::Math { None } else { Condition::from_code(modifier) },
    };
    let enabled = if selects { uop.channels(thread) } else { uop.enabled(thread) };
    let predicate = uop.predicate_bits(thread);
    let mut results = [0u64; 32];
    let mut accumulators = [0u64; 32];
    let mut highs = [[0u32; 2]; 32];
    let mut flags = 0u32;
    let lanes = || (0..u32::from(uop.size)).filter(|lane| enabled >> lane & 1 != 0);
    for lane in lanes() {
        let result = execute_lane(&context, thread, lane, predicate >> lane & 1 != 0);
        results[lane as usize] = result.bits;
        accumulators[lane as usize] = result.accumulator.unwrap_or(result.bits);
        highs[lane as usize] = [result.high, result.accumulator.map_or(result.high, |wide| (wide >> 32) as u32)];
        flags |= u32::from(result.flag) << lane;
    }
    let dst = uop.dst.resolved(thread);
    for lane in lanes() {
        dst.write(thread, lane, results[lane as usize]);
        if uop.acc_write {
            let range = accumulator_range(&dst, lane);
            let size = range.len();
            thread.file[range].copy_from_slice(&accumulators[lane as usize].to_le_bytes()[..size]);
        }
        // ISA-082: dwords have more bits than their registers show.
        if matches!(dst.ty, Type::D | Type::Ud) {
            let named = dst.accumulator().map(|at| (at + lane as usize * usize::from(dst.stride)) % ACCUMULATORS);
            let implicit = uop.acc_write.then(|| accumulator_range(&dst, lane).start - ACC);
            for (at, high) in [named, implicit].into_iter().zip(highs[lane as usize]) {
                if let Some(at) = at {
                    thread.set_u32(ACC_HIGH + at, high);
                }
            }
        }
    }
    if uop.condition.is_some() {
        uop.write_flag(thread, flags, enabled);
    }
}

fn execute_lane(context: &Context<'_>, thread: &Thread, lane: u32, predicate: bool) -> LaneResult {
    let uop = context.uop;
    let dst = uop.dst.ty;
    if is_raw(context) {
        let input = &uop.src[usize::from(context.operation == LaneOp::Sel && !predicate)];
        let raw = input.raw(thread, lane);
        let flag = uop.condition.is_some_and(|condition| condition.holds(raw_order(raw, input.ty)));
        return LaneResult::plain(raw, dst, flag);
    }
    let mut values = [Value::Int(0); 3];
    for (value, input) in values.iter_mut().zip(context.inputs()) {
        *value = read(context, thread, input, lane);
    }
    let [a, b, c] = values;
    if matches!(context.operation, LaneOp::Cmp | LaneOp::Cmpn) {
        let holds = context.condition.is_some_and(|condition| compare(context, condition, a, b));
        return LaneResult::plain(if holds { ones(dst) } else { 0 }, dst, holds);
    }
    let accumulated = match context.operation {
        LaneOp::Mach => Value::Int(wide_accumulator(context, thread, lane)),
        _ => accumulator(context, thread, lane),
    };
    if let (Value::Int(a), Value::Int(b), Value::Int(c), Value::Int(accumulated)) = (a, b, c, accumulated) {
        let (result, accumulator) = integer::apply(context, [a, b, c], accumulated, predicate);
        let result = if is_bitwise(context.operation) { in_32_bits(result, context.inputs()) } else { result };
        return LaneResult { accumulator, ..finish(context, Value::Int(result), false) };
    }
    // Sources that the operation does not have are +0, which is finite.
    let [a, b, c, accumulated] = [a, b, c, accumulated].map(|value| match value {
        Value::Float(bits) => bits,
        Value::Int(_) => 0,
    });
    let format = context.execution.format();
    let result = floating::apply(context, [a, b, c], accumulated, predicate);
    // ISA-132: a NaN is quiet, also that of an operation that only chooses. ISA-131: a denormal result is flushed, and
    // that before it is compared, as outputs are.
    let result = format.quiet(context.mode.flush(format, result));
    // ISA-064: the overflow of a float is an infinite result of finite numbers.
    let used = [a, b, c, if context.operation == LaneOp::Mac { accumulated } else { 0 }];
    let finite = |bits: &u32| bits & format.infinity() != format.infinity();
    let overflow = result & !format.sign() == format.infinity() && used.iter().all(finite);
    finish(context, Value::Float(result), overflow)
}

/// The end of an operation: saturation, conversion and condition. `overflow` is that of a float.
///
/// ISA-064 says that the condition compares the result before the conversion; of an integer destination, compiled code
/// needs the converted one (docs/differential.md).
fn finish(context: &Context<'_>, result: Value, overflow: bool) -> LaneResult {
    let uop = context.uop;
    let dst = context.uop.dst.ty;
    let result = if uop.saturate { saturate(context, result, dst) } else { result };
    let bits = convert(context, result, dst);
    let flag = uop.condition.is_some_and(|condition| match (condition, result) {
        (Condition::Overflow, Value::Float(_)) => overflow && !uop.saturate,
        (Condition::Overflow, Value::Int(value)) => range(dst).is_some_and(|(low, high)| value < low || value > high),
        _ if !dst.is_float() => condition.holds(Some(extend(bits, dst).cmp(&0))),
        (_, Value::Int(value)) => condition.holds(Some(value.cmp(&0))),
        (_, Value::Float(bits)) => condition.holds(context.number(bits).partial_cmp(&0.0)),
    });
    match result {
        Value::Int(value) => LaneResult { bits, accumulator: None, high: (value >> 32) as u32, flag },
        Value::Float(_) => LaneResult::plain(bits, dst, flag),
    }
}

/// True for the operations with a result of 32 bits.
fn is_bitwise(operation: LaneOp) -> bool {
    matches!(operation, LaneOp::Not | LaneOp::And | LaneOp::Or | LaneOp::Xor | LaneOp::Bfn)
}

/// The low 32 bits of a bitwise operation, signed if a source is. ISA-114 with ISA-043 (docs/differential.md).
fn in_32_bits(value: i128, sources: &[Input]) -> i128 {
    let low = value as u32;
    let signed = sources.iter().any(|source| source.ty.is_signed());
    if signed { i128::from(low.cast_signed()) } else { i128::from(low) }
}

/// Place of a lane's element of acc0, which has the destination's type of at most 32 bits, in the file: accumulators have the
/// layout of general registers. ISA-082.
fn accumulator_range(dst: &Output, lane: u32) -> std::ops::Range<usize> {
    let size = dst.ty.size() as usize;
    let at = ACC + (dst.accumulator_offset() + lane as usize * size) % ACCUMULATORS;
    at..at + size
}

/// A lane's element of acc0, which has the destination's type, as a value of the execution type. ISA-121.
fn accumulator(context: &Context<'_>, thread: &Thread, lane: u32) -> Value {
    let ty = context.uop.dst.ty;
    let bytes = &thread.file[accumulator_range(&context.uop.dst.resolved(thread), lane)];
    value_of(context, bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)), ty)
}

/// The 64 bits of a lane's element of acc0, a dword. ISA-082, ISA-120.
fn wide_accumulator(context: &Context<'_>, thread: &Thread, lane: u32) -> i128 {
    let at = accumulator_range(&context.uop.dst.resolved(thread), lane).start;
    let high = i128::from(thread.u32(at - ACC + ACC_HIGH).cast_signed());
    high << 32 | i128::from(thread.u32(at))
}

/// True for copies without any conversion. ISA-046.
fn is_raw(context: &Context<'_>) -> bool {
    let uop = context.uop;
    let copies = context.operation == LaneOp::Mov || context.operation == LaneOp::Sel && context.condition.is_none();
    copies
        && !uop.saturate
        && context.inputs().iter().all(|source| {
            // ISA-042: an immediate of restricted floats is read as floats.
            let ty = if source.ty == Type::Vf { Type::F } else { source.ty };
            ty == uop.dst.ty && !source.abs && !source.negate
        })
}

/// Order of a value that is copied, and 0. Denormals count.
fn raw_order(raw: u64, ty: Type) -> Option<Ordering> {
    let number = match ty {
        Type::Bf => (raw as u32) << 16,
        Type::Hf => F.convert(raw as u32, HF, Round::NearestEven),
        Type::F | Type::Vf => raw as u32,
        _ => return Some(extend(raw, ty).cmp(&0)),
    };
    f32::from_bits(number).partial_cmp(&0.0)
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

/// Bits of a type as a value of the execution type, without modifiers; denormals are flushed by the mode of their type,
/// and those of HF that are kept are normal in F. ISA-131. 64-bit types are copied, or faults (ISA-041), so that none
/// comes here.
fn value_of(context: &Context<'_>, raw: u64, ty: Type) -> Value {
    if context.execution == ExecutionType::Int {
        return Value::Int(extend(raw, ty));
    }
    let mode = context.mode;
    let to = context.execution.format();
    let (bits, from) = match ty {
        Type::Hf => (mode.flush(HF, raw as u32 & 0xffff), HF),
        Type::Bf => (mode.flush(F, (raw as u32) << 16), F),
        Type::F | Type::Vf => (mode.flush(F, raw as u32), F),
        // An integer beside a float.
        _ => return Value::Float(to.from_integer(extend(raw, ty), mode.round)),
    };
    Value::Float(if from == to { bits } else { to.convert(bits, from, mode.round) })
}

/// A source in the execution type, with its modifiers. ISA-058.
fn read(context: &Context<'_>, thread: &Thread, input: &Input, lane: u32) -> Value {
    match value_of(context, input.raw(thread, lane), input.ty) {
        Value::Int(value) => Value::Int(modify_integer(context, value, input)),
        Value::Float(bits) => {
            let sign = context.execution.format().sign();
            let bits = if input.abs { bits & !sign } else { bits };
            Value::Float(if input.negate { bits ^ sign } else { bits })
        }
    }
}

/// Absolute value and negation. ISA-058 speaks of two's complement, in which the smallest number of a signed type stays
/// as it is: -(-128) of a byte is -128. By what compiled code needs (docs/differential.md) it becomes 128 where the
/// instruction saturates, and as an absolute value in a wider destination.
fn modify_integer(context: &Context<'_>, value: i128, input: &Input) -> i128 {
    let absolute = if input.abs { value.abs() } else { value };
    let modified = match (input.negate, is_bitwise(context.operation)) {
        (false, _) => absolute,
        (true, true) => !absolute,
        (true, false) => -absolute,
    };
    let uop = context.uop;
    let changes_minimum = uop.saturate || !input.negate && uop.dst.ty.size() > input.ty.size();
    if input.ty.is_signed() && !changes_minimum { extend(modified as u64, input.ty) } else { modified }
}

/// All ones of a type.
fn ones(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.size() * 8)
}

/// ISA-065. Unlike cmp, cmpn is true in lt and ge if source 1 is NaN: with sel by this flag, it is a minimum or maximum
/// that gives the operand that is a number. The item speaks of source 0 (docs/differential.md).
fn compare(context: &Context<'_>, condition: Condition, a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => condition.holds(Some(a.cmp(&b))),
        (Value::Float(a), Value::Float(b)) => {
            let (a, b) = (context.number(a), context.number(b));
            let chooses = context.operation == LaneOp::Cmpn && matches!(condition, Condition::Lt | Condition::Ge);
            chooses && b.is_nan() || condition.holds(a.partial_cmp(&b))
        }
        _ => false,
    }
}

/// Smallest and largest number of an integer type of a destination.
fn range(ty: Type) -> Option<(i128, i128)> {
    if ty.is_float() {
        return None;
    }
    let bits = ty.size() * 8;
    Some(if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) })
}

/// ISA-044, ISA-068.
fn saturate(context: &Context<'_>, value: Value, dst: Type) -> Value {
    match (value, range(dst)) {
        (Value::Int(value), Some((low, high))) => Value::Int(value.clamp(low, high)),
        (Value::Int(value), None) => Value::Int(value.clamp(0, 1)),
        // The conversion clamps.
        (Value::Float(_), Some(_)) => value,
        (Value::Float(bits), None) => {
            let number = context.number(bits);
            Value::Float(if number >= 1.0 {
                context.execution.format().one()
            } else if number > 0.0 {
                bits
            } else {
                0
            })
        }
    }
}

/// The bits of a result in the destination's type. ISA-044, ISA-045.
fn convert(context: &Context<'_>, value: Value, dst: Type) -> u64 {
    let mode = context.mode;
    let to = match dst {
        Type::F => F,
        Type::Hf => HF,
        Type::Bf => BF,
        _ => {
            return match value {
                Value::Int(value) => value as u64 & ones(dst),
                Value::Float(bits) => truncate(context.number(bits), dst),
            };
        }
    };
    u64::from(match value {
        Value::Int(value) => to.from_integer(value, mode.round),
        Value::Float(bits) => {
            let from = context.execution.format();
            let bits = mode.flush(from, bits);
            if to == from { bits } else { mode.flush(to, to.convert(bits, from, mode.round)) }
        }
    })
}

/// Float to integer: toward zero, clamped, NaN gives 0. ISA-045.
fn truncate(value: f32, dst: Type) -> u64 {
    let Some((low, high)) = range(dst) else { return 0 };
    // `as` rounds toward zero, and saturates at numbers that are far outside the limits of each type.
    (value as i128).clamp(low, high) as u64 & ones(dst)
}

/// True if sel gives the first operand: by its condition, or by the predicate. ISA-066.
fn is_first<T: PartialOrd>(context: &Context<'_>, a: &T, b: &T, predicate: bool) -> bool {
    context.condition.map_or(predicate, |condition| condition.holds(a.partial_cmp(b)))
}
