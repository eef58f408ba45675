// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The load of the host during a run. It is printed with each failure and does not affect the result.

use std::fmt;
use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::number::count;

/// Overload threshold: percent of the time during which some task waited for a CPU.
const PRESSURE: f64 = 50.0;
/// Overload threshold: percent of CPU time stolen by the hypervisor.
const STEAL: f64 = 20.0;
/// Overload threshold: runnable tasks per CPU, used if the host does not measure pressure.
const LOAD: f64 = 2.0;

/// The host's counters at one point in time.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    at: Instant,
    /// Total microseconds during which some task waited for a CPU.
    waited: Option<u64>,
    /// Total ticks of all CPUs, and stolen ticks.
    ticks: Option<(u64, u64)>,
}

impl Snapshot {
    /// Reads the current counters.
    pub fn take() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (waited, ticks) = (waited(&read("/proc/pressure/cpu")), ticks(&read("/proc/stat")));
        Self { at: Instant::now(), waited, ticks }
    }

    /// Seconds since the snapshot.
    pub fn seconds(&self) -> f64 {
        self.at.elapsed().as_secs_f64()
    }

    /// The host's load since the snapshot.
    pub fn until_now(&self) -> HostLoad {
        let load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| load(&text));
        let cores = std::thread::available_parallelism().map_or(1, |cores| count(cores.get()));
        self.until(&Self::take(), load.unwrap_or_default(), cores)
    }

    fn until(&self, end: &Self, load: f64, cores: u32) -> HostLoad {
        let seconds = end.at.saturating_duration_since(self.at).as_secs_f64();
        let percent = |part: u64, total: f64| if total > 0.0 { (part as f64 / total * 100.0).min(100.0) } else { 0.0 };
        let pressure =
            self.waited.zip(end.waited).map(|(start, end)| percent(end.saturating_sub(start), seconds * 1e6));
        let steal = self.ticks.zip(end.ticks).map(|((all, stolen), (all_now, stolen_now))| {
            percent(stolen_now.saturating_sub(stolen), all_now.saturating_sub(all) as f64)
        });
        let steal = steal.unwrap_or_default();
        let waits = pressure.map_or(load >= LOAD * f64::from(cores), |pressure| pressure >= PRESSURE);
        HostLoad { overloaded: waits || steal >= STEAL, pressure, steal, load, cores, seconds }
    }
}

/// The host's load over a period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostLoad {
    /// Whether the load exceeded a threshold.
    pub overloaded: bool,
    /// Percent of the time during which some task waited for a CPU (`some` of /proc/pressure/cpu); `None` if the host
    /// does not measure it.
    pub pressure: Option<f64>,
    /// Percent of CPU time stolen by the hypervisor.
    pub steal: f64,
    /// The load average of the last minute.
    pub load: f64,
    /// Number of the host's CPUs.
    pub cores: u32,
    /// Length of the period in seconds.
    pub seconds: f64,
}

impl HostLoad {
    /// Returns the figures, marked if they exceed a threshold.
    pub fn summary(&self) -> String {
        format!("{self}{}", if self.overloaded { ": overloaded" } else { "" })
    }

    /// How many times as long as on an idle host work may take: the runnable tasks of a core in the last minute, from 1 to 4.
    pub fn slowdown(&self) -> f64 {
        (self.load / f64::from(self.cores.max(1))).clamp(1.0, 4.0)
    }

    /// Returns `host overloaded` with the figures, if the host was overloaded.
    pub fn complaint(&self) -> Option<String> {
        self.overloaded.then(|| format!("host overloaded: {self}"))
    }
}

impl fmt::Display for HostLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pressure) = self.pressure {
            write!(out, "CPU pressure {pressure:.0} %, ")?;
        }
        if self.steal >= 1.0 {
            write!(out, "stolen {:.0} %, ", self.steal)?;
        }
        write!(out, "load {:.1} on {} cores", self.load, self.cores)
    }
}

/// Parses `total` of the line `some`, in microseconds.
fn waited(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    line.split(' ').find_map(|field| field.strip_prefix("total="))?.parse().ok()
}

/// Parses the total ticks of all CPUs and the stolen ticks (proc(5), /proc/stat).
fn ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // The fields after the eighth are guest times, which are already included in user and nice.
    let times: Option<Vec<u64>> = line.split_whitespace().take(8).map(|field| field.parse().ok()).collect();
    let times = times?;
    Some((times.iter().sum(), times.get(7).copied().unwrap_or_default()))
}

fn load(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let pressure = "some avg10=94.77 avg60=56.11 avg300=28.54 total=139328239\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!((waited(pressure), waited(""), waited("some avg10=1\n")), (Some(139_328_239), None, None));
        let stat = "cpu  90 12 13 66 3 0 2 17 5 1\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!((ticks(stat), ticks("intr 0\n")), (Some((203, 17)), None));
        assert_eq!((load("5.53 7.17 3.83 2/86 11594\n"), load("")), (Some(5.53), None));
    }

    fn between(waited: Option<(u64, u64)>, stolen: u64, load: f64) -> HostLoad {
        let at = Instant::now();
        let start = Snapshot { at, waited: waited.map(|(start, _)| start), ticks: Some((1000, 50)) };
        let end = Snapshot {
            at: at + Duration::from_secs(10),
            waited: waited.map(|(_, end)| end),
            ticks: Some((3000, 50 + stolen)),
        };
        start.until(&end, load, 2)
    }

    #[test]
    fn pressure_counts_over_the_run_and_the_load_only_without_it() {
        let quiet = between(Some((5_000_000, 9_000_000)), 20, 30.0);
        assert_eq!((quiet.pressure, quiet.steal, quiet.overloaded, quiet.complaint()), (Some(40.0), 1.0, false, None));
        let busy = between(Some((5_000_000, 14_700_000)), 0, 12.3);
        assert_eq!(busy.summary(), "CPU pressure 97 %, load 12.3 on 2 cores: overloaded");
        assert_eq!(busy.complaint().unwrap(), "host overloaded: CPU pressure 97 %, load 12.3 on 2 cores");
        assert_eq!([0.5, 3.0, 40.0].map(|load| between(None, 0, load).slowdown()), [1.0, 1.5, 4.0]);
        assert!(!between(None, 0, 3.9).overloaded && between(None, 0, 4.0).overloaded);
        assert_eq!(between(None, 1000, 0.5).complaint().unwrap(), "host overloaded: stolen 50 %, load 0.5 on 2 cores");
    }

    #[test]
    fn counters_that_run_backwards_or_are_absent_do_no_harm() {
        assert_eq!(between(Some((9, 3)), 0, 0.0).pressure, Some(0.0));
        let load = Snapshot::take().until_now();
        assert!(load.cores > 0 && load.pressure.is_none_or(|pressure| (0.0..=100.0).contains(&pressure)), "{load:?}");
    }
}
