// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reports of adverse events: a count that exceeds the threshold that the PF has set is reported to the PF once per sample
//! period (contract D.10).

use std::num::NonZero;

use crate::guc::functions::Functions;
use crate::guc::messages::hxg::Outgoing;
use crate::guc::provisioning::threshold_event::Kind;
use crate::host::Function;

/// G2H: a VF has exceeded a threshold.
const ADVERSE_EVENT: u16 = 0x5104;

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
        exceeded.then(|| Outgoing::event(ADVERSE_EVENT, &[u32::from(function.number()), u32::from(kind.key())]))
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const VF1: Function = Function::new(1).unwrap();
    const MS: u64 = 1_000_000;

    fn notified(message: Option<Outgoing>) -> Option<Vec<u32>> {
        message.map(|message| message.hxg().to_vec())
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
        assert_eq!(many(&monitor, &mut functions, Function::new(2).unwrap()), None, "no threshold");
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
        for kind in Kind::ALL {
            functions[VF1].config.thresholds[kind as usize] = 1;
            assert!(
                monitor.note(&mut functions, VF1, kind, 0).is_none()
                    && monitor.note(&mut functions, Function::new(63).unwrap(), kind, 0).is_none()
            );
        }
        functions[VF1].watch.forget();
        assert_eq!(functions[VF1].config.thresholds[Kind::MultiLrc as usize], 1);
        for kind in Kind::ALL {
            assert!(monitor.note(&mut functions, VF1, kind, 0).is_none());
            assert_eq!(
                notified(monitor.note(&mut functions, VF1, kind, 0)),
                Some(vec![0x9000_5104, 1, u32::from(kind.key())])
            );
        }
    }
}
