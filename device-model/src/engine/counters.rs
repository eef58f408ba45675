//! What an engine was asked for and did not do, or did only in part: for the report, never silent (rule 10).

use std::collections::BTreeMap;

use crate::blitter::BlitError;

/// Names that a report keeps apart.
const MOST_NAMES: usize = 256;

/// Counters of one engine since the card came up.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Commands of pipelines that the card does not have, by name: skipped by their length.
    pub state_only: BTreeMap<&'static str, u64>,
    /// Copy engine commands that were refused, by name, with the last reason.
    pub refused_blits: BTreeMap<&'static str, (u64, Option<BlitError>)>,
    /// Commands that no engine of this class has.
    pub illegal: u64,
    /// Commands turned into MI_NOOP because their batch has no privilege (V8-170).
    pub privilege_violations: u64,
    /// Commands of a virtual function's ring that only the physical function gets (V13-048..076).
    pub virtual_refusals: u64,
    /// Watchdogs that expired in a wait of a virtual function: the engine was reset under it (contract C.6).
    pub watchdog_resets: u64,
    /// Register accesses refused to a batch or a virtual function, or outside the register space.
    pub register_refusals: u64,
    /// Register writes whose order to another unit (ring the GuC, reset ...) a batch may not give.
    pub dropped_requests: u64,
    /// MI_REPORT_PERF_COUNT with a report of which only the header is modelled.
    pub perf_reports: u64,
    /// Depth counts asked of PIPE_CONTROL: written as 0.
    pub depth_counts: u64,
    /// Loads of a submission queue that the engine's mode register does not enable (V8-008).
    pub refused_loads: u64,
    /// Context switches that no status page could be told (V8-057).
    pub lost_reports: u64,
    /// 16-byte atomics done as two accesses of eight bytes.
    pub split_atomics: u64,
}

impl Counters {
    /// What is not zero, by a name for people: the commands that were skipped or refused, then the rest.
    pub fn told(&self) -> BTreeMap<String, u64> {
        let skipped = self.state_only.iter().map(|(name, count)| (format!("{name}: state only"), *count));
        let refused = self.refused_blits.iter().map(|(name, (count, error))| {
            let reason = error.as_ref().map_or(String::new(), |error| format!(": {error}"));
            (format!("{name}: refused{reason}"), *count)
        });
        let rest = [
            ("illegal commands", self.illegal),
            ("commands without privilege", self.privilege_violations),
            ("commands that only the physical function gets", self.virtual_refusals),
            ("engine resets by a virtual function's watchdog", self.watchdog_resets),
            ("register accesses refused", self.register_refusals),
            ("orders to other units dropped", self.dropped_requests),
            ("performance reports without counters", self.perf_reports),
            ("depth counts without pipeline", self.depth_counts),
            ("queues not loaded, since GFX_MODE has execlists off", self.refused_loads),
            ("context switches without a status page", self.lost_reports),
            ("16-byte atomics in two halves", self.split_atomics),
        ];
        let rest = rest.into_iter().map(|(name, count)| (name.to_owned(), count));
        skipped.chain(refused).chain(rest).filter(|(_, count)| *count != 0).collect()
    }

    /// Counts a command that is skipped.
    pub(super) fn state_only(&mut self, name: &'static str) {
        if self.state_only.len() < MOST_NAMES || self.state_only.contains_key(name) {
            *self.state_only.entry(name).or_default() += 1;
        }
    }

    /// Counts a command of the copy engine that is refused.
    pub(super) fn refuse_blit(&mut self, name: &'static str, error: BlitError) {
        let refused = self.refused_blits.entry(name).or_default();
        *refused = (refused.0 + 1, Some(error));
    }
}
