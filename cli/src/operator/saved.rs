// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Functions that an operator saves and restores.

use std::io::{Read, Write};
use std::time::Duration;

use arctic_gpu::card::CardFunction;
use arctic_gpu::pci::{PciDevice, SavedDevice, StateError};

use super::Done;

/// Time within which the work of a function has to stop: longer than the preemption timeouts that drivers set.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// A function that may be saved and restored.
pub(super) struct SavedFunction<'c>(pub(super) &'c CardFunction);

impl SavedFunction<'_> {
    fn device(&self) -> Result<&dyn SavedDevice, String> {
        self.0.saved_device().ok_or_else(|| format!("{} cannot be saved", self.0.name()))
    }

    /// The answer, or the reason for which the function was not `what`.
    fn answer(&self, what: &str, result: Result<(), StateError>) -> Result<Done, String> {
        let function = self.0.name();
        match result {
            Ok(()) => Ok(Done { function }),
            Err(error) => Err(format!("{function} was not {what}: {error}")),
        }
    }

    /// Stops the function's work.
    pub(super) fn pause(&self) -> Result<Done, String> {
        self.answer("paused", self.device()?.pause(PAUSE_LIMIT))
    }

    /// Continues the function's work.
    pub(super) fn resume(&self) -> Result<Done, String> {
        self.answer("resumed", self.device()?.resume())
    }

    /// Saves the function.
    pub(super) fn save(&self, out: &mut dyn Write) -> Result<Done, String> {
        let device = self.device()?;
        self.answer("saved", while_paused(device, || device.save(out)))
    }

    /// Restores the function.
    pub(super) fn restore(&self, from: &mut dyn Read) -> Result<Done, String> {
        let device = self.device()?;
        self.answer("restored", while_paused(device, || device.restore(from)))
    }
}

/// Does something with a function that is paused, or is paused meanwhile.
fn while_paused(device: &dyn SavedDevice, then: impl FnOnce() -> Result<(), StateError>) -> Result<(), StateError> {
    match device.pause(PAUSE_LIMIT) {
        Ok(()) => {
            let done = then();
            let resumed = device.resume();
            done.and(resumed)
        }
        // It does not run.
        Err(StateError::Not(_)) => then(),
        Err(error) => Err(error),
    }
}
