// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Adverse events: VF activity that affects other functions, counted per sample period against thresholds that the PF
//! sets (contract D.10; xe: abi/guc_klvs_abi.h, xe_guc_klv_thresholds_set_types.h).
//!
//! Some thresholds count events; others count the microseconds that the GuC spends on handling events. Handling time in
//! the device model is meaningless to the guest, so each event of the second kind counts as one microsecond.

use std::num::NonZero;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract D.10, K.5: each key maps to its kind, in declaration order.
    #[test]
    fn keys_and_kinds() {
        for (at, (kind, key)) in KEYS.into_iter().enumerate() {
            assert_eq!((kind as usize, kind.key(), Kind::of_key(key)), (at, key, Some(kind)));
        }
        assert_eq!([0x8a02, 0x8a09, 0x8a0a, 0x8a0e].map(Kind::of_key), [None; 4]);
    }
}
