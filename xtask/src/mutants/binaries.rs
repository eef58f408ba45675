// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The test binaries with mutants: their tests, the claims that these execute, and runs with a mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use arctic_fidelity::claims;
use serde_json::Value;

use super::tree::VARIABLE;
use super::units::Units;
use crate::{in_parallel, root};

const BUILD: &[&str] = &[
    "test",
    "--no-run",
    "--quiet",
    "--profile=mutants",
    "--message-format=json-render-diagnostics",
    "--lib",
    "--tests",
];

/// The packages that may claim items, with their directories. A directory follows those in it.
const PACKAGES: &[(&str, &str)] = &[
    ("sriov/", "arctic-sriov"),
    ("device-model/base/", "arctic-base"),
    ("device-model/gen6/", "arctic-gen6"),
    ("device-model/xehpg/", "arctic-xehpg"),
    ("device-model/", "arctic-device-model"),
    ("afuc/", "arctic-afuc"),
    ("eu/", "arctic-eu"),
    ("", "arctic-gpu"),
];

/// The package of a source file.
pub fn package_of(path: &str) -> &'static str {
    entry_of(path).map_or("arctic-gpu", |(_, package)| package)
}

/// The package of a source file, as the names of its tests begin ([`test_package`]).
pub fn test_package_of(path: &str) -> String {
    test_package(entry_of(path).map_or("", |(folder, _)| folder))
}

/// The entry of [`PACKAGES`] for a source file; `None` for one of the library.
fn entry_of(path: &str) -> Option<&'static (&'static str, &'static str)> {
    PACKAGES.iter().find(|(folder, _)| path.starts_with(folder))
}

/// What the names of the tests of the package in `folder` begin with, such as `arctic-device-model/gen6`.
fn test_package(folder: &str) -> String {
    match folder.trim_end_matches('/') {
        "" => "arctic-gpu".to_owned(),
        folder => format!("arctic-{folder}"),
    }
}

/// The packages whose tests may be in a file: all, if it is one that they share.
pub fn packages_of(path: &str) -> Vec<&'static str> {
    match path.starts_with("test-support/") {
        true => PACKAGES.iter().map(|(_, package)| *package).collect(),
        false => vec![package_of(path)],
    }
}

/// A test of a binary.
#[derive(Clone)]
pub struct Test {
    pub binary: PathBuf,
    /// Directory in which cargo runs the binary.
    pub folder: PathBuf,
    pub name: String,
    /// Duration without a mutant.
    pub duration: Duration,
}

/// A claim that a test executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Such as `V8-089`.
    pub item: String,
    /// The test, as `PACKAGE::NAME`.
    pub test: String,
    /// Source file of the claim.
    pub path: String,
    /// The test compares a table with a copy of its own.
    pub table: bool,
}

/// What the tests without a mutant show.
pub struct Found {
    /// The tests that claim items, by name.
    pub tests: BTreeMap<String, Test>,
    pub claims: Vec<Claim>,
    /// The unit tests of the packages.
    pub units: Units,
}

/// Builds the tests of `packages` in the copy in `tree`, and runs the unit tests and those with these names without a mutant.
/// `claiming` are the files with claims. A claim is in the function of the test, so other tests claim nothing that is wanted.
///
/// # Errors
/// If the build or a test fails.
pub fn claims(
    tree: &Path,
    packages: &BTreeSet<&str>,
    claiming: &BTreeSet<&str>,
    names: &BTreeSet<&str>,
) -> Result<Found> {
    let binaries = build(tree, packages, claiming)?;
    let mut tests = Vec::new();
    for (prefix, binary, folder) in binaries {
        let is_wanted = |name: &String| !prefix.contains("::") || names.contains(last(name));
        for name in list(&binary)?.into_iter().filter(is_wanted) {
            let test = Test { binary: binary.clone(), folder: folder.clone(), name, duration: Duration::ZERO };
            tests.push((format!("{prefix}::{}", test.name), test));
        }
    }
    let lines = baseline(&mut tests)?;
    let names: BTreeMap<(String, String), String> =
        tests.iter().map(|(name, test)| ((file_name(&test.binary), test.name.clone()), name.clone())).collect();
    let claims: Vec<Claim> = lines.iter().filter_map(|line| parse(line, &names)).collect();
    let claiming: BTreeSet<&String> = claims.iter().map(|claim| &claim.test).collect();
    let units = Units::new(&tests);
    let tests = tests.into_iter().filter(|(name, _)| claiming.contains(name)).collect();
    Ok(Found { tests, claims, units })
}

/// Builds the test binaries of `packages` in the copy in `tree`. Returns the prefix of their tests' names, the binary, and the directory
/// of the package, of those that may claim items: `claiming` are the files with claims.
pub fn build(
    tree: &Path,
    packages: &BTreeSet<&str>,
    claiming: &BTreeSet<&str>,
) -> Result<Vec<(String, PathBuf, PathBuf)>> {
    eprintln!("building the tests with mutants");
    let started = Instant::now();
    let output = Command::new("cargo")
        .args(BUILD)
        .args(packages.iter().map(|package| format!("--package={package}")))
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", root().join("target/mutants/build"))
        // Code that a mutant does not reach is not a defect of the copy.
        .env("RUSTFLAGS", "--cap-lints=allow")
        .stderr(Stdio::inherit())
        .output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "the tests with mutants do not build");
    let mut binaries = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let (Some(binary), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str()) else {
            continue;
        };
        let (target, folder) = (&message["target"], Path::new(manifest).parent().unwrap_or(tree));
        let name = target["name"].as_str().unwrap_or_default();
        let source = target["src_path"].as_str().and_then(|path| Path::new(path).strip_prefix(tree).ok());
        if message["profile"]["test"] != true || !source.is_some_and(|source| may_claim(source, claiming)) {
            continue;
        }
        let package = test_package(folder.strip_prefix(tree).ok().and_then(Path::to_str).unwrap_or_default());
        let is_library = target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"));
        let prefix = if is_library { package } else { format!("{package}::{name}") };
        binaries.push((prefix, binary.into(), folder.into()));
    }
    eprintln!("built in {:.0} s", started.elapsed().as_secs_f64());
    Ok(binaries)
}

/// Returns whether a file with claims may belong to the target whose first source is `source`: it lies in the folder of a
/// target `main.rs` or `lib.rs`, or is the source itself. Files in no folder of a target, such as those of
/// `test-support`, may belong to every target.
fn may_claim(source: &Path, claiming: &BTreeSet<&str>) -> bool {
    let has_folder = source.file_name().is_some_and(|name| name == "main.rs" || name == "lib.rs");
    let own = if has_folder { source.parent().unwrap_or(source) } else { source };
    claiming.iter().any(|path| Path::new(path).starts_with(own) || path.starts_with("test-support/"))
}

/// The tests of a binary that are not ignored.
fn list(binary: &Path) -> Result<Vec<String>> {
    let names = |arguments: &[&str]| -> Result<BTreeSet<String>> {
        let output = Command::new(binary).args(arguments).output();
        let output = output.with_context(|| format!("cannot run {}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    };
    let ignored = names(&["--list", "--format=terse", "--ignored"])?;
    Ok(names(&["--list", "--format=terse"])?.difference(&ignored).cloned().collect())
}

/// Runs all tests once without a mutant, notes their durations, and returns the lines of claims.
fn baseline(tests: &mut [(String, Test)]) -> Result<Vec<String>> {
    let folder = root().join("target/mutants/claims");
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    eprintln!("running {} tests without a mutant", tests.len());
    let started = Instant::now();
    let measured = in_parallel(tests.len(), |n| {
        let started = Instant::now();
        let passed = tests[n].1.run(&[(claims::VARIABLE, folder.as_os_str())], Duration::from_secs(300));
        (started.elapsed(), passed)
    });
    let mut failed = Vec::new();
    for ((name, test), (duration, passed)) in tests.iter_mut().zip(measured) {
        test.duration = duration;
        if !passed {
            failed.push(name.clone());
        }
    }
    ensure!(failed.is_empty(), "without a mutant, these tests fail: {}", failed.join(" "));
    eprintln!("done in {:.0} s", started.elapsed().as_secs_f64());
    let mut lines = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        lines.extend(text.lines().map(str::to_owned));
    }
    Ok(lines)
}

/// Parses a line of `arctic_fidelity::claims`. `names` has the tests' names by binary and name in it; a claim of
/// something else, such as a helper process of a test, is none.
fn parse(line: &str, names: &BTreeMap<(String, String), String>) -> Option<Claim> {
    let [binary, test, item, kind, path, _rule] = *line.split('\t').collect::<Vec<_>>() else { return None };
    let test = names.get(&(binary.to_owned(), test.to_owned()))?.clone();
    Some(Claim { item: item.into(), test, path: path.into(), table: kind == "table" })
}

/// The name of a test's function.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Test {
    /// Runs the test with the mutant that `switch` selects. A test that does not end has not passed.
    pub fn passes_with(&self, switch: u32) -> bool {
        let limit = Duration::from_secs(20).max(self.duration * 10);
        self.run(&[(VARIABLE, switch.to_string().as_ref())], limit)
    }

    fn run(&self, environment: &[(&str, &std::ffi::OsStr)], limit: Duration) -> bool {
        let mut command = command(&self.binary, &self.folder);
        command.args([self.name.as_str(), "--exact", "--nocapture"]).envs(environment.iter().copied());
        command.stdout(Stdio::null());
        command.spawn().is_ok_and(|child| ends_well(child, limit))
    }
}

/// A command that runs a test binary as cargo does.
pub fn command(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    // A property test that fails with a mutant must not write its case to the source tree.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Waits for the process, at most for the time `limit`.
pub fn ends_well(mut child: Child, limit: Duration) -> bool {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if started.elapsed() < limit => thread::sleep(pause),
            Ok(None) | Err(_) => {
                drop(child.kill());
                drop(child.wait());
                return false;
            }
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_of_a_test() {
        let names = BTreeMap::from([(("a-1".to_owned(), "m::t".to_owned()), "arctic-a::m::t".to_owned())]);
        let claim =
            |table| Claim { item: "V8-089".into(), test: "arctic-a::m::t".into(), path: "a/m.rs".into(), table };
        assert_eq!(parse("a-1\tm::t\tV8-089\t\ta/m.rs\tEMR", &names), Some(claim(false)));
        assert_eq!(parse("a-1\tm::t\tV8-089\ttable\ta/m.rs\tEMR", &names), Some(claim(true)));
        assert_eq!(parse("a-1\tm::u\tV8-089\t\ta/m.rs\tEMR", &names), None);
    }

    #[test]
    fn a_target_claims_items_if_one_of_its_files_does() {
        let claiming = BTreeSet::from(["device-model/tests/races/tlb.rs", "src/card.rs"]);
        let may = |source: &str| may_claim(Path::new(source), &claiming);
        assert!(may("device-model/tests/races/main.rs") && may("src/lib.rs"));
        assert!(!may("device-model/tests/hostile/main.rs") && !may("device-model/xehpg/src/lib.rs"));
        assert!(!may("device-model/tests/races.rs"));
        assert!(may_claim(Path::new("sriov/src/lib.rs"), &BTreeSet::from(["test-support/src/mi.rs"])));
    }

    #[test]
    fn a_source_belongs_to_the_innermost_package() {
        let sources = [
            ("device-model/gen6/src/gt.rs", "arctic-gen6"),
            ("device-model/tests/races/main.rs", "arctic-device-model"),
            ("cli/tests/a.rs", "arctic-gpu"),
            ("sriov/src/a.rs", "arctic-sriov"),
            ("afuc/tests/a.rs", "arctic-afuc"),
        ];
        assert_eq!(sources.map(|(path, _)| package_of(path)), sources.map(|(_, package)| package));
        // The names of tests have the folder in place of the package.
        let names = sources.map(|(path, _)| test_package_of(path));
        let expected = ["arctic-device-model/gen6", "arctic-device-model", "arctic-gpu", "arctic-sriov", "arctic-afuc"];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_test_that_does_not_end_has_not_passed() {
        let spawn = |arguments: &[&str]| Command::new("sleep").args(arguments).spawn().unwrap();
        assert!(ends_well(spawn(&["0"]), Duration::from_secs(30)));
        assert!(!ends_well(spawn(&["60"]), Duration::from_millis(10)));
        assert!(!ends_well(Command::new("false").spawn().unwrap(), Duration::from_secs(30)));
    }
}
