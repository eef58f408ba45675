// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report as Markdown pages: `FIDELITY.md`, and a page of every item.

use std::fmt::Write;

use super::{Counts, Item, REGENERATE, Report, Status};

/// Renders `FIDELITY.md`: the number of items with each status, by document and mechanism.
pub fn summary(report: &Report) -> String {
    let mut page = format!(
        "# Conformance to Intel's manuals\n\
        Generated from the tests by `{REGENERATE}`; a test fails if it is out of date.\n\n\
        * **exact**: a test that can fail names the rule, and no deviation is known.\n\
        * **departs**: not as the document says, but as Linux xe or i915 does in a file that is named; a test names the \
        rule.\n\
        * **approximate**: implemented with a known deviation; a test names the rule.\n\
        * **absent**: not implemented, for a stated reason.\n\
        * **not assessed**: no test names the rule, and `docs/fidelity.toml` does not list it.\n\n\
        `arctic fidelity` lists every deviation with its reason, `arctic fidelity --item V8-052` shows a rule with its \
        tests, `arctic fidelity --markdown --every-item` prints a page of all rules.\n"
    );
    for &(document, title) in &report.documents {
        let _ = write!(page, "\n## {document}: {title}\n\n| | mechanism | items |");
        let _ = write!(
            page,
            "{}\n|---|---|---|{}\n",
            Status::ALL.map(|status| format!(" {} |", status.name())).concat(),
            Status::ALL.map(|_| "---|").concat()
        );
        let mut total = Counts::default();
        for group in report.groups(document) {
            let _ = writeln!(page, "| {} | {} | {}", group.letter, cell(group.mechanism), numbers(group.counts));
            total = std::array::from_fn(|n| total[n] + group.counts[n]);
        }
        let _ = writeln!(page, "| | **total** | {}", numbers(total));
    }
    page
}

/// Renders a page of every item with its note and links to its tests.
pub fn every_item(report: &Report) -> String {
    let mut page = "# Conformance to Intel's manuals, item by item\n\
        *of a range* marks a test that names the rule only as one of several.\n"
        .to_owned();
    for &(document, title) in &report.documents {
        let _ = write!(page, "\n## {document}: {title}\n");
        for group in report.groups(document) {
            let _ = write!(page, "\n### {document} {}. {}\n", group.letter, group.mechanism);
            let _ = write!(page, "| item | rule | status | note and tests |\n|---|---|---|---|\n");
            let of_group = |item: &&Item| item.document == document && item.rule.group == group.letter;
            for item in report.items.iter().filter(of_group) {
                page.push_str(&row(item));
            }
        }
    }
    page
}

fn numbers(counts: Counts) -> String {
    let all: usize = counts.iter().sum();
    let one = |count: usize| if count == 0 { " |".into() } else { format!(" {count} |") };
    format!("{all} |{}", counts.map(one).concat())
}

fn row(item: &Item) -> String {
    let range = |test: &String| {
        let doubt = format!("{test} names it only within ");
        if item.doubts.iter().any(|line| line.starts_with(&doubt)) { " *of a range*" } else { "" }
    };
    let link = |test: &String| {
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        let file = path.rsplit('/').next().unwrap_or(path);
        format!("[`{file}::{name}`]({path}){}", range(test))
    };
    let mut cells: Vec<String> = item.note.iter().chain(&item.driver).map(|text| cell(text)).collect();
    if !item.tests.is_empty() {
        cells.push(item.tests.iter().map(link).collect::<Vec<_>>().join(", "));
    }
    let title = cell(&item.rule.title);
    format!("| {} | {title} | {} | {} |\n", item.id, item.status.name(), cells.join("<br>"))
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::Location;
    use crate::fidelity::document::Rule;

    #[test]
    fn a_row_shows_note_and_tests() {
        let item = Item {
            id: "V1-004".into(),
            document: "V1",
            rule: Rule { title: "Wrap | <stop>".into(), ..Rule::default() },
            status: Status::Departs,
            tests: vec!["a/b/c.rs::one".into(), "d.rs::two".into()],
            note: Some("Not\nquite.".into()),
            driver: Some("xe: a.c".into()),
            doubts: vec!["d.rs::two names it only within V1-001..010".into()],
            places: vec![Location { path: "e.rs".into(), line: 1, symbol: "fn f".into() }],
        };
        let expected = "| V1-004 | Wrap \\| &lt;stop> | departs | Not quite.<br>xe: a.c<br>[`c.rs::one`](a/b/c.rs), \
            [`d.rs::two`](d.rs) *of a range* |\n";
        assert_eq!(row(&item), expected);
        assert_eq!(numbers([3, 0, 1, 0, 2]), "6 | 3 | | 1 | | 2 |");
    }
}
