// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Waits for conditions that other threads or processes bring about.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a wait; a loaded host needs a part of it.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two polls.
const INTERVAL: Duration = Duration::from_micros(200);

/// Waits until `holds` returns true; panics after [`TIMEOUT`]. `what` names the condition.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "timed out waiting for: {what}");
        thread::sleep(INTERVAL);
    }
}
