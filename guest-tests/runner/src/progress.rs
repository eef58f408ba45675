// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Progress output for interactive users: steps and percentages, always on stderr, never on stdout.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

/// Receives progress messages of a run.
pub trait Progress: Sync {
    /// Reports the start or end of a step; `line` is one short sentence without a full stop.
    fn print_line(&self, line: &str);
    /// Reports that step `what` has completed `percent` (0 to 100) of its work.
    fn percent(&self, what: &str, percent: u8);
}

/// Progress on stderr: an updated line on a terminal, a line per quarter elsewhere.
#[derive(Default)]
pub struct Stderr {
    last: Mutex<Option<(String, u8)>>,
}

impl Progress for Stderr {
    fn print_line(&self, line: &str) {
        let open = self.last.lock().map(|mut last| last.take().is_some()).unwrap_or(false);
        let end_of_line = if open && std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
        // An error writing to stderr must not end the run.
        let _ = writeln!(std::io::stderr(), "{end_of_line}{line}");
    }

    fn percent(&self, what: &str, percent: u8) {
        let Ok(mut last) = self.last.lock() else { return };
        let terminal = std::io::stderr().is_terminal();
        let grain = if terminal { 1 } else { 25 };
        let now = percent / grain;
        if last.as_ref().is_some_and(|(name, before)| name == what && *before == now) {
            return;
        }
        *last = Some((what.to_owned(), now));
        let _ = match terminal {
            true => write!(std::io::stderr(), "\r\x1b[K{what} {percent}%"),
            false => writeln!(std::io::stderr(), "{what} {percent}%"),
        };
    }
}

/// Discards all progress messages; for tests.
pub struct Silent;

impl Progress for Silent {
    fn print_line(&self, _line: &str) {}
    fn percent(&self, _what: &str, _percent: u8) {}
}
