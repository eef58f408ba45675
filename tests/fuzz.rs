//! Each fuzz target of `fuzz/` for a minute, from the corpus that is kept and whatever the fuzzer makes of it.
//!
//! `ARCTIC_FUZZ_SECONDS` is another time than a minute. libFuzzer is C++: without a compiler for it the test is skipped,
//! and says so. What a fuzzer has ever found is replayed by tests that need none of this (`tests/corpora`, and those of the
//! device model).

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// The one that is installed where none is.
const CARGO_FUZZ: &str = "0.13.2";
/// Targets, the ones that find most per minute first, and the longest inputs that they are given.
const TARGETS: [(&str, u32); 6] = [
    ("functions", 700),
    ("guc_messages", 700),
    ("vfio_user", 800),
    ("context_images", 400),
    ("command_streamer", 800),
    ("card_file", 2000),
];
/// Fuzzers at a time: the machines that this runs on have two cores.
const AT_A_TIME: usize = 2;

/// A line that is seen while the test runs.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "fuzz: {line}");
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where all that is made for the test goes: beside the other things that are built.
fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz")
}

/// The C++ compiler that the `cc` crate would take works.
fn has_cxx() -> bool {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let quiet = Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs a command that has to succeed; what it says is told if it does not.
fn must(what: &str, command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(output.status.success(), "{what} ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// The program `cargo-fuzz`: the one that is there, or one that is installed here.
fn cargo_fuzz() -> PathBuf {
    let version = format!("cargo-fuzz {CARGO_FUZZ}");
    let works = |program: &Path| {
        let said = Command::new(program).args(["fuzz", "--version"]).stderr(Stdio::null()).output();
        said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == version)
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
    must("cargo-fuzz cannot be installed", &mut install);
    ours.join("bin/cargo-fuzz")
}

/// Builds all targets; returns the folder of their programs.
fn build() -> PathBuf {
    let program = cargo_fuzz();
    let start = Instant::now();
    progress("building the targets");
    let target = scratch().join("target");
    let mut build = Command::new(program);
    build.args(["fuzz", "build", "--sanitizer", "none", "--fuzz-dir"]).arg(home().join("fuzz"));
    // Two cores build in pieces what one would take a minute for.
    build.args(["--codegen-units", "16", "--target-dir"]).arg(&target);
    build.current_dir(home()).env("CARGO", env!("CARGO"));
    // What this test's own build was told is not for that one.
    for variable in ["CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_INCREMENTAL"] {
        build.env_remove(variable);
    }
    must("the fuzz targets cannot be built", &mut build);
    progress(&format!("built in {} s", start.elapsed().as_secs()));
    let rustc = must("rustc", Command::new("rustc").arg("-vV"));
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    target.join(host).join("release")
}

/// Fuzzes one target; an error says all that is needed to see it again.
fn fuzz(programs: &Path, target: &str, longest: u32, seconds: u64) -> Result<(), String> {
    let corpus = home().join("fuzz/corpus").join(target);
    let own = scratch().join(target);
    let _ = fs::remove_dir_all(&own);
    let (found, artifacts) = (own.join("corpus"), own.join("artifacts"));
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).unwrap();
    }
    let run = |arguments: &[String], inputs: &[&Path]| {
        let mut command = Command::new(programs.join(target));
        command.args(["-timeout=10", "-rss_limit_mb=2048"]).args(arguments).args(inputs);
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).current_dir(&own);
        command.stdin(Stdio::null()).env_remove("RUST_LOG").output().unwrap_or_else(|error| panic!("{target}: {error}"))
    };
    let start = Instant::now();
    let (said, artifact) = loop {
        let left = seconds.saturating_sub(start.elapsed().as_secs()).max(1);
        let arguments = [
            format!("-max_total_time={left}"),
            format!("-max_len={longest}"),
            "-len_control=0".into(),
            "-print_final_stats=1".into(),
        ];
        let output = run(&arguments, &[&found, &corpus]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            progress(&format!("{target}: {}, {} new", counts(&said), fs::read_dir(&found).map_or(0, Iterator::count)));
            return Ok(());
        }
        // Inputs that only took long are kept too.
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut kept = fs::read_dir(&artifacts).unwrap().filter_map(Result::ok).map(|entry| entry.path());
        let Some(artifact) = kept.find(|path| !name(path).starts_with("slow-unit")) else {
            return Err(format!("{target} ended with {}:\n{}", output.status, tail(&said)));
        };
        if !name(&artifact).starts_with("timeout") || !run(&["-runs=1".into()], &[&artifact]).status.success() {
            break (said, artifact);
        }
        progress(&format!("{target}: an input took 10 s, and is quick alone: the machine is busy; it goes on"));
        fs::remove_file(&artifact).unwrap();
        if start.elapsed().as_secs() >= seconds {
            return Ok(());
        }
    };
    let hex: String = fs::read(&artifact).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let path = artifact.display();
    Err(format!("{target}: {}\ninput {path}: {hex}\nagain: cargo fuzz run -s none {target} {path}", tail(&said)))
}

/// What a fuzzer's final statistics tell.
fn counts(said: &str) -> String {
    let last = |name: &str| {
        let line = said.lines().rev().find(|line| line.contains(name))?;
        line.split(name).nth(1)?.split_whitespace().next().map(str::to_owned)
    };
    let number = |name| last(name).unwrap_or_else(|| "?".into());
    format!("{} inputs, {} edges", number("number_of_executed_units:"), number("cov: "))
}

/// The last lines of what a fuzzer says, which tell why it ended.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with('#') && !line.contains("NEW_FUNC")).collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Rules 5 and 6: for a minute each, nothing that a guest, a VMM or a card file says breaks the card.
#[test]
fn each_target_for_a_minute() {
    if !has_cxx() {
        progress("skipped: there is no C++ compiler (c++, or $CXX), which libFuzzer is built with");
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

/// No target is forgotten, by the test above or by the corpora.
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
        let corpus = fs::read_dir(home().join("fuzz/corpus").join(target));
        for input in corpus.unwrap_or_else(|error| panic!("{target} has no corpus: {error}")) {
            let input = input.unwrap();
            // libFuzzer would cut it.
            let len = input.metadata().unwrap().len();
            assert!(len <= longest.into(), "{} has {len} bytes", input.path().display());
        }
    }
}
