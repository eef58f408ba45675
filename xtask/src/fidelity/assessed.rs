// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The items of documents that a package assesses in a table of its own: those of `afuc` and `eu`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use super::report::{Document, Item, Status};
use super::source::Source;
use crate::root;

/// A package's assessment.
struct Assessment {
    /// Name of the document, which precedes the numbers of its items.
    name: &'static str,
    title: &'static str,
    /// The table, from the repository's root.
    table: &'static str,
    /// Where its tests are.
    sources: [&'static str; 2],
    /// By what the package calls an item exact.
    measure: &'static str,
    /// Files with tests that compare the package with an implementation that shares no code with it. What they cover needs no
    /// mutants.
    comparing: &'static [&'static str],
}

const ASSESSMENTS: [Assessment; 2] = [
    Assessment {
        name: "AF",
        title: "Adreno microcode, as afuc/docs/items.md assesses it",
        table: "afuc/docs/items.md",
        sources: ["afuc/src", "afuc/tests"],
        measure: ", by the document and Mesa's tools",
        comparing: &[],
    },
    Assessment {
        name: "ISA",
        title: "Instructions of the execution units, as eu/docs/items.md assesses them",
        table: "eu/docs/items.md",
        sources: ["eu/src", "eu/tests"],
        measure: "",
        comparing: &[
            "eu/tests/control_flow.rs",
            "eu/tests/extensions.rs",
            "eu/tests/golden.rs",
            "eu/tests/math.rs",
            "eu/tests/matrices.rs",
            "eu/tests/operations.rs",
            "eu/tests/peer.rs",
            "eu/tests/programs.rs",
            "eu/tests/text.rs",
        ],
    },
];

/// The documents and their items; none of a package that is not there.
pub fn items() -> Result<Vec<(Document, Vec<Item>)>> {
    let present = ASSESSMENTS.iter().filter(|assessment| root().join(assessment.table).is_file());
    present.map(Assessment::read).collect()
}

impl Assessment {
    fn read(&self) -> Result<(Document, Vec<Item>)> {
        let table =
            fs::read_to_string(root().join(self.table)).with_context(|| format!("cannot read {}", self.table))?;
        let [code, tests] = self.sources;
        let mut paths = BTreeMap::new();
        for path in crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", code, tests])? {
            if path.ends_with(".rs") && root().join(&path).is_file() {
                let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
                for function in Source::new(&path, &text)?.functions {
                    paths.insert(function.name, path.clone());
                }
            }
        }
        let document = Document { name: self.name.into(), title: self.title.into() };
        Ok((document, self.parse(&table, &paths)?))
    }

    /// Parses the rows `| AF-001 | subject | state | tests | reason |`, below headings `## A. Mechanism` if there are any.
    /// `paths` has the source of each function.
    fn parse(&self, table: &str, paths: &BTreeMap<String, String>) -> Result<Vec<Item>> {
        let (mut group, mut mechanism) = ("-", "All items");
        let start = format!("| {}-", self.name);
        let mut items = Vec::new();
        for line in table.lines() {
            if let Some((letter, about)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(". ")) {
                (group, mechanism) = (letter, about);
            } else if line.starts_with(&start) {
                let item = self.item(line, paths).with_context(|| format!("{}: {line}", self.table))?;
                items.push(Item { group: group.into(), mechanism: mechanism.into(), ..item });
            }
        }
        Ok(items)
    }

    fn item(&self, line: &str, paths: &BTreeMap<String, String>) -> Result<Item> {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, subject, state, tests, reason] = cells[..] else { bail!("the row has not five cells") };
        let names = tests.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty());
        let with_path = |name: &str| match paths.get(name) {
            Some(path) => Ok(format!("{path}::{name}")),
            None => bail!("{id} names the test {name}, which does not exist"),
        };
        let tests = names.map(with_path).collect::<Result<Vec<_>>>()?;
        let not_proven = format!("Exact as {} assesses it{}.", self.table, self.measure);
        let (status, note) = match state {
            "compared" => (Status::Exact, None),
            // Only its mutants make an item exact by the rules of this report.
            "exact" => (Status::Unproven, Some(not_proven)),
            "approximate" => (Status::Approximate, Some(reason.to_owned())),
            "absent" | "out of scope" => (Status::Absent, Some(reason.to_owned())),
            other => bail!("{id} has the unknown state {other}"),
        };
        ensure!(note.as_deref() != Some(""), "{id} is {state} without a reason");
        ensure!(status == Status::Absent || !tests.is_empty(), "{id} is {state} without a test");
        let compares = |test: &String| self.comparing.iter().any(|path| test.starts_with(path));
        ensure!(status != Status::Exact || tests.iter().any(compares), "{id} is compared, but by none of its tests");
        Ok(Item {
            id: id.into(),
            document: self.name.into(),
            group: String::new(),
            mechanism: String::new(),
            title: subject.into(),
            class: "doc".into(),
            facts: Vec::new(),
            status,
            tests,
            mutants: BTreeMap::new(),
            coarse: BTreeMap::new(),
            tables: Default::default(),
            stale: false,
            note,
            driver: None,
            doubts: Vec::new(),
            places: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFUC: &Assessment = &ASSESSMENTS[0];
    const EU: &Assessment = &ASSESSMENTS[1];

    #[test]
    fn rows_become_items() {
        let table = "# Items\n| item | subject |\n| AF-001 | NOP | exact | `a`, `b` |  |\n\
            | AF-002 | PFP | approximate | `a` | text only |\n| AF-003 | ME | out of scope |  | another set |\n";
        let paths = BTreeMap::from(["a", "b"].map(|name| (name.to_owned(), format!("afuc/tests/{name}.rs"))));
        let items = AFUC.parse(table, &paths).unwrap();
        let rows: Vec<_> =
            items.iter().map(|item| (&*item.id, item.status, item.tests.len(), item.note.as_deref())).collect();
        let note = "Exact as afuc/docs/items.md assesses it, by the document and Mesa's tools.";
        let expected = [
            ("AF-001", Status::Unproven, 2, Some(note)),
            ("AF-002", Status::Approximate, 1, Some("text only")),
            ("AF-003", Status::Absent, 0, Some("another set")),
        ];
        assert_eq!(rows, expected);
        assert_eq!(items[0].tests, ["afuc/tests/a.rs::a", "afuc/tests/b.rs::b"]);
        assert_eq!((&*items[0].group, &*items[0].mechanism), ("-", "All items"));
        let error = format!("{:#}", AFUC.parse(table, &BTreeMap::new()).unwrap_err());
        assert!(error.ends_with("AF-001 names the test a, which does not exist"), "{error}");
    }

    #[test]
    fn compared_items_count_as_exact() {
        let paths = BTreeMap::from([
            ("sums".to_owned(), "eu/tests/operations.rs".to_owned()),
            ("runs".to_owned(), "eu/tests/kernels.rs".to_owned()),
        ]);
        let row = |state: &str, tests: &str| format!("## B. Sums\n| ISA-001 | add | {state} | {tests} |  |\n");
        let items = EU.parse(&row("compared", "`runs`, `sums`"), &paths).unwrap();
        assert_eq!((items[0].status, &items[0].note), (Status::Exact, &None));
        assert_eq!((&*items[0].group, &*items[0].mechanism), ("B", "Sums"));
        let error = |table: &str| format!("{:#}", EU.parse(table, &paths).unwrap_err());
        assert!(error(&row("compared", "`runs`")).ends_with("ISA-001 is compared, but by none of its tests"));
        assert!(error(&row("exact", "")).ends_with("ISA-001 is exact without a test"));
        assert!(error(&row("absent", "")).ends_with("ISA-001 is absent without a reason"));
        assert!(error(&row("done", "`runs`")).ends_with("ISA-001 has the unknown state done"));
    }
}
