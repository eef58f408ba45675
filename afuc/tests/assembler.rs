// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors of the assembler, relocation, and what it accepts beyond Mesa's syntax.

use arctic_afuc::isa::Generation;
use arctic_afuc::text::{Options, Syntax, assemble, disassemble};
use arctic_fidelity::proves;

fn words(source: &str) -> Vec<u32> {
    assemble(source, &Options::default())
        .unwrap_or_else(|errors| panic!("{}", errors.render(source, "source", false)))
        .image
        .words
}

fn title(source: &str) -> String {
    assemble(source, &Options::default()).unwrap_err().to_string()
}

/// One file with fifteen mistakes gives fifteen errors with line, underline, reason and cure (AFC-051..054).
#[test]
fn each_mistake_has_an_error_with_its_place_and_reason() {
    let source = include_str!("data/bad.asm");
    let errors = assemble(source, &Options::default()).unwrap_err();
    insta::assert_snapshot!(errors.render(source, "bad.asm", false));
    let lines = |at: usize| source[..at].matches('\n').count() + 1;
    let places: Vec<usize> = errors.0.iter().map(|error| lines(error.span.start)).collect();
    assert_eq!(places, [4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
}

/// Mesa's sources use names of all generations (AFC-053).
#[test]
fn packet_name_of_another_generation_is_a_warning_with_the_right_name() {
    proves!(AF_106, "a label that is a packet's name or UNKNn fills its slot of the table, and other slots are 0");
    proves!(AF_107, "the id in the first literal says the generation");
    let source = "[01730001]\nCP_EVENT_WRITE:\nnop\nUNKN127:\n.jumptbl\n";
    let assembled = assemble(source, &Options::default()).unwrap();
    let expected = |opcode| [(0x46, 1), (127, 2)].iter().find(|row| row.0 == opcode).map_or(0, |row| row.1);
    assert!(assembled.image.words[2..].iter().copied().eq((0..128).map(expected)));
    assert_eq!(assembled.warnings[0].help.as_deref(), Some("here the opcode's name is `CP_EVENT_WRITE7`"));
    let twice = "[01730001]\nCP_NOP:\nnop\nUNKN16:\nnop\n.jumptbl\n";
    assert_eq!(title(twice), "opcode 0x10 has two handlers");
}

#[test]
fn errors_of_one_run_are_at_most_twenty() {
    let source = "[016ee001]\n".to_owned() + &"bogus\n".repeat(100);
    assert_eq!(assemble(&source, &Options::default()).unwrap_err().0.len(), 20);
}

/// The open firmware is for several generations and declares none: the error is that only.
#[test]
fn source_without_a_generation_has_one_error() {
    const OPEN: &str = include_str!("../firmware/sqe-open.asm");
    let [error] = assemble(OPEN, &Options::default()).unwrap_err().0.try_into().unwrap();
    assert_eq!(error.title, "the generation is not known here");
    assert!(error.help.unwrap().ends_with("or use --gen"));
    assert_eq!(title(".if a9xx\n.else\n.endif\n"), "this is no generation");
}

/// A source of another generation has one error for everything that only its own generation has; other errors stay.
#[test]
fn source_of_another_generation_has_one_error() {
    const OPEN: &str = include_str!("../firmware/sqe-open.asm");
    let image = assemble(OPEN, &Options { generation: Some(Generation::A7) }).unwrap().image;
    let text = disassemble(&image, Syntax::Native);
    let errors = |source: &str, generation| assemble(source, &Options { generation }).unwrap_err().0;
    let title = |from: u8| format!("the source is for a7xx, and is assembled for a{from}xx");
    for (generation, number) in [(Generation::A5, 5), (Generation::A6, 6)] {
        let [error] = errors(&text, Some(generation)).try_into().unwrap();
        assert_eq!((error.title, error.help.as_deref()), (title(number), Some("use --gen 7")));
        assert!(error.reason.contains("places like this in lines"), "{}", error.reason);
    }
    let wrong_id = text.replacen("[01730001]", "[016ee001]", 1);
    let [error] = errors(&wrong_id, None).try_into().unwrap();
    assert_eq!(error.help.as_deref(), Some("correct `[016ee001]`, which is of a6xx"));
    let [first, second] = errors(&format!("{wrong_id}\nbogus\n"), None).try_into().unwrap();
    assert_eq!((first.title, second.title), (title(6), "there is no instruction `bogus`".into()));
    // One error is reported as it is.
    let [error] = errors("[016ee001]\ncread $02, [$00 + @BV_CNTL]\n", None).try_into().unwrap();
    assert_eq!(error.title, "there is no control register `BV_CNTL`");
}

/// The search of a similar name for each of them would take more than an hour.
#[test]
fn unknown_labels_beyond_the_twentieth_are_not_searched() {
    let lines = (0..100_000).map(|n| format!("label{n}: jump #lobel{n}\nnop\n"));
    let errors = assemble(&format!("[016ee001]\n{}", lines.collect::<String>()), &Options::default()).unwrap_err();
    assert_eq!(errors.0.len(), 20);
    assert_eq!(errors.0[19].help.as_deref(), Some("write `#label19`"));
}

#[test]
fn instruction_before_the_generation_is_an_error() {
    assert_eq!(title("nop\n[016ee001]\n"), "the generation is not known here");
    assert!(title("[01123001]\n").contains("unknown"));
    assert_eq!(words(".gen 7\nnop"), [0x0100_0000]);
    assert_eq!(words("[016ee001] ; no newline at the end").len(), 1);
}

#[test]
fn constants_conditions_and_register_names_are_immediates() {
    let source = "[016ee001]\n.equ SIZE, 0x10\nmov $02, SIZE + 2\nmov $02, CP_SCRATCH_REG[2]\n\
        mov $addr, |NRT_ADDR << 24\n.if a7xx\n.if a6xx\nbogus here\n.endif\n.else\nnop\n.endif\n";
    assert_eq!(words(source)[1..], [0x8802_0012, 0x8802_0885, 0x8f1d_00a0 & !0x0400_0000, 0x0100_0000]);
    assert_eq!(title("[016ee001]\n.endif\n"), "`.endif` has no `.if`");
    assert_eq!(title("[016ee001]\n.if a7xx\n"), "an `.if` has no `.endif`");
}

#[test]
fn else_and_endif_without_an_open_if_or_twice_are_errors() {
    let title = |source: &str| title(&format!("[016ee001]\n{source}"));
    let twice = "this `.if` already has an `.else`";
    assert_eq!(title(".if a6xx\n.else\n.else\n.endif\n"), twice);
    assert_eq!(title(".if a7xx\n.else\n.else\n.endif\n"), twice);
    assert_eq!(title(".if a7xx\n.if a6xx\n.else\n.else\n.endif\n.endif\n"), twice);
    assert_eq!(title(".if a6xx\n.endif .endif\n"), "`.endif` has no `.if`");
    assert_eq!(title(".if a7xx\n.endif .endif\n"), "`.endif` has no `.if`");
    assert_eq!(title(".else\n"), "`.else` has no `.if`");
    let inner = ".if a6xx\n.if a7xx\nbogus\n.else\nnop\n.endif\n.else\n.if a6xx\n.else\n.endif\nbogus\n.endif\n";
    assert_eq!(words(&format!("[016ee001]\n{inner}"))[1..], [0x0100_0000]);
}

/// A number is too large wherever it is; other text that begins as a number does is not a number.
#[test]
fn text_that_is_no_token_is_reported_as_a_large_number_only_if_it_is_one() {
    let title = |statement: &str| title(&format!("[016ee001]\n{statement}\n"));
    for statement in [
        "mov $02, 0x123456789",
        "mov $02, 4294967296",
        "[123456789]",
        "setbit $02, $03, b99999999999",
        "jump #99999999999",
        "jump #-99999999999",
        "call #=0x123456789",
        "call #=99999999999",
        "(xmov99999999999)nop",
    ] {
        assert_eq!(title(statement), "the number does not fit into 32 bits", "{statement}");
    }
    for (statement, text) in [("# comment", "#"), ("#", "#"), ("jump #", "#"), ("jump #=", "#=")] {
        assert_eq!(title(statement), format!("`{text}` has no meaning here"), "{statement}");
    }
}

/// The error has the number of the source also if it is larger than any field.
#[test]
fn shift_bit_or_branch_immediate_out_of_range_is_an_error_with_its_number() {
    let error = |statement: &str| {
        let source = format!("[016ee001]\nl: {statement}\n");
        let error = assemble(&source, &Options::default()).unwrap_err().0.remove(0);
        (error.title.clone(), error.reason.clone(), source[error.span].to_owned())
    };
    for shift in ["32", "255", "300"] {
        let title = format!("a shift of {shift} is too large");
        assert_eq!(error(&format!("mov $02, 0x1 << {shift}")), (title, "at most 31".into(), shift.into()));
    }
    for bit in ["32", "255", "300"] {
        let expected = (format!("there is no bit {bit}"), "bits are 0 to 31".into(), format!("b{bit}"));
        assert_eq!(error(&format!("setbit $02, $03, b{bit}")), expected);
        assert_eq!(error(&format!("brne $02, b{bit}, #l")), expected);
    }
    for value in ["0x20", "0xff", "0x100", "0x12345"] {
        let reason = format!("{value}; 5 bits are possible, at most 0x1f");
        let expected = ("the immediate does not fit".into(), reason, value.into());
        assert_eq!(error(&format!("breq $02, {value}, #l")), expected);
    }
    assert_eq!(words("[016ee001]\nmov $02, 0x1 << 31\nclrbit $02, $03, b31\nl: brne $02, 0x1f, #l").len(), 4);
}

/// 2^24 words are one too many for the literal, and fewer than the assembler permits.
#[test]
fn end_of_an_image_with_more_than_24_bits_of_words_is_an_error() {
    let source = |blocks: usize| format!("[016ee001]\n[#end]\n{}", "nop\n.align 1048576\n".repeat(blocks));
    assert_eq!(words(&source(63))[1], 0x0100_0000 | 63 << 18);
    assert_eq!(title(&source(64)), "the image is too large for `[#end]`");
}

#[test]
fn modifiers_out_of_order_twice_or_out_of_range_are_errors() {
    proves!(AF_103, "modifiers are in their order, at most once");
    let title = |statement: &str| title(&format!("[016ee001]\n{statement}\n"));
    for statement in ["(peek)(rep)mov $02, $data", "(rep)(rep)nop", "(xmov1)(xmov1)mov $02, $data"] {
        assert_eq!(title(statement), "the modifiers are out of order", "{statement}");
    }
    for statement in ["(xmov0)mov $02, $data", "(sds4)cwrite $02, [$00 + 0x1]"] {
        assert_eq!(title(statement), "the number of the modifier is out of range", "{statement}");
    }
    assert_eq!(title("(sds1)mov $02, $data"), "`mov` does not take this modifier");
    assert_eq!(title("(xmov1)cwrite $02, [$00 + 0x1]"), "`cwrite` does not take this modifier");
}

#[test]
fn words_and_tables_of_labels_follow_an_insertion() {
    proves!(AF_104, "directives emit words and tables");
    proves!(AF_109, "a table inside code has offsets of labels, which follow an insertion");
    let source = |inserted: &str| {
        format!("[016ee001]\n[#end]\n{inserted}first:\nnop\nlast: nop\n.table first, last\n.word 0x5, 0x6\n")
    };
    assert_eq!(words(&source(""))[1..], [0x0100_0008, 0x0100_0000, 0x0100_0000, 2, 3, 5, 6]);
    let moved = words(&source("nop\nnop\n"));
    assert_eq!((moved[1], &moved[6..8]), (0x0100_000a, [4, 5].as_slice()));
}

/// Ten instructions at the head of a section, of code with a table, and of BV: targets, word 2, packet tables and
/// section bases are right, and without the insertion the original bytes are made (plan, acceptance 4).
#[test]
fn relocate_moves_targets_tables_and_sections() {
    let section = |insert: &str| {
        format!(
            "[01000001]\n[#jumptbl]\n{insert}CP_NOP:\ncall #f\nnop\nbrne $02, b1, #back\nnop\nback: waitin\nmov $01, $data\nf: ret\nnop\n.table f, back\n"
        )
    };
    let source = |first: &str, second: &str| {
        let head = section(first).replacen("[01000001]", "[01730001]", 1);
        format!("{head}.align 32\njumptbl:\n.jumptbl\n.section BV\n{}.align 32\njumptbl:\n.jumptbl\n", section(second))
    };
    let insert = "nop\n".repeat(10);
    let original = words(&source("", ""));
    let image = assemble(&source("", ""), &Options::default()).unwrap().image;
    let text = disassemble(&image, Syntax::Native);
    assert_eq!(words(&text), original);
    // The disassembled text, with the insertion before the first handler of the first section.
    let moved = words(&text.replacen("\nCP_NOP:", &format!("{insert}\nCP_NOP:"), 1));
    let expected = words(&source(&insert, ""));
    // The table inside the code is data to the disassembler; all else moved.
    let table = expected.iter().zip(&moved).filter(|(a, b)| a != b).count();
    assert_eq!(table, 2);
    assert_eq!((expected[1], expected[2 + 10], expected.len()), (0x0100_0018, 0xd400_0012, original.len() + 8));
    assert_eq!(expected[0x18 + 0x10], 12);
    let bv = words(&source("", &insert));
    assert_eq!(bv[..0x10 + 0x80], original[..0x10 + 0x80]);
    assert_eq!((bv[0x91], bv[0x90 + 2 + 10]), (0x0100_0018, 0xd400_0012));
}

#[test]
fn section_aligns_the_one_before_and_begins_new_labels() {
    proves!(AF_104, ".align pads to bytes, .section to 32 bytes, and labels are local to a section");
    let source = "[01730001]\n[#l]\nl: nop\n.align 16\nnop\n.section BV\nnop\nl: mov $02, #l\n[#l]\n";
    let (nop, mov) = (0x0100_0000, 0x7002_0001);
    assert_eq!(words(source)[1..], [nop | 2, nop, nop, nop, nop, nop, nop, nop, mov, nop | 1]);
}

#[test]
fn label_as_an_immediate_is_its_offset_in_words() {
    proves!(AF_105, "mov of a label has the offset of the label in words, and a shift if there is one");
    let source = "[016ee001]\nnop\nmov $02, #l\nmov $02, #l << 2\nl: nop\n.section LPAC\nnop\nmov $03, #m\nm:\n";
    let words = words(source);
    assert_eq!((&words[2..4], words[9]), ([0x8802_0004, 0x8842_0004].as_slice(), 0x8803_0002));
}

/// A delay slot that is the start of a handler too: the code of the handler is reached.
#[test]
fn code_behind_a_delay_slot_with_a_label_is_reached() {
    let source = "[016ee001]\n[#jumptbl]\nl: jump #l\nCP_NOP:\nmov $02, 0x1\nmov $03, 0x2\nwaitin\nnop\nnop\n\
                  jumptbl:\n.jumptbl\n";
    let text = disassemble(&assemble(source, &Options::default()).unwrap().image, Syntax::Native);
    let unreached: Vec<&str> = text.lines().filter(|line| line.ends_with("not reached")).collect();
    assert_eq!(unreached, ["nop\t; not reached"], "{text}");
}

#[test]
fn relocate_works_on_a5xx() {
    let source = |insert: &str| {
        format!(
            "[005ff001]\n[#jumptbl]\n{insert}CP_NOP:\ncall #f\nnop\nf: waitin\nmov $01, $data\njumptbl:\n.jumptbl\n"
        )
    };
    let original = words(&source(""));
    assert_eq!((original[1], original[6 + 0x10]), (6, 2));
    let moved = words(&source(&"nop\n".repeat(10)));
    assert_eq!((moved[1], moved[16 + 0x10], moved[12]), (16, 12, 0xd400_000e));
    let image = assemble(&source(""), &Options::default()).unwrap().image;
    assert_eq!(image.generation(), Generation::A5);
    let text = disassemble(&image, Syntax::Native);
    assert!(text.contains(".jumptbl") && text.contains("[#jumptbl]"), "{text}");
    assert!(!disassemble(&image, Syntax::Mesa).contains(".jumptbl"));
}
