// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs each fuzz target of `fuzz/` for a minute, starting from the committed corpus.
//!
//! `ARCTIC_FUZZ_SECONDS` changes the time. libFuzzer needs a C++ compiler; without one the test prints a message and
//! passes. Findings are replayed by tests without these requirements (`tests/fuzz_regressions`, and tests of the device
//! model).

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use arctic_test_support::replay;

/// Version of cargo-fuzz, which is installed if it is missing.
const CARGO_FUZZ: &str = "0.13.2";
/// Targets and the maximum length of their inputs in bytes, ordered by findings per minute.
const TARGETS: [(&str, u32); 8] = [
    ("functions", 700),
    ("guc_messages", 700),
    ("vfio_user", 800),
    ("context_images", 400),
    ("command_streamer", 800),
    ("gen6_streamer", 800),
    ("gen6_bars", 800),
    ("card_file", 2000),
];
/// Number of fuzzers run in parallel; CI hosts have two cores.
const AT_A_TIME: usize = 2;

/// Prints a line while the test runs. libtest does not capture direct writes to stderr.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "fuzz: {line}");
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Directory for all build products and outputs of this test, below the target directory.
fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz")
}

/// Returns true if the C++ compiler that the `cc` crate would choose works.
fn has_cxx() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let quiet = Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs a command that must succeed; panics with its stderr otherwise.
fn must(what: &str, command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(output.status.success(), "{what} ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the path of `cargo-fuzz`. Installs it if it is missing or has another version.
fn cargo_fuzz() -> PathBuf {
    let version = format!("cargo-fuzz {CARGO_FUZZ}");
    let works = |program: &Path| {
        let printed = Command::new(program).args(["fuzz", "--version"]).stderr(Stdio::null()).output();
        printed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == version)
    };
    let ours = scratch().join("tools");
    for program in [PathBuf::from("cargo-fuzz"), ours.join("bin/cargo-fuzz")] {
        if works(&program) {
            return program;
        }
    }
    progress(&format!("installing {version}"));
    let mut install = Command::new(env!("CARGO"));
    install.args(["install", "cargo-fuzz", "--locked", "--force", "--version", CARGO_FUZZ, "--root"]).arg(&ours);
    must("cannot install cargo-fuzz", &mut install);
    ours.join("bin/cargo-fuzz")
}

/// Builds all targets; returns the directory of their executables.
fn build() -> PathBuf {
    let program = cargo_fuzz();
    let start = Instant::now();
    progress("building the targets");
    let target = scratch().join("target");
    let mut build = Command::new(program);
    build.args(["fuzz", "build", "--sanitizer", "none", "--fuzz-dir"]).arg(home().join("fuzz"));
    // Several codegen units use both cores; the build takes a minute on one core.
    build.args(["--codegen-units", "16", "--target-dir"]).arg(&target);
    build.current_dir(home()).env("CARGO", env!("CARGO"));
    // Settings of this test's build must not apply to the build of the targets.
    for variable in ["CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_INCREMENTAL"] {
        build.env_remove(variable);
    }
    must("cannot build the fuzz targets", &mut build);
    progress(&format!("built in {} s", start.elapsed().as_secs()));
    let rustc = must("rustc", Command::new("rustc").arg("-vV"));
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host =
        rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line in the output of rustc -vV");
    target.join(host).join("release")
}

/// Fuzzes one target; an error includes the input and the command that reproduces it.
fn fuzz(programs: &Path, target: &str, longest: u32, seconds: u64) -> Result<(), String> {
    let own = scratch().join(target);
    let _ = fs::remove_dir_all(&own);
    let (corpus, found, artifacts) = (own.join("corpus"), own.join("found"), own.join("artifacts"));
    for folder in [&corpus, &found, &artifacts] {
        fs::create_dir_all(folder).unwrap();
    }
    replay::inputs(target).iter().for_each(|(name, bytes)| fs::write(corpus.join(name), bytes).unwrap());
    let run = |arguments: &[String], inputs: &[&Path]| {
        let mut command = Command::new(programs.join(target));
        command.args(["-timeout=10", "-rss_limit_mb=2048"]).args(arguments).args(inputs);
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).current_dir(&own);
        command.stdin(Stdio::null()).env_remove("RUST_LOG").output().unwrap_or_else(|error| panic!("{target}: {error}"))
    };
    let start = Instant::now();
    let (printed, artifact) = loop {
        let left = seconds.saturating_sub(start.elapsed().as_secs()).max(1);
        let arguments = [
            format!("-max_total_time={left}"),
            format!("-max_len={longest}"),
            "-len_control=0".into(),
            "-print_final_stats=1".into(),
        ];
        let output = run(&arguments, &[&found, &corpus]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            progress(&format!(
                "{target}: {}, {} new",
                counts(&printed),
                fs::read_dir(&found).map_or(0, Iterator::count)
            ));
            return Ok(());
        }
        // libFuzzer also keeps slow inputs, which are not failures.
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut kept = fs::read_dir(&artifacts).unwrap().filter_map(Result::ok).map(|entry| entry.path());
        let Some(artifact) = kept.find(|path| !name(path).starts_with("slow-unit")) else {
            return Err(format!("{target} ended with {}:\n{}", output.status, tail(&printed)));
        };
        if !name(&artifact).starts_with("timeout") || !run(&["-runs=1".into()], &[&artifact]).status.success() {
            break (printed, artifact);
        }
        progress(&format!("{target}: an input exceeded 10 s but not when run alone (busy host); continuing"));
        fs::remove_file(&artifact).unwrap();
        if start.elapsed().as_secs() >= seconds {
            return Ok(());
        }
    };
    let hex: String = fs::read(&artifact).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let path = artifact.display();
    Err(format!("{target}: {}\ninput {path}: {hex}\nreproduce: cargo fuzz run -s none {target} {path}", tail(&printed)))
}

/// Returns input and edge counts from a fuzzer's final statistics.
fn counts(printed: &str) -> String {
    let last = |name: &str| {
        let line = printed.lines().rev().find(|line| line.contains(name))?;
        line.split(name).nth(1)?.split_whitespace().next().map(str::to_owned)
    };
    let number = |name| last(name).unwrap_or_else(|| "?".into());
    format!("{} inputs, {} edges", number("number_of_executed_units:"), number("cov: "))
}

/// Returns the last lines of a fuzzer's output, which contain the reason for its exit.
fn tail(printed: &str) -> String {
    let lines: Vec<&str> =
        printed.lines().filter(|line| !line.starts_with('#') && !line.contains("NEW_FUNC")).collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Fuzzes each target for a minute. No input from a guest, a VMM or a card file may make the card panic, hang or
/// violate isolation.
#[test]
fn each_target_for_a_minute() {
    if !has_cxx() {
        progress("skipped: no C++ compiler found (c++ or $CXX), required to build libFuzzer");
        return;
    }
    let seconds = std::env::var("ARCTIC_FUZZ_SECONDS").ok().map_or(60, |text| {
        text.parse().unwrap_or_else(|_| panic!("ARCTIC_FUZZ_SECONDS is {text:?}: expected a number of seconds"))
    });
    let programs = build();
    let queue = Mutex::new(VecDeque::from(TARGETS));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some((target, longest)) = next else { return };
                    if let Err(failure) = fuzz(&programs, target, longest, seconds) {
                        progress(&format!("{target}: failed"));
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// `TARGETS` lists every target, and every target has a corpus.
#[test]
fn every_target_is_in_the_list() {
    let mut targets: Vec<String> = fs::read_dir(home().join("fuzz/fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    targets.sort();
    let mut listed = TARGETS.map(|(target, _)| target);
    listed.sort();
    assert_eq!(targets, listed);
    for (target, longest) in TARGETS {
        for (name, bytes) in replay::inputs(target) {
            // libFuzzer would truncate longer inputs.
            assert!(bytes.len() <= longest as usize, "{target}: {name} has {} bytes", bytes.len());
        }
    }
}
