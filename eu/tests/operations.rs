// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Differential test of the instructions on lanes: random instructions on random registers, executed by the interpreter in all
//! of its ways, against the reference in `reference/`, bit by bit, all registers compared.
//!
//! Each opcode is executed with each combination of its types (ISA-110) on at least 20,000 lanes in the long tier
//! (`cargo test --release --features long-tests --test operations`) and on 200 in the quick one; of floats on ten times as many.

mod differential;
mod random;
mod reference;

use arctic_eu::exec::{FaultKind, Host, Kind, Program};
use arctic_eu::isa::table::{Execute, TABLE};
use arctic_eu::isa::{Destination, Instruction, Place, Region, Source, Type, encode_native};
use differential::{Report, test_opcode};

/// Lanes of each combination of types.
const LANES: usize = if cfg!(feature = "long-tests") { 20_000 } else { 200 };

/// Tests opcodes, and fails with all disagreements.
fn check(opcodes: &[&str]) {
    let mut report = Report::default();
    for name in opcodes {
        test_opcode(name, LANES, &mut report);
    }
    println!("{report}");
    assert!(report.disagreements.is_empty(), "{report}");
}

/// ISA-111, ISA-118, ISA-044.
#[test]
fn sums() {
    check(&["add", "add3", "avg"]);
}

/// ISA-111, ISA-112, ISA-119 to ISA-122, ISA-130.
#[test]
fn products() {
    check(&["mul", "mad", "mac", "dp4a", "mach", "addc", "subb"]);
}

/// ISA-041, ISA-045, ISA-046, ISA-123, ISA-124.
#[test]
fn conversions() {
    check(&["mov", "movi", "frc", "rndu", "rndd", "rnde", "rndz"]);
}

/// ISA-113, ISA-114, ISA-017.
#[test]
fn logic_and_shifts() {
    check(&["not", "and", "or", "xor", "bfn", "shl", "shr", "asr", "rol", "ror"]);
}

/// ISA-065 to ISA-067.
#[test]
fn comparisons() {
    check(&["cmp", "cmpn", "sel", "csel"]);
}

/// ISA-115 to ISA-117.
#[test]
fn bit_fields() {
    check(&["bfe", "bfi1", "bfi2", "bfrev", "cbit", "lzd", "fbh", "fbl"]);
}

/// ISA-041: a 64-bit type is a fault, but for a copy of bits, which `conversions` compares.
#[test]
fn operations_on_64_bit_types_are_faults() {
    let place = Place::Grf { reg: 10, byte: 0 };
    let source = |ty, negate| Source::Reg { place, region: Region::PACKED, ty, abs: false, negate };
    let mut faults = 0;
    for row in TABLE.iter().filter(|row| matches!(row.execute, Execute::Lane(_))) {
        for (dst, src) in [(Type::Q, Type::Q), (Type::Uq, Type::Uq), (Type::Df, Type::Df), (Type::D, Type::Q)] {
            for negate in [false, true] {
                let mut from = Instruction::new(row);
                (from.size, from.modifier) = (8, if row.name.starts_with("cmp") || row.name == "math" { 1 } else { 0 });
                from.dst = Destination { place, stride: 1, ty: dst };
                from.src = [source(src, negate); 3];
                let Ok(word) = encode_native(&from) else { continue };
                let code = Program::translate(&word.to_le_bytes(), 0, 128, Host::Portable);
                let copies = row.name == "mov" && dst == src && src != Type::Df && !negate;
                let fault = matches!(code.uops[0].kind, Kind::Fault(FaultKind::Types | FaultKind::Undecodable));
                assert_eq!(fault, !copies, "{} {dst:?} <- {src:?}", row.name);
                faults += u32::from(fault);
            }
        }
    }
    assert!(faults > 200, "{faults}");
}
