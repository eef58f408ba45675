// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Atomic operations.

use crate::float::{f16_to_f32, f32_to_f16};

/// An atomic operation on integers or floats. ISA-211, ISA-218.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named like the messages")]
pub enum Atomic {
    Inc,
    Dec,
    Load,
    Store,
    Add,
    Sub,
    Smin,
    Smax,
    Umin,
    Umax,
    Cas,
    Fadd,
    Fsub,
    Fmin,
    Fmax,
    Fcas,
    And,
    Or,
    Xor,
}

impl Atomic {
    /// The operation with this LSC opcode.
    pub fn from_opcode(opcode: u32) -> Option<Atomic> {
        use Atomic::{
            Add, And, Cas, Dec, Fadd, Fcas, Fmax, Fmin, Fsub, Inc, Load, Or, Smax, Smin, Store, Sub, Umax, Umin, Xor,
        };
        let all =
            [Inc, Dec, Load, Store, Add, Sub, Smin, Smax, Umin, Umax, Cas, Fadd, Fsub, Fmin, Fmax, Fcas, And, Or, Xor];
        all.get((opcode as usize).checked_sub(8)?).copied()
    }

    /// The operation's LSC opcode.
    pub fn opcode(self) -> u32 {
        self as u32 + 8
    }

    /// True for operations on floats.
    pub fn is_float(self) -> bool {
        matches!(self, Atomic::Fadd | Atomic::Fsub | Atomic::Fmin | Atomic::Fmax | Atomic::Fcas)
    }

    /// Number of operands in source 1.
    pub fn operands(self) -> usize {
        match self {
            Atomic::Inc | Atomic::Dec | Atomic::Load => 0,
            Atomic::Cas | Atomic::Fcas => 2,
            _ => 1,
        }
    }

    /// The value after an operation on integers of 32 bits.
    #[inline(always)]
    pub(super) fn apply_to_dword(self, old: u32, [first, second]: [u32; 2]) -> u32 {
        let [signed_old, signed_first] = [old, first].map(u32::cast_signed);
        match self {
            Atomic::Inc => old.wrapping_add(1),
            Atomic::Dec => old.wrapping_sub(1),
            Atomic::Load => old,
            Atomic::Store => first,
            Atomic::Add => old.wrapping_add(first),
            Atomic::Sub => old.wrapping_sub(first),
            Atomic::Smin => signed_old.min(signed_first).cast_unsigned(),
            Atomic::Smax => signed_old.max(signed_first).cast_unsigned(),
            Atomic::Umin => old.min(first),
            Atomic::Umax => old.max(first),
            Atomic::Cas if old == first => second,
            Atomic::Cas => old,
            Atomic::And => old & first,
            Atomic::Or => old | first,
            Atomic::Xor => old ^ first,
            Atomic::Fadd | Atomic::Fsub | Atomic::Fmin | Atomic::Fmax | Atomic::Fcas => {
                self.apply(old.into(), [first.into(), second.into()], 4) as u32
            }
        }
    }

    /// The value after the operation, for an element of `size` bytes.
    pub fn apply(self, old: u64, [first, second]: [u64; 2], size: u32) -> u64 {
        let shift = 64 - size * 8;
        let signed = |value: u64| (value << shift) as i64 >> shift;
        let mask = u64::MAX >> shift;
        let float = |value: u64| match size {
            8 => f64::from_bits(value),
            2 => f64::from(f16_to_f32(value as u16)),
            _ => f64::from(f32::from_bits(value as u32)),
        };
        let bits = |value: f64| match size {
            8 => value.to_bits(),
            // A sum of two halves is a float.
            2 => u64::from(f32_to_f16(value as f32)),
            _ => u64::from((value as f32).to_bits()),
        };
        let result = match self {
            Atomic::Inc => old.wrapping_add(1),
            Atomic::Dec => old.wrapping_sub(1),
            Atomic::Load => old,
            Atomic::Store => first,
            Atomic::Add => old.wrapping_add(first),
            Atomic::Sub => old.wrapping_sub(first),
            Atomic::Smin => {
                if signed(first) < signed(old) {
                    first
                } else {
                    old
                }
            }
            Atomic::Smax => {
                if signed(first) > signed(old) {
                    first
                } else {
                    old
                }
            }
            Atomic::Umin => first.min(old),
            Atomic::Umax => first.max(old),
            Atomic::Cas => {
                if old == first {
                    second
                } else {
                    old
                }
            }
            Atomic::Fadd => bits(float(old) + float(first)),
            Atomic::Fsub => bits(float(old) - float(first)),
            // A NaN gives the other operand, and -0 is below +0: ISA-066.
            Atomic::Fmin => {
                let (x, y) = (float(old), float(first));
                if x.is_nan() || y < x || y == x && y.is_sign_negative() { first } else { old }
            }
            Atomic::Fmax => {
                let (x, y) = (float(old), float(first));
                if x.is_nan() || y > x || y == x && y.is_sign_positive() { first } else { old }
            }
            Atomic::Fcas => {
                if float(old) == float(first) {
                    second
                } else {
                    old
                }
            }
            Atomic::And => old & first,
            Atomic::Or => old | first,
            Atomic::Xor => old ^ first,
        };
        result & mask
    }
}
