// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports which rules of Intel's documents the card implements exactly, approximately, or not.
//!
//! The report combines three sources: the documents' numbered rules (`docs/spec`), the references in tests and code
//! (the index that `build.rs` generates from the sources with `scan.rs`), and the manually written list of deviations
//! (`docs/fidelity.toml`). A rule counts as exact only if a test that can fail names it.

mod document;
mod index;
mod page;
#[cfg(test)]
mod scan;

use serde::{Deserialize, Serialize};

use document::{Document, Rule};
use index::{Claim, Index, Place};

/// The command that regenerates `FIDELITY.md`.
pub const REGENERATE: &str = "cargo run -- fidelity --markdown > FIDELITY.md";

/// Conformance of the card to a rule.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A test that can fail names it, and no deviation is known
    Exact,
    /// Implemented, with the deviation described in the note; a test names it
    Approximate,
    /// Not implemented, for the reason given in the note
    Absent,
    /// Named by no test and not listed in docs/fidelity.toml
    Unassessed,
}

impl Status {
    /// All statuses, best first.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Approximate, Self::Absent, Self::Unassessed];

    /// The status as text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Approximate => "approximate",
            Self::Absent => "absent",
            Self::Unassessed => "not assessed",
        }
    }
}

/// The contents of `docs/fidelity.toml`.
#[derive(Deserialize)]
struct Deviations {
    /// Items that must be exact or listed.
    promised: Vec<String>,
    #[serde(default)]
    item: Vec<Deviation>,
}

/// An item that is approximate or absent.
#[derive(Clone, Deserialize)]
struct Deviation {
    id: String,
    status: Status,
    note: String,
}

/// A rule of a document and its status.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// Item ID, as referenced by code, tests and notes, such as `V8-052`.
    pub id: String,
    /// Document that contains it, such as `V8`.
    pub document: &'static str,
    /// The rule itself.
    #[serde(flatten)]
    pub rule: Rule,
    /// The status.
    pub status: Status,
    /// Tests that name it and can fail, as `path::name`.
    pub tests: Vec<String>,
    /// The deviation, or the reason why it is absent.
    pub note: Option<String>,
    /// Reasons why a test's claim may be invalid: it names a range, it asserts nothing, it does not run.
    pub doubts: Vec<String>,
    /// The code and table rows that name it.
    pub places: Vec<Location>,
}

/// A location in the sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// File, from the repository's root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Declaration or row at this location.
    pub symbol: String,
}

/// Number of items with each status, in the order of [`Status::ALL`].
pub type Counts = [usize; 4];

/// A group of a document and the counts of its items by status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// Letter in the document.
    pub letter: &'a str,
    /// The mechanism that it specifies.
    pub mechanism: &'a str,
    /// Number of items by status.
    pub counts: Counts,
}

/// Every item of every document.
pub struct Report {
    /// Names and titles of the documents.
    pub documents: Vec<(&'static str, &'static str)>,
    /// All items, by document and number.
    pub items: Vec<Item>,
    /// Errors in the claims of the sources and in `docs/fidelity.toml`; the project's tests require this to be empty.
    pub problems: Vec<String>,
}

impl Report {
    /// The report from the data that this program was built with.
    pub fn of_this_build() -> Self {
        let documents = vec![
            Document::parse("V8", "Volume 8, Command Stream Programming", include_str!("../../docs/spec/vol8.md")),
            Document::parse("V13", "Volume 13, SW/HW System Interface", include_str!("../../docs/spec/vol13.md")),
        ];
        let index = Index::parse(include_str!(concat!(env!("OUT_DIR"), "/fidelity-index.txt")));
        Self::new(&documents, &index, include_str!("../../docs/fidelity.toml"))
    }

    fn new(documents: &[Document], index: &Index, told: &str) -> Self {
        let mut problems = Vec::new();
        let told: Deviations = toml::from_str(told).unwrap_or_else(|error| {
            problems.push(format!("docs/fidelity.toml cannot be read: {}", error.message()));
            Deviations { promised: Vec::new(), item: Vec::new() }
        });
        let items: Vec<Item> = documents
            .iter()
            .flat_map(|document| document.rules.iter().map(|rule| Item::new(document.name, rule, index, &told.item)))
            .collect();
        check_deviations(&told, &items, &mut problems);
        check_claims(documents, index, &items, &mut problems);
        let documents = documents.iter().map(|document| (document.name, document.title)).collect();
        Self { documents, items, problems }
    }

    /// Finds the item named by `text` in relaxed notation: `V8-052`, `v8-52`.
    ///
    /// # Errors
    /// A message that names the nearest item.
    pub fn find(&self, text: &str) -> Result<&Item, String> {
        let wanted = text.trim().to_ascii_uppercase();
        let (document, digits) = wanted.rsplit_once('-').unwrap_or(("", ""));
        let number = digits.parse::<u16>().ok().filter(|_| self.documents.iter().any(|&(name, _)| name == document));
        let distance = |item: &Item| match number {
            Some(number) if item.document == document => usize::from(item.rule.number.abs_diff(number)),
            Some(_) => usize::MAX,
            None => edits(&item.id, &wanted),
        };
        let nearest = self.items.iter().min_by_key(|item| distance(item)).ok_or("there are no items")?;
        if distance(nearest) == 0 {
            return Ok(nearest);
        }
        Err(format!("no document has an item {text}; the nearest is {} ({})", nearest.id, nearest.rule.title))
    }

    /// The groups of `document` in document order.
    pub fn groups(&self, document: &str) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for item in self.items.iter().filter(|item| item.document == document) {
            let rule = &item.rule;
            if groups.last().is_none_or(|group| group.letter != rule.group) {
                groups.push(Group { letter: &rule.group, mechanism: &rule.mechanism, counts: [0; 4] });
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

impl Item {
    fn new(document: &'static str, rule: &Rule, index: &Index, told: &[Deviation]) -> Self {
        let id = format!("{document}-{:03}", rule.number);
        let names = |claims: &[Claim]| claims.iter().any(|claim| claim.names(document, rule.number));
        let (mut tests, mut doubts) = (Vec::new(), Vec::new());
        for test in index.tests.iter().filter(|test| names(&test.claims)) {
            let mut claims = test.claims.iter().filter(|claim| claim.names(document, rule.number));
            match test.flaw {
                Some(flaw) => doubts.push(format!("{test} {}", flaw.explained())),
                None => {
                    tests.push(test.to_string());
                    if let Some(range) = claims.next().filter(|claim| claim.is_range())
                        && claims.all(Claim::is_range)
                    {
                        doubts.push(format!("{test} names it only within {range}"));
                    }
                }
            }
        }
        let told = told.iter().find(|item| item.id == id);
        let status = match told {
            Some(item) => item.status,
            None if tests.is_empty() => Status::Unassessed,
            None => Status::Exact,
        };
        let location =
            |place: &Place| Location { path: place.path.clone(), line: place.line, symbol: place.symbol.clone() };
        let places = index.places.iter().filter(|place| names(&place.claims)).map(location).collect();
        let note = told.map(|item| item.note.trim().to_owned());
        Self { id, document, rule: rule.clone(), status, tests, note, doubts, places }
    }
}

/// Checks `docs/fidelity.toml`.
fn check_deviations(told: &Deviations, items: &[Item], problems: &mut Vec<String>) {
    let mut before: Vec<&str> = Vec::new();
    for told in &told.item {
        let Deviation { id, status, note } = told;
        match items.iter().find(|item| item.id == *id) {
            None => problems.push(format!("docs/fidelity.toml lists {id}, which is in no document")),
            Some(item) if *status == Status::Approximate && item.tests.is_empty() => {
                problems.push(format!("{id} is listed as approximate, but no test that can fail names it"));
            }
            Some(_) => {}
        }
        if note.trim().is_empty() {
            problems.push(format!("{id} has no note in docs/fidelity.toml"));
        }
        if !matches!(status, Status::Approximate | Status::Absent) {
            problems.push(format!("{id} is listed as {}: only tests give this status", status.name()));
        }
        let same =
            |other: &&&str| other.rsplit_once('-').map(|(document, _)| document) == id.rsplit_once('-').map(|p| p.0);
        match before.iter().rev().find(same) {
            Some(other) if *other == id => problems.push(format!("{id} is listed twice")),
            Some(other) if *other > id.as_str() => problems.push(format!("{id} must precede {other}")),
            _ => {}
        }
        before.push(id);
    }
    for claim in told.promised.iter().flat_map(|text| Claim::all_in(text)) {
        let promised = |item: &&Item| claim.names(item.document, item.rule.number);
        for item in items.iter().filter(promised).filter(|item| item.status == Status::Unassessed) {
            problems.push(format!("{} is promised, but neither named by a test that can fail nor listed", item.id));
        }
    }
}

/// Checks for items that are named in the sources but do not exist in the documents.
fn check_claims(documents: &[Document], index: &Index, items: &[Item], problems: &mut Vec<String>) {
    let of_tests = index.tests.iter().map(|test| (test.to_string(), &test.claims));
    let of_places = index.places.iter().map(|place| (format!("{}:{}", place.path, place.line), &place.claims));
    for (who, claims) in of_tests.chain(of_places) {
        for claim in claims.iter().filter(|claim| documents.iter().any(|document| document.name == claim.document)) {
            // A range may have gaps, but its first and last item must exist.
            for end in [claim.first, claim.last] {
                if !items.iter().any(|item| item.document == claim.document && item.rule.number == end) {
                    problems.push(format!("{who} names {claim}; the document has no {}-{end:03}", claim.document));
                }
            }
        }
    }
    problems.dedup();
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

    const TEXT: &str = "### Group A - Rings\n**V1-001 Start** [DOC]\n- Facts: a.\n**V1-002 End** [DOC]\n\
        **V1-004 Wrap** [PTR]\n### Group B - Queues\n**V1-010 Slots** [DOC]\n**V1-011 Doors** [DOC]\n";
    const INDEX: &str = "test\ta.rs\tstarts\t\tV1-001 V1-001..004\ntest\ta.rs\tall\t\tV1-001..010\n\
        test\ta.rs\tidle\tasserts-nothing\tV1-011\nplace\tb.rs\t7\tSTART\tV1-001\n";

    fn report(told: &str, index: &str) -> Report {
        let text = Document::parse("V1", "Volume 1", TEXT);
        Report::new(&[text], &Index::parse(index), told)
    }

    #[test]
    fn tests_and_notes_decide() {
        let told = "promised = [\"V1-001..010\"]\n[[item]]\nid = \"V1-002\"\nstatus = \"approximate\"\nnote = \"Late.\"\n\
            [[item]]\nid = \"V1-004\"\nstatus = \"absent\"\nnote = \"No.\"\n";
        let report = report(told, INDEX);
        assert_eq!(report.problems, Vec::<String>::new());
        let rows: Vec<_> = report.items.iter().map(|item| (&*item.id, item.status, item.tests.len())).collect();
        let expected = [
            ("V1-001", Status::Exact, 2),
            ("V1-002", Status::Approximate, 2),
            ("V1-004", Status::Absent, 2),
            ("V1-010", Status::Exact, 1),
            ("V1-011", Status::Unassessed, 0),
        ];
        assert_eq!(rows, expected);
        assert_eq!(report.items[0].doubts, ["a.rs::all names it only within V1-001..010"]);
        assert_eq!(report.items[4].doubts, ["a.rs::idle asserts nothing, so it cannot fail"]);
        assert_eq!((&report.items[1].note, report.items[0].places.len()), (&Some("Late.".to_owned()), 1));
        let counts: Vec<_> = report.groups("V1").iter().map(|group| (group.letter, group.counts)).collect();
        assert_eq!(counts, [("A", [1, 1, 1, 0]), ("B", [1, 0, 0, 1])]);
    }

    #[test]
    fn false_claims_are_problems() {
        let item = |id: &str, status: &str, note: &str| {
            format!("[[item]]\nid = \"{id}\"\nstatus = \"{status}\"\nnote = \"{note}\"\n")
        };
        for (items, index, problem) in [
            (String::new(), "", "V1-010 is promised, but neither named by a test that can fail nor listed"),
            (
                item("V1-010", "approximate", "a"),
                "",
                "V1-010 is listed as approximate, but no test that can fail names it",
            ),
            (item("V1-010", "absent", " "), "", "V1-010 has no note in docs/fidelity.toml"),
            (item("V1-010", "exact", "a"), "", "V1-010 is listed as exact: only tests give this status"),
            (item("V1-010", "absent", "a").repeat(2), "", "V1-010 is listed twice"),
            (item("V1-010", "absent", "a") + &item("V1-002", "absent", "a"), "", "V1-002 must precede V1-010"),
            (
                item("V1-010", "absent", "a") + &item("V1-012", "absent", "a"),
                "",
                "docs/fidelity.toml lists V1-012, which is in no document",
            ),
            (
                item("V1-010", "absent", "a"),
                "test\ta.rs\tb\t\tV1-001..003",
                "a.rs::b names V1-001..003; the document has no V1-003",
            ),
            ("nonsense".into(), "", "docs/fidelity.toml cannot be read: key with no value, expected `=`"),
        ] {
            let report = report(&format!("promised = [\"V1-010\"]\n{items}"), index);
            assert_eq!(report.problems, [problem]);
        }
    }

    #[test]
    fn an_item_is_found_or_its_neighbour_named() {
        let report = report("promised = []", INDEX);
        for text in ["V1-010", "v1-10", " V1-0010 "] {
            assert_eq!(report.find(text).map(|item| &*item.id), Ok("V1-010"));
        }
        for (text, nearest) in [("V1-008", "V1-010 (Slots)"), ("V1-999", "V1-011 (Doors)"), ("1-002", "V1-002 (End)")] {
            let told = format!("no document has an item {text}; the nearest is {nearest}");
            assert_eq!(report.find(text).map(|item| &*item.id), Err(told));
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
