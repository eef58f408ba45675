// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The meaning of single instructions, item by item.

use arctic_afuc::isa::{Generation, decode};
use arctic_afuc::machine::{Effect, Fault, FaultKind, INSTR_BASE, Machine, Stop};
use arctic_afuc::text::{Options, assemble, instruction_text};

const DATA: u64 = 0x20_0000;

fn image(source: &str) -> Machine {
    let assembled = assemble(source, &Options::default())
        .unwrap_or_else(|errors| panic!("{}", errors.render(source, "source", false)));
    let mut machine = Machine::new(&assembled.image);
    machine.bus.record = true;
    machine.bus.memory.map(DATA, 0x2000);
    machine
}

/// Executes instructions of a generation with `$02` and `$03` set, until `waitin`.
fn run_on(generation: u32, source: &str, values: [u32; 2]) -> Machine {
    let mut machine = image(&format!(".gen {generation}\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = values;
    assert_eq!(machine.run(10_000), Stop::Idle, "{source}");
    machine
}

fn run(source: &str, values: [u32; 2]) -> Machine {
    run_on(7, source, values)
}

fn result(source: &str, values: [u32; 2]) -> u32 {
    run(source, values).gpr[4]
}

fn fault(mut machine: Machine) -> FaultKind {
    match machine.run(10_000) {
        Stop::Fault(Fault { kind, .. }) => kind,
        other => panic!("{other:?}"),
    }
}

/// AF-008, AF-009
#[test]
fn register_00_reads_0_and_is_never_written() {
    let machine = run("mov $00, 0x5\nadd $04, $00, $00\nmov $1b, 0x7\nmov $05, $1b", [0; 2]);
    assert_eq!((machine.gpr[0], machine.gpr[4], machine.gpr[5], machine.gpr.len()), (0, 0, 7, 32));
}

/// AF-010, AF-013, AF-014
#[test]
fn register_names_are_hexadecimal_and_depend_on_the_role() {
    let text = |word: u32| instruction_text(&decode(word, Generation::A7).unwrap(), arctic_afuc::names::ControlSet::A7);
    // or dst, $00, src2 with source and destination 0x1d to 0x1f, then 0x0a, 0x1a to 0x1c.
    let mov = |dst: u32, src: u32| text(0x9800_0006 | src << 16 | dst << 11);
    assert_eq!(mov(0x1d, 0x1d), "mov $addr, $memdata");
    assert_eq!(mov(0x1e, 0x1e), "mov $usraddr, $regdata");
    assert_eq!(mov(0x1f, 0x1f), "mov $data, $data");
    assert_eq!(mov(0x0a, 0x1c), "mov $0a, $rem");
    assert_eq!(mov(0x1a, 0x1b), "mov $sp, $lr");
}

/// AF-012
#[test]
fn rem_can_be_written_and_read() {
    let machine = run("mov $rem, 0x9\nadd $04, $rem, 0x1\nmov $rem, 0x0", [0; 2]);
    assert_eq!((machine.gpr[4], machine.gpr[0x1c]), (10, 0));
}

/// AF-016, AF-018, AF-019: the carry goes from a low half to a high half.
#[test]
fn carry_makes_64_bit_sums() {
    let machine = run("add $04, $02, 0x1\naddhi $05, $03, 0x0", [u32::MAX, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (0, 8));
}

/// AF-020, AF-021
#[test]
fn borrow_makes_64_bit_differences() {
    let machine = run("sub $04, $02, 0x1\nsubhi $05, $03, 0x0", [0, 7]);
    assert_eq!((machine.gpr[4], machine.gpr[5]), (u32::MAX, 6));
}

/// AF-022, AF-030
#[test]
fn or_with_register_00_is_mov() {
    assert_eq!(result("mov $04, $02", [0x1234, 0]), 0x1234);
    assert_eq!(result("or $04, $00, $02", [0x1234, 0]), 0x1234);
}

/// AF-023
#[test]
fn not_has_a_register_and_an_immediate_form() {
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

/// AF-026, AF-027, AF-028
#[test]
fn mul8_min_max_and_cmp_are_unsigned() {
    assert_eq!(result("mul8 $04, $02, $03", [0x1ff, 0x2ff]), 255 * 255);
    assert_eq!(result("min $04, $02, $03", [u32::MAX, 1]), 1);
    assert_eq!(result("max $04, $02, $03", [u32::MAX, 1]), u32::MAX);
    for (a, expected) in [(6, 0), (5, 0x2b), (4, 0x1e)] {
        assert_eq!(result("cmp $04, $02, $03", [a, 5]), expected);
    }
}

/// AF-029
#[test]
fn mov_of_an_immediate_is_shifted() {
    for shift in [0, 2, 16, 20, 24] {
        let expected = 0xf00f_u32 << shift;
        assert_eq!(result(&format!("mov $04, 0xf00f << {shift}"), [0; 2]), expected);
    }
}

/// AF-031
#[test]
fn msb_is_the_number_of_the_highest_bit() {
    for (value, expected) in [(0, 0), (1, 0), (0x80f0, 15), (1 << 31, 31)] {
        assert_eq!(result("msb $04, $02", [value, 0]), expected);
        assert_eq!(run_on(6, "msb $04, $02", [value, 0]).gpr[4], expected);
    }
}

/// AF-032, AF-033
#[test]
fn setbit_clrbit_and_bic_change_bits() {
    assert_eq!(result("setbit $04, $02, b31", [1, 0]), 1 << 31 | 1);
    assert_eq!(result("clrbit $04, $02, b31", [u32::MAX, 0]), u32::MAX >> 1);
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

/// AF-036, AF-037, AF-038: each bit, and immediates, with targets before and behind.
#[test]
fn branches_compare_bits_and_immediates() {
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
    let backward = "mov $05, 0x0\nl: add $05, $05, 0x1\nsub $02, $02, 0x1\nbrne $02, 0x0, #l\nadd $04, $04, 0x1";
    assert_eq!(run(backward, [5, 0]).gpr[4..6], [5, 5]);
}

/// AF-039
#[test]
fn jump_is_a_branch_on_bit_0_of_register_00() {
    let words = assemble(".gen 6\njump #l\nnop\nl: nop\n", &Options::default()).unwrap().image.words;
    assert_eq!(words[0], 0xc800_0002);
}

type Relation = fn(u32, u32) -> bool;

/// AF-040: all six relations by a bit of the result of `cmp`.
#[test]
fn cmp_and_a_bit_branch_give_all_relations() {
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

/// AF-015, AF-045: eight nested calls return in order, to the call + 2.
#[test]
fn calls_nest_to_a_depth_of_eight() {
    let mut source = "call #f1\nadd $04, $04, 0x1\njump #end\nnop\n".to_owned();
    for depth in 1..8 {
        source += &format!("f{depth}: call #f{}\nadd $04, $04, 0x1\nret\nadd $05, $05, 0x1\n", depth + 1);
    }
    source += "f8: sread $06, [$00 + %SP]\nsread $07, [$00 + %STACK0]\nret\nadd $05, $05, 0x1\nend:";
    let machine = run(&source, [0; 2]);
    assert_eq!(machine.gpr[4..8], [8, 8, 8, 2]);
    assert_eq!(machine.sqe[5], 0);
}

/// AF-044, AF-048: `bl` puts its address + 2 into `$lr`.
#[test]
fn bl_sret_jumpa_and_jump_register_transfer() {
    let source = "bl #f\nadd $04, $04, 0x1\nmov $05, $lr\nmov $06, #g\njump $06\nnop\nf: sret\nadd $04, $04, 0x10\n\
                  g: jumpa #end\nadd $04, $04, 0x100\nadd $04, $04, 0x1000\nend:";
    let machine = run(source, [0; 2]);
    assert_eq!(machine.gpr[4..6], [0x111, 2]);
}

/// AF-049: there is no second image, so the success path is taken (AFC-043).
#[test]
fn setsecure_skips_two_instructions() {
    assert_eq!(result("setsecure $02, #l\nnop\nadd $04, $04, 0x1\nl: add $04, $04, 0x2", [0; 2]), 2);
    let errors = assemble(".gen 6\nsetsecure $02, #l\nl: nop\n", &Options::default()).unwrap_err();
    assert_eq!(errors.0.len(), 1);
}

/// AF-050, AF-051, AF-053
#[test]
fn nop_carries_data_and_a_zero_word_is_illegal_from_a6xx_on() {
    assert_eq!(run_on(6, "[01abcdef]\nmov $04, 0x1", [0; 2]).gpr[4], 1);
    assert_eq!(fault(image(".gen 6\n[00abcdef]\n")), FaultKind::Illegal(0x00ab_cdef));
    assert_eq!(fault(image(".gen 6\n[00000000]\n")), FaultKind::Illegal(0));
    let mut machine = image(".gen 5\n[00000000]\nmov $04, 0x1\nl: jump #l\nnop\n");
    assert_eq!((machine.run(3), machine.gpr[4]), (Stop::Budget, 1));
}

/// AF-054, AF-055, AF-058: the pre-increment is written back, and a write is read at once.
#[test]
fn control_registers_are_read_at_once_and_pre_increment() {
    let source = "mov $05, 0x100\ncwrite $02, [$05 + 0x2]!\ncread $04, [$00 + 0x102]\ncread $06, [$05 + 0x1]!";
    let machine = run(source, [0x55, 0]);
    assert_eq!(machine.gpr[4..7], [0x55, 0x103, 0]);
}

/// AF-057: 0x100 to 0x2ff are storage.
#[test]
fn scratch_control_registers_keep_their_values() {
    let source = "mov $rem, 0x200\nmov $05, 0xff\n(rep)cwrite $02, [$05 + 0x1]!\ncread $04, [$00 + 0x17f]\ncread $06, [$00 + 0x2ff]";
    let machine = run_on(6, source, [0x77, 0]);
    assert_eq!((machine.gpr[4], machine.gpr[5], machine.gpr[6]), (0x77, 0x2ff, 0x77));
}

/// AF-062
#[test]
fn sqe_registers_are_read_and_written() {
    let machine = run("swrite $02, [$00 + %PREEMPT_INSTR]\nsread $04, [$00 + %PREEMPT_INSTR]", [0x123, 0]);
    assert_eq!((machine.gpr[4], machine.sqe[4]), (0x123, 0x123));
}

/// AF-065, AF-068, AF-081: a copy from memory to memory.
#[test]
fn memdata_reads_consecutive_words() {
    let source = "cwrite $02, [$00 + @MEM_READ_ADDR]\ncwrite $00, [$00 + @MEM_READ_ADDR+0x1]\nmov $rem, 0x3\n\
                  cwrite $rem, [$00 + @MEM_READ_DWORDS]\nmov $addr, |NRT_ADDR << 24\nmov $data, $03\nmov $data, $00\n\
                  mov $addr, 0xa204 << 16\n(rep)mov $data, $memdata";
    let low = u32::try_from(DATA).unwrap();
    let mut machine = image(&format!(".gen 6\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [low, low + 0x100];
    (0..3).for_each(|n| machine.bus.memory.write(DATA + n * 4, 10 + u32::try_from(n).unwrap()).unwrap());
    assert_eq!(machine.run(100), Stop::Idle);
    let expected: Vec<Effect> = (0..3).map(|n| Effect::Memory(DATA + 0x100 + u64::from(n) * 4, 10 + n)).collect();
    assert_eq!(machine.bus.effects, expected);
    assert_eq!(machine.bus.read_control(0x18), low + 12);
}

/// AF-066
#[test]
fn regdata_reads_consecutive_registers() {
    let source = "cwrite $02, [$00 + @REG_READ_ADDR]\ncwrite $03, [$00 + @REG_READ_DWORDS]\nmov $04, $regdata\nmov $05, $regdata";
    let mut machine = image(&format!(".gen 7\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [0x500, 2];
    (machine.bus.gpu[0x500], machine.bus.gpu[0x501]) = (7, 8);
    assert_eq!(machine.run(100), Stop::Idle);
    assert_eq!(machine.gpr[4..6], [7, 8]);
}

/// AF-059, AF-064, AF-067: each level reads its own buffer, and `$rem` falls with each word.
#[test]
fn data_reads_the_queue_of_the_current_level() {
    let arm = |level: u32| {
        format!(
            "mov $05, {:#x}\ncwrite $02, [$05 + @IB1_BASE]\ncwrite $00, [$05 + @IB1_BASE+0x1]\n\
             cwrite $03, [$05 + @IB1_DWORDS]\nadd $02, $02, 0x100\n",
            level * 4
        )
    };
    let source = format!(
        "{}{}mov $rem, 0x5\nmov $05, 0x1\ncwrite $05, [$00 + @IB_LEVEL]\nmov $04, $data\nmov $05, 0x2\n\
         cwrite $05, [$00 + @IB_LEVEL]\nmov $06, $data\nmov $07, $data\nmov $05, 0x1\ncwrite $05, [$00 + @IB_LEVEL]\n\
         mov $08, $data\ncwrite $00, [$00 + @IB_LEVEL]\nmov $09, $rem\nmov $rem, 0x0",
        arm(0),
        arm(1)
    );
    for generation in [6, 7] {
        let mut machine = image(&format!(".gen {generation}\n{source}\nwaitin\nnop\n"));
        [machine.gpr[2], machine.gpr[3]] = [u32::try_from(DATA).unwrap(), 3];
        for n in 0..3 {
            machine.bus.memory.write(DATA + u64::from(n) * 4, 0x10 + n).unwrap();
            machine.bus.memory.write(DATA + 0x100 + u64::from(n) * 4, 0x20 + n).unwrap();
        }
        assert_eq!(machine.run(100), Stop::Idle);
        assert_eq!(machine.gpr[4], 0x10);
        assert_eq!(machine.gpr[6..10], [0x20, 0x21, 0x11, 1]);
    }
}

/// AF-071, AF-074: bit 18 keeps the address; REG_WRITE counts it up and keeps the flags above bit 15.
#[test]
fn register_writes_increment_their_address_unless_bit_18_is_set() {
    let source = "mov $addr, 0x123\nmov $data, $02\nmov $data, $03\nmov $05, 0x4 << 16\nor $addr, $05, 0x200\n\
                  mov $data, $02\nmov $data, $03\nmov $05, 0x9 << 16\nor $05, $05, 0x300\n\
                  cwrite $05, [$00 + @REG_WRITE_ADDR]\ncwrite $02, [$00 + @REG_WRITE]\ncwrite $03, [$00 + @REG_WRITE]\n\
                  cread $04, [$00 + @REG_WRITE_ADDR]";
    let machine = run(source, [1, 2]);
    let writes = [(0x123, 1), (0x124, 2), (0x200, 1), (0x200, 2), (0x300, 1), (0x301, 2)];
    assert_eq!(machine.bus.effects, writes.map(|(number, value)| Effect::Register(number, value)));
    assert_eq!(machine.gpr[4], 0x9_0302);
}

/// AF-076, AF-077, AF-078, AF-082: the step is in the top byte, void registers act on the address, and bit 0 of NRT_ADDR
/// keeps the address.
#[test]
fn pipe_registers_are_selected_by_the_top_byte() {
    let low = u32::try_from(DATA).unwrap();
    let source = "mov $addr, 0x84 << 24\nmov $addr, 0xa0 << 24\nmov $data, $02\nmov $data, $00\nmov $addr, 0xa204 << 16\n\
                  mov $data, $03\nmov $data, $03";
    let at = |offset: u64| Effect::Memory(DATA + offset, 9);
    assert_eq!(run(source, [low, 9]).bus.effects, [Effect::Pipe(0x84, 0), at(0), at(4)]);
    assert_eq!(run(source, [low | 1, 9]).bus.effects, [Effect::Pipe(0x84, 0), at(0), at(0)]);
    // Without bit 18 the third write goes to NRT_DATA.
    let source = "mov $addr, 0xa0 << 24\nmov $data, $02\nmov $data, $00\nmov $data, $03";
    assert_eq!(run(source, [low, 9]).bus.effects, [at(0)]);
    assert_eq!(run("mov $addr, 0xe7 << 24\nmov $data, $03", [0, 9]).bus.effects, [Effect::Pipe(0xe7, 9)]);
}

/// AF-083, AF-084: the high half comes from LOAD_STORE_HI, and the low half wraps.
#[test]
fn load_and_store_use_load_store_hi() {
    let high = u32::try_from(INSTR_BASE >> 32).unwrap();
    let source =
        "cwrite $02, [$00 + @LOAD_STORE_HI]\nload $04, [$03 + 0x4]!\nload $05, [$03 + 0x4]!\nstore $05, [$03 + 0x8]";
    let mut machine = image(&format!(".gen 6\n{source}\nwaitin\nnop\n"));
    [machine.gpr[2], machine.gpr[3]] = [high, 0u32.wrapping_sub(4)];
    assert_eq!(machine.run(100), Stop::Idle);
    let words = [0, 4].map(|offset| machine.bus.memory.read(INSTR_BASE + offset).unwrap());
    assert_eq!((machine.gpr[4..6].to_vec(), machine.gpr[3]), (words.to_vec(), 4));
    assert_eq!(machine.bus.effects, [Effect::Memory(INSTR_BASE + 12, words[1])]);
    assert_eq!(fault(image(".gen 6\nload $04, [$00 + 0x0]\n")), FaultKind::Unmapped(0));
    assert_eq!(fault(image(".gen 6\nstore $04, [$00 + 0x1]\n")), FaultKind::Unaligned(1));
}

/// AF-095, AF-098: `waitin` leaves the header to its slot; the handler is chosen by what `$01` holds then.
#[test]
fn waitin_dispatches_on_the_header_in_register_01() {
    let source = "[016ee001]\n[#jumptbl]\nmov $02, #handler\nmov $03, 0x10\ncwrite $03, [$00 + @PACKET_TABLE_WRITE_ADDR]\n\
                  cwrite $02, [$00 + @PACKET_TABLE_WRITE]\nmov $03, 0x4\ncwrite $03, [$00 + @PACKET_TABLE_WRITE_ADDR]\n\
                  cwrite $02, [$00 + @PACKET_TABLE_WRITE]\nwaitin\nmov $01, $data\nhandler:\nmov $04, $01\nmov $05, $rem\n\
                  (rep)mov $06, $data\nwaitin\nmov $01, $data\njumptbl:\n";
    for (words, header, rem, last) in
        [(vec![0x7010_0002, 7, 8], 0x7010_0002, 2, 8), (vec![0x4805_0001, 9], 0x0805_0001, 1, 9)]
    {
        let mut machine = image(source);
        let words = [&words[..]].concat();
        (0..).zip(&words).for_each(|(n, word)| machine.bus.memory.write(DATA + n * 4, *word).unwrap());
        machine.submit(DATA, u32::try_from(words.len()).unwrap());
        assert_eq!(machine.run(100), Stop::Idle, "{:?}", machine.packet());
        assert_eq!(machine.gpr[4..7], [header, rem, last]);
    }
}
