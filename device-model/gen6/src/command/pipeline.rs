// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the pipelines: 3D, media and video. The model has no pipelines; all but PIPE_CONTROL are skipped by
//! their length (G67-121..123).

pub mod fields;
mod names;

use arctic_base::command::row::ClientCommand;
use arctic_base::command::{Field, Length};

use crate::topology::EngineClass;

/// Action of a command of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// PIPE_CONTROL, with its stores to the GGTT.
    PipeControl(GlobalStores),
    /// 3DPRIMITIVE, which may be predicated.
    Draw,
    /// Skipped and counted.
    Skipped,
}

/// The stores of PIPE_CONTROL to the GGTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalStores {
    /// The field that selects the GGTT: of another dword in each generation (G67-076).
    pub field: Field,
    /// A batch without privilege can make them.
    pub by_users: bool,
}

/// A command of a pipeline. Its opcode is bits 31:16 of the header.
pub type PipelineCommand = ClientCommand<Pipeline>;

/// A row of a command that is skipped.
const fn skipped(opcode: u16, name: &'static str, length: Length, fields: &'static [Field]) -> PipelineCommand {
    PipelineCommand { opcode, name, length, lengths: &[], fields, action: Pipeline::Skipped }
}

/// Commands without a row of their own, by pipeline.
static RENDER_OTHER: PipelineCommand = skipped(0, "3D command", Length::field(0xff), &[]);
static RENDER_SINGLE: PipelineCommand = skipped(0, "3D command of one dword", Length::SINGLE, &[]);
static RENDER_MEDIA: PipelineCommand = skipped(0, "media command", Length::field(0xffff), &[]);
static VIDEO_OTHER: PipelineCommand = skipped(0, "video command", Length::field(0xff), &[]);
static VIDEO_SINGLE: PipelineCommand = skipped(0, "MFX_WAIT", Length::SINGLE, &[]);
static VIDEO_MFX: PipelineCommand = skipped(0, "MFX command", Length::field(0xfff), &[]);
static VIDEO_LONG: PipelineCommand = skipped(0, "MFX command of any length", Length::field(0xffff), &[]);

/// The commands of a generation's pipelines.
#[derive(Debug)]
pub struct Pipelines {
    /// Commands of the render engine with rows of their own, sorted. Others are skipped in the same way.
    pub render: &'static [PipelineCommand],
}

/// The pipelines of Sandy Bridge.
pub static SANDY_BRIDGE_PIPELINES: Pipelines = Pipelines { render: &names::SANDY_BRIDGE_RENDER };

/// The pipelines of Ivy Bridge.
pub static IVY_BRIDGE_PIPELINES: Pipelines = Pipelines { render: &names::IVY_BRIDGE_RENDER };

impl Pipelines {
    /// The command with a header of the client 3D (3); `None` on an engine without such a pipeline. Lengths
    /// of commands without a row are those of the driver's parser (i915: i915_cmd_parser.c, gen7_render_get_cmd_length_mask
    /// and gen7_bsd_get_cmd_length_mask).
    pub fn lookup(&self, header: u32, class: EngineClass) -> Option<&'static PipelineCommand> {
        let (pipeline, opcode) = (header >> 27 & 3, header >> 24 & 7);
        match class {
            EngineClass::Render => {
                let identity = (header >> 16) as u16;
                Some(PipelineCommand::find(self.render, identity).unwrap_or(match pipeline {
                    1 => &RENDER_SINGLE,
                    2 => &RENDER_MEDIA,
                    _ => &RENDER_OTHER,
                }))
            }
            EngineClass::Video => Some(match (pipeline, opcode) {
                (1, _) => &VIDEO_SINGLE,
                (2, 6) => &VIDEO_LONG,
                (2, _) => &VIDEO_MFX,
                _ => &VIDEO_OTHER,
            }),
            EngineClass::Copy => None,
        }
    }
}
