// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operations on floats, in the format of the operation's domain.

use super::{Domain, Setting, as_f32, is_first};
use crate::exec::condition::float_condition;
use crate::float::{F, HF, Round};
use crate::isa::table::Lane;

/// Returns the result.
pub fn apply(setting: &Setting<'_>, [a, b, c]: [u32; 3], acc: u32, modifier: u8, chosen: bool) -> u32 {
    let format = setting.domain.format();
    let round = setting.mode.round;
    let number = |bits| as_f32(setting.domain, bits);
    let narrow = |value: f32| {
        if setting.domain == Domain::Hf { HF.convert(value.to_bits(), F, round) } else { value.to_bits() }
    };
    if round == Round::NearestEven && setting.domain == Domain::F {
        // The host rounds in the same way.
        let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        match setting.lane {
            Lane::Add => return (x + y).to_bits(),
            Lane::Mul => return (x * y).to_bits(),
            Lane::Mad => return y.mul_add(z, x).to_bits(),
            _ => {}
        }
    }
    match setting.lane {
        Lane::Add => format.add(a, b, round),
        Lane::Mul => format.mul(a, b, round),
        Lane::Mad => format.fma(b, c, a, round),
        Lane::Mac => format.fma(a, b, acc, round),
        Lane::Sel => match modifier {
            0 => {
                if chosen {
                    a
                } else {
                    b
                }
            }
            // Minimum and maximum: a NaN gives the other operand, and -0 is below +0.
            4 | 5 => {
                let (x, y) = (number(a), number(b));
                if y.is_nan() {
                    return a;
                }
                if x.is_nan() {
                    return b;
                }
                let negative = a & format.sign() != 0;
                let first = if x == y { negative == (modifier == 5) } else { (x < y) == (modifier == 5) };
                if first { a } else { b }
            }
            _ => {
                if is_first(modifier, &number(a), &number(b), chosen) {
                    a
                } else {
                    b
                }
            }
        },
        Lane::Csel => {
            if float_condition(modifier, number(c)) {
                a
            } else {
                b
            }
        }
        Lane::Frc => {
            let value = number(a);
            let fraction = value - value.floor();
            narrow(if fraction >= 1.0 { f32::from_bits(0x3f7f_ffff) } else { fraction })
        }
        Lane::Rndu => narrow(number(a).ceil()),
        Lane::Rndd => narrow(number(a).floor()),
        Lane::Rnde => narrow(number(a).round_ties_even()),
        Lane::Rndz => narrow(number(a).trunc()),
        Lane::Math => {
            let value = f64::from(number(a));
            #[expect(clippy::cast_possible_truncation, reason = "rounding is meant")]
            let result = match modifier {
                1 => 1.0 / value,
                2 => value.log2(),
                3 => value.exp2(),
                4 => value.sqrt(),
                5 => 1.0 / value.sqrt(),
                6 => value.sin(),
                _ => value.cos(),
            } as f32;
            // The functions round to nearest whatever the mode.
            if setting.domain == Domain::Hf {
                HF.convert(result.to_bits(), F, Round::NearestEven)
            } else {
                result.to_bits()
            }
        }
        _ => a,
    }
}
