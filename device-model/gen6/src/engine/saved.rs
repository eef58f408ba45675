// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a command streamer: its position, its wait, and the state of the copy engine's commands. A blit that is
//! not complete is saved as its command, from which it is created again, and its progress.

mod wire;

use arctic_base::state::RestoreError;
use arctic_sriov::number::size;

use super::blit::{LONGEST, Layouts, PendingBlit};
use super::{Batch, Engine};
use crate::blitter::Setup;
use crate::command::Command;
use crate::command::mi::fields::BATCH_ADDRESS;
use crate::generation::EngineRef;
use crate::memory::{Directory, Space};

/// Saved state of a command streamer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEngine {
    batch: Option<Batch>,
    waiting: bool,
    arbitration: bool,
    blit_setup: Setup,
    pending: Option<SavedBlit>,
}

/// A blit that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedBlit {
    /// Its command.
    dwords: Vec<u32>,
    layouts: Layouts,
    /// The page directory of its surfaces: first entry in the GGTT's table, and PP_DCLV; `None` for the GGTT.
    directory: Option<(u32, u32)>,
    done: u64,
}

/// Saved state of all command streamers, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedEngines(pub Vec<SavedEngine>);

impl Engine {
    /// Returns the state of the streamer, between two steps. Its counts for monitoring are not part of it.
    pub fn save(&self) -> SavedEngine {
        // A step begins with a new budget. A TLB may lose its translations at any time. Where the state is restored, accesses
        // have another client.
        let Engine { id: _, batch, waiting, arbitration, blit_setup, pending, blit_budget: _, tlb: _, .. } = self;
        let Engine { retry_time: _, skipped: _, .. } = self;
        SavedEngine {
            batch: *batch,
            waiting: *waiting,
            arbitration: *arbitration,
            blit_setup: *blit_setup,
            pending: pending.as_ref().map(PendingBlit::save),
        }
    }

    /// Returns a streamer for `engine` in the saved state.
    pub fn restored(engine: EngineRef, saved: &SavedEngine) -> Result<Engine, RestoreError> {
        let SavedEngine { batch, waiting, arbitration, blit_setup, pending } = saved;
        let invalid = RestoreError::invalid::<SavedEngines>;
        if batch.is_some_and(|batch| (batch.start | batch.next) & !BATCH_ADDRESS.mask() != 0) {
            return Err(invalid("an address of a batch"));
        }
        let pending = match pending {
            Some(pending) => Some(pending.restored(engine, *blit_setup).ok_or(invalid("a blit"))?),
            None => None,
        };
        Ok(Engine {
            batch: *batch,
            waiting: *waiting,
            arbitration: *arbitration,
            blit_setup: *blit_setup,
            pending,
            ..Engine::new(engine.id)
        })
    }

    /// Continues as `restored`; the counts for monitoring remain.
    pub fn replace(&mut self, restored: Engine) {
        *self = Engine { skipped: std::mem::take(&mut self.skipped), ..restored };
    }
}

impl PendingBlit {
    fn save(&self) -> SavedBlit {
        let PendingBlit { blit, space, length, dwords, layouts } = self;
        let directory = match space {
            Space::Ggtt => None,
            Space::Ppgtt(Directory { first, loaded }) => Some((*first, *loaded)),
        };
        let dwords = dwords.get(..size((*length).into())).unwrap_or(dwords).to_vec();
        SavedBlit { dwords, layouts: *layouts, directory, done: blit.done() }
    }
}

impl SavedBlit {
    /// The blit that the command has with the state that setup commands have left; `None` if it has none, or is not as
    /// long as the progress says.
    fn restored(&self, engine: EngineRef, mut setup: Setup) -> Option<PendingBlit> {
        let header = *self.dwords.first()?;
        let Command::Blit(row) = engine.generation.commands.decode(header, engine.info().class)? else { return None };
        let length = row.length.dwords(header);
        let mut dwords = [0; LONGEST];
        dwords.get_mut(..self.dwords.len())?.copy_from_slice(&self.dwords);
        if size(length.into()) != self.dwords.len() {
            return None;
        }
        let blit = setup.execute(row, &self.dwords, self.layouts.tiles()).ok()??;
        let space = match self.directory {
            None => Space::Ggtt,
            Some((first, loaded)) => {
                let directory = Directory::new(first >> 4 << 16, loaded);
                (directory.first == first).then_some(Space::Ppgtt(directory))?
            }
        };
        Some(PendingBlit { blit: blit.resumed(self.done)?, space, length, dwords, layouts: self.layouts })
    }
}
