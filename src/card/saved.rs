// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring a function with its configuration space and the contents of its memory.
//!
//! A stream has the state of the function as one document, and then, for a card with memory of its own, the contents as another.

use std::io::{Read, Write};
use std::time::Duration;

use arctic_device_model::gpu::{Document, SaveRestore, StateError, Writer};
use arctic_device_model::state::contents::{self, ContentsError};
use arctic_device_model::state::{RestoreError, SavedConfig, SavedState};
use arctic_sriov::event::Events;

use super::CardFunction;
use super::bus_port::Config;
use crate::pci::SavedDevice;

/// Most bytes of the state of a function without contents: all its GGTT entries and contexts, and kernels in flight.
const MOST_BYTES: u64 = 32 << 20;

impl Config {
    /// The state of configuration space; `None` for a VF that is presented beside its PF.
    fn save(&self) -> Option<SavedConfig> {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => Some(function.save()),
            Config::Shim(_) => None,
        }
    }

    fn restore(&mut self, saved: &SavedConfig) -> Result<Events, RestoreError> {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => Ok(function.restore(saved)?),
            Config::Shim(_) => Ok(Events::default()),
        }
    }
}

impl CardFunction {
    fn saved_state(&self) -> Result<&dyn SaveRestore, StateError> {
        let state = self.shared.gpu.saved_state();
        let state = state.ok_or(StateError::Unsupported("this card cannot be saved"))?;
        state.saved_kind(self.number)?;
        Ok(state)
    }

    fn has_contents(&self) -> bool {
        self.shared.gpu.own_memory().is_some()
    }

    /// Restores the parts of a stream one after the other. After an error, some of them may have been restored.
    fn restore_parts(&self, state: &dyn SaveRestore, from: &mut dyn Read) -> Result<(), StateError> {
        let number = self.number;
        let kind = state.saved_kind(number)?;
        let bytes = contents::read_document(from, kind, MOST_BYTES)?;
        let document = Document::read(&bytes, kind)?;
        let config = SavedConfig::read(&document)?;
        state.restore(number, &document, SavedConfig::TAGS)?;
        if self.has_contents() {
            state.clear_contents(number);
            let (size, _) = state.contents(number);
            contents::read_contents(from, size, |offset, bytes| state.write_contents(number, offset, bytes))?;
        }
        let mut restored = Ok(());
        self.update(|space| {
            space.restore(&config).unwrap_or_else(|error| {
                restored = Err(error);
                Events::default()
            })
        });
        Ok(restored?)
    }
}

impl SavedDevice for CardFunction {
    fn pause(&self, limit: Duration) -> Result<(), StateError> {
        self.saved_state()?.pause(self.number, limit)
    }

    fn resume(&self) -> Result<(), StateError> {
        self.saved_state()?.resume(self.number)
    }

    fn save(&self, out: &mut dyn Write) -> Result<(), StateError> {
        let (state, number) = (self.saved_state()?, self.number);
        let config = self.port.config().save();
        let config =
            config.ok_or(StateError::Unsupported("a virtual function beside its physical function cannot be saved"))?;
        let mut document = Writer::new(state.saved_kind(number)?);
        state.save(number, &mut document)?;
        config.write(&mut document);
        out.write_all(&document.finish()).map_err(ContentsError::from)?;
        if self.has_contents() {
            let (_, parts) = state.contents(number);
            contents::write_contents(out, &parts, |offset, bytes| state.read_contents(number, offset, bytes))
                .map_err(ContentsError::from)?;
        }
        Ok(())
    }

    fn restore(&self, from: &mut dyn Read) -> Result<(), StateError> {
        let state = self.saved_state()?;
        let restored = self.restore_parts(state, from);
        if restored.is_err() {
            // Fails if the function is not paused, and has not changed then.
            let _ = state.empty(self.number);
        }
        restored
    }
}
