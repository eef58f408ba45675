//! `FIDELITY.md`: the report as a Markdown page.

use std::fmt::Write;

use super::{Counts, Item, REGENERATE, Report, Status};

/// Renders the page.
pub fn markdown(report: &Report) -> String {
    let mut page = format!(
        "# What the card keeps of its documents\n\
        Made from the tests by `{REGENERATE}`; a test fails when it is out of date. `arctic fidelity --item V8-052` shows a \
        rule in full, with the code that carries it out.\n\n\
        * **exact**: a test that can fail names the rule, and nothing is known to differ.\n\
        * **approximate**: kept, but for what the note says; a test names what is kept.\n\
        * **absent**: not kept, for the reason that the note gives.\n\
        * **not assessed**: no test names it, and docs/fidelity.toml has no entry for it.\n\n\
        *of a range* marks a test that names the rule only as one of several.\n"
    );
    for &(document, title) in &report.documents {
        let _ = write!(page, "\n## {document}: {title}\n\n| | mechanism | items |");
        let _ = write!(
            page,
            "{}\n|---|---|---|---|---|---|---|\n",
            Status::ALL.map(|status| format!(" {} |", status.name())).concat()
        );
        let mut total = [0; 4];
        for group in report.groups(document) {
            let _ = writeln!(page, "| {} | {} | {}", group.letter, cell(group.mechanism), numbers(group.counts));
            total = std::array::from_fn(|n| total[n] + group.counts[n]);
        }
        let _ = writeln!(page, "| | **in all** | {}", numbers(total));
    }
    for &(document, title) in &report.documents {
        let _ = write!(page, "\n## Every item of {title}\n");
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
    let mut cells: Vec<String> = item.note.iter().map(|note| cell(note)).collect();
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
            status: Status::Approximate,
            tests: vec!["a/b/c.rs::one".into(), "d.rs::two".into()],
            note: Some("Not\nquite.".into()),
            doubts: vec!["d.rs::two names it only within V1-001..010".into()],
            places: vec![Location { path: "e.rs".into(), line: 1, symbol: "fn f".into() }],
        };
        let expected = "| V1-004 | Wrap \\| &lt;stop> | approximate | Not quite.<br>[`c.rs::one`](a/b/c.rs), \
            [`d.rs::two`](d.rs) *of a range* |\n";
        assert_eq!(row(&item), expected);
        assert_eq!(numbers([3, 0, 1, 0]), "4 | 3 | | 1 | |");
    }
}
