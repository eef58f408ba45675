// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic afuc` and `arctic eu`, with scripts in place of the programs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Exits with 4 after it printed its arguments, or is killed by SIGTERM if there is none.
const SCRIPT: &str = "#!/bin/sh\n[ $# = 0 ] && kill -TERM $$\nprintf '%s\\n' \"$@\"\nexit 4\n";

fn succeeds(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// A directory with a copy of `arctic`.
fn copy() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    // By another process: exec fails with ETXTBSY while a concurrent fork has a descriptor that is open for writing.
    succeeds(Command::new("cp").arg(env!("CARGO_BIN_EXE_arctic")).arg(directory.path().join("arctic")));
    directory
}

/// Writes the script to `directory` as the program `name`.
fn install(directory: &Path, name: &str) {
    let source = directory.join("script");
    fs::write(&source, SCRIPT).unwrap();
    succeeds(Command::new("install").args(["-D", "-m", "755"]).arg(source).arg(directory.join(name)));
}

fn arctic(directory: &Path, arguments: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", directory.join("path").display());
    Command::new(directory.join("arctic")).args(arguments).env("PATH", path).output().unwrap()
}

#[test]
fn program_beside_arctic_gets_all_arguments_and_gives_its_status() {
    let directory = copy();
    for name in ["afuc", "eu"] {
        install(directory.path(), name);
        for arguments in [&["run", "a b", "--help"][..], &["--help"], &["--version"], &["-h", "--", "x"]] {
            let output = arctic(directory.path(), &[&[name], arguments].concat());
            let printed: String = arguments.iter().map(|argument| format!("{argument}\n")).collect();
            assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap()), (Some(4), printed));
        }
        assert_eq!(arctic(directory.path(), &[name]).status.signal(), Some(15));
    }
}

#[test]
fn program_in_path_is_executed_if_none_is_beside_arctic() {
    let directory = copy();
    for name in ["afuc", "eu"] {
        let output = arctic(directory.path(), &[name, "run"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(error.starts_with(&format!("arctic: cannot find {name} in ")), "{error}");
        install(directory.path(), &format!("path/{name}"));
        let output = arctic(directory.path(), &[name, "run"]);
        assert_eq!((output.status.code(), output.stdout), (Some(4), b"run\n".to_vec()));
    }
}
