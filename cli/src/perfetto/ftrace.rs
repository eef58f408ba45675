// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Lines of a guest's ftrace (`/sys/kernel/tracing/trace`) on the timeline: a track for each CPU of the guest.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::Timeline;
use super::packets::text;

/// The track above those of CPUs, and the first of these.
const GUEST: u64 = 3;
const FIRST_CPU: u64 = 0x4000;
/// Number of CPUs that have tracks. Lines of others are missing.
const MOST_CPUS: u32 = 4096;

/// An event of a line.
#[derive(Debug, PartialEq, Eq)]
struct Line<'t> {
    task: &'t str,
    cpu: u32,
    /// Time of the guest's clock.
    ns: u64,
    /// Name of the event or function.
    name: &'t str,
    /// What follows.
    rest: &'t str,
}

/// Parses `task-pid [cpu] flags seconds.fraction: event: values`. Names of tasks may have blanks and brackets.
fn line(line: &str) -> Option<Line<'_>> {
    line.match_indices(" [").find_map(|(at, between)| {
        let (task, rest) = line.split_at_checked(at)?;
        let (cpu, rest) = rest.strip_prefix(between)?.split_once("] ")?;
        let (before, what) = rest.split_once(": ")?;
        let (_, at) = before.trim_end().rsplit_once(' ')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let cpu = cpu.parse().ok().filter(|_| is_number(cpu))?;
        let (name, rest) = what.split_once([':', ' ']).unwrap_or((what, ""));
        Some(Line { task: task.trim(), cpu, ns: nanoseconds(at)?, name, rest: rest.trim() })
    })
}

/// Parses seconds with a fraction of at most nine digits.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    let scale = 10_u64.pow(9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
    digits(seconds)?.checked_mul(1_000_000_000)?.checked_add(digits(fraction)?.checked_mul(scale)?)
}

/// The number of events that the kernel has dropped before a line: `CPU:1 [LOST 27 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    line.trim().strip_prefix("CPU:")?.split_once("[LOST ")?.1.strip_suffix(" EVENTS]")?.parse().ok()
}

impl<W: Write> Timeline<W> {
    /// Adds the lines of a guest's ftrace, of which the clock is `mono` or `boot`. Returns their number; lines that are no events
    /// are left out.
    pub fn add_ftrace(&mut self, trace: &str) -> io::Result<u64> {
        self.begin(self.last)?;
        let mut cpus = BTreeSet::new();
        let mut added: u64 = 0;
        for shown in trace.lines() {
            let Some(line) = line(shown) else {
                self.counts.missing = self.counts.missing.saturating_add(lost(shown).unwrap_or(0));
                continue;
            };
            added = added.saturating_add(1);
            self.counts.events = self.counts.events.saturating_add(1);
            if self.packets.is_full() || line.cpu >= MOST_CPUS {
                self.counts.missing = self.counts.missing.saturating_add(1);
                continue;
            }
            if cpus.is_empty() {
                self.packets.track(GUEST, None, "guest: ftrace", GUEST)?;
            }
            let track = FIRST_CPU.saturating_add(line.cpu.into());
            if cpus.insert(line.cpu) {
                self.packets.track(track, Some(GUEST), &format!("CPU {}", line.cpu), line.cpu.into())?;
            }
            let values = vec![text("task", line.task), text("values", line.rest)];
            self.packets.guest_instant(line.ns, track, line.name.to_owned(), values)?;
        }
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::GuestClock;
    use super::*;
    use crate::decode::engine::FLEX;

    const TRACE: &str = "\
# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          arctic-142     [001] .....     5.000123: xe_sched_job_exec: dev=0000:00:01.0, fence=1
 kworker/u9:1 [x]-77     [000] d..1.     5.000200: xe_guc_ct_h2g: H2G CTB: dev=0000:00:01.0
CPU:1 [LOST 27 EVENTS]
          <idle>-0       [001] dNh1.     5.000300250: xe_irq_handler <-handle_irq_event
no event
";

    fn added(trace: &str) -> (Vec<u8>, u64, super::super::Counts) {
        let guest: GuestClock =
            serde_json::from_str(r#"{"monotonic_ns":5000000000,"engine_cycles":19200,"width":36,"hz":19200000}"#)
                .unwrap();
        let mut bytes = Vec::new();
        let mut timeline = Timeline::new(&mut bytes, u64::MAX, "small", FLEX, Some(guest)).unwrap();
        let added = timeline.add_ftrace(trace).unwrap();
        let counts = timeline.finish().unwrap();
        (bytes, added, counts)
    }

    #[test]
    fn lines_are_events_of_cpus() {
        let (bytes, lines, counts) = added(TRACE);
        assert_eq!((lines, counts.events, counts.missing), (3, 3, 27));
        let read = arctic_timeline::read(&bytes).unwrap();
        let events: Vec<_> = read.instants.iter().filter(|event| read.path(event.track).starts_with("guest")).collect();
        let shown = events.iter().map(|event| (event.at, read.path(event.track), event.name.as_str()));
        let [cpu0, cpu1] = [0, 1].map(|cpu| format!("guest: ftrace/CPU {cpu}"));
        let wanted = [
            (5_000_123_000, cpu1.clone(), "xe_sched_job_exec"),
            (5_000_200_000, cpu0, "xe_guc_ct_h2g"),
            (5_000_300_250, cpu1, "xe_irq_handler"),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), wanted);
        assert_eq!(events[1].values["task"], "kworker/u9:1 [x]-77");
        assert_eq!(events[0].values["values"], "dev=0000:00:01.0, fence=1");
    }

    #[test]
    fn numbers_have_limits() {
        assert_eq!(nanoseconds("18446744073.709551615"), Some(u64::MAX));
        for wrong in ["18446744074.0", "1.0000000001", "-1.0", "1.-5", "1", ""] {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
        assert_eq!(line("a-1 [4294967296] ... 1.0: b"), None);
        assert_eq!(added("a-1 [4096] ... 1.0: b\n").2.missing, 1);
    }

    proptest! {
        /// A file may have any text.
        #[test]
        fn any_text_leaves_a_valid_timeline(text in prop::collection::vec("(a-1 |\\[0|00\\] |\\.\\.\\. |1\\.5|: |[ -~\u{e9}\n]){0,12}", 0..8)) {
            let (bytes, lines, _) = added(&(text.join("\n") + "\n" + TRACE));
            prop_assert!(lines >= 3);
            prop_assert!(arctic_timeline::read(&bytes).is_ok());
        }
    }
}
