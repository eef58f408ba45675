// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on all lanes of an instruction at once, one function for each operation and number of lanes, and products of
//! matrices.
//!
//! A lane is 32 bits: an integer widened by its type, or a float. The functions exist twice: for any host, and for x86
//! hosts with AVX2 and FMA. Both are made of the same source.

mod body;
mod high;
mod rounding;
mod wide;

use super::dpas;
use super::environment::Environment;
use super::message::{
    Message, MessageFault, SendFunction, Shape, consecutive_dwords, gathered_dwords, vectors_of_dwords,
};
use super::thread::Thread;
use super::uop::{LaneFunction, Uop};
pub use body::shape;
use body::{ACCUMULATES, MODIFIED, body, quick_body};
use high::{high_of_bits, high_of_mad, high_of_shift, high_of_sum, sign};
use wide::Wide;

/// An operation on a lane.
trait Op {
    /// Number of sources.
    const SOURCES: usize;
    /// The result is all ones or zeros, and goes to the flag.
    const COMPARES: bool = false;
    /// The predicate chooses between the sources instead of enabling lanes.
    const SELECTS: bool = false;
    /// A product of 64 bits in accumulators.
    const WIDE: Option<Wide> = None;

    fn lane(uop: &Uop, a: u32, b: u32, c: u32) -> u32;

    /// What AccWrEn writes.
    #[inline(always)]
    fn accumulator(_uop: &Uop, _a: u32, _b: u32, result: u32) -> u32 {
        result
    }

    /// Bits 63:32 of the exact result, for accumulators. Sign `n` is all ones if source `n` has a signed type.
    #[inline(always)]
    fn high(_uop: &Uop, _signs: [u32; 3], _sources: [u32; 3], _result: u32) -> u32 {
        0
    }
}

macro_rules! operations {
    ($( $name:ident ($uop:ident, $($arg:ident),+) $(acc $acc:expr,)? $(high $high:expr,)? $(compares $compares:literal,)? $(selects $selects:literal,)? $(wide $wide:ident,)? => $body:expr; )*) => {
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
                $( const WIDE: Option<Wide> = Some(Wide::$wide); )?

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

                $(
                    #[inline(always)]
                    fn high(uop: &Uop, signs: [u32; 3], sources: [u32; 3], result: u32) -> u32 {
                        $high(uop, signs, sources, result)
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

            /// The result is all ones or zeros, and goes to the flag.
            pub fn compares(self) -> bool {
                match self {
                    $( Operation::$name => <ops::$name as Op>::COMPARES, )*
                }
            }
        }

        impl Operation {
            /// Its product of 64 bits is in accumulators.
            pub fn is_wide(self) -> bool {
                match self {
                    $( Operation::$name => <ops::$name as Op>::WIDE.is_some(), )*
                }
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
                fn quick<O: Op, const LANES: usize, const SPLATS: u8>(thread: &mut Thread, uop: &Uop) {
                    quick_body::<O, LANES, SPLATS, false, false>(thread, uop);
                }

                #[$feature]
                fn modified<O: Op, const LANES: usize>(thread: &mut Thread, uop: &Uop) {
                    quick_body::<O, LANES, 0, true, false>(thread, uop);
                }

                #[$feature]
                fn accumulated<O: Op, const LANES: usize>(thread: &mut Thread, uop: &Uop) {
                    quick_body::<O, LANES, 0, false, true>(thread, uop);
                }

                #[$feature]
                fn shaped<O: Op, const LANES: usize>(splats: u8) -> LaneFunction {
                    match splats & ((1 << O::SOURCES) - 1) {
                        // Both are rare together.
                        _ if splats & MODIFIED != 0 && splats & ACCUMULATES != 0 => run::<O, LANES>,
                        _ if splats & MODIFIED != 0 => modified::<O, LANES>,
                        _ if splats & ACCUMULATES != 0 => accumulated::<O, LANES>,
                        0 => quick::<O, LANES, 0>,
                        1 => quick::<O, LANES, 1>,
                        2 => quick::<O, LANES, 2>,
                        3 => quick::<O, LANES, 3>,
                        4 => quick::<O, LANES, 4>,
                        5 => quick::<O, LANES, 5>,
                        6 => quick::<O, LANES, 6>,
                        _ => quick::<O, LANES, 7>,
                    }
                }

                #[$feature]
                fn sized<O: Op>(size: u8, shape: Option<u8>) -> LaneFunction {
                    match (size, shape) {
                        // Each operand is one value.
                        (1, Some(splats)) => return shaped::<O, 1>(splats | 7),
                        (8, Some(splats)) => return shaped::<O, 8>(splats),
                        (16, Some(splats)) => return shaped::<O, 16>(splats),
                        _ => {}
                    }
                    match size {
                        1 => run::<O, 1>,
                        // Lanes beyond the last one are computed, and not written.
                        2..=8 => run::<O, 8>,
                        16 => run::<O, 16>,
                        _ => run::<O, 32>,
                    }
                }

                #[$feature]
                fn matrices(thread: &mut Thread, uop: &Uop) {
                    dpas::body(thread, uop);
                }

                #[$feature]
                fn dwords<const LANES: usize, const STORE: bool, const WIDE: bool, const SLM: bool>(
                    message: &Message,
                    uop: &Uop,
                    thread: &mut Thread,
                    environment: &mut Environment<'_>,
                ) -> Result<(), MessageFault> {
                    if consecutive_dwords::<LANES, STORE, WIDE, SLM>(message, uop, thread, environment) {
                        Ok(())
                    } else {
                        gather::<LANES>(message, uop, thread, environment)
                    }
                }

                #[$feature]
                fn gather<const LANES: usize>(
                    message: &Message,
                    uop: &Uop,
                    thread: &mut Thread,
                    environment: &mut Environment<'_>,
                ) -> Result<(), MessageFault> {
                    gathered_dwords::<LANES>(message, uop, thread, environment)
                }

                #[$feature]
                fn vectors<const LANES: usize, const COUNT: usize>(
                    message: &Message,
                    uop: &Uop,
                    thread: &mut Thread,
                    environment: &mut Environment<'_>,
                ) -> Result<(), MessageFault> {
                    vectors_of_dwords::<LANES, COUNT>(message, uop, thread, environment)
                }

                #[$feature]
                fn message_of<const LANES: usize>(shape: Shape) -> SendFunction {
                    match shape {
                        Shape::Dwords { store: false, wide: false, slm: false, .. } => dwords::<LANES, false, false, false>,
                        Shape::Dwords { store: false, wide: false, slm: true, .. } => dwords::<LANES, false, false, true>,
                        Shape::Dwords { store: false, wide: true, slm: false, .. } => dwords::<LANES, false, true, false>,
                        Shape::Dwords { store: false, wide: true, slm: true, .. } => dwords::<LANES, false, true, true>,
                        Shape::Dwords { store: true, wide: false, slm: false, .. } => dwords::<LANES, true, false, false>,
                        Shape::Dwords { store: true, wide: false, slm: true, .. } => dwords::<LANES, true, false, true>,
                        Shape::Dwords { store: true, wide: true, slm: false, .. } => dwords::<LANES, true, true, false>,
                        Shape::Dwords { store: true, wide: true, slm: true, .. } => dwords::<LANES, true, true, true>,
                        Shape::Vectors { count: 2, .. } => vectors::<LANES, 2>,
                        Shape::Vectors { count: 3, .. } => vectors::<LANES, 3>,
                        Shape::Vectors { .. } => vectors::<LANES, 4>,
                    }
                }

                #[$feature]
                fn message(shape: Shape) -> SendFunction {
                    match shape {
                        Shape::Dwords { lanes: 8, .. } | Shape::Vectors { lanes: 8, .. } => message_of::<8>(shape),
                        Shape::Dwords { lanes: 16, .. } | Shape::Vectors { lanes: 16, .. } => message_of::<16>(shape),
                        _ => message_of::<32>(shape),
                    }
                }

                #[$feature]
                fn operation(operation: Operation, size: u8, shape: Option<u8>) -> LaneFunction {
                    match operation {
                        $( Operation::$name => sized::<ops::$name>(size, shape), )*
                    }
                }

                #[$feature]
                pub fn functions() -> Functions {
                    Functions { operation, message, matrices }
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
    (function(f64::from(f(a))) as f32).to_bits()
}

operations! {
    Copy(uop, a) high |_, signs, sources, _| sign(signs, sources, 0), => a;
    FloatCopy(uop, a) => quiet(a);
    FloatAdd(uop, a, b) => (f(a) + f(b)).to_bits();
    FloatMul(uop, a, b) => (f(a) * f(b)).to_bits();
    FloatMad(uop, a, b, c) => f(b).mul_add(f(c), f(a)).to_bits();
    FloatAddTowardZero(uop, a, b) => rounding::add(a, b);
    FloatMulTowardZero(uop, a, b) => rounding::mul(a, b);
    FloatMadTowardZero(uop, a, b, c) => rounding::mad(a, b, c);
    FromSignedTowardZero(uop, a) => rounding::integer(a.cast_signed());
    FromUnsignedTowardZero(uop, a) => rounding::integer(a);
    HalfMad(uop, a, b, c) => rounding::half_mad(a, b, c);
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
    Add(uop, a, b) high |_, signs, sources, _| high_of_sum(signs, sources, 2), => a.wrapping_add(b);
    Add3(uop, a, b, c) high |_, signs, sources, _| high_of_sum(signs, sources, 3), => a.wrapping_add(b).wrapping_add(c);
    Mul(uop, a, b) => a.wrapping_mul(b);
    Mad(uop, a, b, c) high |_, signs, sources, _| high_of_mad(signs, sources), => a.wrapping_add(b.wrapping_mul(c));
    And(uop, a, b) high |_, signs, _, result| high_of_bits(signs, 2, result), => a & b;
    Or(uop, a, b) high |_, signs, _, result| high_of_bits(signs, 2, result), => a | b;
    Xor(uop, a, b) high |_, signs, _, result| high_of_bits(signs, 2, result), => a ^ b;
    Not(uop, a) high |_, signs, _, result| high_of_bits(signs, 1, result), => !a;
    Shl(uop, a, b) high |_, signs, sources, _| high_of_shift(signs, sources), => a << (b & 31);
    Shr(uop, a, b) => a >> (b & 31);
    Asr(uop, a, b) high |_, signs, sources, _| sign(signs, sources, 0), => (a.cast_signed() >> (b & 31)).cast_unsigned();
    Ror(uop, a, b) => a.rotate_right(b & 31);
    Rol(uop, a, b) => a.rotate_left(b & 31);
    Bfn(uop, a, b, c) high |_, signs, _, result| high_of_bits(signs, 3, result), => bitwise(uop.function, a, b, c);
    Bfrev(uop, a) => a.reverse_bits();
    Bfe(uop, a, b, c) => {
        let (width, value) = (a & 31, c >> (b & 31));
        value & ((1 << width) - 1)
    };
    BfeSigned(uop, a, b, c) high |_, _, _, result| high_of_bits([!0; 3], 1, result), => {
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
    MulWide(uop, a, b) wide Product, => a.wrapping_mul(b);
    MachLow(uop, a, b) wide Low, => a.wrapping_mul(b);
    MachHigh(uop, a, b) wide High, => a.wrapping_mul(b);
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
    MinSigned(uop, a, b) high |_, _, _, result| high_of_bits([!0; 3], 1, result), => a.cast_signed().min(b.cast_signed()).cast_unsigned();
    MaxSigned(uop, a, b) high |_, _, _, result| high_of_bits([!0; 3], 1, result), => a.cast_signed().max(b.cast_signed()).cast_unsigned();
    Select(uop, a, b) selects true, => a ^ b;
}

impl Operation {
    /// The operation that rounds floats of 32 bits toward zero instead of to the nearest: itself, if it does not depend on the
    /// mode.
    pub fn toward_zero(self) -> Operation {
        match self {
            Operation::FloatAdd => Operation::FloatAddTowardZero,
            Operation::FloatMul => Operation::FloatMulTowardZero,
            Operation::FloatMad => Operation::FloatMadTowardZero,
            Operation::FromSigned => Operation::FromSignedTowardZero,
            Operation::FromUnsigned => Operation::FromUnsignedTowardZero,
            other => other,
        }
    }
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

/// Functions for any host.
mod portable {
    use super::{
        ACCUMULATES, Environment, Functions, LaneFunction, MODIFIED, Message, MessageFault, Op, Operation,
        SendFunction, Shape, Thread, Uop, body, consecutive_dwords, dpas, gathered_dwords, ops, quick_body,
        vectors_of_dwords,
    };
    functions!(inline);
}

/// Functions for hosts with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{
        ACCUMULATES, Environment, Functions, LaneFunction, MODIFIED, Message, MessageFault, Op, Operation,
        SendFunction, Shape, Thread, Uop, body, consecutive_dwords, dpas, gathered_dwords, ops, quick_body,
        vectors_of_dwords,
    };
    functions!(target_feature(enable = "avx2,fma"));
}

/// The functions of a host.
struct Functions {
    /// That of an operation on this number of lanes, of which the operands may have a shape of [`quick_body`].
    operation: fn(Operation, u8, Option<u8>) -> LaneFunction,
    /// That of messages of a shape.
    message: fn(Shape) -> SendFunction,
    /// Products of matrices.
    matrices: LaneFunction,
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

    /// The function of an operation on this number of lanes.
    pub fn select(self, operation: Operation, size: u8, shape: Option<u8>) -> LaneFunction {
        (self.functions().operation)(operation, size, shape)
    }

    /// The function of products of matrices.
    pub(super) fn matrices(self) -> LaneFunction {
        self.functions().matrices
    }

    /// The function of messages of this shape.
    pub(super) fn message(self, shape: Shape) -> SendFunction {
        (self.functions().message)(shape)
    }

    fn functions(self) -> Functions {
        match self {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code, reason = "the one call into functions with target features")]
            Host::Avx2(Detected(())) => {
                // SAFETY: a `Detected` exists only if the host has AVX2 and FMA.
                unsafe { avx2::functions() }
            }
            _ => portable::functions(),
        }
    }
}
