// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The display engine: pipes, planes and clocks, with nothing connected (G67-024..027). Their registers are stored; no
//! pipe is ever active.

use super::Kind::{ReadOnly, Write1Clear};
use super::pipe::CURSOR;
use super::{Kind, Live, Register, STORED, array, register};

/// Registers of the display with behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRegister {
    /// GMBUS1: starts transfers on the bus of the monitors' identification data, to which nothing is connected.
    GmbusCommand,
}

const REGS: &str = "i915: display/intel_display_regs.h";
const EDGE: &str = "G67-025";
const FBC: &str = "i915: display/intel_fbc_regs.h";
const FITTER: &str = "i915: display/intel_pfit_regs.h";

/// The registers of all generations.
pub const SHARED: &[Register] = &[
    register(0x4_1000, "CPU_VGACNTRL", STORED, 1 << 31, "G67-015"),
    array(0x4_2000, "DISPLAY_CHICKEN", STORED, 0, 2, REGS),
    register(0x4_2020, "DSPCLK_GATE_D", STORED, 0, "G67-102"),
    register(0x4_4030, "DIGITAL_PORT_HOTPLUG", STORED, 0, REGS),
    array(0x4_3208, "DPFC", STORED, 0, 5, FBC),
    register(0x4_3224, "DPFC_CHICKEN", STORED, 0, FBC),
    // The document has it for Ivy Bridge; the driver's error capture reads it on both.
    register(0x4_4050, "DERRMR", STORED, !0, "IVB-175, i915: display/intel_display_irq.c"),
    register(0x4_5000, "DISP_ARB_CTL", STORED, 0, EDGE),
    register(0x4_5004, "DISP_ARB_CTL2", STORED, 0, EDGE),
    register(0x4_5010, "MSG_CTL", STORED, 0, REGS),
    array(0x4_5100, "WM_PIPE", STORED, 0, 11, EDGE),
    register(0x4_6000, "DISPLAY_CLOCK", ReadOnly, 0, REGS),
    array(0x4_8250, "BLC_PWM_CPU", STORED, 0, 2, "i915: display/intel_backlight_regs.h"),
    // No port A, bit 2.
    register(0x6_4000, "DP_A", ReadOnly, 0, "G67-027"),
    Register { stride: 0x800, ..array(0x6_8070, "PF_WIN_POS", STORED, 0, 3, FITTER) },
    Register { stride: 0x800, ..array(0x6_8074, "PF_WIN_SIZE", STORED, 0, 3, FITTER) },
    Register { stride: 0x800, ..array(0x6_8080, "PF_CTL", STORED, 0, 3, FITTER) },
    array(0x10_0100, "DPFC_SA", STORED, 0, 2, FBC),
];

/// The registers of Sandy Bridge: the cursors of both pipes are beside each other.
pub const SANDY_BRIDGE: &[Register] =
    &[array(0x7_0080, "CURSOR_A", STORED, 0, 9, CURSOR), array(0x7_00c0, "CURSOR_B", STORED, 0, 9, CURSOR)];

/// The registers of Ivy Bridge.
pub const IVY_BRIDGE: &[Register] = &[
    register(0x4_200c, "CHICKEN3", STORED, 0, "G67-102"),
    register(0x4_4040, "ERR_INT", Write1Clear(!0), 0, EDGE),
    register(0x4_5200, "WM_PIPE_C", STORED, 0, EDGE),
];

/// A kind for the rows of units with behaviour.
pub(super) const fn live(register: DisplayRegister) -> Kind<Live> {
    Kind::Live(Live::Display(register))
}
