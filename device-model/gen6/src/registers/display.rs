// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The display engine: pipes, planes and clocks, with nothing connected (G67-024..027). Their registers are stored; no
//! pipe is ever active.

use super::Kind::{ReadOnly, Write1Clear};
use super::{Kind, Live, Register, STORED, array, register};

/// Registers of the display with behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRegister {
    /// GMBUS1: starts transfers on the bus of the monitors' identification data, to which nothing is connected.
    GmbusCommand,
}

const REGS: &str = "i915: display/intel_display_regs.h";
const EDGE: &str = "G67-025";

/// The registers.
pub const TABLE: &[Register] = &[
    register(0x4_1000, "CPU_VGACNTRL", STORED, 1 << 31, "G67-015"),
    array(0x4_2000, "DISPLAY_CHICKEN", STORED, 0, 2, REGS),
    register(0x4_200c, "CHICKEN3", STORED, 0, "G67-102"),
    register(0x4_2020, "DSPCLK_GATE_D", STORED, 0, "G67-102"),
    register(0x4_4030, "DIGITAL_PORT_HOTPLUG", STORED, 0, REGS),
    register(0x4_4040, "ERR_INT", Write1Clear(!0), 0, EDGE),
    register(0x4_4050, "DERRMR", STORED, !0, "IVB-175"),
    register(0x4_5000, "DISP_ARB_CTL", STORED, 0, EDGE),
    register(0x4_5004, "DISP_ARB_CTL2", STORED, 0, EDGE),
    register(0x4_5010, "MSG_CTL", STORED, 0, REGS),
    array(0x4_5100, "WM_PIPE", STORED, 0, 9, EDGE),
    register(0x4_5200, "WM_PIPE_C", STORED, 0, EDGE),
    register(0x4_6000, "DISPLAY_CLOCK", ReadOnly, 0, REGS),
];

/// A kind for the rows of units with behaviour.
pub(super) const fn live(register: DisplayRegister) -> Kind<Live> {
    Kind::Live(Live::Display(register))
}
