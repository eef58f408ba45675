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
    pub cure: Option<String>,
}

impl Diagnostic {
    /// An error without a cure.
    pub fn new(span: Range<usize>, title: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { span, title: title.into(), reason: reason.into(), cure: None }
    }

    /// Adds a cure.
    #[must_use]
    pub fn cure(mut self, cure: impl Into<String>) -> Self {
        self.cure = Some(cure.into());
        self
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
        if let Some(cure) = &self.cure {
            group = group.element(Level::HELP.message(cure.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
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
