// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of a guest's kernel log: lines that must not appear, and lines that must.

use serde::Serialize;

/// Patterns that fail a run in any line. Soft lockups have "BUG:"; "lockup" alone is also in harmless messages of the
/// lockup detector.
const SPLATS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "Oops",
    "hard LOCKUP",
    "Kernel panic",
    "general protection fault",
    "Call Trace:",
    "detected stall",
    "blocked for more than",
    "Unable to handle",
    "refcount_t:",
    "UBSAN:",
    "KASAN:",
];

/// What xe logs, below the error level, when it cancels a job that does not end.
pub const XE_JOB_TIMEOUT: &str = "Timedout job";
/// What i915 logs, below the error level, when it captures the state of a hung engine.
const I915_HANG: &str = "GPU HANG";

/// Patterns that fail a run in a line of the drivers under test. No run whose whole log is checked hangs an engine on
/// purpose: `arctic guest hang` is a command of `boot --run`, and of IGT's tests only splats are checked.
const DRIVER_FAILURES: &[&str] = &[
    "*ERROR*",
    "wedged",
    "timed out",
    "trying reset",
    XE_JOB_TIMEOUT,
    I915_HANG,
    "FLR failed",
    "sanitizing failed",
    "Failed to enable",
];

/// Words that identify a line of the drivers under test.
const DRIVERS: &[&str] = &["xe", "i915", "drm", "mei"];

/// TAINT_USER: set by force_probe.
pub const FORCE_PROBE_TAINT: u64 = 1 << 6;

/// A line that fails a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The pattern that it matches.
    pub pattern: &'static str,
    /// The line.
    pub line: String,
}

/// Returns the pattern if `line` is a kernel splat from any source.
pub fn splat(line: &str) -> Option<&'static str> {
    SPLATS.iter().find(|pattern| line.contains(*pattern)).copied()
}

/// Returns whether `line` is from xe, i915, drm or mei, or contains the card's PCI address `card`. Without an address
/// only the drivers' names count, as words.
pub fn is_driver_line(line: &str, card: Option<&str>) -> bool {
    card.is_some_and(|address| line.contains(address))
        || line.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| DRIVERS.contains(&word))
}

/// Returns all lines of `log` that fail a run with the card at the PCI address `card`, see [`is_driver_line`].
pub fn problems(log: &str, card: Option<&str>) -> Vec<Problem> {
    let failure = |line: &str| {
        let driver_line = is_driver_line(line, card);
        DRIVER_FAILURES.iter().find(|pattern| driver_line && line.contains(*pattern)).copied()
    };
    let classify = |line: &str| {
        Some(Problem { pattern: splat(line).or_else(|| failure(line))?, line: line.trim_end().to_owned() })
    };
    log.lines().filter_map(classify).collect()
}

/// Returns the entries of `required` that match no line of `log`. An entry is a set of words that one line must
/// contain.
pub fn missing<'a>(log: &str, required: &[&'a [&'a str]]) -> Vec<&'a [&'a str]> {
    let found = |words: &&[&str]| log.lines().any(|line| words.iter().all(|word| line.contains(word)));
    required.iter().filter(|words| !found(words)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "0000:00:01.0";
    const GOOD: &str = "\
[    0.000000] Linux version 7.2.12+deb13-amd64\r
[    0.310000] mtrr: your CPUs had inconsistent variable MTRR settings\r
[    0.400000] clocksource: Watchdog remote CPU 1 read timed out\r
[    3.100000] Setting dangerous option force_probe - tainting kernel\r
[    3.500000] xe 0000:00:01.0: [drm] Using GuC firmware from i915/dg2_guc_70.bin version 70.44.1\r
[    3.900000] [drm] Initialized xe 1.1.0 for 0000:00:01.0 on minor 0\r
";

    /// A line per pattern of [`SPLATS`] that contains no other pattern.
    const SPLAT_LINES: [(&str, &str); SPLATS.len()] = [
        ("WARNING:", "[ 4.0] WARNING: CPU: 0 PID: 1 at fs/ext4/inode.c:1"),
        ("BUG:", "[ 4.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [modprobe:123]"),
        ("Oops", "[ 4.0] Oops: 0002 [#1] SMP NOPTI"),
        ("hard LOCKUP", "[ 4.0] NMI watchdog: Watchdog detected hard LOCKUP on cpu 0"),
        ("Kernel panic", "[ 4.0] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009"),
        (
            "general protection fault",
            "[ 4.0] general protection fault, probably for non-canonical address 0x6b6b6b6b6b6b6b6b: 0000 [#1] SMP",
        ),
        ("Call Trace:", "[ 4.0] Call Trace:"),
        ("detected stall", "[ 4.0] rcu: INFO: rcu_preempt self-detected stall on CPU"),
        ("blocked for more than", "[ 4.0] INFO: task kworker/0:1:12 blocked for more than 120 seconds."),
        ("Unable to handle", "[ 4.0] Unable to handle kernel paging request at virtual address ffff000012345678"),
        ("refcount_t:", "[ 4.0] refcount_t: underflow; use-after-free."),
        ("UBSAN:", "[ 4.0] UBSAN: array-index-out-of-bounds in lib/foo.c:1:2"),
        ("KASAN:", "[ 4.0] KASAN: null-ptr-deref in range [0x0000000000000008-0x000000000000000f]"),
    ];

    /// A line per pattern of [`DRIVER_FAILURES`] that contains no other pattern.
    const FAILURE_LINES: [(&str, &str); DRIVER_FAILURES.len()] = [
        ("*ERROR*", "[ 4.0] xe 0000:00:01.0: [drm] *ERROR* GT0: reset failed"),
        ("wedged", "[ 4.0] [drm:foo] device wedged, needs recovery"),
        ("timed out", "[ 4.0] mei_gsc xe.mei-gscfi.256: wait hw ready timed out"),
        ("trying reset", "[ 4.0] foo bar 0000:00:01.0: trying reset"),
        (
            XE_JOB_TIMEOUT,
            "[ 4.0] xe 0000:00:01.0: [drm] Tile0: GT0: Timedout job: seqno=4294967169, lrc_seqno=4294967169, guc_id=2, \
             flags=0x0 in arctic [189]",
        ),
        (I915_HANG, "[ 4.0] i915 0000:00:01.0: [drm] GPU HANG: ecode 7:0:00000000"),
        // Failures that the SR-IOV code logs below the error level.
        ("FLR failed", "[ 4.0] xe 0000:00:01.0: [drm] PF: Tile0: GT0: VF1 FLR failed!"),
        ("sanitizing failed", "[ 4.0] xe 0000:00:01.0: [drm] PF: Tile0: GT0: VF1 resource sanitizing failed (-110)"),
        ("Failed to enable", "[ 4.0] xe 0000:00:01.0: [drm] PF: Failed to enable 2 VFs (-EIO)"),
    ];

    #[test]
    fn expected_log_has_no_problems_and_all_required_lines() {
        assert_eq!(problems(GOOD, Some(CARD)), []);
        assert!(missing(GOOD, &[&["Initialized xe", CARD], &["GuC firmware"]]).is_empty());
    }

    #[test]
    fn each_pattern_alone_is_a_problem() {
        assert_eq!(SPLAT_LINES.map(|(pattern, _)| pattern), SPLATS);
        assert_eq!(FAILURE_LINES.map(|(pattern, _)| pattern), DRIVER_FAILURES);
        for (pattern, line) in SPLAT_LINES.into_iter().chain(FAILURE_LINES) {
            let all = SPLATS.iter().chain(DRIVER_FAILURES);
            assert_eq!(all.filter(|other| line.contains(**other)).collect::<Vec<_>>(), [&pattern], "{line}");
            let found = problems(&format!("{GOOD}{line}\r\n"), Some(CARD));
            assert_eq!(found, [Problem { pattern, line: line.to_owned() }]);
        }
    }

    #[test]
    fn driver_failures_in_lines_of_other_drivers_are_ignored() {
        for card in [Some(CARD), None] {
            // The drivers' names as parts of other words do not count.
            assert_eq!(problems("[ 4.0] rtc_cmos: timed out\n[ 4.0] executable: *ERROR* in axe\n", card), []);
        }
    }

    #[test]
    fn driver_line_without_an_address_needs_a_drivers_name() {
        let lines = "[ 4.0] foo bar 0000:00:01.0: trying reset\n[ 4.0] xe 0000:00:01.0: trying reset\n";
        assert_eq!(problems(lines, Some(CARD)).len(), 2);
        assert_eq!(problems(lines, None).len(), 1);
    }

    #[test]
    fn required_words_in_no_common_line_are_missing() {
        assert_eq!(missing("nothing\n", &[&["Initialized xe", CARD]]), [&["Initialized xe", CARD]]);
        assert_eq!(missing("a\nb\n", &[&["a", "b"]]).len(), 1);
        assert_eq!(missing("a b\n", &[&["a", "b"]]).len(), 0);
    }
}
