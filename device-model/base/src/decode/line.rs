// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Lines of disassembly.

use std::fmt;

use serde::Serialize;

use super::batch::Command;

/// One line of disassembly. `M` is the family's message between host and firmware.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line<M> {
    /// Title of the following lines.
    Section {
        /// Its name.
        title: String,
    },
    /// A remark on the surrounding lines.
    Note {
        /// Text of the remark.
        text: String,
    },
    /// A command.
    Command(Command),
    /// A dword of a context image or status page, or a register.
    Dword(Dword),
    /// A message between host and firmware.
    Message(M),
}

/// A named dword with its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dword {
    /// Index in the input.
    pub index: usize,
    /// Name of the register or field.
    pub name: String,
    /// The value.
    pub value: u32,
    /// Meaning of the value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

impl<M> Line<M> {
    /// Creates a section line.
    pub fn section(title: impl Into<String>) -> Self {
        Line::Section { title: title.into() }
    }

    /// Creates a note line.
    pub fn note(text: impl Into<String>) -> Self {
        Line::Note { text: text.into() }
    }
}

impl<M: fmt::Display> fmt::Display for Line<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Section { title } => write!(f, "\n{title}"),
            Line::Note { text } => write!(f, "  # {text}"),
            Line::Command(command) => command.fmt(f),
            Line::Dword(dword) => dword.fmt(f),
            Line::Message(message) => message.fmt(f),
        }
    }
}

impl fmt::Display for Dword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dword { index, name, value, meaning } = self;
        let line = format!("  [{index:#05x}] {name:<28} {value:#010x}  {meaning}");
        f.write_str(line.trim_end())
    }
}
