// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports which rules of Intel's documents the card implements exactly, as the drivers do, approximately, or not.
//!
//! The report combines four sources: the documents' numbered rules (`docs/spec`), the claims of tests and the references
//! in code (the index that `build.rs` generates from the sources with `scan.rs`), the results of `cargo xtask mutants`
//! (`docs/mutants.toml`), and the manually written list of deviations (`docs/fidelity.toml`). A rule counts as exact only
//! if the tests that claim it fail with each of its mutants.

mod document;
mod hash;
mod index;
mod page;
mod results;
#[cfg(test)]
mod scan;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use document::{Document, Rule};
use index::{Claim, Index, Place, Test};
use results::{Outcome, Results};

/// The command that regenerates `FIDELITY.md`.
pub const REGENERATE: &str = "cargo run -- fidelity --markdown > FIDELITY.md";

/// Conformance of the card to a rule.
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
    /// Claimed by no test and not listed in docs/fidelity.toml
    Unassessed,
}

impl Status {
    /// All statuses, best first.
    pub const ALL: [Self; 6] =
        [Self::Exact, Self::Departs, Self::Approximate, Self::Absent, Self::Unproven, Self::Unassessed];

    /// The status as text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Departs => "departs",
            Self::Approximate => "approximate",
            Self::Absent => "absent",
            Self::Unproven => "not proven",
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

/// Items that depart from the document, are approximate or are absent, for one reason.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    /// The item, such as `V8-052`, if it is one.
    id: Option<String>,
    /// Items and ranges of items, such as `V13-165..175`, if there are several.
    #[serde(default)]
    ids: Vec<String>,
    status: Status,
    note: String,
    /// The driver's file that does what the card does, such as `xe: xe_lrc.c, set_memory_based_intr`.
    driver: Option<String>,
}

impl Deviation {
    /// The items and ranges as they are written.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.id.iter().chain(&self.ids).map(String::as_str)
    }

    /// The items and ranges; text that is neither is omitted.
    fn claims(&self) -> Vec<Claim> {
        self.texts().filter_map(claim).collect()
    }

    /// Returns whether `driver` names a source file or header of xe or i915.
    fn names_driver_file(&self) -> bool {
        let Some((driver, place)) = self.driver.as_deref().and_then(|text| text.split_once(": ")) else { return false };
        let file = place.split([' ', ',', ';']).next().unwrap_or("");
        let stem = file.strip_suffix(".c").or_else(|| file.strip_suffix(".h"));
        ["xe", "i915"].contains(&driver) && stem.is_some_and(|stem| !stem.is_empty())
    }
}

/// Parses `text` if it is one item or range of items and nothing else.
fn claim(text: &str) -> Option<Claim> {
    Claim::all_in(text).into_iter().next().filter(|claim| claim.to_string() == text)
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
    /// Tests that claim it, and lines of IGT lists about it, as `path::name`.
    pub tests: Vec<String>,
    /// By mutant of the item: the tests that fail with it. None means that the mutant survives.
    pub mutants: BTreeMap<String, BTreeSet<String>>,
    /// Tests that compare the item's table with a copy of their own.
    pub tables: BTreeSet<String>,
    /// The sources of mutants and tests have changed since the mutants were run.
    pub stale: bool,
    /// The deviation, or the reason why it is absent.
    pub note: Option<String>,
    /// The driver's file that does what the card does, for an item that departs from the document.
    pub driver: Option<String>,
    /// Claims in the sources that no test executed when the mutants were run.
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
pub type Counts = [usize; Status::ALL.len()];

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
        let (told, results) = (include_str!("../../docs/fidelity.toml"), include_str!("../../docs/mutants.toml"));
        Self::new(&documents, &index, told, results)
    }

    fn new(documents: &[Document], index: &Index, told: &str, results: &str) -> Self {
        let mut problems = Vec::new();
        let results = Results::parse(results).unwrap_or_else(|error| {
            problems.push(format!("docs/mutants.toml cannot be read: {error}"));
            Results::default()
        });
        let told: Deviations = toml::from_str(told).unwrap_or_else(|error| {
            problems.push(format!("docs/fidelity.toml cannot be read: {}", error.message()));
            Deviations { promised: Vec::new(), item: Vec::new() }
        });
        let items: Vec<Item> = documents
            .iter()
            .flat_map(|document| {
                document.rules.iter().map(|rule| Item::new(document.name, rule, index, &told.item, &results))
            })
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
                groups.push(Group { letter: &rule.group, mechanism: &rule.mechanism, counts: Counts::default() });
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
    fn new(document: &'static str, rule: &Rule, index: &Index, told: &[Deviation], results: &Results) -> Self {
        let id = format!("{document}-{:03}", rule.number);
        let names = |claims: &[Claim]| claims.iter().any(|claim| claim.names(document, rule.number));
        let of_item = || index.tests.iter().filter(|test| names(&test.claims));
        let tests: Vec<String> = of_item().map(ToString::to_string).collect();
        let outcome = results.0.get(&id).cloned().unwrap_or_default();
        let stale = results.0.contains_key(&id) && outcome.is_stale(|path| index.hashes.get(path).cloned());
        let ran = |test: &&Test| {
            let name = format!("::{}", test.name);
            test.path.ends_with(".txt") || outcome.tests.iter().any(|test| test.ends_with(&name))
        };
        let doubts =
            of_item().filter(|test| !ran(test)).map(|test| format!("{test} claims it, but did not run")).collect();
        let told = told.iter().find(|item| names(&item.claims()));
        let status = match told.map(|item| item.status) {
            Some(status) if status != Status::Departs || outcome.proved() => status,
            None if outcome.proved() => Status::Exact,
            None if tests.is_empty() => Status::Unassessed,
            _ => Status::Unproven,
        };
        let Outcome { mutants, tables, .. } = outcome;
        let location =
            |place: &Place| Location { path: place.path.clone(), line: place.line, symbol: place.symbol.clone() };
        let places = index.places.iter().filter(|place| names(&place.claims)).map(location).collect();
        let note = told.map(|item| item.note.trim().to_owned());
        let driver = told.and_then(|item| item.driver.clone());
        Self { id, document, rule: rule.clone(), status, tests, mutants, tables, stale, note, driver, doubts, places }
    }
}

/// Checks `docs/fidelity.toml`.
fn check_deviations(told: &Deviations, items: &[Item], problems: &mut Vec<String>) {
    // The first item or range of each entry so far, and the last one of this entry.
    let mut before: Vec<Claim> = Vec::new();
    for told in &told.item {
        let name = told.texts().collect::<Vec<_>>().join(", ");
        for text in told.texts().filter(|text| claim(text).is_none()) {
            problems.push(format!("docs/fidelity.toml lists {text}, which is neither an item nor a range of items"));
        }
        if name.is_empty() {
            problems.push("docs/fidelity.toml has an [[item]] without id and ids".into());
        }
        check_deviation(told, &name, items, problems);
        let claims = told.claims();
        for (n, claim) in claims.iter().enumerate() {
            let earlier = before.iter().chain(&claims[..n]);
            if let Some(other) =
                earlier.filter(|other| other.document == claim.document).max_by_key(|other| other.first)
                && other.first > claim.first
            {
                problems.push(format!("{claim} must precede {other}"));
            }
        }
        before.extend(claims.into_iter().next());
    }
    for item in items {
        let names = |claim: &Claim| claim.names(item.document, item.rule.number);
        if told.item.iter().flat_map(Deviation::claims).filter(names).count() > 1 {
            problems.push(format!("{} is listed twice", item.id));
        }
    }
    for claim in told.promised.iter().flat_map(|text| Claim::all_in(text)) {
        let promised = |item: &&Item| claim.names(item.document, item.rule.number);
        for item in items.iter().filter(promised).filter(|item| item.status == Status::Unassessed) {
            problems.push(format!("{} is promised, but neither claimed by a test nor listed", item.id));
        }
    }
}

/// Checks one entry of `docs/fidelity.toml`, which lists the items in `name`.
fn check_deviation(told: &Deviation, name: &str, items: &[Item], problems: &mut Vec<String>) {
    let Deviation { status, note, driver, .. } = told;
    for claim in told.claims() {
        // A range may have gaps, but its first and last item must exist.
        let exists = |end: u16| items.iter().any(|item| item.document == claim.document && item.rule.number == end);
        let missing: BTreeSet<u16> = [claim.first, claim.last].into_iter().filter(|&end| !exists(end)).collect();
        for end in missing {
            problems.push(format!("docs/fidelity.toml lists {}-{end:03}, which is in no document", claim.document));
        }
        let named = items.iter().filter(|item| claim.names(item.document, item.rule.number));
        let needs_test = matches!(status, Status::Departs | Status::Approximate);
        for item in named.filter(|item| needs_test && item.tests.is_empty()) {
            let (id, status) = (&item.id, status.name());
            problems.push(format!("{id} is listed as {status}, but no test claims it"));
        }
    }
    if note.trim().is_empty() {
        problems.push(format!("{name} has no note in docs/fidelity.toml"));
    }
    match status {
        Status::Exact | Status::Unassessed => {
            problems.push(format!("{name} is listed as {}: only tests give this status", status.name()));
        }
        Status::Departs if !told.names_driver_file() => problems.push(format!(
            "{name} is listed as departs, but names no file of xe or i915, as in driver = \"xe: xe_lrc.c, FUNCTION\""
        )),
        Status::Approximate | Status::Absent if driver.is_some() => problems.push(format!(
            "{name} is listed as {}, but names a driver's file: only an item that departs has one",
            status.name()
        )),
        _ => {}
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
    const INDEX: &str = "test\ta.rs\tstarts\tV1-001\ntest\ta.rs\tall\tV1-001 V1-002 V1-004 V1-010\n\
        place\tb.rs\t7\tSTART\tV1-001\nhash\ta.rs\t1\n";
    const RESULTS: &str = "[V1-001]\nhash = \"1\"\nsources = [\"a.rs\"]\ntests = [\"c::starts\"]\n\
        mutants = { 1 = [\"c::starts\"] }\n[V1-010]\nhash = \"1\"\nsources = []\ntests = [\"c::all\"]\n\
        tables = [\"c::all\"]\n";

    fn report(told: &str, index: &str) -> Report {
        let text = Document::parse("V1", "Volume 1", TEXT);
        Report::new(&[text], &Index::parse(index), told, RESULTS)
    }

    #[test]
    fn tests_and_notes_decide() {
        let told = "promised = [\"V1-001..010\"]\n[[item]]\nid = \"V1-002\"\nstatus = \"approximate\"\nnote = \"Late.\"\n\
            [[item]]\nid = \"V1-004\"\nstatus = \"absent\"\nnote = \"No.\"\n\
            [[item]]\nid = \"V1-010\"\nstatus = \"departs\"\nnote = \"More.\"\ndriver = \"i915: intel_lrc.c, f\"\n";
        let report = report(told, INDEX);
        assert_eq!(report.problems, Vec::<String>::new());
        let rows: Vec<_> = report.items.iter().map(|item| (&*item.id, item.status, item.tests.len())).collect();
        let expected = [
            ("V1-001", Status::Exact, 2),
            ("V1-002", Status::Approximate, 1),
            ("V1-004", Status::Absent, 1),
            ("V1-010", Status::Departs, 1),
            ("V1-011", Status::Unassessed, 0),
        ];
        assert_eq!(rows, expected);
        assert_eq!(report.items[0].doubts, ["a.rs::all claims it, but did not run"]);
        assert_eq!((&report.items[1].note, report.items[0].places.len()), (&Some("Late.".to_owned()), 1));
        let counts: Vec<_> = report.groups("V1").iter().map(|group| (group.letter, group.counts)).collect();
        assert_eq!(counts, [("A", [1, 0, 1, 1, 0, 0]), ("B", [0, 1, 0, 0, 0, 1])]);
        let drivers: Vec<_> = report.items.iter().filter_map(|item| item.driver.as_deref()).collect();
        assert_eq!(drivers, ["i915: intel_lrc.c, f"]);
    }

    #[test]
    fn one_entry_lists_several_items() {
        let told = "promised = [\"V1-001..011\"]\n[[item]]\nids = [\"V1-001..004\", \"V1-011\"]\n\
            status = \"absent\"\nnote = \"None.\"\n";
        let report = report(told, INDEX);
        assert_eq!(report.problems, Vec::<String>::new());
        let rows: Vec<_> = report.items.iter().map(|item| (item.status, item.note.as_deref())).collect();
        let absent = (Status::Absent, Some("None."));
        assert_eq!(rows, [absent, absent, absent, (Status::Exact, None), absent]);
    }

    /// A mutant that survives, a departure without a mutant, and a claim without a result prove nothing.
    #[test]
    fn mutants_decide() {
        let text = Document::parse("V1", "Volume 1", TEXT);
        let told = "promised = []\n[[item]]\nid = \"V1-004\"\nstatus = \"departs\"\nnote = \"a\"\ndriver = \"xe: a.c\"";
        let result = |mutants: &str| {
            let results = format!("[V1-001]\nhash = \"1\"\nsources = [\"a.rs\"]\ntests = [\"c::all\"]\n{mutants}");
            let report = Report::new(std::slice::from_ref(&text), &Index::parse(INDEX), told, &results);
            (report.items.iter().map(|item| item.status).collect::<Vec<_>>(), report.items[0].stale)
        };
        let others = [Status::Unproven, Status::Unproven, Status::Unproven, Status::Unassessed];
        for (mutants, status) in [
            ("mutants = { 1 = [\"c::all\"] }", Status::Exact),
            ("mutants = { 1 = [\"c::all\"], 2 = [] }", Status::Unproven),
            ("", Status::Unproven),
            ("tables = [\"c::all\"]", Status::Exact),
        ] {
            assert_eq!(result(mutants), ([[status].as_slice(), &others].concat(), true), "{mutants}");
        }
    }

    /// The file is the first word after the driver's name.
    #[test]
    fn a_departure_names_a_file_of_a_driver() {
        let named = |driver: &str| {
            let told = format!("id = \"V1-001\"\nstatus = \"departs\"\nnote = \"a\"\n{driver}");
            toml::from_str::<Deviation>(&told).unwrap().names_driver_file()
        };
        for driver in ["xe: xe_lrc.c", "i915: gt/intel_engine.h, ICL_HWS_CSB_WRITE_INDEX", "xe: a.c; i915: b.c"] {
            assert!(named(&format!("driver = \"{driver}\"")), "{driver}");
        }
        for driver in ["", "xe", "xe: ", "xe: .c", "xe: set_memory_based_intr in xe_lrc.c", "igt: a.c", "media: b.h"] {
            assert!(!named(&format!("driver = \"{driver}\"")), "{driver}");
        }
        assert!(!named(""), "no file");
    }

    #[test]
    fn false_claims_are_problems() {
        let item = |id: &str, status: &str, note: &str| {
            format!("[[item]]\nid = \"{id}\"\nstatus = \"{status}\"\nnote = \"{note}\"\n")
        };
        let departs = |id: &str, driver: &str| item(id, "departs", "a") + driver;
        let several = |ids: &[&str]| format!("[[item]]\nids = {ids:?}\nstatus = \"absent\"\nnote = \"a\"\n");
        const NAMED: &str = "test\ta.rs\tb\tV1-010";
        for (items, index, problem) in [
            (String::new(), "", "V1-010 is promised, but neither claimed by a test nor listed"),
            (item("V1-010", "approximate", "a"), "", "V1-010 is listed as approximate, but no test claims it"),
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
                "test\ta.rs\tb\tV1-001..003",
                "a.rs::b names V1-001..003; the document has no V1-003",
            ),
            (departs("V1-010", "driver = \"xe: a.c\""), "", "V1-010 is listed as departs, but no test claims it"),
            (
                departs("V1-011", "driver = \"xe: a.c\""),
                "test\ta.rs\tb\tV1-010",
                "V1-011 is listed as departs, but no test claims it",
            ),
            (
                departs("V1-010", ""),
                NAMED,
                "V1-010 is listed as departs, but names no file of xe or i915, as in driver = \"xe: xe_lrc.c, FUNCTION\"",
            ),
            (
                item("V1-010", "absent", "a") + "driver = \"xe: a.c\"",
                "",
                "V1-010 is listed as absent, but names a driver's file: only an item that departs has one",
            ),
            (several(&["V1-001..003", "V1-010"]), "", "docs/fidelity.toml lists V1-003, which is in no document"),
            (several(&["V1-001..004", "V1-010", "V1-004"]), "", "V1-004 must precede V1-010\nV1-004 is listed twice"),
            (several(&["V1-001..010"]) + &item("V1-004", "absent", "b"), "", "V1-004 is listed twice"),
            (several(&["V1-010", "V1-002"]), "", "V1-002 must precede V1-010"),
            (
                several(&["V1-010", "V1-1"]),
                "",
                "docs/fidelity.toml lists V1-1, which is neither an item nor a range of items",
            ),
            (several(&[]), NAMED, "docs/fidelity.toml has an [[item]] without id and ids"),
            (
                item("V1-010", "absent", "a") + "reason = \"b\"",
                NAMED,
                "docs/fidelity.toml cannot be read: unknown field `reason`, expected one of `id`, `ids`, `status`, \
                 `note`, `driver`",
            ),
            ("nonsense".into(), "", "docs/fidelity.toml cannot be read: key with no value, expected `=`"),
        ] {
            let text = Document::parse("V1", "Volume 1", TEXT);
            let told = format!("promised = [\"V1-010\"]\n{items}");
            let report = Report::new(&[text], &Index::parse(index), &told, "");
            assert_eq!(report.problems.join("\n"), problem);
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
