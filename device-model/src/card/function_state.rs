// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! All state of one function, and its reset.

use std::sync::MutexGuard;

use super::Card;
use crate::doorbell::Page;
use crate::gt::virtual_function::VirtualFunction;
use crate::guc::context::GucContextId;
use crate::guc::functions::GucFunction;
use crate::guc::{FunctionReset, Guc};
use crate::host::Function;
use crate::interrupts::Interrupts;
use crate::memory::FunctionMemory;
use crate::memory::ggtt::{GGTT_PAGE, GgttEntry};

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
        FunctionState { card: self, function, guc: self.guc_for(function) }
    }
}

impl<'c> FunctionState<'c> {
    /// The copies that a VF has of the registers with one value per function; `None` for the PF, whose registers are those
    /// of the card.
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

    /// The GuC's state of the function: contexts, queues, quotas, share of the engines. `None` if no firmware is running.
    pub fn guc(&self) -> Option<&GucFunction> {
        self.guc.function(self.function)
    }

    /// The function's local memory.
    pub fn memory(&self) -> &'c FunctionMemory {
        self.card.gt.memory.function(self.function)
    }

    /// The entries of the function's GGTT range, as its engines use them, with their numbers; none without firmware.
    pub fn ggtt(&self) -> impl Iterator<Item = (u64, GgttEntry)> {
        let range = self.guc().map_or(0..0, |guc| guc.config.ggtt());
        let ggtt = self.card.gt.memory.ggtt();
        (range.start / GGTT_PAGE..range.end / GGTT_PAGE).map(|index| (index, ggtt.effective(index)))
    }

    /// The frames of the function's local memory in order: the card's address of each, or `None` where none is assigned.
    pub fn frames(&self) -> impl Iterator<Item = Option<u64>> {
        self.card.gt.memory.frames_of(self.function)
    }

    /// Resets the function: its work is stopped, and everything that its driver has set up is dropped (V13-116..125).
    /// Every FLR is this operation: of a VF by its configuration space, of all VFs by clearing VF Enable (V13-127), and of
    /// the PF, which resets the whole card. What a VF's own VF_RESET and the PF's FLR_START request of the GuC is a part of
    /// it (`GucState::forget`).
    ///
    /// A VF whose PF driver handles the reset stays in reset until that driver has finished. The caller must then release
    /// the VF's memory.
    pub(super) fn reset(mut self) -> Option<Emptying> {
        let (card, vf) = (self.card, self.function);
        if !vf.is_vf() {
            card.reset_all(self.guc);
            return None;
        }
        let reset = self.guc.function_reset(&card.gt, &card.engines, vf);
        drop(self);
        card.kick_guc(vf.bit());
        // No lock is held, so that clearing a large memory does not block the other functions.
        match reset {
            FunctionReset::Unannounced => {}
            FunctionReset::Led => card.gt.memory.free_unused(vf),
            FunctionReset::Unled => {
                card.gt.memory.clear_vf(vf);
                card.gt.memory.free_unused(vf);
                card.guc_for(vf).finish_reset(&card.gt, &card.engines, vf);
            }
        }
        if let Some(vf) = card.gt.vf(vf) {
            vf.reset();
        }
        (reset == FunctionReset::Unannounced).then_some(Emptying(vf))
    }
}
