// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The commands of the render engine that drivers and tests use (i915: gt/gen6_renderstate.c, gt/gen7_renderstate.c,
//! gt/gen7_renderclear.c; Mesa: gen6.xml, gen7.xml).

use arctic_base::command::{Field, Length};

use super::{GlobalStores, Pipeline, PipelineCommand, fields};

/// Length fields of the pipelines.
const ONE: Length = Length::SINGLE;
const EIGHT: Length = Length::field(0xff);
const NINE: Length = Length::field(0x1ff);
const SIXTEEN: Length = Length::field(0xffff);

const fn row(opcode: u16, name: &'static str, length: Length) -> PipelineCommand {
    super::skipped(opcode, name, length, &[])
}

const fn known(row: PipelineCommand, lengths: &'static [usize], fields: &'static [Field]) -> PipelineCommand {
    PipelineCommand { lengths, fields, ..row }
}

/// Commands of Sandy Bridge.
pub(super) static SANDY_BRIDGE_RENDER: [PipelineCommand; 44] = [
    known(row(0x6101, "STATE_BASE_ADDRESS", EIGHT), &[10], fields::BASE_ADDRESS),
    row(0x6102, "STATE_SIP", EIGHT),
    known(row(0x6904, "PIPELINE_SELECT", ONE), &[], fields::SELECT),
    row(0x690b, "3DSTATE_VF_STATISTICS", ONE),
    row(0x7000, "MEDIA_VFE_STATE", SIXTEEN),
    row(0x7001, "MEDIA_CURBE_LOAD", SIXTEEN),
    row(0x7002, "MEDIA_INTERFACE_DESCRIPTOR_LOAD", SIXTEEN),
    row(0x7003, "MEDIA_GATEWAY_STATE", SIXTEEN),
    row(0x7004, "MEDIA_STATE_FLUSH", SIXTEEN),
    row(0x7100, "MEDIA_OBJECT", SIXTEEN),
    row(0x7102, "MEDIA_OBJECT_PRT", SIXTEEN),
    row(0x7103, "MEDIA_OBJECT_WALKER", SIXTEEN),
    row(0x7801, "3DSTATE_BINDING_TABLE_POINTERS", EIGHT),
    row(0x7802, "3DSTATE_SAMPLER_STATE_POINTERS", EIGHT),
    row(0x7805, "3DSTATE_URB", EIGHT),
    row(0x7808, "3DSTATE_VERTEX_BUFFERS", EIGHT),
    row(0x7809, "3DSTATE_VERTEX_ELEMENTS", EIGHT),
    row(0x780a, "3DSTATE_INDEX_BUFFER", EIGHT),
    row(0x780d, "3DSTATE_VIEWPORT_STATE_POINTERS", EIGHT),
    row(0x780e, "3DSTATE_CC_STATE_POINTERS", EIGHT),
    row(0x780f, "3DSTATE_SCISSOR_STATE_POINTERS", EIGHT),
    row(0x7810, "3DSTATE_VS", EIGHT),
    row(0x7811, "3DSTATE_GS", EIGHT),
    row(0x7812, "3DSTATE_CLIP", EIGHT),
    row(0x7813, "3DSTATE_SF", EIGHT),
    row(0x7814, "3DSTATE_WM", EIGHT),
    row(0x7815, "3DSTATE_CONSTANT_VS", EIGHT),
    row(0x7816, "3DSTATE_CONSTANT_GS", EIGHT),
    row(0x7817, "3DSTATE_CONSTANT_PS", EIGHT),
    row(0x7818, "3DSTATE_SAMPLE_MASK", EIGHT),
    row(0x7900, "3DSTATE_DRAWING_RECTANGLE", EIGHT),
    row(0x7905, "3DSTATE_DEPTH_BUFFER", EIGHT),
    row(0x7906, "3DSTATE_POLY_STIPPLE_OFFSET", EIGHT),
    row(0x7907, "3DSTATE_POLY_STIPPLE_PATTERN", EIGHT),
    row(0x7908, "3DSTATE_LINE_STIPPLE", EIGHT),
    row(0x790a, "3DSTATE_AA_LINE_PARAMETERS", EIGHT),
    row(0x790b, "3DSTATE_GS_SVB_INDEX", EIGHT),
    row(0x790d, "3DSTATE_MULTISAMPLE", EIGHT),
    row(0x790e, "3DSTATE_STENCIL_BUFFER", EIGHT),
    row(0x790f, "3DSTATE_HIER_DEPTH_BUFFER", EIGHT),
    row(0x7910, "3DSTATE_CLEAR_PARAMS", EIGHT),
    row(0x7911, "3DSTATE_MONOFILTER_SIZE", EIGHT),
    PipelineCommand {
        // Batches without privilege write to the GGTT: the PPGTT does not work for their flushes (i915:
        // gem/i915_gem_execbuffer.c, eb_relocate_entry; Mesa: brw_pipe_control.c; IGT: gem_pipe_control_store_loop).
        action: Pipeline::PipeControl(GlobalStores { field: fields::CONTROL_GLOBAL_GEN6, by_users: true }),
        ..known(row(0x7a00, "PIPE_CONTROL", EIGHT), &[4, 5], fields::CONTROL_GEN6)
    },
    row(0x7b00, "3DPRIMITIVE", EIGHT),
];

/// Commands of Ivy Bridge.
pub(super) static IVY_BRIDGE_RENDER: [PipelineCommand; 77] = [
    known(row(0x6101, "STATE_BASE_ADDRESS", EIGHT), &[10], fields::BASE_ADDRESS),
    row(0x6102, "STATE_SIP", EIGHT),
    known(row(0x6904, "PIPELINE_SELECT", ONE), &[], fields::SELECT),
    row(0x690b, "3DSTATE_VF_STATISTICS", ONE),
    row(0x7000, "MEDIA_VFE_STATE", SIXTEEN),
    row(0x7001, "MEDIA_CURBE_LOAD", SIXTEEN),
    row(0x7002, "MEDIA_INTERFACE_DESCRIPTOR_LOAD", SIXTEEN),
    row(0x7003, "MEDIA_GATEWAY_STATE", SIXTEEN),
    row(0x7004, "MEDIA_STATE_FLUSH", SIXTEEN),
    row(0x7100, "MEDIA_OBJECT", SIXTEEN),
    row(0x7102, "MEDIA_OBJECT_PRT", SIXTEEN),
    row(0x7103, "MEDIA_OBJECT_WALKER", SIXTEEN),
    row(0x7104, "GPGPU_OBJECT", SIXTEEN),
    row(0x7105, "GPGPU_WALKER", SIXTEEN),
    row(0x7804, "3DSTATE_CLEAR_PARAMS", EIGHT),
    row(0x7805, "3DSTATE_DEPTH_BUFFER", EIGHT),
    row(0x7806, "3DSTATE_STENCIL_BUFFER", EIGHT),
    row(0x7807, "3DSTATE_HIER_DEPTH_BUFFER", EIGHT),
    row(0x7808, "3DSTATE_VERTEX_BUFFERS", EIGHT),
    row(0x7809, "3DSTATE_VERTEX_ELEMENTS", EIGHT),
    row(0x780a, "3DSTATE_INDEX_BUFFER", EIGHT),
    row(0x780e, "3DSTATE_CC_STATE_POINTERS", EIGHT),
    row(0x780f, "3DSTATE_SCISSOR_STATE_POINTERS", EIGHT),
    row(0x7810, "3DSTATE_VS", EIGHT),
    row(0x7811, "3DSTATE_GS", EIGHT),
    row(0x7812, "3DSTATE_CLIP", EIGHT),
    row(0x7813, "3DSTATE_SF", EIGHT),
    row(0x7814, "3DSTATE_WM", EIGHT),
    row(0x7815, "3DSTATE_CONSTANT_VS", EIGHT),
    row(0x7816, "3DSTATE_CONSTANT_GS", EIGHT),
    row(0x7817, "3DSTATE_CONSTANT_PS", EIGHT),
    row(0x7818, "3DSTATE_SAMPLE_MASK", EIGHT),
    row(0x7819, "3DSTATE_CONSTANT_HS", EIGHT),
    row(0x781a, "3DSTATE_CONSTANT_DS", EIGHT),
    row(0x781b, "3DSTATE_HS", EIGHT),
    row(0x781c, "3DSTATE_TE", EIGHT),
    row(0x781d, "3DSTATE_DS", EIGHT),
    row(0x781e, "3DSTATE_STREAMOUT", EIGHT),
    row(0x781f, "3DSTATE_SBE", EIGHT),
    row(0x7820, "3DSTATE_PS", EIGHT),
    row(0x7821, "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP", EIGHT),
    row(0x7823, "3DSTATE_VIEWPORT_STATE_POINTERS_CC", EIGHT),
    row(0x7824, "3DSTATE_BLEND_STATE_POINTERS", EIGHT),
    row(0x7825, "3DSTATE_DEPTH_STENCIL_STATE_POINTERS", EIGHT),
    row(0x7826, "3DSTATE_BINDING_TABLE_POINTERS_VS", EIGHT),
    row(0x7827, "3DSTATE_BINDING_TABLE_POINTERS_HS", EIGHT),
    row(0x7828, "3DSTATE_BINDING_TABLE_POINTERS_DS", EIGHT),
    row(0x7829, "3DSTATE_BINDING_TABLE_POINTERS_GS", EIGHT),
    row(0x782a, "3DSTATE_BINDING_TABLE_POINTERS_PS", EIGHT),
    row(0x782b, "3DSTATE_SAMPLER_STATE_POINTERS_VS", EIGHT),
    row(0x782c, "3DSTATE_SAMPLER_STATE_POINTERS_HS", EIGHT),
    row(0x782d, "3DSTATE_SAMPLER_STATE_POINTERS_DS", EIGHT),
    row(0x782e, "3DSTATE_SAMPLER_STATE_POINTERS_GS", EIGHT),
    row(0x782f, "3DSTATE_SAMPLER_STATE_POINTERS_PS", EIGHT),
    row(0x7830, "3DSTATE_URB_VS", EIGHT),
    row(0x7831, "3DSTATE_URB_HS", EIGHT),
    row(0x7832, "3DSTATE_URB_DS", EIGHT),
    row(0x7833, "3DSTATE_URB_GS", EIGHT),
    row(0x7900, "3DSTATE_DRAWING_RECTANGLE", EIGHT),
    row(0x7902, "3DSTATE_SAMPLER_PALETTE_LOAD0", EIGHT),
    row(0x7904, "3DSTATE_CHROMA_KEY", EIGHT),
    row(0x7906, "3DSTATE_POLY_STIPPLE_OFFSET", EIGHT),
    row(0x7907, "3DSTATE_POLY_STIPPLE_PATTERN", EIGHT),
    row(0x7908, "3DSTATE_LINE_STIPPLE", EIGHT),
    row(0x790a, "3DSTATE_AA_LINE_PARAMETERS", EIGHT),
    row(0x790c, "3DSTATE_SAMPLER_PALETTE_LOAD1", EIGHT),
    row(0x790d, "3DSTATE_MULTISAMPLE", EIGHT),
    row(0x7911, "3DSTATE_MONOFILTER_SIZE", EIGHT),
    row(0x7912, "3DSTATE_PUSH_CONSTANT_ALLOC_VS", EIGHT),
    row(0x7913, "3DSTATE_PUSH_CONSTANT_ALLOC_HS", EIGHT),
    row(0x7914, "3DSTATE_PUSH_CONSTANT_ALLOC_DS", EIGHT),
    row(0x7915, "3DSTATE_PUSH_CONSTANT_ALLOC_GS", EIGHT),
    row(0x7916, "3DSTATE_PUSH_CONSTANT_ALLOC_PS", EIGHT),
    row(0x7917, "3DSTATE_SO_DECL_LIST", NINE),
    row(0x7918, "3DSTATE_SO_BUFFER", EIGHT),
    PipelineCommand {
        action: Pipeline::PipeControl(GlobalStores { field: fields::CONTROL_GLOBAL_GEN7, by_users: false }),
        ..known(row(0x7a00, "PIPE_CONTROL", EIGHT), &[4, 5], fields::CONTROL_GEN7)
    },
    PipelineCommand { action: Pipeline::Draw, ..known(row(0x7b00, "3DPRIMITIVE", EIGHT), &[7], fields::DRAW) },
];
