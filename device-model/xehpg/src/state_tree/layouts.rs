// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The bit fields of registers, for display: by the name of the row.

use arctic_base::registers::{Layout, Layouts};

use crate::doorbell::{DoorbellAddress, DoorbellControl};
use crate::execlist::status::CsbInterruptMask;
use crate::interrupts::MasterTile;
use crate::pcode::Mailbox;
use crate::registers::engine_fields as engine;
use crate::registers::fuses::VeboxVdboxDisable;
use crate::registers::guc::{DmaCtrl, Gdrst, GucStatus, GucWopcmSize, LOCKED, PPGTT_ENABLED};
use crate::registers::observation::{OaBuffer, OaControl, OaDebug, OaStatus};
use crate::registers::power_fields as power;
use crate::registers::steering::{CsSteering, Steering};
use crate::registers::tile::{GuCntl, GuDebug};
use crate::sensors::RaplLimit;

/// Registers of the card.
pub const CARD: Layouts = &[
    ("GU_CNTL", Layout::of::<GuCntl>()),
    ("GU_DEBUG", Layout::of::<GuDebug>()),
    ("GT_VEBOX_VDBOX_DISABLE", Layout::of::<VeboxVdboxDisable>()),
    ("GDRST", Layout::of::<Gdrst>()),
    ("GUC_STATUS", Layout::of::<GucStatus>()),
    ("GUC_WOPCM_SIZE", Layout::of::<GucWopcmSize>()),
    ("DMA_GUC_WOPCM_OFFSET", Layout::Bits(&[("valid", LOCKED)])),
    ("DMA_CTRL", Layout::of::<DmaCtrl>()),
    ("GUC_PPGTT_ENABLE", Layout::Bits(&[("enabled", PPGTT_ENABLED)])),
    ("MCR_SELECTOR", Layout::of::<Steering>()),
    ("SF_MCR_SELECTOR", Layout::of::<Steering>()),
    ("GUC_MCR_SELECTOR", Layout::of::<Steering>()),
    ("RPNSWREQ", Layout::of::<power::FrequencyRequest>()),
    ("POWERGATE_ENABLE", Layout::of::<power::PowergateEnable>()),
    ("RC_CONTROL", Layout::of::<power::RcControl>()),
    ("RC_STATE", Layout::of::<power::RcRequest>()),
    ("GT_CORE_STATUS", Layout::of::<power::CoreStatus>()),
    ("GT_PERF_STATUS", Layout::of::<power::PerfStatus>()),
    ("GT0_PERF_LIMIT_REASONS", Layout::of::<power::LimitReasons>()),
    ("RP_STATE_CAP", Layout::of::<power::RpStateCap>()),
    ("FREQ_INFO_REC", Layout::of::<power::FreqInfoRec>()),
    ("PCU_CR_PACKAGE_RAPL_LIMIT", Layout::of::<RaplLimit>()),
    ("PCODE_MAILBOX", Layout::of::<Mailbox>()),
    ("DG1_MSTR_TILE_INTR", Layout::of::<MasterTile>()),
    ("OAG_OACONTROL", Layout::of::<OaControl>()),
    ("OAG_OA_DEBUG", Layout::of::<OaDebug>()),
    ("OAG_OASTATUS", Layout::of::<OaStatus>()),
    ("OAG_OABUFFER", Layout::of::<OaBuffer>()),
    ("DOORBELL_CTRL", Layout::of::<DoorbellControl>()),
    ("DOORBELL_ADDRESS", Layout::of::<DoorbellAddress>()),
];

/// Registers of each engine.
pub const ENGINE: Layouts = &[
    ("RING_TAIL", Layout::of::<engine::RingTail>()),
    ("RING_HEAD", Layout::of::<engine::RingHead>()),
    ("RING_CTL", Layout::of::<engine::RingCtl>()),
    ("RING_RESET_CTL", Layout::of::<engine::ResetCtl>()),
    ("RING_BBSTATE", Layout::of::<engine::BbState>()),
    ("PR_CTR_CTRL", Layout::of::<engine::PrCtrCtrl>()),
    ("BB_PER_CTX_PTR", Layout::of::<engine::BbPerCtxPtr>()),
    ("INDIRECT_CTX", Layout::of::<engine::IndirectCtx>()),
    ("INDIRECT_CTX_OFFSET", Layout::of::<engine::IndirectCtxOffset>()),
    ("RING_CONTEXT_CONTROL", Layout::of::<engine::ContextControl>()),
    ("MI_SET_PREDICATE_RESULT", Layout::of::<engine::PredicateResult>()),
    ("GFX_MODE", Layout::of::<engine::GfxMode>()),
    ("RING_EXECLIST_CONTROL", Layout::of::<engine::ExeclistControl>()),
    ("RING_FORCE_TO_NONPRIV", Layout::of::<engine::NonprivSlot>()),
    ("RING_EIR", Layout::of::<engine::Errors>()),
    ("RING_EMR", Layout::of::<engine::Errors>()),
    ("RING_ESR", Layout::of::<engine::Errors>()),
    ("CSB_INTERRUPT_MASK", Layout::of::<CsbInterruptMask>()),
    ("CS_MMIO_GROUP_INSTANCE_SELECT", Layout::of::<CsSteering>()),
];

#[cfg(test)]
mod tests {
    use arctic_base::inspect::Node;
    use arctic_base::registers::layout_of;

    use super::*;
    use crate::generation::XE_HPG;
    use crate::registers::RegisterFile;

    #[test]
    fn each_layout_is_that_of_a_register() {
        let file = RegisterFile::new(XE_HPG.registers, XE_HPG.engines);
        for (layouts, of_engine) in [(CARD, false), (ENGINE, true)] {
            for (name, _) in layouts {
                let mut rows = file.listing().map(|(_, decoded)| (decoded.register.name, decoded.engine.is_some()));
                assert!(rows.any(|row| row == (*name, of_engine)), "{name}");
            }
        }
    }

    #[test]
    fn fields_have_names_and_values() {
        let fields = layout_of(ENGINE, "RING_CTL").unwrap().fields(0x3001);
        let expected =
            [("enabled", Node::Flag(true)), ("head_report", Node::Number(0)), ("last_page", Node::Number(3))];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(layout_of(CARD, "DMA_GUC_WOPCM_OFFSET").unwrap().fields(1), [("valid".into(), Node::Flag(true))]);
        assert!(layout_of(CARD, "RING_CTL").is_none());
    }
}
