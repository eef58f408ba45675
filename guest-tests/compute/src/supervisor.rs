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

/// Number of times that a new process is started after a kernel that failed.
const RESTARTS: u32 = 3;

/// Makes the command of a worker that runs these cases.
pub type Worker<'a> = &'a dyn Fn(&[&'static Case]) -> Result<Command>;

/// Runs workers for `cases`, each of which may take `limit`, as may the preparation. `print` receives a line per step.
///
/// After a kernel that failed, the next ones run in a new process: a fault or a reset ends what the driver has of the card in a
/// process, with all further kernels in it.
pub fn follow(
    worker: Worker<'_>,
    cases: &[&'static Case],
    limit: Duration,
    print: &mut dyn FnMut(&str),
) -> Result<ComputeReport> {
    let start = Instant::now();
    let mut run = Run { report: ComputeReport::default(), current: None, ended: false, restarts: RESTARTS };
    loop {
        let rest: Vec<&'static Case> = cases.iter().copied().filter(|case| !run.has(case)).collect();
        if run.follow(worker(&rest)?, rest.len(), limit, print)? == Outcome::Ended {
            break;
        }
    }
    run.complete(cases, print);
    let mut report = run.report;
    report.seconds = start.elapsed().as_secs_f64();
    report.ok =
        report.problem.is_none() && !report.kernels.is_empty() && report.count(Verdict::Right) == report.kernels.len();
    Ok(report)
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All cases have run, or the rest cannot.
    Ended,
    /// The rest needs a new process.
    Restart,
}

/// The run so far.
struct Run {
    report: ComputeReport,
    /// The case that runs.
    current: Option<&'static Case>,
    /// Whether the reason for the end is known.
    ended: bool,
    /// How often a new process may be started.
    restarts: u32,
}

impl Run {
    /// Runs one worker for `count` cases.
    fn follow(
        &mut self,
        mut worker: Command,
        count: usize,
        limit: Duration,
        print: &mut dyn FnMut(&str),
    ) -> Result<Outcome> {
        let mut child = worker
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("the process that uses the drivers cannot be started")?;
        let events = child.stdout.take().context("the worker has no stdout")?;
        let errors = child.stderr.take().context("the worker has no stderr")?;
        let (lines, errors) = (read_lines(events), read_lines(errors));
        let before = self.report.kernels.len();
        loop {
            let step = self.current.map_or(limit, |case| worker::limit(case, limit));
            match lines.recv_timeout(step) {
                Ok(line) => self.take(&line, print),
                Err(RecvTimeoutError::Timeout) => {
                    self.timed_out(step, print);
                    // Fails only if the process has already exited.
                    let _ = child.kill();
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let done = self.report.kernels.len() - before;
            let failed = self.report.kernels.last().is_some_and(|kernel| kernel.verdict == Verdict::Failed);
            if self.current.is_none() && (1..count).contains(&done) && failed && self.restarts > 0 {
                self.restarts -= 1;
                let _ = child.kill();
                exit(&mut child)?;
                return Ok(Outcome::Restart);
            }
        }
        let status = exit(&mut child)?;
        self.crashed(status, &errors, print);
        Ok(Outcome::Ended)
    }

    /// Whether the case has a result.
    fn has(&self, case: &Case) -> bool {
        self.report.kernels.iter().any(|kernel| kernel.name == case.name)
    }

    fn take(&mut self, line: &str, print: &mut dyn FnMut(&str)) {
        // Other lines are the driver's.
        let Ok(event) = serde_json::from_str(line) else { return };
        match event {
            // A new process repeats these.
            Event::Stage { .. } | Event::Device(_) if self.report.device.is_some() => {}
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
            items: case.problems.list().iter().map(|problem| problem.items() as u64).sum(),
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
            if !self.has(case) {
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

    /// A worker that is a shell script, with `cases` first cases, whose number is $1. Each line of its stdout is an event.
    fn run(script: &str, cases: usize) -> (ComputeReport, Vec<String>) {
        let worker = |rest: &[&Case]| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "worker", &rest.len().to_string()]);
            Ok(command)
        };
        let cases: Vec<&'static Case> = CASES.iter().take(cases).collect();
        let mut lines = Vec::new();
        let report = follow(&worker, &cases, Duration::from_millis(700), &mut |line| lines.push(line.to_owned()));
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

    /// Each kernel that fails ends its process, and the next ones have a new one, a few times.
    #[test]
    fn the_kernels_after_one_that_failed_have_a_new_process() {
        let device = r#"echo '{"device":{"name":"a","driver":"b","address":"c","units":1,"memory_bytes":2}}'"#;
        // The process with three cases fails at the first; the one with two is right.
        let script = format!(
            "{device}\nif [ $1 = 3 ]; then {}{}exec sleep 60\nfi\n{}{}{}{}",
            begin("vadd"),
            end("vadd", Verdict::Failed),
            begin("vadd_ids"),
            end("vadd_ids", Verdict::Right),
            begin("saxpy"),
            end("saxpy", Verdict::Right)
        );
        let (report, lines) = run(&script, 3);
        assert_eq!(verdicts(&report), [Verdict::Failed, Verdict::Right, Verdict::Right]);
        assert_eq!((report.ok, report.problem, lines.len()), (false, None, 4));
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
