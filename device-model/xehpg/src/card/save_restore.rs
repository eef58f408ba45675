// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring VFs for a VMM, on a card without a PF driver.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use super::Card;
use crate::gpu::{Document, Gpu, Kind, SaveRestore, StateError, Tag, WorkStatus, Writer};
use crate::guc::saved::SavedFunction;
use crate::host::Function;

/// Time between two polls of whether a pause is complete, if there is nothing to execute.
const POLL: Duration = Duration::from_micros(100);

impl SaveRestore for Card {
    fn saved_kind(&self, function: Function) -> Result<Kind, StateError> {
        if !function.is_vf() {
            return Err(StateError::Unsupported(
                "saving the physical function or all of this card is not supported, only virtual functions",
            ));
        }
        if self.function_state(function).has_pf_driver() {
            return Err(StateError::Unsupported(
                "saving a virtual function is not supported while a driver of the physical function provisions it; that \
                 driver saves it",
            ));
        }
        Ok(Kind::XeHpgFunction)
    }

    fn pause(&self, function: Function, limit: Duration) -> Result<(), StateError> {
        let begin = Instant::now();
        self.function_state(function).set_paused(true).map_err(|_| StateError::Not("running"))?;
        while !self.function_state(function).is_paused() {
            if begin.elapsed() >= limit {
                // A pause that is complete now is ended likewise.
                let _ = self.function_state(function).set_paused(false);
                return Err(StateError::Busy(limit));
            }
            // Also for a card without workers.
            if self.work() != WorkStatus::Busy {
                thread::sleep(POLL);
            }
        }
        Ok(())
    }

    fn resume(&self, function: Function) -> Result<(), StateError> {
        self.function_state(function).set_paused(false).map_err(|_| StateError::Not("paused"))
    }

    fn save(&self, function: Function, to: &mut Writer) -> Result<(), StateError> {
        self.function_state(function).save()?.write(to);
        Ok(())
    }

    fn restore(&self, function: Function, from: &Document<'_>, further: &[Tag]) -> Result<(), StateError> {
        let saved = SavedFunction::read(from, further);
        Ok(self.function_state(function).restore_read(saved.as_ref().map_err(Clone::clone))?)
    }

    fn contents(&self, function: Function) -> (u64, Vec<Range<u64>>) {
        let memory = &self.gt.memory;
        (memory.quota(function), memory.data_of(function).collect())
    }

    fn read_contents(&self, function: Function, offset: u64, data: &mut [u8]) {
        self.gt.memory.read_bar(function, offset, data);
    }

    fn write_contents(&self, function: Function, offset: u64, data: &[u8]) {
        self.gt.memory.write_bar(function, offset, data);
    }

    fn clear_contents(&self, function: Function) {
        self.gt.memory.clear_vf(function);
    }

    fn empty(&self, function: Function) -> Result<(), StateError> {
        self.function_state(function).empty()?;
        self.gt.memory.clear_vf(function);
        Ok(())
    }
}
