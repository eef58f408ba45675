// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the card.

use std::sync::RwLockWriteGuard;

use arctic_base::priority_mutex::PriorityGuard;
use arctic_base::state::{RestoreError, Versioned};
use serde::{Deserialize, Serialize};

use super::Card;
use super::work::EngineSlot;
use crate::engine::Engine;
use crate::engine::saved::SavedEngine;
use crate::generation::EngineRef;
use crate::gt::saved::SavedGt;
use crate::interrupts::saved::SavedInterrupts;
use crate::memory::saved::SavedGgtt;
use crate::sync::IgnorePoison;

/// Saved state of the card: all units with their versions. Not part of it are guest memory, configuration space and
/// counts for monitoring. Deserialising it fails if it contains a unit that this version does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedCard {
    /// Registers, power, time.
    gt: Versioned<SavedGt>,
    /// GGTT entries.
    ggtt: Versioned<SavedGgtt>,
    /// Interrupt registers.
    interrupts: Versioned<SavedInterrupts>,
    /// The command streamers, by index.
    engines: Vec<Versioned<SavedEngine>>,
}

impl EngineSlot {
    /// The engine's state. Where it is restored, its next step is due at once.
    fn save(&self, held: &Engine) -> Versioned<SavedEngine> {
        let EngineSlot { id: _, engine: _, wakeup: _ } = self;
        Versioned::new(held.save())
    }
}

impl Card {
    /// Waits for the end of steps and accesses, and prevents others. What is left by rings that were disabled is dropped.
    fn hold(&self) -> (Vec<(&EngineSlot, PriorityGuard<'_, Engine>)>, RwLockWriteGuard<'_, ()>) {
        let mut engines: Vec<_> = self.engines.iter().map(|slot| (slot, slot.engine.hold())).collect();
        let accesses = self.accesses.write().ignore_poison();
        engines.iter_mut().for_each(|(_, engine)| engine.take_restart(&self.gt));
        (engines, accesses)
    }

    /// Saves the card between two steps of its engines and two accesses to its BARs, of which it waits for the end. Its
    /// state stays as it is.
    pub fn save(&self) -> SavedCard {
        let Card { gt, accesses: _, engines: _, changes: _ } = self;
        let (held, _accesses) = self.hold();
        SavedCard {
            gt: Versioned::new(gt.save()),
            ggtt: Versioned::new(gt.ggtt.save()),
            interrupts: Versioned::new(gt.interrupts.save()),
            engines: held.iter().map(|(slot, engine)| slot.save(engine)).collect(),
        }
    }

    /// Restores a card that has the generation, the fuses and the size of the GGTT of the saved one. Its commands continue
    /// at once: guest memory must be there before. No MSI is sent for interrupts that were pending when the card was saved;
    /// timestamps go on from the time of the save.
    ///
    /// An error changes nothing.
    pub fn restore(&self, saved: &SavedCard) -> Result<(), RestoreError> {
        let SavedCard { gt: saved_gt, ggtt, interrupts, engines } = saved;
        let gt = &self.gt;
        let (mut held, accesses) = self.hold();
        gt.check(saved_gt.state())?;
        gt.ggtt.check(ggtt.state())?;
        gt.interrupts.check(interrupts.state(), gt.engine_states())?;
        if engines.len() != held.len() {
            return Err(RestoreError::invalid::<SavedEngine>("the number of engines"));
        }
        let restored = held.iter().zip(engines).map(|((slot, _), saved)| {
            Engine::restored(EngineRef { generation: gt.generation, id: slot.id }, saved.state())
        });
        let restored = restored.collect::<Result<Vec<_>, _>>()?;
        gt.restore(saved_gt.state());
        gt.ggtt.restore(ggtt.state());
        gt.interrupts.restore(interrupts.state());
        for ((slot, engine), restored) in held.iter_mut().zip(restored) {
            engine.replace(restored);
            gt.take_restart(slot.id);
            gt.set_in_batch(slot.id, engine.in_batch());
            gt.set_in_command(slot.id, engine.in_command());
            slot.poll_now();
        }
        drop(accesses);
        drop(held);
        gt.wakeups.post();
        Ok(())
    }
}
