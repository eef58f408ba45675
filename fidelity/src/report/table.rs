// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The report as a table: columns separated by tabs. A document's line has its name and title, a group's the document, its letter and
//! its mechanism, an item's its ID, status, title, tests, driver's file and note. Lines of items follow that of their group.

use std::fmt::Write;

use super::{DEFAULT_CLASS, Document, Item, Report, Status};

/// Ends the status of an item of which code or tests have changed since its mutants were run.
const STALE: &str = ", stale";

/// The report cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A line of the table is not in its form.
    #[error("docs/fidelity.tsv line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A document is not in its form.
    #[error("docs/spec: {0}")]
    Document(String),
}

/// Renders the table.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for Document { name, title } in &report.documents {
        let _ = writeln!(text, "{name}\t{}", cell(title));
        let mut group = None;
        for item in report.items.iter().filter(|item| item.document == *name) {
            if group != Some(&item.group) {
                group = Some(&item.group);
                let _ = writeln!(text, "{name}\t{}\t{}", cell(&item.group), cell(&item.mechanism));
            }
            let stale = if item.stale { STALE } else { "" };
            let tests = item.tests.join(" ");
            let [title, driver, note] = [Some(&item.title), item.driver.as_ref(), item.note.as_ref()]
                .map(|text| cell(text.map_or("", |text| text)));
            let _ = writeln!(text, "{}\t{}{stale}\t{title}\t{tests}\t{driver}\t{note}", item.id, item.status.name());
        }
    }
    text
}

/// A text of one line, as a column has it.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses the table.
pub(super) fn parse(text: &str) -> Result<Report, TableError> {
    let mut report = Report::default();
    let mut group = None;
    for (line, text) in (1..).zip(text.lines()) {
        let error = |reason: String| TableError::Line { line, reason };
        let columns: Vec<&str> = text.split('\t').collect();
        match columns[..] {
            [name, title] => {
                report.documents.push(Document { name: name.into(), title: title.into() });
                group = None;
            }
            [_, letter, mechanism] => group = Some((letter, mechanism)),
            [id, status, title, tests, driver, note] => {
                let document = report.documents.last().map(|document| document.name.clone()).unwrap_or_default();
                if id.rsplit_once('-').is_none_or(|(name, _)| name != document) {
                    return Err(error(format!("{id} is not below its document")));
                }
                let Some((letter, mechanism)) = group else {
                    return Err(error(format!("{id} is not below its group")));
                };
                let (status, stale) = status.strip_suffix(STALE).map_or((status, false), |status| (status, true));
                let known = Status::ALL.into_iter().find(|known| known.name() == status);
                let text = |column: &str| Some(column.to_owned()).filter(|column| !column.is_empty());
                report.items.push(Item {
                    id: id.into(),
                    document,
                    group: letter.into(),
                    mechanism: mechanism.into(),
                    title: title.into(),
                    class: DEFAULT_CLASS.into(),
                    facts: Vec::new(),
                    status: known.ok_or_else(|| error(format!("there is no status {status}")))?,
                    tests: tests.split(' ').filter(|test| !test.is_empty()).map(str::to_owned).collect(),
                    stale,
                    note: text(note),
                    driver: text(driver),
                });
            }
            _ => return Err(error(format!("it has {} columns", columns.len()))),
        }
    }
    Ok(report)
}
