// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the result of an item rests on: the Rust items that its mutants change, its rows, the tests that claim it.

use std::collections::BTreeSet;

use anyhow::Result;

use super::binaries::Claim;
use super::hash::hash;
use super::items::Items;
use super::rows::{self, Row};
use super::tokens::{self, Shown};
use crate::fidelity::claims;
use crate::fidelity::index::{Index, Test};

/// Rows, code and tests.
pub struct Basis {
    /// The rows of all mutants.
    pub rows: Vec<Row>,
    /// The Rust items that may have mutants.
    pub code: Items,
    /// The tests that claim items.
    pub index: Index,
}

impl Basis {
    /// Makes a basis of its parts.
    pub fn new(rows: Vec<Row>, code: Items, index: Index) -> Self {
        Self { rows, code, index }
    }

    /// The basis of the checkout.
    pub fn read() -> Result<Self> {
        Ok(Self::new(rows::read()?, Items::read()?, Index::read()?))
    }

    /// Hash of what the result of `item` rests on: of tokens, so that comments, moves and other code in the same files do
    /// not change it.
    pub fn hash(&self, item: &str) -> String {
        let mut parts = BTreeSet::new();
        for row in self.rows.iter().filter(|row| row.item == item) {
            let (find, replace) = (Shown(&row.find), Shown(&row.replace));
            parts.insert(format!("row {} {} {find} {replace}\n", row.number, row.path));
            if let Ok(place) = row.place(&self.code) {
                parts.insert(format!("code {} {}\n", row.path, hash(self.code.text(place.item).as_bytes())));
            }
        }
        parts.extend(self.tests(item).map(|test| format!("test {} {}\n", test.name, test.hash)));
        hash(parts.into_iter().collect::<String>().as_bytes())
    }

    /// The tests that claim `item`, without lines of IGT lists.
    pub fn tests(&self, item: &str) -> impl Iterator<Item = &Test> {
        let item = claims::Claim::of(item);
        let names = move |test: &&Test| {
            let item = item.as_ref();
            item.is_some_and(|item| test.claims.iter().any(|claim| claim.names(&item.document, item.first)))
        };
        self.index.tests.iter().filter(|test| !test.is_of_list()).filter(names)
    }

    /// Returns whether the test of a claim has random inputs: its function, or, if a function that it calls has the claim,
    /// all of them in the file.
    pub fn is_random(&self, claim: &Claim) -> bool {
        let in_file: Vec<&Test> = self.tests(&claim.item).filter(|test| test.path == claim.path).collect();
        let name = claim.test.rsplit("::").next().unwrap_or_default();
        match in_file.iter().find(|test| test.name == name) {
            Some(test) => test.random,
            None => !in_file.is_empty() && in_file.iter().all(|test| test.random),
        }
    }

    /// Names of the functions that claim any of these items.
    pub fn claiming(&self, items: &BTreeSet<String>) -> BTreeSet<&str> {
        items.iter().flat_map(|item| self.tests(item)).map(|test| test.name.as_str()).collect()
    }

    /// All items with a mutant or a test that claims them.
    pub fn items(&self) -> BTreeSet<String> {
        let claimed = self.index.tests.iter().filter(|test| !test.is_of_list()).flat_map(|test| &test.claims);
        let single = |claim: &claims::Claim| format!("{}-{:03}", claim.document, claim.first);
        self.rows.iter().map(|row| row.item.clone()).chain(claimed.map(single)).collect()
    }
}

impl Items {
    /// The tokens of an item, without comments.
    fn text(&self, item: &super::items::Item) -> String {
        let (Some(first), Some(last)) = (item.tokens.first(), item.tokens.last()) else { return String::new() };
        let source = &self.sources[item.source].text[first.at.start..last.at.end];
        source.parse().map(tokens::text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TESTS: &str = "fn p() { proves!(V1_001, \"\") }\nproptest! { fn q(x in 0..3) { proves!([V1_001, V1_002], \"\") } }\n\
        fn helper() { proves!(V1_003, \"\") }";

    fn basis(find: &str, code: &str, tests: &str) -> Basis {
        let row = Row {
            item: "V1-001".into(),
            number: 1,
            path: "gate::at".into(),
            find: find.into(),
            replace: "a <= b".into(),
        };
        let mut items = Items::default();
        items.add("src/gate.rs".into(), code.into()).unwrap();
        let files = BTreeMap::from([("a/tests/t.rs".to_owned(), tests.to_owned())]);
        Basis::new(vec![row], items, Index::of(&files).unwrap())
    }

    #[test]
    fn a_hash_is_of_the_mutated_item_its_rows_and_its_tests() {
        const CODE: &str = "fn at(a: u32, b: u32) -> bool { a < b }\nfn other() {}";
        let hash = |find: &str, code: &str, tests: &str| basis(find, code, tests).hash("V1-001");
        let before = hash("a < b", CODE, TESTS);
        let moved = "fn other() { 1; }\n// A comment.\nfn at(a: u32, b: u32) -> bool {\n  a < b // another\n}";
        assert_eq!(before, hash("a  <  b", moved, &format!("fn more() {{}}\n// {TESTS}\n{TESTS}")));
        assert_ne!(before, hash("a < b", "fn at(a: u32, b: u32) -> bool { a < b && b > 1 }", TESTS));
        assert_eq!(before, hash("a < b", CODE, &TESTS.replace("V1_001, \"\") }\n", "[V1_001, V1_009], \"A\"); }\n")));
        assert_ne!(before, hash("a < b", CODE, &TESTS.replace("V1_001, \"\") }\n", "V1_001, \"\"); x() }\n")));
        assert_ne!(before, hash("a < b", CODE, &format!("{TESTS}\nfn r() {{ proves!(V1_001, \"\") }}")));
        let other = |tests: &str| basis("a < b", CODE, tests).hash("V1-002");
        assert_eq!(other(TESTS), other(&TESTS.replace("fn p() {", "fn p() { x();")));
    }

    #[test]
    fn a_claim_is_random_if_its_test_is() {
        let basis = basis("a < b", "fn at() {}", TESTS);
        let random = |test: &str, item: &str| {
            let claim = Claim { item: item.into(), test: test.into(), path: "a/tests/t.rs".into(), table: false };
            basis.is_random(&claim)
        };
        assert!(!random("x::t::p", "V1-001") && random("x::t::q", "V1-001") && random("x::t::calls_q", "V1-002"));
        assert!(!random("x::t::calls_p_or_q", "V1-001") && !random("x::t::calls_helper", "V1-003"));
        assert_eq!(basis.items(), BTreeSet::from(["V1-001", "V1-002", "V1-003"].map(str::to_owned)));
        assert_eq!(basis.claiming(&BTreeSet::from(["V1-001".to_owned()])), BTreeSet::from(["p", "q"]));
    }
}
