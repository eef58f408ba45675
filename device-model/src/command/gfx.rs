//! Commands of the render, compute and media pipelines (client 3): PIPE_CONTROL is executed, the rest is skipped by
//! its length and counted as state only (contract K.8; xe: xe_gfxpipe_commands.h).

use super::Length;
use crate::engine::id::EngineClass;

/// What the command streamer does with a command of the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gfx {
    /// Flush, invalidate, stall and post-sync operation.
    PipeControl,
    /// Skipped: the card has no pipeline behind it.
    StateOnly,
}

/// One command of the pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GfxCommand {
    /// Name as the PRM writes it.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// What happens.
    pub action: Gfx,
}

/// Bits of the header that tell commands apart: client, pipeline, opcode, sub-opcode.
const MATCH: u32 = 0xffff_0000;

/// Names of the commands that drivers and tests use; a header with another opcode is skipped all the same.
static NAMES: &[(u16, &str)] = &[
    (0x6101, "STATE_BASE_ADDRESS"),
    (0x6102, "STATE_SIP"),
    (0x6104, "GPGPU_CSR_BASE_ADDRESS"),
    (0x6105, "STATE_COMPUTE_MODE"),
    (0x6106, "3DSTATE_BTD"),
    (0x6109, "STATE_SYSTEM_MEM_FENCE_ADDRESS"),
    (0x610b, "STATE_CONTEXT_DATA_BASE_ADDRESS"),
    (0x680b, "3DSTATE_VF_STATISTICS"),
    (0x6904, "PIPELINE_SELECT"),
    (0x7000, "MEDIA_VFE_STATE"),
    (0x7001, "MEDIA_CURBE_LOAD"),
    (0x7002, "MEDIA_INTERFACE_DESCRIPTOR_LOAD"),
    (0x7004, "MEDIA_STATE_FLUSH"),
    (0x7100, "MEDIA_OBJECT"),
    (0x7105, "GPGPU_WALKER"),
    (0x7200, "CFE_STATE"),
    (0x7202, "COMPUTE_WALKER"),
    (0x7805, "3DSTATE_DEPTH_BUFFER"),
    (0x7808, "3DSTATE_VERTEX_BUFFERS"),
    (0x7809, "3DSTATE_VERTEX_ELEMENTS"),
    (0x780a, "3DSTATE_INDEX_BUFFER"),
    (0x780d, "3DSTATE_MULTISAMPLE"),
    (0x780f, "3DSTATE_SCISSOR_STATE_POINTERS"),
    (0x7810, "3DSTATE_VS"),
    (0x7811, "3DSTATE_GS"),
    (0x7812, "3DSTATE_CLIP"),
    (0x7813, "3DSTATE_SF"),
    (0x7814, "3DSTATE_WM"),
    (0x7815, "3DSTATE_CONSTANT_VS"),
    (0x7816, "3DSTATE_CONSTANT_GS"),
    (0x7817, "3DSTATE_CONSTANT_PS"),
    (0x7819, "3DSTATE_CONSTANT_HS"),
    (0x781a, "3DSTATE_CONSTANT_DS"),
    (0x781b, "3DSTATE_HS"),
    (0x781c, "3DSTATE_TE"),
    (0x781d, "3DSTATE_DS"),
    (0x781e, "3DSTATE_STREAMOUT"),
    (0x781f, "3DSTATE_SBE"),
    (0x7820, "3DSTATE_PS"),
    (0x7821, "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP"),
    (0x7850, "3DSTATE_RASTER"),
    (0x7852, "3DSTATE_WM_HZ_OP"),
    (0x7a00, "PIPE_CONTROL"),
    (0x7b00, "3DPRIMITIVE"),
];

/// PIPE_CONTROL's opcode word.
const PIPE_CONTROL: u16 = 0x7a00;
/// 3DSTATE_SO_DECL_LIST has a length field of nine bits (xe: CMD_3DSTATE_SO_DECL_LIST_DW_LEN).
const SO_DECL_LIST: u16 = 0x7917;
/// MFX_WAIT is a single dword on the media engines though its length field is not empty (i915: MFX_WAIT).
const SINGLE_DWORD_PIPELINE: u32 = 1;

/// The command of a header whose bits 31:29 are 3; `None` on an engine without such a pipeline.
pub fn lookup(header: u32, class: EngineClass) -> Option<GfxCommand> {
    let opcode = ((header & MATCH) >> 16) as u16;
    let pipeline = header >> 27 & 3;
    let (media, family, long) = match class {
        EngineClass::Render => (false, "GFXPIPE", 0xff),
        EngineClass::Compute => (false, "GFXPIPE", 0xff),
        EngineClass::VideoDecode => (true, "MFX", 0xfff),
        EngineClass::VideoEnhance => (true, "VEBOX", 0xfff),
        EngineClass::Copy => return None,
    };
    let length = match (pipeline, opcode) {
        (SINGLE_DWORD_PIPELINE, _) => Length::SINGLE,
        (_, SO_DECL_LIST) => Length::field(0x1ff),
        _ => Length::field(long),
    };
    if media {
        return Some(GfxCommand { name: family, length, action: Gfx::StateOnly });
    }
    let name = NAMES.binary_search_by_key(&opcode, |(code, _)| *code).map_or(family, |at| NAMES[at].1);
    let action = if opcode == PIPE_CONTROL { Gfx::PipeControl } else { Gfx::StateOnly };
    Some(GfxCommand { name, length, action })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract K.8: lengths of pipeline commands.
    #[test]
    fn names_are_sorted_and_lengths_follow_the_pipeline() {
        assert!(NAMES.is_sorted_by_key(|(code, _)| *code));
        let dwords = |header: u32, class| lookup(header, class).map(|c| c.length.dwords(header));
        assert_eq!(dwords(0x6904_0010, EngineClass::Render), Some(1));
        assert_eq!(dwords(0x7809_0043, EngineClass::Render), Some(69));
        assert_eq!(dwords(0x7917_0100, EngineClass::Render), Some(258));
        assert_eq!(dwords(0x7202_0525, EngineClass::Compute), Some(39), "bits above 7:0 are flags of the walker");
        assert_eq!(dwords(0x7580_0110, EngineClass::VideoDecode), Some(274));
        assert_eq!(dwords(0x7a00_0004, EngineClass::Copy), None);
    }
}
