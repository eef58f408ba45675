// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring the card for a VMM.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arctic_base::gpu::{Document, Gpu, Kind, SaveRestore, StateError, Tag, Writer};
use arctic_base::host::Function;

use super::Card;
use super::saved::SavedCard;

impl Card {
    fn check_paused(&self) -> Result<(), StateError> {
        if self.paused.load(Ordering::SeqCst) { Ok(()) } else { Err(StateError::Not("paused")) }
    }
}

impl SaveRestore for Card {
    fn saved_kind(&self, function: Function) -> Result<Kind, StateError> {
        if function.is_vf() {
            Err(StateError::Unsupported("this card has no virtual functions"))
        } else {
            Ok(Kind::Gen6Card)
        }
    }

    /// Engines stop between two commands, or within a blit, and need not be idle.
    fn pause(&self, _: Function, _: Duration) -> Result<(), StateError> {
        if self.paused.swap(true, Ordering::SeqCst) {
            return Err(StateError::Not("running"));
        }
        self.quiesce();
        Ok(())
    }

    fn resume(&self, _: Function) -> Result<(), StateError> {
        if !self.paused.swap(false, Ordering::SeqCst) {
            return Err(StateError::Not("paused"));
        }
        self.gt.wakeups.post();
        Ok(())
    }

    fn save(&self, _: Function, to: &mut Writer) -> Result<(), StateError> {
        self.check_paused()?;
        Card::save(self).write(to);
        Ok(())
    }

    fn restore(&self, function: Function, from: &Document<'_>, further: &[Tag]) -> Result<(), StateError> {
        self.check_paused()?;
        let restored = SavedCard::read(from, further).and_then(|saved| Card::restore(self, &saved));
        if restored.is_err() {
            self.empty(function)?;
        }
        Ok(restored?)
    }

    /// The card has no memory of its own.
    fn contents(&self, _: Function) -> (u64, Vec<Range<u64>>) {
        (0, Vec::new())
    }

    fn read_contents(&self, _: Function, _: u64, _: &mut [u8]) {}

    fn write_contents(&self, _: Function, _: u64, _: &[u8]) {}

    fn clear_contents(&self, _: Function) {}

    fn empty(&self, function: Function) -> Result<(), StateError> {
        self.check_paused()?;
        self.reset(function);
        Ok(())
    }
}
