// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of observation (OA). Those with effects are in `gt/observation.rs`; of the others, the model reads some, and stores
//! what drivers write to the rest (OA-002..004).

use bitfield_struct::bitfield;

use super::Kind::{self, Masked};
use super::{Classes, Live, RENDER, Register, STORED, Scope, array, card_fields, register};

/// RPM_CONFIG1: bit 9 is GT_NOA_ENABLE.
pub const RPM_CONFIG1: u32 = 0xd04;
/// NOA_WRITE: a node in bits 31:16, data in bits 15:0.
pub const NOA_WRITE: u32 = 0x9888;
/// OAG_OAGLBCTXCTRL.
pub const OAGLBCTXCTRL: u32 = 0x2b28;
/// OAG_OACONTROL.
pub const OAG_OACONTROL: u32 = 0xdaf4;
/// OAG_OASTATUS.
pub const OAG_OASTATUS: u32 = 0xdafc;
/// OAG_OAHEADPTR.
pub const OAG_OAHEADPTR: u32 = 0xdb00;
/// OAG_OATAILPTR.
pub const OAG_OATAILPTR: u32 = 0xdb04;
/// OAR_OACONTROL.
pub const OAR_OACONTROL: u32 = 0x2960;
/// OAC_OACONTROL, OAC_OASTATUS and OAC_CTX_CONTROL_MSG. Each compute engine has its own at these offsets.
pub const OAC: [u32; 3] = [0x1_5114, 0x1_511c, 0x1_51e0];
/// EU_PERF_CNTL0 to 6.
pub const EU_PERF_CNTL: [u32; 7] = [0xe458, 0xe558, 0xe658, 0xe758, 0xe45c, 0xe55c, 0xe65c];
/// A value of EU_PERF_CNTL with which its two counters count nothing, in a form that saves power: that after reset (V13-250).
pub const EVENTS_OFF: u32 = 0x0300_f00f;
/// First and last byte of OAG's block, without OAG_OAGLBCTXCTRL.
pub const OAG_BLOCK: std::ops::Range<u32> = 0xd900..0xdc00;

/// A register of observation with an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObservationRegister {
    /// OAG_OACONTROL: enables OAG. Reads as enabled until the reports due before a disable are written.
    Control,
    /// OAG_OAGLBCTXCTRL: counters advance, the timer.
    GlobalControl,
    /// NOA_WRITE: connects signals.
    NoaWrite,
    /// RPM_CONFIG1: switches the network of signals on.
    NoaEnable,
    /// CECn-0 and CECn-1: comparisons of the B counters.
    Comparison,
    /// OAREPORTTRIG2 or 6, with the number of the internal trigger, 0 or 1.
    InternalTrigger(u8),
    /// OAG_MMIOTRIGGER: a write makes a report with the value; reads 0.
    MmioTrigger,
    /// A counters of 40 bits from this one on, two dwords each.
    Wide(u8),
    /// A counters from this one on, of which a dword exists; the stride of A36 and A37 is 8.
    Narrow(u8),
    /// GPU_TICKS.
    Ticks,
    /// B counters.
    B,
    /// C counters.
    C,
    /// EU_PERF_CNTL0 to 6: what the flexible counters count. One set for all execution units.
    Flexible,
}

/// OAG_OACONTROL.
#[bitfield(u32)]
pub struct OaControl {
    /// OAG is enabled.
    pub enable: bool,
    __: bool,
    /// Selects the format of reports.
    #[bits(3)]
    pub select: u32,
    #[bits(11)]
    __: u32,
    /// The compute engine of OAC.
    #[bits(3)]
    pub compute: u8,
    #[bits(13)]
    __: u32,
}

/// OAG_OA_DEBUG.
#[bitfield(u32)]
pub struct OaDebug {
    __: bool,
    /// Context switches make no report.
    pub no_switch_reports: bool,
    /// RC6 makes no report.
    pub no_sleep_reports: bool,
    #[bits(2)]
    __: u8,
    /// Changes of the frequency make no report.
    pub no_frequency_reports: bool,
    /// RPT_ID has the frequency.
    pub frequency_in_id: bool,
    #[bits(5)]
    __: u8,
    /// The buffer has eight times the size of its field.
    pub large_buffer: bool,
    __: bool,
    /// Writes of OAG_MMIOTRIGGER make no report.
    pub no_mmio_reports: bool,
    #[bits(17)]
    __: u32,
}

/// OAG_OASTATUS: what the model sets. A write stores its value.
#[bitfield(u32)]
pub struct OaStatus {
    /// A report was lost.
    pub report_lost: bool,
    /// The tail has passed the head.
    pub buffer_overflow: bool,
    __: bool,
    /// A report was dropped, because the buffer is full.
    pub overrun: bool,
    #[bits(2)]
    __: u8,
    /// Too many writes of OAG_MMIOTRIGGER wait.
    pub trigger_queue_full: bool,
    #[bits(25)]
    __: u32,
}

/// OAG_OABUFFER. Bits 31:6 are the address.
#[bitfield(u32)]
pub struct OaBuffer {
    /// The buffer is in the GGTT.
    pub global: bool,
    /// Reports that do not fit are dropped.
    pub disable_overrun: bool,
    __: bool,
    /// Size: 128 KiB shifted by this.
    #[bits(3)]
    pub size: u32,
    #[bits(26)]
    __: u32,
}

/// SQCNT1.
#[bitfield(u32)]
pub struct SuperQueueControl {
    #[bits(29)]
    __: u32,
    /// The counters of device memory count units of 128 bytes.
    pub units_of_128: bool,
    #[bits(2)]
    __: u8,
}

card_fields! {
    SuperQueueControl 0x8718;
    OaControl OAG_OACONTROL;
    OaDebug 0xdaf8;
    OaBuffer 0xdb08;
}

const fn live(register: ObservationRegister) -> Kind<Live> {
    Kind::Live(Live::Observation(register))
}

/// Addresses of cache lines.
const LINE: Kind<Live> = Kind::Storage(0xffff_ffc0);
/// State of contexts of compute engines.
const COMPUTE: Scope = Scope::Context(Classes::COMPUTE);

const MUX: &str = "xe: xe_oa.c, gen12_oa_mux_regs; i915: i915_perf.c, dg2_mux_regs";
const BOOLEAN: &str = "V13-235; xe: xe_oa.c, gen12_oa_b_counters";
const COUNTERS: &str = "V13-236; Mesa: intel_perf_regs.h, GFX12_OAG_PERF";

/// The register table.
pub const TABLE: &[Register] = &[
    register(
        RPM_CONFIG1,
        "RPM_CONFIG1",
        live(ObservationRegister::NoaEnable),
        0,
        "contract E.9; xe: regs/xe_oa_regs.h",
    ),
    array(0xd0c, "RPM_MUX", STORED, 0, (9, 4), MUX),
    register(0x2b00, "OACONTROL", STORED, 0, "V13-052"),
    register(OAR_OACONTROL, "OAR_OACONTROL", STORED, 0, "V8-181; xe: regs/xe_oa_regs.h").of(RENDER),
    register(0x2968, "OAR_OASTATUS", STORED, 0, "V8-181; xe: regs/xe_oa_regs.h").of(RENDER),
    register(0x2aa0, "OA_CTX_CONTROL_MSG", STORED, 0, "V8-181").of(RENDER),
    register(
        OAGLBCTXCTRL,
        "OAG_OAGLBCTXCTRL",
        live(ObservationRegister::GlobalControl),
        0,
        "contract E.9; xe: regs/xe_oa_regs.h",
    ),
    register(0x2b2c, "OAGLBCTXCTRL_UDW", STORED, 0, BOOLEAN),
    register(0x9840, "GDT_CHICKEN_BITS", STORED, 0, MUX),
    register(0x9884, "NOA_DATA", STORED, 0, MUX),
    register(NOA_WRITE, "NOA_WRITE", live(ObservationRegister::NoaWrite), 0, MUX),
    register(OAC[0], "OAC_OACONTROL", STORED, 0, "V8-182; xe: regs/xe_oa_regs.h").of(COMPUTE),
    register(OAC[1], "OAC_OASTATUS", STORED, 0, "V8-182; xe: regs/xe_oa_regs.h").of(COMPUTE),
    register(OAC[2], "OAC_CTX_CONTROL_MSG", STORED, 0, "V8-182").of(COMPUTE),
    array(0xd900, "OASTARTTRIG", STORED, 0, (8, 4), BOOLEAN),
    register(0xd920, "OAREPORTTRIG1", STORED, 0, BOOLEAN),
    register(0xd924, "OAREPORTTRIG2", live(ObservationRegister::InternalTrigger(0)), 0, BOOLEAN),
    array(0xd928, "OAREPORTTRIG3_5", STORED, 0, (3, 4), BOOLEAN),
    register(0xd934, "OAREPORTTRIG6", live(ObservationRegister::InternalTrigger(1)), 0, BOOLEAN),
    array(0xd938, "OAREPORTTRIG7_8", STORED, 0, (2, 4), BOOLEAN),
    array(0xd940, "CEC", live(ObservationRegister::Comparison), 0, (16, 4), BOOLEAN),
    array(0xd980, "OAPERF_A0_31", live(ObservationRegister::Wide(0)), 0, (64, 4), COUNTERS),
    array(0xda80, "OAPERF_A32_35", live(ObservationRegister::Narrow(32)), 0, (4, 4), COUNTERS),
    register(0xda90, "GPU_TICKS", live(ObservationRegister::Ticks), 0, COUNTERS),
    array(0xda94, "OAPERF_B", live(ObservationRegister::B), 0, (8, 4), COUNTERS),
    array(0xdab4, "OAPERF_C", live(ObservationRegister::C), 0, (8, 4), COUNTERS),
    register(
        OAG_OACONTROL,
        "OAG_OACONTROL",
        live(ObservationRegister::Control),
        0,
        "contract E.9; xe: regs/xe_oa_regs.h",
    ),
    register(0xdaf8, "OAG_OA_DEBUG", Masked, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(OAG_OASTATUS, "OAG_OASTATUS", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(OAG_OAHEADPTR, "OAG_OAHEADPTR", LINE, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(OAG_OATAILPTR, "OAG_OATAILPTR", LINE, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(0xdb08, "OAG_OABUFFER", STORED, 0, "contract E.9; xe: regs/xe_oa_regs.h"),
    register(
        0xdb1c,
        "OAG_MMIOTRIGGER",
        live(ObservationRegister::MmioTrigger),
        0,
        "contract E.9; xe: regs/xe_oa_regs.h",
    ),
    array(0xdb20, "OAPERF_A36_37", live(ObservationRegister::Narrow(36)), 0, (2, 8), COUNTERS),
    array(0xdc00, "OA_BOOLEAN_SLICE", STORED, 0, (19, 4), BOOLEAN),
    array(0xdd00, "OA_BOOLEAN_MSLICE", STORED, 0, (19, 4), BOOLEAN),
    register(0xe458, "EU_PERF_CNTL0", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe45c, "EU_PERF_CNTL4", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe558, "EU_PERF_CNTL1", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe55c, "EU_PERF_CNTL5", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe658, "EU_PERF_CNTL2", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe65c, "EU_PERF_CNTL6", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
    register(0xe758, "EU_PERF_CNTL3", live(ObservationRegister::Flexible), EVENTS_OFF, "V13-256"),
];
