// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decoder, disassembler and assembler.

mod common;

use arctic_eu::isa::{self, table};
use arctic_eu::text::{assemble, disassemble, lines};
use proptest::prelude::*;

/// ISA-010 to ISA-024: lines as iga64 prints them, and the dwords that iga64 makes of them.
const LINES: &str = include_str!("data/lines.txt");

#[test]
fn lines_have_the_text_and_the_bytes_of_iga64() {
    let mut count = 0;
    let all: Vec<&str> = LINES.lines().filter(|line| !line.starts_with('#')).collect();
    for pair in all.chunks_exact(2) {
        let [text, hex] = pair else { unreachable!() };
        let bytes = common::hex(hex);
        let code = assemble(&format!("L0:\n{text}\n")).unwrap_or_else(|errors| panic!("{}", errors.render(text, text)));
        assert_eq!(code, bytes, "{text}");
        let lines = lines(&bytes);
        assert_eq!(lines[0].text, *text);
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

/// The kernel of the test vectors: all its instructions have a text, and it makes the same bytes.
#[test]
fn a_compiled_kernel_is_disassembled_and_assembled_to_itself() {
    let code = common::hex(include_str!("data/vadd.hex"));
    let text = disassemble(&code);
    assert_eq!(assemble(&text).unwrap(), code);
    // The padding ends within an instruction.
    assert_eq!(text.matches(".inst").count(), 1, "{text}");
    for part in [
        "        add3 (16|M0)             r5.0<1>:d     r4.0<0;0>:d       r1.0<1;0>:uw      r7.0<0>:d        {I@1}",
        "(~f0.0) goto (32|M0)                         L560                  L560",
        "        shl (16|M0)              r11.0<1>:d    r5.0<1;1,0>:d     2:w               {Compacted}",
        "load.ugm.d32.a32.ca.ca.bti[1]",
        "oword aligned block read x8",
        "{EOT,A@1} // wr:1+0, rd:0; end of thread",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// ISA-026: of all opcodes, those without a row are reserved.
#[test]
fn each_opcode_without_a_row_is_an_error() {
    for code in 0..128u8 {
        let mut bytes = [0u8; 16];
        bytes[0] = code;
        let decoded = isa::decode(&bytes);
        assert_eq!(decoded.is_err_and(|error| error == isa::DecodeError::Opcode(code)), table::by_code(code).is_none());
    }
}

/// ISA-110: iga64 prints no text for reserved bits, so that these words have none that makes them again.
#[test]
fn words_with_reserved_bits_are_printed_as_bytes_and_what_they_do() {
    for (words, text) in [
        ("00004000 0 0 0", ".inst 0x00004000 0x00000000 0x00000000 0x00000000 // illegal"),
        ("40000000 0 0 0", ".inst 0x40000000 0x00000000 0x00000000 0x00000000 // illegal"),
        ("01000001 00014200 20000000 00014010", "// sync.allrd ($4,$14,$16)"),
        ("0005002f 00004002 00000000 00000090", "// join (32|M0) L144"),
        ("0004006b 6d04022c 926a2d04 63051504", "// bfn.(s0^s1^s2) (16|M0) r109.0<1>:ud r45.0<1;0>:ud r21.0<1;0>:ud"),
    ] {
        let line = lines(&common::hex(words))[0].text.clone();
        assert!(line.trim_start().starts_with(".inst") && line.contains(text), "{line}");
    }
}

/// ISA-080: subregisters of some registers count bytes in the text.
#[test]
fn subregisters_of_message_ce_and_ip_registers_count_bytes() {
    for (words, text) in
        [("80000961 50410220 00000224 00000000", "msg0.8<1>:ud"), ("00041d70 40418260 51101644 00010001", "ce.8<1>:d")]
    {
        let bytes = common::hex(words);
        let line = lines(&bytes)[0].text.clone();
        assert!(line.contains(text), "{line}");
        assert_eq!(assemble(&format!("L0:\n{line}\n")).unwrap(), bytes);
    }
}

#[test]
fn mistakes_are_reported_with_place_and_reason() {
    for (line, column, reason) in [
        ("        frobnicate (8|M0) r1.0<1>:f r2.0<1;1,0>:f", 9, "no instruction has the name `frobnicate`"),
        ("        mov (3|M0) r1.0<1>:f r2.0<1;1,0>:f", 13, "the execution size is 1, 2, 4, 8, 16 or 32"),
        ("        mov (8|M0) r1.0<1>:f r2.0<1;1,0>", 30, "the operand needs a type"),
        ("        mov (8|M0) r1.9<1>:f r2.0<1;1,0>:f", 22, "beyond the register"),
        ("        add (8|M0) r1.0<1>:w r2.0<1;1,0>:w 70000:w", 44, "no immediate of the type w"),
        ("        goto (8|M0) nowhere nowhere", 21, "the label nowhere is not defined"),
        ("        send.ugm (8|M0) r1 r2 null:0 0x0 zero", 42, "a descriptor is a number"),
        ("        mov (8|M0) r1.0<1>:f r2.0<1;1,0>:f {Q@1}", 45, "the pipes are A, F, I and L"),
        (
            "        mov (8|M0) r1.0<1>:f r2.0<1;1,0>:f {Compacted, $3.dst, A@1}",
            64,
            "a distance beside a token is written @n",
        ),
        ("        mov (8|M0) r1.0<1>:f r2.0<1;1,0>:f {@1, $3}", 49, "else $n.dst"),
        ("        mov (8|M0) r1.0<1>:f r2.0<1;1,0>:f {@1, $+3}", 49, "a token of the scoreboard is $0 to $15"),
        ("        mov (8|M0) r1.0<1>:f r2.0<1;1,0>:f {@1, NoMask}", 49, "`NoMask` is no option"),
        ("        sync.allwr ($32)", 20, "a token of the mask of sync is $0 to $31"),
        ("        add (8|M0) r1.0<1>:w r2.0<1;1,0>:w 0x+7:w", 44, "no immediate of the type w"),
        ("        add (8|M0) r1.0<1>:f r2.0<1;1,0>:f qnan(0x+7):f", 44, "no immediate of the type f"),
        (".inst 0x+7", 1, "is no hexadecimal number"),
    ] {
        let errors = assemble(line).unwrap_err();
        let text = errors.render(line, "k.asm");
        assert!(text.contains(reason), "{line}\n{text}");
        assert!(text.contains(&format!("--> k.asm:1:{column}\n")), "{line}\n{text}");
        assert!(text.contains('^'));
    }
    let many = "bad\n".repeat(50);
    assert_eq!(assemble(&many).unwrap_err().0.len(), 20);
}

/// The words of instructions with one field of the kernel's code changed.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let rows = 0..table::TABLE.len();
    (rows, any::<[u8; 16]>(), any::<bool>(), 0..128u32).prop_map(|(row, mut bytes, compacted, bit)| {
        bytes[0] = table::TABLE[row].code | bytes[0] & 0x80;
        bytes[3] = bytes[3] & !0x20 | u8::from(compacted) << 5;
        // Sizes that are legal, often.
        if bit < 100 {
            bytes[2] = bytes[2] & !4 | bytes[2] >> 1 & 3;
        }
        bytes.to_vec()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    /// Any bytes have a text that makes them again.
    #[test]
    fn text_of_any_bytes_makes_them_again(words in prop::collection::vec(word(), 1..4), tail in prop::collection::vec(any::<u8>(), 0..9)) {
        let mut code = words.concat();
        code.extend(tail);
        let text = disassemble(&code);
        let again = assemble(&text);
        prop_assert!(again.as_ref() == Ok(&code), "{}\n{:?}", text, again);
    }

    /// A native instruction that has a compacted form expands to itself.
    #[test]
    fn a_compacted_instruction_expands_to_the_native_one(bytes in word()) {
        let word = u128::from_le_bytes(bytes.try_into().unwrap()) & !(1 << 29);
        if let Some(compact) = isa::compaction::compact(word) {
            prop_assert_eq!(isa::compaction::expand(compact), word | 1 << 29);
        }
    }
}
