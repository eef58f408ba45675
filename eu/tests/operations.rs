// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Differential test of the instructions on lanes: random instructions on random registers, executed by the interpreter in all
//! of its ways, against the reference in `reference/`, bit by bit, all registers compared.
//!
//! Each opcode is executed with each combination of its types (ISA-110) on at least 20,000 lanes in the long tier
//! (`cargo test --release --features long-tests --test operations`) and on 200 in the quick one; of floats on ten times as many.

mod differential;
mod random;
mod reference;

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

/// ISA-045, ISA-046, ISA-124.
#[test]
fn conversions() {
    check(&["mov", "frc", "rndu", "rndd", "rnde", "rndz"]);
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
