//! Follows one guest through its stages: what it says, how long it may be silent, and how it ends.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Mode, Sink};
use crate::clocks::{Clocks, Comparison};
use crate::driver::Driver;
use crate::life::{Happening, Life, Seat, Stand};
use crate::progress::Progress;
use crate::qemu::{Event, Port};
use crate::terminal;

/// How often a guest beside others has a line of its work shown.
const TELL: Duration = Duration::from_secs(2);

/// What the guest said on its control port.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Guest {
    /// Seconds from the start of QEMU until init was about to start the job.
    pub boot_seconds: f64,
    /// Release of its kernel.
    pub kernel: Option<String>,
    /// Guest time before and after modprobe, and its status.
    pub probe: Option<(f64, f64, i32)>,
    /// Modules loaded after hotplug.
    pub modules: Vec<String>,
    /// The kernel's taint mask at the end.
    pub taint: Option<u64>,
    /// What init could not do.
    pub problems: Vec<String>,
    /// The job's status.
    pub status: Option<i32>,
    /// Why the guest did not come to the end of its job.
    pub lost: Option<String>,
}

impl Guest {
    fn hear(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "kernel" => self.kernel = Some(rest.to_owned()),
            "probe" => {
                let mut fields = rest.split(' ');
                let mut number = || fields.next()?.parse::<f64>().ok();
                self.probe = (|| Some((number()?, number()?, number()? as i32)))();
            }
            "modules" => self.modules = rest.split_whitespace().map(str::to_owned).collect(),
            "taint" => self.taint = rest.parse().ok(),
            "problem" => self.problems.push(rest.to_owned()),
            "done" => self.status = rest.parse().ok(),
            _ => {}
        }
    }

    /// Seconds that modprobe took, the probe of the card included.
    pub(super) fn probe_seconds(&self) -> f64 {
        self.probe.map_or(0.0, |(start, end, _)| end - start)
    }
}

/// What a happening means beyond the guest itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    On,
    /// The job is at the mark with this name.
    Mark(String),
    /// The physical function's guest has enabled the virtual functions for others.
    Enabled,
    /// The virtual function's guest waits for the host's word.
    Waiting,
    /// The guest has shut down, or is lost.
    Over,
}

/// Follows one guest.
pub(super) struct Follower {
    /// What it said.
    pub guest: Guest,
    clocks: Clocks,
    mode: Mode,
    driver: Driver,
    /// In front of its progress lines; empty for the only guest of a run.
    name: String,
    limit: Duration,
    stage: &'static str,
    deadline: Option<Instant>,
    log: File,
    line: Vec<u8>,
    told: Option<Instant>,
}

impl Follower {
    /// For the guest in `seat`, whose machine starts now; a stage may take `limit`.
    pub(super) fn new(stand: &Stand<'_>, seat: &Seat, mode: &Mode, limit: Duration) -> Result<Self> {
        let path = stand.folder.join(format!("{}.log", seat.file("job")));
        let log = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        let name = seat.name.clone();
        let mode = mode.clone();
        let deadline = Some(Instant::now() + limit);
        Ok(Self {
            guest: Guest::default(),
            clocks: Clocks::default(),
            mode,
            driver: stand.driver(),
            name,
            limit,
            stage: "come up",
            deadline,
            log,
            line: Vec::new(),
            told: None,
        })
    }

    /// The guest's clock against the host's so far.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        self.clocks.compare(if self.name.is_empty() { "guest" } else { &self.name })
    }

    /// Until when the guest may be silent.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The guest begins its next stage now, and may take the whole limit for it.
    pub(super) fn enter(&mut self, stage: &'static str) {
        self.stage = stage;
        self.deadline = Some(Instant::now() + self.limit);
    }

    /// The guest does not go on, for `reason`.
    pub(super) fn lose(&mut self, reason: String) -> Step {
        self.guest.lost.get_or_insert(reason);
        Step::Over
    }

    /// Takes in what happened to the guest `life`.
    pub(super) fn take(
        &mut self,
        happening: Happening,
        life: &Life,
        sink: &mut dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Step> {
        match happening {
            Happening::Event(event) => self.event(&event, life, sink, progress),
            // What was still on its way when the job ended has come by now.
            Happening::End if self.guest.status.is_some() => Ok(Step::Over),
            Happening::End => Ok(self.lose(format!("the guest crashed: {}", life.last_words()))),
            Happening::Silence => {
                Ok(self.lose(format!("the guest did not {} within {} s", self.stage, self.limit.as_secs())))
            }
        }
    }

    fn event(&mut self, event: &Event, life: &Life, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<Step> {
        if event.port != Port::Terminal {
            self.log.write_all(&event.bytes)?;
        }
        match event.port {
            Port::Control => {
                self.log.write_all(b"\n")?;
                let text = String::from_utf8_lossy(&event.bytes);
                self.clocks.hear(&text, event.at);
                return self.control(&text, life, progress);
            }
            Port::Output | Port::Errors if self.mode == Mode::Work => {
                // Each check has its line: the guest is alive.
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
        Ok(Step::On)
    }

    fn control(&mut self, text: &str, life: &Life, progress: &dyn Progress) -> Result<Step> {
        self.guest.hear(text);
        match text.split_once(' ').unwrap_or((text, "")) {
            ("ready", _) => {
                self.guest.boot_seconds = life.started().elapsed().as_secs_f64();
                let seconds = self.guest.boot_seconds;
                self.say(&format!("the guest is up after {seconds:.1} s, loading {}", self.driver), progress);
                self.enter("load its driver");
            }
            ("working", _) => {
                self.enter("finish its work");
                if self.mode != Mode::Work {
                    // The user's own command or shell may take as long as it likes.
                    self.deadline = None;
                }
                match self.guest.probe {
                    Some((start, end, 0)) => {
                        self.say(&format!("{} is loaded after {:.1} s", self.driver, end - start), progress);
                    }
                    _ => self.say(&format!("{} could not be loaded", self.driver), progress),
                }
                if self.mode == Mode::Shell {
                    progress.say("a shell in the guest; `exit` ends it, and Ctrl-] ends a guest that hangs\r");
                    terminal::feed(life.terminal())?;
                }
            }
            ("waiting", _) => {
                // The others are not silent for ever, and this one goes on with them.
                self.deadline = None;
                return Ok(Step::Waiting);
            }
            ("mark", name) => return Ok(Step::Mark(name.to_owned())),
            ("vfs", _) => return Ok(Step::Enabled),
            ("done", _) => self.enter("shut down"),
            _ => {}
        }
        Ok(Step::On)
    }

    /// Of a guest beside others only what failed is shown, and now and then that it is at work.
    fn show(&mut self, line: &str, progress: &dyn Progress) {
        let due = self.told.is_none_or(|told| told.elapsed() >= TELL);
        if self.name.is_empty() || due || line.starts_with("FAIL") {
            self.told = Some(Instant::now());
            self.say(&format!("  {line}"), progress);
        }
    }

    fn say(&self, line: &str, progress: &dyn Progress) {
        match self.name.is_empty() {
            true => progress.say(line),
            false => progress.say(&format!("{:<5} {line}", self.name)),
        }
    }

    /// Fails where the guest was lost before its job began, since there is nothing to judge then.
    pub(super) fn must_have_come_up(&self, life: &Life) -> Result<()> {
        match &self.guest.lost {
            Some(reason) if self.guest.boot_seconds == 0.0 => {
                Err(NeverUp { reason: reason.clone(), log: life.console.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// A guest was lost before anything of ours ran in it, and so before it touched the card.
#[derive(Debug, thiserror::Error)]
#[error("{reason} (its log: {log})", log = log.display())]
pub(super) struct NeverUp {
    reason: String,
    log: PathBuf,
}

impl NeverUp {
    /// Whether its kernel panicked, which a processor that QEMU emulates in several threads brings about now and then
    /// while the kernel changes its own code.
    pub(super) fn panicked(&self) -> bool {
        self.reason.contains("Kernel panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_before_the_guest_is_up_is_told_from_other_losses() {
        let never_up = |reason: &str| NeverUp { reason: reason.into(), log: "console.log".into() };
        let panic = never_up("[    2.1] Kernel panic - not syncing: Fatal exception in interrupt");
        assert!(panic.panicked() && panic.to_string().ends_with("(its log: console.log)"));
        assert!(!never_up("the guest did not come up within 60 s").panicked());
    }

    #[test]
    fn the_guests_control_lines_are_understood() {
        let mut guest = Guest::default();
        for line in ["kernel 7.2.12", "probe 3.15 5.90 0", "modules drm mei xe ", "taint 64", "done 3", "strange"] {
            guest.hear(line);
        }
        assert_eq!(guest.probe, Some((3.15, 5.9, 0)));
        assert_eq!((guest.taint, guest.status), (Some(64), Some(3)));
        assert_eq!(guest.modules, ["drm", "mei", "xe"]);
    }
}
