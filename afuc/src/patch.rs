// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Addition of handlers to an image: new code before the packet table, with all targets, tables and sizes moved
//! (AFC-062).

use std::collections::HashSet;
use std::ops::Range;

use crate::container::Image;
use crate::isa::Generation;
use crate::names::{PacketLabel, packet_of_label};
use crate::text::{Diagnostic, Diagnostics, Line, Listing, Options, Syntax, assemble, disassemble};

/// Why an image cannot be patched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The image has no packet table that was found.
    #[error("the image has no packet table, so a handler cannot be added")]
    NoTable,
    /// A packet has a handler.
    #[error("{0} has a handler; to put the new one in its place, use --replace")]
    InUse(String),
    /// The change defines no handler.
    #[error("the change defines no label of a packet, such as `UNKN90:`")]
    NoHandler,
    /// Errors in the source of the change.
    #[error("{0}")]
    Source(#[from] Diagnostics),
}

/// A patched image.
#[derive(Debug, Clone)]
pub struct Patched {
    /// The image.
    pub image: Image,
    /// The words of the change in the image.
    pub lines: Vec<Line>,
    /// Entries of the packet table that are new or changed: label, old word of the old image, new word.
    pub handlers: Vec<(String, u32, u32)>,
    /// What is suspicious in the change, but has a meaning. Places are those in the change.
    pub warnings: Vec<Diagnostic>,
}

/// Adds the code of a source to the first section of an image. Its packet labels fill the packet table. A handler that the
/// image has is replaced only with `replace`; the entries of unknown packets, `UNKNn`, are always free.
///
/// # Errors
///
/// If the source has errors, with places in it, or a handler exists.
pub fn patch(base: &Image, change: &str, replace: bool) -> Result<Patched, PatchError> {
    let section = base.sections().into_iter().next().ok_or(PatchError::NoTable)?;
    let table = section.table.clone().ok_or(PatchError::NoTable)?;
    let mut text = disassemble(base, Syntax::Native);
    let labels = packet_labels(change, base.generation());
    if labels.is_empty() {
        return Err(PatchError::NoHandler);
    }
    let own: HashSet<String> = text.lines().filter_map(|line| line.strip_suffix(':')).map(str::to_owned).collect();
    for (label, _) in labels.iter().filter(|(label, _)| own.contains(label)) {
        if !replace && !label.starts_with("UNKN") {
            return Err(PatchError::InUse(label.clone()));
        }
        text = rename(&text, label, &format!("old_{label}"));
    }
    // Before the alignment of the first table.
    let at = text.find("\njumptbl:\n").ok_or(PatchError::NoTable)? + 1;
    let at = text[..at].strip_suffix(".align 32\n").map_or(at, str::len);
    let inserted = at..at + change.len();
    let source = format!("{}{change}\n{}", &text[..at], &text[at..]);
    let options = Options { generation: base.chip().is_none().then(|| base.generation()) };
    let assembled = assemble(&source, &options)
        .map_err(|errors| Diagnostics(errors.0.into_iter().map(|error| in_change(error, &inserted)).collect()))?;
    let warnings = assembled.warnings.into_iter().map(|warning| in_change(warning, &inserted)).collect();
    let image = assembled.image;
    let word = |image: &Image, index: usize| image.words.get(index).copied().unwrap_or_default();
    let new_table = image.sections().first().and_then(|section| section.table.clone()).ok_or(PatchError::NoTable)?;
    let handlers = labels
        .into_iter()
        .map(|(label, opcode)| {
            let index = usize::from(opcode);
            (label, word(base, table.start + index), word(&image, new_table.start + index))
        })
        .collect();
    let first = words_of(&text[..at]);
    let listing = Listing::of(&image).into_iter().next().map(|listing| listing.lines).unwrap_or_default();
    let lines = listing.into_iter().skip(first).take_while(|line| (line.address as usize) < new_table.start).collect();
    Ok(Patched { image, lines, handlers, warnings })
}

/// Words that the lines of a disassembly make.
fn words_of(text: &str) -> usize {
    let is_word = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(';') && !line.starts_with('.') && !line.ends_with(':')
    };
    text.lines().filter(is_word).count()
}

/// The labels of a source that name packets.
fn packet_labels(source: &str, generation: Generation) -> Vec<(String, u8)> {
    let names = source.lines().filter_map(|line| line.trim_start().split_once(':')).map(|(name, _)| name);
    names
        .filter_map(|name| match packet_of_label(name, generation) {
            PacketLabel::Handler(opcode) => Some((name.to_owned(), opcode)),
            _ => None,
        })
        .collect()
}

/// Renames a label and its uses.
fn rename(text: &str, old: &str, new: &str) -> String {
    let line = |line: &str| {
        if line.strip_suffix(':') == Some(old) {
            return format!("{new}:\n");
        }
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        match line.split_once(&format!("#{old}")) {
            Some((before, after)) if ends(after) => format!("{before}#{new}{after}\n"),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// Returns the error or warning with its place in the change. Those outside of it come from it too, for instance a
/// branch that became too long; they have its nearest end as their place.
fn in_change(error: Diagnostic, inserted: &Range<usize>) -> Diagnostic {
    let place = |at: usize| at.clamp(inserted.start, inserted.end) - inserted.start;
    Diagnostic { span: place(error.span.start)..place(error.span.end), ..error }
}
