// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Power: forcewake, the FIFO of register writes, RC6, frequency, the mailbox of the power controller, clock gating,
//! reset (G67-030..040, G67-110).

use super::Kind::{ReadOnly, Write1Clear};
use super::{Bits, Kind, Live, Register, STORED, array, register};

/// Forcewake request of several threads, masked (G67-031).
pub const FORCEWAKE_MT: u32 = 0xa188;
/// Acknowledgement of [`FORCEWAKE_MT`], the same bits.
pub const FORCEWAKE_MT_ACK: u32 = 0x13_0040;
/// Forcewake request, bit 0 (G67-032).
pub const FORCEWAKE: u32 = 0xa18c;
/// Acknowledgement of [`FORCEWAKE`], the same bit.
pub const FORCEWAKE_ACK: u32 = 0x13_0090;
/// Requested frequency.
pub const RPNSWREQ: u32 = 0xa008;
/// RPNSWREQ: the frequency in units of 50 MHz.
pub const REQUESTED: Bits = Bits::new(31, 25);
/// RPSTAT1: the current frequency in units of 50 MHz (G67-038).
pub const CURRENT: Bits = Bits::new(14, 8);
/// Control of RC6.
pub const RC_CONTROL: u32 = 0xa090;
/// RC_CONTROL: the hardware enters an RC state when the GT is idle.
pub const RC_HW_ENABLE: Bits = Bits::bit(31);
/// RC_CONTROL: RC6 is enabled.
pub const RC6_ENABLE: Bits = Bits::bit(18);
/// Requested RC state (i915: gt/intel_rc6.c, intel_rc6_park).
pub const RC_STATE: u32 = 0xa094;
/// RC_STATE: software requests RC6.
pub const RC_STATE_RC6: Bits = Bits::bit(18);
/// Rate of the residency counters: 1.28 us.
pub const RESIDENCY_NANOSECONDS: u64 = 1280;
/// Mailbox of the power controller (G67-037).
pub const PCODE_MAILBOX: u32 = 0x13_8124;
/// PCODE_MAILBOX: a command is to be executed.
pub const PCODE_READY: Bits = Bits::bit(31);
/// PCODE_MAILBOX: the command; after execution, its status.
pub const PCODE_COMMAND: Bits = Bits::new(7, 0);
/// Operand and result of a command of the power controller.
pub const PCODE_DATA: u32 = 0x13_8128;
/// GDRST (G67-110).
pub const GDRST: u32 = 0x941c;
/// GDRST: everything.
pub const RESET_FULL: u32 = 1;

/// Registers of the power unit with behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerRegister {
    /// [`FORCEWAKE_MT`].
    ForcewakeMt,
    /// [`FORCEWAKE`].
    Forcewake,
    /// [`RC_CONTROL`] or [`RC_STATE`].
    RcControl,
    /// RPSTAT1: the requested frequency is the current one.
    Frequency,
    /// Time in RC6 in units of [`RESIDENCY_NANOSECONDS`].
    Residency,
    /// [`PCODE_MAILBOX`].
    Mailbox,
}

const fn live(register: PowerRegister) -> Kind<Live> {
    Kind::Live(Live::Power(register))
}

const RPS: &str = "G67-038";
const REGS: &str = "i915: gt/intel_gt_regs.h";
const CLOCKS: &str = "G67-102";

/// The registers of all generations.
pub const SHARED: &[Register] = &[
    register(0x900c, "MBCUNIT_SNPCR", STORED, 0, CLOCKS),
    register(0x907c, "MBCTL", STORED, 0, REGS),
    array(0x9400, "UCGCTL", STORED, 0, 3, CLOCKS),
    array(0x9410, "RCGCTL", STORED, 0, 2, CLOCKS),
    register(GDRST, "GDRST", Kind::Live(Live::Reset), 0, "G67-110"),
    register(0x9420, "RSTCTL", STORED, 0, REGS),
    register(0xa000, "GFXPAUSE", STORED, 0, REGS),
    register(RPNSWREQ, "RPNSWREQ", STORED, 0, RPS),
    register(0xa00c, "RC_VIDEO_FREQ", STORED, 0, RPS),
    register(0xa010, "RP_DOWN_TIMEOUT", STORED, 0, RPS),
    register(0xa014, "RP_INTERRUPT_LIMITS", STORED, 0, RPS),
    register(0xa01c, "RPSTAT1", live(PowerRegister::Frequency), 0, RPS),
    register(0xa024, "RP_CONTROL", STORED, 0, RPS),
    register(0xa02c, "RP_UP_THRESHOLD", STORED, 0, RPS),
    register(0xa030, "RP_DOWN_THRESHOLD", STORED, 0, RPS),
    // Evaluation intervals: nothing is measured.
    array(0xa050, "RP_EVALUATION", ReadOnly, 0, 6, RPS),
    register(0xa068, "RP_UP_EI", STORED, 0, RPS),
    register(0xa06c, "RP_DOWN_EI", STORED, 0, RPS),
    register(0xa070, "RP_IDLE_HYSTERESIS", STORED, 0, RPS),
    array(0xa080, "RPDEU", STORED, 0, 3, RPS),
    register(RC_CONTROL, "RC_CONTROL", live(PowerRegister::RcControl), 0, "G67-040"),
    register(RC_STATE, "RC_STATE", live(PowerRegister::RcControl), 0, "G67-040"),
    array(0xa098, "WAKE_RATE_LIMIT", STORED, 0, 3, RPS),
    register(0xa0a8, "RC_EVALUATION_INTERVAL", STORED, 0, RPS),
    register(0xa0ac, "RC_IDLE_HYSTERESIS", STORED, 0, RPS),
    array(0xa0b0, "RC_THRESHOLD", STORED, 0, 5, RPS),
    register(0xa168, "PMINTRMSK", STORED, 0, RPS),
    register(FORCEWAKE, "FORCEWAKE", live(PowerRegister::Forcewake), 0, "G67-032"),
    register(0x12_0000, "GTFIFODBG", Write1Clear(!0), 0, "G67-034"),
    // The FIFO of register writes is empty.
    register(0x12_0008, "GTFIFOCTL", ReadOnly, 0x3f, "G67-034"),
    register(FORCEWAKE_ACK, "FORCEWAKE_ACK", ReadOnly, 0, "G67-032"),
    register(0x13_805c, "GT_THREAD_STATUS", ReadOnly, 0, "G67-033"),
    register(0x13_8060, "GT_CORE_STATUS", ReadOnly, 0, REGS),
    register(0x13_8104, "GT_GFX_RC6_LOCKED", STORED, 0, "i915: gt/intel_rc6.c"),
    register(0x13_8108, "GT_GFX_RC6", live(PowerRegister::Residency), 0, "G67-038"),
    // The deeper states are never entered.
    array(0x13_810c, "GT_GFX_RC6P", ReadOnly, 0, 2, "G67-038"),
    register(PCODE_MAILBOX, "PCODE_MAILBOX", live(PowerRegister::Mailbox), 0, "G67-037"),
    array(PCODE_DATA, "PCODE_DATA", STORED, 0, 2, "G67-037"),
    register(0x14_5948, "GT_PERF_STATUS", ReadOnly, 0, "G67-038"),
];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    register(0x940c, "UCGCTL4", STORED, 0, CLOCKS),
    register(0x9424, "MISCCPCTL", STORED, 0, "G67-093"),
    // Bit 5: forcewake requests of several threads are enabled.
    register(0xa180, "ECOBUS", ReadOnly, 1 << 5, "G67-031"),
    register(FORCEWAKE_MT, "FORCEWAKE_MT", live(PowerRegister::ForcewakeMt), 0, "G67-031"),
    register(FORCEWAKE_MT_ACK, "FORCEWAKE_MT_ACK", ReadOnly, 0, "G67-031"),
];
