// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The items of `afuc/docs/items.md`, the assessment of the side workspace `afuc` of its own document.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use super::report::{Document, Item, Status};
use super::source::Source;
use crate::root;

/// The assessment, from the repository's root.
const TABLE: &str = "afuc/docs/items.md";

/// What the workspace calls exact has no mutants, so it is not exact by the rules of this report.
const NOT_PROVEN: &str =
    "Exact as afuc/docs/items.md assesses it, by the document and Mesa's tools. It has no mutants.";

/// The document and its items; none if the workspace is not there.
pub fn items() -> Result<Option<(Document, Vec<Item>)>> {
    if !root().join(TABLE).is_file() {
        return Ok(None);
    }
    let table = fs::read_to_string(root().join(TABLE)).with_context(|| format!("cannot read {TABLE}"))?;
    let mut paths = BTreeMap::new();
    for path in crate::git(&["ls-files", "--cached", "--others", "--exclude-standard", "afuc/src", "afuc/tests"])? {
        if path.ends_with(".rs") && root().join(&path).is_file() {
            let text = fs::read_to_string(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
            for function in Source::new(&path, &text)?.functions {
                paths.insert(function.name, path.clone());
            }
        }
    }
    let document = Document { name: "AF".into(), title: "Adreno microcode, as afuc/docs/items.md assesses it".into() };
    Ok(Some((document, parse(&table, &paths)?)))
}

/// Parses the rows `| AF-001 | subject | state | tests | reason |`. `paths` has the source of each function.
fn parse(table: &str, paths: &BTreeMap<String, String>) -> Result<Vec<Item>> {
    let rows = table.lines().filter(|line| line.starts_with("| AF-"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, subject, state, tests, reason] = cells[..] else { bail!("{TABLE}: {line} has not five cells") };
        let (status, note) = match state {
            "exact" => (Status::Unproven, NOT_PROVEN),
            "approximate" => (Status::Approximate, reason),
            "out of scope" => (Status::Absent, reason),
            other => bail!("{TABLE}: {id} has the unknown state {other}"),
        };
        ensure!(!note.is_empty(), "{TABLE}: {id} is {state} without a reason");
        let tests = tests.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty());
        let with_path = |name: &str| match paths.get(name) {
            Some(path) => Ok(format!("{path}::{name}")),
            None => bail!("{TABLE}: {id} names the test {name}, which does not exist"),
        };
        Ok(Item {
            id: id.into(),
            document: "AF".into(),
            group: "-".into(),
            mechanism: "All items".into(),
            title: subject.into(),
            class: "doc".into(),
            facts: Vec::new(),
            status,
            tests: tests.map(with_path).collect::<Result<_>>()?,
            mutants: BTreeMap::new(),
            coarse: BTreeMap::new(),
            tables: Default::default(),
            stale: false,
            note: Some(note.into()),
            driver: None,
            doubts: Vec::new(),
            places: Vec::new(),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_items() {
        let table = "# Items\n| item | subject |\n| AF-001 | NOP | exact | `a`, `b` |  |\n\
            | AF-002 | PFP | approximate | `a` | text only |\n| AF-003 | ME | out of scope |  | another set |\n";
        let paths = BTreeMap::from(["a", "b"].map(|name| (name.to_owned(), format!("afuc/tests/{name}.rs"))));
        let items = parse(table, &paths).unwrap();
        let rows: Vec<_> =
            items.iter().map(|item| (&*item.id, item.status, item.tests.len(), item.note.as_deref())).collect();
        let expected = [
            ("AF-001", Status::Unproven, 2, Some(NOT_PROVEN)),
            ("AF-002", Status::Approximate, 1, Some("text only")),
            ("AF-003", Status::Absent, 0, Some("another set")),
        ];
        assert_eq!(rows, expected);
        assert_eq!(items[0].tests, ["afuc/tests/a.rs::a", "afuc/tests/b.rs::b"]);
        let error = parse(table, &BTreeMap::new()).unwrap_err().to_string();
        assert_eq!(error, "afuc/docs/items.md: AF-001 names the test a, which does not exist");
    }
}
