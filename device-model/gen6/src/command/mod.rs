// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tables of the engines' commands, one per client (bits 31:29 of the header): names, lengths, fields, and the rules for
//! batches that are not privileged. The command streamer and the disassembler use them.
//!
//! A generation has its [`CommandSet`]. A row that only one generation has is in the table of that generation.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod blitter;
pub mod mi;
pub mod pipeline;
#[cfg(test)]
mod tests;

pub use blitter::{BlitCommand, Blt};
pub use mi::{Mi, MiCommand};
pub use pipeline::{GlobalStores, Pipeline, PipelineCommand, Pipelines};

use arctic_base::command::row::{MiTable, lookup};
use arctic_base::command::{Description, Length};

use crate::topology::{Classes, EngineClass};

/// The commands of a generation's engines.
#[derive(Debug)]
pub struct CommandSet {
    /// Memory interface commands, by opcode.
    pub mi: &'static MiTable<Mi, Classes>,
    /// Commands of the copy engine, sorted by opcode.
    pub blitter: &'static [BlitCommand],
    /// Commands of the 3D, media and video pipelines.
    pub pipelines: &'static Pipelines,
}

/// The commands of Sandy Bridge.
pub static SANDY_BRIDGE_COMMANDS: CommandSet =
    CommandSet { mi: &mi::SANDY_BRIDGE, blitter: &blitter::COMMANDS, pipelines: &pipeline::SANDY_BRIDGE_PIPELINES };

/// The commands of Ivy Bridge.
pub static IVY_BRIDGE_COMMANDS: CommandSet =
    CommandSet { mi: &mi::IVY_BRIDGE, blitter: &blitter::COMMANDS, pipelines: &pipeline::IVY_BRIDGE_PIPELINES };

/// A decoded command header: the variant is the client, its value the description of the opcode.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Memory interface (MI) command, executed by the command streamer itself.
    Mi(&'static MiCommand),
    /// A command of the copy engine (2D).
    Blit(&'static BlitCommand),
    /// A command of a pipeline: 3D, media or video.
    Pipeline(&'static PipelineCommand),
}

impl CommandSet {
    /// Decodes `header` on an engine of `class`; `None` if the engine does not have the command (IVB-093, ILK-097).
    #[inline]
    pub fn decode(&self, header: u32, class: EngineClass) -> Option<Command> {
        match header >> 29 {
            0 => lookup(self.mi, header).filter(|command| command.classes.has(class)).map(Command::Mi),
            2 if class == EngineClass::Copy => Some(Command::Blit(blitter::lookup(self.blitter, header))),
            3 => self.pipelines.lookup(header, class).map(Command::Pipeline),
            _ => None,
        }
    }
}

impl Command {
    /// Name as in the documents.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Mi(row) => row.name,
            Command::Blit(row) => row.name,
            Command::Pipeline(row) => row.name,
        }
    }

    /// Minimum length in dwords; a shorter command is an instruction error.
    #[inline]
    pub fn least(&self) -> u32 {
        match self {
            Command::Mi(row) => row.least.into(),
            Command::Blit(_) | Command::Pipeline(_) => 1,
        }
    }

    /// Length in dwords with this header.
    #[inline]
    pub fn dwords(&self, header: u32) -> u32 {
        let length: Length = match self {
            Command::Mi(row) => row.length,
            Command::Blit(row) => row.length,
            Command::Pipeline(row) => row.length,
        };
        length.dwords(header)
    }

    /// Its description with this header.
    pub fn describe(&self, header: u32) -> Description {
        match self {
            Command::Mi(row) => row.describe(header),
            Command::Blit(row) => row.describe(header),
            Command::Pipeline(row) => row.describe(header),
        }
    }
}
