// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_MATH: instructions, operands and flags of the ALU (V8-145..156).

use super::commands::{gpr, gpr_of};
use super::*;
use arctic_fidelity::proves;

const SRCA: u32 = 0x20;
const SRCB: u32 = 0x21;
const ACCU: u32 = 0x31;
const ZF: u32 = 0x32;
const CF: u32 = 0x33;

const FENCE_RD: u32 = 0x001 << 20;
const FENCE_WR: u32 = 0x002 << 20;
const ADD: u32 = 0x100 << 20;
const SUB: u32 = 0x101 << 20;
const AND: u32 = 0x102 << 20;

/// Returns an ALU instruction.
fn alu(opcode: u32, first: u32, second: u32) -> u32 {
    opcode << 20 | first << 10 | second
}

fn load(source: u32, gpr: u32) -> u32 {
    alu(0x080, source, gpr)
}

fn store(gpr: u32, result: u32) -> u32 {
    alu(0x180, gpr, result)
}

/// Returns MI_MATH with these instructions.
fn math(instructions: &[u32]) -> Vec<u32> {
    let mut command = vec![MI_MATH | (instructions.len() as u32 - 1)];
    command.extend(instructions);
    command
}

/// Runs ALU instructions on an engine of `class` with GPR0 and GPR1 preset.
fn run(class: EngineClass, a: u64, b: u64, instructions: &[u32]) -> (EngineBench, Outcome) {
    let mut bench = EngineBench::new(class);
    let outcome = bench.batch(&[&gpr(0, a)[..], &gpr(1, b), &math(instructions)].concat());
    (bench, outcome)
}

#[test]
fn operations_and_flags() {
    proves!(
        [V8_118, V8_145, V8_146, V8_147, V8_148, V8_149, V8_152, V8_153],
        "every engine implements the operations on all sixteen registers, with flags"
    );
    let vectors = [
        (0x100, u64::MAX, 1, 0, true, true),
        (0x100, 1 << 63, 1, 1 << 63 | 1, false, false),
        (0x101, 1, 2, u64::MAX, false, true),
        (0x101, 2, 2, 0, true, false),
        (0x101, 3, 2, 1, false, false),
        (0x102, 0xf0, 0x3c, 0x30, false, false),
        (0x102, 0xf0, 0x0f, 0, true, false),
        (0x103, 0xf0, 0x0f, 0xff, false, false),
        (0x104, 0xff, 0xff, 0, true, false),
        (0x105, 3, 63, 3 << 32, false, false),
        (0x105, 1 << 63, 1, 0, true, false),
        (0x106, 1 << 63, 15, 1 << 55, false, false),
        (0x107, 1 << 63, 3, 7 << 61, false, false),
        (0x107, 1 << 62, 2, 1 << 60, false, false),
        (0x107, 1 << 63, 0, 1 << 63, false, false),
    ];
    for class in [0, 1, 2, 3, 4].map(|n| EngineClass::BY_GUC[n]) {
        for (n, (opcode, a, b, value, zero, carry)) in vectors.into_iter().enumerate() {
            let to = 2 + n as u32 % 12;
            let program =
                [load(SRCA, 0), load(SRCB, 1), opcode << 20, store(to, ACCU), store(to + 1, ZF), store(to + 2, CF)];
            let (bench, outcome) = run(class, a, b, &program);
            assert_eq!(outcome, Outcome::Complete);
            let all = |flag| if flag { u64::MAX } else { 0 };
            let seen = [0, 1, 2].map(|n| gpr_of(&bench, to + n));
            assert_eq!(seen, [value, all(zero), all(carry)], "{class:?} {opcode:#x} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn loads_and_stores_with_inversion() {
    proves!(V8_150, "LOAD0, LOADINV, and LOAD1, which loads all ones (trap T9)");
    proves!(V8_151, "STOREINV of the accumulator and flags");
    let program = [
        alu(0x481, SRCA, 0),
        alu(0x081, SRCB, 0),
        ADD,
        store(2, ACCU),
        alu(0x580, 3, ACCU),
        alu(0x580, 4, ZF),
        alu(0x580, 5, CF),
        alu(0x480, SRCB, 1),
        ADD,
        store(6, ACCU),
        store(7, CF),
    ];
    let (bench, outcome) = run(EngineClass::Copy, 0, 2, &program);
    assert_eq!(outcome, Outcome::Complete);
    let seen = [2, 3, 4, 5, 6, 7].map(|n| gpr_of(&bench, n));
    assert_eq!(seen, [u64::MAX, 0, u64::MAX, u64::MAX, u64::MAX - 3, u64::MAX]);
}

#[test]
fn flags_belong_to_the_operations() {
    proves!(
        V8_146,
        "only operations change the accumulator and flags. Loads, stores, memory accesses and fences do not (trap \
        T37)"
    );
    let mut bench = EngineBench::new(EngineClass::Render);
    bench.put64(DATA, 5);
    let mut batch = gpr(0, VA + DATA).to_vec();
    batch.extend(gpr(1, VA + DATA));
    let program = [
        load(SRCA, 0),
        load(SRCB, 1),
        SUB,
        // The zero flag is now set. The following instructions are not operations.
        load(SRCA, 0),
        alu(0x081, SRCB, 0),
        alu(0x481, SRCB, 0),
        store(2, CF),
        FENCE_RD,
        FENCE_WR,
        0,
        store(3, ZF),
        store(4, ACCU),
        alu(0x081, SRCB, 0),
        ADD,
        store(5, ZF),
        alu(0x082, 6, ACCU),
        alu(0x181, ACCU, 3),
        store(7, ZF),
        store(8, ACCU),
    ];
    batch.extend(math(&program));
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    let seen = [2, 3, 4, 5, 6, 7, 8].map(|n| gpr_of(&bench, n));
    assert_eq!(seen, [0, u64::MAX, 0, 0, 5, 0, VA + DATA]);
    assert_eq!(bench.get64(DATA), u64::MAX);
}

#[test]
fn indirect_accesses() {
    proves!(
        V8_154,
        "the low three address bits are ignored, and a register loaded from memory can be used immediately"
    );
    proves!(V8_155, "a STOREIND is visible to the ALU after the fence, to the next command and to the CPU");
    let mut bench = EngineBench::new(EngineClass::VideoDecode);
    bench.put64(DATA, 0x1122_3344_5566_7788);
    let mut batch = [gpr(0, VA + DATA + 7), gpr(1, 0), gpr(2, 0x9999_aaaa_bbbb_cccc)].concat();
    let program = [
        load(SRCA, 0),
        load(SRCB, 1),
        ADD,
        alu(0x082, 3, ACCU),
        alu(0x181, ACCU, 2),
        FENCE_WR,
        alu(0x082, 4, ACCU),
        FENCE_RD,
        load(SRCA, 3),
        alu(0x081, SRCB, 0),
        ADD,
        store(5, ACCU),
    ];
    batch.extend(math(&program));
    batch.extend([MI_COPY_MEM_MEM | 3, (VA + DATA) as u32 + 8, 0, (VA + DATA) as u32, 0]);
    assert_eq!(bench.batch(&batch), Outcome::Complete);
    let seen = [3, 4, 5].map(|n| gpr_of(&bench, n));
    assert_eq!(seen, [0x1122_3344_5566_7788, 0x9999_aaaa_bbbb_cccc, 0x1122_3344_5566_7788]);
    assert_eq!((bench.get64(DATA), bench.get(DATA + 8)), (0x9999_aaaa_bbbb_cccc, 0xbbbb_cccc));
}

#[test]
fn indirect_addresses_are_the_processes() {
    proves!(
        V8_154,
        "addresses are PPGTT addresses, in the ring as well as in non-privileged batches. An unmapped address \
        faults"
    );
    let program = math(&[load(SRCA, 0), alu(0x081, SRCB, 0), ADD, alu(0x181, ACCU, 1)]);
    for address in [VA + DATA, DATA] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let outcome = bench.ring(&[&gpr(0, address)[..], &gpr(1, 7), &program].concat());
        let mapped = address > VA;
        assert_eq!(outcome == Outcome::Complete, mapped, "{address:#x}: {outcome:?}");
        assert_eq!(matches!(outcome, Outcome::Halted(Halt::Fault(_))), !mapped);
        assert_eq!(bench.get64(DATA), if mapped { 7 } else { 0 });
    }
}

#[test]
fn an_unknown_instruction_is_invalid() {
    proves!(
        [V8_147, V8_148, V8_149],
        "an instruction with an invalid opcode, prefix or used operand makes the command illegal. Unused operands \
        are ignored"
    );
    let invalid = [
        alu(0x003, 0, 0),
        alu(0x083, SRCA, 0),
        alu(0x108, 0, 0),
        alu(0x182, ACCU, 0),
        alu(0x500, 0, 0),
        alu(0x880, SRCA, 0),
        alu(0x200, 0, 0),
        load(SRCA, 0x10),
        load(SRCA, ACCU),
        load(0x22, 0),
        load(0, 1),
        alu(0x081, ACCU, 0),
        store(0x10, ACCU),
        store(SRCA, ACCU),
        store(0, 0x34),
        store(0, 1),
        alu(0x082, 0, ZF),
        alu(0x082, 0x10, ACCU),
        alu(0x181, CF, 0),
        alu(0x181, ACCU, 0x20),
    ];
    for instruction in invalid {
        let (bench, outcome) = run(EngineClass::Copy, 1, 1, &[0, instruction, alu(0x580, 2, ACCU)]);
        assert!(matches!(outcome, Outcome::Halted(Halt::IllegalCommand { .. })), "{instruction:#x}: {outcome:?}");
        assert_eq!(gpr_of(&bench, 2), 0, "subsequent instructions are not executed");
        assert_eq!((bench.own(reg::ESR) & 1, bench.own(reg::IPEHR)), (1, MI_MATH | 2));
    }
    let (bench, outcome) =
        run(EngineClass::Copy, 6, 3, &[load(SRCA, 0), load(SRCB, 1), AND | 0xf_ffff, store(2, ACCU)]);
    assert_eq!((outcome, gpr_of(&bench, 2)), (Outcome::Complete, 2));
}

#[test]
fn registers_are_in_the_register_space() {
    proves!(
        V8_145,
        "the GPRs are accessible by LRI, LRM, LRR, SRM and the host, at base + 0x600 + 8n, on every engine"
    );
    for class in EngineClass::BY_GUC {
        let mut bench = EngineBench::new(class);
        let at = (VA + DATA) as u32;
        bench.put(DATA, 0x5a5a);
        let mut batch = Vec::new();
        for n in 0..16u32 {
            batch.extend(gpr(n, 0x1_0000_0001 * u64::from(n + 1)));
            batch.extend([MI_STORE_REGISTER_MEM | CS_MMIO | 2, 0x600 + 8 * n + 4, at + 0x100 + 4 * n, 0]);
        }
        batch.extend([0x1488_0002, 0x678, at, 0, 0x150c_0001, 0x678, 0x600]);
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert!((0..16).all(|n| bench.get(DATA + 0x100 + 4 * n) == n as u32 + 1), "{class:?}");
        assert_eq!((bench.gt.read(bench.base() + 0x600), bench.gt.read(bench.base() + 0x67c)), (0x5a5a, 16));
        bench.gt.write(bench.base() + 0x608, 0x77);
        assert_eq!(gpr_of(&bench, 1), 0x2_0000_0077);
    }
}

#[test]
fn every_register_has_its_number() {
    proves!(
        [V8_145, V8_149],
        "each of the sixteen registers is read and written by its index, without affecting other registers"
    );
    for n in 0..16u32 {
        let value = |n: u32| 0x1111_0000_0000 * u64::from(n + 1) + u64::from(n);
        let mut bench = EngineBench::new(EngineClass::VideoDecode);
        let mut batch: Vec<u32> = (0..16).flat_map(|n| gpr(n, value(n))).collect();
        batch.extend(math(&[load(SRCA, n), alu(0x081, SRCB, 0), ADD, store(15 - n, ACCU)]));
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        for other in 0..16 {
            let wanted = if other == 15 - n { value(n) } else { value(other) };
            assert_eq!(gpr_of(&bench, other), wanted, "R{n} to R{}: R{other}", 15 - n);
        }
    }
}

#[test]
fn math_is_predicated() {
    proves!(
        V8_156,
        "MI_MATH has no predicate enable but depends on the global predicate. If it is set, registers are \
        unchanged. The MOCS field (header 14:8) selects a cache policy, which has no effect in this model"
    );
    for predicated in [false, true] {
        let mut bench = EngineBench::new(EngineClass::Compute);
        let mut program = math(&[alu(0x481, SRCA, 0), alu(0x081, SRCB, 0), ADD, store(2, ACCU)]);
        program[0] |= 0x7f << 8;
        let batch = [&[0x1108_0001, 0x3b8, u32::from(predicated)][..], &program, &[0x0080_0000]].concat();
        assert_eq!(bench.batch(&batch), Outcome::Complete);
        assert_eq!(gpr_of(&bench, 2), if predicated { 0 } else { u64::MAX });
    }
}
