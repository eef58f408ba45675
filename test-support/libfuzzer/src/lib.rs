// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Builds the fuzz targets of a package with cargo-fuzz and runs each for a limited time under libFuzzer.
//!
//! It knows no other package: the tests of the card, of `afuc` and of `eu` bring names, inputs and directories of their
//! targets. libFuzzer needs a C++ compiler; without one [`Fuzzing::run`] prints a message and reports no failure.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Version of cargo-fuzz, which is installed if it is missing.
const CARGO_FUZZ: &str = "0.13.2";
/// Number of fuzzers run in parallel; CI hosts have two cores.
const PARALLEL: usize = 2;
/// Time limit of an input in seconds. An input over the limit is a failure only if it exceeds it alone as well.
const INPUT_SECONDS: u32 = 10;
/// Memory limit of a fuzzer in MiB.
const MEMORY_MIB: u32 = 2048;

/// A fuzz target.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the target's program.
    pub name: &'static str,
    /// Maximum length of an input in bytes.
    pub longest: u32,
    /// Inputs to start from, none longer than `longest`.
    pub inputs: Vec<Vec<u8>>,
}

/// The fuzz targets of a package and the directories that a run uses.
#[derive(Debug)]
pub struct Fuzzing<'a> {
    /// Directory of the package; its targets are in `fuzz/`.
    pub package: &'a Path,
    /// Directory for all build products and outputs, below cargo's target directory.
    pub scratch: PathBuf,
    /// All targets, in the order in which they start.
    pub targets: Vec<Target>,
}

/// Prints a line while the test runs. libtest does not capture direct writes to stderr.
fn progress(line: &str) {
    let _ = writeln!(std::io::stderr(), "fuzz: {line}");
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

/// Returns the time for each target: `ARCTIC_FUZZ_SECONDS`, or a minute.
fn seconds() -> u64 {
    std::env::var("ARCTIC_FUZZ_SECONDS").ok().map_or(60, |text| {
        text.parse().unwrap_or_else(|_| panic!("ARCTIC_FUZZ_SECONDS is {text:?}: expected a number of seconds"))
    })
}

impl Fuzzing<'_> {
    /// Runs each target for a minute, or for `ARCTIC_FUZZ_SECONDS`. The error has, for each target that failed, the end
    /// of its output, the input, and the command that reproduces it.
    ///
    /// # Panics
    /// If cargo-fuzz cannot be installed, if the targets do not build, or if files cannot be written.
    pub fn run(&self) -> Result<(), String> {
        if !has_cxx() {
            progress("skipped: no C++ compiler found (c++ or $CXX), required to build libFuzzer");
            return Ok(());
        }
        let seconds = seconds();
        let programs = self.build();
        let queue = Mutex::new(VecDeque::from_iter(&self.targets));
        let failures = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..PARALLEL {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap().pop_front();
                        let Some(target) = next else { return };
                        if let Err(failure) = self.fuzz(&programs, target, seconds) {
                            progress(&format!("{}: failed", target.name));
                            failures.lock().unwrap().push(failure);
                        }
                    }
                });
            }
        });
        let failures = failures.into_inner().unwrap();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n")) }
    }

    /// Checks that `targets` has each target of the package, and that libFuzzer would truncate none of their inputs.
    ///
    /// # Panics
    /// If a target is missing or has no inputs, or if an input is too long.
    pub fn check_targets(&self) {
        let mut programs: Vec<String> = fs::read_dir(self.package.join("fuzz/fuzz_targets"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        programs.sort();
        let mut names: Vec<&str> = self.targets.iter().map(|target| target.name).collect();
        names.sort();
        assert_eq!(programs, names);
        for Target { name, longest, inputs } in &self.targets {
            assert!(!inputs.is_empty(), "{name}: no inputs");
            for (number, bytes) in inputs.iter().enumerate() {
                assert!(bytes.len() <= *longest as usize, "{name}: input {number} has {} bytes", bytes.len());
            }
        }
    }

    /// Returns the path of `cargo-fuzz`. Installs it if it is missing or has another version.
    fn cargo_fuzz(&self) -> PathBuf {
        let version = format!("cargo-fuzz {CARGO_FUZZ}");
        let works = |program: &Path| {
            let printed = Command::new(program).args(["fuzz", "--version"]).stderr(Stdio::null()).output();
            printed.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == version)
        };
        let ours = self.scratch.join("tools");
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

    /// Builds all targets; returns the directory of their programs.
    fn build(&self) -> PathBuf {
        let program = self.cargo_fuzz();
        let start = Instant::now();
        progress("building the targets");
        let target = self.scratch.join("target");
        let mut build = Command::new(program);
        build.args(["fuzz", "build", "--sanitizer", "none", "--fuzz-dir"]).arg(self.package.join("fuzz"));
        // Several codegen units use both cores; the build takes a minute on one core.
        build.args(["--codegen-units", "16", "--target-dir"]).arg(&target);
        build.current_dir(self.package).env("CARGO", env!("CARGO"));
        // Settings of the test's build must not apply to the build of the targets.
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
    fn fuzz(&self, programs: &Path, target: &Target, seconds: u64) -> Result<(), String> {
        let name = target.name;
        let own = self.scratch.join(name);
        let _ = fs::remove_dir_all(&own);
        let (corpus, found, artifacts) = (own.join("corpus"), own.join("found"), own.join("artifacts"));
        for folder in [&corpus, &found, &artifacts] {
            fs::create_dir_all(folder).unwrap();
        }
        for (number, bytes) in target.inputs.iter().enumerate() {
            fs::write(corpus.join(number.to_string()), bytes).unwrap();
        }
        let run = |arguments: &[String], inputs: &[&Path]| {
            let mut command = Command::new(programs.join(name));
            command.arg(format!("-timeout={INPUT_SECONDS}")).arg(format!("-rss_limit_mb={MEMORY_MIB}"));
            command.args(arguments).args(inputs);
            command.arg(format!("-artifact_prefix={}/", artifacts.display())).current_dir(&own);
            command.stdin(Stdio::null()).env_remove("RUST_LOG");
            command.output().unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let start = Instant::now();
        let (printed, artifact) = loop {
            let left = seconds.saturating_sub(start.elapsed().as_secs()).max(1);
            let arguments = [
                format!("-max_total_time={left}"),
                format!("-max_len={}", target.longest),
                "-len_control=0".into(),
                "-print_final_stats=1".into(),
            ];
            let output = run(&arguments, &[&found, &corpus]);
            let printed = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                let new = fs::read_dir(&found).map_or(0, Iterator::count);
                progress(&format!("{name}: {}, {new} new", counts(&printed)));
                return Ok(());
            }
            // libFuzzer also keeps slow inputs, which are not failures.
            let is_kind =
                |path: &Path, kind| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(kind));
            let mut kept = fs::read_dir(&artifacts).unwrap().filter_map(Result::ok).map(|entry| entry.path());
            let Some(artifact) = kept.find(|path| !is_kind(path, "slow-unit")) else {
                return Err(format!("{name} ended with {}:\n{}", output.status, tail(&printed)));
            };
            if !is_kind(&artifact, "timeout") || !run(&["-runs=1".into()], &[&artifact]).status.success() {
                break (printed, artifact);
            }
            progress(&format!(
                "{name}: an input exceeded {INPUT_SECONDS} s but not when run alone (busy host); continuing"
            ));
            fs::remove_file(&artifact).unwrap();
            if start.elapsed().as_secs() >= seconds {
                return Ok(());
            }
        };
        let hex: String = fs::read(&artifact).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        let (path, package) = (artifact.display(), self.package.display());
        let reproduce = format!("in {package}: cargo fuzz run -s none {name} {path}");
        Err(format!("{name}: {}\ninput {path}: {hex}\nreproduce {reproduce}", tail(&printed)))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "INFO: Seed: 1\n#12\tINITED cov: 30 ft: 40\n\tNEW_FUNC[1/2]: 0x5\n#90\tREDUCE cov: 57 ft: 80\n\
                           thread panicked at 'no'\nstat::number_of_executed_units: 1234\nstat::peak_rss_mb: 40\n";

    #[test]
    fn counts_are_those_of_the_last_lines() {
        assert_eq!(counts(PRINTED), "1234 inputs, 57 edges");
    }

    #[test]
    fn counts_without_statistics_are_question_marks() {
        assert_eq!(counts("Segmentation fault"), "? inputs, ? edges");
    }

    #[test]
    fn tail_leaves_out_progress_and_keeps_the_reason() {
        let kept = tail(PRINTED);
        assert!(kept.contains("thread panicked") && !kept.contains("REDUCE") && !kept.contains("NEW_FUNC"), "{kept}");
        let long: String = (0..100).map(|line| format!("line {line}\n")).collect();
        assert_eq!(tail(&long).lines().next(), Some("line 60"));
    }
}
