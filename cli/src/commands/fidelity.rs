// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic fidelity`: lists which rules of Intel's documents the card implements.

use std::fmt::Write;

use anyhow::{Context, Result, anyhow, ensure};
use arctic_fidelity::report::{Counts, Document, Item, REGENERATE, Report, Status};

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

/// Width of the column of mechanisms.
const MECHANISM: usize = 37;

/// Maximum line length of wrapped text.
const COLUMNS: usize = 100;

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
    let text = if arguments.json {
        serde_json::to_string_pretty(&items)? + "\n"
    } else if arguments.every_item {
        report.every_item()
    } else if arguments.markdown {
        report.summary()
    } else if let (Some(_), Some(item)) = (&arguments.item, items.first()) {
        of_item(&report, item)
    } else if arguments.status.is_some() {
        listing(&items)
    } else {
        overview(&report, &items)
    };
    Ok(stdout::print(text)?)
}

/// A table by document and group, followed by the items that are not exact. A note of several items is printed once,
/// after the last of them.
fn overview(report: &Report, items: &[&Item]) -> String {
    let mut text = String::new();
    let counted = Status::ALL.map(Status::name).join(" ");
    for Document { name: document, title } in &report.documents {
        if !items.iter().any(|item| item.document == *document) {
            continue;
        }
        let heading = format!("{document}: {title}");
        let _ = writeln!(text, "{heading:<width$} items {counted}", width = MECHANISM + 4);
        let mut total = Counts::default();
        for group in report.groups(document) {
            line(&mut text, group.letter, group.mechanism, group.counts);
            total = std::array::from_fn(|n| total[n] + group.counts[n]);
        }
        line(&mut text, "", "total", total);
        text.push('\n');
    }
    let listed = [(Status::Departs, "Departs"), (Status::Approximate, "Approximate"), (Status::Absent, "Absent")];
    for (status, heading) in listed {
        let of_status: Vec<&Item> = items.iter().copied().filter(|item| item.status == status).collect();
        if !of_status.is_empty() {
            let _ = writeln!(text, "{heading}, {} items", of_status.len());
            for (n, item) in of_status.iter().enumerate() {
                let repeated = of_status.get(n + 1).is_some_and(|next| next.note == item.note);
                entry(&mut text, item, !repeated);
            }
            text.push('\n');
        }
    }
    let stale: Vec<&str> = items.iter().filter(|item| item.stale).map(|item| item.id.as_str()).collect();
    if !stale.is_empty() {
        let _ = writeln!(
            text,
            "Stale, {} items: their code or tests have changed since `cargo xtask mutants`",
            stale.len()
        );
        wrapped(&mut text, &stale.join(" "), "  ");
        text.push('\n');
    }
    text.push_str("arctic fidelity --item ITEM shows one item; --status unproven lists those not proven yet.\n");
    text
}

fn line(text: &mut String, letter: &str, mechanism: &str, counts: Counts) {
    let all: usize = counts.iter().sum();
    let mechanism = match mechanism.char_indices().nth(MECHANISM) {
        Some((at, _)) => format!("{}…", mechanism[..at].rsplit_once(' ').map_or("", |(words, _)| words)),
        None => mechanism.into(),
    };
    let _ = write!(text, "  {letter:<2}{mechanism:<MECHANISM$} {all:>5}");
    for (status, count) in Status::ALL.into_iter().zip(counts) {
        let count = if count == 0 { "-".into() } else { count.to_string() };
        let _ = write!(text, " {count:>width$}", width = status.name().len());
    }
    text.push('\n');
}

/// A list of the items, each with its note and its tests.
fn listing(items: &[&Item]) -> String {
    let mut text = String::new();
    for item in items {
        entry(&mut text, item, true);
        for test in &item.tests {
            let _ = writeln!(text, "          {test}");
        }
    }
    let _ = writeln!(text, "{} items", items.len());
    text
}

/// Appends the item's number and title and, `with_note`, its note and its driver's file.
fn entry(text: &mut String, item: &Item, with_note: bool) {
    let _ = writeln!(text, "  {:<7} {}", item.id, item.title);
    for line in item.note.iter().chain(&item.driver).filter(|_| with_note) {
        wrapped(text, line, "          ");
    }
}

fn of_item(report: &Report, item: &Item) -> String {
    let mut text = format!("{}: {}\n", item.id, item.title);
    let document = report.documents.iter().find(|document| document.name == item.document);
    let title = document.map_or("", |document| document.title.as_str());
    // As in `L271-319`.
    let cites = |fact: &String| {
        fact.split(' ').any(|word| word.starts_with('L') && word[1..].starts_with(|c: char| c.is_ascii_digit()))
    };
    let lines = if item.facts.iter().any(cites) { "; L in the rule: lines of its plain text" } else { "" };
    let _ = writeln!(text, "document   {title}{lines}");
    let _ = writeln!(text, "group      {} {}, {}", item.document, item.group, item.mechanism);
    let _ = writeln!(text, "class      [{}] {}", item.class, class(&item.class));
    let stale = if item.stale { " (its code or tests have changed since `cargo xtask mutants`)" } else { "" };
    let _ = writeln!(text, "status     {}{stale}", item.status.name());
    let mut section = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{heading}");
            lines.iter().for_each(|line| wrapped(&mut text, line, "  "));
        }
    };
    section("What differs", item.note.iter().cloned().collect());
    section("As in", item.driver.iter().cloned().collect());
    section("The rule", item.facts.clone());
    section("Claimed by", item.tests.clone());
    text
}

/// The meaning of a class.
fn class(class: &str) -> &'static str {
    match class.get(..3) {
        Some("DOC" | "doc") => "stated completely in the document",
        Some("PTR") => "named in the document, bit layout defined elsewhere",
        Some("INF") => "follows from the document's own tables",
        Some("DRV") => "taken from the drivers",
        _ => "",
    }
}

/// Appends `paragraph`, wrapped to lines of at most [`COLUMNS`] that begin with `indent`.
fn wrapped(text: &mut String, paragraph: &str, indent: &str) {
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if width == 0 {
            text.push_str(indent);
            width = indent.len();
        } else if width + 1 + length > COLUMNS {
            let _ = write!(text, "\n{indent}");
            width = indent.len();
        } else {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    if width > 0 {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_shows_rule_and_tests() {
        let report = Report::of_this_build().unwrap();
        let item = report.find("V8-153").unwrap();
        let text = of_item(&report, item);
        for part in [
            "V8-153: Shifts\ndocument   Volume 8, Command Stream Programming; L in the rule: lines of",
            "[DOC] stated completely",
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
        let text = overview(&report, &items);
        assert!(
            text.contains("  total") && text.contains("\n  V13-008 Graphics aperture") && !text.contains("V8:"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        let mut text = String::new();
        wrapped(&mut text, &"word ".repeat(40), "  ");
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= COLUMNS), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
    }
}
