// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The part of the display in the PCH: ports, to which nothing is connected, clocks, the bus of the monitors'
//! identification data (G67-025, G67-027).

use super::Kind::{ReadOnly, Storage, Write1Clear};
use super::display::{DisplayRegister, live};
use super::{Bits, Register, STORED, array, register};

/// GMBUS1: command of a transfer.
pub const GMBUS_COMMAND: u32 = 0xc_5104;
/// GMBUS1: clears the interrupt and the error of the last transfer.
pub const GMBUS_CLEAR: Bits = Bits::bit(31);
/// GMBUS1: the command is to be executed.
pub const GMBUS_START: Bits = Bits::bit(30);
/// GMBUS1: phases of the transfer; 0 for none.
pub const GMBUS_CYCLE: Bits = Bits::new(27, 25);
/// GMBUS2: status of the bus.
pub const GMBUS_STATUS: u32 = 0xc_5108;
/// GMBUS2: the controller is ready for data.
pub const GMBUS_READY: Bits = Bits::bit(11);
/// GMBUS2: no device has acknowledged the transfer.
pub const GMBUS_NAK: Bits = Bits::bit(10);

const REGS: &str = "i915: display/intel_display_regs.h";
const EDGE: &str = "G67-025";
const GMBUS: &str = "i915: display/intel_gmbus_regs.h";

/// The registers.
pub const TABLE: &[Register] = &[
    register(0xc_2000, "SOUTH_CHICKEN1", STORED, 0, REGS),
    register(0xc_2004, "SOUTH_CHICKEN2", STORED, 0, REGS),
    register(0xc_2020, "SOUTH_DSPCLK_GATE_D", STORED, 0, REGS),
    register(0xc_4030, "PCH_PORT_HOTPLUG", STORED, 0, REGS),
    register(0xc_4040, "SERR_INT", Write1Clear(!0), 0, EDGE),
    // The lines of all pin pairs are high: clock and data in bits 4 and 12.
    array(0xc_5010, "GPIO", ReadOnly, 1 << 4 | 1 << 12, 6, EDGE),
    register(0xc_5100, "GMBUS0", STORED, 0, GMBUS),
    register(GMBUS_COMMAND, "GMBUS1", live(DisplayRegister::GmbusCommand), 0, GMBUS),
    register(GMBUS_STATUS, "GMBUS2", ReadOnly, GMBUS_READY.mask(), GMBUS),
    register(0xc_510c, "GMBUS3", STORED, 0, GMBUS),
    register(0xc_5110, "GMBUS4", STORED, 0, GMBUS),
    register(0xc_5120, "GMBUS5", STORED, 0, GMBUS),
    array(0xc_6014, "PCH_DPLL", STORED, 0, 2, EDGE),
    array(0xc_6040, "PCH_FP", STORED, 0, 4, EDGE),
    register(0xc_6200, "PCH_DREF_CONTROL", STORED, 0, EDGE),
    register(0xc_6204, "PCH_RAWCLK_FREQ", STORED, 0, EDGE),
    array(0xc_6208, "PCH_DPLL_TIMERS", STORED, 0, 4, REGS),
    register(0xc_7000, "PCH_DPLL_SEL", STORED, 0, EDGE),
    // The panel has no power.
    register(0xc_7200, "PCH_PP_STATUS", ReadOnly, 0, EDGE),
    array(0xc_7204, "PCH_PP_CONTROL", STORED, 0, 4, EDGE),
    array(0xc_8250, "BLC_PWM_PCH", STORED, 0, 2, "i915: display/intel_backlight_regs.h"),
    // The DAC is fused off: its enable bit, the hot-plug trigger and the state of the monitor stay 0 (G67-027).
    register(0xe_1100, "PCH_ADPA", Storage(!(1 << 31 | 3 << 24 | 1 << 16)), 0, "G67-027"),
    // No port has a sink, bit 2.
    register(0xe_1140, "PCH_HDMIB", ReadOnly, 0, "G67-027"),
    register(0xe_1150, "PCH_HDMIC", ReadOnly, 0, "G67-027"),
    register(0xe_1160, "PCH_HDMID", ReadOnly, 0, "G67-027"),
    register(0xe_1180, "PCH_LVDS", ReadOnly, 0, "G67-027"),
    register(0xe_4100, "PCH_DP_B", ReadOnly, 0, "G67-027"),
    register(0xe_4200, "PCH_DP_C", ReadOnly, 0, "G67-027"),
    register(0xe_4300, "PCH_DP_D", ReadOnly, 0, "G67-027"),
];
