// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! How coarse a mutant is: with how many of the unit tests of its package it fails.
//!
//! A mutant is the wrong rule next to the right one, so few tests fail. One that fails more than a fifth of the unit tests
//! breaks more than a rule, and that a test fails with it shows little.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::binaries::{self, Test};
use super::hash::hash;
use super::tree::{Mutant, VARIABLE};

/// Only tests that take at most this long without a mutant count.
const QUICK: Duration = Duration::from_millis(100);

/// Number of tests that are run first. All others run only if more than a tenth of these fail.
const SAMPLE: usize = 100;

/// A mutant is coarse if more tests fail than one in this number.
const SHARE: usize = 5;

/// The quick unit tests of a package, which are in one binary.
struct Package {
    binary: PathBuf,
    folder: PathBuf,
    /// Names, in an order that does not depend on their modules.
    names: Vec<String>,
    /// Duration of all of them without a mutant.
    duration: Duration,
}

/// The quick unit tests by package.
pub struct Units {
    packages: BTreeMap<String, Package>,
}

impl Units {
    /// Selects unit tests from `tests`, which are named `PACKAGE::NAME`; those of other binaries are named
    /// `PACKAGE::BINARY::NAME`.
    pub fn new(tests: &[(String, Test)]) -> Self {
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for (name, test) in tests.iter().filter(|(_, test)| test.duration <= QUICK) {
            let Some(package) = name.strip_suffix(&format!("::{}", test.name)).filter(|name| !name.contains("::"))
            else {
                continue;
            };
            let package = packages.entry(package.to_owned()).or_insert_with(|| Package {
                binary: test.binary.clone(),
                folder: test.folder.clone(),
                names: Vec::new(),
                duration: Duration::ZERO,
            });
            package.names.push(test.name.clone());
            package.duration += test.duration;
        }
        packages.values_mut().for_each(|package| package.names.sort_by_key(|name| hash(name.as_bytes())));
        Self { packages }
    }

    /// Returns the share of unit tests that fail, such as `40 of 100`, if the mutant is coarse.
    pub fn coarse(&self, mutant: &Mutant) -> Option<String> {
        self.of(&mutant.paths).into_iter().find_map(|package| package.coarse(mutant.switch))
    }

    /// The packages of source files.
    fn of<'p>(&self, paths: impl IntoIterator<Item = &'p String>) -> Vec<&Package> {
        let names: BTreeSet<String> = paths.into_iter().map(|path| binaries::test_package_of(path)).collect();
        names.iter().filter_map(|name| self.packages.get(name)).collect()
    }
}

impl Package {
    fn coarse(&self, switch: u32) -> Option<String> {
        let (sample, all) = (self.names.len().min(SAMPLE), self.names.len());
        let few = self.failing(&self.names[..sample], switch);
        if few * 2 * SHARE <= sample {
            return None;
        }
        let failing = few + self.failing(&self.names[sample..], switch);
        (failing * SHARE > all).then(|| format!("{failing} of {all}"))
    }

    /// Returns how many of the tests fail, or a number above a fifth of them. The process is started again after a test that does not return to it.
    fn failing(&self, names: &[String], switch: u32) -> usize {
        let mut left: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut failing = 0;
        // If each test ends the process, those beyond a fifth need not run.
        while !left.is_empty() && failing * SHARE <= names.len() {
            let ended = self.run(&left, switch);
            failing += ended.values().filter(|passed| !**passed).count();
            left.retain(|name| !ended.contains_key(*name));
            // Tests run in the order of their names: the first without a result has ended the process, or did not end.
            failing += usize::from(left.pop_first().is_some());
        }
        failing
    }

    /// Runs the tests in one process. Returns those that ended, and whether they passed.
    fn run(&self, names: &BTreeSet<&str>, switch: u32) -> BTreeMap<String, bool> {
        let mut command = binaries::command(&self.binary, &self.folder);
        command.args(names).args(["--exact", "--test-threads=1"]).env(VARIABLE, switch.to_string());
        command.stdout(Stdio::piped());
        let Ok(mut child) = command.spawn() else { return BTreeMap::new() };
        let output = child.stdout.take();
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.map(|mut output| output.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let share = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let all = u32::try_from(self.names.len()).unwrap_or(u32::MAX).max(1);
        binaries::ends_well(child, Duration::from_secs(5) + self.duration * 3 / all * share);
        let text = reader.join().unwrap_or_default();
        text.lines().filter_map(result).collect()
    }
}

/// Parses `test NAME ... ok`, as libtest prints it.
fn result(line: &str) -> Option<(String, bool)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.split(" - should panic").next()?;
    match result.split([' ', ',']).next()? {
        "ok" => Some((name.into(), true)),
        "FAILED" => Some((name.into(), false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(package: &str, name: &str, milliseconds: u64) -> (String, Test) {
        let test = Test {
            binary: "a".into(),
            folder: "b".into(),
            name: name.rsplit("//").next().unwrap().into(),
            duration: Duration::from_millis(milliseconds),
        };
        (format!("{package}::{}", name.replace("//", "::")), test)
    }

    #[test]
    fn quick_tests_of_libraries_count() {
        let tests = [
            test("arctic-a", "m::t", 5),
            test("arctic-a", "m::u", 7),
            test("arctic-a", "m::slow", 200),
            test("arctic-a", "binary//m::t", 5),
        ];
        let units = Units::new(&tests);
        let package = &units.packages["arctic-a"];
        let names: BTreeSet<&str> = package.names.iter().map(String::as_str).collect();
        assert_eq!((names, package.duration), (BTreeSet::from(["m::t", "m::u"]), Duration::from_millis(12)));
    }

    /// The names of tests are those of a run.
    #[test]
    fn unit_tests_of_a_source_file_are_found_in_every_package() {
        for (path, package) in [
            ("device-model/base/src/host.rs", "arctic-device-model/base"),
            ("device-model/gen6/src/gt.rs", "arctic-device-model/gen6"),
            ("device-model/xehpg/src/gt.rs", "arctic-device-model/xehpg"),
            ("sriov/src/lib.rs", "arctic-sriov"),
            ("afuc/src/lib.rs", "arctic-afuc"),
            ("src/card.rs", "arctic-gpu"),
        ] {
            let units = Units::new(&[test(package, "m::t", 5), test("arctic-other", "m::t", 5)]);
            assert_eq!(units.of(&[path.to_owned()]).len(), 1, "{path}");
        }
    }

    #[test]
    fn results_are_parsed() {
        assert_eq!(result("test a::b ... ok"), Some(("a::b".into(), true)));
        assert_eq!(result("test a::b - should panic ... ok"), Some(("a::b".into(), true)));
        assert_eq!(result("test a::b ... FAILED"), Some(("a::b".into(), false)));
        assert_eq!(result("test a::b ... "), None);
        assert_eq!(result("running 2 tests"), None);
    }

    /// A shell script as the binary: `fails` fails, and `ends` ends the process.
    #[test]
    fn a_test_that_ends_the_process_fails_alone() {
        let folder = std::env::temp_dir().join(format!("arctic-units-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let binary = folder.join("binary");
        let script = "for name in \"$@\"; do case $name in --*) exit 0;; *ends) echo \"test $name ... \"; exit 1;;\n\
            *fails) echo \"test $name ... FAILED\";; *) echo \"test $name ... ok\";; esac; done\n";
        std::fs::write(&binary, format!("#!/bin/sh\n{script}")).unwrap();
        std::fs::set_permissions(&binary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let package = |all: &[&str]| Package {
            binary: binary.clone(),
            folder: folder.clone(),
            names: names(all),
            duration: Duration::ZERO,
        };
        let all = ["a", "b::ends", "c::fails", "d", "e", "f", "g", "h", "i", "j", "k"];
        assert_eq!(package(&[]).failing(&names(&all), 1), 2);
        assert_eq!(package(&["a", "b", "c", "d", "e::fails"]).coarse(1), None);
        assert_eq!(package(&["a", "b", "c::ends", "e::fails"]).coarse(1), Some("1 of 4".into()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
