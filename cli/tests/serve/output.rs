// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Output of commands to closed pipes and full disks, and file size limits of the process.

use std::fs::File;
use std::io::{PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Instant;

use arctic_test_support::client::{CONFIG, DATA, Raw, Transport};
use arctic_test_support::mi::{self, Global};
use arctic_test_support::served::ChildProcess;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Resource, Rlimit, setrlimit};
use vmm_sys_util::tempdir::TempDir;

use crate::{CONTROL, NUM_VFS, VF_ENABLE_AND_MSE, arctic, config_u16, connect, serve};

/// The write end of a pipe without a read end.
fn closed() -> PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

/// A file that cannot grow, as on a full disk.
fn full() -> File {
    let file = File::from(memfd_create("full", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    file
}

/// A closed pipe as stdout is not an error; a full disk is an error.
#[test]
fn closed_stdout_is_no_error_and_full_disk_is_one() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let (path, out) = (dir.as_path().to_str().unwrap(), dir.as_path().join("firmware"));
    let batch = dir.as_path().join("batch");
    File::create(&batch).unwrap().write_all(&[1; 1 << 16]).unwrap();
    let batch = batch.to_str().unwrap();
    for arguments in [
        &["help"][..],
        &["help", "serve"],
        &["--version"],
        &["fidelity"],
        &["fidelity", "--json"],
        &["fidelity", "--markdown"],
        &["fidelity", "--status", "unassessed"],
        &["fidelity", "--item", "V8-153"],
        &["firmware", "--out", out.to_str().unwrap()],
        &["status", path],
        &["status", path, "--json"],
        &["decode", batch],
        &["decode", batch, "--json"],
        &["completions", "bash"],
        &["man"],
        &["serve", "--print-capabilities"],
        &["serve", "--print-card", "ivb"],
    ] {
        let output = arctic(arguments).stdout(closed()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.as_str()), (Some(0), ""), "{arguments:?}");
        let output = arctic(arguments).stdout(full()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{arguments:?}: {text}");
        assert!(text.contains("the output cannot be written: Operation not permitted"), "{arguments:?}: {text}");
        // If the error message cannot be written, the exit status still reports the failure.
        let status = arctic(arguments).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}");
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// `arctic trace` exits when its stdout is closed or full.
#[test]
fn trace_exits_when_stdout_is_closed_or_full() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    let path = dir.as_path().to_str().unwrap();
    let error = "arctic: the output cannot be written: Operation not permitted";
    for (stdout, code, error) in [(Stdio::from(closed()), 0, ""), (Stdio::from(full()), 1, error)] {
        let mut child = ChildProcess::spawn(arctic(&["trace", path]).stdout(stdout).stderr(Stdio::piped()));
        // Resets and context loads generate trace events until the command writes: the command then notices.
        let mut pf = Raw::connect(&dir.as_path().join("pf.sock"));
        crate::eventually("the exit of arctic trace", || {
            pf.reset_engine();
            pf.run(&mi::store_data_imm(Global(DATA), 7), &[]);
            child.try_wait().unwrap().is_some()
        });
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{text}");
        // The number of events is printed in either case.
        let (count, rest) = text.split_once('\n').unwrap();
        assert!(count.contains(" events, ") && count.ends_with(" missing"), "{text}");
        assert!(rest.starts_with(error) && rest.lines().count() == usize::from(!error.is_empty()), "{text}");
        drop(pf);
        crate::eventually("no client left", || crate::status(dir.as_path())["functions"][0]["connected"] == false);
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// A file size limit below the card's memory size is reported as an error.
#[test]
fn a_file_size_limit_is_reported() {
    let dir = TempDir::new().unwrap();
    let mut command = arctic(&["serve", "--card", "small", "--dir", dir.as_path().to_str().unwrap()]);
    let limit = || Ok(setrlimit(Resource::Fsize, Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) })?);
    // SAFETY: setrlimit is async-signal-safe, and nothing else is called between fork and exec.
    unsafe { command.pre_exec(limit) };
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    assert!(text.contains("the limit of file sizes is 1048576 bytes"), "{text}");
}

/// SIGXFSZ, which a write beyond the file size limit raises (also for a client's file), does not terminate the program.
#[test]
fn sigxfsz_does_not_end_the_server() {
    let dir = TempDir::new().unwrap();
    let mut served = serve("small", dir.as_path(), &[]);
    served.process.signal(libc::SIGXFSZ);
    crate::status(dir.as_path());
    assert_eq!(served.process.try_wait().unwrap(), None, "the server has exited");
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}

/// `MOST_LINES` of `src/line_limit.rs`.
const LINES_PER_SECOND: u64 = 4;

/// Reverted writes of NumVFs are logged, at most [`LINES_PER_SECOND`] lines per second.
#[test]
fn reverted_configuration_writes_are_logged_up_to_a_limit() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &["--vfs", "2"]);
    let mut pf = connect(dir.as_path(), "pf").unwrap();
    pf.region_write(CONFIG, NUM_VFS, &[2, 0]).unwrap();
    pf.region_write(CONFIG, CONTROL, &VF_ENABLE_AND_MSE).unwrap();
    let started = Instant::now();
    for _ in 0..500 {
        pf.region_write(CONFIG, NUM_VFS, &[1, 0]).unwrap();
    }
    assert_eq!(config_u16(&mut pf, NUM_VFS), 2);
    let seconds = started.elapsed().as_secs();
    let (code, text) = served.end(libc::SIGTERM);
    assert_eq!(code, Some(0), "{text}");
    let lines = text
        .lines()
        .filter(|line| line.contains("pf: NumVFs at 0x330 keeps 0x2: the guest's write of 0x1 is reverted"));
    let lines = lines.count() as u64;
    let limits = LINES_PER_SECOND..=LINES_PER_SECOND * (seconds + 1);
    assert!(limits.contains(&lines), "{lines} lines in {seconds} s");
}
