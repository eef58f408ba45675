// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tracks one guest through its stages: parses its control messages, applies time limits and detects its exit.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Mode, Sink};
use crate::clocks::{Clocks, Comparison};
use crate::driver::Driver;
use crate::guest_process::{GuestEvent, GuestSpec, RunningGuest, Setup};
use crate::progress::Progress;
use crate::qemu::{Event, Port};
use crate::terminal;

/// Minimum interval between two progress lines of a guest in a run with several guests.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// A guest's state as reported on its control port.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Guest {
    /// Seconds from the start of QEMU until init was about to run the job script.
    pub boot_seconds: f64,
    /// Uptime of the guest's kernel at that moment, in seconds.
    pub ready_uptime: Option<f64>,
    /// Release of the guest's kernel.
    pub kernel: Option<String>,
    /// Guest uptime in seconds before and after modprobe, and modprobe's exit status.
    pub probe: Option<(f64, f64, i32)>,
    /// Modules loaded after hotplug.
    pub modules: Vec<String>,
    /// The kernel's taint mask at the end of the job.
    pub taint: Option<u64>,
    /// Problems that init reported.
    pub problems: Vec<String>,
    /// Exit status of the job.
    pub status: Option<i32>,
    /// Reason for the loss of the guest before it completed its job; `None` if it was not lost.
    pub lost: Option<String>,
}

impl Guest {
    fn parse_line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => self.ready_uptime = rest.parse().ok(),
            "kernel" => self.kernel = Some(rest.to_owned()),
            "probe" => {
                let mut fields = rest.split(' ');
                let mut field = || fields.next();
                self.probe = (|| Some((field()?.parse().ok()?, field()?.parse().ok()?, field()?.parse().ok()?)))();
            }
            "modules" => self.modules = rest.split_whitespace().map(str::to_owned).collect(),
            "taint" => self.taint = rest.parse().ok(),
            "problem" => self.problems.push(rest.to_owned()),
            "done" => self.status = rest.parse().ok(),
            _ => {}
        }
    }

    /// Seconds from the start of QEMU to the moment at which the guest's kernel has been up for `uptime` seconds.
    pub(super) fn since_power_on(&self, uptime: Option<f64>) -> Option<f64> {
        Some(self.boot_seconds + uptime? - self.ready_uptime?)
    }

    /// Seconds that modprobe took, including the probe of the card.
    pub(super) fn probe_seconds(&self) -> f64 {
        self.probe.map_or(0.0, |(start, end, _)| end - start)
    }
}

/// Effect of one guest's event on the rest of the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No effect.
    Continue,
    /// The job has reached the mark with this name.
    Mark(String),
    /// The PF guest has enabled the VFs for the other guests.
    Enabled,
    /// The VF guest waits for the host to start its work.
    Waiting,
    /// The guest has shut down or is lost.
    Ended,
}

/// Tracks one guest.
pub(super) struct Follower {
    /// The guest's state as reported on its control port.
    pub guest: Guest,
    clocks: Clocks,
    mode: Mode,
    driver: Driver,
    /// Prefix of its progress lines; empty if the run has only one guest.
    name: String,
    limit: Duration,
    stage: &'static str,
    deadline: Option<Instant>,
    log: File,
    line: Vec<u8>,
    last_progress: Option<Instant>,
}

impl Follower {
    /// Creates the follower of the guest in `spec`, just before its VM is started. `limit` is the time limit of each
    /// stage.
    pub(super) fn new(setup: &Setup<'_>, spec: &GuestSpec, mode: &Mode, limit: Duration) -> Result<Self> {
        let path = setup.folder.join(format!("{}.log", spec.file("job")));
        let log = File::create(&path).with_context(|| format!("{} cannot be created", path.display()))?;
        let name = spec.name.clone();
        let mode = mode.clone();
        let deadline = Some(Instant::now() + limit);
        Ok(Self {
            guest: Guest::default(),
            clocks: Clocks::default(),
            mode,
            driver: setup.driver(),
            name,
            limit,
            stage: "boot",
            deadline,
            log,
            line: Vec::new(),
            last_progress: None,
        })
    }

    /// Returns the comparison of the guest's clock with the host's so far.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        self.clocks.compare(if self.name.is_empty() { "guest" } else { &self.name })
    }

    /// The host has stopped the guest for this time.
    pub(super) fn stopped(&mut self, duration: Duration) {
        self.clocks.stopped(duration);
    }

    /// Time at which the guest is considered hung; `None` if it has no time limit.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Enters the guest's next stage and restarts the time limit.
    pub(super) fn enter(&mut self, stage: &'static str) {
        self.stage = stage;
        self.deadline = Some(Instant::now() + self.limit);
    }

    /// Records the loss of the guest. Only the first `reason` is kept.
    pub(super) fn lose(&mut self, reason: String) -> Step {
        self.guest.lost.get_or_insert(reason);
        Step::Ended
    }

    /// Handles an event of the guest `running`.
    pub(super) fn take(
        &mut self,
        event: GuestEvent,
        running: &RunningGuest,
        sink: &mut dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Step> {
        match event {
            GuestEvent::Event(event) => self.event(&event, running, sink, progress),
            // Messages that were in transit when the job ended have arrived by now.
            GuestEvent::End if self.guest.status.is_some() => Ok(Step::Ended),
            GuestEvent::End => Ok(self.lose(format!("the guest crashed: {}", running.last_words()))),
            GuestEvent::Silence => {
                Ok(self.lose(format!("the guest did not {} within {} s", self.stage, self.limit.as_secs())))
            }
        }
    }

    fn event(
        &mut self,
        event: &Event,
        running: &RunningGuest,
        sink: &mut dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Step> {
        if event.port != Port::Terminal {
            self.log.write_all(&event.bytes)?;
        }
        match event.port {
            Port::Control => {
                self.log.write_all(b"\n")?;
                let text = String::from_utf8_lossy(&event.bytes);
                self.clocks.record(&text, event.at);
                return self.control(&text, running, progress);
            }
            Port::Output | Port::Errors if self.mode == Mode::Work => {
                // Each check prints a line, so output indicates progress.
                self.deadline = Some(Instant::now() + self.limit);
                self.line.extend_from_slice(&event.bytes);
                while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
                    let rest = self.line.split_off(end + 1);
                    let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
                    self.line = rest;
                    self.show(&line, progress);
                }
            }
            Port::Output | Port::Terminal => sink.output(&event.bytes),
            Port::Errors => sink.errors(&event.bytes),
            Port::Agent => {}
        }
        Ok(Step::Continue)
    }

    fn control(&mut self, text: &str, running: &RunningGuest, progress: &dyn Progress) -> Result<Step> {
        self.guest.parse_line(text);
        match text.split_once(' ').unwrap_or((text, "")) {
            ("ready", _) => {
                self.guest.boot_seconds = running.started().elapsed().as_secs_f64();
                let seconds = self.guest.boot_seconds;
                self.print_line(&format!("the guest is up after {seconds:.1} s, loading {}", self.driver), progress);
                self.enter("load its driver");
            }
            ("working", _) => {
                self.enter("finish its work");
                if self.mode != Mode::Work {
                    // A user's command or shell has no time limit.
                    self.deadline = None;
                }
                match self.guest.probe {
                    Some((start, end, 0)) => {
                        self.print_line(&format!("{} is loaded after {:.1} s", self.driver, end - start), progress);
                    }
                    _ => self.print_line(&format!("{} could not be loaded", self.driver), progress),
                }
                if self.mode == Mode::Shell {
                    progress.print_line("a shell in the guest; `exit` ends it, and Ctrl-] ends a guest that hangs");
                    terminal::feed(running.terminal())?;
                }
            }
            ("waiting", _) => {
                // No time limit: the guest waits for the other guests, each of which has a time limit.
                self.deadline = None;
                return Ok(Step::Waiting);
            }
            ("mark", name) => return Ok(Step::Mark(name.to_owned())),
            ("vfs", _) => return Ok(Step::Enabled),
            ("done", _) => self.enter("shut down"),
            _ => {}
        }
        Ok(Step::Continue)
    }

    /// Prints `line` as progress. In a run with several guests, lines other than failures are limited to one per
    /// `PROGRESS_INTERVAL`.
    fn show(&mut self, line: &str, progress: &dyn Progress) {
        let due = self.last_progress.is_none_or(|last_progress| last_progress.elapsed() >= PROGRESS_INTERVAL);
        if self.name.is_empty() || due || line.starts_with("FAIL") {
            self.last_progress = Some(Instant::now());
            self.print_line(&format!("  {line}"), progress);
        }
    }

    fn print_line(&self, line: &str, progress: &dyn Progress) {
        match self.name.is_empty() {
            true => progress.print_line(line),
            false => progress.print_line(&format!("{:<5} {line}", self.name)),
        }
    }

    /// Fails if the guest was lost before its job started, since there are then no results to evaluate.
    pub(super) fn must_have_come_up(&self, running: &RunningGuest) -> Result<()> {
        match &self.guest.lost {
            Some(reason) if self.guest.boot_seconds == 0.0 => {
                Err(NeverUp { reason: reason.clone(), log: running.console.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The guest was lost before init ran the job, and therefore before the guest accessed the card.
#[derive(Debug, thiserror::Error)]
#[error("{reason} (its log: {log})", log = log.display())]
pub(super) struct NeverUp {
    reason: String,
    log: PathBuf,
}

impl NeverUp {
    /// Returns whether the guest's kernel panicked. QEMU's multi-threaded TCG occasionally causes such a panic while
    /// the kernel patches its code.
    pub(super) fn panicked(&self) -> bool {
        self.reason.contains("Kernel panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_before_boot_differs_from_other_losses() {
        let never_up = |reason: &str| NeverUp { reason: reason.into(), log: "console.log".into() };
        let panic = never_up("[    2.1] Kernel panic - not syncing: Fatal exception in interrupt");
        assert!(panic.panicked() && panic.to_string().ends_with("(its log: console.log)"));
        assert!(!never_up("the guest did not boot within 60 s").panicked());
    }

    #[test]
    fn the_guests_control_lines_are_understood() {
        let mut guest = Guest::default();
        for line in ["kernel 7.2.12", "probe 3.15 5.90 0", "modules drm mei xe ", "taint 64", "done 3", "strange"] {
            guest.parse_line(line);
        }
        assert_eq!(guest.probe, Some((3.15, 5.9, 0)));
        assert_eq!((guest.taint, guest.status), (Some(64), Some(3)));
        assert_eq!(guest.modules, ["drm", "mei", "xe"]);
    }
}
