// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's error registers.

use super::Gt;
use crate::hardware_error::{ErrorRegisters, HardwareError, Severity};
use crate::registers::InterruptRegister;
use crate::registers::tile::{DEV_PCIEERR_STATUS, FATAL_ON_TILE_0, dev_err_stat, err_stat_gt};

impl Gt {
    /// Makes the card report a hardware error, as the service flows of Volume 13 have it (V13-284..287): sets its bits in
    /// the error registers of its severity and in the primary interrupt register. A correctable or non-fatal error
    /// raises the PF's interrupt. A fatal error does not: it is sent as a PCI Express message
    /// ([`InterruptSink::fatal_error`](crate::host::InterruptSink::fatal_error)), and the driver finds its bits when it
    /// next serves an interrupt, or when it is loaded. The error has no other effect: the card continues to work. The
    /// bits stay set until the PF's driver clears them, or a reset of the card. VFs see nothing of it. May be called from
    /// any thread, without locks held.
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
