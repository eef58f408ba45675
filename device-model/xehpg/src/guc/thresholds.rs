// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Adverse events: VF activity that affects other functions, counted per sample period against thresholds that the PF
//! sets (contract D.10; xe: abi/guc_klvs_abi.h, xe_guc_klv_thresholds_set_types.h).
//!
//! A count that exceeds its threshold is reported to the PF once per period. Some thresholds count events; others count
//! the microseconds that the GuC spends on handling events. Handling time in the device model is meaningless to the
//! guest, so each event of the second kind counts as one microsecond.

use std::num::NonZero;

use crate::host::Function;

use super::functions::Functions;
use super::hxg::Outgoing;

/// G2H: a VF has exceeded a threshold.
const ADVERSE_EVENT: u16 = 0x5104;

/// Kind of adverse event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CAT error: an access without a valid translation.
    CatError,
    /// An engine was reset because of a context of the VF.
    EngineReset,
    /// A page fault. Never counted: DG2's driver does not enable recoverable page faults, which the model lacks.
    PageFault,
    /// A notification to the GuC (GUC_HOST_INTERRUPT) for the mailbox or CT buffer; in microseconds.
    HostToGuc,
    /// An interrupt raised by a context of the VF; in microseconds. The model stores the threshold and never counts the
    /// event.
    Interrupt,
    /// A doorbell ring that the GuC had to handle; in microseconds.
    Doorbell,
    /// Registration of a parallel context, which runs on several engines concurrently.
    MultiLrc,
}

/// Kinds and their threshold keys.
const KEYS: [(Kind, u16); 7] = [
    (Kind::CatError, 0x8a03),
    (Kind::EngineReset, 0x8a04),
    (Kind::PageFault, 0x8a05),
    (Kind::HostToGuc, 0x8a06),
    (Kind::Interrupt, 0x8a07),
    (Kind::Doorbell, 0x8a08),
    (Kind::MultiLrc, 0x8a0d),
];

/// Number of kinds.
pub const KINDS: usize = KEYS.len();

impl Kind {
    /// All kinds, in declaration order.
    #[allow(clippy::indexing_slicing, reason = "evaluated at compile time")]
    pub const ALL: [Kind; KINDS] = {
        let mut all = [Kind::CatError; KINDS];
        let mut n = 0;
        while n < KINDS {
            all[n] = KEYS[n].0;
            n += 1;
        }
        all
    };

    /// Returns the kind to which threshold key `key` of a VF's configuration applies.
    pub fn of_key(key: u16) -> Option<Kind> {
        KEYS.iter().find(|(_, known)| *known == key).map(|(kind, _)| *kind)
    }

    /// Returns the threshold key.
    #[allow(clippy::indexing_slicing, reason = "there is a key for each kind")]
    pub fn key(self) -> u16 {
        KEYS[self as usize].1
    }
}

/// The event counts of one VF in its current sample period.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch {
    counts: [u32; KINDS],
    /// Number of the sample period.
    period: u64,
}

impl Watch {
    /// Clears the counts of a VF that is reset.
    pub fn forget(&mut self) {
        self.counts = Default::default();
    }

    /// Counts an event at `now` (ns) in sample periods of `period` ns. Returns whether the count now exceeds
    /// `threshold` (0: never). Exactly one event per period does.
    #[allow(clippy::indexing_slicing, reason = "there is a count for each kind")]
    pub fn exceeds(&mut self, kind: Kind, threshold: u32, (now, period): (u64, NonZero<u64>)) -> bool {
        let period = now / period;
        if self.period != period {
            self.period = period;
            self.counts = Default::default();
        }
        let count = &mut self.counts[kind as usize];
        let before = *count;
        *count = count.saturating_add(1);
        // A saturated counter never crosses the threshold.
        threshold != 0 && before == threshold && *count > threshold
    }
}

/// The sample period of all VFs; `None` disables counting.
#[derive(Default)]
pub struct ThresholdMonitor(Option<NonZero<u64>>);

impl ThresholdMonitor {
    /// Sets the sample period (policy ADVERSE_SAMPLE_PERIOD, 0x8002), in milliseconds; 0 disables counting. Clears all
    /// counts.
    pub fn set_period(&mut self, functions: &mut Functions, milliseconds: u32) {
        self.0 = NonZero::new(u64::from(milliseconds) * 1_000_000);
        functions.iter_mut().for_each(|(_, function)| function.watch.forget());
    }

    /// Counts an event caused by `function` at `now` (ns). Returns the message for the PF if the count now exceeds the
    /// threshold in the function's configuration.
    #[allow(clippy::indexing_slicing, reason = "there is a threshold for each kind")]
    pub fn note(&self, functions: &mut Functions, function: Function, kind: Kind, now: u64) -> Option<Outgoing> {
        let period = self.0.filter(|_| function.is_vf())?;
        let of = &mut functions[function];
        let exceeded = of.watch.exceeds(kind, of.config.thresholds[kind as usize], (now, period));
        exceeded.then(|| Outgoing::event(ADVERSE_EVENT, &[u32::from(function.0), u32::from(kind.key())]))
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const VF1: Function = Function(1);
    const MS: u64 = 1_000_000;

    fn notified(message: Option<Outgoing>) -> Option<Vec<u32>> {
        message.map(|message| message.hxg().to_vec())
    }

    /// Contract D.10, K.5: each key maps to its kind, in declaration order.
    #[test]
    fn keys_and_kinds() {
        for (at, (kind, key)) in KEYS.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.key(), Kind::of_key(key)), (at, key, Some(kind)));
        }
        assert_eq!([0x8a02, 0x8a09, 0x8a0a, 0x8a0e].map(Kind::of_key), [None; 4]);
    }

    /// Contract D.10: the event that exceeds the threshold sends one message {vfid, key}; further events in the same
    /// period send none. The next period starts from 0.
    #[test]
    fn a_threshold_is_reported_once_per_period() {
        proves!([GUC_040, GUC_041], "one report in a period");
        let (mut monitor, mut functions) = (ThresholdMonitor::default(), Functions::default());
        monitor.set_period(&mut functions, 10);
        functions[VF1].config.thresholds[Kind::EngineReset as usize] = 2;
        let mut note = |now| notified(monitor.note(&mut functions, VF1, Kind::EngineReset, now));
        assert_eq!(
            [note(0), note(1), note(9 * MS), note(9 * MS)],
            [None, None, Some(vec![0x9000_5104, 1, 0x8a04]), None]
        );
        assert_eq!((0..1000).find_map(|_| note(10 * MS - 1)), None);
        assert_eq!([note(10 * MS), note(10 * MS)], [None, None]);
        assert!(note(19 * MS).is_some());
        assert_eq!([note(20 * MS), note(39 * MS), note(40 * MS)], [None, None, None], "too slow for one period");
    }

    /// Contract D.10: nothing is reported without a threshold or a period, or for the PF.
    #[test]
    fn silent_by_default() {
        proves!([GUC_040, GUC_041, GUC_042], "no threshold, no period, the PF");
        let (mut monitor, mut functions) = (ThresholdMonitor::default(), Functions::default());
        let many = |monitor: &ThresholdMonitor, functions: &mut Functions, function| {
            (0..100).find_map(|_| monitor.note(functions, function, Kind::Doorbell, 5))
        };
        functions[VF1].config.thresholds[Kind::Doorbell as usize] = 1;
        functions[Function::PF].config.thresholds[Kind::Doorbell as usize] = 1;
        assert_eq!(many(&monitor, &mut functions, VF1), None, "no period");
        monitor.set_period(&mut functions, 1);
        assert_eq!(many(&monitor, &mut functions, Function(2)), None, "no threshold");
        assert_eq!(many(&monitor, &mut functions, Function::PF), None);
        assert_eq!(notified(many(&monitor, &mut functions, VF1)), Some(vec![0x9000_5104, 1, 0x8a08]));
        functions[VF1].config.thresholds[Kind::Doorbell as usize] = 0;
        monitor.set_period(&mut functions, 1);
        assert_eq!(many(&monitor, &mut functions, VF1), None);
    }

    /// Contract D.10: each kind and function has a separate counter; FLR clears counts and keeps thresholds.
    #[test]
    fn counters_are_apart() {
        proves!(GUC_042, "each kind of two functions");
        let (mut monitor, mut functions) = (ThresholdMonitor::default(), Functions::default());
        monitor.set_period(&mut functions, !0);
        for (kind, _) in KEYS {
            functions[VF1].config.thresholds[kind as usize] = 1;
            assert!(
                monitor.note(&mut functions, VF1, kind, 0).is_none()
                    && monitor.note(&mut functions, Function(63), kind, 0).is_none()
            );
        }
        functions[VF1].watch.forget();
        assert_eq!(functions[VF1].config.thresholds[Kind::MultiLrc as usize], 1);
        for (kind, key) in KEYS {
            assert!(monitor.note(&mut functions, VF1, kind, 0).is_none());
            assert_eq!(
                notified(monitor.note(&mut functions, VF1, kind, 0)),
                Some(vec![0x9000_5104, 1, u32::from(key)])
            );
        }
    }
}
