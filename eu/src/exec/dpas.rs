// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! dpas and dpasw: products of small matrices (group M of the document on the ISA).

use super::environment::{Exchange, Group};
use super::operand::{Input, Store};
use super::thread::{REG, Thread};
use super::uop::Uop;
use crate::float::{BF, F, HF, Round, widened_half};
use crate::isa::{Instruction, Type};

/// Opcode of dpasw.
pub const WIDE: u8 = 0x5a;
/// Lanes of dpas.
const LANES: usize = 8;
/// Rows, at most: the repeat count.
const ROWS: usize = 8;
/// Steps of the depth in what compilers make.
const DEPTH: usize = 8;

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

/// Numbers of an array of dwords that have one in each half. Loops instead of closures, which would not be compiled with the
/// features of the caller.
#[inline(always)]
fn numbers<const COUNT: usize>(dwords: &[u32; COUNT], half: u32, ty: Type) -> [f32; COUNT] {
    let mut numbers = [0.0; COUNT];
    for (number, dword) in numbers.iter_mut().zip(dwords) {
        let bits = *dword >> (half * 16);
        *number = f32::from_bits(if ty == Type::Bf { bits << 16 } else { widened_half(bits) });
    }
    numbers
}

/// Executes dpasw as soon as the other thread of the pair, threads 2n and 2n + 1 of the group, has come to its own. Returns false
/// before that. ISA-190: the first half of the registers of source 2 is that of the even thread.
pub fn wide(thread: &mut Thread, uop: &Uop, group: &mut Group) -> bool {
    let (own, other) = (group.current as usize, (group.current ^ 1) as usize);
    let count = group.exchanges.len().max(own.max(other) + 1);
    group.exchanges.resize(count, Exchange::default());
    let product = group.exchanges[own].taken;
    let slot = product as usize % 2;
    if group.exchanges[own].given == product {
        group.exchanges[own].rows[slot] = thread.dwords(uop.src[2].base);
        group.exchanges[own].given += 1;
    }
    if group.exchanges[other].given <= product {
        return false;
    }
    group.exchanges[own].taken += 1;
    let bits =
        usize::from(uop.depth) * operations(uop) * element_bits(uop.src[2].ty) as usize * usize::from(uop.repeat);
    // Dwords of the even thread.
    let first = bits.div_ceil(REG * 8).div_ceil(2) * REG / 4;
    let mut rows = [0; ROWS * REG / 4];
    for (number, from) in [(0, own & !1), (1, own | 1)] {
        let start = number * first;
        let count = if number == 0 { first } else { rows.len() - first }.min(32);
        rows[start..start + count].copy_from_slice(&group.exchanges[from].rows[slot][..count]);
    }
    product_of(thread, uop, &rows);
    true
}

/// Elements of a lane in a step of the depth: as many as the wider type has in a dword, 4 or 8 for integers.
fn operations(uop: &Uop) -> usize {
    let [_, columns, rows] = &uop.src;
    if columns.ty.is_float() {
        2
    } else if element_bits(columns.ty) == 8 || element_bits(rows.ty) == 8 {
        4
    } else {
        8
    }
}

/// Executes dpas. ISA-185: `dst[m][n] = src0[m][n] + sum of src2[m][k] * src1[k][n]`. Each step of the depth is a loop over the
/// lanes `n`.
#[inline(always)]
pub fn body(thread: &mut Thread, uop: &Uop) {
    // Rows are packed one behind the other, so that all of them have at most eight registers.
    let rows = thread.dwords(uop.src[2].base);
    product_of(thread, uop, &rows);
}

/// The product, with the registers of source 2.
#[inline(always)]
fn product_of(thread: &mut Thread, uop: &Uop, packed: &[u32; ROWS * REG / 4]) {
    let [addend, columns, rows] = &uop.src;
    let depth = usize::from(uop.depth);
    let repeat = usize::from(uop.repeat).min(ROWS);
    let enabled = if uop.dst.store == Store::Null { 0 } else { uop.enabled(thread) };
    let mut results = [[0u32; LANES]; ROWS];
    let is_dword = |ty: Type| ty.size() == 4;
    if repeat == ROWS && addend.general && is_dword(addend.ty) {
        results.as_flattened_mut().copy_from_slice(&thread.dwords::<{ ROWS * LANES }>(addend.base));
    } else {
        for (m, result) in results.iter_mut().enumerate().take(repeat) {
            *result = start_values(thread, addend, m);
        }
    }
    if columns.ty.is_float() {
        add_products(thread, uop, packed, &mut results);
    } else {
        let (bits, row_bits) = (element_bits(columns.ty) as usize, element_bits(rows.ty) as usize);
        let count = depth * operations(uop);
        let mut dwords = [0; LANES];
        for k in 0..count {
            // A dword of a register has consecutive elements of its column.
            let place = k * bits;
            if place.is_multiple_of(32) {
                dwords = thread.dwords::<LANES>(columns.base + (place / 32 * REG) as u32);
            }
            let column = dwords.map(|dword| element(dword >> (place % 32), columns.ty));
            for (m, result) in results.iter_mut().enumerate().take(repeat) {
                let place = (m * count + k) * row_bits;
                let factor = element(packed.get(place / 32).copied().unwrap_or(0) >> (place % 32), rows.ty);
                for (sum, number) in result.iter_mut().zip(&column) {
                    *sum = sum.wrapping_add(factor.wrapping_mul(*number).cast_unsigned());
                }
            }
        }
    }
    if repeat == ROWS && enabled & 0xff == 0xff && is_dword(uop.dst.ty) {
        let mut bytes = [[0; 4]; ROWS * LANES];
        for (bytes, value) in bytes.iter_mut().zip(results.as_flattened()) {
            *bytes = value.to_le_bytes();
        }
        thread.write_registers(uop.dst.base, bytes.as_flattened());
        return;
    }
    for (m, result) in results.iter().enumerate().take(repeat) {
        match uop.dst.ty {
            Type::Hf | Type::Bf => {
                let format = if uop.dst.ty == Type::Hf { HF } else { BF };
                for (n, value) in result.iter().enumerate().filter(|(n, _)| enabled >> n & 1 != 0) {
                    let narrow = format.convert(*value, F, Round::NearestEven);
                    thread.write_registers(uop.dst.base + (m * LANES + n) as u32 * 2, &narrow.to_le_bytes()[..2]);
                }
            }
            _ => thread.set_dwords(uop.dst.base + (m * REG) as u32, result, enabled & 0xff),
        }
    }
}

/// Adds the products of floats to the results, in the order of the depth. Each number is widened once.
#[inline(always)]
fn add_products(thread: &Thread, uop: &Uop, packed: &[u32; ROWS * REG / 4], results: &mut [[u32; LANES]; ROWS]) {
    let [_, columns, rows] = &uop.src;
    let depth = usize::from(uop.depth);
    let repeat = usize::from(uop.repeat).min(ROWS);
    let factors = [numbers(packed, 0, rows.ty), numbers(packed, 1, rows.ty)];
    if depth == DEPTH {
        let columns_packed = thread.dwords::<{ LANES * DEPTH }>(columns.base);
        let [low, high] = [numbers(&columns_packed, 0, columns.ty), numbers(&columns_packed, 1, columns.ty)];
        let (low, high) = (low.as_chunks::<LANES>().0, high.as_chunks::<LANES>().0);
        let factors = factors[0].as_chunks::<DEPTH>().0.iter().zip(factors[1].as_chunks::<DEPTH>().0);
        for (result, factors) in results.iter_mut().take(repeat).zip(factors) {
            // The row is in a register of the host while its products are added.
            let mut sums = *result;
            for step in 0..DEPTH {
                add_product(&mut sums, factors.0[step], &low[step]);
                add_product(&mut sums, factors.1[step], &high[step]);
            }
            *result = sums;
        }
        return;
    }
    for step in 0..depth {
        let dwords = thread.dwords::<LANES>(columns.base + (step * REG) as u32);
        for (half, factors) in (0..).zip(&factors) {
            let column = numbers(&dwords, half, columns.ty);
            for (m, result) in results.iter_mut().enumerate().take(repeat) {
                add_product(result, factors.get(m * depth + step).copied().unwrap_or(0.0), &column);
            }
        }
    }
}

/// Adds the products of a number of a row and those of a step of the depth.
#[inline(always)]
fn add_product(sums: &mut [u32; LANES], factor: f32, column: &[f32; LANES]) {
    for (sum, number) in sums.iter_mut().zip(column) {
        *sum = factor.mul_add(*number, f32::from_bits(*sum)).to_bits();
    }
}

/// A row of source 0 as 32 bits; null is 0.
#[inline(always)]
fn start_values(thread: &Thread, addend: &Input, m: usize) -> [u32; LANES] {
    if !addend.general {
        return [0; LANES];
    }
    match addend.ty {
        Type::Hf | Type::Bf => {
            let words = thread.dwords::<{ LANES / 2 }>(addend.base + (m * LANES * 2) as u32);
            let mut row = [0; LANES];
            for (n, value) in row.iter_mut().enumerate() {
                let word = words[n / 2] >> (n % 2 * 16);
                *value = if addend.ty == Type::Hf { widened_half(word) } else { word << 16 };
            }
            row
        }
        _ => thread.dwords::<LANES>(addend.base + (m * REG) as u32),
    }
}
