// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operands and results of a lane: types, source modifiers, saturation, conversion, conditions.

use std::cmp::Ordering;

use arctic_eu::isa::Type;

use super::exact::{BRAIN, Format, HALF, Number, Round, SINGLE};

/// Modes of floating-point arithmetic in cr0. ISA-087.
#[derive(Clone, Copy, Debug)]
pub struct Modes {
    pub round: Round,
    pub keep_single: bool,
    pub keep_half: bool,
}

impl Modes {
    pub fn from_cr0(cr0: u32) -> Modes {
        Modes { round: Round::from_cr0(cr0), keep_single: cr0 >> 7 & 1 == 1, keep_half: cr0 >> 10 & 1 == 1 }
    }

    /// ISA-131: whether denormals of a type are kept. BF follows F.
    pub fn keeps(self, ty: Type) -> bool {
        if ty == Type::Hf { self.keep_half } else { self.keep_single }
    }

    /// ISA-131: a denormal of this type is a zero of the same sign, unless denormals are kept.
    pub fn flush(self, ty: Type, bits: u64) -> u64 {
        let format = format(ty);
        if format.is_denormal(bits) && !self.keeps(ty) { bits & format.sign_bit() } else { bits }
    }
}

/// The format of a floating-point type.
pub fn format(ty: Type) -> Format {
    match ty {
        Type::Hf => HALF,
        Type::Bf => BRAIN,
        _ => SINGLE,
    }
}

/// Bits of the elements of a type, ISA-040.
pub fn width(ty: Type) -> u32 {
    match ty {
        Type::Ub | Type::B => 8,
        Type::Uw | Type::W | Type::Hf | Type::Bf | Type::Uv | Type::V => 16,
        Type::Uq | Type::Q | Type::Df => 64,
        _ => 32,
    }
}

pub fn signed(ty: Type) -> bool {
    matches!(ty, Type::B | Type::W | Type::D | Type::Q | Type::V)
}

pub fn is_float(ty: Type) -> bool {
    matches!(ty, Type::Hf | Type::F | Type::Bf | Type::Vf)
}

/// Least and greatest value of an integer type.
pub fn limits(ty: Type) -> (i128, i128) {
    let width = width(ty);
    if signed(ty) { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// The value of the low `width` bits.
pub fn wrap(value: i128, width: u32, signed: bool) -> i128 {
    let low = value & ((1 << width) - 1);
    if signed && low >> (width - 1) & 1 == 1 { low - (1 << width) } else { low }
}

/// A source of a lane: its bits, and what the instruction says about it.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub bits: u64,
    pub ty: Type,
    pub abs: bool,
    pub negate: bool,
    /// The modifiers give the exact value of an integer.
    pub exact: bool,
}

impl Operand {
    /// The integer as it is read, without modifiers.
    pub fn plain(self) -> i128 {
        wrap(i128::from(self.bits), width(self.ty), signed(self.ty))
    }

    /// ISA-058: the value, absolute and then negated: -(ub 200) is -200. In two's complement the smallest number of a signed
    /// type is its own negation, on which compilers rely. A saturated difference needs the exact negation, and a wider
    /// destination the exact absolute value.
    pub fn integer(self) -> i128 {
        let value = self.plain();
        let value = if self.abs { value.abs() } else { value };
        let value = if self.negate { -value } else { value };
        if signed(self.ty) && !self.exact { wrap(value, width(self.ty), true) } else { value }
    }

    /// ISA-058: the float's bits after changes of the sign bit, on NaN too.
    pub fn float_bits(self) -> u64 {
        let sign = format(self.ty).sign_bit();
        let bits = if self.abs { self.bits & !sign } else { self.bits };
        if self.negate { bits ^ sign } else { bits }
    }

    /// ISA-131: the number, a denormal flushed by its type.
    pub fn number(self, modes: Modes) -> Number {
        format(self.ty).decode(modes.flush(self.ty, self.float_bits()))
    }

    /// The number as it is in the register.
    pub fn number_unflushed(self) -> Number {
        format(self.ty).decode(self.float_bits())
    }
}

/// ISA-043: the execution type of integers is signed if a source is.
pub fn any_signed(sources: &[Operand]) -> bool {
    sources.iter().any(|source| signed(source.ty))
}

/// What a lane must have in its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Bits(u64),
    /// Any quiet NaN: ISA-132 leaves sign and payload open.
    QuietNan,
}

/// Result of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub dst: Expected,
    /// Value of the condition, if the instruction has a condition modifier.
    pub condition: bool,
    /// What goes to the accumulator, if it is written: the destination's value unless another is given.
    pub accumulator: Option<u64>,
    /// Bits 63:32 of an integer. ISA-082.
    pub high: u32,
}

impl Outcome {
    /// The result of an operation on floats, or on bits.
    pub fn new(dst: Expected, condition: bool) -> Outcome {
        Outcome { dst, condition, accumulator: None, high: 0 }
    }

    /// Bits that are copied to a destination of the type `ty`.
    pub fn copy(bits: u64, ty: Type, condition: bool) -> Outcome {
        let high = (wrap(i128::from(bits), width(ty), signed(ty)) >> 32) as u32;
        Outcome { high, ..Outcome::new(Expected::Bits(bits), condition) }
    }
}

/// Condition modifiers. ISA-064.
pub const EQ: u8 = 1;
pub const NE: u8 = 2;
pub const GT: u8 = 3;
pub const GE: u8 = 4;
pub const LT: u8 = 5;
pub const LE: u8 = 6;
pub const OVERFLOW: u8 = 8;
pub const UNORDERED: u8 = 9;

/// ISA-064, ISA-065: whether a condition holds for an order of two values. Unordered is false for all but ne and u.
pub fn holds(condition: u8, order: Option<Ordering>) -> bool {
    match condition {
        EQ => order == Some(Ordering::Equal),
        NE => order != Some(Ordering::Equal),
        GT => order == Some(Ordering::Greater),
        GE => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        LT => order == Some(Ordering::Less),
        LE => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        UNORDERED => order.is_none(),
        _ => false,
    }
}

/// What the end of each operation depends on.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    pub dst: Type,
    pub saturate: bool,
    pub condition: u8,
    pub modes: Modes,
}

impl Finish {
    /// The end of an operation with an exact integer as result: ISA-044 (wrap or clamp), ISA-064 (condition on the result as an
    /// integer destination has it, or before the conversion to a float), ISA-045 (to float). An overflow is a result outside
    /// the destination's type, so there is none after a saturation.
    pub fn integer(self, exact: i128) -> Outcome {
        if is_float(self.dst) {
            let condition = holds(self.condition, Some(exact.cmp(&0)));
            let number = Number::integer(exact);
            let number = if self.saturate { saturate(number) } else { number };
            let bits = self.modes.flush(self.dst, format(self.dst).encode(number, self.modes.round));
            let condition = if self.saturate { self.condition_of(number, false) } else { condition };
            return Outcome::new(Expected::Bits(bits), condition);
        }
        let (least, most) = limits(self.dst);
        let value = if self.saturate { exact.clamp(least, most) } else { exact };
        let condition = if self.condition == OVERFLOW {
            value < least || value > most
        } else {
            holds(self.condition, Some(wrap(value, width(self.dst), signed(self.dst)).cmp(&0)))
        };
        let bits = wrap(value, width(self.dst), false) as u64;
        Outcome { high: (value >> 32) as u32, ..Outcome::new(Expected::Bits(bits), condition) }
    }

    /// The end of an operation that computes in the type `execution` with an exact number as result: it is rounded to that
    /// type (ISA-130, ISA-131), saturated (ISA-068), compared with 0 (ISA-064), and converted to the destination's type.
    pub fn float(self, exact: Number, execution: Type) -> Outcome {
        let bits = self.modes.flush(execution, format(execution).encode(exact, self.modes.round));
        let rounded = format(execution).decode(bits);
        let overflow = matches!(exact, Number::Finite { .. }) && matches!(rounded, Number::Infinity { .. });
        self.number(rounded, overflow)
    }

    /// As [`Finish::float`] for a number that its execution type can represent.
    pub fn number(self, number: Number, overflow: bool) -> Outcome {
        if !is_float(self.dst) {
            // ISA-045: toward zero within the limits, NaN is 0.
            let (least, most) = limits(self.dst);
            let value = number.to_integer(least, most);
            let bits = wrap(value, width(self.dst), false) as u64;
            let condition = if self.condition == OVERFLOW {
                overflow && !self.saturate
            } else {
                holds(self.condition, Some(value.cmp(&0)))
            };
            return Outcome { high: (value >> 32) as u32, ..Outcome::new(Expected::Bits(bits), condition) };
        }
        let number = if self.saturate { saturate(number) } else { number };
        let bits = self.modes.flush(self.dst, format(self.dst).encode(number, self.modes.round));
        let dst = if number.is_nan() { Expected::QuietNan } else { Expected::Bits(bits) };
        Outcome::new(dst, self.condition_of(number, overflow))
    }

    fn condition_of(self, number: Number, overflow: bool) -> bool {
        if self.condition == OVERFLOW {
            overflow && !self.saturate
        } else {
            holds(self.condition, number.order(Number::zero(false)))
        }
    }
}

/// ISA-068: clamps to [0, 1]; NaN is 0. By ISA-066, +0 is the greater of the two zeros.
pub fn saturate(number: Number) -> Number {
    match number.order(Number::ONE) {
        None => Number::zero(false),
        Some(Ordering::Greater) => Number::ONE,
        _ if number.is_negative() => Number::zero(false),
        _ => number,
    }
}
