// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembly of batches and rings.

use std::fmt;

use arctic_sriov::number::size;
use serde::Serialize;

use super::show::{self, Names, Shown};
use crate::command::{Decode, Next, Requester, Target};

/// Valid bits of a graphics address.
const ADDRESS: u64 = 0xffff_ffff_fffc;
/// Maximum number of dwords of a command in one line.
const MOST_DWORDS: usize = 1 << 12;

/// Input of the disassembler, for an engine `E`.
#[derive(Clone, Debug)]
pub struct Batch<'b, E> {
    /// The dwords.
    pub words: &'b [u32],
    /// Address of the first dword.
    pub base: u64,
    /// The engine that executes them.
    pub engine: E,
    /// Privilege of the commands: a user's batch, or a ring filled by the driver.
    pub requester: Requester,
    /// Addresses to mark: HEAD, TAIL, ACTHD.
    pub marks: Vec<(u64, &'static str)>,
    /// Whether to stop at MI_BATCH_BUFFER_END, or to continue to the last dword.
    pub ends: bool,
}

/// A disassembled command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Command {
    /// Address of the command.
    pub address: u64,
    /// Name as in the PRM; absent if the engine does not have the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Its dwords, as far as the input contains them.
    pub dwords: Vec<u32>,
    /// Its decoded fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Shown>,
    /// Remarks on the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Marks inside the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<&'static str>,
    /// Number of identical consecutive commands: MI_NOOPs.
    #[serde(skip_serializing_if = "is_one")]
    pub times: usize,
    /// Target of a batch start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

fn is_one(times: &usize) -> bool {
    *times == 1
}

impl<'b, E: Decode + Names> Batch<'b, E> {
    /// Input for a user's batch at `base`.
    pub fn new(words: &'b [u32], base: u64, engine: E) -> Self {
        Batch { words, base, engine, requester: Requester::PfUser, marks: Vec::new(), ends: true }
    }

    /// The commands, in order. A run of MI_NOOPs is one command, unless a mark is inside it.
    #[allow(clippy::arithmetic_side_effects, reason = "an offset in dwords of a slice has fewer than 62 bits")]
    pub fn commands(&self) -> impl Iterator<Item = Command> + use<'_, 'b, E> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.words.get(at..).filter(|rest| !rest.is_empty())?;
            let address = (self.base & ADDRESS).wrapping_add(at as u64 * 4);
            let noops = self.noops(rest, address);
            let (command, ends) = if noops > 1 {
                (Command { times: noops, dwords: vec![0], ..self.one(&[0], address).0 }, false)
            } else {
                self.one(rest, address)
            };
            at = at.saturating_add(if noops > 1 { noops } else { command.dwords.len() });
            if self.ends && ends {
                at = self.words.len();
            }
            Some(command)
        })
    }

    /// Number of MI_NOOPs at `address`, up to the next mark.
    #[allow(clippy::arithmetic_side_effects, reason = "the mark is above the address")]
    fn noops(&self, rest: &[u32], address: u64) -> usize {
        let run = rest.iter().take_while(|word| **word == 0).count();
        let until = self.marks.iter().filter(|(mark, _)| *mark > address).map(|(mark, _)| (mark - address).div_ceil(4));
        until.min().map_or(run, |until| run.min(size(until)))
    }

    /// The command at the start of `rest`, and whether the parser does not execute the one behind it.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "an address has 48 bits, a command at most MOST_DWORDS, and the mark is above the address"
    )]
    fn one(&self, rest: &[u32], address: u64) -> (Command, bool) {
        let header = rest.first().copied().unwrap_or(0);
        let known = self.engine.describe(header);
        let wanted = known.map_or(1, |command| command.dwords as usize).max(1);
        let mut len = wanted.min(rest.len()).min(MOST_DWORDS);
        let mut notes = Vec::new();
        // A mark is a position of the parser, so a command starts there, whatever dwords precede it.
        let inside = |mark: u64| mark > address && mark < address + len as u64 * 4;
        if let Some((mark, name)) = self.marks.iter().filter(|(mark, _)| inside(*mark)).min() {
            len = ((mark - address) / 4).max(1) as usize;
            notes.push(format!("{name} is inside it: a command of {wanted} dwords cannot start here"));
        } else if len < wanted {
            notes.push(format!("truncated: {len} of {wanted} dwords"));
        }
        let words = rest.get(..len).unwrap_or_default();
        let end_of = address + len as u64 * 4;
        let marks = self.marks.iter().filter(|(mark, _)| (address..end_of).contains(mark)).map(|(_, name)| *name);
        let mut command = Command {
            address,
            name: known.map(|command| command.name),
            dwords: words.to_vec(),
            fields: Vec::new(),
            notes,
            marks: marks.collect(),
            times: 1,
            target: None,
        };
        let Some(known) = known else {
            command.notes.push(format!("{} has no such command", self.engine.name()));
            return (command, false);
        };
        command.fields = show::fields(words, known.fields, known.group, &self.engine);
        let remarks = self.engine.remarks(words, self.requester);
        command.notes.extend(remarks.notes);
        let ends = match remarks.next {
            Next::Following => false,
            Next::End => true,
            Next::Start { target, conditional } => {
                command.target = Some(target);
                if !target.returns {
                    command.notes.push("chained: execution continues there".into());
                }
                !target.returns && !conditional
            }
        };
        (command, ends)
    }
}

impl Command {
    /// Text of its fields, without the empty ones.
    pub fn text(&self) -> String {
        let fields = self.fields.iter().filter(|field| !field.text.is_empty());
        fields.map(|field| field.text.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = self.dwords.first().copied().unwrap_or(0);
        let marks = if self.marks.is_empty() { String::new() } else { format!(" <== {}", self.marks.join(", ")) };
        let name = self.name.unwrap_or("unknown");
        write!(f, "  {:#014x}: {header:08x} {name}", self.address)?;
        if self.times > 1 {
            write!(f, " x{}", self.times)?;
        }
        let text = self.text();
        if !text.is_empty() {
            write!(f, ": {text}")?;
        }
        f.write_str(&marks)?;
        for note in &self.notes {
            write!(f, "\n                            # {note}")?;
        }
        Ok(())
    }
}
