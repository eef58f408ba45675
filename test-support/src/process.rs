// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Properties of the test process: settings from the environment, memory and CPU time.

use std::io::Write;
use std::time::{Duration, Instant};

use arctic_device_model::card::Card;
use arctic_device_model::gpu::WorkStatus;
use rustix::time::{ClockId, clock_gettime};

/// Returns the value of environment variable `name`, or `default` if it is unset or not a number.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Reports that this test does not run, or only in part, because the host lacks a facility: prints its name and `reason`
/// to stderr. With `ARCTIC_FACILITIES=required` in the environment, panics instead, so that no test is skipped.
pub fn skipped(reason: &str) {
    let required = std::env::var("ARCTIC_FACILITIES").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Written directly, because the test harness captures output of `eprintln!`.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

/// Returns the resident set size of this process in bytes.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Calls [`Card::step`] once, which runs a step of each engine; panics if the call used more CPU time than `limit`.
pub fn work(card: &Card, limit: Duration) -> WorkStatus {
    let (cpu, start) = (cpu_time(), Instant::now());
    let turn = card.step();
    if start.elapsed() > limit {
        let cpu = cpu_time() - cpu;
        assert!(cpu <= limit, "one call of Card::step used {cpu:?} of CPU time");
    }
    turn
}
