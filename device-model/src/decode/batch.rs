//! Batches and rings as commands.

use std::fmt;

use serde::Serialize;

use super::show::{self, Shown};
use crate::command::mi::{self, fields};
use crate::command::{Command as Known, Mi, Requester};
use crate::engine::id::EngineId;

/// Bits of a graphics address.
const ADDRESS: u64 = 0xffff_ffff_fffc;
/// Most dwords of a command that a line shows.
const MOST_DWORDS: usize = 1 << 12;

/// What there is to disassemble.
#[derive(Clone, Debug)]
pub struct Batch<'b> {
    /// Its dwords.
    pub words: &'b [u32],
    /// Address of the first.
    pub base: u64,
    /// The engine that reads it.
    pub engine: EngineId,
    /// Who gives the commands: a batch that a user sent, or a ring that his driver fills.
    pub requester: Requester,
    /// Places to be marked: HEAD, TAIL, ACTHD.
    pub marks: Vec<(u64, &'static str)>,
    /// Whether it ends where MI_BATCH_BUFFER_END says, or goes on to its last dword.
    pub ends: bool,
}

/// A command in a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Command {
    /// Where it stands.
    pub address: u64,
    /// Name as the PRM writes it; absent where the engine has no such command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'static str>,
    /// Its dwords, as far as there are any.
    pub dwords: Vec<u32>,
    /// Its fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Shown>,
    /// What is to be said of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Marks that lie in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<&'static str>,
    /// So many commands alike, one behind the other: MI_NOOPs.
    #[serde(skip_serializing_if = "is_one")]
    pub times: usize,
    /// Where it goes on, for a batch start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

/// Where a batch start leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Address of the batch.
    pub address: u64,
    /// In the process's space, not the global one.
    pub ppgtt: bool,
    /// Comes back behind the batch start; else the batch takes the place of this one.
    pub returns: bool,
}

fn is_one(times: &usize) -> bool {
    *times == 1
}

/// Whether the disassembly goes on behind a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    No,
    Batch,
    Chain,
}

impl<'b> Batch<'b> {
    /// Commands of a user's batch at `base`.
    pub fn new(words: &'b [u32], base: u64, engine: EngineId) -> Self {
        Batch { words, base, engine, requester: Requester::User, marks: Vec::new(), ends: true }
    }

    /// The commands, in order. Runs of MI_NOOP are one line, unless a mark lies in them.
    pub fn commands(&self) -> impl Iterator<Item = Command> + use<'_, 'b> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.words.get(at..).filter(|rest| !rest.is_empty())?;
            let address = (self.base & ADDRESS) + at as u64 * 4;
            let noops = self.noops(rest, address);
            let (command, end) = if noops > 1 {
                (Command { times: noops, dwords: rest[..1].to_vec(), ..self.one(&rest[..1], address).0 }, End::No)
            } else {
                self.one(rest, address)
            };
            at += if noops > 1 { noops } else { command.dwords.len() };
            if self.ends && end != End::No {
                at = self.words.len();
            }
            Some(command)
        })
    }

    /// MI_NOOPs from here on, up to the next mark.
    fn noops(&self, rest: &[u32], address: u64) -> usize {
        let run = rest.iter().take_while(|word| **word == 0).count();
        let until = self.marks.iter().filter(|(mark, _)| *mark > address).map(|(mark, _)| (mark - address).div_ceil(4));
        until.min().map_or(run, |until| run.min(until as usize))
    }

    fn one(&self, rest: &[u32], address: u64) -> (Command, End) {
        let header = rest[0];
        let known = Known::decode(header, self.engine.info().class);
        let wanted = known.as_ref().map_or(1, |command| command.dwords(header) as usize).max(1);
        let mut len = wanted.min(rest.len()).min(MOST_DWORDS);
        let mut notes = Vec::new();
        // The parser was there: a command begins at a mark, whatever the dwords before it were.
        let inside = |mark: u64| mark > address && mark < address + len as u64 * 4;
        if let Some((mark, name)) = self.marks.iter().filter(|(mark, _)| inside(*mark)).min() {
            len = ((mark - address) / 4).max(1) as usize;
            notes.push(format!("{name} lies within it: a command of {wanted} dwords cannot be here"));
        } else if len < wanted {
            notes.push(format!("cut short: {wanted} dwords, of which {len} are there"));
        }
        let words = &rest[..len];
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
                    command.notes.push(format!("{wanted} dwords, where it has {usual}"));
                }
                End::No
            }
            Some(Known::Blit(blit)) => {
                command.fields = show::fields(words, blit.fields, None, self.engine);
                if !blit.lengths.contains(&wanted) {
                    command.notes.push(format!("{wanted} dwords are no length of it"));
                }
                End::No
            }
        };
        (command, end)
    }

    fn memory_interface(&self, mi: &'static mi::MiCommand, words: &[u32], command: &mut Command) -> End {
        let header = words[0];
        command.fields = show::fields(words, mi.fields, mi.group, self.engine);
        let notes = &mut command.notes;
        let known = mi.fields.iter().fold(0xff80_0000 | mi.length.mask(), |bits, field| bits | field.bits_of(0));
        if header & !known != 0 {
            notes.push(format!("header bits {:#x} are reserved", header & !known));
        }
        if words.len() < usize::from(mi.least) {
            notes.push(format!("illegal: it has at least {} dwords", mi.least));
        }
        let rule = mi.rule(self.requester);
        if rule.forbids(header) || rule.forbids_operand(words) {
            notes.push("without privilege a MI_NOOP".into());
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
                notes.push("chained: the batch goes on there".into());
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
    /// Its fields as they read, those that say nothing left out.
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
