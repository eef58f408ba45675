// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic fidelity`: lists which rules of Intel's documents the card implements.

mod legend;

use std::fmt::Write;

use anyhow::{Context, Result, anyhow, ensure};
use arctic_fidelity::report::{Counts, Document, Item, REGENERATE, Report, Status};

use super::layout::{self, wrap};
use super::stdout;

/// List which rules of the documents the project implements: exactly, as drivers do, approximately, or not.
///
/// The rules are numbered items (V8-052 is item 52 of Volume 8). The status is derived from the project's own tests: a
/// test claims the items that it proves, and mutants, rows of fidelity/mutants/, replace code by a violation of an item. An
/// item is exact only if the tests that claim it fail with each of its mutants, in a copy of the sources. An item departs if the card does what Linux xe or
/// i915 does in a named file and the document does not say; its mutants follow the document. Such items, approximate
/// items and absent items are listed with the reason in docs/fidelity.toml. Other items are "not proven" if a test claims
/// them, else "not assessed". No item is omitted.
///
/// The results of the mutants are in docs/mutants.toml. An item is "stale" if its result is older than the code that its
/// mutants change or than a test that claims it. `cargo xtask fidelity` makes the report; the program contains it. In the source tree,
/// `cargo xtask fidelity --json FILE` writes it with the mutants of each item and the code that implements it.
#[derive(clap::Args)]
#[command(after_help = format!("Examples:\n  \
    arctic fidelity\n  \
    arctic fidelity --document V8 --status approximate\n  \
    arctic fidelity --item V8-052\n  \
    arctic fidelity --json | jq -r '.[] | select(.status != \"exact\") | \"\\(.id) \\(.note)\"'\n\n\
    The JSON document is an array of items: id, status (exact, departs, approximate, absent, unproven, stale, unassessed),\n\
    tests (path::name), stale, note, driver (the driver's file, if the item departs), title, class, facts, document, group,\n\
    mechanism.\n\n\
    To make an item count: claim it by proves! in a test, add a mutant that breaks its rule to fidelity/mutants/, then, in\n\
    the source tree,\n  \
    cargo xtask mutants V8-052\n  {REGENERATE}"))]
pub struct FidelityArgs {
    /// Show one item: the rule, and the tests that prove it
    #[arg(long, value_name = "ITEM", conflicts_with_all = ["document", "status", "markdown"])]
    item: Option<String>,
    /// Only items of this document, such as V8 or IVB
    #[arg(long, value_name = "NAME")]
    document: Option<String>,
    /// List only the items with this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Print only one JSON array
    #[arg(long)]
    json: bool,
    /// Print FIDELITY.md
    #[arg(long, conflicts_with_all = ["document", "status", "json"])]
    markdown: bool,
    /// With --markdown: print a page of every item, with links to its tests from the root of the source tree
    #[arg(long, requires = "markdown")]
    every_item: bool,
}

/// Maximum width of the column of mechanisms.
const MECHANISM: usize = 37;
/// Maximum line length of wrapped text.
const COLUMNS: usize = 100;
/// Names of the statuses in a table for a narrow terminal, in the order of [`Status::ALL`].
const SHORT_NAMES: [&str; Status::ALL.len()] = ["exact", "dep.", "appr.", "abs.", "n.p.", "stale", "n.a."];

/// Widths of the output.
struct Layout {
    /// Maximum line length of wrapped text.
    columns: usize,
    /// Width of the column of mechanisms.
    mechanism: usize,
    /// Names of the columns of the table.
    names: [&'static str; Status::ALL.len()],
}

impl Layout {
    /// The layout for a terminal with this number of columns, or for a pipe.
    fn of(terminal: Option<usize>) -> Self {
        let names = Status::ALL.map(Status::name);
        let wide = Layout { columns: COLUMNS, mechanism: MECHANISM, names };
        match terminal {
            Some(columns) if columns < wide.table(MECHANISM) => {
                let narrow = Layout { names: SHORT_NAMES, columns: columns.min(COLUMNS), ..wide };
                Layout { mechanism: columns.saturating_sub(narrow.table(0)).clamp(8, MECHANISM), ..narrow }
            }
            _ => wide,
        }
    }

    /// Width of the table with a column of mechanisms of this width.
    fn table(&self, mechanism: usize) -> usize {
        let counts: usize = self.names.iter().map(|name| 1 + name.len()).sum();
        "  A ".len() + mechanism + " items".len() + counts
    }
}

/// Runs `arctic fidelity`.
pub fn run(arguments: &FidelityArgs) -> Result<()> {
    let report = Report::of_this_build().context("the report in this program cannot be read")?;
    if let Some(name) = &arguments.document {
        let names: Vec<&str> = report.documents.iter().map(|document| document.name.as_str()).collect();
        let known = names.iter().any(|known| known.eq_ignore_ascii_case(name));
        ensure!(known, "no document has the name {name}; the documents are {}", names.join(", "));
    }
    let wanted = |item: &&Item| {
        arguments.document.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(&item.document))
            && arguments.status.is_none_or(|status| item.status == status)
    };
    let items: Vec<&Item> = match &arguments.item {
        Some(text) => vec![report.find(text).map_err(|message| anyhow!(message))?],
        None => report.items.iter().filter(wanted).collect(),
    };
    let layout = Layout::of(layout::columns());
    let text = if arguments.json {
        serde_json::to_string_pretty(&items)? + "\n"
    } else if arguments.every_item {
        report.every_item()
    } else if arguments.markdown {
        report.summary()
    } else if let (Some(_), Some(item)) = (&arguments.item, items.first()) {
        of_item(&report, item, &layout)
    } else if arguments.status.is_some() {
        listing(&items, &layout)
    } else {
        overview(&report, &items, &layout)
    };
    Ok(stdout::print(text)?)
}

/// A table by document and group, followed by the items that are not exact. A note of several items is printed once,
/// after the last of them.
fn overview(report: &Report, items: &[&Item], layout: &Layout) -> String {
    let mut text = String::new();
    for Document { name: document, title } in &report.documents {
        if !items.iter().any(|item| item.document == *document) {
            continue;
        }
        wrap(&mut text, &format!("{document}: {title}"), ["", "  "], layout.columns);
        let _ = writeln!(text, "{:<width$} items {}", "", layout.names.join(" "), width = layout.mechanism + 4);
        let mut total = Counts::default();
        for group in report.groups(document) {
            line(&mut text, group.letter, group.mechanism, group.counts, layout);
            total = std::array::from_fn(|n| total[n] + group.counts[n]);
        }
        line(&mut text, "", "total", total, layout);
        text.push('\n');
    }
    let short = SHORT_NAMES.into_iter().zip(Status::ALL.map(Status::name)).filter(|(short, name)| short != name);
    if layout.names == SHORT_NAMES {
        let legend: Vec<String> = short.map(|(short, name)| format!("{short} {name}")).collect();
        wrap(&mut text, &legend.join(", "), ["", ""], layout.columns);
        text.push('\n');
    }
    let listed = [(Status::Departs, "Departs"), (Status::Approximate, "Approximate"), (Status::Absent, "Absent")];
    for (status, heading) in listed {
        let of_status: Vec<&Item> = items.iter().copied().filter(|item| item.status == status).collect();
        if !of_status.is_empty() {
            let _ = writeln!(text, "{heading}, {} items", of_status.len());
            for (n, item) in of_status.iter().enumerate() {
                let repeated = of_status.get(n + 1).is_some_and(|next| next.note == item.note);
                entry(&mut text, item, !repeated, layout);
            }
            text.push('\n');
        }
    }
    let stale: Vec<&str> = items.iter().filter(|item| item.stale).map(|item| item.id.as_str()).collect();
    if !stale.is_empty() {
        let reason = "their code or tests have changed since `cargo xtask mutants`";
        wrap(&mut text, &format!("Stale, {} items: {reason}", stale.len()), ["", "  "], layout.columns);
        wrap(&mut text, &stale.join(" "), ["  "; 2], layout.columns);
        text.push('\n');
    }
    let further = "arctic fidelity --item ITEM shows one item; --status unproven lists those not proven yet.";
    wrap(&mut text, further, ["", ""], layout.columns);
    text
}

fn line(text: &mut String, letter: &str, mechanism: &str, counts: Counts, layout: &Layout) {
    let all: usize = counts.iter().sum();
    let width = layout.mechanism;
    let mechanism = match mechanism.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", mechanism[..at].rsplit_once(' ').map_or("", |(words, _)| words)),
        None => mechanism.into(),
    };
    let _ = write!(text, "  {letter:<2}{mechanism:<width$} {all:>5}");
    for (name, count) in layout.names.into_iter().zip(counts) {
        let count = if count == 0 { "-".into() } else { count.to_string() };
        let _ = write!(text, " {count:>width$}", width = name.len());
    }
    text.push('\n');
}

/// A list of the items, each with its note and its tests.
fn listing(items: &[&Item], layout: &Layout) -> String {
    let mut text = String::new();
    for item in items {
        entry(&mut text, item, true, layout);
        for test in &item.tests {
            let _ = writeln!(text, "          {test}");
        }
    }
    let _ = writeln!(text, "{} items", items.len());
    text
}

/// Indentation below the number of an item.
const INDENT: &str = "          ";

/// Appends the item's number and title and, `with_note`, its note and its driver's file.
fn entry(text: &mut String, item: &Item, with_note: bool, layout: &Layout) {
    wrap(text, &item.title, [&format!("  {:<7} ", item.id), INDENT], layout.columns);
    for line in item.note.iter().chain(&item.driver).filter(|_| with_note) {
        wrap(text, line, [INDENT; 2], layout.columns);
    }
}

fn of_item(report: &Report, item: &Item, layout: &Layout) -> String {
    let mut text = String::new();
    let document = report.documents.iter().find(|document| document.name == item.document);
    let title = document.map_or("", |document| document.title.as_str());
    let stale = if item.stale { " (its code or tests have changed since `cargo xtask mutants`)" } else { "" };
    let marks: Vec<String> =
        legend::of_class(&item.class).iter().map(|(mark, meaning)| format!("{mark} {meaning}")).collect();
    wrap(&mut text, &format!("{}: {}", item.id, item.title), ["", "  "], layout.columns);
    for (heading, line) in [
        ("document", title.to_owned()),
        ("group", format!("{} {}, {}", item.document, item.group, item.mechanism)),
        ("class", format!("[{}] {}", item.class, marks.join("; "))),
        ("status", format!("{}{stale}", item.status.name())),
    ] {
        wrap(&mut text, &line, [&format!("{heading:<10} "), "           "], layout.columns);
    }
    let mut section = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{heading}");
            lines.iter().for_each(|line| wrap(&mut text, line, ["  "; 2], layout.columns));
        }
    };
    section("What differs", item.note.as_slice());
    section("As in", item.driver.as_slice());
    section("The rule", &item.facts);
    section("Claimed by", &item.tests);
    section("References", &legend::of_facts(&item.facts));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_shows_rule_and_tests() {
        let report = Report::of_this_build().unwrap();
        let item = report.find("V8-153").unwrap();
        let text = of_item(&report, item, &Layout::of(None));
        for part in [
            "V8-153: Shifts\ndocument   Volume 8, Command Stream Programming\n",
            "class      [DOC] DOC stated completely",
            "\n\nReferences\n  L271: line",
            "15 -> 8",
            "::shifts_round_down\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_overview_counts_and_explains() {
        let report = Report::of_this_build().unwrap();
        let items: Vec<&Item> = report.items.iter().filter(|item| item.document == "V13").collect();
        let text = overview(&report, &items, &Layout::of(None));
        assert!(
            text.contains("  total") && text.contains("\n  V13-008 Graphics aperture") && !text.contains("V8:"),
            "{text}"
        );
    }

    /// Words, such as paths of tests, may be longer than a line.
    #[test]
    fn output_fits_the_terminal() {
        let report = Report::of_this_build().unwrap();
        let items: Vec<&Item> = report.items.iter().collect();
        for (terminal, most) in [(None, 110), (Some(200), 110), (Some(100), 100), (Some(80), 80), (Some(64), 64)] {
            let layout = Layout::of(terminal);
            let texts = [overview(&report, &items, &layout), of_item(&report, items[0], &layout)];
            for line in texts.iter().flat_map(|text| text.lines()) {
                let is_word = line.split_whitespace().count() == 1;
                assert!(is_word || line.chars().count() <= most, "{terminal:?}: {line}");
            }
        }
    }
}
