// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The functions of math against the reference, within the units of the last place of OpenCL's table (ISA-150 to ISA-153),
//! and a division of integers made of them, with exact quotient and remainder.
//!
//! The long tier (`cargo test --release --features long-tests --test math`) has a million numbers a function and all numbers
//! of 16 bits, the quick one 1 % of them.

mod random;
mod reference;

use arctic_eu::exec::thread::CR;
use arctic_eu::exec::{self, Budget, Environment, FaultKind, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::Space;
use arctic_eu::text::assemble;

use random::Random;
use reference::exact::{Format, HALF, SINGLE};
use reference::math::{Function, Real, check, value};

const LONG: bool = cfg!(feature = "long-tests");
const WAYS: [Way; 2] = [Way::Fast, Way::General];

/// OpenCL's bound in units of the last place for single precision.
fn bound(function: Function) -> u64 {
    match function {
        Function::Inv | Function::Rsqt => 2,
        Function::Log | Function::Exp | Function::Sqt => 3,
        Function::Sin | Function::Cos => 4,
    }
}

/// A thread of 16 channels that has executed the code on these dwords of r10.. and r20...
fn execute(text: &str, cr0: u32, way: Way, inputs: &[[u32; 16]]) -> Result<Thread, Stop> {
    let bytes = assemble(text).unwrap_or_else(|errors| panic!("{}", errors.render(text, "test")));
    let code = Program::translate(&bytes, 0, 128, Host::detect());
    run(&code, cr0, way, inputs)
}

fn run(code: &Program, cr0: u32, way: Way, inputs: &[[u32; 16]]) -> Result<Thread, Stop> {
    let space = Space::new();
    let mut group = Group::default();
    let mut memory = &space;
    let mut environment = Environment::new(&mut memory, &mut group);
    let mut thread = Thread::new(128, 0xffff);
    thread.set_u32(CR, cr0);
    thread.update_modes();
    for (index, input) in inputs.iter().enumerate() {
        for (lane, value) in input.iter().enumerate() {
            thread.set_grf(10 + index * 10 + lane / 8, lane % 8, *value);
        }
    }
    let budget = code.instructions.len() as u64;
    match exec::run(code, &mut thread, &mut environment, Budget::instructions(budget), way, &mut ()) {
        Stop::Budget | Stop::End => Ok(thread),
        stop => Err(stop),
    }
}

fn output(thread: &Thread, register: usize, lane: usize) -> u32 {
    thread.grf(register + lane / 8, lane % 8)
}

/// Compares a function on these numbers; returns the greatest distance in 1/1024 of a unit of the last place.
fn compare(function: Function, format: Format, bound: u64, numbers: &mut dyn Iterator<Item = u32>) -> u64 {
    let (name, ty) = (function.name(), if format == HALF { "hf" } else { "f" });
    let stride = if format == HALF { 2 } else { 1 };
    let text = format!("math.{name} (16|M0) r30.0<{stride}>:{ty} r10.0<{stride};1,0>:{ty}\n");
    let code = Program::translate(&assemble(&text).unwrap(), 0, 128, Host::detect());
    let mut greatest = 0;
    loop {
        let mut input = [0u32; 16];
        let mut count = 0;
        for (slot, number) in input.iter_mut().zip(&mut *numbers) {
            *slot = number;
            count += 1;
        }
        if count == 0 {
            return greatest;
        }
        for way in WAYS {
            // Denormals of all types are kept.
            let thread = run(&code, 0x4c0, way, &[input]).unwrap();
            for (lane, &bits) in input[..count].iter().enumerate() {
                let got = u64::from(output(&thread, 30, lane)) & (format.sign_bit() * 2 - 1);
                let checked = check(value(function, format, u64::from(bits)), format, got, bound);
                let distance = checked.unwrap_or_else(|wanted| {
                    panic!("math.{name}:{ty} of {bits:#x}, {way:?}: expected {wanted}, got {got:#x}")
                });
                greatest = greatest.max(distance);
            }
        }
    }
}

/// ISA-150 to ISA-152: numbers of all magnitudes, near 1, of angles, and special ones.
#[test]
fn functions_of_single_precision_are_within_the_bounds_of_opencl() {
    let count = if LONG { 1_000_000 } else { 10_000 };
    for function in Function::ALL {
        let mut random = Random(0x3a74);
        let specials = [
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x7f_ffff,
            0x80_0000,
            0x3f80_0000,
            0xbf80_0000,
            0x3f7f_ffff,
            0x3f80_0001,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x7f80_0001,
            0x42ff_ffff,
            0x4300_0000,
            0xc2fc_0000,
            0xc315_0000,
            0xc316_0000,
            0x4049_0fdb,
            0x3fc9_0fdb,
            0x40c9_0fdb,
            0x4b49_0fdb,
            0x7e00_0000,
        ];
        let mut numbers = specials.into_iter().chain((0..count).map(|_| {
            let bits = random.next() as u32;
            match random.below(4) {
                // Near 1.
                0 => 0x3f80_0000 ^ bits & 0x8000_0000 ^ (bits & 0x7f_ffff) >> random.below(23),
                // Between 2^-8 and 2^8, of both signs.
                1 => bits & 0x807f_ffff | (119 + random.below(16) as u32) << 23,
                _ => bits,
            }
        }));
        let greatest = compare(function, SINGLE, bound(function), &mut numbers);
        let name = function.name();
        println!("math.{name}:f, {count} numbers: greatest distance {:.3} ulp", greatest as f64 / 1024.0);
    }
}

/// ISA-153: computed as F and rounded to HF; so within one unit.
#[test]
fn functions_of_half_precision_are_within_one_unit() {
    let step = if LONG { 1 } else { 101 };
    for function in Function::ALL {
        let greatest = compare(function, HALF, 1, &mut (0..0x1_0000).step_by(step));
        let name = function.name();
        println!("math.{name}:hf, each {step}th number: greatest distance {:.3} ulp", greatest as f64 / 1024.0);
    }
}

/// The checks of this file: beyond the greatest number only infinity is accepted, unless the greatest number is within the
/// bound.
#[test]
fn saturated_results_are_rejected() {
    let greatest = 0x7f7f_ffff;
    let power = |exponent| Real { negative: false, magnitude: 1 << 63, exponent: exponent - 63 };
    assert!(power(200).distance(SINGLE, greatest) > 4 * 1024);
    assert_eq!(power(200).distance(SINGLE, SINGLE.infinity()), 0);
    // 2^128 is as far from the greatest number as that is from the one before it: half a unit of 2^128.
    assert_eq!(power(128).distance(SINGLE, greatest), 512);
    assert_eq!(power(128).distance(SINGLE, greatest - 1), 1024);
    assert_eq!(power(128).distance(SINGLE, SINGLE.infinity()), 0);
    assert_eq!(power(127).distance(SINGLE, SINGLE.infinity()), 1024 << 23);
    for (function, format, input, saturated) in [
        (Function::Exp, SINGLE, 0x4348_0000, greatest),
        (Function::Inv, SINGLE, 1, greatest),
        (Function::Exp, HALF, 0x4d00, 0x7bff),
        (Function::Inv, HALF, 1, 0x7bff),
    ] {
        let value = value(function, format, input);
        assert!(check(value, format, saturated, bound(function)).is_err(), "{function:?}");
        assert_eq!(check(value, format, format.infinity(), bound(function)), Ok(0), "{function:?}");
    }
}

/// The checks of this file: sine and cosine of large numbers are numbers from -1 to 1.
#[test]
fn results_beyond_one_are_rejected_for_sine_and_cosine_of_large_numbers() {
    for function in [Function::Sin, Function::Cos] {
        let value = value(function, SINGLE, 0x4b49_0fdb);
        for accepted in [0, 0x8000_0000, 0x3f80_0000, 0xbf80_0000, 0xbf00_0000] {
            assert_eq!(check(value, SINGLE, accepted, 4), Ok(0), "{accepted:#x}");
        }
        for rejected in [0x3f80_0001, 0xbf80_0001, 0xc0a0_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0000] {
            assert!(check(value, SINGLE, rejected, 4).is_err(), "{rejected:#x}");
        }
    }
}

/// ISA-131: a denormal counts as a zero, and a result below the normal numbers is one.
#[test]
fn denormals_of_functions_are_flushed() {
    for (name, input, expected) in [
        ("inv", 1, 0x7f80_0000),
        ("inv", 0x8000_0001, 0xff80_0000),
        ("inv", 0x7f00_0001, 0),
        ("inv", 0xff00_0001, 0x8000_0000),
        ("rsqt", 0x7f_ffff, 0x7f80_0000),
        ("sqt", 0x8000_0001, 0x8000_0000),
        ("log", 0x8000_0001, 0xff80_0000),
        ("exp", 0x8000_0001, 0x3f80_0000),
        ("exp", 0xc2fd_0000, 0),
        ("sin", 0x8000_0001, 0x8000_0000),
    ] {
        for way in WAYS {
            let text = format!("math.{name} (16|M0) r30.0<1>:f r10.0<1;1,0>:f\n");
            let thread = execute(&text, 0, way, &[[input; 16]]).unwrap();
            assert_eq!(output(&thread, 30, 3), expected, "math.{name} of {input:#x}, {way:?}");
        }
    }
}

/// ISA-150: the functions 9 to 15 do not exist on this hardware.
#[test]
fn functions_of_older_hardware_are_faults() {
    for name in ["fdiv", "pow", "idiv", "iqot", "irem"] {
        let ty = if name.starts_with('i') { "d" } else { "f" };
        let text = format!("math.{name} (16|M0) r30.0<1>:{ty} r10.0<1;1,0>:{ty} r20.0<1;1,0>:{ty}\n");
        for way in WAYS {
            match execute(&text, 0x4c0, way, &[[1; 16], [1; 16]]) {
                Err(Stop::Fault(fault)) => assert!(
                    matches!(fault.kind, FaultKind::Unsupported | FaultKind::Illegal | FaultKind::Types),
                    "{name}: {fault:?}"
                ),
                other => panic!("{name}: {:?}", other.map(|_| ())),
            }
        }
    }
}

/// Unsigned division by the reciprocal (r10 / r20: quotient to r50, remainder to r60): an estimate of 2^32 / b, a step of
/// Newton, the high half of a product, and two corrections.
const DIVIDE: &str = "
    mov (16|M0) r30.0<1>:f r20.0<1;1,0>:ud
    math.inv (16|M0) r30.0<1>:f r30.0<1;1,0>:f
    mul (16|M0) r30.0<1>:f r30.0<1;1,0>:f 0x4F7FFFFE:f
    mov (16|M0) r32.0<1>:ud r30.0<1;1,0>:f
    mul (8|M0) acc0.0<1>:ud r32.0<1;1,0>:ud r20.0<2;1,0>:uw
    mach (8|M0) r34.0<1>:ud r32.0<1;1,0>:ud r20.0<1;1,0>:ud
    mul (8|M8) acc0.0<1>:ud r33.0<1;1,0>:ud r21.0<2;1,0>:uw
    mach (8|M8) r35.0<1>:ud r33.0<1;1,0>:ud r21.0<1;1,0>:ud
    add (16|M0) r36.0<1>:d -r34.0<1;1,0>:d 0:w
    mul (8|M0) acc0.0<1>:ud r32.0<1;1,0>:ud r36.0<2;1,0>:uw
    mach (8|M0) r38.0<1>:ud r32.0<1;1,0>:ud r36.0<1;1,0>:ud {AccWrEn}
    mul (8|M8) acc0.0<1>:ud r33.0<1;1,0>:ud r37.0<2;1,0>:uw
    mach (8|M8) r39.0<1>:ud r33.0<1;1,0>:ud r37.0<1;1,0>:ud {AccWrEn}
    add (16|M0) r32.0<1>:ud r32.0<1;1,0>:ud r38.0<1;1,0>:ud
    mul (8|M0) acc0.0<1>:ud r10.0<1;1,0>:ud r32.0<2;1,0>:uw
    mach (8|M0) r50.0<1>:ud r10.0<1;1,0>:ud r32.0<1;1,0>:ud {AccWrEn}
    mul (8|M8) acc0.0<1>:ud r11.0<1;1,0>:ud r33.0<2;1,0>:uw
    mach (8|M8) r51.0<1>:ud r11.0<1;1,0>:ud r33.0<1;1,0>:ud {AccWrEn}
    mul (8|M0) acc0.0<1>:ud r50.0<1;1,0>:ud r20.0<2;1,0>:uw
    mach (8|M0) r34.0<1>:ud r50.0<1;1,0>:ud r20.0<1;1,0>:ud
    mul (8|M8) acc0.0<1>:ud r51.0<1;1,0>:ud r21.0<2;1,0>:uw
    mach (8|M8) r35.0<1>:ud r51.0<1;1,0>:ud r21.0<1;1,0>:ud
    add (16|M0) r60.0<1>:d r10.0<1;1,0>:d -r34.0<1;1,0>:d
    cmp (16|M0) (ge)f0.0 null<1>:ud r60.0<1;1,0>:ud r20.0<1;1,0>:ud
    (f0.0) add (16|M0) r50.0<1>:d r50.0<1;1,0>:d 1:w
    (f0.0) add (16|M0) r60.0<1>:d r60.0<1;1,0>:d -r20.0<1;1,0>:d
    cmp (16|M0) (ge)f0.0 null<1>:ud r60.0<1;1,0>:ud r20.0<1;1,0>:ud
    (f0.0) add (16|M0) r50.0<1>:d r50.0<1;1,0>:d 1:w
    (f0.0) add (16|M0) r60.0<1>:d r60.0<1;1,0>:d -r20.0<1;1,0>:d
";

/// ISA-120, ISA-133, ISA-151: as compilers divide integers.
#[test]
fn division_of_integers_is_exact() {
    let rounds = if LONG { 60_000 } else { 600 };
    let code = Program::translate(&assemble(DIVIDE).unwrap(), 0, 128, Host::detect());
    let mut random = Random(0xd1f);
    let mut number = |nonzero: bool| {
        let value = match random.below(8) {
            0 => 0xffff_ffff_u32.wrapping_sub(random.below(4) as u32),
            1 => 1u32 << random.below(32),
            2 => (1u32 << random.below(32)).wrapping_sub(1),
            _ => random.next() as u32 >> random.below(32),
        };
        if nonzero { value.max(1) } else { value }
    };
    for _ in 0..rounds {
        let (a, b) = (std::array::from_fn(|_| number(false)), std::array::from_fn(|_| number(true)));
        for way in WAYS {
            let thread = run(&code, 0x4c0, way, &[a, b]).unwrap();
            for lane in 0..16 {
                let got = (output(&thread, 50, lane), output(&thread, 60, lane));
                assert_eq!(got, (a[lane] / b[lane], a[lane] % b[lane]), "{} / {}, {way:?}", a[lane], b[lane]);
            }
        }
    }
    println!("{} divisions", rounds * 16);
}
