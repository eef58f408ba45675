// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engines: command streamers that fetch and execute the commands of a ring and of the batches that it starts.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod blit;
mod context;
mod control;
mod flush;
mod inspect;
mod predicate;
mod registers;
pub mod saved;
mod store;
mod streamer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::blit::{BLIT_BYTES, PendingBlit};
pub use self::registers::register_permission;
use crate::blitter::Setup;
use crate::gt::Gt;
use crate::memory::{Directory, Fault, Memory, Space, Tlb};
use crate::registers::engine::{EXPLICIT_INVALIDATION, PP_DCLV, PP_DIR_BASE, PPGTT_ENABLE};
use crate::topology::EngineId;
use arctic_base::command::{Field, Origin, Requester};
use arctic_base::host::RetryTime;

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Commands were executed; there may be more.
    Progress,
    /// There is nothing to execute.
    Idle,
    /// The current command waits.
    Waiting,
    /// The current command cannot be executed; the engine stops until it is reset.
    Halted,
}

/// A batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Batch {
    /// Address of its first command.
    start: u32,
    /// Address of the next command.
    next: u32,
    /// It is in the PPGTT, and not privileged (IVB-131).
    ppgtt: bool,
}

/// What the engine does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It continues behind the command.
    Next,
    /// It continues where the command has set its position.
    Jumped,
    /// It ends the step, and continues in the next one.
    Pause,
    /// It executes the command again later.
    Wait,
    /// It stops.
    Halt,
}

/// Commands that were skipped, by name and origin.
pub type Skipped = BTreeMap<(Origin, &'static str), u64>;

/// A command streamer.
#[derive(Debug)]
pub struct Engine {
    id: EngineId,
    /// The batch that is being executed; `None` for the ring.
    batch: Option<Batch>,
    /// The current command waits for an event.
    waiting: bool,
    /// MI_ARB_ON_OFF: MI_ARB_CHECK may take a new head.
    arbitration: bool,
    /// State of the copy engine's commands, which only a reset of the engine clears.
    blit_setup: Setup,
    /// The current command is a blit that is not complete.
    pending: Option<PendingBlit>,
    /// Cost of the blits that may still be executed in this step.
    blit_budget: usize,
    /// Cached translations, between the steps; none after a panic in a step. No reset of the engine changes them (IVB-037).
    tlb: Option<Tlb>,
    /// For how long steps in a row have ended with an unanswered access, by the card's time.
    retry_time: RetryTime,
    skipped: Skipped,
}

/// A command during its execution.
struct Current<'c> {
    header: u32,
    /// Length in dwords.
    length: u32,
    /// Address of the header, in the ring or a batch.
    address: u32,
    name: &'static str,
    gt: &'c Gt,
    memory: &'c Memory<'c>,
    fetch: Fetch,
}

/// Where commands are fetched.
#[derive(Clone, Copy)]
struct Fetch {
    space: Space,
    /// Start and size of the ring; for a batch 0 and no wrap.
    ring: Option<(u32, u32)>,
}

impl Fetch {
    /// Address of the dword `n` of the command at `address`; a command in the ring may wrap to its start.
    fn address(&self, address: u32, n: u32) -> u32 {
        let at = address.wrapping_add(n.wrapping_mul(4));
        match self.ring {
            Some((start, size)) if at.wrapping_sub(start) >= size => at.wrapping_sub(size),
            _ => at,
        }
    }
}

impl Current<'_> {
    /// Returns whether any bit of a field of the header is set.
    #[inline]
    fn has(&self, field: Field) -> bool {
        field.is_set_in(self.header)
    }

    /// Reads the dword `n` of the command.
    fn dword(&self, n: u32) -> Result<u32, Fault> {
        self.memory.read32(self.fetch.space, self.fetch.address(self.address, n))
    }
}

impl Engine {
    /// The engine in its reset state.
    pub fn new(id: EngineId) -> Self {
        Engine {
            id,
            batch: None,
            waiting: false,
            arbitration: true,
            blit_setup: Setup::default(),
            pending: None,
            blit_budget: BLIT_BYTES,
            tlb: Some(Tlb::default()),
            retry_time: RetryTime::default(),
            skipped: Skipped::new(),
        }
    }

    /// Commands that were skipped since power-on.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Returns whether a batch is being executed.
    pub fn in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Returns whether the current command has been executed in part.
    pub fn in_command(&self) -> bool {
        self.pending.is_some()
    }

    /// Ends the batch, the wait and the current command; the next step begins at the head of the ring.
    pub fn restart(&mut self) {
        self.batch = None;
        self.waiting = false;
        self.arbitration = true;
        self.pending = None;
    }

    /// Restarts the engine if its ring was disabled since the last call.
    pub fn take_restart(&mut self, gt: &Gt) {
        if gt.take_restart(self.id) {
            self.restart();
            gt.set_halted(self.id, false);
            gt.set_in_batch(self.id, false);
            gt.set_in_command(self.id, false);
        }
    }

    /// Resets the engine.
    pub fn reset(&mut self) {
        self.restart();
        self.blit_setup = Setup::default();
    }

    fn offset(&self, gt: &Gt, register: u32) -> u32 {
        gt.engine_offset(self.id, register)
    }

    fn value(&self, gt: &Gt, register: u32) -> u32 {
        gt.engine_value(self.id, register)
    }

    /// The commands are of the ring, or of a batch in the GGTT (IVB-131).
    fn privileged(&self) -> bool {
        self.batch.is_none_or(|batch| !batch.ppgtt)
    }

    /// The requester of the commands.
    fn requester(&self) -> Requester {
        Requester::new(self.privileged(), false)
    }

    /// The PPGTT; while it is disabled, the GGTT (IVB-031).
    fn ppgtt(&self, gt: &Gt) -> Space {
        match PPGTT_ENABLE.is_set(gt.registers.value(gt.generation.engine(self.id).translation_mode)) {
            true => Space::Ppgtt(Directory::new(self.value(gt, PP_DIR_BASE), self.value(gt, PP_DCLV))),
            false => Space::Ggtt,
        }
    }

    /// Invalidates the cached translations, for the rest of the command too.
    fn invalidate(&self, current: &Current<'_>) {
        current.gt.invalidate_translations(self.id);
        current.memory.follow(current.gt.invalidations(self.id));
    }

    /// The pipeline was flushed: unless GFX_MODE requires explicit invalidations, this is one (IVB-036, ILK-139).
    fn flushed(&self, current: &Current<'_>) {
        let mode = current.gt.registers.value(current.gt.generation.engine(self.id).translation_mode);
        if !EXPLICIT_INVALIDATION.is_set(mode) {
            self.invalidate(current);
        }
    }

    /// The space that a command's bit selects (IVB-130): it does not depend on the space of the batch.
    fn space(&self, gt: &Gt, ggtt: bool) -> Space {
        if ggtt { Space::Ggtt } else { self.ppgtt(gt) }
    }

    fn skip(&mut self, name: &'static str) {
        let count = self.skipped.entry((Origin::new(self.privileged()), name)).or_default();
        *count = count.saturating_add(1);
    }
}
