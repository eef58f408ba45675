// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt pin of a function (PCI 3.0, 6.2.2 to 6.2.4).

use super::PciFunction;
use crate::event::PowerState;
use crate::header::{INTERRUPT_PIN, Status};

impl PciFunction {
    /// Whether the header names an interrupt pin.
    pub fn has_pin(&self) -> bool {
        self.config.word(INTERRUPT_PIN) & 0xff != 0
    }

    /// Sets Interrupt Status: whether the device requests an interrupt. A reset clears it. Without effect on a function
    /// without a pin.
    pub fn set_interrupt_status(&mut self, requested: bool) {
        if self.has_pin() {
            let status = Status::new().with_interrupt(true);
            self.config.set_register(0, status, status.with_interrupt(requested));
        }
    }

    /// Returns whether the function asserts its pin: it requests an interrupt in D0, and neither Interrupt Disable nor MSI
    /// Enable is set. Bus mastering is not required.
    pub fn asserts_pin(&self) -> bool {
        self.config.register::<Status>(0).interrupt()
            && !self.command().interrupt_disable()
            && self.msi_message().is_none()
            && self.power_state() == PowerState::D0
    }
}
