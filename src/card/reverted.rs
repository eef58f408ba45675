// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Log lines on configuration writes of a guest that the function reverts.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::reverted::RevertedWrite;

/// Maximum number of lines of a function in each [`INTERVAL`].
pub const MOST_LINES: u32 = 4;
/// The interval, which starts with a line.
const INTERVAL: Duration = Duration::from_secs(1);

/// The lines of one function. Lines beyond the limit are counted, and the next line has their number.
#[derive(Default)]
pub struct RevertedLog(Mutex<State>);

#[derive(Default)]
struct State {
    /// Start of the current interval.
    started: Option<Instant>,
    /// Lines in the current interval.
    lines: u32,
    /// Lines suppressed since the last one.
    suppressed: u64,
}

impl RevertedLog {
    /// Returns the line to log for a write of `function` at the time `now`; `None` if the limit is exceeded.
    pub fn line(&self, function: &str, write: RevertedWrite, now: Instant) -> Option<String> {
        let suppressed = self.admit(now)?;
        let RevertedWrite { register, offset, written, kept } = write;
        let more = match suppressed {
            0 => String::new(),
            more => format!(" ({more} such lines were suppressed)"),
        };
        Some(format!(
            "{function}: {register} at {offset:#x} keeps {kept:#x}: the guest's write of {written:#x} is reverted{more}"
        ))
    }

    /// Returns the number of suppressed lines if a line may be logged.
    fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().ignore_poison();
        if state.started.is_none_or(|started| now.saturating_duration_since(started) >= INTERVAL) {
            (state.started, state.lines) = (Some(now), 0);
        }
        if state.lines >= MOST_LINES {
            state.suppressed = state.suppressed.saturating_add(1);
            return None;
        }
        state.lines = state.lines.saturating_add(1);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: RevertedWrite = RevertedWrite { register: "NumVFs", offset: 0x330, written: 5, kept: 3 };

    #[test]
    fn lines_beyond_the_limit_are_suppressed_and_counted() {
        let log = RevertedLog::default();
        let start = Instant::now();
        for n in 0..MOST_LINES {
            let line = log.line("pf", WRITE, start + Duration::from_millis(n.into()));
            assert_eq!(line.as_deref(), Some("pf: NumVFs at 0x330 keeps 0x3: the guest's write of 0x5 is reverted"));
        }
        for n in 0..1000 {
            assert_eq!(log.line("pf", WRITE, start + Duration::from_micros(900 * n)), None);
        }
        let line = log.line("pf", WRITE, start + INTERVAL).unwrap();
        assert!(line.ends_with(" (1000 such lines were suppressed)"), "{line}");
        let line = log.line("pf", WRITE, start + INTERVAL).unwrap();
        assert!(line.ends_with("is reverted"), "{line}");
    }

    #[test]
    fn functions_have_separate_limits() {
        let [first, second] = [RevertedLog::default(), RevertedLog::default()];
        let now = Instant::now();
        assert_eq!((0..100).filter(|_| first.line("vf1", WRITE, now).is_some()).count(), 4);
        assert!(second.line("vf2", WRITE, now).is_some());
    }
}
