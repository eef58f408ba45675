// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The protocol between host and agent: one plan in a file, then one JSON message per line.

use serde::{Deserialize, Serialize};

use super::list::Test;
use crate::driver::Driver;
use crate::kernel_log::FORCE_PROBE_TAINT;

/// IGT's exit status for a system state in which no further test can run (igt_abort, lib/igt_core.h).
const EXIT_ABORT: i32 = 112;

/// The agent's task, in a file on the results share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The tests, with their indices in the host's list.
    pub tests: Vec<(usize, Test)>,
    /// Time limit of one test in seconds.
    pub limit: u64,
    /// The driver under test.
    pub driver: Driver,
    /// PCI address of the function under test; `None` in a guest without a card.
    pub card: Option<String>,
}

/// The messages that the agent sends on its port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// The next test; the agent now prepares the driver for it.
    Started {
        /// The test's index in the host's list.
        number: usize,
        /// The guest's clock (CLOCK_BOOTTIME) in seconds.
        clock: f64,
    },
    /// The driver is ready, and the test's process is about to start.
    Running,
    /// A test ended.
    Ended(Ended),
}

/// Exit and output of a test's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The test's index in the host's list.
    pub number: usize,
    /// Why the test was not run, if the driver could not be prepared for it.
    pub not_run: Option<String>,
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// The signal that terminated it, if any.
    pub signal: Option<i32>,
    /// Whether it exceeded the time limit and was killed.
    pub timed_out: bool,
    /// Run time in seconds.
    pub seconds: f64,
    /// Its stdout; the middle is omitted if it is very long.
    pub output: String,
    /// Its stderr; the middle is omitted if it is very long.
    pub errors: String,
    /// Kernel log lines between the previous test and this one, as level (0 to 7) and text: load and unload of the
    /// driver, and late consequences of the previous test. Before the first test: since the start of the kernel. Levels
    /// above 4 are omitted.
    pub kernel_before: Vec<(u8, String)>,
    /// Kernel log lines during the test, in the same form.
    pub kernel: Vec<(u8, String)>,
    /// The kernel's taint mask afterwards.
    pub taint: u64,
    /// The guest's clock (CLOCK_BOOTTIME) in seconds.
    pub clock: f64,
}

impl Ended {
    /// Returns whether the guest's state after the test could fail the next test, which therefore needs a new guest.
    pub fn needs_new_guest(&self) -> bool {
        self.timed_out || self.status == Some(EXIT_ABORT) || self.taint & !FORCE_PROBE_TAINT != 0
    }
}
