// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The text of small images, and tables of names that are copies of those in the document.

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::names::{ControlSet, Space, packet_name, register_number};
use arctic_afuc::text::{Options, Syntax, assemble, disassemble, disassemble_raw};
use arctic_fidelity::{proves, proves_table};

fn image(source: &str) -> Image {
    assemble(source, &Options::default())
        .unwrap_or_else(|errors| panic!("{}", errors.render(source, "source", false)))
        .image
}

/// Code with labels, registers and a packet table, in two sections, and two words after the last table.
const SOURCE: &str = "[01730001]\n[#jumptbl]\nCP_NOP:\nstart:\nmov $02, CP_SCRATCH\nmov $addr, |NRT_ADDR << 24\n\
    mov $addr, 0xa204 << 16\ncall #function\nbl #other\njump #start\nUNKN125:\nfunction:\n\
    cwrite $02, [$00 + @IB_LEVEL]\ncwrite $02, [$03 + 0x054]!\nother:\nsread $02, [$00 + %SP]\n\
    load $02, [$03 + 0x054]\nwaitin\nmov $01, $data\n.align 32\njumptbl:\n.jumptbl\n.section BV\n[01000001]\n\
    [#jumptbl]\nCP_NOP:\nwaitin\nmov $01, $data\nret\nnop\njumptbl:\n.jumptbl\n[deadbeef]\n[00000001]\n";

const TEXT: &str = "; a7xx microcode\n; Version: 01730001\n\n[01730001]\n[#jumptbl]\n\nCP_NOP:\nl2:\n\
    mov $02, 0x883\t; CP_SCRATCH[0].REG\nmov $addr, 0xa0 << 24\t; |NRT_ADDR\nmov $addr, 0xa204 << 16\t; |NRT_DATA\n\
    call #fxn8\nbl #fxn10\njump #l2\n\nUNKN125:\nfxn8:\ncwrite $02, [$00 + @IB_LEVEL]\ncwrite $02, [$03 + 0x54]!\n\n\
    fxn10:\nsread $02, [$00 + %SP]\nload $02, [$03 + 0x54]\nwaitin\nmov $01, $data\n.align 32\njumptbl:\n.jumptbl\n\n\
    .section BV\n;\n; BV microcode:\n;\n[01000001]\n[#jumptbl]\n\nCP_NOP:\nwaitin\nmov $01, $data\n\
    ret\t; not reached\nnop\t; not reached\njumptbl:\n.jumptbl\n[deadbeef]\n[00000001]\n";

#[test]
fn text_has_sections_labels_and_names_of_registers() {
    proves!(
        AF_112,
        "targets of branches and calls have labels lN and fxnN, handlers the name of their packet or UNKNn"
    );
    proves!(AF_060, "text has the names of control registers");
    proves!(AF_113, "immediates have the GPU register of their number as a comment, those of $addr the pipe register");
    proves!(AF_114, "control and SQE registers have names, but not with pre-increment");
    proves!(AF_115, "sections begin with .section, are aligned on a7xx, and end with other words as literals");
    proves!(AF_124, "a section has a packet table at the offset in its second word");
    let image = image(SOURCE);
    assert_eq!(disassemble(&image, Syntax::Native), TEXT);
    for syntax in [Syntax::Mesa, Syntax::Native] {
        let again = assemble(&disassemble(&image, syntax), &Options::default()).unwrap().image;
        assert!(again == image, "{syntax:?}");
    }
}

#[test]
fn raw_text_has_neither_sections_nor_tables() {
    proves!(AF_116, "in raw mode all words are instructions or literals");
    let image = image(SOURCE);
    let text = disassemble_raw(&image, Syntax::Native);
    assert!(!text.contains(".section") && !text.contains("jumptbl") && !text.contains("CP_NOP"), "{text}");
    // The entry of CP_NOP in the table.
    assert!(text.contains("\n[01000010]\n") && text.contains("\n[00000002]\t; data\n"), "{text}");
    assert!(assemble(&text, &Options::default()).unwrap().image == image);
}

/// Control registers of a5xx, a6xx, a7xx, and a7xx with the id 520; `-` where the document has none.
const CONTROL: &str = "
RB_RPTR                     -   001 001 -
IB1_BASE                    0b0 010 010 020
IB1_DWORDS                  0b2 012 012 022
IB2_BASE                    0b4 014 014 024
IB2_DWORDS                  0b6 016 016 026
IB3_BASE                    -   -   018 028
IB3_DWORDS                  -   -   01a 02a
MEM_READ_ADDR               0b8 018 01c 02c
MEM_READ_DWORDS             0ba 01a 01e 02e
MEM_READ_ADDR_HI_PRIVILEGED -   -   -   02f
REG_WRITE_ADDR              010 024 036 018
REG_WRITE                   011 025 037 019
REG_READ_DWORDS             -   026 038 01a
REG_READ_ADDR               -   027 039 01b
WFI_PEND_INCR               -   030 030 0b0
QUERY_PEND_INCR             -   031 031 0b1
WFI_PEND_CTR                -   038 03e 0b2
QUERY_PEND_CTR              -   039 03f 0b3
DRAW_STATE_SEL              -   041 041 -
SDS_BASE                    -   042 042 -
SDS_DWORDS                  -   044 044 -
DRAW_STATE_BASE             -   045 045 -
DRAW_STATE_HDR              -   047 047 -
DRAW_STATE_ACTIVE_BITMASK   -   049 049 -
DRAW_STATE_SET_HDR          -   04a 04c -
DRAW_STATE_SET_PENDING      -   04d 04d -
IB_LEVEL                    -   054 054 03d
LOAD_STORE_HI               -   058 058 07a
PERFCNTR_CNTL               -   05d 05d 0c9
PACKET_TABLE_WRITE_ADDR     -   060 060 070
PACKET_TABLE_WRITE          -   061 061 071
PREEMPT_ENABLE              -   071 071 133
PREEMPT_TRIGGER             -   072 072 134
PREEMPT_COOKIE              -   078 078 132
SECURE_MODE                 -   075 075 -
LOAD_STORE_RANGE_MIN        -   -   0a0 0a2
LOAD_STORE_RANGE_LEN        -   -   0a1 0a3
COPROCESSOR_LOCK            -   -   0b1 014
BV_INSTR_BASE               -   -   0d6 080
BV_CNTL                     -   -   0d8 082
LPAC_INSTR_BASE             -   -   0d9 083
LPAC_CNTL                   -   -   0db 085
GLOBAL_TIMESTAMP            -   -   0e2 -
LOCAL_TIMESTAMP             -   -   0e3 -
THREAD_SYNC                 -   200 23f 27f
";

#[test]
fn control_registers_have_the_numbers_of_the_document() {
    proves!(AF_060, "named control registers have the numbers of their generation");
    proves!(AF_103, "a number can be added to a name");
    proves_table!(AF_061, "the four sets of control registers have the numbers of the document");
    let sets = [ControlSet::A5, ControlSet::A6, ControlSet::A7, ControlSet::A7Gen3];
    for line in CONTROL.lines().filter(|line| !line.is_empty()) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        for (set, number) in sets.into_iter().zip(&columns[1..]) {
            let expected = u32::from_str_radix(number, 16).ok();
            assert_eq!(register_number(Space::Control, set, columns[0]), expected, "{} {set:?}", columns[0]);
        }
    }
    assert_eq!(register_number(Space::Control, ControlSet::A5, "STORE_HI"), Some(0x38));
    // The second register of a pair.
    assert_eq!(image(".gen 7\ncwrite $02, [$00 + @IB1_BASE+0x1]").words, [0xa802_0011]);
}

#[test]
fn packets_have_the_opcodes_of_the_document() {
    proves!(AF_100, "packets have the names of the register database, which depend on the generation");
    for (opcode, name) in [
        (0x04, "PKT4"),
        (0x10, "CP_NOP"),
        (0x3d, "CP_MEM_WRITE"),
        (0x3f, "CP_INDIRECT_BUFFER"),
        (0x43, "CP_SET_DRAW_STATE"),
        (0x48, "CP_ME_INIT"),
        (0x5c, "CP_CONTEXT_REG_BUNCH"),
    ] {
        let names = Generation::ALL.map(|generation| packet_name(opcode, generation));
        assert!(names[1..] == [Some(name); 2], "{opcode:#x} {names:?}");
    }
    let names = |opcode| Generation::ALL.map(|generation| packet_name(opcode, generation));
    assert_eq!(names(0x0f), [None, Some("IN_PREEMPT"), Some("IN_PREEMPT")]);
    assert_eq!(names(0x75), [None, Some("CP_MEMCPY"), Some("CP_MEMCPY")]);
    assert_eq!(names(0x6c), [Some("CP_SET_RENDER_MODE"), Some("CP_PREEMPT_DISABLE"), None]);
}
