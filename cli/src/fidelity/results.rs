// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The results of `cargo xtask mutants`, as stored in `docs/mutants.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::hash::hash;

/// All results, by item, such as `V8-089`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Results(pub BTreeMap<String, Outcome>);

/// The tests that claim an item, and those of them that failed with its mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// [`hash`] of the sources.
    pub hash: String,
    /// The source files with the mutants and with the tests that claim the item, from the repository's root.
    pub sources: BTreeSet<String>,
    /// [`hash`] of the rows of the mutants; empty, if there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rows: String,
    /// Tests that passed and claim the item, as `PACKAGE::NAME`; those of a binary other than the library as
    /// `PACKAGE::BINARY::NAME`.
    pub tests: BTreeSet<String>,
    /// Tests among them that compare a table with a copy of their own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tables: BTreeSet<String>,
    /// By mutant number: the tests that failed. None means that the mutant survived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mutants: BTreeMap<String, BTreeSet<String>>,
}

impl Outcome {
    /// Returns whether tests prove the item: every mutant failed a test, or, without mutants, a test has a copy of the
    /// table.
    pub fn proved(&self) -> bool {
        if self.mutants.is_empty() {
            return !self.tables.is_empty();
        }
        self.mutants.values().all(|fell| !fell.is_empty())
    }

    /// Returns whether one of the sources has changed since the run. `file_hash` returns the [`hash`] of a file, `None`
    /// if it does not exist.
    pub fn is_stale(&self, file_hash: impl FnMut(&str) -> Option<String>) -> bool {
        hash_of(&self.sources, file_hash) != self.hash
    }
}

impl Results {
    /// Parses `docs/mutants.toml`.
    ///
    /// # Errors
    /// A message, if the text is not in this form.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }
}

/// The text of `docs/mutants.toml`.
impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = toml::to_string_pretty(self).map_err(|_| std::fmt::Error)?;
        write!(
            f,
            "# Written by `cargo xtask mutants`. By item: the tests that claim it, and those that fail with each of\n\
            # its mutants. `arctic fidelity` reads it.\n\n{text}"
        )
    }
}

/// Hash of several files: of their paths and hashes.
pub fn hash_of(sources: &BTreeSet<String>, mut file_hash: impl FnMut(&str) -> Option<String>) -> String {
    let line = |path: &String| format!("{path} {}\n", file_hash(path).unwrap_or_default());
    hash(sources.iter().map(line).collect::<String>().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn results_are_read_back() {
        let sources = set(&["a.rs", "b.rs"]);
        let mutants = BTreeMap::from([("1".into(), set(&["c::d"])), ("2".into(), set(&[]))]);
        let outcome = Outcome { hash: "00".into(), sources, tests: set(&["c::d"]), mutants, ..Outcome::default() };
        let results = Results(BTreeMap::from([("V8-089".into(), outcome)]));
        assert_eq!(Results::parse(&results.to_string()), Ok(results));
        assert_eq!(Results::parse("[V8-089]\nhash = 1"), Err("invalid type: integer `1`, expected a string".into()));
    }

    #[test]
    fn an_item_is_proved_if_every_mutant_fell() {
        let outcome = |mutants: &[&[&str]], tables: &[&str]| Outcome {
            mutants: (1..).zip(mutants).map(|(n, fell): (u8, _)| (n.to_string(), set(fell))).collect(),
            tables: set(tables),
            ..Outcome::default()
        };
        assert!(outcome(&[&["a"], &["b", "a"]], &[]).proved());
        assert!(!outcome(&[&["a"], &[]], &["t"]).proved());
        assert!(outcome(&[], &["t"]).proved());
        assert!(!outcome(&[], &[]).proved());
    }

    #[test]
    fn a_changed_or_missing_source_makes_a_result_stale() {
        let sources = set(&["a.rs", "b.rs"]);
        let hashes = |b: Option<&'static str>| {
            move |path: &str| if path == "a.rs" { Some("1".to_owned()) } else { b.map(str::to_owned) }
        };
        let outcome = Outcome { hash: hash_of(&sources, hashes(Some("2"))), sources, ..Outcome::default() };
        assert!(!outcome.is_stale(hashes(Some("2"))));
        assert!(outcome.is_stale(hashes(Some("3"))) && outcome.is_stale(hashes(None)));
    }
}
