// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The walker that an engine executes, totals of an engine's walkers, and log lines about kernels that cannot go on.

use crate::compute::{EndedThread, KernelPlace, WalkerCounts, WalkerRun, WalkerWords};
use crate::host::Function;
use crate::memory::Fault;
use crate::trace::EventKind;

/// Maximum number of log lines of one engine about kernels.
const MOST_WARNINGS: u64 = 64;

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
    warnings: u64,
}

impl WalkerTotals {
    /// Adds what a walker has executed.
    pub(super) fn add(&mut self, counts: WalkerCounts) {
        self.executed = self.executed.plus(counts);
    }

    /// Returns whether another line may be logged.
    fn may_warn(&mut self) -> bool {
        self.warnings = self.warnings.saturating_add(1);
        self.warnings <= MOST_WARNINGS
    }

    /// Logs that a thread has ended at an instruction that cannot be executed.
    #[cold]
    pub(super) fn warn_ended(&mut self, function: Function, engine: &str, ended: &EndedThread) {
        if self.may_warn() {
            let EndedThread { place, reason } = ended;
            log::warn!("function {}, {engine}: a thread ends: {reason}: {place}", function.number());
        }
    }

    /// Logs that an engine is reset while it executes a walker.
    #[cold]
    pub(super) fn warn_reset(&mut self, function: Function, engine: &str, place: Option<&KernelPlace>) {
        if let Some(place) = place
            && self.may_warn()
        {
            log::warn!("function {}, {engine}: the engine is reset during {place}", function.number());
        }
    }

    /// Logs that an access of a kernel has failed.
    #[cold]
    pub(super) fn warn_fault(&mut self, function: Function, engine: &str, fault: &Fault, place: Option<&KernelPlace>) {
        if self.may_warn() {
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
}
