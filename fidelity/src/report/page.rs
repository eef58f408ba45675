// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report as Markdown pages: `FIDELITY.md`, and a page of every item.

use std::fmt::Write;

use super::{Counts, Document, Item, REGENERATE, Report, Status};

/// Renders `FIDELITY.md`: the number of items with each status, by document and mechanism.
pub fn summary(report: &Report) -> String {
    let mut page = format!(
        "# Conformance to the documents\n\
        Made by `{REGENERATE}`; a test fails if it is out of date.\n\n\
        A test claims the rules that it proves by `proves!`. Mutants, rows of `fidelity/mutants/`, replace code by a \
        violation of a rule; `cargo xtask mutants` runs each in a copy of the sources against the tests that claim its rule.\n\n\
        * **exact**: the tests that claim the rule fail with each of its mutants, or have a copy of its table, and no \
        deviation is known. A rule of `ISA` needs no mutants if a test compares it with an implementation that shares no \
        code with the package.\n\
        * **departs**: not as the document says, but as Linux xe or i915 does in a file that is named; tests prove it as \
        for exact, with mutants that follow the document.\n\
        * **approximate**: implemented with a known deviation; a test claims the rule.\n\
        * **absent**: not implemented, for a stated reason.\n\
        * **not proven**: a test claims the rule, but a mutant survives, or there is none.\n\
        * **stale**: proved earlier; the code with its mutants or a test that claims it has changed since.\n\
        * **not assessed**: no test claims the rule, and `docs/fidelity.toml` does not list it.\n\n\
        `arctic fidelity` lists every deviation with its reason, `arctic fidelity --item V8-052` shows a rule with its \
        tests, `arctic fidelity --markdown --every-item` prints a page of all rules.\n"
    );
    for Document { name: document, title } in &report.documents {
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
    let mut page = "# Conformance to the documents, item by item\n".to_owned();
    for Document { name: document, title } in &report.documents {
        let _ = write!(page, "\n## {document}: {title}\n");
        for group in report.groups(document) {
            let _ = write!(page, "\n### {document} {}. {}\n", group.letter, group.mechanism);
            let _ = write!(page, "| item | rule | status | note and tests |\n|---|---|---|---|\n");
            let of_group = |item: &&Item| item.document == *document && item.group == group.letter;
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
    let link = |test: &String| {
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        let file = path.rsplit('/').next().unwrap_or(path);
        format!("[`{file}::{name}`]({path})")
    };
    let mut cells: Vec<String> = item.note.iter().chain(&item.driver).map(|text| cell(text)).collect();
    if !item.tests.is_empty() {
        cells.push(item.tests.iter().map(link).collect::<Vec<_>>().join(", "));
    }
    let title = cell(&item.title);
    format!("| {} | {title} | {} | {} |\n", item.id, item.status.name(), cells.join("<br>"))
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_note_and_tests() {
        let [id, document, group, title] = ["V1-004", "V1", "A", "Wrap | <stop>"].map(str::to_owned);
        let tests = ["a/b/c.rs::one", "d.rs::two"].map(str::to_owned).into();
        let (note, driver) = (Some("Not\nquite.".to_owned()), Some("xe: a.c".to_owned()));
        let (mechanism, class, facts, stale) = Default::default();
        let status = Status::Departs;
        let item = Item { id, document, group, mechanism, title, class, facts, status, tests, stale, note, driver };
        let expected = "| V1-004 | Wrap \\| &lt;stop> | departs | Not quite.<br>xe: a.c<br>[`c.rs::one`](a/b/c.rs), \
            [`d.rs::two`](d.rs) |\n";
        assert_eq!(row(&item), expected);
        assert_eq!(numbers([3, 0, 1, 0, 0, 1, 2]), "7 | 3 | | 1 | | | 1 | 2 |");
    }
}
