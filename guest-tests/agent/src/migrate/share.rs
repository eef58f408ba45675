// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The share of engine time that a function has, by the kernel's events in the guest of the physical function.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::device::Device;
use crate::pmu::{Event, Pmu};
use crate::report::StepReport;

/// Smallest part of its share before the migrations that the function must have during them.
const LEAST: f64 = 0.95;

/// The events of one function: for each engine the ticks that it was on the engine, and all ticks.
pub(super) struct Share(Vec<[Event; 2]>);

/// Values of the events.
pub(super) struct Ticks(Vec<[u64; 2]>);

impl Share {
    /// The share of a function of the card of which the physical function has this PCI address.
    pub(super) fn of_function(pf: &str, function: u64) -> Result<Share> {
        let pmu = Pmu::of_card(pf)?;
        let engines = Device::open(None)?.engines()?;
        let events = engines.into_iter().map(|engine| {
            Ok([
                pmu.engine_event("engine-active-ticks", engine, function)?,
                pmu.engine_event("engine-total-ticks", engine, function)?,
            ])
        });
        Ok(Share(events.collect::<Result<_>>()?))
    }

    /// The values now.
    pub(super) fn begin(&mut self) -> Result<Ticks> {
        let values = self.0.iter_mut().map(|[active, total]| Ok([active.value()?, total.value()?]));
        Ok(Ticks(values.collect::<Result<_>>()?))
    }

    /// The share since `begin`: time on engines by time of one engine.
    pub(super) fn since(&mut self, begin: &Ticks) -> Result<f64> {
        let now = self.begin()?;
        let mut share = 0.0;
        for ([active, total], [active_before, total_before]) in now.0.iter().zip(&begin.0) {
            let total = total.wrapping_sub(*total_before);
            ensure!(total != 0, "the kernel has counted no ticks of an engine");
            share += active.wrapping_sub(*active_before) as f64 / total as f64;
        }
        Ok(share)
    }

    /// The share within `duration` from now on.
    pub(super) fn measure(&mut self, duration: Duration) -> Result<f64> {
        let begin = self.begin()?;
        thread::sleep(duration);
        self.since(&begin)
    }
}

/// The step of a report for a function with these shares before and during the migrations. It may have more while the first function
/// is stopped, and must not have less.
pub(super) fn step(before: f64, during: f64) -> StepReport {
    let detail = format!("{before:.2} engines before the migrations, {during:.2} during them");
    let problem = (during < before * LEAST).then(|| detail.clone());
    let name = "share of VF 2".to_owned();
    StepReport { name, ok: problem.is_none(), problem, detail, ..StepReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_share_is_a_problem() {
        for (before, during, ok) in [(3.0, 3.0, true), (3.0, 2.86, true), (3.0, 6.5, true), (3.0, 2.84, false)] {
            assert_eq!(step(before, during).ok, ok, "{before} {during}");
        }
    }
}
