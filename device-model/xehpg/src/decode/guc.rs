// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembly of messages between host and GuC: HXG messages and the CT buffers that transport them.

use std::fmt;

use serde::Serialize;

use super::{Dword, Line};
use crate::guc::actions::names;
use crate::guc::messages::hxg::{CtHeader, Header, Type};
use crate::guc::messages::klv;

/// A decoded message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Dword offset in the CT buffer; absent for a message outside a buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// Direction: true from the GuC to the host, false from the host to the GuC.
    pub from_guc: bool,
    /// Fence of the CT header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u16>,
    /// Message type: request, event, success...
    pub what: String,
    /// Name of the action, or of the error; empty for a success.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its HXG dwords.
    pub dwords: Vec<u32>,
    /// The dwords after the header, with their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, u32)>,
    /// Set if the receiver has not read the message; only if head and tail are known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mark: String,
}

impl Message {
    /// Decodes a message from its HXG dwords.
    pub fn new(hxg: &[u32], fence: Option<u16>) -> Message {
        let header = hxg.first().copied().unwrap_or(0);
        let rest = hxg.get(1..).unwrap_or_default();
        let header = Header::from(header);
        let (kind, code) = (header.kind(), header.code());
        let what = match kind {
            Some(Type::Request) => "request",
            Some(Type::Event) => "event",
            Some(Type::FastRequest) => "fast request",
            Some(Type::NoResponseBusy) => "busy",
            Some(Type::NoResponseRetry) => "retry",
            Some(Type::ResponseFailure) => "failure",
            Some(Type::ResponseSuccess) => "success",
            None => "reserved kind",
        };
        let name = match kind {
            Some(Type::Request | Type::Event | Type::FastRequest) => {
                names::of_action(code).map_or_else(|| format!("action {code:#06x}"), Into::into)
            }
            Some(Type::ResponseFailure) => {
                names::of_error(code).map_or_else(|| format!("error {code:#06x}"), Into::into)
            }
            _ => String::new(),
        };
        let mut parameters = Vec::new();
        match kind {
            Some(Type::Request | Type::Event | Type::FastRequest) => {
                if header.data0() != 0 {
                    parameters.push(("data0".into(), header.data0()));
                }
                requested(code, rest, &mut parameters);
            }
            Some(Type::ResponseSuccess) => {
                parameters.push(("data0".into(), header.success_data()));
                numbered(rest, 1, &mut parameters);
            }
            Some(Type::ResponseFailure) => {
                if header.data0() != 0 {
                    parameters.push(("hint".into(), header.data0()));
                }
                numbered(rest, 1, &mut parameters);
            }
            _ => numbered(rest, 1, &mut parameters),
        }
        Message {
            offset: None,
            from_guc: header.from_guc(),
            fence,
            what: what.into(),
            name,
            dwords: hxg.to_vec(),
            parameters,
            mark: String::new(),
        }
    }
}

#[allow(clippy::arithmetic_side_effects, reason = "the index of a slice, plus at most 2")]
fn numbered(rest: &[u32], from: usize, into: &mut Vec<(String, u32)>) {
    into.extend(rest.iter().enumerate().map(|(n, value)| (format!("data{}", n + from), *value)));
}

#[allow(clippy::arithmetic_side_effects, reason = "the index of a slice of dwords, plus 1")]
fn requested(code: u16, rest: &[u32], into: &mut Vec<(String, u32)>) {
    let named = names::of_parameters(code);
    let fixed = names::list_in(code).unwrap_or(rest.len()).min(rest.len());
    let (fixed, list) = rest.split_at_checked(fixed).unwrap_or((rest, &[]));
    for (n, value) in fixed.iter().enumerate() {
        into.push((named.get(n).map_or_else(|| format!("data{}", n + 1), |name| (*name).into()), *value));
    }
    for item in klv::walk(list) {
        let Ok((key, values)) = item else {
            into.push(("malformed list".into(), 0));
            return;
        };
        let name = names::of_key(key).map_or_else(|| format!("key {key:#06x}"), Into::into);
        match values {
            [value] => into.push((name, *value)),
            values => into.extend(values.iter().enumerate().map(|(n, value)| (format!("{name}[{n}]"), *value))),
        }
    }
}

/// Decodes a list of key-length-value entries (KLVs).
#[allow(clippy::arithmetic_side_effects, reason = "positions in a slice of dwords")]
pub fn keys(dwords: &[u32]) -> Vec<Line> {
    let mut at = 0;
    klv::walk(dwords)
        .flat_map(|item| {
            let Ok((key, values)) = item else {
                return vec![Line::note(format!("at dword {at}: the list is malformed"))];
            };
            let name = names::of_key(key).map_or_else(|| format!("key {key:#06x}"), Into::into);
            let first = at + 1;
            at = first + values.len();
            let dword = |(n, value): (usize, &u32)| {
                Line::Dword(Dword { index: first + n, name: name.clone(), value: *value, meaning: value.to_string() })
            };
            values.iter().enumerate().map(dword).collect()
        })
        .collect()
}

/// Decodes the messages in a CT buffer's ring, in buffer order; `head` and `tail` are dword offsets, if known. Data
/// after the tail may be from older messages or undefined. Dwords that cannot be a message are skipped.
#[allow(clippy::arithmetic_side_effects, reason = "positions in a slice of dwords, plus at most 256")]
pub fn ring(dwords: &[u32], head: Option<usize>, tail: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    let mut passed = 0;
    let note_skipped = |passed: &mut usize, lines: &mut Vec<Line>| {
        if *passed != 0 {
            lines.push(Line::note(format!("{passed} dwords are not a message")));
        }
        *passed = 0;
    };
    while let Some(header) = dwords.get(at) {
        let ct = CtHeader::from(*header);
        let len = usize::from(ct.dwords());
        let until = at + 1 + len;
        let crosses = |mark: Option<usize>| mark.is_some_and(|mark| at < mark && mark < until);
        let hxg = dwords.get(at + 1..until).unwrap_or_default();
        let sound = len != 0
            && header & 0xff00 == 0
            && !hxg.is_empty()
            && hxg.first().is_some_and(|header| Header::from(*header).kind().is_some());
        if !sound || crosses(head) || crosses(tail) {
            passed += usize::from(*header != 0);
            at += 1;
            continue;
        }
        note_skipped(&mut passed, &mut lines);
        let mut message = Message::new(hxg, Some(ct.fence()));
        message.offset = Some(at);
        if let (Some(head), Some(tail)) = (head, tail) {
            let waits = if head <= tail { (head..tail).contains(&at) } else { at >= head || at < tail };
            message.mark = if waits { "not read yet".into() } else { String::new() };
        }
        lines.push(Line::Message(message));
        at = until;
    }
    note_skipped(&mut passed, &mut lines);
    lines
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = self.offset.map_or(String::new(), |offset| format!("[{offset:#06x}] "));
        let way = if self.from_guc { "GuC > host" } else { "host > GuC" };
        write!(f, "  {offset}{way} {}", self.what)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if let Some(fence) = self.fence {
            write!(f, " (fence {fence:#x})")?;
        }
        let parameters: Vec<_> = self.parameters.iter().map(|(name, value)| format!("{name} {value:#x}")).collect();
        if !parameters.is_empty() {
            write!(f, ": {}", parameters.join(", "))?;
        }
        if !self.mark.is_empty() {
            write!(f, " <== {}", self.mark)?;
        }
        Ok(())
    }
}
