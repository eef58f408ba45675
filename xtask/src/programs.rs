// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo xtask programs`: runs packaged programs of OpenCL and Vulkan in guests, on the PF and on a VF, and writes what came
//! of them to docs/compute.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const DOCUMENT: &str = "docs/compute.md";
const BEGIN: &str = "<!-- Written by `cargo xtask programs` until the end of the table; do not edit. -->\n";
const END: &str = "<!-- The end of the table. -->";
const PROGRAM: &str = "target/release/arctic";
/// The programs' sources, and the packages of PyPI with their hashes.
const SOURCES: &str = "guest-tests/programs";
/// The directory that the guest has as /share.
const SHARE: &str = "target/programs";
/// Directory of the results, and list of the programs, in [`SHARE`].
const RESULTS: &str = "results";
const LIST: &str = "list";
/// Version of Python in Debian sid.
const PYTHON: &str = "3.14";
/// Platforms of the packages of PyPI.
const PLATFORMS: &[&str] = &["manylinux_2_28_x86_64", "manylinux2014_x86_64"];
/// Exit status of a program that did not end in time.
const TIMED_OUT: i32 = 124;

/// A program.
struct Program {
    name: &'static str,
    /// What it is and what it computes.
    about: &'static str,
    /// The API, and the compiler of its kernels.
    by: &'static str,
    /// Where it comes from: packages of Debian sid.
    debian: &'static [&'static str],
    /// A package of PyPI.
    pypi: Option<&'static str>,
    /// Seconds after which it is ended.
    limit: u32,
    /// Shell command. It compares its results with those of the CPU: its status is 0 if they are right.
    command: &'static str,
    /// Why it cannot be right on the card, if it cannot.
    limit_of_card: Option<&'static str>,
}

const fn python(
    name: &'static str,
    about: &'static str,
    by: &'static str,
    debian: &'static [&'static str],
    command: &'static str,
) -> Program {
    Program { name, about, by, debian, pypi: None, limit: 400, command, limit_of_card: None }
}

const IGC: &str = "OpenCL, IGC in the guest";
const MESA: &str = "Vulkan, Mesa";

const PROGRAMS: &[Program] = &[
    python(
        "pyopencl",
        "arrays, sum, dot product, scan, a kernel of its own; compared with numpy",
        IGC,
        &["python3-pyopencl"],
        "python3 pyopencl_arrays.py",
    ),
    python(
        "VkFFT",
        "transforms of 1,024, 1,000 and 64 x 64 points; compared with numpy",
        IGC,
        &["python3-pyvkfft"],
        "python3 pyvkfft_transforms.py",
    ),
    python(
        "OpenCV",
        "blurs, resize, threshold, Sobel, gemm of UMat; compared with its functions for the CPU",
        IGC,
        &["python3-opencv"],
        "python3 opencv_umat.py",
    ),
    Program {
        pypi: Some("openvino"),
        ..python(
            "OpenVINO",
            "products of 64 x 64 and 256 x 256, a convolution; compared with numpy and with its plugin for the CPU",
            "OpenCL, oneDNN and IGC in the guest",
            &["python3-numpy"],
            "python3 openvino_products.py",
        )
    },
    python(
        "CLBlast",
        "its test of products of two vectors (sger); compared with CBLAS",
        IGC,
        &["clblast-tests"],
        "clblast_test_xger -platform 0 -precision 32 -clblas 0 -cblas 1",
    ),
    python(
        "FFmpeg",
        "avgblur_opencl on five pictures; compared with numpy",
        IGC,
        &["ffmpeg", "python3-numpy"],
        "python3 ffmpeg_blur.py",
    ),
    python(
        "llama.cpp",
        "test-backend-ops of ggml: SOFT_MAX of 15 x 15 and 16 x 16 in all its forms; compared with its backend for the CPU",
        MESA,
        &["llama.cpp-tests", "libggml0-backend-vulkan", "mesa-vulkan-drivers"],
        "test-backend-ops test -b Vulkan0 -o SOFT_MAX -p 'ne=.1[56],1[56],'",
    ),
    Program {
        pypi: Some("wgpu"),
        limit_of_card: Some("it copies buffers on the render engine, which Mesa does by 3D draws"),
        ..python(
            "wgpu",
            "a shader that multiplies matrices; compared with numpy",
            MESA,
            &["python3-cffi", "python3-numpy", "mesa-vulkan-drivers"],
            "python3 wgpu_shader.py",
        )
    },
    Program {
        pypi: Some("ncnn"),
        ..python(
            "ncnn",
            "a convolution and pooling; compared with the CPU",
            MESA,
            &["python3-numpy", "libgomp1", "mesa-vulkan-drivers"],
            "python3 ncnn_convolution.py",
        )
    },
];

/// A function of the card in a guest.
struct Function {
    name: &'static str,
    arguments: &'static [&'static str],
}

const FUNCTIONS: [Function; 2] = [
    Function { name: "PF", arguments: &[] },
    Function { name: "VF", arguments: &["--vfs", "1", "--provision", "config"] },
];

/// What came of a program on a function.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Right(f64),
    Wrong { status: i32, last: String },
    TimedOut,
    NotRun,
}

impl Outcome {
    fn text(&self) -> String {
        match self {
            Outcome::Right(seconds) => format!("right, {seconds:.0} s"),
            Outcome::Wrong { status, last } => format!("status {status}: {last}"),
            Outcome::TimedOut => "did not end in time".to_owned(),
            Outcome::NotRun => "not run".to_owned(),
        }
    }
}

/// Runs the programs of which the name is in `only` (all, if it is empty) and writes the table. The rows of the others are kept.
/// Fails if a program was not right, after the table is written.
pub fn run(only: &[String]) -> Result<()> {
    let known: BTreeSet<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    if let Some(name) = only.iter().find(|name| !known.contains(name.as_str())) {
        bail!("no program {name}: there are {}", known.into_iter().collect::<Vec<_>>().join(", "));
    }
    let chosen: Vec<&Program> =
        PROGRAMS.iter().filter(|program| only.is_empty() || only.iter().any(|name| name == program.name)).collect();
    let built = Command::new("cargo").args(["build", "--release", "--quiet", "-p", "arctic-cli"]).status()?;
    ensure!(built.success(), "the program does not build");
    prepare(&chosen)?;
    let mut outcomes = Vec::new();
    for function in &FUNCTIONS {
        outcomes.push(run_on(function, &chosen)?);
    }
    let document = fs::read_to_string(DOCUMENT).with_context(|| format!("{DOCUMENT} cannot be read"))?;
    let document = with_table(&document, |program| {
        let index = chosen.iter().position(|chosen| chosen.name == program.name)?;
        Some(outcomes.iter().map(|of_function| of_function[index].text()).collect())
    })?;
    fs::write(DOCUMENT, document).with_context(|| format!("{DOCUMENT} cannot be written"))?;
    let mut failed = Vec::new();
    for (function, of_function) in FUNCTIONS.iter().zip(&outcomes) {
        for (program, outcome) in chosen.iter().zip(of_function) {
            if program.limit_of_card.is_none() && !matches!(outcome, Outcome::Right(_)) {
                failed.push(format!("{} on the {}: {}", program.name, function.name, outcome.text()));
            }
        }
    }
    ensure!(failed.is_empty(), "not right: {} (outputs are in {SHARE}/{RESULTS})", failed.join("; "));
    Ok(())
}

/// Fills the directory that the guests have as /share: sources, and packages of PyPI, which pip verifies by their hashes.
fn prepare(programs: &[&Program]) -> Result<()> {
    let share = Path::new(SHARE);
    let sources = share.join("programs");
    fs::create_dir_all(&sources)?;
    for entry in fs::read_dir(SOURCES)? {
        let entry = entry?;
        fs::copy(entry.path(), sources.join(entry.file_name()))?;
    }
    if programs.iter().any(|program| program.pypi.is_some()) {
        let mut command = Command::new("python3");
        command.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--root-user-action=ignore",
            "--upgrade",
            "--no-deps",
            "--only-binary=:all:",
        ]);
        command.args(["--require-hashes", "--implementation", "cp", "--python-version", PYTHON]);
        command.args(PLATFORMS.iter().flat_map(|platform| ["--platform", platform]));
        command.arg("--target").arg(share.join("python")).args(["-r", &format!("{SOURCES}/requirements.txt")]);
        let status = command.status().context("python3 cannot be started: install python3 and python3-pip")?;
        ensure!(status.success(), "pip cannot install the packages of {SOURCES}/requirements.txt: see its message");
    }
    Ok(())
}

/// Runs programs on a function, one after the other in one guest.
fn run_on(function: &Function, programs: &[&Program]) -> Result<Vec<Outcome>> {
    let results = Path::new(SHARE).join(RESULTS).join(function.name);
    // Results of an earlier run.
    let _ = fs::remove_dir_all(&results);
    fs::create_dir_all(&results)?;
    let list: String =
        programs.iter().map(|program| format!("{}\t{}\t{}\n", program.name, program.limit, program.command)).collect();
    fs::write(Path::new(SHARE).join(LIST), list)?;
    // One set for all programs and functions, so that there is one image.
    let packages: BTreeSet<&str> = PROGRAMS.iter().flat_map(|program| program.debian).copied().collect();
    let limit: u32 = programs.iter().map(|program| program.limit).sum::<u32>() + 120;
    let status = Command::new(PROGRAM)
        .args(["boot", "--compute", "--packages", &packages.into_iter().collect::<Vec<_>>().join(",")])
        .args(["--share", SHARE, "--timeout", &limit.to_string()])
        .args(function.arguments)
        .args(["--run", &format!("sh /share/programs/run.sh /share/{LIST} /share/{RESULTS}/{}", function.name)])
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("{PROGRAM} cannot be started"))?;
    if !status.success() {
        eprintln!("the guest on the {} ended with {status}", function.name);
    }
    Ok(programs.iter().map(|program| outcome(&results, program.name)).collect())
}

/// Reads what came of the program `name`.
fn outcome(results: &Path, name: &str) -> Outcome {
    let file = |extension: &str| -> PathBuf { results.join(format!("{name}.{extension}")) };
    let Ok(result) = fs::read_to_string(file("result")) else { return Outcome::NotRun };
    let output = fs::read(file("txt")).unwrap_or_default();
    parse(&result, &String::from_utf8_lossy(&output))
}

/// Parses a result, `STATUS SECONDS`, and the output of the program.
fn parse(result: &str, output: &str) -> Outcome {
    let mut words = result.split_whitespace();
    let status = words.next().and_then(|word| word.parse().ok());
    let seconds = words.next().and_then(|word| word.parse().ok());
    match (status, seconds) {
        (Some(0), Some(seconds)) => Outcome::Right(seconds),
        (Some(TIMED_OUT), _) => Outcome::TimedOut,
        (Some(status), Some(_)) => {
            let last = output.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("no output");
            Outcome::Wrong { status, last: last.replace('|', "/") }
        }
        _ => Outcome::NotRun,
    }
}

/// The document with the rows of the table that `outcomes` has; the other rows are kept.
fn with_table(document: &str, outcomes: impl Fn(&Program) -> Option<Vec<String>>) -> Result<String> {
    let missing = || format!("{DOCUMENT} has no lines {:?} and {END:?}", BEGIN.trim());
    let (before, rest) = document.split_once(BEGIN).with_context(missing)?;
    let (old, after) = rest.split_once(END).with_context(missing)?;
    let mut table = String::from("| program | what it does | by | from | PF | VF |\n|---|---|---|---|---|---|\n");
    for program in PROGRAMS {
        let start = format!("| {} | ", program.name);
        let row = match (outcomes(program), old.lines().find(|line| line.starts_with(&start))) {
            (None, Some(line)) => line.to_owned(),
            (found, _) => {
                let columns = found.unwrap_or_else(|| vec![Outcome::NotRun.text(); FUNCTIONS.len()]);
                let about = match program.limit_of_card {
                    Some(reason) => format!("{} (not right: {reason})", program.about),
                    None => program.about.to_owned(),
                };
                let from = program.pypi.map_or_else(|| program.debian[0].to_owned(), |name| format!("{name} of PyPI"));
                format!("{start}{about} | {} | {from} | {} |", program.by, columns.join(" | "))
            }
        };
        writeln!(table, "{row}")?;
    }
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_a_status_and_seconds() {
        assert_eq!(parse("0 12.5\n", "x"), Outcome::Right(12.5));
        assert_eq!(parse("124 400\n", ""), Outcome::TimedOut);
        let wrong = parse("1 3\n", "sum: 2\nwrong: a | b\n\n");
        assert_eq!(wrong, Outcome::Wrong { status: 1, last: "wrong: a / b".into() });
        assert_eq!(parse("1 3", "").text(), "status 1: no output");
        for text in ["", "x 1", "1"] {
            assert_eq!(parse(text, ""), Outcome::NotRun, "{text}");
        }
    }

    #[test]
    fn rows_that_were_not_run_are_kept() {
        let old = format!("a\n{BEGIN}| pyopencl | old |\n{END}\nb\n");
        let new = with_table(&old, |program| (program.name == "wgpu").then(|| vec!["x".into(), "y".into()])).unwrap();
        assert!(new.starts_with("a\n") && new.ends_with("\nb\n") && new.contains("\n| pyopencl | old |\n"), "{new}");
        let row = new.lines().find(|line| line.starts_with("| wgpu |")).unwrap();
        assert!(row.ends_with("| Vulkan, Mesa | wgpu of PyPI | x | y |"), "{row}");
        assert_eq!(new.lines().filter(|line| line.ends_with("| not run | not run |")).count(), PROGRAMS.len() - 2);
        assert!(with_table("no table", |_| None).is_err());
    }

    /// Sources of the programs exist, and hashes of the packages.
    #[test]
    fn sources_and_packages_of_the_programs_are_there() {
        let folder = crate::root().join(SOURCES);
        let requirements = fs::read_to_string(folder.join("requirements.txt")).unwrap();
        for program in PROGRAMS {
            for word in program.command.split(' ').filter(|word| word.ends_with(".py") || word.ends_with(".sh")) {
                assert!(folder.join(word).exists(), "{word}");
            }
            if let Some(name) = program.pypi {
                assert!(requirements.contains(&format!("\n{name}==")), "{name}");
            }
            assert!(!program.command.contains(['\t', '\n']) && !program.debian.is_empty(), "{}", program.name);
        }
    }
}
