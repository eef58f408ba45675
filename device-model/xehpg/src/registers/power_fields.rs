// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Bit fields of the registers of the power controller. Frequencies are in units of 16.67 MHz or 50 MHz.

use bitfield_struct::bitfield;

use super::card_fields;
use super::power::{
    FREQ_INFO_REC, GT_PERF_STATUS, LIMIT_REASONS, POWERGATE_ENABLE, RC_CONTROL, RC_REQUEST, RP_STATE_CAP, RPNSWREQ,
};
use crate::sensors::{RAPL_LIMIT, RaplLimit};

/// Highest frequency that the registers hold, in units of 16.67 MHz.
pub const MAX_RATIO: u32 = 0x1ff;

/// RPNSWREQ: the request of a frequency.
#[bitfield(u32)]
pub struct FrequencyRequest {
    #[bits(23)]
    __: u32,
    /// Frequency in units of 16.67 MHz, at most [`MAX_RATIO`].
    #[bits(9)]
    pub ratio: u32,
}

/// POWERGATE_ENABLE: domains that may be power gated while the GT is awake.
#[bitfield(u32)]
pub struct PowergateEnable {
    /// The render domain.
    pub render: bool,
    /// The VDBOX and VEBOX domains.
    pub media: bool,
    #[bits(30)]
    __: u32,
}

/// RC_CONTROL: the host's control of RC6.
#[bitfield(u32)]
pub struct RcControl {
    #[bits(18)]
    __: u32,
    /// RC6 is enabled.
    pub rc6_enable: bool,
    #[bits(12)]
    __: u16,
    /// The hardware enters RC6 when the GT is idle.
    pub hw_enable: bool,
}

/// RC_STATE: the state that the host requests.
#[bitfield(u32)]
pub struct RcRequest {
    __: u16,
    /// The target: [`RcRequest::RC6`] or 0 (i915: intel_rc6_park).
    #[bits(3)]
    pub target: u8,
    #[bits(13)]
    __: u16,
}

impl RcRequest {
    /// [`RcRequest::target`] for RC6.
    pub const RC6: u8 = 4;
}

/// GT_CORE_STATUS: state of the GT.
#[bitfield(u32)]
pub struct CoreStatus {
    /// [`CoreStatus::RC0`] or [`CoreStatus::RC6`].
    #[bits(3)]
    pub rc_state: u8,
    #[bits(29)]
    __: u32,
}

impl CoreStatus {
    /// [`CoreStatus::rc_state`] while the GT is awake.
    pub const RC0: u8 = 0;
    /// [`CoreStatus::rc_state`] while the GT sleeps.
    pub const RC6: u8 = 3;
}

/// GT_PERF_STATUS.
#[bitfield(u32)]
pub struct PerfStatus {
    /// Voltage in units of 2.5 mV (xe: regs/xe_gt_regs.h VOLTAGE_MASK).
    #[bits(11)]
    pub voltage: u32,
    /// Actual frequency in units of 16.67 MHz. The stored one is that which the GuC's frequency task requests.
    #[bits(9)]
    pub ratio: u32,
    #[bits(12)]
    __: u16,
}

/// GT0_PERF_LIMIT_REASONS: why the frequency is lower than requested.
#[bitfield(u32)]
pub struct LimitReasons {
    #[bits(10)]
    __: u16,
    /// The package power limit PL1 (xe: regs/xe_gt_regs.h POWER_LIMIT_1_MASK).
    pub pl1: bool,
    #[bits(15)]
    __: u16,
    /// PL1 has been a reason since the log was last cleared (i915: GT0_PERF_LIMIT_REASONS_LOG_MASK).
    pub pl1_log: bool,
    #[bits(5)]
    __: u8,
}

/// RP_STATE_CAP: frequencies of the die in units of 50 MHz.
#[bitfield(u32)]
pub struct RpStateCap {
    /// Maximum.
    pub rp0: u8,
    /// Guaranteed.
    pub rp1: u8,
    /// Minimum.
    pub rpn: u8,
    __: u8,
}

/// FREQ_INFO_REC: further frequencies in units of 50 MHz.
#[bitfield(u32)]
pub struct FreqInfoRec {
    __: u8,
    /// Efficient.
    pub rpe: u8,
    /// Attainable.
    pub rpa: u16,
}

card_fields! {
    FrequencyRequest RPNSWREQ;
    PowergateEnable POWERGATE_ENABLE;
    RcControl RC_CONTROL;
    RcRequest RC_REQUEST;
    PerfStatus GT_PERF_STATUS;
    LimitReasons LIMIT_REASONS;
    RpStateCap RP_STATE_CAP;
    FreqInfoRec FREQ_INFO_REC;
    RaplLimit RAPL_LIMIT;
}
