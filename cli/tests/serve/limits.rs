// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits of the environment that end `arctic serve` at its start, each with its remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use vmm_sys_util::tempdir::TempDir;

/// Runs a shell script with the program as $1 and a directory as $2; returns status and stderr.
fn script(text: &str) -> (Option<i32>, String) {
    let dir = TempDir::new().unwrap();
    // Another user can execute the program and create the directory.
    fs::set_permissions(dir.as_path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let program = dir.as_path().join("arctic");
    fs::copy(env!("CARGO_BIN_EXE_arctic"), &program).unwrap();
    let mut command = Command::new("timeout");
    command.args(["20", "bash", "-c", text, "bash"]).arg(&program).arg(dir.as_path().join("card"));
    let output = command.stdin(Stdio::null()).env_remove("RUST_LOG").output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn limit_of_open_files_is_named() {
    for files in [12, 24] {
        let (status, text) = script(&format!("ulimit -n {files}; exec \"$1\" serve --card small --vfs 7 --dir \"$2\""));
        let last = text.lines().last().unwrap_or_default();
        assert_eq!(status, Some(1), "{files}: {text}");
        assert!(last.contains("raise the limit of open files (ulimit -n"), "{files}: {text}");
        assert!(!last.contains("another --dir"), "{files}: {text}");
    }
}

/// root has no limit of processes, so the program is run as another user.
#[test]
fn limit_of_processes_is_named() {
    let user =
        if rustix::process::geteuid().is_root() { "setpriv --reuid=61234 --regid=61234 --clear-groups" } else { "" };
    if !user.is_empty() && Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!("skipped: there is no setpriv");
        return;
    }
    let (status, text) =
        script(&format!("ulimit -u 20; exec {user} \"$1\" serve --card flex170-63vf --vfs 63 --dir \"$2\""));
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(status, Some(1), "{text}");
    assert!(last.contains("thread") && last.contains("raise the limit of processes and threads"), "{text}");
    assert!(!last.contains("--dir"), "{text}");
}

#[test]
fn unusable_directory_is_reported_with_the_option() {
    let (status, text) = script("exec \"$1\" serve --card small --dir /proc/sys/card");
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("directory /proc/sys/card cannot be used") && text.contains("choose another --dir"),
        "{text}"
    );
}
