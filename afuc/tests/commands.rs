// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc debug`, `coverage`, `patch` and `check`, on the open firmware and a trace of a few packets.

#[path = "common/program.rs"]
mod program;

use arctic_afuc::pm4::operation;
use arctic_fidelity::proves;
use program::{Directory, afuc};

const DATA: u32 = 0x20_0000;

fn open(directory: &Directory, generation: &str) -> String {
    let output = directory.0.join(format!("open{generation}.fw"));
    let output = output.to_str().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/firmware/sqe-open.asm");
    assert_eq!(afuc(&["asm", "--gen", generation, source, "-o", output]).0, Some(0));
    output.to_owned()
}

/// Break on packet, register, memory and control register; step, next, finish, watch, dump, set, snapshot: the transcript
/// is a snapshot.
#[test]
fn debug_script_has_the_recorded_transcript() {
    proves!(AF_123, "a debugger steps, stops, dumps and writes registers and memory");
    let directory = Directory::new("debug");
    let first = [
        operation(0x3d, &[DATA, 0, 1, 2]),
        operation(0x4c, &[1 << 20, 7]),
        operation(0x45, &[0x113, DATA, 0, 1, 0xff, DATA + 4, 0, 9]),
    ];
    let second = [operation(0x3d, &[DATA, 0, 5])];
    let trace = directory.trace(&[&first.concat(), &second.concat()]);
    let script = directory.file(
        "script",
        "break packet CP_MEM_WRITE   # at the handler\nbreak register CP_SCRATCH 7\nbreak register 0x884\n\
         watch memory 0x200000\ncontinue\nwhere\npacket\nstep 2\ndump gpr\nsnapshot before\n\
         break memory 0x200004 2\ncontinue\ndump memory 0x200000 2\ndelete 4\nrestore before\nwhere\ncontinue\n\
         dump register CP_SCRATCH 2\nbreak passes\nc\ndump stack\nfinish\ndisasm 2\nset gpr $09 0\nset memory 0x200004 0\n\
         until skip\ndump breakpoints\nbreak control @IB_LEVEL\nbreak control IB_LEVEL 0\nc\ndump control IB_LEVEL\n\
         dump queues\ndelete 6\nc\nc\nstep\ndump sqe\nnonsense\nbreak nowhere\ndelete 9\nset memory 0x1 1\n",
    );
    let (code, text, error) = afuc(&["debug", "--firmware", "open", "--rd", &trace, "--script", &script]);
    assert_eq!(code, Some(0), "{error}");
    insta::assert_snapshot!(text);
}

/// After a fault the machine can be looked at.
#[test]
fn debug_shows_the_machine_after_a_fault() {
    let directory = Directory::new("debug-fault");
    let trace = directory.trace(&[&operation(0x7e, &[]), &[]]);
    let script = directory.file("script", "c\ndump register CP_INTERRUPT_STATUS\nc\n");
    let (code, text, _) = afuc(&["debug", "--firmware", "open", "--rd", &trace, "--script", &script]);
    assert_eq!(code, Some(3));
    let fault = "packet 70fe8000 at 0x100000: possible opcode=0x7e: the packet has no handler\n";
    assert!(text.contains(fault) && text.contains("CP_INTERRUPT_STATUS = 00000001\n"), "{text}");
    assert!(text.ends_with("> c\nerror: there is nothing left to execute\n"), "{text}");
}

/// The machine has no processors of a5xx, and an empty file is not taken for a trace.
#[test]
fn run_refuses_a5xx_and_empty_traces() {
    let directory = Directory::new("refused");
    let trace = directory.trace(&[&operation(0x26, &[])]);
    let source = directory.file("a5.asm", "[005ff08a]\nnop\n");
    let empty = directory.file("empty.rd", "");
    for (firmware, generation, trace, reason) in [
        ("open", "5", &trace, "the open firmware is for a6xx and a7xx"),
        (&source, "5", &trace, "needs the processors PFP and ME"),
        ("open", "6", &empty, "the file is empty: it is not a trace"),
    ] {
        let (code, _, error) = afuc(&["run", "--firmware", firmware, "--gen", generation, "--rd", trace]);
        assert_eq!((code, error.contains(reason)), (Some(1), true), "{error}");
    }
    // Several traces are executed one after the other.
    let (code, text, _) = afuc(&["run", "--firmware", "open", "--rd", &trace, "--rd", &trace]);
    assert_eq!((code, text.contains("2 words in 2 command buffers")), (Some(0), true), "{text}");
}

#[test]
fn coverage_counts_instructions_by_handler() {
    let directory = Directory::new("coverage");
    let packets = [operation(0x3d, &[DATA, 0, 1, 2]), operation(0x26, &[]), operation(0x26, &[])].concat();
    let trace = directory.trace(&[&packets, &[]]);
    let arguments = ["coverage", "--firmware", "open", "--rd", &trace];
    let (code, text, _) = afuc(&arguments);
    assert_eq!(code, Some(0));
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(row("CP_WAIT_FOR_IDLE"), ["3/3", "100%", "6"]);
    assert_eq!(row("CP_MEM_WRITE"), ["10/10", "100%", "10"]);
    assert_eq!(row("CP_MEMCPY"), ["0/12", "0%", "0"]);
    let (_, listing, _) = afuc(&[&arguments[..], &["--listing"]].concat());
    assert!(listing.contains("CP_WAIT_FOR_IDLE:\n         2  "), "{listing}");
    let (_, text, _) = afuc(&[&arguments[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let parts = document["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["handler"] == "CP_MEM_WRITE" && part["executed"] == 10));
}

/// A handler for a free opcode is added to a binary, and the new firmware executes the packet.
#[test]
fn patch_adds_a_handler_that_the_firmware_executes() {
    let directory = Directory::new("patch");
    let change = directory
        .file("change.asm", "UNKN125:\nmov $02, $data\nmov $addr, 0x1234\nmov $data, $02\nwaitin\nmov $01, $data");
    let trace = directory.trace(&[&[operation(0x7d, &[77]), operation(0x26, &[])].concat(), &[]]);
    let output = directory.0.join("new.fw");
    let output = output.to_str().unwrap();
    for generation in ["6", "7"] {
        let base = open(&directory, generation);
        let (code, text, error) = afuc(&["patch", &base, &change, "-o", output]);
        assert_eq!(code, Some(0), "{error}");
        assert!(text.starts_with("+ UNKN125:\n") && text.contains("packet table, UNKN125: 0x0 -> 0x"), "{text}");
        let (code, text, _) = afuc(&["run", "--firmware", output, "--rd", &trace, "--effects"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.starts_with("register 0x01234 = 0000004d\n"), "{text}");
        let (code, text, _) = afuc(&["run", "--firmware", &base, "--rd", &trace]);
        assert_eq!(code, Some(3), "{text}");
    }
}

#[test]
fn patch_replaces_a_handler_only_on_request_and_reports_places_in_the_change() {
    let directory = Directory::new("patch-errors");
    let base = open(&directory, "6");
    let output = directory.0.join("new.fw");
    let output = output.to_str().unwrap();
    let change = directory.file("change.asm", "CP_NOP:\nwaitin\nmov $01, $data\n");
    let (code, _, error) = afuc(&["patch", &base, &change, "-o", output]);
    assert_eq!((code, error.contains("CP_NOP has a handler")), (Some(1), true), "{error}");
    assert_eq!(afuc(&["patch", &base, &change, "-o", output, "--replace"]).0, Some(0));
    let wrong = directory.file("wrong.asm", "UNKN125:\nmov $02, 0x12345\nwaitin\nnop\n");
    let (code, _, error) = afuc(&["patch", &base, &wrong, "-o", output]);
    assert_eq!(code, Some(1));
    assert!(error.contains("wrong.asm:2:10"), "{error}");
    let change = "UNKN125:\nwaitin\nmov $01, $data\nCP_YIELD_ENABLE:\nwaitin\nmov $01, $data\n";
    let other = directory.file("other.asm", change);
    let (code, _, error) = afuc(&["patch", &open(&directory, "7"), &other, "-o", output]);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.starts_with("warning: a7xx has no packet `CP_YIELD_ENABLE`\n"), "{error}");
    assert!(error.contains("other.asm:4:1") && error.contains("CP_MODIFY_TIMESTAMP"), "{error}");
    let none = directory.file("none.asm", "nop\n");
    let (code, _, error) = afuc(&["patch", &base, &none, "-o", output]);
    assert_eq!((code, error.contains("defines no label of a packet")), (Some(1), true), "{error}");
}

#[test]
fn check_reports_each_file_of_a_directory() {
    proves!(AF_119, "a bootstrap that does not reach waitin is reported");
    let directory = Directory::new("check");
    open(&directory, "6");
    open(&directory, "7");
    directory.file("odd.fw", [1, 2, 3]);
    directory.file(
        "spin.fw",
        [0_u32, 0x016e_e001, 0xc800_0000, 0x0100_0000].iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>(),
    );
    // The id of a file without the leading zero word is in its first word; the named generation is for unknown ids.
    directory.file("start.fw", [0x016e_e001_u32, 0x0100_0000].map(u32::to_le_bytes).concat());
    let path = directory.0.to_str().unwrap();
    let (code, text, _) = afuc(&["check", "--gen", "7", path]);
    assert_eq!(code, Some(0));
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(
        line("open6.fw").contains("id 6ee (a630), a6xx; SQE ")
            && line("open6.fw").contains("word 2 is its offset; round trip identical; boots: "),
        "{text}"
    );
    assert!(line("open7.fw").contains("a7xx") && line("odd.fw").contains("skipped, the file has 3 bytes"), "{text}");
    assert!(line("spin.fw").contains("round trip identical; does not boot"), "{text}");
    assert!(line("start.fw").contains("id 6ee (a630), a6xx;"), "{text}");
    assert!(text.ends_with("5 files\n"));
    let (code, text, _) = afuc(&["check", "/nonexistent"]);
    assert_eq!((code, text.as_str()), (Some(0), "/nonexistent: skipped, there is no such directory\n"));
}

/// Eight kinds of fault: each ends with exit code 3 and a message with PC, label, packet, its address and the bit of
/// CP_INTERRUPT_STATUS (AFC-026).
#[test]
fn each_fault_has_a_message_with_its_place() {
    let directory = Directory::new("faults");
    let source = include_str!("../firmware/sqe-open.asm").replace("CP_NOP:\n", "");
    let firmware = |code: &str| {
        let handler = format!("CP_NOP:\n{code}\nwaitin\nmov $01, $data\njumptbl:\n.jumptbl\n");
        directory.file("firmware.asm", source.replace("jumptbl:\n.jumptbl\n", &handler))
    };
    let nop = operation(0x10, &[]);
    let bad = vec![nop[0] ^ 1 << 15];
    let wait = operation(0x3c, &[3, 0x444, 0, 5, 0xff, 16]);
    let protect = "--set=0x84f=1 --set=0x850=0xc0800";
    let protected = |register: &str| format!("mov {register}, 0x802\nmov $data, $00");
    let (by_user, by_address) = (protected("$usraddr"), protected("$addr"));
    let cases: [(&str, &[u32], &str, &str, &str); 8] = [
        (
            "nop",
            &operation(0x7e, &[]),
            "",
            "possible opcode=0x7e: the packet has no handler",
            "packet UNKN126, queue IB1; CP_INTERRUPT_STATUS 0x1",
        ),
        ("nop", &bad, "", "packet header 70100000 is wrong", "CP_INTERRUPT_STATUS 0x1"),
        (
            &by_user,
            &nop,
            protect,
            "register 0x802 is protected",
            "in CP_NOP+0x1, packet CP_NOP, queue IB1; CP_INTERRUPT_STATUS 0x10",
        ),
        (
            "[00000000]",
            &nop,
            "",
            "word 00000000 is no instruction",
            "in CP_NOP, packet CP_NOP, queue IB1; CP_INTERRUPT_STATUS 0x80",
        ),
        (
            "again:\ncall #again\nnop",
            &nop,
            "",
            "the call stack has eight entries",
            "in again, packet CP_NOP, queue IB1; CP_INTERRUPT_STATUS 0x2",
        ),
        (
            "nop",
            &wait,
            "--packet-budget=5000",
            "the packet's handler did not end",
            "packet CP_WAIT_REG_MEM, queue IB1; CP_INTERRUPT_STATUS 0x2",
        ),
        (
            "load $02, [$00 + 0x4]",
            &nop,
            "--only-mapped",
            "address 0x4 is not mapped",
            "in CP_NOP, packet CP_NOP, queue IB1; CP_INTERRUPT_STATUS 0x4",
        ),
        (
            "jump #out\njump #out\nout:",
            &nop,
            "",
            "the branch and the one in its delay slot are both taken",
            "in CP_NOP+0x1, packet CP_NOP, queue IB1; CP_INTERRUPT_STATUS 0x2",
        ),
    ];
    let run = |code: &str, packets: &[u32], options: &str| {
        let (firmware, trace) = (firmware(code), directory.trace(&[packets, &[]]));
        let arguments = ["run", "--gen", "6", "--firmware", &firmware, "--rd", &trace];
        afuc(&arguments.into_iter().chain(options.split_whitespace()).collect::<Vec<&str>>())
    };
    for (code, packets, options, reason, place) in cases {
        let (exit, text, error) = run(code, packets, options);
        assert_eq!(exit, Some(3), "{text}{error}");
        let line = text.lines().find(|line| line.starts_with("at PC 0x")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(" at 0x100000: ") && line.ends_with(reason), "{text}");
        assert!(text.trim_end().ends_with(place), "{text}");
    }
    assert_eq!(run(&by_address, &nop, protect).0, Some(0));
}
