// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the render, compute and media pipelines (client 3): PIPE_CONTROL and the commands of the compute pipeline
//! are executed, the others are skipped by their length and only counted as state (contract K.8; xe:
//! xe_gfxpipe_commands.h; EU-001..011).

pub mod fields;
mod names;
pub mod walker;

use arctic_base::command::{Description, Field, Length};

use crate::topology::EngineClass;

/// Action of the command streamer for a command of the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gfx {
    /// Flush, invalidate, stall and post-sync operation.
    PipeControl,
    /// L3_CONTROL: flush of the L3 cache and post-sync operation (EU-015).
    L3Control,
    /// Sets state of the context that walkers use.
    State(State),
    /// COMPUTE_WALKER: executes a kernel (EU-020).
    Walker,
    /// Skipped: the model has no pipeline.
    StateOnly,
}

/// Part of the state of the compute pipeline that one command sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// PIPELINE_SELECT (EU-002).
    PipelineSelect,
    /// STATE_COMPUTE_MODE (EU-003).
    ComputeMode,
    /// CFE_STATE (EU-004).
    FrontEnd,
    /// STATE_BASE_ADDRESS (EU-005).
    BaseAddress,
    /// 3DSTATE_BINDING_TABLE_POOL_ALLOC (EU-007).
    BindingTablePool,
    /// STATE_SIP (EU-008).
    SystemRoutine,
    /// 3DSTATE_BTD (EU-011).
    RayTracing,
}

/// Commands that are executed, by the upper word of the header, the most frequent one first.
const EXECUTED: [(u16, Gfx); 10] = [
    (PIPE_CONTROL, Gfx::PipeControl),
    (0x6101, Gfx::State(State::BaseAddress)),
    (0x6102, Gfx::State(State::SystemRoutine)),
    (0x6105, Gfx::State(State::ComputeMode)),
    (0x6106, Gfx::State(State::RayTracing)),
    (0x6904, Gfx::State(State::PipelineSelect)),
    (0x7200, Gfx::State(State::FrontEnd)),
    (0x7208, Gfx::Walker),
    (0x7919, Gfx::State(State::BindingTablePool)),
    (L3_CONTROL, Gfx::L3Control),
];

/// One command of the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GfxCommand {
    /// Name as in the PRM.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// Action of the command streamer.
    pub action: Gfx,
    /// Whether header bit 8, [`fields::CONTROL_PREDICATE`], enables predication by MI_PREDICATE_RESULT (V8-140).
    pub predicable: bool,
    /// Position in the names of its class, counted from 1; 0 if it has no name there.
    pub number: u16,
    /// Upper word of the header.
    opcode: u16,
    /// Whether it is a command of a media engine, for which the upper word has a different meaning.
    media: bool,
}

impl GfxCommand {
    /// Its fields, except opcode and length; empty if only its name is known.
    pub fn fields(&self) -> &'static [Field] {
        fields::of(self.opcode).filter(|_| !self.media).map_or(&[], |command| command.fields)
    }

    /// Length in dwords of a valid command; `None` if only its name is known.
    pub fn usual(&self) -> Option<u32> {
        fields::of(self.opcode).filter(|_| !self.media).map(|command| command.dwords)
    }

    /// Its description with this header.
    pub fn describe(&self, header: u32) -> Description {
        Description { name: self.name, dwords: self.length.dwords(header), fields: self.fields(), group: None }
    }

    /// Remarks on a command with this header.
    pub fn remarks(&self, header: u32) -> Vec<String> {
        let dwords = self.length.dwords(header);
        let usual = self.usual().filter(|usual| *usual != dwords);
        usual.map(|usual| format!("{dwords} dwords, expected {usual}")).into_iter().collect()
    }

    /// Returns whether the command is skipped while MI_PREDICATE_RESULT is clear.
    pub const fn predicated(&self, header: u32) -> bool {
        self.predicable && header & fields::CONTROL_PREDICATE.mask() != 0
    }
}

/// Bits of the header that identify a command: client, pipeline, opcode, sub-opcode.
const MATCH: u32 = 0xffff_0000;

/// PIPE_CONTROL's opcode word.
const PIPE_CONTROL: u16 = 0x7a00;
/// L3_CONTROL's opcode word, without its flags.
const L3_CONTROL: u16 = 0x7d80;
/// Flags in the opcode word of L3_CONTROL.
const L3_FLAGS: u16 = 0x30;
/// COMPUTE_WALKER, 3DSTATE_WM_HZ_OP, PIPE_CONTROL, 3DPRIMITIVE (V8-140).
const PREDICABLE: [u16; 4] = [0x7208, 0x7852, PIPE_CONTROL, 0x7b00];
/// First opcode word of the compute commands. Bits 7:2 are the sub-opcode, bits 1:0 a variant of the command, for example
/// the resume of a thread group by COMPUTE_WALKER.
const COMPUTE: u16 = 0x7200;
/// Variant of a compute command.
const VARIANT: u16 = 0x3;
/// 3DSTATE_SO_DECL_LIST has a length field of nine bits (xe: CMD_3DSTATE_SO_DECL_LIST_DW_LEN).
const SO_DECL_LIST: u16 = 0x7917;
/// MFX_WAIT is a single dword on the media engines although its length field is not 0 (i915: MFX_WAIT).
const SINGLE_DWORD_PIPELINE: u32 = 1;

/// Names by the upper word of the header, sorted.
type Names = &'static [(u16, &'static str)];

/// Names of the commands of a generation's pipelines. Other commands are skipped in the same way.
pub struct Pipelines {
    /// Render and compute.
    render: Names,
    video_decode: Names,
    video_enhance: Names,
}

/// The pipelines of Xe-HPG.
pub static XE_HPG_PIPELINES: Pipelines =
    Pipelines { render: names::PIPELINES, video_decode: names::VIDEO_DECODE, video_enhance: names::VIDEO_ENHANCE };

impl Pipelines {
    /// Names of the commands of the engines of `class`, the name of all others, and the mask of their length field;
    /// `None` for a class without such a pipeline.
    fn of(&self, class: EngineClass) -> Option<(Names, &'static str, u32)> {
        match class {
            EngineClass::Render | EngineClass::Compute => Some((self.render, "GFXPIPE", 0xff)),
            EngineClass::VideoDecode => Some((self.video_decode, "MFX", 0xfff)),
            EngineClass::VideoEnhance => Some((self.video_enhance, "VEBOX", 0xfff)),
            EngineClass::Copy => None,
        }
    }

    /// Number of values of [`GfxCommand::number`] on the engines of `class`.
    pub fn numbers(&self, class: EngineClass) -> usize {
        self.of(class).map_or(0, |(names, ..)| names.len().saturating_add(1))
    }

    /// Name of the commands with this [`GfxCommand::number`] on the engines of `class`.
    pub fn name_of(&self, number: usize, class: EngineClass) -> Option<&'static str> {
        let (names, family, _) = self.of(class)?;
        match number.checked_sub(1) {
            None => Some(family),
            Some(at) => names.get(at).map(|(_, name)| *name),
        }
    }
}

/// Finds the command of a header with bits 31:29 = 3; `None` on an engine without such a pipeline.
pub fn lookup(pipelines: &Pipelines, header: u32, class: EngineClass) -> Option<GfxCommand> {
    let media = matches!(class, EngineClass::VideoDecode | EngineClass::VideoEnhance);
    let pipeline = header >> 27 & 3;
    let opcode = match ((header & MATCH) >> 16) as u16 {
        opcode if !media && opcode & 0xff00 == COMPUTE => opcode & !VARIANT,
        opcode if !media && opcode & !L3_FLAGS == L3_CONTROL => L3_CONTROL,
        opcode => opcode,
    };
    let (names, family, long) = pipelines.of(class)?;
    let length = match (pipeline, opcode) {
        (SINGLE_DWORD_PIPELINE, _) => Length::SINGLE,
        (_, SO_DECL_LIST) => Length::field(0x1ff),
        _ => Length::field(long),
    };
    let found = names.binary_search_by_key(&opcode, |(code, _)| *code).ok();
    let name = found.and_then(|at| names.get(at)).map_or(family, |(_, name)| *name);
    let number = found.and_then(|at| u16::try_from(at).ok()).map_or(0, |at| at.saturating_add(1));
    let executed = EXECUTED.iter().find(|(executed, _)| !media && *executed == opcode);
    let action = executed.map_or(Gfx::StateOnly, |(_, action)| *action);
    Some(GfxCommand { name, length, action, number, opcode, media, predicable: !media && PREDICABLE.contains(&opcode) })
}

#[cfg(test)]
mod tests {
    use arctic_base::command::field::check_layout;
    use arctic_fidelity::proves;

    use super::*;

    /// Contract K.8: lengths of pipeline commands.
    #[test]
    fn names_are_sorted_and_lengths_follow_the_pipeline() {
        assert!(names::PIPELINES.is_sorted_by_key(|(code, _)| *code));
        assert!(names::VIDEO_DECODE.is_sorted_by_key(|(code, _)| *code));
        assert!(names::VIDEO_ENHANCE.is_sorted_by_key(|(code, _)| *code));
        let dwords = |header: u32, class| lookup(&XE_HPG_PIPELINES, header, class).map(|c| c.length.dwords(header));
        assert_eq!(dwords(0x6904_0010, EngineClass::Render), Some(1));
        assert_eq!(dwords(0x7809_0043, EngineClass::Render), Some(69));
        assert_eq!(dwords(0x7917_0100, EngineClass::Render), Some(258));
        assert_eq!(dwords(0x7208_0525, EngineClass::Compute), Some(39), "bits above 7:0 are flags of COMPUTE_WALKER");
        assert_eq!(dwords(0x7580_0110, EngineClass::VideoDecode), Some(274));
        assert_eq!(dwords(0x7a00_0004, EngineClass::Copy), None);
    }

    #[test]
    fn the_number_of_a_command_gives_its_name() {
        for class in EngineClass::BY_GUC {
            for opcode in 0x6000..0x8000 {
                let Some(command) = lookup(&XE_HPG_PIPELINES, opcode << 16, class) else { continue };
                let number = usize::from(command.number);
                assert_eq!(XE_HPG_PIPELINES.name_of(number, class), Some(command.name), "{class:?} {opcode:#x}");
                assert!(number < XE_HPG_PIPELINES.numbers(class));
            }
        }
        assert_eq!(
            (XE_HPG_PIPELINES.numbers(EngineClass::Copy), XE_HPG_PIPELINES.name_of(0, EngineClass::Copy)),
            (0, None)
        );
    }

    #[test]
    fn compute_commands_have_variants() {
        proves!(
            V8_140,
            "the header of COMPUTE_WALKER as NEO writes it, and of its variant that resumes a thread group. Both \
            are predicable"
        );
        for header in [0x7208_0025, 0x7209_0025] {
            let walker = lookup(&XE_HPG_PIPELINES, header, EngineClass::Compute).unwrap();
            assert_eq!((walker.name, walker.length.dwords(header)), ("COMPUTE_WALKER", 39));
            assert_eq!((walker.usual(), walker.predicated(header | 1 << 8)), (Some(39), true));
            assert!(!walker.predicated(header) && walker.fields().iter().any(|field| field.name == "SIMD Size"));
        }
        let name = |header, class| lookup(&XE_HPG_PIPELINES, header, class).unwrap().name;
        assert_eq!(name(0x7200_0004, EngineClass::Render), "CFE_STATE");
        assert_eq!(name(0x7202_0000, EngineClass::VideoDecode), "MFX_VC1_DIRECTMODE_STATE", "another pipeline");
    }

    /// The bits that are handled by common code have the same positions in MI_FLUSH_DW and PIPE_CONTROL.
    #[test]
    fn flushes_share_bits() {
        use crate::command::mi::fields as flush;
        let pairs = [
            (fields::CONTROL_TLB, flush::FLUSH_TLB),
            (fields::CONTROL_INDEX, flush::FLUSH_INDEX),
            (fields::CONTROL_NOTIFY, flush::FLUSH_NOTIFY),
            (fields::CONTROL_OPERATION, flush::FLUSH_OPERATION),
        ];
        assert!(pairs.iter().all(|(control, flush)| control.mask() == flush.mask()));
    }

    /// The fields of each pipeline command are within it, outside opcode and length, and do not overlap.
    #[test]
    fn fields_lie_in_their_commands() {
        for (opcode, command) in fields::TABLE {
            let command_of = lookup(&XE_HPG_PIPELINES, u32::from(*opcode) << 16, EngineClass::Render).unwrap();
            let dwords = command.dwords;
            let length = if dwords == 1 { 0 } else { 0xff };
            let flags = if *opcode == L3_CONTROL { u32::from(L3_FLAGS) << 16 } else { 0 };
            check_layout(command_of.name, command.fields, None, dwords, 0xffff_0000 & !flags | length);
            assert_eq!(command_of.fields(), command.fields);
        }
    }
}
