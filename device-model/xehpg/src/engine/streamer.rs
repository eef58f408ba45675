// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The command streamer during a step: what its parts use and what all commands look at.

use super::counters::Counters;
use super::running::Running;
use super::skipped::SkippedCommand;
use super::stream::ParserState;
use super::{Submitter, reg};
use crate::command::Requester;
use crate::compute::ComputeUnit;
use crate::gt::Gt;
use crate::memory::Gam;
use crate::oa::context::ContextCounters;
use crate::registers::EngineRegisters;
use crate::registers::engine_fields::{ContextControl, GfxMode};
use crate::topology::{EngineClass, EngineId};
use crate::trace::EventKind;

/// Maximum host time of a step in nanoseconds, enforced when the clock is checked.
pub(super) const STEP_TIME: u64 = 500_000;

/// Action of the parser after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Continue with the next command.
    Next,
    /// Continue at another address. Prefetched commands are invalid.
    Jump,
    /// An iteration of a loop completed without progress.
    Idle,
    /// The command's condition is not met. It is retried later.
    Wait,
    /// The engine was reset and the context continues. The step ends.
    Recovered,
    /// A preemption request is pending at an arbitration point.
    Preempt,
    /// The command cannot be executed.
    Illegal,
    /// The model does not execute the command, and the context must not continue after it.
    Unmodelled,
}

/// How a pending operation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It is complete.
    Done,
    /// In the next step.
    More,
    /// In the next step, but only an external event can change that it makes no progress.
    Stalled,
    /// When the context is loaded again: it is to leave the engine, and can be saved.
    Leave,
}

/// One step of one engine.
pub(super) struct Streamer<'s> {
    pub gt: &'s Gt,
    /// Start of the step, in ns of the card's clock.
    pub started: u64,
    pub gam: Gam<'s>,
    pub id: EngineId,
    pub class: EngineClass,
    /// The engine's registers.
    pub registers: EngineRegisters<'s>,
    pub running: &'s mut Running,
    pub counters: &'s mut Counters,
    /// The engine's execution units.
    pub unit: &'s mut ComputeUnit,
    pub skipped: &'s mut Option<SkippedCommand>,
    /// The counters of OAR or OAC.
    pub observed: &'s mut ContextCounters,
}

impl Streamer<'_> {
    /// Records a trace event if tracing is enabled.
    #[inline]
    pub fn trace_event(&self, what: impl FnOnce(&ParserState) -> EventKind) {
        let event = || (self.gt.engine(self.id).name, what(&self.running.position));
        self.gt.trace.record_of_engine(self.running.load.function, event);
    }

    /// Returns the requester of the commands being executed.
    #[inline]
    pub fn requester(&self) -> Requester {
        let privileged = self.running.position.privileged() || self.unchecked();
        Requester::new(privileged, self.running.load.function.is_vf())
    }

    /// Returns whether privilege checks are disabled in GFX_MODE (Privilege Check Disable). Non-privileged batches then
    /// have the rights of the ring of their function (V8-170).
    #[inline]
    pub fn unchecked(&self) -> bool {
        self.registers.fields::<GfxMode>().privilege_check_disable()
    }

    /// Returns whether commands at the current position are predicated off by MI_SET_PREDICATE_RESULT. Workaround
    /// batches of a restore are not predicated.
    #[inline]
    pub fn predicated(&self) -> bool {
        self.registers.get(reg::SET_PREDICATE_RESULT) & 1 != 0 && self.running.position.workaround.is_none()
    }

    /// Returns whether a preemption request is honoured at an arbitration point (V8-076, V8-078).
    #[inline]
    pub(super) fn may_leave(&self) -> bool {
        self.running.preempt && self.running.arbitration && self.running.position.workaround.is_none()
    }

    /// Returns whether an unsatisfied wait switches to the next element of the queue (V8-081). Requires that
    /// arbitration is enabled and that the context does not inhibit synchronous switches. Contexts of the GuC remain
    /// loaded.
    pub(super) fn may_yield(&self) -> bool {
        self.running.load.submitter == Submitter::Execlist
            && !self.registers.fields::<ContextControl>().inhibit_synchronous_switch()
            && self.running.arbitration
            && self.running.position.workaround.is_none()
    }
}
