// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Power: forcewake, RC6, frequency, PCODE and the sensors of the PCU (contract B.1, B.2, B.5b, B.11). The bit fields are
//! in `power_fields.rs`.

use super::Kind::{self, ReadOnly};
use super::{ClockRegister, Live, Register, STORED, array, register};
use crate::sensors::RAPL_LIMIT;

/// Forcewake request of the GT's domain.
pub const FORCEWAKE_GT: u32 = 0xa188;
/// Forcewake request of the render domain.
pub const FORCEWAKE_RENDER: u32 = 0xa278;
/// Forcewake requests of the GuC for the media domains: VDBOX 0 to 7 in bits 7:0, VEBOX 0 to 3 in bits 11:8.
pub const FORCEWAKE_GUC_MEDIA: u32 = 0xa274;
/// Forcewake request of the GuC for the render domain, bit 0.
pub const FORCEWAKE_GUC_RENDER: u32 = 0xa27c;
/// Forcewake requests of the VDBOX domains.
pub const FORCEWAKE_MEDIA_VDBOX: u32 = 0xa540;
/// Forcewake requests of the VEBOX domains.
pub const FORCEWAKE_MEDIA_VEBOX: u32 = 0xa560;
/// The last of [`FORCEWAKE_MEDIA_VEBOX`].
pub const FORCEWAKE_MEDIA_VEBOX_LAST: u32 = FORCEWAKE_MEDIA_VEBOX + 12;

/// RPNSWREQ: requested frequency.
pub const RPNSWREQ: u32 = 0xa008;

/// POWERGATE_ENABLE: domains that may be power gated while the GT is awake.
pub const POWERGATE_ENABLE: u32 = 0xa210;

/// RC_CONTROL: the host's control of RC6.
pub const RC_CONTROL: u32 = 0xa090;
/// RC_STATE: the state that the host requests.
pub const RC_REQUEST: u32 = 0xa094;

/// GT_PERF_STATUS: actual frequency and voltage.
pub const GT_PERF_STATUS: u32 = 0x13_81b4;

/// GT0_PERF_LIMIT_REASONS: why the frequency is lower than requested, and in the upper half why it was.
pub const LIMIT_REASONS: u32 = 0x13_81a8;

/// RP_STATE_CAP: frequencies of the die.
pub const RP_STATE_CAP: u32 = 0x14_5998;
/// FREQ_INFO_REC: further frequencies.
pub const FREQ_INFO_REC: u32 = 0x14_5ef0;

/// Type of a register of the power controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerRegister {
    /// Forcewake request of the driver, a masked register: its low half is copied to the acknowledge register
    /// (V13-135). The request of a media box that the fuses disable is acknowledged like any other (V13-139).
    Forcewake {
        /// Offset of the acknowledge register of element 0; the stride is 4.
        ack: u32,
        /// Number of the domain of element 0: 0 GT, 1 render, 2..=9 VDBOX, 10..=13 VEBOX.
        domain: u16,
    },
    /// Forcewake requests of the GuC, a masked register with one bit a domain (V13-136).
    GucForcewake {
        /// Number of the domain of bit 0, as in [`PowerRegister::Forcewake`].
        domain: u8,
        /// Requests that exist.
        requests: u32,
    },
    /// Slices of the power controller that are awake: the media boxes of a slice share a bit (V13-137).
    DomainStatus,
    /// Idle state of the GT: bits 2:0 RC state.
    CoreStatus,
    /// RC6 residency in 1.28 us units.
    Rc6Residency,
    /// Actual frequency and voltage of the GT.
    PerfStatus,
    /// Reasons that limit the frequency: those of now, and a log that is cleared by writing 0.
    LimitReasons,
    /// The power limit.
    PowerLimit,
    /// RC_CONTROL and RC_STATE: the host's control of RC6.
    RcControl,
    /// PCODE mailbox, data 0, data 1 by ordinal.
    Pcode,
    /// Power, energy and temperature sensors of the PCU.
    Sensor,
}

use PowerRegister::{
    CoreStatus, DomainStatus, Forcewake, GucForcewake, LimitReasons, Pcode, PerfStatus, PowerLimit, Rc6Residency,
    RcControl, Sensor,
};

const fn power(register: PowerRegister) -> Kind<Live> {
    Kind::Live(Live::Power(register))
}

const TIMESTAMP: Kind<Live> = Kind::Live(Live::Clock(ClockRegister::PowerTimestamp));

/// The register table.
pub const TABLE: &[Register] = &[
    array(0xd50, "FORCEWAKE_ACK_MEDIA_VDBOX", ReadOnly, 0, (8, 4), "V13-135"),
    array(0xd70, "FORCEWAKE_ACK_MEDIA_VEBOX", ReadOnly, 0, (4, 4), "V13-135"),
    register(0xd84, "FORCEWAKE_ACK_RENDER", ReadOnly, 0, "V13-135"),
    register(0x13_0044, "FORCEWAKE_ACK_GT", ReadOnly, 0, "V13-135"),
    register(FORCEWAKE_GT, "FORCEWAKE_GT", power(Forcewake { ack: 0x13_0044, domain: 0 }), 0, "V13-135"),
    register(FORCEWAKE_RENDER, "FORCEWAKE_RENDER", power(Forcewake { ack: 0xd84, domain: 1 }), 0, "V13-135"),
    array(
        FORCEWAKE_MEDIA_VDBOX,
        "FORCEWAKE_MEDIA_VDBOX",
        power(Forcewake { ack: 0xd50, domain: 2 }),
        0,
        (8, 4),
        "V13-135",
    ),
    array(
        FORCEWAKE_MEDIA_VEBOX,
        "FORCEWAKE_MEDIA_VEBOX",
        power(Forcewake { ack: 0xd70, domain: 10 }),
        0,
        (4, 4),
        "V13-135",
    ),
    // Reads 0: no forcewake of a command streamer is ever pending.
    array(0x8000, "MSG_IDLE", ReadOnly, 0, (5, 4), "i915: intel_gt_regs.h; CS, VCS0, VCS1, BCS, VECS0"),
    array(0x80c0, "MSG_IDLE_MEDIA", ReadOnly, 0, (9, 4), "i915: intel_gt_regs.h; VCS2 .. VCS7, VECS1 .. VECS3"),
    register(
        FORCEWAKE_GUC_MEDIA,
        "FORCEWAKE_GUC_MEDIA",
        power(GucForcewake { domain: 2, requests: 0xfff }),
        0,
        "V13-136",
    ),
    register(
        FORCEWAKE_GUC_RENDER,
        "FORCEWAKE_GUC_RENDER",
        power(GucForcewake { domain: 1, requests: 1 }),
        0,
        "V13-136",
    ),
    register(RPNSWREQ, "RPNSWREQ", STORED, 0, "contract B.4; xe: xe_guc_pc.c"),
    register(0xa010, "GEN6_RP_DOWN_TIMEOUT", STORED, 0, "i915: intel_gt_regs.h"),
    register(0xa014, "GEN6_RP_INTERRUPT_LIMITS", STORED, 0, "i915: intel_gt_regs.h"),
    register(0xa01c, "RP_STATUS0", ReadOnly, 0, "V8-176; i915: GEN6_RPSTAT1"),
    register(0xa024, "RP_CONTROL", STORED, 0, "contract B.4; xe: xe_guc_pc.c"),
    array(0xa02c, "GEN6_RP_THRESHOLDS", STORED, 0, (2, 4), "i915: intel_gt_regs.h; up, down"),
    array(0xa050, "GEN6_RP_COUNTERS", STORED, 0, (7, 4), "V8-177; i915: intel_gt_regs.h; 0xa050 .. 0xa068"),
    register(0xa06c, "GEN6_RP_DOWN_EI", STORED, 0, "V8-177"),
    register(0xa070, "GEN6_RP_IDLE_HYSTERSIS", STORED, 0, "i915: intel_gt_regs.h"),
    register(0xa074, "GEN6_PMINTRMSK_RP", STORED, 0, "i915: intel_gt_regs.h"),
    register(RC_CONTROL, "RC_CONTROL", power(RcControl), 0, "contract B.12; xe: xe_gt_idle.c; i915: intel_rc6.c"),
    register(RC_REQUEST, "RC_STATE", power(RcControl), 0, "contract B.12; xe: xe_gt_idle.c; i915: intel_rc6.c"),
    array(0xa098, "GEN6_RC_WAKE_RATE_LIMITS", STORED, 0, (5, 4), "i915: intel_rc6.c; 0xa098 .. 0xa0a8"),
    register(0xa0ac, "RC_IDLE_HYSTERSIS", STORED, 0, "xe: xe_gt_idle.c"),
    array(0xa0b0, "GEN6_RC_THRESHOLDS", STORED, 0, (4, 4), "i915: intel_rc6.c; sleep, 1e, 6, 6p"),
    register(0xa0c0, "VLV_RCEDATA", STORED, 0, "i915: intel_rc6.c"),
    register(0xa0c4, "MEDIA_POWERGATE_IDLE_HYSTERESIS", STORED, 0, "xe: xe_gt_idle.c"),
    register(0xa0c8, "RENDER_POWERGATE_IDLE_HYSTERESIS", STORED, 0, "xe: xe_gt_idle.c"),
    register(0xa168, "PMINTRMSK", STORED, 0xffff_ffff, "contract B.4; xe: xe_guc.c"),
    register(0xa178, "GUC_ARAT_C6DIS", STORED, 0, "xe: regs/xe_guc_regs.h"),
    register(POWERGATE_ENABLE, "POWERGATE_ENABLE", STORED, 0, "contract B.4; xe: xe_gt_idle.c"),
    register(0xa248, "GEN9_MISC_CTRL0", STORED, 0, "i915: intel_gt_regs.h"),
    register(0xa26c, "CTC_MODE", ReadOnly, 0, "contract G.1; bit 0: the crystal is the clock's source"),
    array(0xa288, "UNSLICE_FLC_THRESHOLDS", STORED, 0, (2, 4), "V8-177"),
    register(0xa2a0, "POWERGATE_DOMAIN_STATUS", power(DomainStatus), 0, "V13-137; xe: xe_gt_idle.c"),
    array(0xa500, "MISC_STATUS", TIMESTAMP, 0, (2, 4), "contract K.4, K.6; GPM timestamp"),
    array(0xa538, "UNSLICE_FLC_COUNTERS", ReadOnly, 0, (2, 4), "V8-177"),
    register(0x13_8060, "GT_CORE_STATUS", power(CoreStatus), 0, "contract E.8; xe: regs/xe_gt_regs.h"),
    register(0x13_8104, "GT_GFX_RC6_LOCKED", ReadOnly, 0, "xe: regs/xe_gt_regs.h"),
    register(0x13_8108, "GT_GFX_RC6", power(Rc6Residency), 0, "contract E.8; xe: regs/xe_gt_regs.h"),
    array(0x13_810c, "GEN6_GT_GFX_RC6P", ReadOnly, 0, (2, 4), "V8-176; deeper states do not exist"),
    // Ordinals: mailbox, data 0, data 1.
    array(0x13_8124, "PCODE_MAILBOX", power(Pcode), 0, (3, 4), "contract B.1; xe: xe_pcode_api.h"),
    register(0x13_8140, "PCU_PWM_FAN_SPEED", power(Sensor), 0, "i915: intel_gt_regs.h; the card has no fan"),
    register(0x13_816c, "GT_PM_CONFIG", STORED, 0, "contract B.4; xe: regs/xe_guc_regs.h"),
    register(LIMIT_REASONS, "GT0_PERF_LIMIT_REASONS", power(LimitReasons), 0, "contract B.11; xe: xe_gt_throttle.c"),
    register(GT_PERF_STATUS, "GT_PERF_STATUS", power(PerfStatus), 0, "contract B.4, B.11; xe: regs/xe_gt_regs.h"),
    register(0x13_82c0, "BMG_VRAM_TEMPERATURE", power(Sensor), 0, "contract B.5b; xe: xe_hwmon.c"),
    array(0x14_5930, "PCU_CR_PACKAGE_POWER_SKU", power(Sensor), 0, (2, 4), "contract B.5b; xe: regs/xe_mchbar_regs.h"),
    register(0x14_5938, "PCU_CR_PACKAGE_POWER_SKU_UNIT", power(Sensor), 0, "contract B.5b; xe: regs/xe_mchbar_regs.h"),
    register(0x14_593c, "PCU_CR_PACKAGE_ENERGY_STATUS", power(Sensor), 0, "contract B.5b; xe: regs/xe_mchbar_regs.h"),
    register(0x14_5978, "PCU_CR_PACKAGE_TEMPERATURE", power(Sensor), 0, "contract B.5b; xe: regs/xe_mchbar_regs.h"),
    register(RP_STATE_CAP, "RP_STATE_CAP", ReadOnly, 0, "contract B.4; from the card's frequencies"),
    register(
        RAPL_LIMIT,
        "PCU_CR_PACKAGE_RAPL_LIMIT",
        power(PowerLimit),
        0,
        "contract B.5b; xe: regs/xe_mchbar_regs.h; from the card's power",
    ),
    register(RAPL_LIMIT + 4, "PCU_CR_PACKAGE_RAPL_LIMIT_2", STORED, 0, "xe: regs/xe_mchbar_regs.h"),
    register(FREQ_INFO_REC, "FREQ_INFO_REC", ReadOnly, 0, "contract B.11; from the card's frequencies"),
];
