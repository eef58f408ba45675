// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The references to items in the repository: tests that claim them, lines of IGT lists, code and rows of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use anyhow::{Context, Result};

use super::claims::Claim;
use super::evidence::Location;
use super::source::Source;
use crate::root;

/// Directory of the IGT lists that guest tests run.
const LISTS: &str = "cli/tests/igt/";

/// Excluded sources: the report's own, the macros, `xtask` and tests of its output name items only as examples.
const OWN: [&str; 5] =
    ["cli/src/commands/fidelity.rs", "cli/tests/fidelity.rs", "cli/tests/serve/output.rs", "fidelity/", "xtask/"];

/// A test that claims items, or a line of an IGT list that is about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// File, from the repository's root.
    pub path: String,
    /// Name of the function, or of the IGT subtest.
    pub name: String,
    /// The items.
    pub claims: Vec<Claim>,
    /// It is a property, or uses random values.
    pub random: bool,
    /// Hash of its tokens; empty for a line of a list.
    pub hash: String,
}

impl Test {
    /// Returns whether it is a line of an IGT list, which only guests run.
    pub fn is_of_list(&self) -> bool {
        self.path.ends_with(".txt")
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.path, self.name)
    }
}

/// All tests and other locations that name items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// In the order of their paths and lines.
    pub tests: Vec<Test>,
    /// Locations outside the tests that name items, in the order of their paths and lines.
    pub places: Vec<(Location, Vec<Claim>)>,
}

impl Index {
    /// The index of the checkout.
    pub fn read() -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", "*.rs", LISTS])? {
            let is_list = path.starts_with(LISTS) && path.ends_with(".txt");
            let is_own = OWN.iter().any(|own| path.starts_with(own));
            if (path.ends_with(".rs") || is_list) && !is_own && root().join(&path).is_file() {
                let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
                files.insert(path, text);
            }
        }
        Self::of(&files)
    }

    /// The index of `files`, which are keyed by path from the repository's root.
    ///
    /// # Errors
    /// If a source is not Rust.
    pub fn of(files: &BTreeMap<String, String>) -> Result<Self> {
        let mut index = Self::default();
        let is_source = |path: &str, text: &str| {
            path.ends_with(".rs") && (path.starts_with("cli/tests/") || !Claim::all_in(text).is_empty())
        };
        let sources = files.iter().filter(|(path, text)| is_source(path, text));
        let sources = sources.map(|(path, text)| Source::new(path, text)).collect::<Result<Vec<_>>>()?;
        for source in &sources {
            let claiming = source.functions.iter().filter(|function| function.test && !function.claims.is_empty());
            index.tests.extend(claiming.map(|function| Test {
                path: source.path.into(),
                name: function.name.clone(),
                claims: function.claims.clone(),
                random: function.random,
                hash: function.hash.clone(),
            }));
            index.places.extend(
                source
                    .places()
                    .into_iter()
                    .map(|(line, symbol, claims)| (Location { path: source.path.into(), line, symbol }, claims)),
            );
        }
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".txt")) {
            let name = format!("\"{}\"", path.rsplit('/').next().unwrap_or(path));
            if sources.iter().any(|source| source.path.starts_with("cli/tests/") && source.contains(&name)) {
                index.tests.extend(list(path, text));
            }
        }
        Ok(index)
    }

    /// The files with tests that claim items.
    pub fn claiming(&self) -> BTreeSet<&str> {
        self.tests.iter().filter(|test| !test.is_of_list()).map(|test| test.path.as_str()).collect()
    }
}

/// Returns the lines of an IGT list that are about items: lines with a comment that names items, and lines after a comment
/// line that names items, up to the next blank line.
fn list(path: &str, text: &str) -> Vec<Test> {
    let (mut found, mut above, mut in_comment) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let (test, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut claims = Claim::all_in(comment);
        let test = test.trim();
        if test.is_empty() {
            if !in_comment {
                above.clear();
            }
            in_comment = !comment.is_empty();
            above.append(&mut claims);
            continue;
        }
        in_comment = false;
        claims.extend(above.iter().cloned());
        if !claims.is_empty() {
            let name = test.strip_prefix("igt@").unwrap_or(test).into();
            found.push(Test { path: path.into(), name, claims, random: false, hash: String::new() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Index {
        Index::of(&files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect()).unwrap()
    }

    #[test]
    fn only_tests_claim() {
        let text = "fn a() { proves!(V1_001, \"\") }\n#[cfg(test)]\nmod tests { fn b() { proves!(V1_002, \"\") } }";
        let index = of(&[("a/src/b.rs", text)]);
        assert_eq!(index.tests.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a/src/b.rs::b"]);
        assert_eq!(index.claiming(), BTreeSet::from(["a/src/b.rs"]));
        assert_eq!(index.places.len(), 1);
    }

    #[test]
    fn lists_of_guests_are_tests_if_a_guest_test_runs_them() {
        let text = "a@b\nigt@c@d # V1-001\n\n# V1-002: both of\n# V1-003\ne@f\ng@h # V1-004\n\ni@j\n";
        let runs = ("cli/tests/guest.rs", "#[test]\nfn x() { list(\"l.txt\") }\n");
        assert_eq!(of(&[("cli/tests/igt/l.txt", text)]).tests, []);
        let index = of(&[runs, ("cli/tests/igt/l.txt", text)]);
        let words = |claims: &[Claim]| claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ");
        let found: Vec<_> = index.tests.iter().map(|test| (test.to_string(), words(&test.claims))).collect();
        let expected = [("c@d", "V1-001"), ("e@f", "V1-002 V1-003"), ("g@h", "V1-004 V1-002 V1-003")];
        assert_eq!(found, expected.map(|(test, items)| (format!("cli/tests/igt/l.txt::{test}"), items.to_owned())));
    }
}
