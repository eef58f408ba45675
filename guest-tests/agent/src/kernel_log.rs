// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Checks of a guest's kernel log: lines that must not appear, and lines that must.

use serde::Serialize;

/// Patterns that fail a run in any line.
const SPLATS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "Oops",
    "lockup",
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

/// Patterns that fail a run in a line of the drivers under test.
const DRIVER_COMPLAINTS: &[&str] =
    &["*ERROR*", "wedged", "timed out", "trying reset", "FLR failed", "sanitizing failed", "Failed to enable"];

/// Words that identify a line of the drivers under test.
const DRIVERS: &[&str] = &["xe", "i915", "drm", "mei"];

/// The taint bit set by force_probe (TAINT_USER). Any other bit fails a run.
pub const TAINT_ALLOWED: u64 = 64;

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
pub fn of_driver(line: &str, card: Option<&str>) -> bool {
    card.is_some_and(|address| line.contains(address))
        || line.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| DRIVERS.contains(&word))
}

/// Returns all lines of `log` that fail a run with the card at the PCI address `card`, see [`of_driver`].
pub fn problems(log: &str, card: Option<&str>) -> Vec<Problem> {
    let classify = |line: &str| {
        let complaint =
            || DRIVER_COMPLAINTS.iter().find(|pattern| of_driver(line, card) && line.contains(*pattern)).copied();
        Some(Problem { pattern: splat(line).or_else(complaint)?, line: line.trim_end().to_owned() })
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

    #[test]
    fn a_good_log_is_clean() {
        assert_eq!(problems(GOOD, Some(CARD)), []);
        assert!(missing(GOOD, &[&["Initialized xe", CARD], &["GuC firmware"]]).is_empty());
    }

    #[test]
    fn splats_count_anywhere_and_complaints_only_from_the_drivers() {
        for (line, pattern) in [
            ("[ 4.0] WARNING: CPU: 0 PID: 1 at fs/ext4/inode.c:1", "WARNING:"),
            ("[ 4.0] BUG: unable to handle page fault", "BUG:"),
            ("[ 4.0] Oops: Oops: 0002 [#1]", "Oops"),
            ("[ 4.0] watchdog: BUG: soft lockup - CPU#0 stuck", "BUG:"),
            ("[ 4.0] xe 0000:00:01.0: [drm] *ERROR* GT0: reset failed", "*ERROR*"),
            ("[ 4.0] [drm:foo] device wedged, needs recovery", "wedged"),
            ("[ 4.0] mei_gsc xe.mei-gscfi.256: wait hw ready timed out", "timed out"),
            ("[ 4.0] foo bar 0000:00:01.0: trying reset", "trying reset"),
            // Failures that the SR-IOV code logs below the error level.
            ("[ 4.0] xe 0000:00:01.0: [drm] PF: Tile0: GT0: VF1 FLR failed!", "FLR failed"),
            (
                "[ 4.0] xe 0000:00:01.0: [drm] PF: Tile0: GT0: VF1 resource sanitizing failed (-110)",
                "sanitizing failed",
            ),
            ("[ 4.0] xe 0000:00:01.0: [drm] PF: Failed to enable 2 VFs (-EIO)", "Failed to enable"),
        ] {
            let found = problems(&format!("{GOOD}{line}\n"), Some(CARD));
            assert_eq!(found.iter().map(|problem| problem.pattern).collect::<Vec<_>>(), [pattern], "{line}");
        }
        // Ignored: timeouts of other drivers, and the drivers' names as parts of other words.
        for card in [Some(CARD), None] {
            assert_eq!(problems("[ 4.0] rtc_cmos: timed out\n[ 4.0] executable: *ERROR* in axe\n", card), []);
        }
        // Without an address, a line is a driver's only by its name.
        let lines = "[ 4.0] foo bar 0000:00:01.0: trying reset\n[ 4.0] xe 0000:00:01.0: trying reset\n";
        assert_eq!(problems(lines, Some(CARD)).len(), 2);
        assert_eq!(problems(lines, None).len(), 1);
    }

    #[test]
    fn missing_lines_are_reported() {
        assert_eq!(missing("nothing\n", &[&["Initialized xe", CARD]]), [&["Initialized xe", CARD]]);
    }
}
