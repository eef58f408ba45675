// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of operations that an engine did not execute or executed only in part. The report contains all of them.

use std::collections::BTreeMap;

use super::skipped::SkippedCounts;
use super::walkers::WalkerTotals;
use crate::blitter::BlitError;
use crate::command::CommandSet;
use crate::compute::WalkerError;
use crate::topology::EngineClass;

/// Counters of one engine since the card was created.
pub struct Counters {
    /// Skipped commands of units that are not modelled.
    pub skipped: SkippedCounts,
    /// Copy engine commands that were rejected, by name, with the last reason.
    pub refused_blits: BTreeMap<&'static str, (u64, Option<BlitError>)>,
    /// Rejected walkers, with the last reason.
    pub refused_walkers: (u64, Option<WalkerError>),
    /// Totals of the walkers.
    pub walkers: WalkerTotals,
    /// Commands that engines of this class do not implement.
    pub illegal: u64,
    /// Commands or parts of commands denied to non-privileged batches (V8-170).
    pub privilege_violations: u64,
    /// Commands or parts of commands in a VF's ring that are reserved for the PF (V13-048..076).
    pub virtual_refusals: u64,
    /// Watchdog expirations in a wait of a VF's ring. Each resets the engine (contract C.6).
    pub watchdog_resets: u64,
    /// Register accesses denied to a batch or a VF, or outside the register space.
    pub register_refusals: u64,
    /// Dropped register writes that would trigger an action in another unit, such as a notification of the GuC or a
    /// reset.
    pub dropped_requests: u64,
    /// Depth counts requested by PIPE_CONTROL, which are written as 0.
    pub depth_counts: u64,
    /// Ignored loads of the submission queue while execlists are disabled in the engine's mode register (V8-008).
    pub refused_loads: u64,
    /// Context switches that could not be reported in the status page (V8-057).
    pub lost_reports: u64,
    /// 16-byte atomics executed as two accesses of eight bytes.
    pub split_atomics: u64,
    /// 4-byte and 8-byte atomics executed as a read and a write, on guest memory that is accessed by messages.
    pub remote_atomics: u64,
}

impl Counters {
    /// Zeros, for an engine of `class` with these commands.
    pub fn new(commands: &'static CommandSet, class: EngineClass) -> Self {
        Counters {
            skipped: SkippedCounts::new(commands, class),
            refused_blits: BTreeMap::new(),
            refused_walkers: (0, None),
            walkers: WalkerTotals::default(),
            illegal: 0,
            privilege_violations: 0,
            virtual_refusals: 0,
            watchdog_resets: 0,
            register_refusals: 0,
            dropped_requests: 0,
            depth_counts: 0,
            refused_loads: 0,
            lost_reports: 0,
            split_atomics: 0,
            remote_atomics: 0,
        }
    }

    /// Returns the nonzero counters by descriptive name.
    pub fn nonzero(&self) -> BTreeMap<String, u64> {
        let skipped = self.skipped.by_name().into_iter().map(|(name, count)| (format!("{name}: state only"), count));
        let refused = self.refused_blits.iter().map(|(name, (count, error))| {
            let reason = error.as_ref().map_or(String::new(), |error| format!(": {error}"));
            (format!("{name}: refused{reason}"), *count)
        });
        let (count, reason) = &self.refused_walkers;
        let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let walkers = [(format!("COMPUTE_WALKER: refused{reason}"), *count)];
        let remote_atomics = self.remote_atomics.saturating_add(self.walkers.executed.remote_atomics);
        let rest = [
            ("threads ended at instructions that cannot be executed", self.walkers.executed.faults),
            ("illegal instructions passed over by threads", self.walkers.executed.passed_over),
            ("illegal commands", self.illegal),
            ("commands without privilege", self.privilege_violations),
            ("commands that only the physical function gets", self.virtual_refusals),
            ("engine resets by a virtual function's watchdog", self.watchdog_resets),
            ("register accesses refused", self.register_refusals),
            ("orders to other units dropped", self.dropped_requests),
            ("depth counts without pipeline", self.depth_counts),
            ("queues not loaded, since GFX_MODE has execlists off", self.refused_loads),
            ("context switches without a status page", self.lost_reports),
            ("16-byte atomics in two halves", self.split_atomics),
            ("atomics as a read and a write, by messages", remote_atomics),
        ];
        let rest = rest.into_iter().map(|(name, count)| (name.to_owned(), count));
        skipped.chain(refused).chain(walkers).chain(rest).filter(|(_, count)| *count != 0).collect()
    }

    /// Counts a rejected copy engine command.
    pub(super) fn refuse_blit(&mut self, name: &'static str, error: BlitError) {
        let refused = self.refused_blits.entry(name).or_default();
        *refused = (refused.0.saturating_add(1), Some(error));
    }

    /// Counts a rejected walker.
    pub(super) fn refuse_walker(&mut self, error: WalkerError) {
        self.refused_walkers = (self.refused_walkers.0.saturating_add(1), Some(error));
    }
}
