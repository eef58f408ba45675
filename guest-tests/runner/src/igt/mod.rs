// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The IGT scenario: runs every line of a list in a guest with the card, and boots a new guest after a hang or crash.

pub mod agent;
pub mod list;
mod protocol;
mod verdict;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arctic_guest_agent::report::WorkReport;
use serde::{Deserialize, Serialize};

use crate::card::{CardReport, Functions, Unmodelled};
use crate::clocks::{self, Clocks, Comparison};
use crate::guest_process::{GuestEvent, GuestSpec, Options, RunningGuest, Server, Setup};
use crate::host_load::{HostLoad, Snapshot};
use crate::image::igt_programs;
use crate::interrupt::Interrupted;
use crate::kernel_log;
use crate::path::PrintedPath;
use crate::progress::Progress;
use crate::qemu::Port;
use crate::report::{self, SCHEMA, TestResult, Totals, Verdict};
use crate::skipped::{self, Skipped};
use list::Test;
use protocol::{Ended, Message, Plan};

/// The plan's file on the results share.
const PLAN: &str = "plan.json";
/// The report of the workloads on the results share.
const WORK_REPORT: &str = "work.json";
/// The kernel log up to the end of the workloads, on the results share. Tests may cause lines that workloads must not.
const WORK_LOG: &str = "work.log";
/// Time beyond a test's limit for the guest to kill the test and report its result.
const GRACE: Duration = Duration::from_secs(60);
/// Minimum period for a meaningful load: for a shorter test, the load since the start of its guest is reported.
const LOAD_SECONDS: f64 = 1.0;
/// The name of the PF.
pub const PHYSICAL: &str = "pf";
/// The name of a VF.
pub const VIRTUAL: &str = "vf";

/// The tests of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The tests, in order of execution.
    pub tests: Vec<Test>,
    /// Whether the workloads of a boot run before the tests, in the same guest.
    pub work: bool,
    /// Time limit of one test on a host with a core for each runnable task; longer on others ([`HostLoad::slowdown`]).
    /// [`Options::limit`] applies to boot, driver load and shutdown.
    pub limit: Duration,
}

/// The outcome of an IGT run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IgtReport {
    /// Number of the document's form, [`SCHEMA`].
    #[serde(default)]
    pub schema: u32,
    /// Whether no test failed.
    pub ok: bool,
    /// Totals of `results`.
    #[serde(flatten)]
    pub totals: Totals,
    /// The results of the workloads, if they were requested, then one result per line of the list, in order, then one for
    /// each guest with a splat outside the tests in its kernel log.
    pub results: Vec<TestResult>,
    /// The clock of each guest compared with the host's.
    pub clocks: Vec<Comparison>,
    /// Whether a guest's clock deviated so far that the run is inconclusive; independent of `ok`.
    pub inconclusive: bool,
    /// Load of the host during the run.
    pub host_load: HostLoad,
    /// Number of guests used; every hang or crash requires another one.
    pub guests: u32,
    /// The guest's kernel release.
    pub kernel: String,
    /// The card's file or name.
    pub card: String,
    /// The card's function under test.
    pub function: String,
    /// Number of VFs.
    pub vfs: u8,
    /// Trapped accesses by region, for all guests.
    pub trapped: BTreeMap<String, u64>,
    /// Accessed registers that the card does not model.
    pub unmodelled: Vec<Unmodelled>,
    /// Commands that engines skipped or executed partially, by engine and name.
    pub undone: BTreeMap<String, u64>,
    /// Commands that engines skipped, by function, origin, engine and name.
    pub skipped_commands: Vec<Skipped>,
    /// Versions of the components used.
    pub versions: BTreeMap<String, String>,
    /// Directory with the complete logs of the guests.
    pub log: PrintedPath,
}

/// Runs `job`. Calls `on_result` with each result as soon as it is known. Returns an error only if no result is available.
pub fn run(
    options: &Options,
    job: &Job,
    on_result: &mut dyn FnMut(&TestResult),
    progress: &dyn Progress,
) -> Result<IgtReport> {
    let setup = Setup::prepare(options, "igt", progress)?;
    let root = setup.parts.igt.clone().context("IGT is not in the cache, and this host has no apt-get to fetch it")?;
    let programs = igt_programs(&root)?;
    let mut results: Vec<Option<TestResult>> = vec![None; job.tests.len()];
    for (result, test) in results.iter_mut().zip(&job.tests).filter(|(_, test)| !programs.contains(&test.binary)) {
        let absent = TestResult::new(test.to_string(), Verdict::Fail, "absent: this IGT has no such program", 0.0);
        on_result(&absent);
        *result = Some(absent);
    }
    let binaries: Vec<String> =
        job.tests.iter().map(|test| test.binary.clone()).filter(|name| programs.contains(name)).collect();
    let spec = GuestSpec::only(options.functions);
    let image = setup.build_image(&spec, script(job.work), &binaries, progress)?;
    let log = setup.folder.join("igt.log");
    let load = Snapshot::take();
    let mut run = Run {
        spec,
        address: options.place.address(0),
        image,
        log: File::create(&log).with_context(|| format!("{} cannot be created", log.display()))?,
        job,
        results,
        splats: Vec::new(),
        kernel_logs: Vec::new(),
        on_result,
        progress,
        stage: options.limit,
        limit: job.limit,
        card: CardReport::default(),
        guests: 0,
        clocks: Vec::new(),
        boot_load: load,
        test_load: load,
    };
    while run.results.iter().any(Option::is_none) {
        match run.run_guest(&setup, options) {
            Err(error) if run.guests > 1 && !error.is::<Interrupted>() => run.give_up(&format!("{error:#}")),
            outcome => outcome?,
        }
    }
    let function = match options.functions {
        Functions::Provisioned(_) => VIRTUAL,
        _ => PHYSICAL,
    };
    let mut results = if job.work { work(&setup.results(&run.spec)?, &run.address) } else { Vec::new() };
    results.iter().for_each(|result| (run.on_result)(result));
    results.extend(run.results.into_iter().flatten());
    results.extend(run.kernel_logs);
    let totals = Totals::of(&results);
    Ok(IgtReport {
        schema: SCHEMA,
        ok: totals.failed == 0,
        totals,
        results,
        inconclusive: clocks::inconclusive(&run.clocks).is_some(),
        clocks: run.clocks,
        host_load: load.until_now(),
        guests: run.guests,
        kernel: setup.parts.kernel.release.clone(),
        card: options.card.clone().unwrap_or_else(|| "none".into()),
        function: function.into(),
        vfs: options.functions.vfs(),
        trapped: run.card.trapped,
        unmodelled: run.card.unmodelled,
        undone: run.card.undone,
        skipped_commands: run.card.skipped_commands,
        versions: setup.parts.versions.clone(),
        log: setup.folder.clone().into(),
    })
}

/// The shell script that the guest's init runs. A guest after a hang does not repeat the workloads.
fn script(work: bool) -> String {
    let work = match work {
        true => format!(
            "if [ ! -e /mnt/{WORK_REPORT} ]; then\nload-driver >&3\n\
             arctic guest work --out /mnt/{WORK_REPORT} --picture /tmp/testcard.raw\ndmesg > /mnt/{WORK_LOG}\nfi\n"
        ),
        false => String::new(),
    };
    format!("{work}arctic igt --agent /mnt/{PLAN}\nSTATUS=$?\n")
}

/// Returns the results of the workloads on the card at the PCI address `card`, from the guest's report in `folder`, and
/// the result of the kernel log.
fn work(folder: &Path, card: &str) -> Vec<TestResult> {
    let text = fs::read_to_string(folder.join(WORK_REPORT)).context("the guest has written no work report");
    let log = fs::read_to_string(folder.join(WORK_LOG)).unwrap_or_default();
    let problem = match kernel_log::problems(&log, Some(card)).into_iter().next() {
        _ if log.is_empty() => "the guest has written no kernel log".to_owned(),
        problem => problem.map(|problem| problem.line).unwrap_or_default(),
    };
    let verdict = if problem.is_empty() { Verdict::Pass } else { Verdict::Fail };
    let log = TestResult::new("kernel log", verdict, problem, 0.0);
    let results = match text
        .and_then(|text| serde_json::from_str::<WorkReport>(&text).context("the work report cannot be parsed"))
    {
        Ok(report) => report
            .results
            .iter()
            .map(|outcome| outcome.result(format!("{}: {}", outcome.engine, outcome.what)))
            .collect(),
        Err(error) => vec![TestResult::new("work", Verdict::Fail, format!("{error:#}"), 0.0)],
    };
    results.into_iter().chain([log]).collect()
}

struct Run<'a> {
    spec: GuestSpec,
    /// PCI address of the card in the guest.
    address: String,
    image: File,
    job: &'a Job,
    /// Indexed by position in the list; `None` if not yet run.
    results: Vec<Option<TestResult>>,
    /// The splats in the kernel log of the running guest that results of tests report.
    splats: Vec<String>,
    /// One failure for each guest with another splat in its kernel log.
    kernel_logs: Vec<TestResult>,
    on_result: &'a mut dyn FnMut(&TestResult),
    progress: &'a dyn Progress,
    /// Time limit of boot, driver load and shutdown.
    stage: Duration,
    /// Time limit of a test in the present guest.
    limit: Duration,
    log: File,
    card: CardReport,
    guests: u32,
    /// One comparison per guest.
    clocks: Vec<Comparison>,
    /// Load snapshots from the start of the guest and from the start of the test.
    boot_load: Snapshot,
    test_load: Snapshot,
}

/// An event that the host waits for, with its deadline.
struct Wait {
    /// The action expected from the guest; empty while a test runs.
    what: &'static str,
    limit: Duration,
    deadline: Instant,
}

impl Wait {
    fn new(what: &'static str, limit: Duration) -> Self {
        Self { what, limit, deadline: Instant::now() + limit }
    }

    /// Returns the reason to report for a guest that was silent until the deadline.
    fn reason(&self) -> String {
        match self.what {
            "" => "the guest hung".into(),
            what => format!("the guest did not {what} within {} s", self.limit.as_secs()),
        }
    }
}

/// Outcome of a plan in one guest.
enum GuestEnd {
    /// The job has ended. Tests without a result need a new guest.
    Done,
    /// The guest hung or ended unexpectedly, with the reason.
    Lost(String),
}

impl Run<'_> {
    /// Runs the remaining tests in one guest until the plan is complete or the guest is lost.
    fn run_guest(&mut self, setup: &Setup<'_>, options: &Options) -> Result<()> {
        let left = self.results.iter().enumerate().filter(|(_, result)| result.is_none());
        let tests: Vec<(usize, Test)> = left.map(|(number, _)| (number, self.job.tests[number].clone())).collect();
        let first = tests[0].0;
        let card = options.card.as_ref().map(|_| self.address.clone());
        self.limit = self.job.limit.mul_f64(Snapshot::take().until_now().slowdown());
        let plan = Plan { tests, limit: self.limit.as_secs(), driver: options.driver, card };
        fs::write(setup.results(&self.spec)?.join(PLAN), serde_json::to_vec(&plan)?)
            .context("the plan cannot be written")?;
        self.guests += 1;
        self.splats.clear();
        self.boot_load = Snapshot::take();
        self.test_load = self.boot_load;
        self.progress.print_line(&format!("booting guest {} for {} tests", self.guests, plan.tests.len()));
        let mut server = setup.serve(self.guests, self.progress)?;
        let mut running_guest = setup.boot(&self.spec, &server, &self.image, self.guests)?;
        let seconds = running_guest.until_ready(&mut server)?;
        self.progress.print_line(&format!("the guest is up after {seconds:.1} s"));
        let mut current = None;
        let mut started = Instant::now();
        let mut clocks = Clocks::default();
        let outcome = self.follow(&mut running_guest, &mut server, &mut current, &mut started, &mut clocks);
        self.clocks.extend(clocks.compare(format!("guest {}", self.guests)));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            // The card's server process has exited, which is a failure of the running test.
            Err(error) => GuestEnd::Lost(format!("{error:#}")),
        };
        let reason = match outcome {
            GuestEnd::Done => None,
            GuestEnd::Lost(reason) => Some(reason),
        };
        let console = running_guest.console_text();
        match running_guest.stop().and_then(|()| server.stop()) {
            Ok(report) => self.add(report.unwrap_or_default()),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => self.progress.print_line(&format!("{error:#}")),
        }
        // A guest lost between two tests is replaced without failing a test if it has completed one. Otherwise its
        // first test fails, since the run would not terminate if each new guest were lost before its first result.
        let victim = current
            .or((self.results[first].is_none()).then_some(first))
            .filter(|number| self.results[*number].is_none());
        if let Some(number) = victim {
            let reason = reason.unwrap_or_else(|| "the guest's test agent ended early (see job.log)".into());
            let test = self.job.tests[number].to_string();
            self.record(number, TestResult::new(test, Verdict::Fail, reason, started.elapsed().as_secs_f64()));
        } else if let Some(line) = unreported_splat(&console, &self.splats) {
            let name = format!("kernel log of guest {}", self.guests);
            let mut result = TestResult::new(name, Verdict::Fail, line, 0.0);
            report::mark_overload([&mut result], &self.boot_load.until_now());
            (self.on_result)(&result);
            self.kernel_logs.push(result);
        }
        Ok(())
    }

    /// Handles the guest's events until its job is done or the guest is lost. Sets `current` and `started` to the
    /// running test and its start time, and adds readings of the guest's clock to `clocks`.
    fn follow(
        &mut self,
        running_guest: &mut RunningGuest,
        server: &mut Server,
        current: &mut Option<usize>,
        started: &mut Instant,
        clocks: &mut Clocks,
    ) -> Result<GuestEnd> {
        let mut wait = Wait::new("start its test agent", self.stage);
        let mut done = false;
        loop {
            let event = match running_guest.next(server, Some(wait.deadline))? {
                GuestEvent::Event(event) => event,
                GuestEvent::Silence => {
                    let trouble =
                        trouble(running_guest, &self.address).map_or(String::new(), |line| format!(": {line}"));
                    let reason = wait.reason() + &trouble;
                    if done {
                        // Also reported here, since no test may be left to fail with this reason.
                        self.progress.print_line(&reason);
                    }
                    return Ok(GuestEnd::Lost(reason));
                }
                // Messages that were in transit when the job ended have arrived by now.
                GuestEvent::End if done => return Ok(GuestEnd::Done),
                GuestEvent::End => {
                    let reason = trouble(running_guest, &self.address).unwrap_or_else(|| running_guest.last_words());
                    return Ok(GuestEnd::Lost(format!("the guest crashed: {reason}")));
                }
            };
            match event.port {
                Port::Agent => {
                    *started = Instant::now();
                    match serde_json::from_slice(&event.bytes).context("the agent's message cannot be parsed")? {
                        Message::Started { number, clock } => {
                            clocks.add(clock, event.at);
                            self.test_load = Snapshot::take();
                            *current = Some(number).filter(|number| *number < self.results.len());
                            wait = Wait::new("load its driver", self.stage);
                        }
                        Message::Running => wait = Wait::new("", self.limit + GRACE),
                        Message::Ended(ended) => {
                            clocks.add(ended.clock, event.at);
                            *current = None;
                            wait = Wait::new("start its next test", self.stage);
                            self.ended(&ended)?;
                            if ended.needs_new_guest() {
                                // The state left by such a test could fail the next one.
                                return Ok(GuestEnd::Lost("the guest cannot be used for another test".into()));
                            }
                        }
                    }
                }
                Port::Control => {
                    clocks.record(&String::from_utf8_lossy(&event.bytes), event.at);
                    if event.bytes.starts_with(b"done") {
                        done = true;
                        wait = Wait::new("shut down", self.stage);
                    }
                }
                _ => self.log.write_all(&event.bytes)?,
            }
        }
    }

    fn ended(&mut self, ended: &Ended) -> Result<()> {
        let Some(test) = self.job.tests.get(ended.number) else { return Ok(()) };
        let lines = ended.kernel_before.iter().chain(&ended.kernel).map(|(_, line)| line);
        self.splats.extend(lines.filter(|line| kernel_log::splat(line).is_some()).cloned());
        let result = verdict::evaluate(test, ended, &self.address);
        writeln!(self.log, "==== {result}\n{}{}", ended.output, ended.errors)?;
        self.record(ended.number, result);
        Ok(())
    }

    /// Fails all remaining tests. The results so far are thus reported even if no further guest boots.
    fn give_up(&mut self, reason: &str) {
        for number in 0..self.results.len() {
            if self.results[number].is_none() {
                let test = self.job.tests[number].to_string();
                self.record(number, TestResult::new(test, Verdict::Fail, format!("not run: {reason}"), 0.0));
            }
        }
    }

    fn record(&mut self, number: usize, mut result: TestResult) {
        if result.result == Verdict::Fail {
            let since = if self.test_load.seconds() >= LOAD_SECONDS { &self.test_load } else { &self.boot_load };
            report::mark_overload([&mut result], &since.until_now());
        }
        (self.on_result)(&result);
        self.results[number] = Some(result);
    }

    fn add(&mut self, report: CardReport) {
        for (region, count) in report.trapped {
            *self.card.trapped.entry(region).or_default() += count;
        }
        for (what, count) in report.undone {
            *self.card.undone.entry(what).or_default() += count;
        }
        skipped::add(&mut self.card.skipped_commands, report.skipped_commands);
        for register in report.unmodelled {
            match self.card.unmodelled.iter_mut().find(|known| known.offset == register.offset) {
                Some(known) => {
                    known.reads += register.reads;
                    known.writes += register.writes;
                }
                None => self.card.unmodelled.push(register),
            }
        }
    }
}

/// Returns the first unexpected line in the guest's kernel log, as a diagnostic for a lost guest.
fn trouble(running_guest: &RunningGuest, address: &str) -> Option<String> {
    let problems = kernel_log::problems(&running_guest.console_text(), Some(address));
    problems.into_iter().next().map(|problem| problem.line)
}

/// Returns the first splat in a guest's kernel log `console` that is not among `reported`: after the last test, or at
/// shutdown. IGT also writes to the kernel log.
fn unreported_splat(console: &str, reported: &[String]) -> Option<String> {
    let is_reported = |line: &str| reported.iter().any(|splat| line.contains(splat));
    let mut splats = console.lines().filter(|line| kernel_log::splat(line).is_some() && !line.contains("[IGT]"));
    splats.find(|line| !is_reported(line)).map(|line| line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splat_outside_the_tests_is_found() {
        let during = "WARNING: CPU: 0 PID: 1 at drivers/gpu/drm/xe/xe_bo.c:1";
        let log = format!("[    4.0] xe: fine\r\n[    5.0] [IGT] x: BUG: y\r\n[    6.0] {during}\r\n");
        assert_eq!(unreported_splat(&log, &[during.into()]), None);
        let late = "[   90.0] BUG: unable to handle page fault";
        assert_eq!(unreported_splat(&format!("{log}{late}\r\n"), &[during.into()]), Some(late.into()));
    }

    #[test]
    fn work_without_a_report_or_with_a_bad_kernel_log_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let results = work(folder.path(), "0000:00:02.0");
        assert_eq!(results.iter().map(|result| result.result).collect::<Vec<_>>(), [Verdict::Fail; 2]);
        assert!(results[0].reason.contains("no work report"), "{}", results[0].reason);
        let log = |line: &str| {
            fs::write(folder.path().join(WORK_LOG), line).unwrap();
            work(folder.path(), "0000:00:02.0").pop().unwrap().result
        };
        let lines = ["i915 0000:00:02.0: [drm] fine\n", "i915 0000:00:02.0: [drm] *ERROR* not fine\n"];
        assert_eq!(lines.map(log), [Verdict::Pass, Verdict::Fail]);
    }

    #[test]
    fn a_shell_understands_the_job_with_and_without_work() {
        for work in [false, true] {
            let text = script(work);
            assert_eq!(text.contains("guest work"), work);
            let status = std::process::Command::new("sh").args(["-n", "-c", &text]).status().unwrap();
            assert!(status.success(), "{text}");
        }
    }

    #[test]
    fn a_lost_guest_is_reported_with_its_stage() {
        let wait = Wait::new("load its driver", Duration::from_secs(300));
        assert_eq!(wait.reason(), "the guest did not load its driver within 300 s");
        assert_eq!(Wait::new("", Duration::from_secs(180)).reason(), "the guest hung");
    }
}
