// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors with a place in the source, a reason and a cure.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Errors of one source that are reported in one run (AFC-052).
pub const LIMIT: usize = 20;

/// An error in a source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the source that are wrong.
    pub span: Range<usize>,
    /// What is wrong, in one sentence.
    pub title: String,
    /// The reason, printed below the underline.
    pub reason: String,
    /// What to do, if there is one thing to do.
    pub help: Option<String>,
    /// True if an operand or a separator is absent or of another kind. Then the form of the instruction is the cure.
    pub(crate) is_syntax: bool,
}

impl Diagnostic {
    /// An error without a cure.
    pub fn new(span: Range<usize>, title: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { span, title: title.into(), reason: reason.into(), help: None, is_syntax: false }
    }

    /// An error without a cure, for an operand or a separator that is absent or of another kind.
    pub(super) fn syntax(span: Range<usize>, title: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { is_syntax: true, ..Self::new(span, title, reason) }
    }

    /// Adds a cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds `write NAME` as the cure, if there is a name like the wrong one.
    #[must_use]
    pub(super) fn help_by_name<'n>(self, prefix: &str, name: &str, names: impl Iterator<Item = &'n str>) -> Self {
        match nearest(name, names) {
            Some(near) => self.help(format!("write `{prefix}{near}`")),
            None => self,
        }
    }

    /// Writes the error with the line of the source, in the form of rustc's errors.
    pub fn render(&self, source: &str, path: &str, color: bool) -> String {
        self.render_as(Level::ERROR, source, path, color)
    }

    /// As [`Self::render`], as a warning.
    pub fn render_warning(&self, source: &str, path: &str, color: bool) -> String {
        self.render_as(Level::WARNING, source, path, color)
    }

    fn render_as(&self, level: Level<'_>, source: &str, path: &str, color: bool) -> String {
        let snippet = Snippet::source(source)
            .path(path)
            .annotation(AnnotationKind::Primary.span(self.span.clone()).label(self.reason.as_str()));
        let mut group = level.primary_title(self.title.as_str()).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// The name of `names` that is most like `name`, if it differs in two characters at most, and in less than half of them.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 64;
    let limit = 2.min(name.len().saturating_sub(1) / 2);
    let near = names.filter(|other| name.len() <= LONGEST && other.len().abs_diff(name.len()) <= limit);
    let distances = near.map(|other| (distance(name.as_bytes(), other.as_bytes()), other));
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, other)| other)
}

/// Characters to change, insert or remove (Levenshtein).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The errors of a source, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Writes all errors.
    pub fn render(&self, source: &str, path: &str, color: bool) -> String {
        let texts: Vec<String> = self.0.iter().map(|error| error.render(source, path, color)).collect();
        texts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles: Vec<&str> = self.0.iter().map(|error| error.title.as_str()).collect();
        f.write_str(&titles.join("; "))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_name_differs_in_two_characters_at_most() {
        let near = |name| nearest(name, ["add", "addhi", "IB1_BASE", "IB2_BASE"].into_iter());
        assert_eq!(
            (near("IB9_BASE"), near("IB1BASE"), near("adhi")),
            (Some("IB1_BASE"), Some("IB1_BASE"), Some("addhi"))
        );
        assert_eq!((near("a"), near("frobnicate"), near(&"x".repeat(100_000))), (None, None, None));
    }
}
