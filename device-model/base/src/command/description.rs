// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface between the tables of a family and the disassembler.

use super::{Field, Group, Requester};

/// A command, as its header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name as in the PRM.
    pub name: &'static str,
    /// Length in dwords, including the header.
    pub dwords: u32,
    /// Its fields, except opcode and length.
    pub fields: &'static [Field],
    /// Repeated elements after the fields.
    pub group: Option<Group>,
}

/// Target of a batch start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Target {
    /// Address of the batch.
    pub address: u64,
    /// The address is in the PPGTT, not in the GGTT.
    pub ppgtt: bool,
    /// Execution returns to the command after the batch start; otherwise the batch is chained.
    pub returns: bool,
}

/// The command that is executed after a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// The one behind it.
    #[default]
    Following,
    /// None of this batch: the command ends it.
    End,
    /// The first one of another batch; with `conditional` only on a condition that the command does not contain.
    Start {
        /// The batch.
        target: Target,
        /// The batch may not be started.
        conditional: bool,
    },
}

/// What the disassembler shows of a command beside its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Sentences for the reader.
    pub notes: Vec<String>,
    /// The command that is executed next.
    pub next: Next,
}

/// An engine with the tables of its commands. In every family the dword 0 is MI_NOOP, a command of one dword.
pub trait Decode {
    /// Name of the engine for messages.
    fn name(&self) -> &str;

    /// Describes the command with this header; `None` if the engine does not have it.
    fn describe(&self, header: u32) -> Option<Description>;

    /// Remarks on a command that [`Decode::describe`] describes, from `requester`. `words` are its dwords, at least the
    /// header, as far as they are known.
    fn remarks(&self, words: &[u32], requester: Requester) -> Remarks;
}

impl<D: Decode + ?Sized> Decode for &D {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn describe(&self, header: u32) -> Option<Description> {
        (**self).describe(header)
    }

    fn remarks(&self, words: &[u32], requester: Requester) -> Remarks {
        (**self).remarks(words, requester)
    }
}

/// A command of a batch, without its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Index of the header in the batch.
    pub at: usize,
    /// Name, or `None` if the engine does not have the command.
    pub name: Option<&'static str>,
    /// The dwords of the command, truncated at the end of the batch.
    pub dwords: &'b [u32],
}

/// Splits a batch into commands as `engine` does. An unknown header yields a piece of one dword.
pub fn split<'b, D: Decode>(engine: D, batch: &'b [u32]) -> impl Iterator<Item = Piece<'b>> + use<'b, D> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = batch.get(at..)?;
        let command = engine.describe(*rest.first()?);
        let len = command.map_or(1, |command| command.dwords as usize).clamp(1, rest.len());
        let piece = Piece { at, name: command.map(|command| command.name), dwords: rest.get(..len)? };
        at = at.saturating_add(len);
        Some(piece)
    })
}
