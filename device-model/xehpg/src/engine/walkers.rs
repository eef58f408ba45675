// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The walker that an engine executes, totals of an engine's walkers, and log lines about kernels that cannot go on.

use crate::compute::{KernelPlace, Unexecuted, WalkerCounts, WalkerRun, WalkerWords};
use crate::gt::Gt;
use crate::host::Function;
use crate::memory::Fault;
use crate::topology::EngineId;
use crate::trace::EventKind;

/// A walker that an engine executes.
pub struct PendingWalker {
    pub(super) run: WalkerRun,
    /// All groups have ended; the post-sync operation is left.
    pub(super) done: bool,
}

impl PendingWalker {
    /// Trace event of a walker that has ended, or whose context leaves the engine.
    pub(super) fn event(&self) -> EventKind {
        let counts = self.run.counts();
        EventKind::Walker {
            kernel: self.run.walker().kernel_address(),
            groups: counts.groups,
            instructions: counts.instructions,
            faults: counts.faults,
            outside: counts.outside,
            at: self.run.place().map(|place| place.to_string()),
        }
    }

    /// Where a thread of the walker is, for the log.
    pub(super) fn place(&self) -> Option<KernelPlace> {
        self.run.place()
    }

    /// The command that resumes the walker.
    pub(super) fn resume_words(&self, ticket: u64) -> WalkerWords {
        self.run.resume_words(ticket)
    }
}

/// Totals of the walkers of one engine since the card was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkerTotals {
    /// Walkers that have ended.
    pub walkers: u64,
    /// What they and those in progress have executed.
    pub executed: WalkerCounts,
}

impl WalkerTotals {
    /// Adds what a walker has executed.
    pub(super) fn add(&mut self, counts: WalkerCounts) {
        self.executed = self.executed.plus(counts);
    }
}

/// Logs an instruction that a thread of a function's kernel has not executed.
#[cold]
pub(super) fn warn_unexecuted(gt: &Gt, function: Function, engine: EngineId, unexecuted: &Unexecuted) {
    if gt.kernels(function).may_warn() {
        let Unexecuted { place, ended } = unexecuted;
        let engine = gt.engine(engine).name;
        let function = function.number();
        match ended {
            Some(reason) => log::warn!("function {function}, {engine}: a thread ends: {reason}: {place}"),
            None => log::warn!("function {function}, {engine}: a thread passes over an illegal instruction: {place}"),
        }
    }
}

/// Logs that an engine is reset while it executes a walker.
#[cold]
pub(super) fn warn_reset(gt: &Gt, function: Function, engine: EngineId, place: Option<&KernelPlace>) {
    if let Some(place) = place
        && gt.kernels(function).may_warn()
    {
        let engine = gt.engine(engine).name;
        log::warn!("function {}, {engine}: the engine is reset during {place}", function.number());
    }
}

/// Logs that an access of a kernel has failed.
#[cold]
pub(super) fn warn_fault(gt: &Gt, function: Function, engine: EngineId, fault: &Fault, place: Option<&KernelPlace>) {
    if gt.kernels(function).may_warn() {
        let engine = gt.engine(engine).name;
        let of = place.map_or_else(|| "the code of a kernel".to_owned(), ToString::to_string);
        log::warn!(
            "function {}, {engine}: {:?} of {:#x} fails, {:?}: {of}",
            function.number(),
            fault.access,
            fault.address,
            fault.reason
        );
    }
}
