// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors in assembly text, with their place.

use std::fmt::Write;
use std::ops::Range;

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Number of the line, from 1.
    pub line: usize,
    /// Bytes of the line.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
}

/// The errors of a source, at most [`Diagnostics::LIMIT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Number of errors after which the assembler stops.
    pub const LIMIT: usize = 20;

    /// Text with the line and an underline for each error.
    pub fn render(&self, source: &str, name: &str) -> String {
        let mut text = String::new();
        for error in &self.0 {
            let line = source.lines().nth(error.line - 1).unwrap_or_default().trim_end();
            let start = error.span.start.min(line.len());
            let end = error.span.end.clamp(start, line.len());
            let column = line.get(..start).map_or(start, |text| text.chars().count());
            let marks = line.get(start..end).map_or(1, |text| text.chars().count()).max(1);
            let margin = " ".repeat(error.line.to_string().len());
            let _ = writeln!(text, "error: {}", error.message);
            let _ = writeln!(text, "{margin}--> {name}:{}:{}", error.line, column + 1);
            let _ = writeln!(text, "{margin} |\n{} | {line}", error.line);
            let _ = writeln!(text, "{margin} | {}{}", " ".repeat(column), "^".repeat(marks));
        }
        text
    }
}
