// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Log lines on configuration writes of a guest that the function reverts.

use std::time::Instant;

use arctic_sriov::reverted::RevertedWrite;

use crate::line_limit::LineLimit;

/// The lines of one function.
#[derive(Default)]
pub struct RevertedLog(LineLimit);

impl RevertedLog {
    /// Returns the line to log for a write of `function` at the time `now`; `None` if the limit is exceeded.
    pub fn line(&self, function: &str, write: RevertedWrite, now: Instant) -> Option<String> {
        let suppressed = self.0.admit(now)?;
        let RevertedWrite { register, offset, written, kept } = write;
        Some(format!(
            "{function}: {register} at {offset:#x} keeps {kept:#x}: the guest's write of {written:#x} is reverted{suppressed}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::line_limit::{INTERVAL, MOST_LINES};

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
