// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Maps a test's exit status and output to pass, fail or skip, with IGT's explanation.

use super::list::Test;
use super::protocol::Ended;
use crate::kernel_log;
use crate::report::{TestResult, Verdict};

/// IGT's exit statuses (lib/igt_core.h).
const EXIT_SUCCESS: i32 = 0;
const EXIT_SKIP: i32 = 77;
const EXIT_INVALID: i32 = 79;
/// Line prefixes that terminate an explanation.
const AFTER_REASON: &[&str] = &["Test ", "Subtest ", "Dynamic subtest ", "Stack trace", "**** DEBUG", "#"];
/// Maximum number of lines of an explanation.
const REASON_LINES: usize = 4;

/// Determines the result of `test` of the card at the PCI address `card`.
pub fn evaluate(test: &Test, ended: &Ended, card: &str) -> TestResult {
    let (verdict, reason) = outcome(test, ended);
    // A kernel splat during the test, or between the previous test and this one, overrides a pass or skip.
    let splat = |lines: &[(u8, String)], when: &str| {
        let (_, line) = lines.iter().find(|(_, line)| kernel_log::splat(line).is_some())?;
        Some(format!("kernel log{when}: {line}"))
    };
    let splat = splat(&ended.kernel, "").or_else(|| splat(&ended.kernel_before, " before the test"));
    let (verdict, reason) = match splat {
        Some(splat) if verdict != Verdict::Fail => (Verdict::Fail, splat),
        _ => (verdict, reason),
    };
    let splats = ended.kernel_before.iter().filter(|(_, line)| kernel_log::splat(line).is_some());
    let is_failure = |line: &str| kernel_log::splat(line).is_some() || kernel_log::is_driver_line(line, Some(card));
    let lines = splats.chain(ended.kernel.iter().filter(|(_, line)| is_failure(line)));
    let dmesg = lines.map(|(_, line)| line.clone()).collect();
    TestResult { test: test.to_string(), result: verdict, reason, seconds: ended.seconds, dmesg, overload: None }
}

fn outcome(test: &Test, ended: &Ended) -> (Verdict, String) {
    if let Some(reason) = &ended.not_run {
        return (Verdict::Fail, format!("not run: {reason}"));
    }
    if ended.timed_out {
        return (Verdict::Fail, format!("hung: killed after {:.0} s{}", ended.seconds, last_words(ended)));
    }
    if let Some(signal) = ended.signal {
        return (Verdict::Fail, format!("crashed: signal {signal}{}", last_words(ended)));
    }
    let verdict = verdict_words(test, &ended.output);
    match (ended.status, verdict.as_deref()) {
        (Some(EXIT_SUCCESS), Some("SUCCESS")) => (Verdict::Pass, String::new()),
        (Some(EXIT_SUCCESS | EXIT_SKIP), Some("SKIP")) => (Verdict::Skip, reason(ended)),
        // A program can skip entirely before it reports a subtest.
        (Some(EXIT_SKIP), None) => (Verdict::Skip, reason(ended)),
        (Some(EXIT_INVALID), _) => (Verdict::Fail, "absent: this IGT has no such subtest".into()),
        (status, verdict) => {
            let verdict = verdict.unwrap_or("no verdict");
            let status = status.map_or("no exit status".into(), |status| format!("exit status {status}"));
            let reason = reason(ended);
            (Verdict::Fail, if reason.is_empty() { format!("{verdict}, {status}") } else { reason })
        }
    }
}

/// Returns the keyword of IGT's verdict line: `Subtest X: SUCCESS (0.001s)`, or `SUCCESS (0.014s)` for a program
/// without subtests.
fn verdict_words(test: &Test, output: &str) -> Option<String> {
    let prefix = match (&test.subtest, &test.dynamic) {
        (_, Some(dynamic)) => format!("Dynamic subtest {dynamic}: "),
        (Some(subtest), None) => format!("Subtest {subtest}: "),
        (None, None) => String::new(),
    };
    let is_test = test.subtest.is_none();
    let words = output.lines().filter_map(|line| {
        let line = line.trim();
        let rest = match is_test {
            // A list line without a subtest selects the whole program: its verdict line, or the verdict line of each
            // subtest.
            true => line.strip_prefix("Subtest ").and_then(|line| Some(line.split_once(": ")?.1)).unwrap_or(line),
            false => line.strip_prefix(&prefix)?,
        };
        let (word, time) = rest.split_once(" (")?;
        (time.ends_with("s)") && word.chars().all(|letter| letter.is_ascii_uppercase())).then(|| word.to_owned())
    });
    let words: Vec<String> = words.collect();
    // With several subtests, one success is sufficient, since the exit status shows that none failed.
    words.iter().find(|word| *word == "SUCCESS").filter(|_| is_test).or(words.last()).cloned()
}

/// Returns IGT's explanation: the unmet requirement or failed assertion, with the message that follows.
fn reason(ended: &Ended) -> String {
    let texts = [ended.errors.as_str(), ended.output.as_str()];
    texts.into_iter().find_map(explanation).unwrap_or_else(|| last_words(ended).trim_start_matches(": ").to_owned())
}

fn explanation(text: &str) -> Option<String> {
    let mut lines = text.lines().map(message_of);
    let starts = ["Test requirement: ", "Failed assertion: ", "Test abort"];
    let first = lines.find(|line| starts.iter().any(|start| line.starts_with(start)))?;
    let more = lines.take_while(|line| !line.is_empty() && !AFTER_REASON.iter().any(|word| line.starts_with(word)));
    // "Last errno" is stale and therefore removed. It can follow the message without a line break.
    let kept = std::iter::once(first).chain(more).filter_map(|line| line.split("Last errno:").next());
    let kept: Vec<&str> = kept.map(str::trim).filter(|line| !line.is_empty()).take(REASON_LINES).collect();
    Some(kept.join("; "))
}

/// Strips time and tag from a line: `[6.927668] (core_getversion:153) CRITICAL: Failed assertion: fd >= 0`.
fn message_of(line: &str) -> &str {
    let line = line.trim();
    let line = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    };
    let tagged = line.strip_prefix('(').and_then(|rest| Some(rest.split_once(") ")?.1.split_once(": ")?.1));
    tagged.unwrap_or(line)
}

/// Returns the last line printed by a test, for results without an explanation.
fn last_words(ended: &Ended) -> String {
    let mut lines = ended.errors.lines().chain(ended.output.lines()).map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().map(|line| format!(": {line}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::igt::list::parse;

    const CARD: &str = "0000:00:01.0";

    fn evaluated(line: &str, ended: Ended) -> (Verdict, String) {
        let result = evaluate(&parse(line).unwrap()[0], &ended, CARD);
        (result.result, result.reason)
    }

    fn exit(status: i32, output: &str, errors: &str) -> Ended {
        Ended { status: Some(status), output: output.into(), errors: errors.into(), ..Ended::default() }
    }

    #[test]
    fn only_igts_success_is_a_pass() {
        let pass = (Verdict::Pass, String::new());
        assert_eq!(evaluated("a@b", exit(0, "Starting subtest: b\nSubtest b: SUCCESS (0.001s)\n", "")), pass);
        assert_eq!(evaluated("a", exit(0, "IGT-Version: 2.5\nSUCCESS (0.014s)\n", "")), pass);
        assert_eq!(evaluated("a", exit(0, "Subtest x: SUCCESS (0.0s)\nSubtest y: SKIP (0.0s)\n", "")), pass);
        assert_eq!(
            evaluated("a@b@c", exit(0, "Dynamic subtest c: SUCCESS (0.1s)\nSubtest b: SUCCESS (0.2s)\n", "")),
            pass
        );
        for (status, output) in [
            (0, ""),
            (0, "Subtest b2: SUCCESS (0.001s)\n"),
            (0, "Subtest b: WARN (0.001s)\n"),
            (98, "Subtest b: SUCCESS (0.001s)\n"),
            (139, "Subtest b: CRASH (0.001s)\n"),
        ] {
            assert_eq!(evaluated("a@b", exit(status, output, "")).0, Verdict::Fail, "{status} {output}");
        }
    }

    #[test]
    fn a_skip_has_igts_reason() {
        let output = "IGT-Version: 2.5-NO-GIT\n\
            Test requirement not met in function drm_open_driver, file ../lib/drmtest.c:790:\n\
            Test requirement: !(fd<0)\nNo known gpu found for chipset flags 0x128 (xe)Last errno: 2, No such file\n\
            Subtest b: SKIP (0.000s)\n";
        let reason = "Test requirement: !(fd<0); No known gpu found for chipset flags 0x128 (xe)";
        assert_eq!(evaluated("a@b", exit(77, output, "")), (Verdict::Skip, reason.into()));
    }

    #[test]
    fn a_failure_has_the_assertion_that_failed() {
        let errors = "[6.9] (a:153) CRITICAL: Test assertion failure function main, file ../tests/a.c:91:\n\
            [6.9] (a:153) CRITICAL: Failed assertion: fd >= 0\n\
            [6.9] (a:153) CRITICAL: Last errno: 2, No such file or directory\n\
            [6.9] (a:153) CRITICAL: file descriptor fd failed\nTest a failed.\n**** DEBUG ****\n";
        let expected = (Verdict::Fail, "Failed assertion: fd >= 0; file descriptor fd failed".to_owned());
        assert_eq!(evaluated("a@b", exit(98, "Subtest b: FAIL (0.000s)\n", errors)), expected);
    }

    #[test]
    fn hangs_crashes_and_absent_tests_fail_with_their_reason() {
        let hung = Ended { timed_out: true, seconds: 15.0, ..Ended::default() };
        assert_eq!(evaluated("a@b", hung), (Verdict::Fail, "hung: killed after 15 s".into()));
        let crashed = Ended { signal: Some(11), ..Ended::default() };
        assert_eq!(evaluated("a@b", crashed), (Verdict::Fail, "crashed: signal 11".into()));
        let absent = exit(79, "", "Unknown subtest: b\n");
        assert_eq!(evaluated("a@b", absent), (Verdict::Fail, "absent: this IGT has no such subtest".into()));
    }

    #[test]
    fn kernel_warning_fails_a_test_that_reported_success() {
        let mut ended = exit(0, "Subtest b: SUCCESS (0.001s)\n", "");
        ended.kernel = vec![(4, "xe 0000:00:01.0: [drm] GT0: reset started".into()), (4, "usb 1-1: strange".into())];
        let result = evaluate(&parse("a@b").unwrap()[0], &ended, CARD);
        assert_eq!(result.result, Verdict::Pass);
        // A warning of another driver is not reported.
        assert_eq!(result.dmesg, ["xe 0000:00:01.0: [drm] GT0: reset started"]);
        ended.kernel.push((4, "WARNING: CPU: 0 PID: 1 at drivers/gpu/drm/xe/xe_bo.c:1".into()));
        assert_eq!(evaluated("a@b", ended).0, Verdict::Fail);
    }

    #[test]
    fn kernel_warning_before_a_test_fails_it() {
        let warning = "WARNING: CPU: 0 PID: 1 at drivers/gpu/drm/xe/xe_device.c:1";
        let ended = Ended {
            kernel_before: vec![(4, "xe 0000:00:01.0: [drm] GT0: reset started".into()), (4, warning.into())],
            ..exit(0, "Subtest b: SUCCESS (0.001s)\n", "")
        };
        let result = evaluate(&parse("a@b").unwrap()[0], &ended, CARD);
        assert_eq!((result.result, result.reason), (Verdict::Fail, format!("kernel log before the test: {warning}")));
        assert_eq!(result.dmesg, [warning]);
    }

    #[test]
    fn test_without_a_driver_fails() {
        let reason = "the driver xe could not be loaded: modprobe: exit status: 1";
        let ended = Ended { not_run: Some(reason.into()), ..Ended::default() };
        assert_eq!(evaluated("a@b", ended), (Verdict::Fail, format!("not run: {reason}")));
    }
}
