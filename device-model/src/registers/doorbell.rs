//! Registers of the doorbell block (V13-081..100, [`crate::doorbell`]).

use super::Kind::Live as L;
use super::Live::Doorbell;
use super::{Register, array, register};

/// What a register of the doorbell block shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoorbellRegister {
    /// MMIO offset of the watched page and, in bit 0, Valid; ordinal = physical doorbell.
    Address,
    /// Function whose window the page is in; ordinal = physical doorbell.
    Function,
    /// Stage 2: doorbells of group = ordinal that have rung.
    Status,
    /// Stage 3: those whose status was taken; reading takes it.
    InterruptStatus,
    /// Groups that have rung, and who hears of it.
    Control,
}

/// The table. No document or driver gives the fields of the physical doorbells, and none the offsets of the two GuC
/// registers: those are the model's own, in a gap of the GuC's interrupt block.
pub const TABLE: &[Register] = &[
    array(0x1900, "GTI_DOORBELL_STATUS", L(Doorbell(DoorbellRegister::Status)), 0, (8, 4), "V13-087, V13-097"),
    array(
        0xc5a0,
        "GUC_DB_ISR",
        L(Doorbell(DoorbellRegister::InterruptStatus)),
        0,
        (8, 4),
        "V13-088, V13-100; the place is the model's own",
    ),
    register(
        0xc5c0,
        "DOORBELL_CTRL",
        L(Doorbell(DoorbellRegister::Control)),
        0,
        "V13-099, V13-100; the place and the bits are the model's own",
    ),
    array(
        0x3f_f000,
        "DOORBELL_ADDRESS",
        L(Doorbell(DoorbellRegister::Address)),
        0,
        (256, 8),
        "V13-093, V13-094; the bits are the model's own, bit 0 as DRB_VALID in xe: regs/xe_guc_regs.h",
    ),
    array(
        0x3f_f004,
        "DOORBELL_FUNCTION",
        L(Doorbell(DoorbellRegister::Function)),
        0,
        (256, 8),
        "V13-093, V13-094; the bits are the model's own",
    ),
];
