// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report on which items of the documents the card implements exactly, as the drivers do, approximately, or not.
//!
//! `cargo xtask fidelity` makes the report from the sources and writes it to `docs/fidelity.tsv`, a line for each item. The table is
//! embedded in this package with the documents, which state the rules, so that the program has both without a checkout.

mod page;
mod table;

use serde::{Deserialize, Serialize};

pub use table::TableError;

use crate::document;

/// The command that makes `docs/fidelity.tsv` and `FIDELITY.md`.
pub const REGENERATE: &str = "cargo xtask fidelity";

/// The table with which this package was built.
const TABLE: &str = include_str!("../docs/fidelity.tsv");

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// Conformance of the card to an item.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tests that claim it fail with each of its mutants, and no deviation is known
    Exact,
    /// Not as the document says, but as Linux xe or i915 does in the file that is named; tests prove it as for exact
    Departs,
    /// Implemented, with the deviation described in the note; a test claims it
    Approximate,
    /// Not implemented, for the reason given in the note
    Absent,
    /// Claimed by a test, but a mutant survives, it has none, or they have not been run
    Unproven,
    /// Proved by an earlier run of the mutants; the code with its mutants or a test that claims it has changed since
    Stale,
    /// Claimed by no test and not listed in docs/fidelity.toml
    Unassessed,
}

impl Status {
    /// All statuses, best first.
    pub const ALL: [Self; 7] =
        [Self::Exact, Self::Departs, Self::Approximate, Self::Absent, Self::Unproven, Self::Stale, Self::Unassessed];

    /// The status as text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Departs => "departs",
            Self::Approximate => "approximate",
            Self::Absent => "absent",
            Self::Unproven => "not proven",
            Self::Stale => "stale",
            Self::Unassessed => "not assessed",
        }
    }
}

/// A document with items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    /// Name in item numbers, such as `V8`.
    pub name: String,
    /// Title.
    pub title: String,
}

/// An item of a document and its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Item ID, as referenced by code, tests and notes, such as `V8-052`.
    pub id: String,
    /// Document that contains it, such as `V8`.
    pub document: String,
    /// Letter or number of the group to which it belongs.
    pub group: String,
    /// The mechanism that the group specifies.
    pub mechanism: String,
    /// The item's title.
    pub title: String,
    /// Provenance class, such as `DOC` or `PTR`: how much of the item is stated in the document itself.
    pub class: String,
    /// The facts, and their locations in the document.
    pub facts: Vec<String>,
    /// The status.
    pub status: Status,
    /// Tests that claim it, and lines of IGT lists about it, as `path::name`.
    pub tests: Vec<String>,
    /// The code with the mutants, or a test that claims the item, has changed since the mutants were run.
    pub stale: bool,
    /// The deviation, or the reason why it is absent.
    pub note: Option<String>,
    /// The driver's file that does what the card does, for an item that departs from the document.
    pub driver: Option<String>,
}

impl Item {
    /// Number within the document.
    pub fn number(&self) -> Option<u16> {
        self.id.rsplit_once('-')?.1.parse().ok()
    }
}

/// Class of an item that no document in `docs/spec` states.
pub const DEFAULT_CLASS: &str = "doc";

/// Number of items with each status, in the order of [`Status::ALL`].
pub type Counts = [usize; Status::ALL.len()];

/// A group of a document and the counts of its items by status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Letter or number in the document.
    pub letter: &'a str,
    /// The mechanism that it specifies.
    pub mechanism: &'a str,
    /// Number of items by status.
    pub counts: Counts,
}

/// Every item of every document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The documents.
    pub documents: Vec<Document>,
    /// All items, by document.
    pub items: Vec<Item>,
}

impl Report {
    /// The report with which this package was built, with the rules that the documents state.
    ///
    /// # Errors
    /// If the table or a document is not in its form.
    pub fn of_this_build() -> Result<Self, TableError> {
        let mut report = Self::parse(TABLE)?;
        let documents = document::Document::parse_all(TEXTS.iter().copied()).map_err(TableError::Document)?;
        for item in &mut report.items {
            let number = item.number();
            let document = documents.iter().find(|document| document.name == item.document);
            let rule = document.and_then(|document| document.rules.iter().find(|rule| Some(rule.number) == number));
            if let Some(rule) = rule {
                (item.class, item.facts) = (rule.class.clone(), rule.facts.clone());
            }
        }
        Ok(report)
    }

    /// Parses `docs/fidelity.tsv`. The items have no facts, and the class [`DEFAULT_CLASS`].
    ///
    /// # Errors
    /// If the text is not in this form.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        table::parse(text)
    }

    /// The text of `docs/fidelity.tsv`: a line for each document, group and item, in their order.
    pub fn table(&self) -> String {
        table::text(self)
    }

    /// Finds the item named by `text` in relaxed notation: `V8-052`, `v8-52`.
    ///
    /// # Errors
    /// A message that names the nearest item.
    pub fn find(&self, text: &str) -> Result<&Item, String> {
        let wanted = text.trim().to_ascii_uppercase();
        let (document, digits) = wanted.rsplit_once('-').unwrap_or(("", ""));
        let number = digits.parse::<u16>().ok().filter(|_| self.documents.iter().any(|known| known.name == document));
        let distance = |item: &Item| match (number, item.number()) {
            (Some(number), Some(other)) if item.document == document => usize::from(other.abs_diff(number)),
            (Some(_), _) => usize::MAX,
            _ => edits(&item.id, &wanted),
        };
        let nearest = self.items.iter().min_by_key(|item| distance(item)).ok_or("there are no items")?;
        if distance(nearest) == 0 {
            return Ok(nearest);
        }
        Err(format!("no document has an item {text}; the nearest is {} ({})", nearest.id, nearest.title))
    }

    /// The groups of `document` in document order.
    pub fn groups(&self, document: &str) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for item in self.items.iter().filter(|item| item.document == document) {
            if groups.last().is_none_or(|group| group.letter != item.group) {
                groups.push(Group { letter: &item.group, mechanism: &item.mechanism, counts: Counts::default() });
            }
            if let Some(group) = groups.last_mut() {
                group.counts[item.status as usize] += 1;
            }
        }
        groups
    }

    /// The text of `FIDELITY.md`: counts by mechanism.
    pub fn summary(&self) -> String {
        page::summary(self)
    }

    /// A Markdown page of every item with its note and tests.
    pub fn every_item(&self) -> String {
        page::every_item(self)
    }
}

/// Levenshtein distance of `a` and `b`.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (n, c) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], n + 1);
        for (m, d) in b.chars().enumerate() {
            let change = diagonal + usize::from(c != d);
            diagonal = row[m + 1];
            row[m + 1] = change.min(row[m] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, group: &str, title: &str, status: Status) -> Item {
        let (document, _) = id.split_once('-').unwrap();
        let [document, group, mechanism, title] = [document, group, "Rings", title].map(str::to_owned);
        let (facts, tests, note, driver) = Default::default();
        let (id, class) = (id.into(), DEFAULT_CLASS.into());
        Item { id, document, group, mechanism, title, class, facts, status, tests, stale: false, note, driver }
    }

    fn report() -> Report {
        let items = vec![
            item("V1-001", "A", "Start", Status::Exact),
            item("V1-002", "A", "End", Status::Approximate),
            item("V1-010", "B", "Slots", Status::Stale),
            item("V1-011", "B", "Doors", Status::Exact),
        ];
        Report { documents: vec![Document { name: "V1".into(), title: "One".into() }], items }
    }

    #[test]
    fn the_table_is_read_back() {
        let mut report = report();
        report.items[0].tests = vec!["a/b.rs::c".into(), "d.rs::e".into()];
        report.items[1].note = Some("Late.".into());
        report.items[2].stale = true;
        report.items[3].driver = Some("xe: xe_lrc.c, f".into());
        let text = report.table();
        assert_eq!(Report::parse(&text), Ok(report));
        // Three lines of headings.
        assert_eq!(text.lines().count(), 4 + 3, "{text}");
    }

    #[test]
    fn an_error_names_the_line() {
        let text = report().table();
        for (good, bad, expected) in [
            ("\texact\t", "\tgood\t", "line 3: there is no status good"),
            ("V1\tOne", "V1", "line 1: it has 1 columns"),
            ("V1-002", "V2-002", "line 4: V2-002 is not below its document"),
            ("V1\tA\tRings\n", "", "line 2: V1-001 is not below its group"),
        ] {
            let error = Report::parse(&text.replacen(good, bad, 1)).unwrap_err();
            assert_eq!(error.to_string(), format!("docs/fidelity.tsv {expected}"));
        }
    }

    /// Each item of the documents has a line, and its rule.
    #[test]
    fn this_build_has_the_rules_of_all_documents() {
        let report = Report::of_this_build().unwrap();
        let documents = document::Document::parse_all(TEXTS.iter().copied()).unwrap();
        for document in &documents {
            let items: Vec<_> = report.items.iter().filter(|item| item.document == document.name).collect();
            assert_eq!(items.len(), document.rules.len(), "{}", document.name);
            assert!(items.iter().all(|item| !item.facts.is_empty()), "{}", document.name);
        }
    }

    #[test]
    fn groups_have_counts_by_status() {
        let report = report();
        let counts: Vec<_> = report.groups("V1").iter().map(|group| (group.letter, group.counts)).collect();
        assert_eq!(counts, [("A", [1, 0, 1, 0, 0, 0, 0]), ("B", [1, 0, 0, 0, 0, 1, 0])]);
    }

    #[test]
    fn unknown_item_error_names_the_nearest_item() {
        let report = report();
        for text in ["V1-010", "v1-10", " V1-0010 "] {
            assert_eq!(report.find(text).map(|item| &*item.id), Ok("V1-010"));
        }
        for (text, nearest) in [("V1-008", "V1-010 (Slots)"), ("V1-999", "V1-011 (Doors)"), ("1-002", "V1-002 (End)")] {
            let error = format!("no document has an item {text}; the nearest is {nearest}");
            assert_eq!(report.find(text).map(|item| &*item.id), Err(error));
        }
        assert!(report.find("").is_err() && report.find("-").is_err() && report.find("V1-").is_err());
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(
            [edits("V8-052", "V8-052"), edits("V8-052", "V-052"), edits("", "abc"), edits("ab", "ba")],
            [0, 1, 3, 2]
        );
    }
}
