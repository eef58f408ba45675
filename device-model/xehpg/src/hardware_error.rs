// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The hardware errors of the card (V13-284..287). The model has no defects of its own: an error occurs only when
//! [`Gt::raise_hardware_error`](crate::gt::Gt::raise_hardware_error) raises it, to test the error handling of a driver.
//!
//! The bits are those of the tables for DG2 in Intel's patches of 2023 for RAS in xe (xe_hw_error.c:
//! `dg2_err_stat_*_reg`, `dg2_stat_gt_*_reg`). Linux 7.2 has the registers, but names no error of this card.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use bitfield_struct::bitfield;
use serde::{Deserialize, Serialize};

/// Severity of a hardware error, which determines its registers and its route (V13-286).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Corrected by hardware. Raises the interrupt.
    Correctable,
    /// Not corrected; the card continues. Raises the interrupt.
    NonFatal,
    /// The card cannot be trusted. Raises no interrupt: the function reports it by the PCI Express message ERR_FATAL.
    Fatal,
}

impl Severity {
    /// All severities, by the number that is their position in the registers.
    pub const ALL: [Severity; 3] = [Severity::Correctable, Severity::NonFatal, Severity::Fatal];

    /// Name of the severity: "correctable", "nonfatal", "fatal".
    pub fn name(self) -> &'static str {
        match self {
            Severity::Correctable => "correctable",
            Severity::NonFatal => "nonfatal",
            Severity::Fatal => "fatal",
        }
    }

    /// Number of the severity in registers: 0, 1, 2.
    pub fn number(self) -> u16 {
        self as u16
    }
}

/// An error that the card can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HardwareError {
    /// Name of the error: the severity, and the unit that reports it.
    pub name: &'static str,
    /// Severity of the error.
    pub severity: Severity,
    /// The failure, in a few words.
    pub description: &'static str,
    /// The bit of the GT's error register that the error sets, as a mask; 0 if it does not occur in the GT.
    pub gt: u32,
    /// The bit of the device's error source register that the error sets, as a mask; 0 if its source is not reported.
    pub device: u32,
}

/// DEV_ERR_STAT_REG: sources of errors in the device.
#[bitfield(u32)]
struct Sources {
    gt: bool,
    #[bits(7)]
    __: u8,
    gsc: bool,
    #[bits(3)]
    __: u8,
    sgunit: bool,
    #[bits(3)]
    __: u8,
    soc: bool,
    #[bits(3)]
    __: u8,
    mert: bool,
    #[bits(11)]
    __: u16,
}

const GT: u32 = Sources::new().with_gt(true).into_bits();
const GSC: u32 = Sources::new().with_gsc(true).into_bits();
const SGUNIT: u32 = Sources::new().with_sgunit(true).into_bits();
const SOC: u32 = Sources::new().with_soc(true).into_bits();
const MERT: u32 = Sources::new().with_mert(true).into_bits();

const fn error(name: &'static str, severity: Severity, device: u32, description: &'static str) -> HardwareError {
    HardwareError { name, severity, description, gt: 0, device }
}

const fn gt(name: &'static str, severity: Severity, bit: u32, description: &'static str) -> HardwareError {
    HardwareError { name, severity, description, gt: 1 << bit, device: GT }
}

use Severity::{Correctable, Fatal, NonFatal};

const ERRORS: &[HardwareError] = &[
    gt("correctable-l3", Correctable, 0, "single-bit error in the L3 cache"),
    gt("correctable-guc", Correctable, 1, "single-bit error in the SRAM of the GuC"),
    gt("correctable-sampler", Correctable, 12, "single-bit error in a sampler"),
    gt("correctable-slm", Correctable, 13, "single-bit error in shared local memory"),
    gt("correctable-eu-ic", Correctable, 14, "single-bit error in the instruction cache of an EU"),
    gt("correctable-eu-grf", Correctable, 15, "single-bit error in the register file of an EU"),
    error("correctable-gsc", Correctable, GSC, "error of the GSC"),
    error("correctable-sgunit", Correctable, SGUNIT, "error of the SGUNIT"),
    error("correctable-soc", Correctable, SOC, "error of the SoC"),
    error("correctable-unknown", Correctable, 0, "error without a source: the source register reads 0"),
    // All bits of the GT's register of this severity are reserved; the model sets the lowest.
    gt("nonfatal-gt", NonFatal, 0, "error of the GT"),
    error("nonfatal-gsc", NonFatal, GSC, "error of the GSC"),
    error("nonfatal-sgunit", NonFatal, SGUNIT, "error of the SGUNIT"),
    error("nonfatal-soc", NonFatal, SOC, "error of the SoC"),
    error("nonfatal-mert", NonFatal, MERT, "error of the MERT"),
    error("nonfatal-unknown", NonFatal, 0, "error without a source: the source register reads 0"),
    gt("fatal-bist", Fatal, 1, "failed self-test of a memory array"),
    gt("fatal-fpu", Fatal, 3, "error of a floating-point unit"),
    gt("fatal-l3", Fatal, 4, "double-bit error in the L3 cache"),
    gt("fatal-l3-ecc", Fatal, 5, "error of the ECC checker of the L3 cache"),
    gt("fatal-guc", Fatal, 6, "double-bit error in the SRAM of the GuC"),
    gt("fatal-idi", Fatal, 8, "IDI parity error"),
    gt("fatal-sqidi", Fatal, 9, "error of the SQIDI"),
    gt("fatal-sampler", Fatal, 12, "double-bit error in a sampler"),
    gt("fatal-slm", Fatal, 13, "double-bit error in shared local memory"),
    gt("fatal-eu-ic", Fatal, 14, "double-bit error in the instruction cache of an EU"),
    gt("fatal-eu-grf", Fatal, 15, "double-bit error in the register file of an EU"),
    error("fatal-gsc", Fatal, GSC, "error of the GSC"),
    error("fatal-sgunit", Fatal, SGUNIT, "error of the SGUNIT"),
    error("fatal-soc", Fatal, SOC, "error of the SoC"),
    error("fatal-unknown", Fatal, 0, "error without a source: the source register reads 0"),
];

impl HardwareError {
    /// All errors of the card, by severity.
    pub fn all() -> &'static [HardwareError] {
        ERRORS
    }

    /// Returns the error with this name.
    pub fn named(name: &str) -> Option<HardwareError> {
        ERRORS.iter().find(|error| error.name == name).copied()
    }
}

/// The error registers of one severity, which keep their bits until the driver of the PF clears them, or a reset of the
/// card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorRegisters {
    /// The severity.
    pub severity: Severity,
    /// Errors in the GT (ERR_STAT_GT).
    pub gt: u32,
    /// Sources of errors in the device (DEV_ERR_STAT).
    pub device: u32,
    /// The error bit of the severity in the primary interrupt register (GFX_MSTR_IRQ).
    pub interrupt: bool,
    /// The tile has reported an error of this severity by a PCI Express message (DEV_PCIEERR_STATUS).
    pub message: bool,
}
