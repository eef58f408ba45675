// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Log messages on stderr, rate-limited per call site to prevent a misbehaving guest from flooding the terminal.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use log::{Level, Log, Metadata, Record};

/// Maximum number of lines per call site and [`PERIOD`].
const BURST: u32 = 5;
const PERIOD: Duration = Duration::from_secs(10);

/// A call site: module path and line of a log record.
type Place = (Option<&'static str>, Option<u32>);

struct Share {
    since: Instant,
    lines: u32,
}

/// Whether a line is written.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Write,
    /// The first line of a period, with the number of lines dropped in the previous period.
    WriteAfter(u32),
    LeaveOut,
}

#[derive(Default)]
struct Limit(Mutex<HashMap<Place, Share>>);

impl Limit {
    fn decide(&self, place: Place, now: Instant) -> Verdict {
        let mut places = self.0.lock().ignore_poison();
        let share = places.entry(place).or_insert(Share { since: now, lines: 0 });
        let mut verdict = Verdict::Write;
        if now.duration_since(share.since) >= PERIOD {
            if share.lines > BURST {
                verdict = Verdict::WriteAfter(share.lines - BURST);
            }
            *share = Share { since: now, lines: 0 };
        }
        share.lines = share.lines.saturating_add(1);
        if share.lines > BURST { Verdict::LeaveOut } else { verdict }
    }
}

struct Logger {
    inner: env_logger::Logger,
    limit: Limit,
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata) -> bool {
        self.inner.enabled(metadata)
    }

    fn log(&self, record: &Record) {
        if !self.inner.matches(record) {
            return;
        }
        // Debug and trace messages are enabled explicitly and are not limited.
        if record.level() > Level::Info {
            return self.inner.log(record);
        }
        match self.limit.decide((record.module_path_static(), record.line()), Instant::now()) {
            Verdict::Write => self.inner.log(record),
            Verdict::WriteAfter(n) => {
                let mut line = Record::builder();
                line.metadata(record.metadata().clone()).module_path_static(record.module_path_static());
                self.inner.log(&line.args(format_args!("{} ({n} similar messages suppressed)", record.args())).build());
            }
            Verdict::LeaveOut => {}
        }
    }

    fn flush(&self) {
        self.inner.flush();
    }
}

/// Starts logging of warnings and errors, or of the messages selected by RUST_LOG.
pub fn start() {
    let inner = env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).build();
    let level = inner.filter();
    let logger = Box::new(Logger { inner, limit: Limit::default() });
    // A second call, in a test, keeps the first logger.
    if log::set_boxed_logger(logger).is_ok() {
        log::set_max_level(level);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_of_one_source_are_rate_limited() {
        let limit = Limit::default();
        let start = Instant::now();
        let place = (Some("guest"), Some(1));
        for _ in 0..BURST {
            assert_eq!(limit.decide(place, start), Verdict::Write);
        }
        for _ in 0..1000 {
            assert_eq!(limit.decide(place, start), Verdict::LeaveOut);
        }
        assert_eq!(
            limit.decide((Some("guest"), Some(2)), start),
            Verdict::Write,
            "each call site has a separate limit"
        );
        assert_eq!(limit.decide(place, start + PERIOD), Verdict::WriteAfter(1000));
        assert_eq!(limit.decide(place, start + PERIOD), Verdict::Write);
        assert_eq!(limit.decide(place, start + 3 * PERIOD), Verdict::Write);
    }
}
