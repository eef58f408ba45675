// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the card.

use std::sync::RwLockWriteGuard;

use arctic_base::priority_mutex::PriorityGuard;
use arctic_base::state::format::Kind;
use arctic_base::state::{DeviceIdentity, Document, Record, RestoreError, SavedState, Tag, Writer};
use zerocopy::little_endian::U16;

use super::Card;
use super::work::EngineSlot;
use crate::engine::Engine;
use crate::engine::saved::{SavedEngine, SavedEngines};
use crate::generation::EngineRef;
use crate::gt::saved::SavedGt;
use crate::interrupts::saved::SavedInterrupts;
use crate::memory::saved::SavedGgtt;
use crate::sync::IgnorePoison;

/// Saved state of the card. Not part of it are guest memory, configuration space and counts for monitoring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedCard {
    /// The card that was saved.
    identity: DeviceIdentity,
    /// Registers, power, time.
    gt: SavedGt,
    /// GGTT entries.
    ggtt: SavedGgtt,
    /// Interrupt registers.
    interrupts: SavedInterrupts,
    /// The command streamers.
    engines: SavedEngines,
}

arctic_base::record! {
    /// The card.
    struct IdentityRecord[b"IDEN", 4] {
        device: U16,
        revision: u8,
        reserved: u8,
    }
}

/// Sections of a saved card.
const TAGS: [&[Tag]; 5] =
    [&[IdentityRecord::TAG], SavedGt::TAGS, SavedGgtt::TAGS, SavedInterrupts::TAGS, SavedEngines::TAGS];

impl SavedCard {
    /// Adds the sections to a document.
    pub fn write(&self, to: &mut Writer) {
        let SavedCard { identity: DeviceIdentity { device, revision }, gt, ggtt, interrupts, engines } = self;
        to.record(IdentityRecord { device: (*device).into(), revision: *revision, reserved: 0 });
        gt.write(to);
        ggtt.write(to);
        interrupts.write(to);
        engines.write(to);
    }

    /// Reads the state of a document, which may also have the sections `further` of the caller.
    pub fn read(from: &Document<'_>, further: &[Tag]) -> Result<SavedCard, RestoreError> {
        from.check_known(TAGS.into_iter().flatten().chain(further))?;
        let IdentityRecord { device, revision, reserved: _ } = from.record()?;
        Ok(SavedCard {
            identity: DeviceIdentity { device: device.get(), revision },
            gt: SavedGt::read(from)?,
            ggtt: SavedGgtt::read(from)?,
            interrupts: SavedInterrupts::read(from)?,
            engines: SavedEngines::read(from)?,
        })
    }

    /// The state as a document of its own.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut document = Writer::new(Kind::Gen6Card);
        self.write(&mut document);
        document.finish()
    }

    /// The state of a document of its own.
    pub fn from_bytes(bytes: &[u8]) -> Result<SavedCard, RestoreError> {
        SavedCard::read(&Document::read(bytes, Kind::Gen6Card)?, &[])
    }
}

impl EngineSlot {
    /// The engine's state. Where it is restored, its next step is due at once.
    fn save(&self, held: &Engine) -> SavedEngine {
        let EngineSlot { id: _, engine: _, wakeup: _ } = self;
        held.save()
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
        let Card { gt, identity, paused: _, accesses: _, engines: _, changes: _, panics: _ } = self;
        let (held, _accesses) = self.hold();
        SavedCard {
            identity: *identity,
            gt: gt.save(),
            ggtt: gt.ggtt.save(),
            interrupts: gt.interrupts.save(),
            engines: SavedEngines(held.iter().map(|(slot, engine)| slot.save(engine)).collect()),
        }
    }

    /// Restores a card that has the generation, the fuses and the size of the GGTT of the saved one. Its commands continue
    /// at once: guest memory must be there before. No MSI is sent for interrupts that were pending when the card was saved;
    /// timestamps go on from the time of the save.
    ///
    /// An error changes nothing.
    pub fn restore(&self, saved: &SavedCard) -> Result<(), RestoreError> {
        let SavedCard { identity, gt: saved_gt, ggtt, interrupts, engines: SavedEngines(engines) } = saved;
        let gt = &self.gt;
        if *identity != self.identity {
            return Err(RestoreError::Device { saved: *identity, here: self.identity });
        }
        let (mut held, accesses) = self.hold();
        gt.check(saved_gt)?;
        gt.ggtt.check(ggtt)?;
        gt.interrupts.check(interrupts, gt.engine_states())?;
        if engines.len() != held.len() {
            return Err(RestoreError::invalid::<SavedEngines>("the number of engines"));
        }
        let restored = held
            .iter()
            .zip(engines)
            .map(|((slot, _), saved)| Engine::restored(EngineRef { generation: gt.generation, id: slot.id }, saved));
        let restored = restored.collect::<Result<Vec<_>, _>>()?;
        gt.restore(saved_gt);
        gt.ggtt.restore(ggtt);
        gt.interrupts.restore(interrupts);
        for ((slot, engine), restored) in held.iter_mut().zip(restored) {
            engine.replace(restored);
            gt.take_restart(slot.id);
            gt.set_in_batch(slot.id, engine.in_batch());
            gt.set_in_command(slot.id, engine.in_command());
            gt.update_busy(slot.id);
            slot.poll_now();
        }
        drop(accesses);
        drop(held);
        gt.wakeups.post();
        Ok(())
    }
}
