// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on all lanes of an instruction at once, one function for each operation and number of lanes.
//!
//! A lane is 32 bits: an integer widened by its type, or a float. The functions exist twice: for any host, and for x86
//! hosts with AVX2 and FMA. Both are made of the same source.

use super::operand::{Fetch, Input, Store};
use super::thread::{ACC, Thread};
use super::uop::{Functions, LaneFunction, Uop};

/// An operation on a lane.
trait Op {
    /// Number of sources.
    const SOURCES: usize;
    /// The result is all ones or zeros, and goes to the flag.
    const COMPARES: bool = false;
    /// The predicate chooses between the sources instead of enabling lanes.
    const SELECTS: bool = false;

    fn lane(uop: &Uop, a: u32, b: u32, c: u32) -> u32;

    /// What AccWrEn writes.
    #[inline(always)]
    fn accumulator(_uop: &Uop, _a: u32, _b: u32, result: u32) -> u32 {
        result
    }
}

macro_rules! operations {
    ($( $name:ident ($uop:ident, $($arg:ident),+) $(acc $acc:expr,)? $(compares $compares:literal,)? $(selects $selects:literal,)? => $body:expr; )*) => {
        /// An operation that has functions on lanes.
        #[allow(missing_docs, reason = "named like the instructions, with the type in front or behind")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Operation { $( $name, )* }

        mod ops { $( pub struct $name; )* }

        $(
            impl Op for ops::$name {
                const SOURCES: usize = [$( stringify!($arg) ),+].len();
                $( const COMPARES: bool = $compares; )?
                $( const SELECTS: bool = $selects; )?

                #[inline(always)]
                #[allow(unused_variables, unused_assignments, reason = "operations with fewer sources")]
                fn lane($uop: &Uop, first: u32, second: u32, third: u32) -> u32 {
                    let mut rest = [first, second, third].into_iter();
                    $( let $arg = rest.next().unwrap_or(0); )+
                    $body
                }

                $(
                    #[inline(always)]
                    #[allow(unused_variables, reason = "operations with fewer sources")]
                    fn accumulator($uop: &Uop, a: u32, b: u32, result: u32) -> u32 {
                        $acc(a, b)
                    }
                )?
            }
        )*

        impl Operation {
            /// Number of sources.
            pub fn sources(self) -> usize {
                match self {
                    $( Operation::$name => <ops::$name as Op>::SOURCES, )*
                }
            }
        }

        /// Result of an operation on a lane, whether it compares and whether it selects, and what AccWrEn writes.
        #[inline(always)]
        fn apply(operation: Operation, uop: &Uop, a: u32, b: u32, c: u32) -> (u32, bool, bool, u32) {
            match operation {
                $( Operation::$name => {
                    let result = <ops::$name as Op>::lane(uop, a, b, c);
                    let accumulator = <ops::$name as Op>::accumulator(uop, a, b, result);
                    (result, <ops::$name as Op>::COMPARES, <ops::$name as Op>::SELECTS, accumulator)
                } )*
            }
        }

        /// The functions, compiled with the features of the caller.
        macro_rules! functions {
            ($feature:meta) => {
                #[$feature]
                fn run<O: Op, const LANES: usize>(thread: &mut Thread, uop: &Uop) {
                    body::<O, LANES>(thread, uop);
                }

                #[$feature]
                fn quick<O: Op, const SPLATS: u8>(thread: &mut Thread, uop: &Uop) {
                    quick_body::<O, 16, SPLATS>(thread, uop);
                }

                #[$feature]
                fn shaped<O: Op>(splats: u8) -> LaneFunction {
                    match splats & ((1 << O::SOURCES) - 1) {
                        0 => quick::<O, 0>,
                        1 => quick::<O, 1>,
                        2 => quick::<O, 2>,
                        3 => quick::<O, 3>,
                        4 => quick::<O, 4>,
                        5 => quick::<O, 5>,
                        6 => quick::<O, 6>,
                        _ => quick::<O, 7>,
                    }
                }

                #[$feature]
                fn sized<O: Op>(size: u8, shape: Option<u8>) -> LaneFunction {
                    if let (16, Some(splats)) = (size, shape) {
                        return shaped::<O>(splats);
                    }
                    match size {
                        1 => run::<O, 1>,
                        2 => run::<O, 2>,
                        4 => run::<O, 4>,
                        8 => run::<O, 8>,
                        16 => run::<O, 16>,
                        _ => run::<O, 32>,
                    }
                }

                #[$feature]
                fn plain(operation: Operation, thread: &mut Thread, uop: &Uop) {
                    plain_body(operation, thread, uop);
                }

                /// The functions of an operation on this number of lanes.
                #[$feature]
                pub fn select(operation: Operation, size: u8, shape: Option<u8>) -> Functions {
                    let all = match operation {
                        $( Operation::$name => sized::<ops::$name>(size, shape), )*
                    };
                    Functions { all, plain, operation }
                }
            };
        }
    };
}

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
fn flag(condition: bool) -> u32 {
    0u32.wrapping_sub(u32::from(condition))
}

/// A result that is a NaN is quiet. ISA-132.
#[inline(always)]
fn quiet(bits: u32) -> u32 {
    if f(bits).is_nan() { bits | 0x40_0000 } else { bits }
}

/// Minimum of IEEE 754-2008 with -0 below +0; a NaN gives the other operand. ISA-066.
#[inline(always)]
fn min(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    let smaller = if x < y { a } else { b };
    let equal = if x == y { a | b } else { smaller };
    let no_a = if x.is_nan() { b } else { equal };
    quiet(if y.is_nan() { a } else { no_a })
}

#[inline(always)]
fn max(a: u32, b: u32) -> u32 {
    let (x, y) = (f(a), f(b));
    let greater = if x > y { a } else { b };
    let equal = if x == y { a & b } else { greater };
    let no_a = if x.is_nan() { b } else { equal };
    quiet(if y.is_nan() { a } else { no_a })
}

/// A function of math in double precision, rounded once. ISA-151.
#[inline(always)]
fn math(a: u32, function: fn(f64) -> f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
    let result = function(f64::from(f(a))) as f32;
    result.to_bits()
}

operations! {
    Copy(uop, a) => a;
    FloatCopy(uop, a) => quiet(a);
    FloatAdd(uop, a, b) => (f(a) + f(b)).to_bits();
    FloatMul(uop, a, b) => (f(a) * f(b)).to_bits();
    FloatMad(uop, a, b, c) => f(b).mul_add(f(c), f(a)).to_bits();
    FloatMin(uop, a, b) => min(a, b);
    FloatMax(uop, a, b) => max(a, b);
    FloatFrc(uop, a) => { let x = f(a); let r = x - x.floor(); if r >= 1.0 { 0x3f7f_ffff } else { r.to_bits() } };
    FloatCeil(uop, a) => quiet(f(a).ceil().to_bits());
    FloatFloor(uop, a) => quiet(f(a).floor().to_bits());
    FloatEven(uop, a) => quiet(f(a).round_ties_even().to_bits());
    FloatTrunc(uop, a) => quiet(f(a).trunc().to_bits());
    FloatEq(uop, a, b) compares true, => flag(f(a) == f(b));
    FloatNe(uop, a, b) compares true, => flag(f(a) != f(b));
    FloatGt(uop, a, b) compares true, => flag(f(a) > f(b));
    FloatGe(uop, a, b) compares true, => flag(f(a) >= f(b));
    FloatLt(uop, a, b) compares true, => flag(f(a) < f(b));
    FloatLe(uop, a, b) compares true, => flag(f(a) <= f(b));
    FloatUn(uop, a, b) compares true, => flag(f(a).is_nan() | f(b).is_nan());
    FloatCselEq(uop, a, b, c) => quiet(if f(c) == 0.0 { a } else { b });
    FloatCselNe(uop, a, b, c) => quiet(if f(c) != 0.0 { a } else { b });
    FloatCselGt(uop, a, b, c) => quiet(if f(c) > 0.0 { a } else { b });
    FloatCselGe(uop, a, b, c) => quiet(if f(c) >= 0.0 { a } else { b });
    FloatCselLt(uop, a, b, c) => quiet(if f(c) < 0.0 { a } else { b });
    FloatCselLe(uop, a, b, c) => quiet(if f(c) <= 0.0 { a } else { b });
    FromSigned(uop, a) => (a.cast_signed() as f32).to_bits();
    FromUnsigned(uop, a) => (a as f32).to_bits();
    ToSigned(uop, a) => (f(a) as i32).cast_unsigned();
    ToUnsigned(uop, a) => f(a) as u32;
    MathInv(uop, a) => math(a, |x| 1.0 / x);
    MathSqrt(uop, a) => math(a, f64::sqrt);
    MathRsqrt(uop, a) => math(a, |x| 1.0 / x.sqrt());
    MathLog(uop, a) => math(a, f64::log2);
    MathExp(uop, a) => math(a, f64::exp2);
    MathSin(uop, a) => math(a, f64::sin);
    MathCos(uop, a) => math(a, f64::cos);
    Add(uop, a, b) => a.wrapping_add(b);
    Add3(uop, a, b, c) => a.wrapping_add(b).wrapping_add(c);
    Mul(uop, a, b) => a.wrapping_mul(b);
    Mad(uop, a, b, c) => a.wrapping_add(b.wrapping_mul(c));
    And(uop, a, b) => a & b;
    Or(uop, a, b) => a | b;
    Xor(uop, a, b) => a ^ b;
    Not(uop, a) => !a;
    Shl(uop, a, b) => a << (b & 31);
    Shr(uop, a, b) => a >> (b & 31);
    Asr(uop, a, b) => (a.cast_signed() >> (b & 31)).cast_unsigned();
    Ror(uop, a, b) => a.rotate_right(b & 31);
    Rol(uop, a, b) => a.rotate_left(b & 31);
    Bfn(uop, a, b, c) => bitwise(uop.function, a, b, c);
    Bfrev(uop, a) => a.reverse_bits();
    Bfe(uop, a, b, c) => {
        let (width, value) = (a & 31, c >> (b & 31));
        value & ((1 << width) - 1)
    };
    BfeSigned(uop, a, b, c) => {
        let (width, offset) = (a & 31, b & 31);
        let value = (c.cast_signed() >> offset).cast_unsigned() & ((1 << width) - 1);
        let sign = if width == 0 { 0 } else { 1 << (width - 1) };
        (value ^ sign).wrapping_sub(sign)
    };
    Bfi1(uop, a, b) => ((1 << (a & 31)) - 1) << (b & 31);
    Bfi2(uop, a, b, c) => {
        let shift = if a == 0 { 0 } else { a.trailing_zeros() };
        b << shift & a | c & !a
    };
    Cbit(uop, a) => a.count_ones();
    Lzd(uop, a) => a.leading_zeros();
    Fbl(uop, a) => if a == 0 { !0 } else { a.trailing_zeros() };
    Fbh(uop, a) => if a == 0 { !0 } else { a.leading_zeros() };
    FbhSigned(uop, a) => {
        let same = if a >> 31 != 0 { !a } else { a };
        if same == 0 { !0 } else { same.leading_zeros() }
    };
    Addc(uop, a, b) acc |a: u32, b: u32| u32::from(a.checked_add(b).is_none()), => a.wrapping_add(b);
    Subb(uop, a, b) acc |a: u32, b: u32| u32::from(a < b), => a.wrapping_sub(b);
    // ISA-120: with AccWrEn the high dword, and the low one in the accumulator.
    MulHigh(uop, a, b) acc |a: u32, b: u32| a.wrapping_mul(b), => (u64::from(a) * u64::from(b) >> 32) as u32;
    MulHighSigned(uop, a, b) acc |a: u32, b: u32| a.wrapping_mul(b), => {
        (i64::from(a.cast_signed()) * i64::from(b.cast_signed()) >> 32) as u32
    };
    MulHighMixed(uop, a, b) acc |a: u32, b: u32| a.wrapping_mul(b), => {
        (i64::from(a.cast_signed()) * i64::from(b) >> 32) as u32
    };
    Dp4aUnsigned(uop, a, b, c) => a.wrapping_add(dot(b, c, false, false));
    Dp4aSigned(uop, a, b, c) => a.wrapping_add(dot(b, c, true, true));
    Dp4aLeft(uop, a, b, c) => a.wrapping_add(dot(b, c, true, false));
    Dp4aRight(uop, a, b, c) => a.wrapping_add(dot(b, c, false, true));
    Eq(uop, a, b) compares true, => flag(a == b);
    Ne(uop, a, b) compares true, => flag(a != b);
    Gt(uop, a, b) compares true, => flag(a > b);
    Ge(uop, a, b) compares true, => flag(a >= b);
    Lt(uop, a, b) compares true, => flag(a < b);
    Le(uop, a, b) compares true, => flag(a <= b);
    GtSigned(uop, a, b) compares true, => flag(a.cast_signed() > b.cast_signed());
    GeSigned(uop, a, b) compares true, => flag(a.cast_signed() >= b.cast_signed());
    LtSigned(uop, a, b) compares true, => flag(a.cast_signed() < b.cast_signed());
    LeSigned(uop, a, b) compares true, => flag(a.cast_signed() <= b.cast_signed());
    Min(uop, a, b) => a.min(b);
    Max(uop, a, b) => a.max(b);
    MinSigned(uop, a, b) => a.cast_signed().min(b.cast_signed()).cast_unsigned();
    MaxSigned(uop, a, b) => a.cast_signed().max(b.cast_signed()).cast_unsigned();
    Select(uop, a, b) selects true, => a ^ b;
}

/// ISA-017: the truth table's index is a | b << 1 | c << 2.
#[inline(always)]
fn bitwise(table: u8, a: u32, b: u32, c: u32) -> u32 {
    let term = |index: u8| flag(table >> index & 1 != 0);
    let choose = |bits: u32, one: u32, zero: u32| zero ^ (bits & (one ^ zero));
    let pair = |index| choose(a, term(index + 1), term(index));
    choose(c, choose(b, pair(6), pair(4)), choose(b, pair(2), pair(0)))
}

/// Dot product of four bytes, each side signed or not. ISA-119.
#[inline(always)]
fn dot(a: u32, b: u32, signed_a: bool, signed_b: bool) -> u32 {
    let byte = |value: u32, index: u32, signed: bool| {
        let byte = (value >> (index * 8)) as u8;
        if signed { byte.cast_signed() as u32 } else { u32::from(byte) }
    };
    (0..4).fold(0u32, |sum, index| sum.wrapping_add(byte(a, index, signed_a).wrapping_mul(byte(b, index, signed_b))))
}

#[inline(always)]
fn fetch<const LANES: usize>(thread: &Thread, input: &Input) -> [u32; LANES] {
    let mut lanes = match input.fetch {
        Fetch::Packed => packed(thread, input.base as usize),
        Fetch::Constant => [input.bits as u32; LANES],
        Fetch::Scalar => [thread.u32(input.base as usize); LANES],
        Fetch::Gather => gather(thread, input),
    };
    if input.modified {
        for lane in &mut lanes {
            *lane = (*lane & input.and ^ input.xor).wrapping_add(input.add);
        }
    }
    lanes
}

#[inline(always)]
fn packed<const LANES: usize>(thread: &Thread, at: usize) -> [u32; LANES] {
    let mut raw = [[0; 4]; LANES];
    if let Some(bytes) = thread.file.get(at..at + LANES * 4) {
        // Copied whole, so that the loads are as wide as the stores before them.
        raw.copy_from_slice(bytes.as_chunks::<4>().0);
    }
    raw.map(u32::from_le_bytes)
}

#[inline(never)]
fn gather<const LANES: usize>(thread: &Thread, input: &Input) -> [u32; LANES] {
    let mut lanes = [0; LANES];
    for (index, lane) in (0..).zip(&mut lanes) {
        *lane = input.widened(thread, index);
    }
    lanes
}

/// Writes packed lanes of 32 bits, those that are enabled.
#[inline(always)]
fn store<const LANES: usize>(thread: &mut Thread, at: usize, lanes: &[u32; LANES], enabled: u32, all: u32) {
    let mut chosen = *lanes;
    if enabled != all {
        let keep = packed::<LANES>(thread, at);
        for index in 0..LANES {
            chosen[index] = if enabled & 1 << index != 0 { lanes[index] } else { keep[index] };
        }
    }
    if let Some(bytes) = thread.file.get_mut(at..at + LANES * 4) {
        bytes.as_chunks_mut::<4>().0.copy_from_slice(&chosen.map(u32::to_le_bytes));
    }
}

#[inline(always)]
fn body<O: Op, const LANES: usize>(thread: &mut Thread, uop: &Uop) {
    let all = uop.all();
    let (channels, chosen) =
        if O::SELECTS { (uop.channels(thread), uop.predicate_bits(thread)) } else { (uop.enabled(thread), 0) };
    let a = fetch::<LANES>(thread, &uop.src[0]);
    let b = if O::SOURCES > 1 { fetch::<LANES>(thread, &uop.src[1]) } else { [0; LANES] };
    let c = if O::SOURCES > 2 { fetch::<LANES>(thread, &uop.src[2]) } else { [0; LANES] };
    let mut result = [0; LANES];
    if O::SELECTS {
        for index in 0..LANES {
            result[index] = if chosen & 1 << index != 0 { a[index] } else { b[index] };
        }
    } else {
        for index in 0..LANES {
            result[index] = O::lane(uop, a[index], b[index], c[index]);
        }
    }
    if uop.saturate {
        // ISA-068: NaN gives 0.
        for lane in &mut result {
            let value = f(*lane);
            *lane = if value > 0.0 { value.min(1.0) } else { 0.0 }.to_bits();
        }
    }
    if O::COMPARES {
        let mut bits = 0;
        for (index, lane) in result.iter().enumerate() {
            bits |= *lane & 1 << index;
        }
        uop.write_flag(thread, bits, channels);
    } else if uop.condition != 0 {
        let bits = conditions(uop, &result);
        uop.write_flag(thread, bits, channels);
    }
    match uop.dst.store {
        Store::Packed => store(thread, uop.dst.base as usize, &result, channels, all),
        Store::Null => {}
        Store::Scatter => uop.dst.scatter(thread, &result, channels, uop.float),
    }
    if uop.acc_write {
        let mut accumulator = [0; LANES];
        for index in 0..LANES {
            accumulator[index] = O::accumulator(uop, a[index], b[index], result[index]);
        }
        store(thread, ACC, &accumulator, channels, all);
    }
}

/// The shape of an instruction's operands, if it is among those of [`quick_body`]: bit `n` is set if source `n` is one value
/// for all lanes.
pub fn shape(uop: &Uop, sources: usize) -> Option<u8> {
    let plain = !uop.saturate && uop.condition == 0 && !uop.acc_write && uop.dst.store != Store::Scatter;
    let mut splats = 0;
    for (index, input) in uop.src[..sources].iter().enumerate() {
        match input.fetch {
            _ if input.modified => return None,
            Fetch::Packed => {}
            Fetch::Constant | Fetch::Scalar => splats |= 1 << index,
            Fetch::Gather => return None,
        }
    }
    plain.then_some(splats)
}

/// The body of an operation without modifiers on packed or uniform operands, which most instructions have.
#[inline(always)]
fn quick_body<O: Op, const LANES: usize, const SPLATS: u8>(thread: &mut Thread, uop: &Uop) {
    if O::SELECTS {
        return body::<O, LANES>(thread, uop);
    }
    let source = |index: usize| {
        let input = &uop.src[index];
        if SPLATS >> index & 1 == 0 {
            packed::<LANES>(thread, input.base as usize)
        } else if input.fetch == Fetch::Constant {
            [input.bits as u32; LANES]
        } else {
            [thread.u32(input.base as usize); LANES]
        }
    };
    let a = source(0);
    let b = if O::SOURCES > 1 { source(1) } else { [0; LANES] };
    let c = if O::SOURCES > 2 { source(2) } else { [0; LANES] };
    let mut result = [0; LANES];
    for index in 0..LANES {
        result[index] = O::lane(uop, a[index], b[index], c[index]);
    }
    let enabled = uop.enabled(thread);
    if O::COMPARES {
        let mut bits = 0;
        for (index, lane) in result.iter().enumerate() {
            bits |= *lane & 1 << index;
        }
        uop.write_flag(thread, bits, enabled);
    }
    if uop.dst.store == Store::Packed {
        store(thread, uop.dst.base as usize, &result, enabled, (1u64 << LANES) as u32 - 1);
    }
}

/// A source's lane with its modifier.
#[inline(always)]
fn element(thread: &Thread, input: &Input, lane: u32) -> u32 {
    let value = match input.fetch {
        Fetch::Constant => input.bits as u32,
        Fetch::Packed => thread.u32(input.base as usize + lane as usize * 4),
        Fetch::Scalar => thread.u32(input.base as usize),
        Fetch::Gather => input.widened(thread, lane),
    };
    if input.modified { (value & input.and ^ input.xor).wrapping_add(input.add) } else { value }
}

/// Executes an operation lane by lane.
#[inline(always)]
fn plain_body(operation: Operation, thread: &mut Thread, uop: &Uop) {
    let chosen = uop.predicate_bits(thread);
    let channels = uop.channels(thread);
    let mut results = [(0, 0); 32];
    let mut flags = 0;
    let (mut is_comparison, mut is_selection) = (false, false);
    let count = operation.sources();
    for lane in 0..u32::from(uop.size) {
        let mut values = [0; 3];
        for (value, input) in values.iter_mut().zip(&uop.src[..count]) {
            *value = element(thread, input, lane);
        }
        let [a, b, c] = values;
        let (result, compares, selects, accumulator) = apply(operation, uop, a, b, c);
        (is_comparison, is_selection) = (compares, selects);
        let (mut result, accumulator) = match (selects, chosen >> lane & 1 != 0) {
            (true, true) => (a, a),
            (true, false) => (b, b),
            _ => (result, accumulator),
        };
        if uop.saturate {
            let value = f(result);
            result = if value > 0.0 { value.min(1.0) } else { 0.0 }.to_bits();
        }
        flags |= u32::from(compares && result != 0) << lane;
        results[lane as usize] = (result, accumulator);
    }
    let enabled = if is_selection { channels } else { channels & chosen };
    if is_comparison {
        uop.write_flag(thread, flags, enabled);
    } else if uop.condition != 0 {
        let lanes = results.map(|(result, _)| result);
        let bits = conditions(uop, &lanes[..usize::from(uop.size)]);
        uop.write_flag(thread, bits, enabled);
    }
    for (lane, (result, accumulator)) in (0..).zip(&results[..usize::from(uop.size)]) {
        if enabled >> lane & 1 == 0 {
            continue;
        }
        match uop.dst.store {
            Store::Packed => thread.set_u32(uop.dst.base as usize + lane as usize * 4, *result),
            Store::Null => {}
            Store::Scatter => uop.dst.write(thread, lane, u64::from(uop.dst.narrowed(*result, uop.float))),
        }
        if uop.acc_write {
            let value = if uop.saturate { *result } else { *accumulator };
            thread.set_u32(ACC + lane as usize * 4, value);
        }
    }
}

/// Comparison of an integer result with 0, but for overflow. ISA-064.
#[inline]
pub(super) fn integer_condition<T: Default + PartialOrd>(condition: u8, value: T) -> bool {
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

/// Comparison of results with 0. ISA-064.
#[inline(never)]
fn conditions(uop: &Uop, lanes: &[u32]) -> u32 {
    let holds = |value: u32| {
        if uop.float {
            float_condition(uop.condition, f(value))
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

/// Functions for any host.
mod portable {
    use super::{Functions, LaneFunction, Op, Operation, Thread, Uop, body, ops, plain_body, quick_body};
    functions!(inline);
}

/// Functions for hosts with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Functions, LaneFunction, Op, Operation, Thread, Uop, body, ops, plain_body, quick_body};
    functions!(target_feature(enable = "avx2,fma"));
}

/// Which functions to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// For any host.
    Portable,
    /// With AVX2 and FMA. Made by [`Host::detect`] only.
    Avx2(Detected),
}

/// Proof that the host has the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected(());

impl Host {
    /// The fastest that this host can execute.
    pub fn detect() -> Host {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Host::Avx2(Detected(()));
        }
        Host::Portable
    }

    /// The functions of an operation on this number of lanes.
    pub fn select(self, operation: Operation, size: u8, shape: Option<u8>) -> Functions {
        match self {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "the one call into functions with target features")]
            Host::Avx2(Detected(())) => {
                // SAFETY: a `Detected` exists only if the host has AVX2 and FMA.
                unsafe { avx2::select(operation, size, shape) }
            }
            _ => portable::select(operation, size, shape),
        }
    }
}
