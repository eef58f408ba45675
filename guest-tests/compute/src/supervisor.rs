// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Starts the worker process, follows its events, and ends it if a step takes too long or the process dies.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cases::{Case, named};
use crate::report::{ComputeReport, KernelReport, Stage, Verdict};
use crate::worker::{self, Event};

/// Time for the worker to exit after its last event.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
/// Polling interval while the worker exits.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs `worker` for `cases`, each of which may take `limit`, as may the preparation. `print` receives a line per step.
pub fn follow(
    mut worker: Command,
    cases: &[&'static Case],
    limit: Duration,
    print: &mut dyn FnMut(&str),
) -> Result<ComputeReport> {
    let start = Instant::now();
    let mut child = worker
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the process that uses the drivers cannot be started")?;
    let events = child.stdout.take().context("the worker has no stdout")?;
    let errors = child.stderr.take().context("the worker has no stderr")?;
    let (lines, errors) = (read_lines(events), read_lines(errors));
    let mut run = Run { report: ComputeReport::default(), current: None, ended: false };
    loop {
        let step = run.current.map_or(limit, |case| worker::limit(case, limit));
        match lines.recv_timeout(step) {
            Ok(line) => run.take(&line, print),
            Err(RecvTimeoutError::Timeout) => {
                run.timed_out(step, print);
                // Fails only if the process has already exited.
                let _ = child.kill();
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = exit(&mut child)?;
    run.crashed(status, &errors, print);
    run.complete(cases, print);
    let mut report = run.report;
    report.seconds = start.elapsed().as_secs_f64();
    report.ok =
        report.problem.is_none() && !report.kernels.is_empty() && report.count(Verdict::Right) == report.kernels.len();
    Ok(report)
}

/// The run so far.
struct Run {
    report: ComputeReport,
    /// The case that runs.
    current: Option<&'static Case>,
    /// Whether the reason for the end is known.
    ended: bool,
}

impl Run {
    fn take(&mut self, line: &str, print: &mut dyn FnMut(&str)) {
        // Other lines are the driver's.
        let Ok(event) = serde_json::from_str(line) else { return };
        match event {
            Event::Stage { name, seconds } => {
                print(&format!("{name} after {seconds:.1} s"));
                self.report.stages.push(Stage { name, seconds });
            }
            Event::Device(device) => {
                print(&format!("{} at {}, driver {}", device.name, device.address, device.driver));
                self.report.device = Some(device);
            }
            Event::Begin(name) => self.current = named(&name),
            Event::End(kernel) => {
                if kernel.verdict == Verdict::Right && self.report.first_right.is_none() {
                    self.report.first_right = worker::uptime();
                }
                self.add(kernel, print);
            }
            Event::Problem(problem) => self.end(problem),
        }
    }

    fn add(&mut self, kernel: KernelReport, print: &mut dyn FnMut(&str)) {
        print(&kernel.to_string());
        self.current = None;
        self.report.kernels.push(kernel);
    }

    fn end(&mut self, problem: String) {
        self.ended = true;
        self.report.problem.get_or_insert(problem);
    }

    /// The report of a case that has no result.
    fn without_result(case: &Case, verdict: Verdict, detail: String) -> KernelReport {
        KernelReport {
            name: case.name.into(),
            what: case.what.into(),
            api: case.api.to_string(),
            items: (case.problem)().items() as u64,
            verdict,
            detail,
            ..KernelReport::default()
        }
    }

    fn timed_out(&mut self, limit: Duration, print: &mut dyn FnMut(&str)) {
        let seconds = limit.as_secs_f64();
        match self.current {
            Some(case) => {
                let detail = format!("no end within {seconds:.0} s");
                self.add(Self::without_result(case, Verdict::TimedOut, detail), print);
                self.end(format!("{} did not end, so the kernels after it were not run", case.name));
            }
            None => self.end(format!("the driver did not open the device within {seconds:.0} s")),
        }
    }

    /// Reports the end of a worker that did not run all cases, and for which no reason is known.
    fn crashed(&mut self, status: Option<ExitStatus>, errors: &Receiver<String>, print: &mut dyn FnMut(&str)) {
        if self.ended {
            return;
        }
        let how = match status {
            Some(status) if status.success() && self.current.is_none() => return,
            Some(status) => format!("the process that uses the drivers ended with {status}"),
            None => "the process that uses the drivers does not end".to_owned(),
        };
        let last = std::iter::from_fn(|| errors.recv_timeout(Duration::from_secs(1)).ok()).last();
        let how = last.map_or(how.clone(), |line| format!("{how}: {line}"));
        if let Some(case) = self.current {
            self.add(Self::without_result(case, Verdict::Failed, how.clone()), print);
        }
        self.end(how);
    }

    /// Adds the cases that were not run.
    fn complete(&mut self, cases: &[&'static Case], print: &mut dyn FnMut(&str)) {
        if let (Some(problem), true) = (&self.report.problem, self.report.kernels.is_empty()) {
            print(&format!("FAIL {problem}"));
        }
        for case in cases {
            if self.report.kernels.iter().all(|kernel| kernel.name != case.name) {
                self.report.kernels.push(Self::without_result(case, Verdict::NotRun, String::new()));
            }
        }
    }
}

/// Waits until the worker has exited; kills it after a while. Returns `None` if it does not exit then either.
fn exit(child: &mut Child) -> Result<Option<ExitStatus>> {
    for is_killed in [false, true] {
        if is_killed {
            // Fails only if the process has already exited.
            let _ = child.kill();
        }
        let deadline = Instant::now() + EXIT_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().context("the worker cannot be waited for")? {
                return Ok(Some(status));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(None)
}

/// Reads lines in a thread. The receiver is disconnected at the end of the stream.
fn read_lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::CASES;

    /// A worker that is a shell script, with `cases` first cases. Each line of its stdout is an event.
    fn run(script: &str, cases: usize) -> (ComputeReport, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let cases: Vec<&'static Case> = CASES.iter().take(cases).collect();
        let mut lines = Vec::new();
        let report = follow(command, &cases, Duration::from_millis(700), &mut |line| lines.push(line.to_owned()));
        (report.unwrap(), lines)
    }

    fn end(name: &str, verdict: Verdict) -> String {
        let report = KernelReport { name: name.into(), verdict, items: 7, ..KernelReport::default() };
        format!("echo '{}'\n", serde_json::to_string(&Event::End(report)).unwrap())
    }

    fn begin(name: &str) -> String {
        format!("echo '{}'\n", serde_json::to_string(&Event::Begin(name.into())).unwrap())
    }

    fn verdicts(report: &ComputeReport) -> Vec<Verdict> {
        report.kernels.iter().map(|kernel| kernel.verdict).collect()
    }

    #[test]
    fn a_run_in_which_all_is_right_passes() {
        let script = format!(
            "echo 'a line of the driver'\n{}{}{}{}",
            begin("vadd"),
            end("vadd", Verdict::Right),
            begin("vadd_ids"),
            end("vadd_ids", Verdict::Right)
        );
        let (report, lines) = run(&script, 2);
        assert!(report.ok && report.problem.is_none() && report.first_right.is_some(), "{report:?}");
        assert_eq!((lines.len(), report.kernels.len()), (2, 2));
        let (report, _) = run(&(begin("vadd") + &end("vadd", Verdict::Wrong)), 1);
        assert_eq!((report.ok, report.first_right, verdicts(&report)), (false, None, vec![Verdict::Wrong]));
    }

    /// The kernels after it are reported as not run, and the process is ended.
    #[test]
    fn a_kernel_that_does_not_end_does_not_hang_the_run() {
        let script = format!("{}{}{}exec sleep 60", begin("vadd"), end("vadd", Verdict::Right), begin("vadd_ids"));
        let start = Instant::now();
        let (report, lines) = run(&script, 4);
        assert!(start.elapsed() < Duration::from_secs(20));
        let expected = [Verdict::Right, Verdict::TimedOut, Verdict::NotRun, Verdict::NotRun];
        assert_eq!((report.ok, verdicts(&report)), (false, expected.to_vec()));
        assert_eq!(report.problem.as_deref(), Some("vadd_ids did not end, so the kernels after it were not run"));
        assert!(lines[1].starts_with("vadd_ids            HUNG"), "{lines:?}");
    }

    #[test]
    fn a_driver_that_crashes_fails_the_kernel_that_ran() {
        let (report, _) = run(&format!("{}echo 'Abort was called' >&2\nkill -ABRT $$", begin("vadd")), 2);
        assert_eq!(verdicts(&report), [Verdict::Failed, Verdict::NotRun]);
        let problem = report.problem.unwrap();
        assert!(problem.contains("signal: 6") && problem.ends_with(": Abort was called"), "{problem}");
    }

    #[test]
    fn a_device_that_cannot_be_opened_is_one_problem() {
        let (report, lines) = run(r#"echo '{"problem":"OpenCL has no GPU"}'"#, 1);
        assert_eq!((report.ok, report.problem.as_deref()), (false, Some("OpenCL has no GPU")));
        assert_eq!((verdicts(&report), lines), (vec![Verdict::NotRun], vec!["FAIL OpenCL has no GPU".to_owned()]));
        let (report, _) = run("exec sleep 60", 1);
        assert!(report.problem.unwrap().starts_with("the driver did not open the device within"));
    }
}
