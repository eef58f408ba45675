// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The results of `cargo xtask mutants`, as stored in `docs/mutants.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::root;

/// Results, from the repository's root.
pub const RESULTS: &str = "docs/mutants.toml";

/// All results, by item, such as `V8-089`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Results(pub BTreeMap<String, Outcome>);

/// The tests that claim an item, and those of them that failed with its mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Hash of what the result rests on ([`super::basis::Basis::hash`]).
    pub hash: String,
    /// Tests that passed and claim the item, as `PACKAGE::NAME`; those of a binary other than the library as
    /// `PACKAGE::BINARY::NAME`.
    pub tests: BTreeSet<String>,
    /// Tests among them with random inputs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub random: BTreeSet<String>,
    /// Tests among them that compare a table with a copy of their own.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tables: BTreeSet<String>,
    /// By mutant number: the tests that failed. None means that the mutant survived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mutants: BTreeMap<String, BTreeSet<String>>,
    /// By number, mutants with which more than a fifth of the unit tests of the package fail, and how many: such a mutant
    /// breaks more than a rule.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coarse: BTreeMap<String, String>,
}

impl Outcome {
    /// Returns whether tests prove the item: every mutant that is not coarse failed a test, one of them a test without
    /// random inputs; or, without mutants, a test has a copy of the table.
    pub fn proved(&self) -> bool {
        if self.mutants.is_empty() {
            return !self.tables.is_empty();
        }
        let fell: Vec<&BTreeSet<String>> = self
            .mutants
            .iter()
            .filter(|(number, _)| !self.coarse.contains_key(*number))
            .map(|(_, fell)| fell)
            .collect();
        let directed = |fell: &&BTreeSet<String>| fell.iter().any(|test| !self.random.contains(test));
        fell.iter().all(|fell| !fell.is_empty()) && fell.iter().any(directed)
    }
}

impl Results {
    /// The results of the checkout; none, if the file does not exist.
    pub fn read() -> Result<Self> {
        Self::parse(&fs::read_to_string(root().join(RESULTS)).unwrap_or_default())
    }

    /// Parses `docs/mutants.toml`.
    ///
    /// # Errors
    /// If the text is not in this form.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|error| anyhow!("{RESULTS} cannot be read: {}", error.message()))
    }
}

/// The text of `docs/mutants.toml`.
impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = toml::to_string_pretty(self).map_err(|_| std::fmt::Error)?;
        write!(
            f,
            "# Written by `cargo xtask mutants`. By item: the tests that claim it, and those that fail with each of\n\
            # its mutants. `cargo xtask fidelity` reads it.\n\n{text}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn results_are_read_back() {
        let mutants = BTreeMap::from([("1".into(), set(&["c::d"])), ("2".into(), set(&[]))]);
        let coarse = BTreeMap::from([("2".into(), "3 of 4".into())]);
        let outcome = Outcome { hash: "00".into(), tests: set(&["c::d"]), mutants, coarse, ..Outcome::default() };
        let results = Results(BTreeMap::from([("V8-089".into(), outcome)]));
        assert_eq!(Results::parse(&results.to_string()).unwrap(), results);
        let error = Results::parse("[V8-089]\nhash = 1").unwrap_err().to_string();
        assert_eq!(error, "docs/mutants.toml cannot be read: invalid type: integer `1`, expected a string");
    }

    #[test]
    fn an_item_is_proved_if_every_mutant_fell() {
        let outcome = |mutants: &[&[&str]], tables: &[&str]| Outcome {
            mutants: (1..).zip(mutants).map(|(n, fell): (u8, _)| (n.to_string(), set(fell))).collect(),
            tables: set(tables),
            random: set(&["r", "s"]),
            coarse: BTreeMap::from([("3".into(), String::new())]),
            ..Outcome::default()
        };
        assert!(outcome(&[&["a"], &["b", "a"]], &[]).proved());
        assert!(!outcome(&[&["a"], &[]], &["t"]).proved());
        assert!(outcome(&[], &["t"]).proved());
        assert!(!outcome(&[], &[]).proved());
        // A random test counts beside a directed one; a coarse mutant, the third, does not count.
        assert!(outcome(&[&["r"], &["a"]], &[]).proved() && !outcome(&[&["r"], &["s", "r"]], &[]).proved());
        assert!(outcome(&[&["a"], &["a"], &[]], &[]).proved() && !outcome(&[&["r"], &["r"], &["a"]], &[]).proved());
    }
}
