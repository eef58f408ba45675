// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of a running card as a tree, for display. A request names a part by its path, as
//! `functions/vf1/contexts`, and says how many levels of parts below it are wanted. Only what the request needs is visited.
//!
//! A unit shows its state by [`Inspect`], or, where all of its fields are plain values, by deriving [`Serialize`]. Reading has no
//! effect on the card.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod node;
mod runs;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

pub use node::{Node, VALUE};
pub use runs::{Run, Runs};

/// Maximum size of an answer in bytes of JSON, approximately.
const MOST_BYTES: usize = 512 << 10;
/// Name of the part that says that the answer was cut.
pub const CUT: &str = "...";
/// Maximum number of names in a path.
const LONGEST_PATH: usize = 32;
/// Maximum number of names that a message lists.
const MOST_LISTED: usize = 16;

/// Something with state that can be shown.
pub trait Inspect {
    /// Shows the parts of the state. Must not change it, nor wait for a guest.
    fn inspect(&self, to: &mut Inspector<'_>);
}

/// Names that lead to a part, separated by `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl Path {
    /// Splits a path. An empty one is that of the whole tree.
    ///
    /// # Errors
    /// It has too many names. The text is a sentence without its end.
    pub fn new(text: &str) -> Result<Path, String> {
        let names: Vec<_> = text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match names.len() {
            0..=LONGEST_PATH => Ok(Path(names)),
            count => Err(format!("the path has {count} names, at most {LONGEST_PATH} are possible")),
        }
    }
}

/// There is no part at a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Missing {
    /// The name that is missing.
    name: String,
    /// The part that does not have it.
    within: String,
    /// The names there.
    names: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { name, within, names } = self;
        let within = if within.is_empty() { "the card" } else { within };
        match names.split_at_checked(MOST_LISTED) {
            _ if names.is_empty() => write!(f, "{within} has no parts, so no {name}"),
            Some((first, rest)) if !rest.is_empty() => {
                write!(f, "{within} has no {name}: it has {}, and {} more", first.join(", "), rest.len())
            }
            _ => write!(f, "{within} has no {name}: it has {}", names.join(", ")),
        }
    }
}

/// Visits the tree of `root`: the part at `path`, with `depth` levels of parts below it.
///
/// # Errors
/// There is no part at the path.
pub fn visit(root: &dyn Inspect, path: &Path, depth: u8) -> Result<Node, Missing> {
    let mut room = MOST_BYTES;
    let mut inspector = Inspector { path: &path.0, depth, room: &mut room, found: Found::default() };
    root.inspect(&mut inspector);
    let missing = |(level, names): (usize, Vec<String>)| Missing {
        name: path.0.get(level).cloned().unwrap_or_default(),
        within: path.0.get(..level).unwrap_or_default().join("/"),
        names,
    };
    match inspector.found {
        Found { node: Some(node), .. } => Ok(node),
        Found { parts, .. } if path.0.is_empty() => Ok(Node::Parts(parts)),
        Found { missing: Some(found), .. } => Err(missing(found)),
        Found { names, .. } => Err(missing((0, names))),
    }
}

/// Result of a visit.
#[derive(Default)]
struct Found {
    /// The parts, where the path has ended.
    parts: Vec<(String, Node)>,
    /// The part to which the path leads.
    node: Option<Node>,
    /// The names of parts, where the path has not ended.
    names: Vec<String>,
    /// The path ends before its last name: its length there, and the names of the parts there.
    missing: Option<(usize, Vec<String>)>,
}

/// Receives the parts of a unit's state, in the order in which they are shown.
pub struct Inspector<'r> {
    /// The names from here to the wanted part; empty in it.
    path: &'r [String],
    /// Levels of parts that are wanted below this one, or below the wanted part.
    depth: u8,
    /// Bytes that the answer may still have.
    room: &'r mut usize,
    found: Found,
}

impl Inspector<'_> {
    /// The name of the part that is wanted of this one, for parts that are too many to be listed, such as addresses. The part with
    /// this name is then shown by [`Inspector::part`] or [`Inspector::value`].
    pub fn wanted(&self) -> Option<&str> {
        self.path.first().map(String::as_str)
    }

    /// The name and the number of the part that is wanted of this one, if the name is an address: hexadecimal, with 0x.
    pub fn wanted_address(&self) -> Option<(String, u64)> {
        let name = self.wanted()?;
        Some((name.to_owned(), hexadecimal(name)?))
    }

    /// Shows a value.
    pub fn value(&mut self, name: &str, value: impl Into<Node>) {
        self.lazily(name, || value.into());
    }

    /// Shows an address.
    pub fn address(&mut self, name: &str, value: impl Into<u64>) {
        self.lazily(name, || Node::address(value));
    }

    /// Shows the state of a structure: its fields.
    pub fn state(&mut self, name: &str, value: &impl Serialize) {
        self.lazily(name, || Node::of(value));
    }

    /// Shows the fields of a structure with bit fields ([`fields_of`]) as parts of this one.
    pub fn fields(&mut self, value: &impl fmt::Debug) {
        fields_of(value).into_iter().for_each(|(name, value)| self.value(&name, value));
    }

    /// Shows what `node` returns, which is called only if it is wanted.
    pub fn lazily(&mut self, name: &str, node: impl FnOnce() -> Node) {
        let Some((wanted, rest)) = self.path.split_first() else {
            let node = node().limited(self.depth);
            return self.push(name, node);
        };
        if !wanted.eq_ignore_ascii_case(name) || self.found.node.is_some() {
            return self.note(name);
        }
        let mut node = node();
        for (level, part) in (1_usize..).zip(rest) {
            let parts = match node {
                Node::Parts(parts) => parts,
                _ => Vec::new(),
            };
            let names = || parts.iter().map(|(name, _)| name.clone()).collect();
            match parts.iter().position(|(name, _)| name.eq_ignore_ascii_case(part)) {
                Some(at) => node = parts.into_iter().nth(at).map_or(Node::Folded, |(_, node)| node),
                None => {
                    self.found.missing = Some((level, names()));
                    return;
                }
            }
        }
        self.found.node = Some(node.limited(self.depth.saturating_add(1)));
    }

    /// Shows parts: `inspect` is called only if they are wanted.
    pub fn part(&mut self, name: &str, inspect: impl FnOnce(&mut Inspector<'_>)) {
        self.enter(name, None, inspect);
    }

    /// Shows parts of which there may be many: only if the path leads to them.
    pub fn table(&mut self, name: &str, inspect: impl FnOnce(&mut Inspector<'_>)) {
        if self.path.is_empty() {
            return self.push(name, Node::Folded);
        }
        self.enter(name, None, inspect);
    }

    /// Shows a value with parts, such as a register with its fields.
    pub fn value_with_parts(&mut self, name: &str, value: impl Into<Node>, inspect: impl FnOnce(&mut Inspector<'_>)) {
        self.enter(name, Some(value.into()), inspect);
    }

    fn enter(&mut self, name: &str, value: Option<Node>, inspect: impl FnOnce(&mut Inspector<'_>)) {
        let (path, depth) = match self.path.split_first() {
            None => match self.depth.checked_sub(1) {
                // Nothing below is wanted.
                None => return self.push(name, value.unwrap_or(Node::Folded)),
                Some(depth) => (self.path, depth),
            },
            Some((wanted, rest)) if wanted.eq_ignore_ascii_case(name) && self.found.node.is_none() => {
                (rest, self.depth)
            }
            Some(_) => return self.note(name),
        };
        let leads = !self.path.is_empty();
        let mut below = Inspector { path, depth, room: &mut *self.room, found: Found::default() };
        inspect(&mut below);
        let found = below.found;
        if !path.is_empty() {
            self.found.node = found.node;
            let missing = found.missing.map_or((0, found.names), |missing| missing);
            self.found.missing = Some((missing.0.saturating_add(1), missing.1));
            return;
        }
        let is_plain = found.parts.is_empty();
        let node = match value {
            Some(value) if is_plain => value,
            value => Node::Parts(value.map(|value| (VALUE.to_owned(), value)).into_iter().chain(found.parts).collect()),
        };
        if leads { self.found.node = Some(node) } else { self.found.parts.push((name.to_owned(), node)) }
    }

    /// Notes a name beside that which is wanted.
    fn note(&mut self, name: &str) {
        self.found.names.push(name.to_owned());
    }

    fn push(&mut self, name: &str, node: Node) {
        let bytes = node.bytes().saturating_add(name.len()).saturating_add(4);
        match self.room.checked_sub(bytes) {
            Some(left) => {
                *self.room = left;
                self.found.parts.push((name.to_owned(), node));
            }
            None => {
                *self.room = 0;
                if self.found.parts.last().is_none_or(|(name, _)| name != CUT) {
                    self.found.parts.push((CUT.to_owned(), "the answer is cut: name a part".into()));
                }
            }
        }
    }

    /// Returns whether nothing more is shown: a long list may end.
    pub fn is_full(&self) -> bool {
        *self.room == 0
    }
}

/// The number that a text is in hexadecimal, with 0x.
fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").or(text.strip_prefix("0X"))?, 16).ok()
}

/// The fields of a structure with bit fields, by the form that its `Debug` has: their names, and flags, numbers or texts.
pub fn fields_of(value: &impl fmt::Debug) -> Vec<(String, Node)> {
    let text = format!("{value:#?}");
    let fields = text.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let plain = |text: &str| match text {
        "true" => Node::Flag(true),
        "false" => Node::Flag(false),
        number => number.parse().map_or_else(|_| Node::from(text), Node::Number),
    };
    let field = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), plain(value)));
    fields.filter(|line| !line.starts_with(' ')).filter_map(field).collect()
}
