// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The checks of the fuzz targets on generated inputs; in the long tier each target under libFuzzer for a minute.
//!
//! `ARCTIC_FUZZ_SECONDS` changes the time. libFuzzer needs a C++ compiler; without one the test prints a message and passes.

#[path = "../fuzz/src/lib.rs"]
mod checks;
mod common;

use arctic_afuc::isa::Generation;
use arctic_afuc::pm4::operation;
use common::{Random, image};

const FIRMWARE: &str = include_str!("../firmware/sqe-open.asm");

/// Random images, and random changes of bytes in them.
#[test]
fn round_trip_of_changed_images_is_identical() {
    let mut random = Random(2);
    for number in 0..300 {
        let generation = Generation::ALL[number % 3];
        let length = 1 + random.below(200);
        let mut bytes = image(&mut random, generation, length).to_bytes();
        bytes.insert(0, u8::try_from(number % 3).unwrap());
        for _ in 0..random.below(8) {
            let at = random.below(bytes.len());
            bytes[at] = random.next().to_le_bytes()[0];
        }
        checks::round_trip(&bytes);
    }
}

/// The source of the open firmware with characters, words and lines removed, doubled and exchanged.
#[test]
fn assembler_reports_places_in_changed_sources() {
    let mut random = Random(3);
    let lines: Vec<&str> = FIRMWARE.lines().collect();
    for _ in 0..300 {
        let start = random.below(lines.len());
        let mut source = format!("[016ee001]\n{}", lines[start..lines.len().min(start + 30)].join("\n"));
        for _ in 0..random.below(6) {
            let mut at = random.below(source.len());
            while !source.is_char_boundary(at) {
                at -= 1;
            }
            match random.below(3) {
                0 => drop(source.remove(at)),
                1 => source.insert(at, ['$', '#', '[', '(', '0', '\u{e9}', '\n', '"'][random.below(8)]),
                _ => source.insert_str(at, ["0xffffffff", "(rep)", ".if a7xx\n", ".align ", "b99"][random.below(5)]),
            }
        }
        checks::assembler(source.as_bytes());
    }
}

/// Random images on random packets, and the open firmware on packets with random words.
#[test]
fn machine_keeps_its_budget_and_continues_after_a_snapshot() {
    let mut random = Random(4);
    for _ in 0..300 {
        let mut bytes = vec![random.next().to_le_bytes()[0], random.below(40).to_le_bytes()[0]];
        for _ in 0..random.below(80) {
            let opcode = random.next().to_le_bytes()[0] & 0x7f;
            let words: Vec<u32> = (0..random.below(6)).map(|_| random.next() % 0x10_0000 + 0xf_f000).collect();
            let words = if random.below(2) == 0 { operation(opcode, &words) } else { vec![random.next()] };
            bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        }
        checks::machine(&bytes);
    }
}

#[cfg(feature = "long-tests")]
mod libfuzzer {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output, Stdio};

    /// Version of cargo-fuzz, which is installed if it is missing.
    const CARGO_FUZZ: &str = "0.13.2";
    /// Targets and the maximum length of their inputs in bytes.
    const TARGETS: [(&str, u32); 3] = [("round_trip", 1000), ("assembler", 1000), ("machine", 1000)];

    fn scratch() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz")
    }

    /// Runs a command that must succeed; panics with its stderr otherwise.
    fn must(what: &str, command: &mut Command) -> Output {
        let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(output.status.success(), "{what} ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Returns the path of cargo-fuzz. Installs it if it is missing or has another version.
    fn cargo_fuzz() -> PathBuf {
        let ours = scratch().join("tools/bin/cargo-fuzz");
        for program in [PathBuf::from("cargo-fuzz"), ours.clone()] {
            let version = Command::new(&program).args(["fuzz", "--version"]).stderr(Stdio::null()).output();
            if version.is_ok_and(|output| {
                String::from_utf8_lossy(&output.stdout).trim() == format!("cargo-fuzz {CARGO_FUZZ}")
            }) {
                return program;
            }
        }
        eprintln!("fuzz: installing cargo-fuzz {CARGO_FUZZ}");
        let mut install = Command::new(env!("CARGO"));
        install.args(["install", "cargo-fuzz", "--locked", "--force", "--version", CARGO_FUZZ, "--root"]);
        must("cannot install cargo-fuzz", install.arg(scratch().join("tools")));
        ours
    }

    /// Builds all targets; returns the directory of their programs.
    fn build() -> PathBuf {
        let target = scratch().join("target");
        let mut build = Command::new(cargo_fuzz());
        build.args(["fuzz", "build", "--sanitizer", "none", "--codegen-units", "16", "--fuzz-dir"]);
        build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")).arg("--target-dir").arg(&target);
        build.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO", env!("CARGO"));
        // Settings of this test's build must not apply to the build of the targets.
        for variable in ["CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_INCREMENTAL"] {
            build.env_remove(variable);
        }
        must("cannot build the fuzz targets", &mut build);
        let rustc = must("rustc", Command::new("rustc").arg("-vV"));
        let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
        let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line of rustc -vV");
        target.join(host).join("release")
    }

    /// Inputs to start from: the open firmware as image and source, and one that executes packets with it.
    fn seeds(target: &str) -> Vec<Vec<u8>> {
        let options = arctic_afuc::text::Options { generation: Some(arctic_afuc::isa::Generation::A6) };
        let image = arctic_afuc::text::assemble(super::FIRMWARE, &options).unwrap().image;
        let packets = [
            super::operation(0x48, &[0; 8]),
            super::operation(0x3d, &[0x10_0800, 0, 7]),
            super::operation(0x43, &[0x70_0002, 0x10_0000, 0]),
            super::operation(0x38, &[0; 3]),
        ];
        // On a7xx also packets for BV, and for both with a barrier.
        let threads = |which| super::operation(0x17, &[which]);
        let scratch = super::operation(0x4c, &[1 << 20, 7]);
        let others = [threads(2), scratch.clone(), threads(3 | 1 << 31), scratch, threads(1)].concat();
        match target {
            "round_trip" => vec![[&[1], &image.to_bytes()[..900]].concat()],
            "assembler" => super::FIRMWARE.as_bytes().chunks(900).map(<[u8]>::to_vec).collect(),
            _ => {
                let words = [packets.concat(), others].concat();
                let (a6, a7) = (5, 6);
                [(a6, 0), (a6, 8), (a6, 24), (a7, 0), (a7, 8), (a7, 24)]
                    .map(|(generation, flags)| {
                        let count = if generation == a7 { words.len() } else { packets.concat().len() };
                        let words = words[..count].iter().flat_map(|word| word.to_le_bytes());
                        [generation | flags, 0].into_iter().chain(words).collect()
                    })
                    .to_vec()
            }
        }
    }

    fn fuzz(programs: &Path, target: &str, longest: u32, seconds: u64) -> Result<(), String> {
        let own = scratch().join(target);
        let _ = fs::remove_dir_all(&own);
        let (corpus, artifacts) = (own.join("corpus"), own.join("artifacts"));
        [&corpus, &artifacts].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        for (number, seed) in seeds(target).iter().enumerate() {
            fs::write(corpus.join(number.to_string()), seed).unwrap();
        }
        let mut command = Command::new(programs.join(target));
        // A starved process needs long for an input; an endless one is found anyway.
        command.args(["-timeout=60", "-rss_limit_mb=2048", "-len_control=0", "-print_final_stats=1"]);
        command.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={longest}"));
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg(&corpus).current_dir(&own);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines: Vec<&str> =
            messages.lines().filter(|line| !line.starts_with('#') && !line.contains("NEW_FUNC")).collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        eprintln!(
            "fuzz: {target}: {}",
            lines.iter().find(|line| line.contains("executed_units")).unwrap_or(&"no statistics")
        );
        if output.status.success() { Ok(()) } else { Err(format!("{target}: {tail}\ninputs: {}", artifacts.display())) }
    }

    #[test]
    fn each_target_for_a_minute() {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
        if !Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success()) {
            eprintln!("fuzz: skipped: no C++ compiler found (c++ or $CXX), required to build libFuzzer");
            return;
        }
        let seconds = std::env::var("ARCTIC_FUZZ_SECONDS").ok().map_or(60, |text| {
            text.parse().unwrap_or_else(|_| panic!("ARCTIC_FUZZ_SECONDS is {text:?}: expected a number of seconds"))
        });
        let programs = build();
        let results = std::thread::scope(|scope| {
            let fuzzers = TARGETS.map(|(target, longest)| {
                let programs = &programs;
                scope.spawn(move || fuzz(programs, target, longest, seconds))
            });
            fuzzers.map(|fuzzer| fuzzer.join().unwrap())
        });
        let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    }
}
