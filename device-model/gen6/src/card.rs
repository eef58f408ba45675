// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card: accesses to its BARs, resets, and its description as a PCI function.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod aperture;
mod gpu;
mod inspect;
mod model;
mod register_map;
mod save_restore;
pub mod saved;
#[cfg(test)]
mod tests;
mod work;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, RwLock};

use arctic_base::gpu::Host;
use arctic_base::registers::{read_dwords, write_dwords};
use arctic_base::state::DeviceIdentity;
use arctic_base::wakeup::MemoryGeneration;

use self::work::EngineSlot;
pub use self::work::STEP_BUDGET;
use crate::gt::{Gt, SideEffect};
use crate::profile::IntegratedProfile;
use crate::registers::REGISTER_BYTES;
use crate::sync::IgnorePoison;

/// Index of the BAR with registers and GGTT entries, GTTMMADR (G67-005).
pub const GTTMMADR_BAR: u8 = 0;
/// Index of the BAR with the aperture, GMADR (G67-005).
pub const GMADR_BAR: u8 = 2;
/// Index of the I/O BAR (G67-005).
pub const IO_BAR: u8 = 4;
/// Size of GTTMMADR in bytes: registers in the lower half, GGTT entries in the upper half (G67-005).
pub const GTTMMADR_BYTES: u64 = 4 << 20;

/// The card.
pub struct Card {
    gt: Gt,
    /// What must be equal of a card where saved state is restored.
    identity: DeviceIdentity,
    /// No steps are executed.
    paused: AtomicBool,
    /// Shared by CPU accesses to guest memory, exclusive while the VMM waits for their end.
    accesses: RwLock<()>,
    /// The engines, by [`EngineId::index`](crate::topology::EngineId::index).
    engines: Box<[EngineSlot]>,
    /// Counts the steps after which memory or registers may have changed, for which other engines wait.
    changes: MemoryGeneration,
    /// Number of steps that panicked.
    panics: AtomicU64,
}

impl Card {
    /// Creates the card that `profile` describes, powered on.
    pub fn power_on(profile: &IntegratedProfile, host: Host) -> Arc<Self> {
        let engines = profile.generation.engines().map(|(engine, _)| EngineSlot::new(engine)).collect();
        let changes = MemoryGeneration::new();
        let identity = DeviceIdentity { device: profile.device, revision: profile.revision };
        let paused = AtomicBool::new(false);
        let (gt, accesses, panics) = (Gt::new(profile, host), RwLock::new(()), AtomicU64::new(0));
        Arc::new(Card { gt, identity, paused, accesses, engines, changes, panics })
    }

    /// State that the units share.
    pub fn gt(&self) -> &Gt {
        &self.gt
    }

    /// Reads GTTMMADR at `offset`, in any width.
    fn read_gttmmadr(&self, offset: u64, data: &mut [u8]) {
        if let Some(at) = offset.checked_sub(REGISTER_BYTES.into()) {
            return self.gt.ggtt.read(at, data);
        }
        read_dwords(offset, data, |at| self.gt.mmio_read(register(at)));
    }

    /// Writes GTTMMADR at `offset`, in any width. All effects of the write but the execution of commands are complete on
    /// return.
    fn write_gttmmadr(&self, offset: u64, data: &[u8]) {
        if let Some(at) = offset.checked_sub(REGISTER_BYTES.into()) {
            return self.gt.ggtt.write(at, data);
        }
        write_dwords(offset, data, |at, value, lanes| {
            // A write may change the status page of an engine.
            let access = self.accesses.read().ignore_poison();
            let effect = self.gt.write(register(at), value, lanes);
            drop(access);
            match effect {
                Some(SideEffect::Wake(engine)) => self.wake(engine),
                Some(SideEffect::Reset(domains)) => self.reset_domains(domains),
                Some(SideEffect::EndAccesses) => self.end_accesses(),
                Some(SideEffect::EndStep(engine)) => self.pass_step_boundary(|id| id == engine),
                Some(SideEffect::EndAll) => {
                    self.pass_step_boundary(|_| true);
                    self.end_accesses();
                }
                None => {}
            }
        });
    }

    /// Waits for the end of CPU accesses to guest memory in progress.
    fn end_accesses(&self) {
        drop(self.accesses.write().ignore_poison());
    }
}

/// The register at `offset`; beyond the register space, one that does not exist.
fn register(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(!3)
}
