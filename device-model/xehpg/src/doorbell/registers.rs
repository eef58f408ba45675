// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Types and fields of the block's registers (V13-081..100). Their offsets are rows of
//! [`registers::guc`](crate::registers::guc).

use bitfield_struct::bitfield;

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
