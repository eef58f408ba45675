// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The meaning of single instructions: registers, ALU, branches, calls, NOPs.

#[path = "common/steps.rs"]
mod steps;

use arctic_afuc::isa::{Generation, decode};
use arctic_afuc::machine::{Effect, FaultKind, Stop};
use arctic_afuc::names::ControlSet;
use arctic_afuc::text::{Options, assemble, instruction_text};
use arctic_fidelity::proves;
use steps::{fault, image, result, run, run_on, words};

#[test]
fn each_register_holds_its_32_bits() {
    proves!(AF_008, "there are 32 registers of 32 bits");
    let numbers = || (1..=0x1b_u32).filter(|number| ![2, 3].contains(number));
    let set: String = numbers().map(|number| format!("mov ${number:02x}, {:#x} << 16\n", 0xff00 | number)).collect();
    let machine = run(&set, [u32::MAX, 0x8000_0001]);
    for number in numbers() {
        assert_eq!(machine.gpr[number as usize], (0xff00 | number) << 16);
    }
    let copied = run(&format!("{set}or $04, $19, $02\nxor $05, $1a, $03"), [0, 0x8000_0001]);
    assert_eq!((copied.gpr[4], copied.gpr[5], copied.gpr.len()), (0xff19_0000, 0x7f1a_0001, 32));
}

#[test]
fn register_00_reads_0_and_is_never_written() {
    proves!(AF_009, "$00 reads 0, and writes are discarded");
    let machine = run("mov $00, 0x5\nadd $04, $00, $00\nmov $1b, 0x7\nmov $05, $1b", [0; 2]);
    assert_eq!((machine.gpr[0], machine.gpr[4], machine.gpr[5]), (0, 0, 7));
    let machine = run("cwrite $02, [$00 + 0x100]\ncread $00, [$00 + 0x100]\nadd $04, $00, $00", [0x55, 0]);
    assert_eq!((machine.gpr[0], machine.gpr[4]), (0, 0));
}

#[test]
fn same_word_has_another_meaning_on_another_generation() {
    proves!(AF_006, "the decoder depends on the generation: function 01001 is shl up to a6xx and bic on a7xx");
    let word = 0x9843_2009;
    let texts = Generation::ALL
        .map(|generation| instruction_text(&decode(word, generation).unwrap(), ControlSet::of(generation)));
    assert_eq!(texts, ["shl $04, $02, $03", "shl $04, $02, $03", "bic $04, $02, $03"]);
    assert_eq!(words(".gen 6\nshl $04, $02, $03"), [word]);
    assert_eq!(words(".gen 7\nbic $04, $02, $03"), [word]);
    assert_eq!(words(".gen 7\nshl $04, $02, $03"), [0x9843_2012]);
    assert!(assemble(".gen 6\nbic $04, $02, $03", &Options::default()).is_err());
}

#[test]
fn register_names_are_hexadecimal_and_depend_on_the_role() {
    proves!(AF_010, "names of registers are hexadecimal in text and source");
    proves!(AF_013, "0x1d to 0x1f have other names as source and as destination");
    proves!(AF_014, "0x1a and 0x1b are $sp and $lr");
    proves!(AF_030, "or with $00 is written mov");
    let text = |word: u32| instruction_text(&decode(word, Generation::A7).unwrap(), ControlSet::A7);
    // or dst, $00, src2 with source and destination 0x1d to 0x1f, then 0x0a, 0x1a to 0x1c.
    let mov = |dst: u32, src: u32| text(0x9800_0006 | src << 16 | dst << 11);
    assert_eq!(mov(0x1d, 0x1d), "mov $addr, $memdata");
    assert_eq!(mov(0x1e, 0x1e), "mov $usraddr, $regdata");
    assert_eq!(mov(0x1f, 0x1f), "mov $data, $data");
    assert_eq!(mov(0x0a, 0x1c), "mov $0a, $rem");
    assert_eq!(mov(0x1a, 0x1b), "mov $sp, $lr");
    for number in 0..0x1a {
        assert_eq!(mov(number, 0x19 - number), format!("mov ${number:02x}, ${:02x}", 0x19 - number));
    }
    for number in 0..0x20 {
        let expected = 0x9800_0006 | number << 16 | number << 11;
        assert_eq!(words(&format!(".gen 7\nmov ${number:02x}, ${number:02x}")), [expected]);
        assert_eq!(words(&format!(".gen 7\n{}", mov(number, number))), [expected]);
    }
}

#[test]
fn rem_can_be_written_and_read() {
    proves!(AF_012, "$rem is register 0x1c, which instructions can read and write");
    let machine = run("mov $rem, 0x9\nadd $04, $rem, 0x1\nmov $05, $1c\nmov $rem, 0x0", [0; 2]);
    assert_eq!((machine.gpr[4], machine.gpr[5], machine.gpr[0x1c]), (10, 9, 0));
}

#[test]
fn carry_makes_64_bit_sums() {
    proves!(AF_018, "add is a 32-bit sum and sets the carry");
    proves!(AF_019, "addhi adds the carry");
    let machine = run("add $04, $02, 0x1\naddhi $05, $03, 0x0", [u32::MAX, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (0, 8));
    let machine = run("add $04, $02, 0x1\naddhi $05, $03, 0x0", [u32::MAX - 1, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (u32::MAX, 7));
}

#[test]
fn carry_is_that_of_the_last_sum_or_difference() {
    proves!(AF_016, "add and sub write the carry, and other instructions keep it");
    let high = |before: &str, values| result(&format!("{before}\naddhi $04, $00, $00"), values);
    assert_eq!(high("add $05, $02, 0x1\nadd $05, $03, 0x1", [u32::MAX, 7]), 0);
    assert_eq!(high("add $05, $02, 0x1\nsub $05, $03, 0x1", [u32::MAX, 7]), 0);
    assert_eq!(high("sub $05, $02, 0x1\nadd $05, $03, 0x1", [0, u32::MAX]), 1);
    assert_eq!(high("add $05, $02, 0x1\nmov $05, 0x1\nor $05, $02, $03\nmul8 $06, $05, $05", [u32::MAX, 7]), 1);
}

#[test]
fn borrow_makes_64_bit_differences() {
    proves!(AF_020, "sub is a 32-bit difference and sets the borrow");
    proves!(AF_021, "subhi subtracts the borrow, which is all ones and added");
    let machine = run("sub $04, $02, 0x1\nsubhi $05, $03, 0x0", [0, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (u32::MAX, 6));
    let machine = run("sub $04, $02, 0x1\nsubhi $05, $03, 0x2", [1, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (0, 5));
}

/// With registers, and with 16-bit immediates.
#[test]
fn second_source_is_a_register_or_an_immediate() {
    proves!(AF_017, "the second source of each operation is a register or an immediate of 16 bits");
    let names =
        ["add", "addhi", "sub", "subhi", "and", "or", "xor", "shl", "ushr", "ishr", "rot", "mul8", "min", "max", "cmp"];
    for name in names {
        for immediate in [0xf00f_u32, 0x8001, 3] {
            let values = [0x8765_f321, immediate];
            let register = run_on(6, &format!("add $05, $02, $02\n{name} $04, $02, $03"), values).gpr[4];
            let source = format!("add $05, $02, $02\n{name} $04, $02, {immediate:#x}");
            assert_eq!(run_on(6, &source, values).gpr[4], register, "{name} {immediate:#x}");
        }
    }
}

#[test]
fn and_or_and_xor_combine_bits() {
    proves!(AF_022, "and, or and xor combine the bits of two operands");
    let values = [0xff00_f0f0, 0x0ff0_ff00];
    for (name, expected) in [("and", 0x0f00_f000), ("or", 0xfff0_fff0), ("xor", 0xf0f0_0ff0)] {
        assert_eq!(result(&format!("{name} $04, $02, $03"), values), expected);
    }
    assert_eq!(result("and $04, $02, 0xff00", values), 0xf000);
}

#[test]
fn or_with_register_00_is_mov() {
    proves!(AF_030, "mov of a register is or with $00");
    assert_eq!(words(".gen 7\nmov $04, $02"), words(".gen 7\nor $04, $00, $02"));
    assert_eq!(result("mov $04, $02", [0x1234, 0]), 0x1234);
    assert_eq!(result("or $04, $00, $02", [0x1234, 0]), 0x1234);
}

#[test]
fn not_has_a_register_and_an_immediate_form() {
    proves!(AF_023, "not inverts its one source, a register or an immediate");
    assert_eq!(result("not $04, $02", [0x00ff_ff00, 0]), 0xff00_00ff);
    assert_eq!(result("not $04, 0x1234", [0; 2]), 0xffff_edcb);
}

/// AF-024
#[test]
fn shifts_by_0_to_31_are_logical_and_arithmetic() {
    for amount in 0..32 {
        let value = 0x8765_4321_u32;
        let machine = run("shl $04, $02, $03\nushr $05, $02, $03\nishr $06, $02, $03", [value, amount]);
        assert_eq!(machine.gpr[4], value << amount);
        assert_eq!(machine.gpr[5], value >> amount);
        assert_eq!(machine.gpr[6], (value.cast_signed() >> amount).cast_unsigned());
    }
}

/// AF-025
#[test]
fn rot_is_to_the_left() {
    for (amount, expected) in [(0, 0x8000_0001), (8, 0x0000_0180), (31, 0xc000_0000)] {
        assert_eq!(result("rot $04, $02, $03", [0x8000_0001, amount]), expected);
    }
}

#[test]
fn mul8_min_max_and_cmp_are_unsigned() {
    proves!(AF_026, "mul8 is the 16-bit product of the low bytes");
    proves!(AF_027, "min and max are unsigned");
    proves!(AF_028, "cmp is 0 above, 0x2b if equal and 0x1e below, unsigned");
    assert_eq!(result("mul8 $04, $02, $03", [0x1ff, 0x2ff]), 255 * 255);
    assert_eq!(result("min $04, $02, $03", [u32::MAX, 1]), 1);
    assert_eq!(result("max $04, $02, $03", [u32::MAX, 1]), u32::MAX);
    for (a, expected) in [(6, 0), (5, 0x2b), (4, 0x1e)] {
        assert_eq!(result("cmp $04, $02, $03", [a, 5]), expected);
    }
    assert_eq!(result("cmp $04, $02, $03", [u32::MAX, 1]), 0);
}

#[test]
fn mov_of_an_immediate_is_shifted() {
    proves!(AF_029, "mov shifts its 16-bit immediate to the left");
    for shift in [0, 2, 16, 20, 24] {
        let expected = 0xf00f_u32 << shift;
        assert_eq!(result(&format!("mov $04, 0xf00f << {shift}"), [0; 2]), expected);
        let machine = run(&format!("mov $data, 0xf00f << {shift}"), [0; 2]);
        assert_eq!(machine.bus.effects, [Effect::Register(0, expected)]);
    }
}

#[test]
fn msb_is_the_number_of_the_highest_bit() {
    proves!(AF_031, "msb is the number of the highest bit, and 0 for 0");
    for (value, expected) in [(0, 0), (1, 0), (0x80f0, 15), (1 << 31, 31)] {
        assert_eq!(result("msb $04, $02", [value, 0]), expected);
        assert_eq!(run_on(6, "msb $04, $02", [value, 0]).gpr[4], expected);
    }
}

#[test]
fn setbit_clrbit_and_bic_change_bits() {
    proves!(AF_032, "setbit and clrbit change one bit; a register has number and value");
    proves!(AF_033, "bic clears the bits of the second source");
    assert_eq!(result("setbit $04, $02, b31", [1, 0]), 1 << 31 | 1);
    assert_eq!(result("setbit $04, $02, b31", [1 << 31, 0]), 1 << 31);
    assert_eq!(result("clrbit $04, $02, b31", [u32::MAX, 0]), u32::MAX >> 1);
    assert_eq!(result("clrbit $04, $02, b31", [1, 0]), 1);
    assert_eq!(run_on(6, "setbit $04, $02, b31\nclrbit $05, $02, b0", [1, 0]).gpr[4..6], [1 << 31 | 1, 0]);
    // Bits 5:1 of the second source are the number, bit 0 is the value.
    assert_eq!(result("setbit $04, $02, $03", [0, 31 << 1 | 1]), 1 << 31);
    assert_eq!(result("setbit $04, $02, $03", [u32::MAX, 31 << 1]), u32::MAX >> 1);
    assert_eq!(result("bic $04, $02, $03", [0xff, 0x0f]), 0xf0);
    assert_eq!(result("bic $04, $02, 0xf", [0xff, 0]), 0xf0);
}

/// AF-034; that `bfi` keeps the bits of its field is a choice.
#[test]
fn ubfx_extracts_and_bfi_inserts() {
    assert_eq!(result("ubfx $04, $02, b5, b6", [0x60, 0]), 3);
    assert_eq!(result("ubfx $04, $02, b0, b31", [0x8000_0001, 0]), 0x8000_0001);
    assert_eq!(result("mov $04, 0x100\nbfi $04, $02, b4, b7", [0xff, 0]), 0x1f0);
}

/// Each bit, and immediates, with targets before and behind.
#[test]
fn branches_compare_bits_and_immediates() {
    proves!(AF_036, "brne and breq compare a register with an immediate of 5 bits");
    proves!(AF_037, "brne branches if a bit is clear, breq if it is set");
    proves!(AF_038, "a target is relative to the branch, in words");
    proves!(AF_041, "the instruction after a branch is executed, taken or not");
    proves!(AF_118, "the target of a branch is the next PC after its delay slot");
    for bit in 0..32 {
        let source = format!(
            "breq $02, b{bit}, #l\nmov $04, 0x1\nmov $04, 0x2\nl:\nbrne $02, b{bit}, #m\nmov $05, 0x1\nmov $05, 0x2\nm:"
        );
        let machine = run(&source, [1 << bit, 0]);
        assert_eq!((machine.gpr[4], machine.gpr[5]), (1, 2), "{bit}");
        let machine = run(&source, [!(1 << bit), 0]);
        assert_eq!((machine.gpr[4], machine.gpr[5]), (2, 1), "{bit}");
    }
    let source =
        "breq $02, 0x1f, #l\nmov $04, 0x1\nmov $04, 0x2\nl:\nbrne $02, 0x1f, #m\nmov $05, 0x1\nmov $05, 0x2\nm:";
    assert_eq!(run(source, [31, 0]).gpr[4..6], [1, 2]);
    assert_eq!(run(source, [30, 0]).gpr[4..6], [2, 1]);
    assert_eq!(run(source, [0x3f, 0]).gpr[4..6], [2, 1]);
    let backward = "mov $05, 0x0\nl: add $05, $05, 0x1\nsub $02, $02, 0x1\nbrne $02, 0x0, #l\nadd $04, $04, 0x1";
    assert_eq!(run(backward, [5, 0]).gpr[4..6], [5, 5]);
}

#[test]
fn jump_is_a_branch_on_bit_0_of_register_00() {
    proves!(AF_039, "jump is brne of bit 0 of $00");
    assert_eq!(words(".gen 6\njump #l\nnop\nl: nop\n")[0], 0xc800_0002);
    assert_eq!(words(".gen 6\nbrne $00, b0, #l\nnop\nl: nop\n")[0], 0xc800_0002);
    let text = |word: u32| instruction_text(&decode(word, Generation::A6).unwrap(), ControlSet::A6);
    assert_eq!((text(0xc800_0002), text(0xc801_0002)), ("jump #+2".to_owned(), "brne $00, b1, #+2".to_owned()));
    assert_eq!(result("jump #l\nmov $04, 0x1\nmov $04, 0x2\nl:", [0; 2]), 1);
}

type Relation = fn(u32, u32) -> bool;

/// All six relations by a bit of the result of `cmp`.
#[test]
fn cmp_and_a_bit_branch_give_all_relations() {
    proves!(AF_040, "a bit of the result of cmp is each of the six relations");
    let relations: [(&str, Relation); 6] = [
        ("breq $05, b1", |a, b| a <= b),
        ("brne $05, b1", |a, b| a > b),
        ("breq $05, b2", |a, b| a < b),
        ("brne $05, b2", |a, b| a >= b),
        ("breq $05, b0", |a, b| a == b),
        ("brne $05, b0", |a, b| a != b),
    ];
    for (branch, expected) in relations {
        for a in 4..=6 {
            let source = format!("cmp $05, $02, $03\n{branch}, #l\nmov $04, 0x1\nmov $04, $00\nl:");
            assert_eq!(result(&source, [a, 5]) == 1, expected(a, 5), "{branch} {a}");
        }
    }
}

/// Eight nested calls return in order, to the call + 2.
#[test]
fn calls_nest_to_a_depth_of_eight() {
    proves!(AF_015, "the stack has eight return addresses, in SQE registers");
    proves!(AF_045, "ret returns to the call + 2");
    proves!(AF_062, "sread reads the call stack");
    let mut source = "call #f1\nadd $04, $04, 0x1\njump #end\nnop\n".to_owned();
    for depth in 1..8 {
        source += &format!("f{depth}: call #f{}\nadd $04, $04, 0x1\nret\nadd $05, $05, 0x1\n", depth + 1);
    }
    source += "f8: sread $06, [$00 + %SP]\nsread $07, [$00 + %STACK0]\nret\nadd $05, $05, 0x1\nend:";
    let machine = run(&source, [0; 2]);
    assert_eq!(machine.gpr[4..8], [8, 8, 8, 2]);
    assert_eq!(machine.sqe[5], 0);
}

#[test]
fn bl_sret_jumpa_and_jump_register_transfer() {
    proves!(AF_014, "bl writes $lr, register 0x1b");
    proves!(AF_044, "jumpa and jump of a register go to an absolute word, sret to the word in $lr");
    proves!(AF_048, "bl puts its address + 2 into $lr, and nothing on the stack");
    proves!(AF_105, "a label as an immediate is its offset in words");
    let source = "bl #f\nadd $04, $04, 0x1\nmov $05, $lr\nmov $06, #g\njump $06\nnop\nf: sret\nadd $04, $04, 0x10\n\
                  g: jumpa #end\nadd $04, $04, 0x100\nadd $04, $04, 0x1000\nend:";
    let machine = run(source, [0; 2]);
    assert_eq!(machine.gpr[4..6], [0x111, 2]);
    assert_eq!((machine.gpr[0x1b], machine.sqe), (2, [0; 16]));
}

/// AF-049: there is no second image, so the success path is taken (AFC-043).
#[test]
fn setsecure_skips_two_instructions() {
    assert_eq!(result("setsecure $02, #l\nnop\nadd $04, $04, 0x1\nl: add $04, $04, 0x2", [0; 2]), 2);
    let errors = assemble(".gen 6\nsetsecure $02, #l\nl: nop\n", &Options::default()).unwrap_err();
    assert_eq!(errors.0.len(), 1);
}

#[test]
fn nop_carries_data_and_a_zero_word_is_illegal_from_a6xx_on() {
    proves!(AF_050, "24 bits of a NOP are ignored, with a top byte of 0 on a5xx and 1 from a6xx on");
    proves!(AF_051, "a zero word is illegal from a6xx on");
    proves!(AF_053, "a literal is a word, and words with bits 31:27 clear are NOPs");
    assert_eq!(run_on(6, "[01abcdef]\nmov $04, 0x1", [0; 2]).gpr[4], 1);
    assert_eq!(run_on(6, "[03abcdef]\nmov $04, 0x1", [0; 2]).gpr[4], 1);
    assert_eq!(words(".gen 6\n[01abcdef]"), [0x01ab_cdef]);
    assert_eq!(fault(image(".gen 6\n[00abcdef]\n")), FaultKind::Illegal(0x00ab_cdef));
    assert_eq!(fault(image(".gen 6\n[00000000]\n")), FaultKind::Illegal(0));
    let mut machine = image(".gen 5\n[00000000]\n[00abcdef]\nmov $04, 0x1\nl: jump #l\nnop\n");
    assert_eq!((machine.run(4), machine.gpr[4]), (Stop::Budget, 1));
}
