// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command-line tests of `arctic decode` and `arctic trace`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use arctic_test_support::poll::eventually;
use arctic_test_support::served::{ChildProcess, Served};
use serde_json::Value;
use vmm_sys_util::tempdir::TempDir;

fn arctic(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn decode(arguments: &[&str], input: &str) -> Output {
    let mut command = arctic(&["decode"]);
    let mut child = command.args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    // The program may exit before it has read all its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn dwords_are_decoded_for_the_engine_that_is_named() {
    let ring = text(&decode(
        &["-", "--engine", "bcs0", "--base", "0xfe000", "--head", "0x0c", "--tail", "0x18"],
        "0x18800101 100000 0  0x26: 0x13400003 fe0004 0 1 0",
    ));
    assert!(ring.contains("0x0000000fe000: 18800101 MI_BATCH_BUFFER_START"), "{ring}");
    assert!(ring.contains("13400003 MI_FLUSH_DW") && ring.contains("<== HEAD"), "{ring}");
    let clients = text(&decode(&["-", "--class", "copy"], "50800001 0 0 7a000004 0 0 0 0 0"));
    assert!(clients.contains("# bcs0 has no such command"), "{clients}");
    let json = text(&decode(&["-", "--json"], "0x11000001 0x2600 5 0x05000000"));
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["name"], &lines[0]["fields"][4]["meaning"]),
        (&"MI_LOAD_REGISTER_IMM".into(), &"rcs0.CS_GPR[0]".into())
    );
    assert_eq!(lines[1]["name"], "MI_BATCH_BUFFER_END");
}

/// The same dwords have the addresses and lengths of the card's generation.
#[test]
fn dwords_are_decoded_for_the_card_that_is_named() {
    let dwords = "0x12400001 0x2358 0x8000  0x13004001 0x8004 0x1234  0x05000000";
    let ivb = text(&decode(&["-", "--card", "ivb", "--engine", "bcs0", "--kind", "ring"], dwords));
    let lines: Vec<_> = ivb.lines().collect();
    assert_eq!(
        lines,
        [
            "  0x000000000000: 12400001 MI_STORE_REGISTER_MEM: Use Global GTT, Register rcs0.TIMESTAMP, Memory Address 0x8000",
            "  0x00000000000c: 13004001 MI_FLUSH_DW: Post-Sync Operation write immediate, Destination Address Type GGTT, \
             Address 0x8000, Immediate Data 0x1234",
            "  0x000000000018: 05000000 MI_BATCH_BUFFER_END",
        ]
    );
    let flex = text(&decode(&["-", "--card", "small", "--engine", "bcs0", "--kind", "ring"], dwords));
    assert!(flex.contains("# illegal: expected at least 4 dwords"), "{flex}");
    let none = decode(&["-", "--card", "ivb", "--engine", "ccs0"], dwords);
    let message = String::from_utf8(none.stderr).unwrap();
    assert_eq!(
        (none.status.code(), message.as_str()),
        (Some(1), "arctic: the card has no engine ccs0; its engines are rcs0, vcs0, bcs0\n")
    );
    let unknown = decode(&["-", "--card", "nonexistent"], dwords);
    assert_eq!(unknown.status.code(), Some(2));
}

/// Card files of version 0.1.0 have no family: they are used, and a line on stderr says what to add.
#[test]
fn a_card_file_without_family_is_used_with_a_warning() {
    let dir = TempDir::new().unwrap();
    let file = dir.as_path().join("old.toml");
    let ivb = arctic_gpu::card_file::BUILT_IN.iter().find(|(name, _)| *name == "ivb").unwrap().1;
    let dwords = "0x13004001 0x8004 0x1234";
    let decoded = |card: String| {
        fs::write(&file, card).unwrap();
        let output = decode(&["-", "--card", file.to_str().unwrap(), "--engine", "bcs0"], dwords);
        (text(&output), String::from_utf8(output.stderr).unwrap())
    };
    let (with, silent) = decoded(ivb.into());
    let (without, warning) = decoded(ivb.replace("family = \"gen6\"\n", ""));
    assert!(with == without && silent.is_empty(), "{without}{silent}");
    assert_eq!(warning.lines().count(), 1, "{warning}");
    assert!(warning.contains("old.toml has no family: add the line `family = \"gen6\"`"), "{warning}");
}

/// An error state as i915 writes it for a batch on `ivb` that jumps to its start, with a few lines and dwords of each object.
#[test]
fn an_error_state_of_ivy_bridge_reads() {
    let dump = text(&decode(&["tests/data/ivb-hang.txt"], ""));
    let mut lines = dump.lines();
    for wanted in [
        "  # PCI ID: 0x0162",
        "  # fence[0] = 101ff00310000001 (0x10000000 to 0x101fffff, X tiles, pitch 512)",
        "  # HEAD:  0x00000030 [0x00000000] (Head Offset 0x30)",
        "  # IPEHR: 0x18800100 (MI_BATCH_BUFFER_START)",
        "  # BB_STATE: 0x00000020 (Address Space Indicator PPGTT)",
        "  # GFX_MODE: 0x00000a00 (PPGTT Enable, Replay Mode)",
        "ring at 0x3fddc000 bcs0",
        "  0x00003fddc01c: 12400001 MI_STORE_REGISTER_MEM: Use Global GTT, Register bcs0.PP_DIR_BASE, Memory Address \
         0x3ffff000",
        "  0x00003fddc030: 13244001 MI_FLUSH_DW: Post-Sync Operation write immediate, TLB Invalidate, Store Data Index, \
         Destination Address Type GGTT, Address 0x100, Immediate Data 0x4 <== HEAD",
        "  0x00003fddc040: 00000000 MI_NOOP x2 <== TAIL",
        "Batch at 0x3ffe0000 on bcs0",
        "  0x00003ffe0000: 10000002 MI_STORE_DATA_IMM: Address 0x2000, Data 0xc0de",
        "  0x00003ffe0010: 18800100 MI_BATCH_BUFFER_START: Address Space Indicator PPGTT, Batch Buffer Start Address \
         0x3ffe0000 <== ACTHD",
    ] {
        assert!(lines.any(|line| line == wanted), "{wanted} is not in {dump}");
    }
    let json = text(&decode(&["tests/data/ivb-hang.txt", "--json"], ""));
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["kind"] == "command" && line["marks"][0] == "ACTHD"), "{json}");
}

/// Every input says in text and in JSON what it was taken for, and what was not understood; status 1 if nothing was.
#[test]
fn input_type_and_unknown_parts_are_reported() {
    let dump = |id: &str| {
        format!(
            "Time: 1 s 2 us\nPCI ID: {id}\nEIR: 0x00000000\nrcs0 command stream:\n  IPEHR: 0x02000000\n  IPEHR: 0x61010006\n"
        )
    };
    let xe = |id: &str| format!("**** Xe Device Coredump ****\nkernel: 6.12.1\nPCI ID: {id}\n**** News ****\nx: 1\n");
    let summary = |arguments: &[&str], input: &str| -> Value {
        let output = decode(&[&["-", "--json"], arguments].concat(), input);
        let text = String::from_utf8(output.stdout).unwrap();
        let documents: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        documents.into_iter().rfind(|document| document["kind"] == "summary").unwrap_or_default()
    };
    for (id, tables) in [("0x0126", "sandy-bridge"), ("0x0166", "ivy-bridge")] {
        let decoded = text(&decode(&["-"], &dump(id)));
        let heading = format!("# i915's error state of GPU 8086:{}, decoded with the tables of {tables}\n", &id[2..]);
        assert!(decoded.contains(&heading), "{decoded}");
        assert!(decoded.contains("IPEHR: 0x02000000 (MI_FLUSH)") || id != "0x0126", "{decoded}");
        let summary = summary(&[], &dump(id));
        assert_eq!((&summary["tables"], &summary["assumed"]), (&tables.into(), &false.into()));
    }
    for id in ["0x0046", "0x0412", "0x8a52"] {
        let refused = decode(&["-"], &dump(id));
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), message.lines().count()), (Some(1), 1), "{message}");
        assert!(
            message.contains(&format!(
                "i915's error state of GPU 8086:{}, which is unknown: there are tables for",
                &id[2..]
            ))
        );
        let forced = text(&decode(&["-", "--card", "flex170"], &dump(id)));
        assert!(forced.contains("the tables of the Flex series, which are assumed"), "{forced}");
        assert_eq!(summary(&["--card", "ivb"], &dump(id))["assumed"], true);
    }
    let refused = decode(&["-"], &xe("0x4908"));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("xe's devcoredump of GPU 8086:4908"));
    // Nothing but headings.
    let nothing = decode(&["-"], &xe("0x56c0"));
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8(nothing.stdout).unwrap().contains("# not understood: 1 of: section News\n"));
    let dwords = text(&decode(&["-"], "0x05000000"));
    let heading = "  # dwords, taken for a batch of rcs0, with the tables of the Flex series (options: --kind, --engine, --card)\n";
    assert!(dwords.starts_with(heading), "{dwords}");
    let summary = summary(&[], "0x05000000 ");
    assert_eq!((&summary["decoded"], &summary["assumed"]), (&1.into(), &true.into()), "{summary}");
    let unknown = decode(&["-", "--engine", "bcs0"], "0x7a000000");
    assert_eq!(unknown.status.code(), Some(1), "{}", String::from_utf8_lossy(&unknown.stdout));
    let capture =
        "{\"arctic_capture\":1,\"card\":\"Test\"}\n{\"ns\":1,\"function\":0,\"engine\":\"xcs9\",\"event\":\"wait\"}\n";
    let output = text(&decode(&["-", "--json"], capture));
    let last: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(last["input"], "a capture of Test, by `arctic trace`");
    assert_eq!(last["not_understood"]["event of an engine that the card does not have"], 1);
}

#[test]
fn undecodable_input_is_refused_in_a_sentence() {
    for (arguments, input, wanted) in [
        (&["-"][..], "", "standard input: it is empty"),
        (&["-"], "hello", "`hello` is not a hexadecimal number of 32 bits"),
        (&["/nonexistent/file"], "", "/nonexistent/file cannot be read: No such file"),
        (&["-"], "{\"arctic_capture\":99,\"card\":\"x\"}\n", "it is of version 99, and this program reads 1"),
        (&["-"], "{\"arctic_capture\":1,\"card\":\"x\"}\n{}\n{}\n", "line 2 is not an event: missing field"),
    ] {
        let output = decode(arguments, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            message.starts_with("arctic: ") && message.contains(wanted) && message.lines().count() == 1,
            "{message}"
        );
    }
    assert_eq!(decode(&["-", "--engine", "gpu0"], "").status.code(), Some(2));
    assert_eq!(decode(&["-", "--base", "12345678901234"], "").status.code(), Some(2));
}

/// Compares the output for a capture with the expected text.
#[test]
fn a_capture_reads() {
    let capture = concat!(
        r#"{"arctic_capture":1,"card":"Test"}"#,
        "\n",
        r#"{"ns":1500000,"function":0,"event":"guc","mailbox":false,"fence":18,"dwords":[536875008,5]}"#,
        "\n",
        r#"{"ns":1600000,"function":1,"engine":"ccs0","event":"load","context":5,"descriptor":1192217}"#,
        "\n",
        r#"{"ns":1700000,"function":1,"engine":"ccs0","event":"restore","ring":4096,"head":0,"tail":64}"#,
        "\n",
        r#"{"ns":1800000,"function":1,"engine":"ccs0","event":"command","address":4096,"ppgtt":false,"level":0,"length":3,"dwords":[411042049,1048576,0]}"#,
        "\n",
        r#"{"ns":1900000,"function":1,"engine":"ccs0","event":"command","address":1048576,"ppgtt":true,"level":1,"length":5,"dwords":[234930179,1,3145728,0,0]}"#,
        "\n",
        r#"{"ns":1900001,"function":1,"engine":"ccs0","event":"wait"}"#,
        "\n",
        r#"{"ns":2000000,"function":1,"engine":"ccs0","event":"interrupt","bits":1}"#,
        "\n",
        r#"{"ns":2000001,"function":1,"event":"msi","vector":0}"#,
        "\n",
        r#"{"ns":2000002,"function":1,"event":"lost","events":3}"#,
        "\n",
        r#"{"ns":2000003,"function":1,"event":"doorbell","page":4198400,"doorbell":2,"notifies":true}"#,
        "\n",
        r#"{"ns":2000004,"function":1,"event":"doorbell","page":4198400,"doorbell":2,"notifies":false}"#,
        "\n",
        r#"{"ns":2000005,"function":1,"event":"doorbell","page":4202496,"notifies":false}"#,
        "\n",
        r#"{"ns":2000006,"function":0,"event":"tlb_invalidation","by":"TLB_INV_CR","all":true}"#,
        "\n",
        r#"{"ns":2000007,"function":1,"engine":"ccs0","event":"tlb_invalidation","by":"a command","all":false}"#,
        "\n",
        r#"{"ns":2100000,"function":1,"engine":"ccs0","event":"stop","outcome":"Preempted","head":12}"#,
        "\n",
    );
    assert_eq!(
        text(&decode(&["-"], capture)),
        "\
# Test, by `arctic trace`: ms, function, engine, what
      1.500000 pf    -      CT       host > GuC fast request SCHED_CONTEXT (fence 0x12): context 0x5
      1.600000 vf1   ccs0   load     context 0x5: LRC at 0x123000 (PPHWSP, image 4 KiB behind), valid, legacy, 64-bit addresses, process space
      1.700000 vf1   ccs0   restore  ring 0x1000, HEAD 0x0, TAIL 0x40
      1.800000 vf1   ccs0   ggtt:0x1000 MI_BATCH_BUFFER_START: Address Space Indicator PPGTT, Batch Buffer Start Address 0x100000
      1.900000 vf1   ccs0     ppgtt:0x100000 MI_SEMAPHORE_WAIT: Compare Operation SAD == SDD, Wait Mode poll, Semaphore Data Dword 0x1, Semaphore Address 0x300000
      1.900001 vf1   ccs0   waits
      2.000000 vf1   ccs0   signals  user interrupt
      2.000001 vf1   -      MSI      vector 0
      2.000002 vf1   -      3 events are missing here: the card was faster than its follower
      2.000003 vf1   -      rings    page 0x401000, doorbell 2
      2.000004 vf1   -      rings    page 0x401000, doorbell 2, served with an earlier ring
      2.000005 vf1   -      rings    page 0x402000, which no doorbell watches
      2.000006 pf    -      TLB      invalidated by TLB_INV_CR, of all functions
      2.000007 vf1   ccs0   TLB      invalidated by a command
      2.100000 vf1   ccs0   stop     Preempted, HEAD 0xc
"
    );
    assert!(!text(&decode(&["-", "--engine", "bcs0"], capture)).contains("ccs0"));
    let cut = &capture[..capture.len() - 20];
    assert!(text(&decode(&["-"], cut)).ends_with("# the capture ends in the middle of an event\n"));
}

/// A capture of an integrated GPU has its generation, and is formatted with the commands of that.
#[test]
fn a_capture_of_an_integrated_gpu_reads() {
    let command = r#"{"ns":1000000,"function":0,"engine":"bcs0","event":"command","address":4096,"ppgtt":false,"level":0,"length":3,"dwords":[318783489,32772,7]}"#;
    let capture = |generation: &str| format!("{{\"arctic_capture\":1,\"card\":\"Test\"{generation}}}\n{command}\n");
    let ivb = text(&decode(&["-"], &capture(",\"generation\":\"ivy-bridge\"")));
    assert_eq!(
        ivb,
        "# Test, by `arctic trace`: ms, function, engine, what\n      1.000000 pf    bcs0   ggtt:0x1000 MI_FLUSH_DW: Post-Sync \
         Operation write immediate, Destination Address Type GGTT, Address 0x8000, Immediate Data 0x7\n"
    );
    assert_ne!(text(&decode(&["-"], &capture(""))), ivb);
    let unknown = decode(&["-"], &capture(",\"generation\":\"gen99\""));
    let message = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(
        (unknown.status.code(), message.contains("its card is of the unknown generation gen99")),
        (Some(1), true),
        "{message}"
    );
}

/// Starts `arctic serve` and waits for the first line of its output.
fn serve(dir: &Path, more: &[&str]) -> Served {
    Served::start(arctic(&["serve", "--card", "small", "--dir", dir.to_str().unwrap()]).args(more), |_| true)
}

/// `arctic trace` follows a served card until SIGINT, and `--trace` captures from the start;
/// `arctic decode` reads both captures.
#[test]
fn a_card_is_followed_until_ctrl_c() {
    let dir = TempDir::new().unwrap();
    let (saved, complete) = (dir.as_path().join("saved"), dir.as_path().join("whole"));
    let card = serve(dir.as_path(), &["--trace", complete.to_str().unwrap()]);
    let timeline = dir.as_path().join("timeline");
    let mut trace = arctic(&["trace", dir.as_path().to_str().unwrap(), "--function", "pf", "--json", "--save"]);
    let trace = ChildProcess::spawn(trace.arg(&saved).arg("--perfetto").arg(&timeline));
    // The files are created after the SIGINT handler is installed and before events are written.
    eventually("the files of arctic trace", || saved.exists() && timeline.exists());
    trace.signal(libc::SIGINT);
    let output = trace.wait_with_output();
    let message = String::from_utf8(output.stderr).unwrap();
    let counts = "0 events, 0 of them commands; 0 missing\ntimeline of 0 events; 0 missing\n";
    assert!(output.status.success() && message == counts, "{message}");
    assert_eq!(arctic_timeline::read(&fs::read(timeline).unwrap()).unwrap().instants.len(), 1, "the end");
    assert_eq!(card.end(libc::SIGINT).0, Some(0));
    for capture in [saved, complete] {
        let heading = fs::read_to_string(&capture).unwrap();
        assert!(heading.starts_with("{\"arctic_capture\":1,\"card\":"), "{heading}");
        assert_eq!(text(&decode(&[capture.to_str().unwrap()], "")).lines().count(), 1);
    }
}

#[test]
fn trace_needs_a_card() {
    let dir = TempDir::new().unwrap();
    let output = arctic(&["trace", dir.as_path().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("arctic: no card is being served at "));
}
