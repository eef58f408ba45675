// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Floating-point operations: one function an opcode, on exact numbers.

use arctic_eu::isa::Type;

use super::exact::{Number, Round, SINGLE};
use super::lane::Lane;
use super::value::{GE, LT, Outcome, holds, is_float};

/// ISA-043: HF executes as HF if all sources have it, everything else as F.
fn execution(lane: &Lane, count: usize) -> Type {
    if lane.src[..count].iter().all(|source| source.ty == Type::Hf) { Type::Hf } else { Type::F }
}

fn source(lane: &Lane, index: usize) -> Number {
    lane.src[index].number(lane.finish.modes)
}

/// ISA-130.
pub fn add(lane: &Lane) -> Outcome {
    let sum = source(lane, 0).plus(source(lane, 1), lane.finish.modes.round);
    lane.finish.float(sum, execution(lane, 2))
}

/// ISA-130.
pub fn mul(lane: &Lane) -> Outcome {
    lane.finish.float(source(lane, 0).times(source(lane, 1)), execution(lane, 2))
}

/// ISA-112: src0 + src1 * src2, fused: one rounding.
pub fn mad(lane: &Lane) -> Outcome {
    let product = source(lane, 1).times(source(lane, 2));
    lane.finish.float(source(lane, 0).plus(product, lane.finish.modes.round), execution(lane, 3))
}

/// ISA-121: the accumulator plus src0 * src1, as mad.
pub fn mac(lane: &Lane) -> Outcome {
    let product = source(lane, 0).times(source(lane, 1));
    let accumulator = lane.accumulator.number(lane.finish.modes);
    lane.finish.float(accumulator.plus(product, lane.finish.modes.round), execution(lane, 2))
}

/// ISA-046: a move of one type onto itself without modifiers copies the bits. ISA-045: all others convert.
pub fn mov(lane: &Lane) -> Outcome {
    let operand = lane.src[0];
    let modes = lane.finish.modes;
    if operand.ty == lane.finish.dst && !operand.abs && !operand.negate && !lane.finish.saturate {
        let order = operand.number_unflushed().order(Number::zero(false));
        let condition = holds(lane.finish.condition, order);
        return Outcome::copy(operand.bits, operand.ty, condition);
    }
    lane.finish.number(operand.number(modes), false)
}

/// ISA-124: the integer in the direction of the mode; the sign of a zero is kept.
fn round(lane: &Lane, mode: Round) -> Outcome {
    lane.finish.float(source(lane, 0).to_integral(mode), execution(lane, 1))
}

/// ISA-124.
pub fn rndu(lane: &Lane) -> Outcome {
    round(lane, Round::Up)
}

/// ISA-124.
pub fn rndd(lane: &Lane) -> Outcome {
    round(lane, Round::Down)
}

/// ISA-124.
pub fn rnde(lane: &Lane) -> Outcome {
    round(lane, Round::NearestEven)
}

/// ISA-124.
pub fn rndz(lane: &Lane) -> Outcome {
    round(lane, Round::TowardZero)
}

/// ISA-124: x - floor(x), in [0, 1); of tiny negative numbers the greatest number below 1; of infinities NaN. ISA-133: the
/// rounding mode is that of other operations, so this rounds to nearest, and an exact 0 is +0.
pub fn frc(lane: &Lane) -> Outcome {
    let number = source(lane, 0);
    let integral = number.to_integral(Round::Down);
    let mut fraction = SINGLE.encode(number.plus(integral.negated(), Round::NearestEven), Round::NearestEven);
    if SINGLE.decode(fraction).order(Number::ONE) == Some(std::cmp::Ordering::Equal) {
        fraction -= 1;
    }
    lane.finish.float(SINGLE.decode(fraction), Type::F)
}

/// ISA-065: all ones or zeros, by the order of the numbers.
pub fn cmp(lane: &Lane) -> Outcome {
    truth(lane, holds(lane.finish.condition, source(lane, 0).order(source(lane, 1))))
}

/// ISA-065: as cmp, but a NaN of source 1 counts as true in l and ge, so that cmpn and sel are a minimum or maximum that
/// yields the operand that is a number.
pub fn cmpn(lane: &Lane) -> Outcome {
    let order = source(lane, 0).order(source(lane, 1));
    let chooses = matches!(lane.finish.condition, GE | LT) && source(lane, 1).is_nan();
    truth(lane, chooses || holds(lane.finish.condition, order))
}

/// The destination of a comparison: all ones or zeros of its type.
pub fn truth(lane: &Lane, condition: bool) -> Outcome {
    let ones = u64::MAX >> (64 - super::value::width(lane.finish.dst));
    Outcome::copy(if condition { ones } else { 0 }, lane.finish.dst, condition)
}

/// ISA-066: source 0 or 1 by the predicate, unchanged (ISA-131) if all types are the same and no source has a
/// modifier, else converted. Denormals are kept in any case.
pub fn sel_predicated(lane: &Lane) -> Outcome {
    let chosen = lane.src[usize::from(!lane.predicate)];
    let raw = lane.src[..2].iter().all(|source| source.ty == lane.finish.dst && !source.abs && !source.negate);
    if raw && !lane.finish.saturate {
        return Outcome::copy(chosen.float_bits(), chosen.ty, false);
    }
    let mut finish = lane.finish;
    (finish.modes.keep_single, finish.modes.keep_half) = (true, true);
    finish.number(chosen.number_unflushed(), false)
}

/// ISA-066: l is the minimum and ge the maximum of IEEE 754-2008; other conditions choose by comparison.
pub fn sel_condition(lane: &Lane) -> Outcome {
    let (left, right) = (source(lane, 0), source(lane, 1));
    let condition = lane.finish.condition;
    let first = match condition {
        GE | LT if left.is_nan() => false,
        GE | LT if right.is_nan() => true,
        // -0 is less than +0.
        LT if left.is_zero() && right.is_zero() => left.is_negative(),
        GE if left.is_zero() && right.is_zero() => !left.is_negative(),
        _ => holds(condition, left.order(right)),
    };
    lane.finish.float(if first { left } else { right }, execution(lane, 2))
}

/// ISA-067: source 0 if the condition holds for source 2 and 0, else source 1.
pub fn csel(lane: &Lane) -> Outcome {
    let condition = holds(lane.finish.condition, source(lane, 2).order(Number::zero(false)));
    let chosen = source(lane, usize::from(!condition));
    lane.finish.float(chosen, execution(lane, 3))
}

/// True if an operand of this type is computed by this module.
pub fn applies(lane: &Lane) -> bool {
    is_float(lane.src[0].ty)
}
