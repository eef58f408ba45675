// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on floats, in the format of the execution type.

use super::{Context, ExecutionType, is_first};
use crate::float::{F, HF, Round};
use crate::isa::Condition;
use crate::isa::table::LaneOp;

/// Returns the result. `predicate` is the lane's, by which sel without a condition chooses.
pub fn apply(context: &Context<'_>, [a, b, c]: [u32; 3], accumulated: u32, predicate: bool) -> u32 {
    let format = context.execution.format();
    let round = context.mode.round;
    let number = |bits| context.number(bits);
    let narrow = |value: f32, round| {
        if context.execution == ExecutionType::Hf { HF.convert(value.to_bits(), F, round) } else { value.to_bits() }
    };
    if round == Round::NearestEven && context.execution == ExecutionType::F {
        // The host rounds in the same way.
        let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        match context.operation {
            LaneOp::Add => return (x + y).to_bits(),
            LaneOp::Mul => return (x * y).to_bits(),
            LaneOp::Mad => return y.mul_add(z, x).to_bits(),
            _ => {}
        }
    }
    match context.operation {
        LaneOp::Add => format.add(a, b, round),
        LaneOp::Mul => format.mul(a, b, round),
        LaneOp::Mad => format.fma(b, c, a, round),
        LaneOp::Mac => format.fma(a, b, accumulated, round),
        // Minimum and maximum: a NaN gives the other operand, and -0 is below +0. ISA-066.
        LaneOp::Sel if matches!(context.condition, Some(Condition::Lt | Condition::Ge)) => {
            let is_minimum = context.condition == Some(Condition::Lt);
            let (x, y) = (number(a), number(b));
            if y.is_nan() {
                return a;
            }
            if x.is_nan() {
                return b;
            }
            let negative = a & format.sign() != 0;
            let first = if x == y { negative == is_minimum } else { (x < y) == is_minimum };
            if first { a } else { b }
        }
        LaneOp::Sel => {
            if is_first(context, &number(a), &number(b), predicate) {
                a
            } else {
                b
            }
        }
        LaneOp::Csel => {
            if context.condition.is_some_and(|condition| condition.holds(number(c).partial_cmp(&0.0))) {
                a
            } else {
                b
            }
        }
        LaneOp::Frc => {
            let value = number(a);
            let fraction = value - value.floor();
            // Of a tiny negative number, the largest number below 1.
            narrow(if fraction >= 1.0 { 1.0f32.next_down() } else { fraction }, round)
        }
        LaneOp::Rndu => narrow(number(a).ceil(), round),
        LaneOp::Rndd => narrow(number(a).floor(), round),
        LaneOp::Rnde => narrow(number(a).round_ties_even(), round),
        LaneOp::Rndz => narrow(number(a).trunc(), round),
        LaneOp::Math => {
            let value = f64::from(number(a));
            let result = match context.function {
                1 => 1.0 / value,
                2 => value.log2(),
                3 => value.exp2(),
                4 => value.sqrt(),
                5 => 1.0 / value.sqrt(),
                6 => value.sin(),
                _ => value.cos(),
            } as f32;
            // The functions round to nearest whatever the mode.
            narrow(result, Round::NearestEven)
        }
        _ => a,
    }
}
