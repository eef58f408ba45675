//! What host and agent say to each other: one plan as a file, then one JSON message a line.

use serde::{Deserialize, Serialize};

use super::list::Test;
use crate::driver::Driver;
use crate::kernel_log::TAINT_ALLOWED;

/// IGT's exit status for "this machine is in no state to go on" (igt_abort, lib/igt_core.h).
const EXIT_ABORT: i32 = 112;

/// What the agent is to do, in a file on the results share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The tests, with their numbers in the host's list.
    pub tests: Vec<(usize, Test)>,
    /// Seconds that one test may take.
    pub limit: u64,
    /// The driver under test.
    pub driver: Driver,
    /// IGT's filter for the function under test.
    pub device: Option<String>,
}

/// What the agent says on its port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// A test is next; the driver is made ready for it.
    Started {
        /// Its number.
        number: usize,
        /// The guest's clock (CLOCK_BOOTTIME) in seconds.
        clock: f64,
    },
    /// The driver is ready, and the test's process starts.
    Running,
    /// A test ended.
    Ended(Ended),
}

/// How a test's process ended, and what it left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The test's number.
    pub number: usize,
    /// Exit status, if it exited.
    pub status: Option<i32>,
    /// Signal, if one ended it.
    pub signal: Option<i32>,
    /// Whether it ran longer than the limit and was killed.
    pub timed_out: bool,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Its stdout, shortened in the middle if very long.
    pub output: String,
    /// Its stderr, likewise.
    pub errors: String,
    /// Kernel lines of its time: level 0 to 7, text. Levels above 4 are left out.
    pub kernel: Vec<(u8, String)>,
    /// The kernel's taint mask afterwards.
    pub taint: u64,
    /// The guest's clock (CLOCK_BOOTTIME) in seconds.
    pub clock: f64,
}

impl Ended {
    /// Whether what the test left behind would be the next one's trouble, so that it needs a new guest.
    pub fn spoils_guest(&self) -> bool {
        self.timed_out || self.status == Some(EXIT_ABORT) || self.taint & !TAINT_ALLOWED != 0
    }
}
