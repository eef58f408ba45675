// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A limit on log lines that a guest or a client can cause.

use std::fmt::{self, Display, Formatter};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;

/// Maximum number of lines in each [`INTERVAL`].
pub const MOST_LINES: u32 = 4;
/// The interval, which starts with a line.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// The limit of one kind of line. Lines beyond it are counted, and the next line has their number.
#[derive(Default)]
pub struct LineLimit(Mutex<State>);

#[derive(Default)]
struct State {
    /// Start of the current interval.
    started: Option<Instant>,
    /// Lines in the current interval.
    lines: u32,
    /// Lines suppressed since the last one.
    suppressed: u64,
}

/// Number of lines suppressed since the last one; printed as the end of a line, empty if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suppressed(u64);

impl Display for Suppressed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            number => write!(f, " ({number} such lines were suppressed)"),
        }
    }
}

impl LineLimit {
    /// Returns the number of suppressed lines if a line may be logged at the time `now`.
    pub fn admit(&self, now: Instant) -> Option<Suppressed> {
        let mut state = self.0.lock().ignore_poison();
        if state.started.is_none_or(|started| now.saturating_duration_since(started) >= INTERVAL) {
            (state.started, state.lines) = (Some(now), 0);
        }
        if state.lines >= MOST_LINES {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.lines = state.lines.saturating_add(1);
        Some(Suppressed(std::mem::take(&mut state.suppressed)))
    }
}
