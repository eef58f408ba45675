//! What a card's memory and messages say, for people: batches, rings, context images, status quadwords and messages of
//! the GuC, disassembled from the tables that execute them. Nothing here runs on a card; whatever the bytes are, the work
//! is bounded by their number.

pub mod batch;
pub mod context;
pub mod guc;
pub mod register;
mod show;
pub mod status;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use batch::{Batch, Command};
pub use guc::Message;
pub use show::Shown;

/// A line of a decoding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// What follows.
    Section {
        /// Its name.
        title: String,
    },
    /// Something that is told of what surrounds it.
    Note {
        /// The sentence.
        text: String,
    },
    /// A command.
    Command(Command),
    /// A dword of a context's image or status page, or a register.
    Dword(Dword),
    /// A message of host or GuC.
    Message(Message),
}

/// A named dword with what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dword {
    /// Its index in what is decoded.
    pub index: usize,
    /// Name of the register or field.
    pub name: String,
    /// Its value.
    pub value: u32,
    /// What the value says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

impl Line {
    /// A section's title.
    pub fn section(title: impl Into<String>) -> Line {
        Line::Section { title: title.into() }
    }

    /// A note.
    pub fn note(text: impl Into<String>) -> Line {
        Line::Note { text: text.into() }
    }
}

impl fmt::Display for Line {
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
