// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Paths that are not UTF-8, in each option, argument and environment variable of each command.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use arctic_test_support::poll::eventually;
use arctic_test_support::served::{ChildProcess, Served};
use serde_json::Value;
use vmm_sys_util::tempdir::TempDir;

/// Neither UTF-8 nor free of characters that QEMU's options or shells treat specially.
const BAD: &[u8] = b"bad\xff, '";

fn bad() -> &'static OsStr {
    OsStr::from_bytes(BAD)
}

/// The program in the directory `cwd`, without programs to download or unpack packages, with an empty cache.
fn arctic(cwd: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arctic"));
    command.current_dir(cwd).env_clear().env("ARCTIC_CACHE", cwd.join("cache")).env("PATH", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit status, stdout and stderr. A card that is served, as its first line on stdout shows, is ended by SIGTERM.
fn result(mut command: Command) -> (i32, Vec<u8>, Vec<u8>) {
    let mut child = ChildProcess::spawn(&mut command);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    stdout.read_until(b'\n', &mut output).unwrap();
    if command.get_args().next().is_some_and(|name| name == "serve") && !output.is_empty() {
        child.signal(libc::SIGTERM);
    }
    stdout.read_to_end(&mut output).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut errors).unwrap();
    (child.wait().unwrap().code().unwrap_or(-1), output, errors)
}

/// Asserts that the command ends without a panic, with status 0, 1 or 2, and prints one document with --json.
fn check(command: Command) -> i32 {
    let what = format!("{command:?}");
    let json = command.get_args().any(|argument| argument == "--json");
    let (status, output, errors) = result(command);
    let errors = String::from_utf8_lossy(&errors);
    assert!(!errors.contains("panicked") && (0..=2).contains(&status), "{what}: {status}: {errors}");
    assert!(status == 0 || !errors.trim().is_empty(), "{what}: {status} without a message");
    if status == 1 {
        assert!(errors.lines().last().is_some_and(|line| line.starts_with("arctic: ")), "{what}: {errors}");
    }
    if json && status == 0 && !what.contains("decode") {
        serde_json::from_slice::<Value>(&output).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    status
}

/// The options with a value and the positional arguments in the help of `command`, as `(--option, NAME)` and
/// `("", NAME)`.
fn arguments(cwd: &Path, command: &str) -> Vec<(String, String)> {
    let mut help = arctic(cwd);
    help.args(["help", command]);
    let text = String::from_utf8(result(help).1).unwrap();
    let named = |line: &str| {
        let (option, name) = line.trim().split_once(['<', '['])?;
        let option = option.trim_end();
        let (name, _) = name.split_once(['>', ']'])?;
        let fits = option.is_empty() || option.starts_with("--") && !option.contains(' ');
        (fits && name.chars().all(|c| c.is_ascii_uppercase() || "|:.-".contains(c)))
            .then(|| (option.into(), name.into()))
    };
    text.lines().filter_map(named).collect()
}

/// Arguments with which `command` reads the value of `option`.
fn needed(command: &str, option: &str) -> &'static [&'static str] {
    match (command, option) {
        ("boot" | "igt", "--kernel") => &["--modules", "."],
        ("boot" | "igt", "--modules") => &["--kernel", "list"],
        ("serve", "--dir") => &["--card", "small"],
        ("serve", "--card") => &["--dir", "run"],
        ("serve", _) => &["--dir", "run", "--card", "small"],
        ("trace" | "status", "--save" | "--json" | "--engine" | "--function") => &["run"],
        ("trace", "--perfetto") => &["run"],
        ("trace", "--guest-clock") => &["run", "--perfetto", "timeline"],
        ("decode", "--guest-clock") => &["list", "--perfetto", "timeline"],
        ("decode", "--ftrace") => &["list", "--perfetto", "timeline", "--guest-clock", "clock"],
        ("decode", option) if !option.is_empty() => &["list"],
        _ => &[],
    }
}

#[test]
fn a_path_that_is_not_utf8_causes_no_panic_in_any_option() {
    let dir = TempDir::new().unwrap();
    let mut checked = 0;
    for (command, json) in [
        ("boot", true),
        ("igt", true),
        ("serve", true),
        ("status", true),
        ("trace", true),
        ("inject", true),
        ("decode", true),
        ("firmware", false),
        ("fidelity", true),
        ("completions", false),
        ("man", false),
    ] {
        let arguments = arguments(dir.as_path(), command);
        let takes_paths = |name: &str| ["FILE", "DIR", "SOCKET", "PLAN"].iter().any(|path| name.contains(path));
        let has_paths = arguments.iter().any(|(_, name)| takes_paths(name));
        assert!(has_paths || ["fidelity", "completions"].contains(&command), "{command}: {arguments:?}");
        for (option, name) in &arguments {
            // Missing, a file, a directory.
            for state in 0..if takes_paths(name) { 3 } else { 1 } {
                let cwd = TempDir::new().unwrap();
                fs::write(cwd.as_path().join("list"), "xe_query@query-engines\n").unwrap();
                match state {
                    0 => {}
                    1 => fs::write(cwd.as_path().join(bad()), "xe_query@query-engines\n").unwrap(),
                    _ => fs::create_dir(cwd.as_path().join(bad())).unwrap(),
                }
                for json in if json { &["--json"][..] } else { &[] }.iter().map(Some).chain([None]) {
                    let mut line = arctic(cwd.as_path());
                    line.arg(command).args(json).args(needed(command, option));
                    if command == "igt" && option != "--list" {
                        line.args(["--list", "list"]);
                    }
                    if !option.is_empty() {
                        line.arg(option);
                    }
                    line.arg(bad());
                    check(line);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 150, "{checked} command lines");
}

#[test]
fn commands_that_write_to_a_path_that_is_not_utf8_succeed() {
    let dir = TempDir::new().unwrap();
    let succeeds = |arguments: &[&OsStr]| {
        let mut command = arctic(dir.as_path());
        command.args(arguments);
        assert_eq!(check(command), 0, "{arguments:?}");
    };
    succeeds(&["firmware".as_ref(), "--out".as_ref(), bad()]);
    assert!(dir.as_path().join(bad()).join("i915/dg2_guc_70.bin").is_file());
    succeeds(&["man".as_ref(), bad()]);
    let trace = dir.as_path().join(bad()).join("trace");
    for json in ["--json", "--vfs=0"] {
        let serve = ["serve", "--card", "small", "--dir", "run", json, "--trace"].map(OsStr::new);
        succeeds(&[&serve[..], &[trace.as_os_str()]].concat());
        succeeds(&["decode".as_ref(), trace.as_os_str()]);
    }
}

/// The directory, or a directory above it, is given or is the current one; nothing is created.
#[test]
fn serve_refuses_a_directory_that_qemu_cannot_be_given() {
    let dir = TempDir::new().unwrap();
    let below = dir.as_path().join(bad());
    let refused = |cwd: &Path, path: &OsStr| {
        let mut command = arctic(cwd);
        command.args(["serve", "--card", "small", "--json", "--dir"]).arg(path);
        let (status, output, errors) = result(command);
        let errors = String::from_utf8(errors).unwrap();
        assert_eq!((status, errors.lines().count()), (1, 1), "{errors}");
        assert!(output.is_empty() && errors.contains("is not UTF-8"), "{errors}");
    };
    refused(dir.as_path(), bad());
    refused(dir.as_path(), below.join("run").as_os_str());
    assert!(!below.exists());
    fs::create_dir(&below).unwrap();
    refused(&below, "run".as_ref());
    symlink(&below, dir.as_path().join("link")).unwrap();
    refused(dir.as_path(), "link/run".as_ref());
    assert_eq!(fs::read_dir(&below).unwrap().count(), 0);
}

/// A served card is found through a path that is not UTF-8.
/// A directory and a file of which the names are not UTF-8 are found, or named in the error.
#[test]
fn vf_takes_a_path_that_is_not_utf8() {
    let cwd = TempDir::new().unwrap();
    for action in ["save", "restore", "pause"] {
        let mut line = arctic(cwd.as_path());
        line.args(["vf", action]).arg(Path::new(&bad()).join("vf1"));
        if action != "pause" {
            line.arg(bad());
        }
        check(line);
    }
}

#[test]
fn status_trace_and_inject_take_a_path_that_is_not_utf8() {
    let dir = TempDir::new().unwrap();
    symlink("run", dir.as_path().join(bad())).unwrap();
    let mut card = arctic(dir.as_path());
    let card = Served::start(card.args(["serve", "--card", "small", "--dir", "run"]), |_| true);
    for arguments in [&["status"][..], &["status", "--json"], &["inject"], &["inject", "--json"]] {
        let mut command = arctic(dir.as_path());
        command.args(arguments).arg(bad());
        assert_eq!(check(command), 0, "{arguments:?}");
    }
    let mut save = bad().to_owned();
    save.push(".trace");
    let mut trace = arctic(dir.as_path());
    let trace = ChildProcess::spawn(trace.arg("trace").arg(bad()).arg("--save").arg(&save));
    eventually("the file, which is created once the card has answered", || dir.as_path().join(&save).exists());
    assert_eq!(card.end(libc::SIGTERM).0, Some(0));
    let ended = trace.wait_with_output();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn environment_variables_that_are_not_utf8_cause_no_panic() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.as_path().join(bad())).unwrap();
    fs::write(dir.as_path().join(bad()).join("apt-get"), "").unwrap();
    for variable in [
        "ARCTIC_CACHE",
        "XDG_CACHE_HOME",
        "HOME",
        "ARCTIC_DEBIAN_MIRROR",
        "ARCTIC_DEBIAN_KEYRING",
        "PATH",
        "TMPDIR",
        "RUST_LOG",
        "ARCTIC_UNKNOWN",
    ] {
        for command in ["boot", "fidelity"] {
            for value in [bad().to_owned(), dir.as_path().join(bad()).into_os_string()] {
                let mut line = arctic(dir.as_path());
                line.args([command, "--json"]);
                if ["XDG_CACHE_HOME", "HOME"].contains(&variable) {
                    line.env_remove("ARCTIC_CACHE");
                }
                line.env(variable, value);
                check(line);
            }
        }
    }
}
