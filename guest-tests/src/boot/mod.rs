//! The first-light scenario: boot a guest on the card, load its driver, let it work, and judge; or hand it to the user.

mod judge;
mod summary;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::card::Unmodelled;
use crate::guest;
use crate::life::{Happening, Life, Options, Stand};
use crate::progress::Progress;
use crate::qemu::Port;
use crate::report::{TestResult, Totals};
use crate::terminal;

/// The report of `arctic guest work` on the results share.
const WORK_REPORT: &str = "work.json";
/// The pixels that it drew.
const PICTURE: &str = "testcard.raw";

/// What the guest does once it is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Loads the driver, runs batches on every engine and draws the picture; judged.
    Work,
    /// Loads the driver and gives the user a shell.
    Shell,
    /// Loads the driver and runs one shell command.
    Run(String),
}

/// Receives what a command in the guest prints.
pub trait Sink {
    /// A piece of stdout.
    fn output(&mut self, bytes: &[u8]);
    /// A piece of stderr.
    fn errors(&mut self, bytes: &[u8]);
}

/// What a boot showed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BootReport {
    /// Whether nothing failed.
    pub ok: bool,
    /// Totals of `results`.
    #[serde(flatten)]
    pub totals: Totals,
    /// Every check.
    pub results: Vec<TestResult>,
    /// The guest's kernel release.
    pub kernel: String,
    /// The card's file or name.
    pub card: String,
    /// The card as the guest's user space saw it.
    pub guest_card: Option<guest::report::Card>,
    /// Engines that the guest may use.
    pub engines: Vec<String>,
    /// Seconds from QEMU's start to the guest's init.
    pub boot_seconds: f64,
    /// Seconds that `modprobe xe` took, the card's probe included.
    pub probe_seconds: f64,
    /// Modules loaded after hotplug.
    pub modules: Vec<String>,
    /// The kernel's taint mask at the end.
    pub taint: Option<u64>,
    /// Trapped accesses by region.
    pub trapped: BTreeMap<String, u64>,
    /// Registers touched that the card does not model.
    pub unmodelled: Vec<Unmodelled>,
    /// Commands that engines skipped or did in part, by engine and name.
    pub undone: BTreeMap<String, u64>,
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// Folder with the guest's whole log.
    pub log: PathBuf,
    /// The picture that the guest drew.
    pub picture: Option<PathBuf>,
    /// Exit status of the command or shell in the guest.
    pub status: Option<i32>,
}

/// Boots a guest and does what `mode` says. Errors are what kept it from being judged; a bad outcome is in the report.
pub fn run(options: &Options, mode: &Mode, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<BootReport> {
    let mut stand = Stand::prepare(options, "boot", progress)?;
    stand.build_image(job(mode), &[], progress)?;
    progress.say(&format!("booting {} in QEMU", stand.parts.kernel.release));
    let mut report = BootReport {
        kernel: stand.parts.kernel.release.clone(),
        card: options.card.clone().unwrap_or_else(|| "none".into()),
        versions: stand.parts.versions.clone(),
        log: stand.folder.clone(),
        ..BootReport::default()
    };
    let mut life = stand.start(1)?;
    report.boot_seconds = life.until_ready()?;
    progress.say(&format!("the guest is up after {:.1} s, loading xe", report.boot_seconds));
    let raw = match mode {
        Mode::Shell => Some(terminal::Raw::enter()?),
        _ => None,
    };
    let guest = follow(&mut life, options.limit, mode, &stand, sink, progress)?;
    drop(raw);
    guest.fill(&mut report);
    let console = life.console.clone();
    let card = match &guest.lost {
        Some(reason) if *mode != Mode::Work => bail!("{reason} (its log: {})", console.display()),
        _ => life.stop()?,
    };
    if let Some(card) = &card {
        report.trapped = card.trapped.clone();
        report.unmodelled = card.unmodelled.clone();
        report.undone = card.undone.clone();
    }
    if *mode == Mode::Work {
        let log = fs::read(&console).with_context(|| format!("{} cannot be read", console.display()))?;
        let log = String::from_utf8_lossy(&log);
        let own_kernel = stand.parts.kernel_is_own;
        let evidence =
            judge::Evidence { guest: &guest, log: &log, card: card.as_ref(), results: &stand.results, own_kernel };
        judge::judge(&mut report, &evidence);
    }
    report.totals = Totals::of(&report.results);
    report.ok = report.totals.failed == 0 && (*mode == Mode::Work || report.status == Some(0));
    Ok(report)
}

/// The shell text that the guest's init runs.
fn job(mode: &Mode) -> String {
    let task = match mode {
        Mode::Work => format!("arctic guest work --out /mnt/{WORK_REPORT} --picture /mnt/{PICTURE}\nSTATUS=$?\n"),
        Mode::Shell => {
            let size =
                terminal::size().map(|(rows, columns)| format!("stty -F /dev/hvc0 rows {rows} cols {columns}\n"));
            let shell = "setsid -c sh -i < /dev/hvc0 > /dev/hvc0 2>&1\nSTATUS=$?\n";
            format!("cd /root\n{}{shell}", size.unwrap_or_default())
        }
        // A function of its own, so that an `exit` in it ends only the command.
        Mode::Run(command) => format!("( cd /root\n{command}\n)\nSTATUS=$?\n"),
    };
    format!(
        "echo \"kernel $(uname -r)\" >&3\nload-driver >&3\necho working >&3\n{task}\
         echo \"taint $(cat /proc/sys/kernel/tainted)\" >&3\n"
    )
}

/// What the guest said on its control port.
#[derive(Debug, Default, PartialEq)]
struct Guest {
    kernel: Option<String>,
    probe: Option<(f64, f64, i32)>,
    modules: Vec<String>,
    taint: Option<u64>,
    problems: Vec<String>,
    status: Option<i32>,
    /// Why the guest did not come to the end of its job.
    lost: Option<String>,
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

    fn fill(&self, report: &mut BootReport) {
        if let Some(kernel) = &self.kernel {
            report.kernel.clone_from(kernel);
        }
        report.probe_seconds = self.probe.map_or(0.0, |(start, end, _)| end - start);
        report.modules.clone_from(&self.modules);
        report.taint = self.taint;
        report.status = self.status;
    }
}

/// Follows the guest until it has shut down, or is lost.
fn follow(
    life: &mut Life,
    limit: Duration,
    mode: &Mode,
    stand: &Stand<'_>,
    sink: &mut dyn Sink,
    progress: &dyn Progress,
) -> Result<Guest> {
    let path = stand.folder.join("job.log");
    let mut log = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
    let mut guest = Guest::default();
    let mut stage = "load its driver";
    let mut deadline = Some(Instant::now() + limit);
    let mut line = Vec::new();
    loop {
        let event = match life.next(deadline)? {
            Happening::Event(event) => event,
            // What was still on its way when the job ended has come by now.
            Happening::End if guest.status.is_some() => return Ok(guest),
            Happening::End => {
                guest.lost = Some(format!("the guest crashed: {}", life.last_words()));
                return Ok(guest);
            }
            Happening::Silence => {
                guest.lost = Some(format!("the guest did not {stage} within {} s", limit.as_secs()));
                return Ok(guest);
            }
        };
        if event.port != Port::Terminal {
            log.write_all(&event.bytes)?;
        }
        match event.port {
            Port::Control => {
                log.write_all(b"\n")?;
                let text = String::from_utf8_lossy(&event.bytes);
                guest.hear(&text);
                if text == "working" {
                    stage = "finish its work";
                    // The user's own command or shell may take as long as it likes.
                    deadline = (*mode == Mode::Work).then(|| Instant::now() + limit);
                    match guest.probe {
                        Some((start, end, 0)) => progress.say(&format!("xe is loaded after {:.1} s", end - start)),
                        _ => progress.say("xe could not be loaded"),
                    }
                    if *mode == Mode::Shell {
                        progress.say("a shell in the guest; `exit` ends it, and Ctrl-] ends a guest that hangs\r");
                        terminal::feed(life.terminal())?;
                    }
                } else if text.starts_with("done") {
                    stage = "shut down";
                    deadline = Some(Instant::now() + limit);
                }
            }
            Port::Output | Port::Errors if *mode == Mode::Work => {
                // Each check has its line: the guest is alive.
                deadline = Some(Instant::now() + limit);
                line.extend_from_slice(&event.bytes);
                while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                    let rest = line.split_off(end + 1);
                    progress.say(&format!("  {}", String::from_utf8_lossy(&line).trim_end()));
                    line = rest;
                }
            }
            Port::Output | Port::Terminal => sink.output(&event.bytes),
            Port::Errors => sink.errors(&event.bytes),
            Port::Agent => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn an_exit_in_the_users_command_cannot_skip_the_rest_of_the_job() {
        let text = job(&Mode::Run("exit 7".into()));
        assert!(text.contains("( cd /root\nexit 7\n)\nSTATUS=$?\n"), "{text}");
        assert!(text.contains("taint"));
    }
}
