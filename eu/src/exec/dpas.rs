// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! dpas: products of small matrices (group M of the document on the ISA).

use super::operand::Input;
use super::thread::{REG, Thread};
use super::uop::Uop;
use crate::float::{BF, F, HF, Round};
use crate::isa::{Instruction, Type};

/// Lanes of dpas.
const LANES: usize = 8;

/// True for types that dpas has. ISA-186.
pub fn has_types(from: &Instruction) -> bool {
    let [addend, columns, rows] = from.src.map(|source| source.ty());
    match columns {
        Type::Hf | Type::Bf => {
            let result = [Type::F, columns];
            rows == columns && result.contains(&addend) && result.contains(&from.dst.ty)
        }
        Type::Ub | Type::B | Type::U4 | Type::S4 | Type::U2 | Type::S2 => {
            let narrow = matches!(rows, Type::Ub | Type::B | Type::U4 | Type::S4 | Type::U2 | Type::S2);
            let dword = |ty| matches!(ty, Type::D | Type::Ud);
            narrow && dword(addend) && dword(from.dst.ty)
        }
        _ => false,
    }
}

/// Bits of an element of source 1 or 2.
fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::U4 | Type::S4 => 4,
        Type::U2 | Type::S2 => 2,
        _ => ty.size() * 8,
    }
}

/// An element in the low bits of `bits`.
fn element(bits: u32, ty: Type) -> i32 {
    let shift = 32 - element_bits(ty);
    if ty.is_signed() { (bits << shift).cast_signed() >> shift } else { (bits << shift >> shift).cast_signed() }
}

fn to_f32(bits: u32, ty: Type) -> f32 {
    f32::from_bits(match ty {
        Type::Bf => bits << 16,
        _ => F.convert(bits & 0xffff, HF, Round::NearestEven),
    })
}

/// A dword of the register file of an operand.
fn dword(thread: &Thread, base: u32, index: usize) -> u32 {
    thread.u32((base as usize + index * 4) & thread.grf_mask as usize)
}

/// Executes dpas with this depth and repeat count. ISA-185: `dst[m][n] = src0[m][n] + sum of src2[m][k] * src1[k][n]`.
pub fn execute(thread: &mut Thread, uop: &Uop, depth: u8, repeat: u8) {
    let [addend, columns, rows] = &uop.src;
    let float = columns.ty.is_float();
    // Operations on a lane in a step of the depth: as many elements as the wider type has in a dword, 4 or 8 for integers.
    let ops = if float {
        2
    } else if element_bits(columns.ty) == 8 || element_bits(rows.ty) == 8 {
        4
    } else {
        8
    };
    let enabled = uop.enabled(thread);
    let row_bits = usize::from(depth) * ops * element_bits(rows.ty) as usize;
    let mut results = [[0u32; LANES]; 8];
    for (m, result) in results.iter_mut().enumerate().take(usize::from(repeat)) {
        for (n, result) in result.iter_mut().enumerate() {
            let start = start_value(thread, addend, m, n);
            let pairs = (0..usize::from(depth) * ops).map(|k| {
                let row = bits_at(thread, rows.base, m * row_bits + k * element_bits(rows.ty) as usize, rows.ty);
                let column = column_bits(thread, columns, k, n);
                (row, column)
            });
            *result = if float {
                let sum = pairs.fold(f32::from_bits(start), |sum, (row, column)| {
                    to_f32(row, rows.ty).mul_add(to_f32(column, columns.ty), sum)
                });
                sum.to_bits()
            } else {
                pairs.fold(start, |sum, (row, column)| {
                    let product = element(row, rows.ty).wrapping_mul(element(column, columns.ty));
                    sum.wrapping_add(product.cast_unsigned())
                })
            };
        }
    }
    for (m, result) in results.iter().enumerate().take(usize::from(repeat)) {
        for (n, value) in result.iter().enumerate() {
            if enabled >> n & 1 == 0 {
                continue;
            }
            let index = m * LANES + n;
            match uop.dst.ty {
                Type::Hf => write16(thread, uop, index, HF.convert(*value, F, Round::NearestEven)),
                Type::Bf => write16(thread, uop, index, BF.convert(*value, F, Round::NearestEven)),
                _ => {
                    let at = (uop.dst.base as usize + index * 4) & thread.grf_mask as usize;
                    thread.set_u32(at, *value);
                }
            }
        }
    }
}

fn write16(thread: &mut Thread, uop: &Uop, index: usize, value: u32) {
    let at = (uop.dst.base as usize + index * 2) & thread.grf_mask as usize;
    for (offset, byte) in value.to_le_bytes()[..2].iter().enumerate() {
        thread.file[(at + offset) & thread.grf_mask as usize] = *byte;
    }
}

/// Element of source 0 as 32 bits; null is 0.
fn start_value(thread: &Thread, addend: &Input, m: usize, n: usize) -> u32 {
    if !addend.general {
        return 0;
    }
    let index = m * LANES + n;
    match addend.ty {
        Type::Hf | Type::Bf => {
            let word = dword(thread, addend.base, index / 2) >> (index % 2 * 16) & 0xffff;
            if addend.ty == Type::Hf { F.convert(word, HF, Round::NearestEven) } else { word << 16 }
        }
        _ => dword(thread, addend.base, index),
    }
}

/// The element `k` of column `n`: dword `n` of a register holds consecutive elements of the column.
fn column_bits(thread: &Thread, columns: &Input, k: usize, n: usize) -> u32 {
    let bits = element_bits(columns.ty) as usize;
    let per_dword = 32 / bits;
    let register = k / per_dword;
    dword(thread, columns.base, register * (REG / 4) + n) >> (k % per_dword * bits)
}

/// The element at a bit offset of rows that are packed one behind the other.
fn bits_at(thread: &Thread, base: u32, bit: usize, ty: Type) -> u32 {
    dword(thread, base, bit / 32) >> (bit % 32) & if element_bits(ty) == 32 { !0 } else { (1 << element_bits(ty)) - 1 }
}
