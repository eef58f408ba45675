// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers of the doorbell block (V13-081..100, [`crate::doorbell`]).

use bitfield_struct::bitfield;

use super::Kind::Live as L;
use super::Live::Doorbell;
use super::{Register, array, register};

/// Type of a register of the doorbell block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoorbellRegister {
    /// MMIO offset of the watched page and, in bit 0, Valid; ordinal = physical doorbell.
    Address,
    /// Function that owns the window of the page; ordinal = physical doorbell.
    Function,
    /// Stage 2: doorbells that have rung in the group given by the ordinal.
    Status,
    /// Stage 3: a read moves the status bits of the group given by the ordinal into this register and returns them.
    InterruptStatus,
    /// Groups that have rung, and the interrupt targets.
    Control,
}

/// DOORBELL_ADDRESS: the page that a doorbell watches (xe, i915: DRB_VALID of doorbells in memory).
#[bitfield(u32)]
pub struct DoorbellAddress {
    /// The doorbell is armed.
    pub valid: bool,
    #[bits(11)]
    __: u16,
    /// Bits 31:12 of the page's MMIO offset.
    #[bits(20)]
    page: u32,
}

/// DOORBELL_CTRL. The document does not define bit positions.
#[bitfield(u32)]
pub struct DoorbellControl {
    /// The groups that have rung and have not been taken since (V13-098).
    pub groups: u8,
    #[bits(23)]
    __: u32,
    /// Rings notify the GuC's core, not the host (V13-099).
    pub send_to_core: bool,
}

/// The register table. No public document or driver defines the fields of the physical doorbells or the offsets of the
/// two GuC registers, so the model chooses them. The offsets are in a gap of the GuC's interrupt block.
pub const TABLE: &[Register] = &[
    array(0x1900, "GTI_DOORBELL_STATUS", L(Doorbell(DoorbellRegister::Status)), 0, (8, 4), "V13-087, V13-097"),
    array(
        0xc5a0,
        "GUC_DB_ISR",
        L(Doorbell(DoorbellRegister::InterruptStatus)),
        0,
        (8, 4),
        "V13-088, V13-100; offset chosen by the model",
    ),
    register(
        0xc5c0,
        "DOORBELL_CTRL",
        L(Doorbell(DoorbellRegister::Control)),
        0,
        "V13-099, V13-100; offset and bits chosen by the model",
    ),
    array(
        0x3f_f000,
        "DOORBELL_ADDRESS",
        L(Doorbell(DoorbellRegister::Address)),
        0,
        (256, 8),
        "V13-093, V13-094; bits chosen by the model, bit 0 as DRB_VALID in xe: regs/xe_guc_regs.h",
    ),
    array(
        0x3f_f004,
        "DOORBELL_FUNCTION",
        L(Doorbell(DoorbellRegister::Function)),
        0,
        (256, 8),
        "V13-093, V13-094; bits chosen by the model",
    ),
];
