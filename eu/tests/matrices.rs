// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! dpas on random matrices of all types (ISA-185 to ISA-188) against a triple loop: integers exactly, floats as fused
//! products in the order of the depth, rounded by the reference.
//!
//! 20,000 products of each pair of types in the long tier (`--features long-tests`), 200 in the quick one.

mod common;
mod random;
mod reference;

use arctic_eu::exec::{self, Budget, Environment, Group, GroupStop, Host, Program, Stop, Thread, Way, Workgroup};
use arctic_eu::isa::table::by_name;
use arctic_eu::isa::{Destination, Instruction, Place, Region, Source, Type, encode_native};
use arctic_eu::launch::memory::Space;
use arctic_eu::text;

use Type::{B, Bf, D, F, Hf, S2, S4, U2, U4, Ub, Ud};
use random::Random;
use reference::exact::{BRAIN, HALF, Number, Round, SINGLE};
use reference::value::wrap;

const PRODUCTS: usize = if cfg!(feature = "long-tests") { 20_000 } else { 200 };
/// Registers of the addend, the columns, the rows and the result.
const ADDEND: u8 = 20;
const COLUMNS: u8 = 40;
const ROWS: u8 = 60;
const RESULT: u8 = 80;

fn bits(ty: Type) -> usize {
    match ty {
        U2 | S2 => 2,
        U4 | S4 => 4,
        Ub | B => 8,
        Hf | Bf => 16,
        _ => 32,
    }
}

fn signed(ty: Type) -> bool {
    matches!(ty, B | S4 | S2 | D)
}

/// Element `index` of packed elements that begin at a register.
fn element(grf: &[u32], register: u8, ty: Type, index: usize) -> u32 {
    let bit = index * bits(ty);
    let dword = grf[usize::from(register) * 8 + bit / 32];
    dword >> (bit % 32) & (u32::MAX >> (32 - bits(ty)))
}

fn number(ty: Type, element: u32) -> Number {
    let format = match ty {
        Hf => HALF,
        Bf => BRAIN,
        _ => SINGLE,
    };
    format.decode(u64::from(element))
}

/// The result of row `m` and column `n`, as bits of F or as a dword.
fn expected(grf: &[u32], types: [Type; 3], null: bool, m: usize, n: usize) -> u32 {
    let [result, columns, rows] = types;
    // ISA-185: OPS elements in each of 8 steps of the depth.
    let ops = match (bits(columns), bits(rows)) {
        (16, _) => 2,
        (8, _) | (_, 8) => 4,
        _ => 8,
    };
    let addend = if null { 0 } else { grf[usize::from(ADDEND) * 8 + m * 8 + n] };
    let (mut sum, mut float) = (i128::from(addend), SINGLE.decode(u64::from(addend)));
    for k in 0..8 * ops {
        let row = element(grf, ROWS, rows, m * 8 * ops + k);
        // A dword of a register for each column, with consecutive elements of the column.
        let packed = 32 / bits(columns);
        let dword = grf[usize::from(COLUMNS) * 8 + k / packed * 8 + n];
        let column = dword >> (k % packed * bits(columns)) & (u32::MAX >> (32 - bits(columns)));
        if result == F {
            let product = number(rows, row).times(number(columns, column));
            // ISA-188: to nearest, whatever the mode.
            float = SINGLE.decode(SINGLE.encode(float.plus(product, Round::NearestEven), Round::NearestEven));
        } else {
            let value = |bits_of: u32, ty: Type| wrap(i128::from(bits_of), bits(ty) as u32, signed(ty));
            sum += value(row, rows) * value(column, columns);
        }
    }
    if result == F { SINGLE.encode(float, Round::NearestEven) as u32 } else { sum as u32 }
}

fn operand(reg: u8, ty: Type) -> Source {
    Source::Reg { place: Place::Grf { reg, byte: 0 }, region: Region::PACKED, ty, abs: false, negate: false }
}

/// Random elements: floats of a few magnitudes, so that sums cancel, and special ones.
fn dword(random: &mut Random, ty: Type) -> u32 {
    let bits = random.next() as u32;
    match ty {
        Hf if random.below(40) != 0 => bits & 0xbfff_bfff | 0x2000_2000,
        Bf if random.below(40) != 0 => bits & 0x83ff_83ff | 0x3c00_3c00,
        F if random.below(40) != 0 => bits & 0x83ff_ffff | 0x3c00_0000,
        _ => bits,
    }
}

/// Executes products of these types, and compares all registers.
fn check(types: [Type; 3], seed: u64) {
    let mut random = Random(seed);
    let [result, columns, rows] = types;
    let mut instruction = Instruction::new(by_name("dpas").unwrap());
    (instruction.size, instruction.depth) = (8, 8);
    instruction.dst = Destination { place: Place::Grf { reg: RESULT, byte: 0 }, stride: 1, ty: result };
    for _ in 0..PRODUCTS / 8 {
        let null = random.below(4) == 0;
        instruction.repeat = 1 + random.below(8) as u8;
        instruction.src = [operand(ADDEND, result), operand(COLUMNS, columns), operand(ROWS, rows)];
        if null {
            instruction.src[0] =
                Source::Reg { place: Place::NULL, region: Region::PACKED, ty: result, abs: false, negate: false };
        }
        let bytes = encode_native(&instruction).unwrap().to_le_bytes();
        let code = Program::translate(&bytes, 0, 128, Host::detect());
        let mask = if random.below(2) == 0 { 0xff } else { random.next() as u32 & 0xff };
        let mut thread = Thread::new(128, mask);
        let mut grf = vec![0u32; 128 * 8];
        for (index, into) in grf.iter_mut().enumerate() {
            let ty = match index / 8 {
                20..40 => result,
                40..60 => columns,
                60..80 => rows,
                _ => D,
            };
            *into = dword(&mut random, ty);
            thread.set_u32(index * 4, *into);
        }
        let space = Space::new();
        let mut group = Group::default();
        let mut memory = &space;
        let mut environment = Environment::new(&mut memory, &mut group);
        let stop = exec::run(&code, &mut thread, &mut environment, Budget::instructions(1), Way::Fast, &mut ());
        let text = text::format(&instruction, 0).unwrap();
        assert_eq!(stop, Stop::Budget, "{text}");
        for (index, &before) in grf.iter().enumerate() {
            let at = index.wrapping_sub(usize::from(RESULT) * 8);
            let (m, n) = (at / 8, at % 8);
            // ISA-189: by the execution mask.
            let written = m < usize::from(instruction.repeat) && mask >> n & 1 == 1;
            let wanted = if written { expected(&grf, types, null, m, n) } else { before };
            let got = thread.u32(index * 4);
            let nan = |bits: u32| written && result == F && SINGLE.is_quiet_nan(u64::from(bits));
            assert!(
                got == wanted || nan(got) && nan(wanted),
                "{text}, seed {seed:#x}, mask {mask:#x}: r{}.{}: expected {wanted:#x}, got {got:#x}",
                index / 8,
                index % 8
            );
        }
    }
}

/// Executes products of a pair of threads, of which each has half of the registers of source 2, the even thread the first ones
/// (VISA: DPASW), and compares the registers of both. Three products, so that the threads wait for each other more than once.
fn check_pairs(types: [Type; 3], seed: u64) {
    let mut random = Random(seed);
    let [result, columns, rows] = types;
    let mut instruction = Instruction::new(by_name("dpasw").unwrap());
    (instruction.size, instruction.depth) = (8, 8);
    instruction.dst = Destination { place: Place::Grf { reg: RESULT, byte: 0 }, stride: 1, ty: result };
    instruction.src = [operand(ADDEND, result), operand(COLUMNS, columns), operand(ROWS, rows)];
    for _ in 0..PRODUCTS / 16 {
        instruction.repeat = 1 + random.below(8) as u8;
        let mut bytes = Vec::new();
        let threads = [2, 4][random.below(2)];
        for reg in [RESULT + 8, RESULT + 16, RESULT] {
            instruction.dst.place = Place::Grf { reg, byte: 0 };
            bytes.extend(encode_native(&instruction).unwrap().to_le_bytes());
        }
        bytes.extend(common::code(common::END));
        let code = Program::translate(&bytes, 0, 128, Host::detect());
        let mut group = Workgroup::new(threads, 128, 0);
        let mut files = Vec::new();
        for thread in group.threads_mut() {
            thread.reset(0xff);
            let file: Vec<u32> = (0..128 * 8)
                .map(|index| match index / 8 {
                    20..40 => dword(&mut random, result),
                    40..60 => dword(&mut random, columns),
                    60..80 => dword(&mut random, rows),
                    _ => dword(&mut random, D),
                })
                .collect();
            file.iter().enumerate().for_each(|(index, value)| thread.set_u32(index * 4, *value));
            files.push(file);
        }
        let space = Space::new();
        let budget = [1, 3, u64::MAX][random.below(3)];
        let stop = loop {
            match group.step(&code, &mut &space, budget, Way::Fast, &mut ()) {
                GroupStop::Budget => {}
                stop => break stop,
            }
        };
        let text = text::format(&instruction, 0).unwrap();
        assert_eq!(stop, GroupStop::End, "{text}");
        let ops = if bits(rows) == 16 {
            2
        } else if bits(columns) == 8 || bits(rows) == 8 {
            4
        } else {
            8
        };
        let registers = (bits(rows) * ops * 8 * usize::from(instruction.repeat)).div_ceil(256);
        let even = registers.div_ceil(2);
        for (number, thread) in group.threads().iter().enumerate() {
            let mut grf = files[number].clone();
            for register in 0..registers {
                let (from, source) =
                    if register < even { (number & !1, register) } else { (number | 1, register - even) };
                let at = |register: usize| (usize::from(ROWS) + register) * 8;
                grf[at(register)..at(register) + 8].copy_from_slice(&files[from][at(source)..at(source) + 8]);
            }
            for (m, n) in (0..usize::from(instruction.repeat)).flat_map(|m| (0..8).map(move |n| (m, n))) {
                let wanted = expected(&grf, types, false, m, n);
                for reg in [RESULT, RESULT + 8, RESULT + 16] {
                    let got = thread.grf(usize::from(reg) + m, n);
                    let nan = |bits: u32| result == F && SINGLE.is_quiet_nan(u64::from(bits));
                    assert!(
                        got == wanted || nan(got) && nan(wanted),
                        "{text}, seed {seed:#x}: thread {number}, row {m}, column {n}: expected {wanted:#x}, got {got:#x}"
                    );
                }
            }
        }
    }
}

/// ISA-190.
#[test]
fn pairs_of_threads_share_the_rows_of_their_products() {
    for (index, types) in [[F, Hf, Hf], [F, Bf, Bf], [D, B, Ub], [Ud, U4, S4], [D, B, S4], [D, U2, B], [D, S2, S2]]
        .into_iter()
        .enumerate()
    {
        check_pairs(types, 0x9a13 + index as u64);
    }
    // A thread without a partner waits for ever.
    let code = common::code(&format!("dpasw.8x8 (8|M0) r80:d r20:d r40:b r60.0:b\n{}", common::END));
    let code = Program::translate(&code, 0, 128, Host::detect());
    let mut group = Workgroup::new(1, 128, 0);
    let stop = group.step(&code, &mut &Space::new(), u64::MAX, Way::Fast, &mut ());
    assert!(matches!(stop, GroupStop::Deadlock(_)), "{stop:?}");
}

#[test]
fn products_of_integers_are_those_of_a_triple_loop() {
    const NARROW: [Type; 6] = [Ub, B, U4, S4, U2, S2];
    for (index, result) in [D, Ud].into_iter().enumerate() {
        for columns in NARROW {
            for rows in NARROW {
                check([result, columns, rows], 0xd9a5 + index as u64);
            }
        }
    }
}

#[test]
fn products_of_floats_are_fused_in_the_order_of_the_depth() {
    for (index, ty) in [Hf, Bf].into_iter().enumerate() {
        check([F, ty, ty], 0xf10a + index as u64);
    }
}
