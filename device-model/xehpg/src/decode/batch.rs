// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembly of batches and rings.

use std::fmt;

use arctic_sriov::number::size;
use serde::Serialize;

use super::show::{self, Shown};
use crate::command::mi::{self, fields};
use crate::command::{Command as Known, Mi, Requester};
use crate::generation::EngineRef;

/// Valid bits of a graphics address.
const ADDRESS: u64 = 0xffff_ffff_fffc;
/// Maximum number of dwords of a command in one line.
const MOST_DWORDS: usize = 1 << 12;

/// Input of the disassembler.
#[derive(Clone, Debug)]
pub struct Batch<'b> {
    /// The dwords.
    pub words: &'b [u32],
    /// Address of the first dword.
    pub base: u64,
    /// The engine that executes them.
    pub engine: EngineRef,
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

/// Target of a batch start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Address of the batch.
    pub address: u64,
    /// The address is in the PPGTT, not in the GGTT.
    pub ppgtt: bool,
    /// Execution returns to the command after the batch start; otherwise the batch is chained.
    pub returns: bool,
}

fn is_one(times: &usize) -> bool {
    *times == 1
}

/// Whether the disassembly ends after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    No,
    Batch,
    Chain,
}

impl<'b> Batch<'b> {
    /// Input for a user's batch at `base`.
    pub fn new(words: &'b [u32], base: u64, engine: EngineRef) -> Self {
        Batch { words, base, engine, requester: Requester::PfUser, marks: Vec::new(), ends: true }
    }

    /// The commands, in order. A run of MI_NOOPs is one command, unless a mark is inside it.
    #[allow(clippy::arithmetic_side_effects, reason = "an offset in dwords of a slice has fewer than 62 bits")]
    pub fn commands(&self) -> impl Iterator<Item = Command> + use<'_, 'b> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.words.get(at..).filter(|rest| !rest.is_empty())?;
            let address = (self.base & ADDRESS).wrapping_add(at as u64 * 4);
            let noops = self.noops(rest, address);
            let (command, end) = if noops > 1 {
                (Command { times: noops, dwords: vec![0], ..self.one(&[0], address).0 }, End::No)
            } else {
                self.one(rest, address)
            };
            at = at.saturating_add(if noops > 1 { noops } else { command.dwords.len() });
            if self.ends && end != End::No {
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

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "an address has 48 bits, a command at most MOST_DWORDS, and the mark is above the address"
    )]
    fn one(&self, rest: &[u32], address: u64) -> (Command, End) {
        let header = rest.first().copied().unwrap_or(0);
        let known = self.engine.generation.commands.decode(header, self.engine.info().class);
        let wanted = known.as_ref().map_or(1, |command| command.dwords(header) as usize).max(1);
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
            name: known.as_ref().map(Known::name),
            dwords: words.to_vec(),
            fields: Vec::new(),
            notes,
            marks: marks.collect(),
            times: 1,
            target: None,
        };
        let end = match &known {
            None => {
                command.notes.push(format!("{} has no such command", self.engine.info().name));
                End::No
            }
            Some(Known::Mi(mi)) => self.memory_interface(mi, words, &mut command),
            Some(Known::Gfx(gfx)) => {
                command.fields = show::fields(words, gfx.fields(), None, self.engine);
                if let Some(usual) = gfx.usual().filter(|usual| *usual as usize != wanted) {
                    command.notes.push(format!("{wanted} dwords, expected {usual}"));
                }
                End::No
            }
            Some(Known::Blit(blit)) => {
                command.fields = show::fields(words, blit.fields, None, self.engine);
                if !blit.lengths.contains(&wanted) {
                    command.notes.push(format!("invalid length of {wanted} dwords"));
                }
                End::No
            }
        };
        (command, end)
    }

    fn memory_interface(&self, mi: &'static mi::MiCommand, words: &[u32], command: &mut Command) -> End {
        let header = words.first().copied().unwrap_or(0);
        command.fields = show::fields(words, mi.fields, mi.group, self.engine);
        let notes = &mut command.notes;
        let known = mi.fields.iter().fold(0xff80_0000 | mi.length.mask(), |bits, field| bits | field.bits_of(0));
        if header & !known != 0 {
            notes.push(format!("header bits {:#x} are reserved", header & !known));
        }
        if words.len() < usize::from(mi.least) {
            notes.push(format!("illegal: expected at least {} dwords", mi.least));
        }
        let rule = mi.rule(self.requester);
        if rule.forbids(header) || rule.forbids_operand(words) {
            notes.push("executed as MI_NOOP without privilege".into());
        }
        match mi.action {
            Mi::BatchBufferStart if words.len() > 2 => {
                let target = Target {
                    address: fields::BATCH_ADDRESS.wide(words),
                    ppgtt: fields::BATCH_SPACE.is_set(words),
                    returns: self.requester.privileged() || fields::SECOND_LEVEL.is_set(words),
                };
                command.target = Some(target);
                if target.returns {
                    return End::No;
                }
                notes.push("chained: execution continues there".into());
                if fields::PREDICATE.is_set(words) { End::No } else { End::Chain }
            }
            Mi::BatchBufferEnd if fields::PREDICATE.is_set(words) => {
                notes.push("ends the batch unless MI_SET_PREDICATE_RESULT is set".into());
                End::No
            }
            Mi::BatchBufferEnd => End::Batch,
            _ => End::No,
        }
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
