// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the pipelines: 3D, media and 2D. The model has no pipelines; all but PIPE_CONTROL are skipped by their
//! length (G67-121..123).

use arctic_base::command::Length;

/// Action of a command of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// PIPE_CONTROL.
    PipeControl,
    /// Skipped and counted.
    Skipped,
}

/// A command of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct PipelineCommand {
    /// Name as in the documents, or the name of its pipeline.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// Its action.
    pub action: Pipeline,
}

/// Commands by bits 31:16 of the header, where they differ from their pipeline.
const COMMANDS: &[(u16, PipelineCommand)] = &[
    (0x7917, skipped("3DSTATE_SO_DECL_LIST", Length::field(0x1ff))),
    (0x7a00, PipelineCommand { name: "PIPE_CONTROL", length: Length::field(0xff), action: Pipeline::PipeControl }),
    (0x7b00, skipped("3DPRIMITIVE", Length::field(0xff))),
];

const fn skipped(name: &'static str, length: Length) -> PipelineCommand {
    PipelineCommand { name, length, action: Pipeline::Skipped }
}

impl PipelineCommand {
    /// The command with a header of the clients 2D (2) or 3D (3).
    pub fn decode(header: u32) -> PipelineCommand {
        let identity = header >> 16;
        if let Some((_, command)) = COMMANDS.iter().find(|(row, _)| u32::from(*row) == identity) {
            return *command;
        }
        match (header >> 29, header >> 27 & 3) {
            (2, _) => skipped("2D command", Length::field(0xff)),
            (_, 1) => skipped("3D command of one dword", Length::SINGLE),
            (_, 2) => skipped("media command", Length::field(0xffff)),
            _ => skipped("3D command", Length::field(0xff)),
        }
    }
}
