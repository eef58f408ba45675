// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! All state of one function, and its reset.

use super::Card;
use crate::doorbell::Page;
use crate::gt::virtual_function::VirtualFunction;
use crate::guc::functions::GucFunction;
use crate::guc::functions::client::State;
use crate::guc::functions::context::GucContextId;
use crate::guc::messages::hxg::Error;
use crate::guc::saved::{SaveScope, VfUnits};
pub use crate::guc::saved::{SavedFunction, SavedMemory};
use crate::guc::{FunctionReset, Guc};
use crate::host::Function;
use crate::interrupts::Interrupts;
use crate::memory::FunctionMemory;
use crate::memory::ggtt::{self, GgttEntry};
use crate::memory::saved::GgttState;
use crate::state::{RestoreError, SaveError};
use crate::sync::MutexGuard;

/// All state of one function, with the GuC's lock held. The state lies in three places, each with one structure per
/// function and its own rule of access:
/// * the GT: registers, interrupt tree and armed doorbells, which are accessed without the GuC's lock, also by others
///   while this exists;
/// * memory: local memory quota, frames, and GGTT entries; frames move only while all engines are stopped;
/// * the GuC: contexts, queues, configuration and what the driver has set up; accessed only with the GuC's lock.
pub struct FunctionState<'c> {
    card: &'c Card,
    function: Function,
    guc: MutexGuard<'c, Guc>,
}

/// The obligation to release the local memory of a VF in reset, without the GuC's lock, and then to notify the PF.
#[must_use]
pub(super) struct Emptying(pub(super) Function);

impl Card {
    /// Returns the state of `function`. Waits for the GuC's lock.
    pub fn function_state(&self, function: Function) -> FunctionState<'_> {
        self.function_state_for(function, function)
    }

    /// Returns the state of `function`. Waits for the GuC's lock on behalf of `waiting`.
    pub(super) fn function_state_for(&self, function: Function, waiting: Function) -> FunctionState<'_> {
        FunctionState { card: self, function, guc: self.guc_for(waiting) }
    }
}

impl<'c> FunctionState<'c> {
    /// The copies that a VF has of the registers with one value per function; `None` for the PF, whose registers are
    /// those of the card.
    pub fn registers(&self) -> Option<&'c VirtualFunction> {
        self.card.gt.vf(self.function)
    }

    /// The function's interrupt tree.
    pub fn interrupts(&self) -> &'c Interrupts {
        self.card.gt.interrupts_of(self.function)
    }

    /// The function's armed doorbells: number of the physical doorbell, page of the function's window, and the context
    /// that a ring schedules.
    pub fn doorbells(&self) -> impl Iterator<Item = (u8, Page, Option<GucContextId>)> {
        (0..=u8::MAX).filter_map(|index| {
            let (_, page) = self.card.gt.doorbells.watched(index).filter(|(function, _)| *function == self.function)?;
            Some((index, page, self.guc.doorbell(index)))
        })
    }

    /// The GuC's state of the function: contexts, queues, quotas, share of the engines. `None` if no firmware is
    /// running.
    pub fn guc(&self) -> Option<&GucFunction> {
        self.guc.function(self.function)
    }

    /// The function's local memory.
    pub fn memory(&self) -> &'c FunctionMemory {
        self.card.gt.memory.function(self.function)
    }

    /// The entries of the function's GGTT range, as its engines use them, with their numbers; none without firmware.
    pub fn ggtt(&self) -> impl Iterator<Item = (u64, GgttEntry)> {
        let GgttState { memory, indices, .. } = self.ggtt_state();
        indices.map(|index| (index, memory.ggtt().effective(index)))
    }

    /// The frames of the function's local memory in order: the card's address of each, or `None` where none is
    /// assigned.
    pub fn frames(&self) -> impl Iterator<Item = Option<u64>> {
        self.card.gt.memory.frames_of(self.function)
    }

    /// Pauses a VF, or resumes it, as its PF driver does by VF_CONTROL, for a card without a PF driver. While paused,
    /// the VF's contexts are off the engines and its requests stay pending. Returns the GuC's error if the VF is not
    /// running, or not paused.
    pub fn set_paused(&mut self, paused: bool) -> Result<(), Error> {
        let card = self.card;
        self.guc.set_paused(&card.gt, &card.engines, self.function, paused)?;
        card.kick_guc(self.function.bit());
        Ok(())
    }

    /// Returns whether a pause is complete: none of the VF's contexts is on an engine.
    pub fn is_paused(&self) -> bool {
        self.guc().is_some_and(|guc| guc.state == State::Paused { notified: true })
    }

    fn ggtt_state(&self) -> GgttState<'c> {
        let indices = self.guc().map_or(0..0, |guc| ggtt::indices(&guc.config.ggtt()));
        GgttState { memory: &self.card.gt.memory, function: self.function, indices }
    }

    /// Saves a VF, which must be paused or stopped. Its state stays as it is. Waits for the end of steps that use the VF's
    /// memory.
    pub fn save(&mut self) -> Result<SavedFunction, SaveError> {
        let card = self.card;
        let function = self.function;
        if card.gt.memory.is_emptying(function) {
            return Err(SaveError::Running);
        }
        if !function.is_vf() {
            return Err(SaveError::NotVirtual);
        }
        let mut units = self.guc.unit(&card.gt, &card.engines, function).ok_or(SaveError::NoFirmware)?;
        units.save(SaveScope::WithMemory)
    }

    /// Restores a VF, which must be paused or stopped and provisioned like the saved one; its GGTT range, contexts and
    /// doorbells may begin elsewhere. Does not access the VF's memory: its contents may follow until it is resumed. Waits
    /// for the end of steps that use it.
    ///
    /// If its GGTT range begins elsewhere, its driver must adapt addresses after it is resumed, which drivers for an interface
    /// older than 1.27 cannot: their state is refused. If the range is the same, the driver need not know that it was moved.
    ///
    /// Changes nothing if the VF is not paused or stopped. After any other error, the VF is empty: nothing that a driver had set up
    /// remains, registers have their reset values, and GGTT entries no addresses.
    pub fn restore(&mut self, saved: &SavedFunction) -> Result<(), RestoreError> {
        self.restore_read(Ok(saved))
    }

    /// Restores a VF from what was read: an error of reading is one of restoring.
    pub(super) fn restore_read(&mut self, saved: Result<&SavedFunction, RestoreError>) -> Result<(), RestoreError> {
        self.stopped_units()?.restore(saved, SaveScope::WithMemory)
    }

    /// Leaves a VF as after [`FunctionState::restore`] has failed. Changes nothing if it is not paused or stopped.
    pub(super) fn empty(&mut self) -> Result<(), RestoreError> {
        self.stopped_units()?.empty(SaveScope::WithMemory)
    }

    fn stopped_units(&mut self) -> Result<VfUnits<'_>, RestoreError> {
        let card = self.card;
        let function = self.function;
        if !function.is_vf() {
            return Err(RestoreError::NotVirtual);
        }
        // While the memory of a reset is being emptied, what is written to the VF's memory may be lost.
        if card.gt.memory.is_emptying(function) {
            return Err(RestoreError::Running);
        }
        self.guc.unit(&card.gt, &card.engines, function).ok_or(RestoreError::NoFirmware)
    }

    /// Returns whether a PF driver provisions the VFs, not the card itself.
    pub fn has_pf_driver(&self) -> bool {
        !self.guc.has_builtin_pf()
    }

    /// Resets the function: its work is stopped, and everything that its driver has set up is dropped (V13-116..125).
    /// Every FLR is this operation: of a VF by its configuration space, of all VFs by clearing VF Enable (V13-127), and
    /// of the PF, which resets the whole card. What a VF's own VF_RESET and the PF's FLR_START request of the GuC is a
    /// part of it (`GucState::forget`).
    ///
    /// A VF whose PF driver handles the reset stays in reset until that driver has finished. The caller must then
    /// release the VF's memory.
    pub(super) fn reset(mut self) -> Option<Emptying> {
        let card = self.card;
        let vf = self.function;
        if !vf.is_vf() {
            card.reset_all(self.guc);
            return None;
        }
        let reset = self.guc.function_reset(&card.gt, &card.engines, vf);
        // With the GuC's lock, because a thread of an earlier reset may let the VF be served again as soon as the lock
        // is free: a mailbox request from before the reset must not be executed.
        if let Some(vf) = card.gt.vf(vf) {
            vf.reset();
        }
        drop(self);
        card.kick_guc(vf.bit());
        // No lock is held, so that clearing a large memory does not block the other functions.
        match reset {
            FunctionReset::Unannounced | FunctionReset::Led => {}
            FunctionReset::Unled => {
                card.gt.memory.clear_vf(vf);
                card.gt.memory.free_unused(vf);
            }
        }
        if reset == FunctionReset::Unled {
            card.guc_for(vf).finish_reset(&card.gt, &card.engines, vf);
            card.kick_guc(vf.bit());
        }
        (reset == FunctionReset::Unannounced).then_some(Emptying(vf))
    }
}
