// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tables of the engines' commands: names, lengths, and the rules for batches that are not privileged.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod mi;
mod pipeline;
#[cfg(test)]
mod tests;

pub use mi::{Mi, MiCommand, USE_GGTT};
pub use pipeline::{Pipeline, PipelineCommand};

use arctic_base::command::Length;
use arctic_base::command::row::lookup;

/// A decoded command.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// An MI command.
    Mi(&'static MiCommand),
    /// A command of a pipeline: 3D, media or 2D.
    Pipeline(PipelineCommand),
}

impl Command {
    /// Decodes a header; `None` if no command has it.
    pub fn decode(header: u32) -> Option<Command> {
        match header >> 29 {
            0 => lookup(&mi::BY_OPCODE, header).map(Command::Mi),
            2 | 3 => Some(Command::Pipeline(PipelineCommand::decode(header))),
            _ => None,
        }
    }

    /// Name as in the documents.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Mi(row) => row.name,
            Command::Pipeline(command) => command.name,
        }
    }

    /// Length in dwords with this header.
    pub fn dwords(&self, header: u32) -> u32 {
        let length: Length = match self {
            Command::Mi(row) => row.length,
            Command::Pipeline(command) => command.length,
        };
        length.dwords(header)
    }
}
