// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random values of operands, and registers with them.

use arctic_eu::isa::{Instruction, Place, Source, Type};

use super::generate::{Combination, Generator};
use crate::random::Random;
use crate::reference::state::State;
use crate::reference::value::{format, is_float, width};
use Type::{B, Bf, F, Hf, Ub, Uw, W};

/// Values at which something changes.
fn special(ty: Type) -> &'static [u64] {
    match ty {
        F => &[
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x7f_ffff,
            0x80_0000,
            0x8080_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x3f7f_ffff,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffc1_2345,
            0x7f80_0001,
            0xffa0_0000,
            0x4f00_0000,
            0xcf00_0000,
            0x4f80_0000,
            0x4eff_ffff,
            0x4b00_0000,
            0x4aff_ffff,
            0x3f00_0000,
            0xbf00_0000,
            0x477f_e000,
            0x477f_f000,
            0x3880_0000,
            0x387f_c000,
            0x3300_0000,
            0x3380_0000,
            0x4370_8000,
            0x7f7f_8000,
        ],
        Hf => &[
            0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
            0xfe12, 0x7c01, 0xfd00, 0x3800, 0xb800, 0x6400, 0x67ff, 0x5bf8, 0x5c00,
        ],
        Bf => {
            &[0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x3f00]
        }
        Ub | B => &[0, 1, 0x7f, 0x80, 0xff, 0x81, 31, 32, 33],
        Uw | W => &[0, 1, 0x7fff, 0x8000, 0xffff, 0x8001, 0xff, 0x100, 31, 32, 33],
        _ => &[0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x8000_0001, 0xffff, 0x1_0000, 31, 32, 33, 0x7fff, 0x8000],
    }
}

impl Generator {
    /// Bits of an element.
    pub fn value(&mut self, ty: Type) -> u64 {
        let width = width(ty);
        let all = u64::MAX >> (64 - width);
        match self.random.below(6) {
            0 | 1 => self.pick(special(ty)),
            // Near a special value.
            2 => self.pick(special(ty)).wrapping_add(self.random.next() % 5).wrapping_sub(2) & all,
            // Of all magnitudes.
            3 if !is_float(ty) => {
                let value = self.random.next() >> self.random.below(64);
                (if self.chance(2) { value } else { value.wrapping_neg() }) & all
            }
            3 => self.float(ty),
            _ => self.random.next() & all,
        }
    }

    /// A float of which others cancel it, or with which products are at an end of the range: with one of few exponents, and
    /// often few bits, so that results are ties.
    fn float(&mut self, ty: Type) -> u64 {
        let format = format(ty);
        let bias = format.bias();
        let half = (bias + 1) / 2;
        let exponent = self.pick(&[0, 0, 0, half, -half, bias, 1 - bias]) + self.pick(&[-1, 0, 0, 0, 1]);
        let exponent = (bias + exponent).clamp(0, 2 * bias) as u64;
        let all = (1 << format.fraction) - 1;
        let shift = |random: &mut Random| random.below(format.fraction as usize);
        let fraction = match self.random.below(3) {
            0 => 0,
            _ => (self.random.next() & all) >> shift(&mut self.random) << shift(&mut self.random) & all,
        };
        let sign = if self.chance(2) { format.sign_bit() } else { 0 };
        exponent << format.fraction | fraction | sign
    }

    /// Values of the operands of one lane that belong together: equal or opposite ones, which are zeros of both signs too, and
    /// for mad a product of about half a unit of the addend's last place, where a second rounding shows.
    fn related(&mut self, combination: &Combination) -> Option<[u64; 3]> {
        let ty = combination.src[0];
        if !is_float(ty) || !combination.src.iter().all(|other| *other == ty) || !self.chance(4) {
            return None;
        }
        let format = format(ty);
        let sign = |random: &mut Random| (random.next() & 1) * format.sign_bit();
        if combination.name != "mad" || self.chance(4) {
            let value = if self.chance(4) { 0 } else { self.value(ty) & !format.sign_bit() };
            return Some([0; 3].map(|_| value | sign(&mut self.random)));
        }
        let bits = format.fraction;
        let unit = 1u64 << bits;
        // The factor is about the inverse of the other.
        let a = unit | self.random.next() & (unit - 1);
        let b = ((unit << (bits + 1)) + a / 2) / a;
        let exponents = [0; 2].map(|_| format.bias() - 4 - self.random.below(4) as i32);
        let sum = exponents[0] + exponents[1] - format.bias();
        let addend = sum + bits as i32 + 1 + self.pick(&[0, 0, 1, 2]);
        let pack = |significand: u64, exponent: i32, sign: u64| {
            sign | (exponent.clamp(1, 2 * format.bias()) as u64) << bits | significand & (unit - 1)
        };
        let c = self.random.next() & (unit - 1);
        Some([
            pack(c, addend, sign(&mut self.random)),
            pack(a, exponents[0], sign(&mut self.random)),
            pack(b, exponents[1], sign(&mut self.random)),
        ])
    }

    /// Random registers with values of the types of the operands.
    pub fn state(&mut self, combination: &Combination, instruction: &Instruction) -> State {
        let registers = if self.chance(4) { 256 } else { 128 };
        let mut state = State {
            grf: self.random.bytes(registers * 32),
            acc: self.random.bytes(256).try_into().unwrap(),
            acc_high: self.random.bytes(256).try_into().unwrap(),
            a0: self.random.bytes(32).try_into().unwrap(),
            flags: [self.random.next() as u32, self.random.next() as u32],
            cr0: if self.chance(2) {
                0x4c0
            } else if self.chance(3) {
                0x4f0
            } else {
                self.random.next() as u32 & 0x4f0
            },
            mask: if self.chance(2) { u32::MAX } else { self.random.next() as u32 },
        };
        // Elements at the same place of all operands, which lanes of packed operands read together.
        let related: Vec<Option<[u64; 3]>> = (0..128).map(|_| self.related(combination)).collect();
        for (index, ty) in combination.src.iter().enumerate() {
            let size = (width(*ty) / 8) as usize;
            let accumulated = matches!(instruction.src[index], Source::Reg { place: Place::Arf { reg: 0x20, .. }, .. });
            if let Source::Reg { place: Place::Grf { reg, byte }, .. } = instruction.src[index] {
                let base = usize::from(reg) * 32 + usize::from(byte) % size;
                for (element, related) in related.iter().enumerate().take(512 / size) {
                    let bits = related.map_or_else(|| self.value(*ty), |bits| bits[index]);
                    put(&mut state.grf, base + element * size, *ty, bits);
                }
            } else if accumulated || combination.name == "mac" {
                for element in 0..256 / size {
                    let mut acc = state.acc.to_vec();
                    put(&mut acc, element * size, *ty, self.value(*ty));
                    state.acc.copy_from_slice(&acc);
                }
            }
        }
        state
    }
}

/// Writes an element. Elements beyond the end are in the first registers.
fn put(bytes: &mut [u8], at: usize, ty: Type, bits: u64) {
    let length = bytes.len();
    for index in 0..(width(ty) / 8) as usize {
        bytes[(at + index) % length] = (bits >> (8 * index)) as u8;
    }
}
