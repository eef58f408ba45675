// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Files that `afuc` writes: links, devices, permissions, failures, and `-` for standard input and output.

#[path = "common/program.rs"]
mod program;

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use program::{Directory, afuc};
use rustix::fs::{CWD, Mode, mkfifoat};

const SOURCE: &str = "[016ee001]\nnop\n";
const WITH_TABLE: &str = "[016ee001]\n[#jumptbl]\nnop\njumptbl:\n.jumptbl\n";
/// The image of [`SOURCE`], with the leading zero word.
const IMAGE: [u32; 3] = [0, 0x016e_e001, 0x0100_0000];

fn image() -> Vec<u8> {
    IMAGE.map(u32::to_le_bytes).concat()
}

/// Names of the files in a directory, sorted.
fn names(directory: &Directory) -> Vec<String> {
    let entries = fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn asm_writes_through_links_and_to_pipes() {
    let directory = Directory::new("output-links");
    let source = directory.file("a.asm", SOURCE);
    let target = directory.file("target.fw", "old");
    let link = directory.0.join("link.fw");
    symlink(&target, &link).unwrap();
    assert_eq!(afuc(&["asm", &source, "-o", link.to_str().unwrap()]).0, Some(0));
    assert!(link.is_symlink() && fs::read(&target).unwrap() == image());
    let pipe = directory.0.join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    assert_eq!(afuc(&["asm", &source, "-o", pipe.to_str().unwrap()]).0, Some(0));
    assert_eq!(reader.join().unwrap(), image());
    assert_eq!(names(&directory), ["a.asm", "link.fw", "pipe", "target.fw"]);
}

#[test]
fn asm_creates_the_missing_target_of_links() {
    let directory = Directory::new("output-dangling");
    let source = directory.file("a.asm", SOURCE);
    fs::create_dir(directory.0.join("sub")).unwrap();
    let link = directory.0.join("link.fw");
    symlink("sub/next.fw", &link).unwrap();
    symlink("target.fw", directory.0.join("sub/next.fw")).unwrap();
    assert_eq!(afuc(&["asm", &source, "-o", link.to_str().unwrap()]).0, Some(0));
    assert!(link.is_symlink() && directory.0.join("sub/next.fw").is_symlink());
    assert_eq!(fs::read(directory.0.join("sub/target.fw")).unwrap(), image());
    let circle = directory.0.join("circle.fw");
    symlink("circle.fw", &circle).unwrap();
    let (code, _, error) = afuc(&["asm", &source, "-o", circle.to_str().unwrap()]);
    assert_eq!((code, error.contains("cannot write")), (Some(1), true), "{error}");
    assert!(circle.is_symlink());
}

#[test]
fn asm_keeps_the_permissions_of_the_file_that_it_replaces() {
    let directory = Directory::new("output-mode");
    let source = directory.file("a.asm", SOURCE);
    for mode in [0o600, 0o664, 0o755] {
        let target = directory.file("target.fw", "old");
        fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
        assert_eq!(afuc(&["asm", &source, "-o", &target]).0, Some(0));
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, mode);
        assert_eq!(fs::read(&target).unwrap(), image());
    }
    let target = directory.file("target.fw", "old");
    fs::set_permissions(&target, Permissions::from_mode(0o444)).unwrap();
    let (code, _, error) = afuc(&["asm", &source, "-o", &target]);
    assert_eq!((code, error.ends_with("target.fw: the file is read-only\n")), (Some(1), true), "{error}");
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(names(&directory), ["a.asm", "target.fw"]);
}

/// The temporary file has the process id in its name, so a link can be placed where it will be.
#[test]
fn asm_does_not_follow_a_link_in_place_of_its_temporary_file() {
    let directory = Directory::new("output-temporary");
    let source = directory.file("a.asm", SOURCE);
    let victim = directory.file("victim", "old");
    let target = directory.file("target.fw", "old");
    let script = "ln -s \"$1\" \"$2.tmp$$\" && exec \"$3\" asm \"$4\" -o \"$2\"";
    let arguments = [script, "sh", &victim, &target, env!("CARGO_BIN_EXE_afuc"), &source];
    let output = Command::new("sh").arg("-c").args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((fs::read(&victim).unwrap(), fs::read(&target).unwrap()), (b"old".to_vec(), b"old".to_vec()));
    assert!(names(&directory).iter().any(|name| name.starts_with("target.fw.tmp")), "the link is not removed");
}

#[test]
fn dash_is_standard_input_and_output() {
    let run = |arguments: &[&str], input: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afuc"));
        let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(run(&["asm", "-", "-o", "-"], SOURCE.as_bytes()).stdout, image());
    let text = run(&["disasm", "-"], &image()).stdout;
    assert_eq!(run(&["asm", "-", "-o", "-"], &text).stdout, image());
    // The report of `patch` is not mixed with the file.
    let directory = Directory::new("output-dash");
    let base = run(&["asm", "-", "-o", "-"], WITH_TABLE.as_bytes()).stdout;
    let change = directory.file("change.asm", "UNKN125:\nwaitin\nmov $01, $data\n");
    let output = run(&["patch", "-", &change, "-o", "-"], &base);
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(report.contains("packet table, UNKN125: ") && output.stdout.len() == base.len() + 8, "{report}");
}

/// Only commands that write a file report that it was not written.
#[test]
fn errors_of_a_source_are_reported_with_what_was_not_written() {
    let directory = Directory::new("output-errors");
    let source = directory.file("a.asm", "[016ee001]\nmov $02, 0x12345\n");
    let trace = directory.trace(&[&[]]);
    let (code, _, error) = afuc(&["run", "--firmware", &source, "--rd", &trace]);
    assert_eq!(code, Some(1));
    assert!(error.ends_with(&format!("\n\nafuc: 1 error in {source}\n")), "{error}");
    let target = directory.0.join("a.fw");
    let target = target.to_str().unwrap();
    let (code, _, error) = afuc(&["asm", &source, "-o", target]);
    assert_eq!(code, Some(1));
    assert!(error.ends_with(&format!("afuc: 1 error in {source}\nafuc: {target} was not written\n")), "{error}");
    let base = directory.file("base.asm", WITH_TABLE);
    let output = directory.0.join("base.fw");
    let change = directory.file("change.asm", "UNKN125:\nmov $02, 0x12345\n");
    assert_eq!(afuc(&["asm", &base, "-o", output.to_str().unwrap()]).0, Some(0));
    let (code, _, error) = afuc(&["patch", output.to_str().unwrap(), &change, "-o", target]);
    assert_eq!(code, Some(1));
    assert!(error.ends_with(&format!("afuc: 1 error in {change}\nafuc: {target} was not written\n")), "{error}");
    assert!(!directory.0.join("a.fw").exists());
}
