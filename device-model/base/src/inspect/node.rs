// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Values of a tree of state, and their JSON form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Name of the value of a part that has a value and parts, such as a register with its fields.
pub const VALUE: &str = "value";

/// A part of a tree of state. In JSON, parts are an object, in the order in which they are shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// There are parts, which were not visited: `null` in JSON.
    Folded,
    /// A flag.
    Flag(bool),
    /// A number. Its unit is in its name: `_ns`, `_bytes`, `_mhz`.
    Number(u64),
    /// A number that may be negative, or one with a fraction.
    Real(f64),
    /// A text. Values of registers and addresses are hexadecimal texts.
    Text(String),
    /// Parts with their names.
    Parts(Vec<(String, Node)>),
}

impl Node {
    /// An address or a value of a register, with at least `digits` digits.
    pub fn hex(value: impl Into<u64>, digits: usize) -> Node {
        Node::Text(format!("{:#0width$x}", value.into(), width = digits.saturating_add(2)))
    }

    /// An address.
    pub fn address(value: impl Into<u64>) -> Node {
        Node::hex(value, 1)
    }

    /// Its parts; none of a plain value.
    pub fn parts(&self) -> &[(String, Node)] {
        match self {
            Node::Parts(parts) => parts,
            _ => &[],
        }
    }

    /// Its value, if it is no list of parts, or one that begins with a value.
    pub fn value(&self) -> Option<&Node> {
        match self {
            Node::Folded => None,
            Node::Parts(parts) => parts.first().filter(|(name, _)| name == VALUE).map(|(_, value)| value),
            value => Some(value),
        }
    }

    /// The state of `value`: its fields by name, without those that have no value. Empty if it cannot be serialized.
    pub fn of(value: &impl Serialize) -> Node {
        let text = serde_json::to_string(value).unwrap_or_default();
        match serde_json::from_str(&text).unwrap_or(Node::Parts(Vec::new())) {
            Node::Folded => Node::Text("none".into()),
            node => node.without_folded(),
        }
    }

    fn without_folded(self) -> Node {
        match self {
            Node::Parts(parts) => {
                let kept = parts.into_iter().filter(|(_, part)| *part != Node::Folded);
                Node::Parts(kept.map(|(name, part)| (name, part.without_folded())).collect())
            }
            value => value,
        }
    }

    /// The same without the parts that are more than `depth` levels below.
    #[must_use]
    pub fn limited(self, depth: u8) -> Node {
        match (self, depth.checked_sub(1)) {
            (Node::Parts(parts), None) if !parts.is_empty() => {
                let value = parts.into_iter().next().filter(|(name, _)| name == VALUE);
                value.map_or(Node::Folded, |(_, value)| value)
            }
            (Node::Parts(parts), Some(below)) => {
                Node::Parts(parts.into_iter().map(|(name, part)| (name, part.limited(below))).collect())
            }
            (value, _) => value,
        }
    }

    /// Approximate size in JSON, in bytes, without the parts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Node::Text(text) => text.len().saturating_add(4),
            Node::Parts(parts) => {
                let part = |(name, part): &(String, Node)| name.len().saturating_add(4).saturating_add(part.bytes());
                parts.iter().map(part).fold(2, usize::saturating_add)
            }
            _ => 8,
        }
    }
}

impl From<bool> for Node {
    fn from(value: bool) -> Node {
        Node::Flag(value)
    }
}

impl From<&str> for Node {
    fn from(value: &str) -> Node {
        Node::Text(value.to_owned())
    }
}

impl From<String> for Node {
    fn from(value: String) -> Node {
        Node::Text(value)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl From<$number> for Node {
            fn from(value: $number) -> Node {
                Node::Number(value.into())
            }
        })*
    };
}
numbers!(u8 u16 u32 u64);

impl From<usize> for Node {
    fn from(value: usize) -> Node {
        Node::Number(value as u64)
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Folded => serializer.serialize_unit(),
            Node::Flag(value) => serializer.serialize_bool(*value),
            Node::Number(value) => serializer.serialize_u64(*value),
            Node::Real(value) => serializer.serialize_f64(*value),
            Node::Text(value) => serializer.serialize_str(value),
            Node::Parts(parts) => {
                let mut map = serializer.serialize_map(Some(parts.len()))?;
                for (name, part) in parts {
                    map.serialize_entry(name, part)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or parts by name")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Folded)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "a number for display")]
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::Real(value as f64), Node::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push((parts.len().to_string(), part));
        }
        Ok(Node::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = map.next_entry()? {
            parts.push(part);
        }
        Ok(Node::Parts(parts))
    }
}
