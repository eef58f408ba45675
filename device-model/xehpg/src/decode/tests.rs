// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the disassembler with synthetic batches, images and messages.

use arctic_fidelity::proves;
use arctic_sriov::number;

use super::*;
use crate::command::Requester;
use crate::generation::{EngineRef, XE_HPG};

fn text(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn commands(batch: &Batch<'_>) -> Vec<String> {
    text(&batch.commands().map(Line::Command).collect::<Vec<_>>())
}

fn on(engine: &str) -> EngineRef {
    EngineRef { generation: &XE_HPG, id: XE_HPG.engines.named(engine).unwrap() }
}

#[test]
fn a_batch_is_disassembled() {
    proves!(
        [V8_096, V8_140],
        "names and lengths of the commands in a batch; a reserved opcode is a line without a name"
    );
    let batch = [0x1040_0002, 0x1000, 0, 1, 0x7a00_0004, 0, 0, 0, 0, 0, 0x6904_0000, 0x0f80_0000, 0x0500_0000];
    let lines: Vec<_> = split(on("rcs0"), &batch).map(|l| (l.at, l.name, l.dwords.len())).collect();
    assert_eq!(
        lines,
        [
            (0, Some("MI_STORE_DATA_IMM"), 4),
            (4, Some("PIPE_CONTROL"), 6),
            (10, Some("PIPELINE_SELECT"), 1),
            (11, None, 1),
            (12, Some("MI_BATCH_BUFFER_END"), 1)
        ]
    );
}

/// The encoders of tests and guests, which know no table of this crate, agree with the tables about each command's name
/// and length.
#[test]
fn encoded_commands_have_their_names_and_lengths() {
    use arctic_mi::blt::{self, Area, Control, Depth, Surface};
    use arctic_mi::{self as mi, Alu, Compare, Global, Operand, PostSync, Process, Reg};
    const VA: u64 = 0x1_2345_6780;
    let (gpr, surface, area) = (Reg::Own(mi::GPR0), Surface::linear(VA, 64), Area::of(16, 16));
    let (value, depth) = (PostSync::Immediate(7), Depth::Bits32);
    let commands: [(&str, &[u32]); 29] = [
        ("MI_NOOP", &[mi::NOOP]),
        ("MI_NOOP", &[mi::noop_id(7)]),
        ("MI_USER_INTERRUPT", &[mi::USER_INTERRUPT]),
        ("MI_ARB_CHECK", &[mi::ARB_CHECK]),
        ("MI_ARB_ON_OFF", &[mi::ARB_OFF]),
        ("MI_BATCH_BUFFER_END", &[mi::BATCH_BUFFER_END]),
        ("MI_STORE_DATA_IMM", &mi::store_data_imm(Global(VA), 7)),
        ("MI_STORE_DATA_IMM", &mi::store_data_imm_qword(Global(VA), 7)),
        ("MI_STORE_DATA_IMM", &mi::store_data_imm_qwords(Global(VA), &[7; 3])),
        ("MI_LOAD_REGISTER_IMM", &mi::load_register_imm(gpr, 7)),
        ("MI_LOAD_REGISTER_IMM", &mi::load_registers_imm(&[(0x600, 7); 3])),
        ("MI_LOAD_REGISTER_IMM", &mi::load_gpr(1, 7)),
        ("MI_LOAD_REGISTER_REG", &mi::load_register_reg(gpr, Reg::Own(mi::TIMESTAMP))),
        ("MI_LOAD_REGISTER_MEM", &mi::load_register_mem(gpr, Global(VA))),
        ("MI_STORE_REGISTER_MEM", &mi::store_register_mem(gpr, Global(VA))),
        ("MI_COPY_MEM_MEM", &mi::copy_mem_mem(Global(VA), Process(VA))),
        ("MI_MATH", &mi::math(&[Alu::Load(Operand::SrcA, Operand::R(0)), Alu::Add])),
        ("MI_ATOMIC", &mi::atomic_increment(Global(VA))),
        ("MI_SEMAPHORE_WAIT", &mi::semaphore_wait(Global(VA), Compare::Equal, 1)),
        ("MI_CONDITIONAL_BATCH_BUFFER_END", &mi::conditional_batch_buffer_end(Process(VA), Compare::Less, 1)),
        ("MI_BATCH_BUFFER_START", &mi::batch_buffer_start(Process(VA))),
        ("MI_BATCH_BUFFER_START", &mi::second_level_batch(Process(VA))),
        ("MI_FLUSH_DW", &mi::flush_dw(Process(VA), value)),
        ("PIPE_CONTROL", &mi::pipe_control(Global(VA), value)),
        ("XY_FAST_COPY_BLT", &blt::fast_copy(&surface, area, &surface, 0, 0, depth)),
        ("XY_BLOCK_COPY_BLT", &blt::block_copy(&surface, area, &surface, 0, 0, depth)),
        ("XY_FAST_COLOR_BLT", &blt::fast_color(&surface, depth, area, [0; 4])),
        ("XY_COLOR_BLT", &blt::color(&surface, depth, area, 7)),
        ("XY_CTRL_SURF_COPY_BLT", &blt::ctrl_surf_copy(Control::Memory(VA), Control::Surface(VA), 1)),
    ];
    for (name, words) in commands {
        let engine = on(if name == "PIPE_CONTROL" { "rcs0" } else { "bcs0" });
        let lines: Vec<_> = split(engine, words).map(|command| (command.name, command.dwords.len())).collect();
        assert_eq!(lines, [(Some(name), words.len())], "{words:x?}");
    }
}

/// The names are those of the registers that the engine accesses: all bits of a relative offset count in a batch, and the
/// remap bit means the executing instance. In a context image only bits 12:2 of a relative offset count.
#[test]
fn registers_are_those_that_the_engine_accesses() {
    let lri = |bits: u32, offset: u32| [0x1100_0001 | bits, offset, 5];
    let text = |words: &[u32], engine| {
        let batch = Batch::new(words, 0, on(engine));
        batch.commands().map(|command| command.to_string()).collect::<Vec<_>>().join("; ")
    };
    let (relative, remapped, source_remapped) = (1 << 19, 1 << 17, 1 << 16);
    for (words, engine, register) in [
        (lri(relative, 0x618), "rcs0", "rcs0.CS_GPR[6]"),
        // 0x18600 from the base of the render engine is a register of a compute engine (V8-004).
        (lri(relative, 0x1_8600), "rcs0", "ccs0.CS_GPR[0]"),
        (lri(remapped, 0x2600), "ccs0", "ccs0.CS_GPR[0]"),
        (lri(0, 0x2600), "ccs0", "rcs0.CS_GPR[0]"),
        (lri(remapped, 0x1c_0600), "vcs2", "vcs2.CS_GPR[0]"),
    ] {
        let text = text(&words, engine);
        assert!(text.contains(&format!("{register} = 0x5")), "{words:#x?} on {engine}: {text}");
    }
    let copy = text(&[0x1500_0001 | source_remapped, 0x2600, 0x2608], "ccs0");
    assert!(copy.contains("ccs0.CS_GPR[0]") && copy.contains("rcs0.CS_GPR[2]"), "{copy}");
    let in_image =
        |words: &[u32], engine| context::image(words, on(engine)).iter().map(ToString::to_string).collect::<String>();
    assert!(in_image(&lri(relative, 0x1_8600), "rcs0").contains("rcs0.CS_GPR[0]"));
    assert!(in_image(&lri(remapped, 0x2600), "ccs0").contains("ccs0.CS_GPR[0]"));
}

/// A batch as a driver writes it, each command with its decoded fields.
#[test]
fn a_batch_reads_as_it_is_executed() {
    let words = [
        0x1100_0001,
        0x2600,
        5, // LRI
        0x1108_1003,
        0x618,
        7,
        0x358,
        1, // LRI, relative
        0x1040_0002,
        0x1000,
        0,
        42, // SDI, global
        0x0d00_0001,
        0x0800_8000,
        0x1000_0000, // MATH
        0x1200_0002,
        0x2358,
        0x2000,
        1, // SRM
        0,
        0,
        0, // NOOPs
        0x0e00_c002,
        9,
        0x3000,
        0, // SEMAPHORE_WAIT
        0x7a00_0004,
        0x0010_4000,
        0x4000,
        0,
        1,
        2,           // PIPE_CONTROL
        0x0500_0000, // END
        0xffff_ffff,
    ];
    let batch = Batch::new(&words, 0x10_0000, on("rcs0"));
    assert_eq!(
        commands(&batch),
        [
            "0x000000100000: 11000001 MI_LOAD_REGISTER_IMM: rcs0.CS_GPR[0] = 0x5",
            "0x00000010000c: 11081003 MI_LOAD_REGISTER_IMM: Force Posted, Add CS MMIO Start Offset, \
             rcs0.CS_GPR[6] = 0x7, rcs0.RING_TIMESTAMP[0] = 0x1",
            "0x000000100020: 10400002 MI_STORE_DATA_IMM: Use Global GTT, Address 0x1000, Data 0x2a \
             # executed as MI_NOOP without privilege",
            "0x000000100030: 0d000001 MI_MATH: LOAD SRCA, R0, ADD",
            "0x00000010003c: 12000002 MI_STORE_REGISTER_MEM: Register rcs0.RING_TIMESTAMP[0], \
             Memory Address 0x100002000",
            "0x00000010004c: 00000000 MI_NOOP x3",
            "0x000000100058: 0e00c002 MI_SEMAPHORE_WAIT: Compare Operation SAD == SDD, Wait Mode poll, \
             Semaphore Data Dword 0x9, Semaphore Address 0x3000",
            "0x000000100068: 7a000004 PIPE_CONTROL: Post Sync Operation write immediate, \
             Command Streamer Stall Enable, Destination Address Type PPGTT, Address 0x4000, \
             Immediate Data 0x200000001",
            "0x000000100080: 05000000 MI_BATCH_BUFFER_END",
        ]
    );
}

/// Unknown and truncated commands are reported; the disassembly continues.
#[test]
fn invalid_commands_are_reported() {
    let words = [0x8000_0000, 0x0780_0000, 0x1000_0001, 0, 0, 0x7a00_0002, 0, 0, 0, 0x1080_0000];
    let all = commands(&Batch::new(&words, 0, on("rcs0")));
    assert_eq!(all[0], "0x000000000000: 80000000 unknown # rcs0 has no such command");
    assert_eq!(all[1], "0x000000000004: 07800000 unknown # rcs0 has no such command");
    assert!(all[2].ends_with("# illegal: expected at least 4 dwords"), "{all:#?}");
    assert!(all[3].ends_with("# 4 dwords, expected 6"), "{all:#?}");
    assert!(all[4].contains("# truncated: 1 of 2 dwords"), "{all:#?}");
}

/// A mark is shown at its address, and the disassembly is resynchronised there.
#[test]
fn marks_bring_the_disassembly_into_step() {
    let words = [0x1040_0002, 0x0200_0000, 0x0500_0000, 0, 0, 0];
    let batch = Batch {
        marks: vec![(0x1004, "HEAD"), (0x1010, "TAIL")],
        ends: false,
        requester: Requester::PfKernel,
        ..Batch::new(&words, 0x1000, on("bcs0"))
    };
    assert_eq!(
        commands(&batch),
        [
            "0x000000001000: 10400002 MI_STORE_DATA_IMM: Use Global GTT # HEAD is inside it: a command of 4 dwords \
             cannot start here # illegal: expected at least 4 dwords",
            "0x000000001004: 02000000 MI_WAIT_FOR_EVENT_2 <== HEAD",
            "0x000000001008: 05000000 MI_BATCH_BUFFER_END",
            "0x00000000100c: 00000000 MI_NOOP",
            "0x000000001010: 00000000 MI_NOOP x2 <== TAIL",
        ]
    );
}

/// Target of a batch start, and whether execution returns.
#[test]
fn batch_starts_have_targets() {
    let words = [0x18c0_0101, 0x5000, 0, 0x1880_0101, 0x6000, 1, 0x0500_0000];
    let user: Vec<_> = Batch::new(&words, 0, on("ccs1")).commands().collect();
    assert_eq!(user[0].target, Some(Target { address: 0x5000, ppgtt: true, returns: true }));
    assert_eq!(user[1].target, Some(Target { address: 0x1_0000_6000, ppgtt: true, returns: false }));
    assert_eq!(user.len(), 2, "the disassembly must stop after a chained batch start");
    let ring = Batch { requester: Requester::PfKernel, ends: false, ..Batch::new(&words, 0, on("ccs1")) };
    let ring: Vec<_> = ring.commands().collect();
    assert!(ring[1].target.unwrap().returns && ring.len() == 3);
}

/// An image is decoded into its register loads.
#[test]
fn an_image_reads() {
    proves!([V8_046, V8_065, V8_066], "register loads of an image, and the ring that they describe");
    let mut image = vec![0u32; 0x180];
    image[0x01] = 0x1108_1019;
    for (n, (offset, value)) in [
        (0x244, 0x0009_0009),
        (0x34, 0x0020_0040),
        (0x30, 0x80),
        (0x38, 0x10_0000),
        (0x3c, 0x3001),
        (0x168, 1),
        (0x140, 0x2001),
    ]
    .into_iter()
    .enumerate()
    {
        image[2 + 2 * n] = offset;
        image[3 + 2 * n] = value;
    }
    image[0x60] = 0;
    let lines = text(&context::image(&image, on("vcs0")));
    assert!(
        lines.contains(
            &"[0x003] vcs0.RING_CONTEXT_CONTROL 0x00090009 engine context not restored, no switch while it waits"
                .into()
        ),
        "{lines:#?}"
    );
    assert!(lines.contains(&"[0x005] vcs0.RING_HEAD 0x00200040 offset 0x40, wrapped 1 times".into()));
    assert!(lines.contains(&"# 0x40 bytes of the ring are pending: HEAD 0x40, TAIL 0x80 of 0x4000".into()));
    assert!(lines.contains(&"# switched out in the batch at 0x100002000".into()));
    let place = context::position(&image, on("vcs0"));
    assert_eq!((place.start, place.size, place.head, place.tail), (0x10_0000, 0x4000, 0x40, 0x80));
}

/// Descriptors and status quadwords are decoded.
#[test]
fn descriptors_and_status_read() {
    proves!([V8_030, V8_031], "the fields of a descriptor");
    proves!([V8_052, V8_053], "the reasons of a switch, and the context ID that means none");
    let lines = text(&status::descriptor(0x0400_0080_0012_3119));
    assert_eq!(
        lines[0],
        "[0x000] descriptor, low 0x00123119 LRC at 0x123000 (PPHWSP, image 4 KiB behind), valid, \
                          legacy, 64-bit addresses, process space"
    );
    assert_eq!(lines[1], "[0x001] descriptor, high 0x04000080 SW context ID 0x1, SW counter 1, VF 0");
    let row = |away: u64, to: u64, new: u64, detail: u64| status::quadword(away << 42 | new << 33 | to << 10 | detail);
    assert_eq!(row(0xffff, 3, 1, 0), "idle to active: idle -> context 0x3, complete");
    assert_eq!(row(3, 4, 1, 5), "new queue: context 0x3 -> context 0x4, preempted");
    assert_eq!(row(3, 3, 1, 0), "lite restore: context 0x3 -> context 0x3, complete");
    assert_eq!(row(3, 4, 0, 4), "next element: context 0x3 -> context 0x4, unsuccessful wait (4)");
    assert_eq!(row(3, 0xffff, 0, 0), "active to idle: context 0x3 -> idle, complete");
}

/// The status buffer is found in a page, with the entry that its pointer names.
#[test]
fn a_status_buffer_reads() {
    proves!([V8_057, V8_058], "places of the entries and of the pointer to the last one");
    let mut page = [0; 0x400];
    for (dword, away, to) in [(0x10, 0xffff_u64, 3), (0x12, 3, 4), (0x26, 4, 5), (0x28, 5, 6)] {
        let status = away << 42 | 1 << 33 | to << 10;
        (page[dword], page[dword + 1]) = (number::low(status), number::high(status));
    }
    page[0x2f] = 0xf1;
    let lines = text(&status::buffer(&page));
    let [first, second, eleventh, pointer] = &lines[..] else { panic!("{lines:#?}") };
    assert!(first.starts_with("[0x010] CSB[0]") && first.ends_with("idle -> context 0x3, complete"), "{first}");
    assert!(second.starts_with("[0x012] CSB[1]") && second.ends_with("complete <== written last"), "{second}");
    assert!(eleventh.starts_with("[0x026] CSB[11]") && eleventh.ends_with("complete"), "{eleventh}");
    assert!(pointer.starts_with("[0x02f] CSB write pointer 0x000000f1"), "{pointer}");
}

/// Messages are decoded with the names of their parameters; dwords that are not a message are skipped.
#[test]
fn messages_read() {
    let ring = [
        0x0012_0002,
        0x2000_1001,
        5, // two HXG dwords: SCHED_CONTEXT_MODE_SET without its last parameter
        0xdead_beef,
        0x0000_0003,
        0x9000_1002,
        5,
        1,
        0x0012_0001,
        0xe000_0030,
        0x0013_0004,
        0x0000_100b,
        5,
        0x2001_0001,
        1000,
    ];
    assert_eq!(
        text(&guc::ring(&ring, Some(4), Some(8))),
        [
            "[0x0000] host > GuC fast request SCHED_CONTEXT_MODE_SET (fence 0x12): context 0x5",
            "# 1 dwords are not a message",
            "[0x0004] GuC > host event SCHED_CONTEXT_MODE_DONE (fence 0x0): context 0x5, enabled 0x1 <== not read yet",
            "[0x0008] GuC > host failure UnknownAction (fence 0x12)",
            "[0x000a] host > GuC request UPDATE_CONTEXT_POLICIES (fence 0x13): context 0x5, \
             CONTEXT_POLICIES_EXECUTION_QUANTUM 0x3e8",
        ]
    );
}

proptest::proptest! {
    /// Arbitrary input causes no panic, and every dword of a ring is in exactly one line.
    #[test]
    fn any_bytes_read(words in proptest::collection::vec(proptest::prelude::any::<u32>(), 0..600), base: u64, mark: u64) {
        for id in XE_HPG.engines.all() {
            let engine = EngineRef { generation: &XE_HPG, id };
            let marks = vec![(base & 0xffff_ffff_fffc, "HEAD"), ((base & 0xffff_ffff_fffc) + mark % 2400, "TAIL")];
            let ring = Batch { requester: Requester::PfKernel, ends: false, marks, ..Batch::new(&words, base, engine) };
            let dwords: usize = ring.commands().map(|c| c.dwords.len().max(c.times)).sum();
            proptest::prop_assert_eq!(dwords, words.len());
            Batch::new(&words, base, engine).commands().for_each(|command| drop(command.to_string()));
            let _ = text(&context::image(&words, engine));
        }
        let _ = text(&guc::ring(&words, Some(3), Some(500)));
        let _ = (text(&guc::keys(&words)), text(&status::buffer(&words)), text(&context::page(&words)));
        let _ = text(&status::descriptor(base));
    }
}
