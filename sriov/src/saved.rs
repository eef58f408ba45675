// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The saved state of a function's configuration space: the header, each capability and the device-specific registers
//! are parts of their own, so that a difference between two functions is named.
//!
//! A part contains the registers as software reads them. Restoring accepts only values that the function can have:
//! read-only bits must be equal, so the identities, BAR sizes and capabilities of the two functions are the same.

use std::ops::Range;

use crate::config::ConfigSpace;
use crate::event::Events;
use crate::function::PciFunction;
use crate::part::PartId;
use crate::sriov_capability::SRIOV_PARTS;

/// The saved state of a function's configuration space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedConfig {
    parts: Vec<SavedPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedPart {
    part: PartId,
    registers: Vec<u8>,
}

impl SavedConfig {
    /// A state of these parts, with the registers of each as software reads them. [`PciFunction::restore`] checks it.
    pub fn new<'p>(parts: impl IntoIterator<Item = (PartId, &'p [u8])>) -> SavedConfig {
        let part = |(part, registers): (PartId, &[u8])| SavedPart { part, registers: registers.to_vec() };
        SavedConfig { parts: parts.into_iter().map(part).collect() }
    }

    /// The parts with their registers.
    pub fn parts(&self) -> impl Iterator<Item = (PartId, &[u8])> {
        self.parts.iter().map(|SavedPart { part, registers }| (*part, registers.as_slice()))
    }
}

/// Reason why a saved state cannot be restored. The function is then unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The function has this part and the state does not, or has it twice.
    #[error("the saved configuration space has not exactly one {0}")]
    Missing(PartId),
    /// The state has this part and the function does not.
    #[error("the function has no {0}, which was saved")]
    Unknown(PartId),
    /// The part has another length in the state.
    #[error("the saved {0} has another length than the function's")]
    Length(PartId),
    /// The register at this offset has a value that it cannot have in this function.
    #[error("the saved {0} has a value at {1:#x} that the function cannot have")]
    Value(PartId, u16),
}

impl PciFunction {
    /// Returns the state of configuration space.
    pub fn save(&self) -> SavedConfig {
        let part = |(part, bytes): &(PartId, Range<u16>)| SavedPart {
            part: *part,
            registers: self.config.bytes(bytes.clone()).collect(),
        };
        SavedConfig { parts: self.parts.iter().map(part).collect() }
    }

    /// Replaces the state of configuration space with `saved`, which may come from another function with the same
    /// identity, BARs and capabilities. Returns the effects of the change, as those of a write: an interrupt that was
    /// pending stays pending, and VFs that were enabled are enabled, in their reset state.
    pub fn restore(&mut self, saved: &SavedConfig) -> Result<Events, ConfigError> {
        if let Some(unknown) = saved.parts.iter().find(|of| self.parts.iter().all(|(part, _)| *part != of.part)) {
            return Err(ConfigError::Unknown(unknown.part));
        }
        let mut config = self.config.clone();
        // The size of a VF BAR decides which bits of its address exist.
        let order = |part: &PartId| SRIOV_PARTS.iter().position(|of| of == part).unwrap_or(SRIOV_PARTS.len());
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|(part, _)| order(part));
        for (part, bytes) in parts {
            let mut found = saved.parts.iter().filter(|of| of.part == *part);
            let (Some(SavedPart { registers, .. }), None) = (found.next(), found.next()) else {
                return Err(ConfigError::Missing(*part));
            };
            if registers.len() != bytes.len() {
                return Err(ConfigError::Length(*part));
            }
            config.restore(bytes.start, registers).map_err(|at| ConfigError::Value(*part, at))?;
            if let (Some(sriov), PartId::Extended(_)) = (&self.sriov, part) {
                sriov.check(&mut config).map_err(|at| ConfigError::Value(*part, at))?;
            }
        }
        self.check_power_state(&config).map_err(|(part, at)| ConfigError::Value(part, at))?;
        Ok(self.change(|function| function.config = config))
    }
}

impl ConfigSpace {
    /// The values of the bytes in `range`, as far as they lie in the space.
    fn bytes(&self, range: Range<u16>) -> impl Iterator<Item = u8> {
        let mut data = vec![0; range.len()];
        self.read(range.start.into(), &mut data);
        data.into_iter()
    }
}

#[cfg(test)]
mod tests;
