// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The program `eu`.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::END;

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("arctic-eu-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program and returns its exit status, standard output and standard error.
fn eu(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_eu")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn kernel(body: &str) -> Vec<u8> {
    common::zebin(&[("k", common::code(&format!("{body}{END}")))], &common::info(16, &["a"], ""))
}

/// Stores the local id of each item to `a[id]`, for one group.
const IDS: &str = "
        mov (16|M0) r10.0<1>:ud r1.0<1;1,0>:uw
        shl (16|M0) r12.0<1>:ud r10.0<1;1,0>:ud 2:uw
        add (16|M0) r12.0<1>:ud r12.0<1;1,0>:ud r4.6<0;1,0>:ud
        send.ugm (16|M0) null r12 r10:2 0x0 0x04000504
";

#[test]
fn disasm_and_asm_make_the_same_code_again() {
    let directory = Directory::new("asm");
    let code = common::hex(include_str!("data/vadd.hex"));
    let raw = directory.file("k.krn", &code);
    let (status, text, error) = eu(&["disasm", &raw]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    let source = directory.file("k.asm", text.as_bytes());
    let output = directory.path("again.krn");
    assert_eq!(eu(&["asm", &source, "-o", &output]).0, Some(0));
    assert_eq!(std::fs::read(Path::new(&output)).unwrap(), code);
    let bad = directory.file("bad.asm", b"        mov (8|M0) r1.0<1>:f\n");
    let (status, _, error) = eu(&["asm", &bad, "-o", &output]);
    assert_eq!(status, Some(1));
    assert!(error.contains("bad.asm:1:") && error.contains("^"), "{error}");
}

#[test]
fn disasm_of_a_zebin_has_its_kernels_as_text_and_as_json() {
    let directory = Directory::new("disasm");
    let file = directory.file("k.bin", &kernel(IDS));
    let (status, text, _) = eu(&["disasm", &file, "--kernel", "k"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("store.ugm.d32.a32"), "{text}");
    let (status, text, _) = eu(&["disasm", &file, "--json"]);
    assert_eq!(status, Some(0));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let instructions = document["kernels"][0]["instructions"].as_array().unwrap();
    assert_eq!((instructions.len(), &instructions[1]["opcode"]), (5, &serde_json::json!("shl")));
    let (status, _, error) = eu(&["disasm", &file, "--kernel", "missing"]);
    assert_eq!((status, error.as_str()), (Some(1), "error: no kernel or function missing: the file has k\n"));
}

#[test]
fn run_writes_the_buffers_and_reports_what_was_executed() {
    let directory = Directory::new("run");
    let file = directory.file("k.bin", &kernel(IDS));
    let output = directory.path("a.bin");
    let base = ["run", &file, "--global", "16", "--local", "16", "--local-ids", "hardware", "--arg", "a=zeros:64"];
    let (status, _, error) = eu(&[&base[..], &["--save", &format!("a={output}")]].concat());
    assert_eq!(status, Some(0), "{error}");
    assert!(error.starts_with("k: 1 groups of 1 threads, SIMD16: 5 instructions in "), "{error}");
    assert_eq!(common::dwords(&std::fs::read(output).unwrap()), (0..16).collect::<Vec<u32>>());
    let (status, text, _) = eu(&[&base[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["instructions"]), (Some(0), &serde_json::json!(5)));
    let (status, _, error) = eu(&["run", &file, "--global", "16"]);
    assert_eq!(status, Some(1));
    assert!(error.starts_with("error: no value for a (int*): add `--arg NAME=VALUE` for each"), "{error}");
}

/// A fault and an endless kernel name kernel, instruction, group, thread and lane.
#[test]
fn run_reports_faults_and_hangs_with_their_place() {
    let directory = Directory::new("faults");
    let run = |body: &str| {
        let file = directory.file("k.bin", &kernel(body));
        let (status, _, error) =
            eu(&["run", &file, "--global", "16", "--local", "16", "--arg", "a=zeros:32", "--limit", "1000"]);
        (status, error)
    };
    let (status, error) = run(IDS);
    assert_eq!(status, Some(3));
    assert!(error.contains("error: the address is outside all buffers\n  kernel k, instruction at 0x30, group 0,0,0, thread 0, lane 8\n  send.ugm (16|M0)"), "{error}");
    let (status, error) = run("L0:\n(W) jmpi L0\n");
    assert_eq!(status, Some(3));
    assert!(error.contains("does not end within 1000 instructions: set a higher --limit"), "{error}");
}

/// Before the launch a wrong `--save` is an error; after it, the document has the reason without a prefix.
#[test]
fn run_reports_wrong_saves_and_failures_as_json() {
    let directory = Directory::new("failures");
    let file = directory.file("k.bin", &kernel(IDS));
    let run = |buffer: &str, more: &[&str]| {
        let base = ["run", &file, "--global", "16", "--local", "16", "--local-ids", "hardware", "--arg", buffer];
        eu(&[&base[..], more].concat())
    };
    let (status, _, error) = run("a=zeros:64", &["--save", "a"]);
    assert_eq!((status, error.as_str()), (Some(1), "error: --save a: expected NAME=FILE\n"));
    let (status, _, error) = run("a=zeros:64", &["--save", "b=file"]);
    assert_eq!((status, error.as_str()), (Some(1), "error: no buffer or image `b`: the kernel has a\n"));
    let (status, text, error) = run("a=zeros:32", &["--json"]);
    assert_eq!((status, error.as_str()), (Some(3), ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["status"], "failed");
    let reason = document["error"].as_str().unwrap();
    assert!(reason.starts_with("the address is outside all buffers\n  kernel k, instruction at 0x30"), "{reason}");
}

/// A recorded file of Intel's compiler, and the same file for another family of cores.
fn recorded() -> (Vec<u8>, Vec<u8>) {
    let file = include_bytes!("data/golden.zebin").to_vec();
    let mut other = file.clone();
    // Product and family of cores, those of Ponte Vecchio.
    for (note, number) in [(b"IntelGT\0\xf6\x04", 0xf7), (b"IntelGT\0\x07\x0c", 8)] {
        let at = file.windows(note.len()).position(|bytes| bytes == note).unwrap();
        other[at + 8] = number;
    }
    (file, other)
}

#[test]
fn info_lists_kernels_with_their_arguments() {
    let directory = Directory::new("info");
    let (recorded, other) = recorded();
    let file = directory.file("recorded.bin", &recorded);
    let (status, text, error) = eu(&["info", &file]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    assert!(text.starts_with("for DG2 (12.55.8)\n\n"), "{text}");
    assert!(text.contains("\ndivide: SIMD") && text.contains(": global "), "{text}");
    let (status, text, _) = eu(&["info", &file, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["target"]["supported"]), (Some(0), &serde_json::json!(true)));
    assert_eq!(document["kernels"][0]["arguments"][0]["space"], "global");
    let file = directory.file("other.bin", &other);
    let (status, text, _) = eu(&["info", &file]);
    assert_eq!(status, Some(0));
    assert!(text.starts_with("for Ponte Vecchio (12.55.8), which cannot be run\n"), "{text}");
}

#[test]
fn files_for_other_devices_are_refused_and_archives_chosen_from() {
    let directory = Directory::new("targets");
    let (recorded, other) = recorded();
    let archive = |members: &[&[u8]]| {
        let mut file = b"!<arch>\n".to_vec();
        for member in members {
            file.extend(format!("{:<48}{:<10}`\n", "name/", member.len()).into_bytes());
            file.extend(*member);
            file.resize(file.len().next_multiple_of(2), b'\n');
        }
        file
    };
    let run = |bytes: &[u8]| {
        let file = directory.file("k.bin", bytes);
        let [run, disasm] = [&["run", &file, "--global", "16", "--kernel", "divide"][..], &["disasm", &file]].map(eu);
        (run.2, disasm.0, disasm.2)
    };
    let refused = "the file is for Ponte Vecchio (12.55.8), which has other execution units than Xe-HPG";
    for bytes in [other.clone(), archive(&[&other])] {
        let (error, status, disasm) = run(&bytes);
        assert!(error.contains(refused), "{error}");
        assert!(status == Some(1) && disasm.contains(refused), "{disasm}");
    }
    for bytes in [recorded.clone(), archive(&[b"pad", &other, &recorded])] {
        let (error, status, _) = run(&bytes);
        assert!(error.starts_with("error: no value for ") && error.contains("(uint*), "), "{error}");
        assert_eq!(status, Some(0));
    }
    assert!(run(&archive(&[b"pad"])).0.contains("this is no zebin"));
}

/// Stores the addresses of `a`, which is in the inline data, and of `b`, behind it, to `a`.
const POINTERS: &str = "
(W)     mov (2|M0) r10.0<1>:ud r4.6<2;2,1>:ud
(W)     and (1|M0) r12.0<1>:ud r0.0<0;1,0>:ud 0xFFFFFFE0:ud
(W)     send.ugm (1|M0) r14 r12 null:0 0x0 0x02109500
(W)     mov (2|M0) r10.2<1>:ud r14.0<2;2,1>:ud
(W)     mov (1|M0) r12.0<1>:ud r4.6<0;1,0>:ud
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x0200B504
";

#[test]
fn pointers_are_null_shared_or_in_other_buffers() {
    let directory = Directory::new("pointers");
    let code = common::code(&format!("{POINTERS}{END}"));
    let zebin = common::zebin(&[("k", code)], &common::info(16, &["a", "b"], ""));
    let file = directory.file("k.bin", &zebin);
    let output = directory.path("a.bin");
    let run = |more: &[&str]| {
        let base = ["run", &file, "--global", "16", "--local", "16", "--local-ids", "hardware", "--arg", "a=zeros:64"];
        let (status, _, error) = eu(&[&base[..], &["--save", &format!("a={output}")], more].concat());
        (status, error, std::fs::read(&output).map(|bytes| common::dwords(&bytes)).unwrap_or_default())
    };
    let (status, error, dwords) = run(&["--arg", "b=null"]);
    assert_eq!(status, Some(0), "{error}");
    assert!(dwords[0] != 0);
    assert_eq!(dwords[2..4], [0, 0]);
    let a = dwords[0];
    let (status, error, dwords) = run(&["--arg", "b=same:a"]);
    assert_eq!((status, &dwords[..4]), (Some(0), &[a, 0, a, 0][..]), "{error}");
    let (status, error, dwords) = run(&["--arg", "b=zeros:16", "--pointer", "a+32=b+8", "--pointer", "a+56=a"]);
    assert_eq!(status, Some(0), "{error}");
    assert_eq!((dwords[8], dwords[14]), (dwords[2] + 8, a));
    // The buffer has both names.
    let other = directory.path("b.bin");
    let (status, error, dwords) = run(&["--arg", "b=same:a", "--save", &format!("b={other}"), "--pointer", "b+32=b+8"]);
    assert_eq!((status, dwords[8]), (Some(0), a + 8), "{error}");
    assert_eq!(common::dwords(&std::fs::read(other).unwrap()), dwords);
    for (more, reason) in [
        (&["--arg", "b=same:b"][..], "the buffer of b, which has none of its own"),
        (&["--arg", "b=same:c"], "the buffer of c, which has none of its own"),
        (&["--arg", "b=null", "--pointer", "a+60=a"], "--pointer a+60=a: a has 64 bytes"),
        (&["--arg", "b=null", "--pointer", "b=a"], "--pointer b=a: no buffer `b`"),
        (&["--arg", "b=null", "--pointer", "a"], "--pointer a: expected NAME+OFFSET=OTHER+OFFSET"),
        (&[], "no value for b (int*)"),
        // Before its value is read.
        (&["--arg", "c=4"], "the kernel has no argument c: it has a, b"),
    ] {
        let (status, error, _) = run(more);
        assert!(status == Some(1) && error.contains(reason), "{error}");
    }
}

/// Adds 1 to the first dword of `a`, and waits until it is 8.
const MEET: &str = "
(W)     mov (1|M0) r10.0<1>:ud 0x1:ud
(W)     mov (1|M0) r12.0<1>:ud r4.6<0;1,0>:ud
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x0200050C
LOOP:
(W)     send.ugm (1|M0) r14 r12 null:0 0x0 0x02100500
(W)     cmp (1|M0) (lt)f0.0 null<1>:ud r14.0<0;1,0>:ud 0x8:ud
(W&f0.0) jmpi LOOP
";

/// Groups that wait for one another need a place each.
#[test]
fn groups_that_wait_for_one_another_are_resident_together() {
    let directory = Directory::new("resident");
    let file = directory.file("k.bin", &kernel(MEET));
    let run = |groups: u32, more: &[&str]| {
        let global = (groups * 16).to_string();
        let base =
            ["run", &file, "--global", &global, "--local", "16", "--local-ids", "hardware", "--arg", "a=zeros:64"];
        let (status, _, error) = eu(&[&base[..], more].concat());
        (status, error)
    };
    for workers in ["1", "3", "0"] {
        let (status, error) = run(8, &["--workers", workers, "--limit", "100000000"]);
        assert_eq!(status, Some(0), "{error}");
    }
    let (status, error) = run(8, &["--resident", "7", "--limit", "1000000"]);
    assert_eq!(status, Some(3));
    assert!(error.contains("7 groups are resident at once") && error.contains("and 1 wait for one of them"), "{error}");
    assert!(error.contains("\n  group 0,0,0: thread 0 runs\n") && error.contains("\n  and 3 other groups"), "{error}");
    // No other group can help.
    let (status, error) = run(7, &["--limit", "1000000"]);
    assert!(status == Some(3) && !error.contains("resident"), "{error}");
    let (status, error) = run(7, &["--limit-all", "1000000"]);
    assert!(status == Some(3) && error.contains("the run does not end within 1000000 instructions"), "{error}");
}

/// Threads with an odd number end; the others arrive at a barrier of two threads, of which group 1 has one, and wait.
const BARRIER: &str = "
(W)     and (1|M0) (ne)f0.0 null<1>:ud r0.2<0;1,0>:ud 0x1:ud
(W&f0.0) jmpi END
(W)     mov (8|M0) r10.0<1>:ud 0x0:ud
(W)     mov (1|M0) r10.2<1>:ud 0x3030000:ud
(W)     send.gtwy (1|M0) null r10 null:0 0x0 0x02000004
(W)     sync.bar null
END:
";

#[test]
fn a_barrier_that_is_never_complete_is_reported_with_the_threads() {
    let directory = Directory::new("barrier");
    let code = common::code(&format!("{BARRIER}{END}"));
    let info = common::info(16, &["a"], "    barrier_count: 1\n");
    let file = directory.file("k.bin", &common::zebin(&[("k", code)], &info));
    let base = ["run", &file, "--global", "64", "--local", "64", "--local-ids", "hardware", "--arg", "a=zeros:64"];
    let (status, _, error) = eu(&base);
    assert_eq!(status, Some(3), "{error}");
    assert!(error.contains("threads of a group wait for a barrier that will never complete"), "{error}");
    assert!(error.contains("\n  group 0,0,0: threads 0, 2 wait at the barrier; threads 1, 3 have ended\n"), "{error}");
}

#[test]
fn trace_counts_instructions_and_shows_registers() {
    let directory = Directory::new("trace");
    let file = directory.file("k.bin", &kernel(IDS));
    let base = ["trace", &file, "--global", "32", "--local", "16", "--local-ids", "hardware", "--arg", "a=zeros:64"];
    let (status, text, error) = eu(&base);
    assert_eq!(status, Some(0), "{error}");
    assert!(text.contains("           4  send\n") && text.contains("          10  in all\n"), "{text}");
    let (status, text, _) = eu(&[&base[..], &["--break", "0x10", "--group", "1,0,0", "--registers", "10"]].concat());
    assert_eq!(status, Some(0));
    assert!(text.starts_with("shl (16|M0)"), "{text}");
    assert!(text.contains("r10   00000000 00000001 00000002 00000003"), "{text}");
}

/// A captured walker is run as a zebin is, without options that it has itself.
#[test]
fn captured_walkers_are_run_traced_and_listed() {
    let directory = Directory::new("captured");
    let capture = |left: &[u32]| common::capture(&common::code(&format!("{IDS}{END}")), 2, left).to_bytes();
    let all: Vec<u32> = (0..16).collect();
    let file = directory.file("w.eu", &capture(&all));
    let (status, text, error) = eu(&["run", &file]);
    assert_eq!((status, text.as_str()), (Some(0), ""), "{error}");
    let mut lines = error.lines();
    let first = "walker 12 of vf2, ccs0, kernel at 0x800000010000: 2 groups of 1 threads, SIMD16: 10 instructions in ";
    assert!(lines.next().unwrap().starts_with(first), "{error}");
    assert_eq!(lines.next(), Some("memory is as the card left it: 2 pages, 1 written"));
    let other = directory.file("other.eu", &capture(&[&all[..15], &[0x55]].concat()));
    let (status, _, error) = eu(&["run", &other]);
    assert_eq!(status, Some(5));
    let difference = "error: 1 bytes differ from what the card left. The first is at 0x2003c: 0x55 on the card, 0x0f here, 0x00 before";
    assert!(error.lines().nth(1).unwrap().starts_with(difference), "{error}");
    let (status, text, _) = eu(&["run", &other, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["first_difference"]["address"]), (Some(5), &serde_json::json!(0x2003c)));

    for option in [&["--global", "16"][..], &["--arg", "a=1"], &["--kernel", "k"], &["--workers", "2"]] {
        let (status, _, error) = eu(&[&["run", &file], option].concat());
        assert_eq!((status, error.lines().count()), (Some(1), 1), "{error}");
        assert!(error.starts_with(&format!("error: {} is for zebins", option[0])), "{error}");
    }
    assert_eq!(eu(&["run", &file, "--save", "a=b"]).0, Some(1));
    let cut = directory.file("cut.eu", &capture(&all)[..2000]);
    let (status, _, error) = eu(&["run", &cut]);
    assert_eq!((status, error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("it was not written to its end"), "{error}");

    let (status, text, error) = eu(&["trace", &file]);
    assert_eq!(status, Some(0), "{error}");
    assert!(text.contains("          10  in all\n") && text.contains("           2  0x800000010000  "), "{text}");
    let (_, text, _) = eu(&["trace", &file, "--group", "1,0,0", "--thread", "0"]);
    assert!(text.contains("           5  in all\n"), "one thread: {text}");
    let (status, text, error) =
        eu(&["trace", &file, "--break", "0x800000010010", "--group", "1,0,0", "--registers", "10"]);
    assert_eq!(status, Some(0), "{error}");
    assert!(text.starts_with("shl (16|M0)") && text.contains("r10   00000000 00000001 00000002"), "{text}");
    for more in [["--group", "7,0,0"], ["--break", "0x40"], ["--break", "0x800000010008"]] {
        let (status, _, error) = eu(&[&["trace", &file], &more[..]].concat());
        assert_eq!((status, error.lines().count()), (Some(1), 1), "{more:?}: {error}");
    }

    let (status, text, _) = eu(&["info", &file]);
    assert_eq!(status, Some(0));
    assert!(text.starts_with("walker 12 of vf2, ccs0: ended\nkernel at 0x800000010000: SIMD16"), "{text}");
    assert!(text.contains("2 pages of memory, 1 changed\n") && text.contains("\n  69040302\n"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&eu(&["info", &file, "--json"]).1).unwrap();
    assert_eq!(document["pages"][0]["changed"], true);
}

/// A zebin needs its range: an error in the command line.
#[test]
fn a_zebin_without_a_range_is_refused() {
    let directory = Directory::new("range");
    let file = directory.file("k.bin", &kernel(IDS));
    let (status, _, error) = eu(&["run", &file, "--arg", "a=zeros:64"]);
    assert_eq!(status, Some(2));
    assert!(error.starts_with("error: a zebin needs --global"), "{error}");
}

#[test]
fn isa_prints_the_table_and_one_instruction() {
    let (status, text, _) = eu(&["isa"]);
    assert_eq!(status, Some(0));
    assert_eq!(text.lines().count(), arctic_eu::isa::table::TABLE.len());
    let (status, text, _) = eu(&["isa", "mad"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("ISA-112") && text.contains("f <- f"), "{text}");
    assert_eq!(eu(&["isa", "0x5b"]).1, text);
    assert_eq!(eu(&["isa", "nothing"]).0, Some(1));
}
