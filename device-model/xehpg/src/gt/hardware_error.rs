// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's error registers.

use super::Gt;
use crate::hardware_error::{ErrorRegisters, HardwareError, Severity};
use crate::registers::InterruptRegister;
use crate::registers::tile::{DEV_PCIEERR_STATUS, FATAL_ON_TILE_0, dev_err_stat, err_stat_gt};

impl Gt {
    /// Sets the bits of `error` in the error registers of its severity, then reports it (V13-286, V13-287): a
    /// correctable or non-fatal error by the interrupt of the PF, a fatal error by a PCI Express message.
    pub fn raise_hardware_error(&self, error: HardwareError) {
        let HardwareError { severity, gt, device, .. } = error;
        self.registers.set_bits(err_stat_gt(severity), gt);
        self.registers.set_bits(dev_err_stat(severity), device);
        if severity == Severity::Fatal {
            self.registers.set_bits(DEV_PCIEERR_STATUS, FATAL_ON_TILE_0.mask());
        }
        self.interrupts.raise_error(severity);
    }

    /// Returns the error registers, by severity.
    pub fn error_registers(&self) -> [ErrorRegisters; 3] {
        let primary = self.interrupts.read(InterruptRegister::MasterGt, 0);
        let messages = self.registers.value(DEV_PCIEERR_STATUS);
        Severity::ALL.map(|severity| ErrorRegisters {
            severity,
            gt: self.registers.value(err_stat_gt(severity)),
            device: self.registers.value(dev_err_stat(severity)),
            interrupt: crate::interrupts::error_bit(severity) & primary != 0,
            message: severity == Severity::Fatal && FATAL_ON_TILE_0.is_set(messages),
        })
    }
}
