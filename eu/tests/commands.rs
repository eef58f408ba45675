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
    assert_eq!((status, error.as_str()), (Some(1), "error: the argument a has no value: add `--arg a=…`\n"));
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
