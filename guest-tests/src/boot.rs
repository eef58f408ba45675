//! The first-light scenario: boot a guest on the card, load its driver, let it work, and judge; or hand it to the user.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::card::{CardReport, Unmodelled};
use crate::kernel_log;
use crate::life::{Happening, Life, Options, Stand};
use crate::progress::Progress;
use crate::qemu::{CARD_ADDRESS, Port};
use crate::report::{TestResult, Totals, Verdict};
use crate::terminal;

/// Modules that a distribution's hotplug loads for this card.
const HOTPLUGGED: &[&str] = &["xe", "mei", "mei_me", "mei_gsc"];
/// Lines without which a probe did not happen: words that one line has to have.
const REQUIRED: &[&[&str]] = &[&["Initialized xe", CARD_ADDRESS], &[CARD_ADDRESS, "GuC firmware from"]];
/// The report of `arctic guest work` on the results share.
const WORK_REPORT: &str = "work.json";

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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    pub guest_card: Option<serde_json::Value>,
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
    /// Versions of what took part.
    pub versions: BTreeMap<String, String>,
    /// Folder with the guest's whole log.
    pub log: PathBuf,
    /// The picture that the guest drew.
    pub picture: Option<PathBuf>,
    /// Exit status of the command or shell in the guest.
    pub status: Option<i32>,
}

/// The part of the guest's work report that is used here.
#[derive(Debug, Deserialize)]
struct Work {
    card: Option<serde_json::Value>,
    results: Vec<Outcome>,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    engine: String,
    what: String,
    ok: bool,
    detail: String,
    seconds: f64,
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
    let card = life.end()?;
    if let Some(card) = &card {
        report.trapped = card.trapped.clone();
        report.unmodelled = card.unmodelled.clone();
    }
    if *mode == Mode::Work {
        let log = fs::read(&console).with_context(|| format!("{} cannot be read", console.display()))?;
        judge(&mut report, &guest, &String::from_utf8_lossy(&log), card.as_ref(), &stand)?;
    }
    report.totals = Totals::of(&report.results);
    report.ok = report.totals.failed == 0 && report.status.unwrap_or(0) == 0;
    Ok(report)
}

/// The shell text that the guest's init runs.
fn job(mode: &Mode) -> String {
    let task = match mode {
        Mode::Work => "arctic guest work\nSTATUS=$?\n".to_owned(),
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

/// Follows the guest until its job is done.
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
            Happening::Silence => {
                bail!("the guest did not {stage} within {} s (its log: {})", limit.as_secs(), life.console.display())
            }
            Happening::End => bail!("the guest crashed: {} (its log: {})", life.last_words(), life.console.display()),
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
                        progress.say("a shell in the guest; `exit` ends it\r");
                        terminal::feed(life.terminal())?;
                    }
                } else if text.starts_with("done") {
                    return Ok(guest);
                }
            }
            Port::Output | Port::Errors if *mode == Mode::Work => {
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

/// Fills the results of a [`Mode::Work`] run.
fn judge(
    report: &mut BootReport,
    guest: &Guest,
    log: &str,
    card: Option<&CardReport>,
    stand: &Stand<'_>,
) -> Result<()> {
    let mut check = |name: &str, problems: Vec<String>, seconds: f64| {
        let verdict = if problems.is_empty() { Verdict::Pass } else { Verdict::Fail };
        report.results.push(TestResult::new(name, verdict, problems.join("; "), seconds));
    };
    check("boot", guest.problems.clone(), report.boot_seconds);
    if card.is_some() {
        let mut problems: Vec<String> =
            kernel_log::missing(log, REQUIRED).iter().map(|words| format!("no log line with {words:?}")).collect();
        if !guest.probe.is_some_and(|(_, _, status)| status == 0) {
            problems.insert(0, "modprobe xe failed".into());
        }
        check("xe probe", problems, report.probe_seconds);
        let absent = HOTPLUGGED.iter().filter(|name| !guest.modules.iter().any(|module| module == *name));
        check("hotplug", absent.map(|name| format!("{name} is not loaded")).collect(), 0.0);
        match work(stand) {
            Ok(work) => {
                for outcome in &work.results {
                    let name = format!("{}: {}", outcome.engine, outcome.what);
                    let verdict = if outcome.ok { Verdict::Pass } else { Verdict::Fail };
                    report.results.push(TestResult::new(name, verdict, outcome.detail.clone(), outcome.seconds));
                }
                report.guest_card = work.card;
                let engines = report.guest_card.as_ref().and_then(|card| card.get("engines")?.as_array().cloned());
                report.engines = engines.iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
                if guest.status != Some(0) && work.results.iter().all(|outcome| outcome.ok) {
                    let reason = format!("its exit status was {}", guest.status.unwrap_or(-1));
                    report.results.push(TestResult::new("work", Verdict::Fail, reason, 0.0));
                }
            }
            Err(error) => report.results.push(TestResult::new("work", Verdict::Fail, format!("{error:#}"), 0.0)),
        }
    }
    let mut check = |name: &str, problems: Vec<String>| {
        let verdict = if problems.is_empty() { Verdict::Pass } else { Verdict::Fail };
        report.results.push(TestResult::new(name, verdict, problems.join("; "), 0.0));
    };
    let problems = kernel_log::problems(log, CARD_ADDRESS);
    let first = problems.first().map(|problem| format!("{} bad lines, the first: {}", problems.len(), problem.line));
    check("kernel log", first.into_iter().collect());
    let taint = match guest.taint {
        Some(taint) if taint & !kernel_log::TAINT_ALLOWED == 0 => None,
        Some(taint) => Some(format!("the mask is {taint}, but only {} may be set", kernel_log::TAINT_ALLOWED)),
        None => Some("the guest did not tell its mask".to_owned()),
    };
    check("taint", taint.into_iter().collect());
    if let Some(card) = card {
        let unexplained =
            card.unexplained().map(|register| format!("{:#x} is not modelled, without a reason", register.offset));
        check("registers", unexplained.collect());
    }
    if let Some(last) = report.results.iter_mut().find(|result| result.test == "kernel log") {
        last.dmesg = problems.into_iter().map(|problem| problem.line).collect();
    }
    Ok(())
}

fn work(stand: &Stand<'_>) -> Result<Work> {
    let path = stand.results.join(WORK_REPORT);
    let text = fs::read_to_string(&path).context("the guest left no report of its work")?;
    serde_json::from_str(&text).context("the guest's report of its work cannot be understood")
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
