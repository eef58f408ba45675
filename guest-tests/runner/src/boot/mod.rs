// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The boot scenarios. Guests with the card load the driver and run checked workloads, or a single guest runs the
//! user's shell or command.

mod checks;
mod compute;
mod job;
mod migration;
mod multi_guest;
mod orchestrator;
mod serial;
mod steps;
mod summary;
mod vf_checks;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, anyhow};
use serde::Serialize;

use crate::card::{CardReport, Functions, Unmodelled, Walkers};
use crate::clocks::{self, Comparison, WrongClock};
use crate::driver::Driver;
use crate::guest_process::{GuestSpec, Options, Setup};
use crate::host_load::{HostLoad, Snapshot};
use crate::image::modules;
use crate::path::PrintedPath;
use crate::progress::Progress;
use crate::report::{self, SCHEMA, TestResult, Totals};
use crate::skipped::Skipped;
use crate::terminal;
use checks::{Evidence, Role};
pub use compute::{ComputeLine, KernelVerdict};
use serial::{Follower, NeverUp, Step};
use vf_checks::Marks;
pub use vf_checks::{MemoryReport, Phase, VfLine};

/// The guest's task after boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Loads the driver, runs batches on every engine and draws the picture; the results are checked.
    Work,
    /// Loads the driver and starts an interactive shell.
    Shell,
    /// Loads the driver and runs one shell command.
    Run(String),
}

/// Receives the output of a command in the guest.
pub trait Sink {
    /// A chunk of stdout.
    fn output(&mut self, bytes: &[u8]);
    /// A chunk of stderr.
    fn errors(&mut self, bytes: &[u8]);
}

/// The outcome of a boot.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BootReport {
    /// Number of the document's form, [`SCHEMA`].
    #[serde(default)]
    pub schema: u32,
    /// Whether no check failed.
    pub ok: bool,
    /// Totals of `results`.
    #[serde(flatten)]
    pub totals: Totals,
    /// The results of all checks.
    pub results: Vec<TestResult>,
    /// The guest's kernel release.
    pub kernel: String,
    /// The card's file or name.
    pub card: String,
    /// Seconds from the start of the card's server process until it and all guests have exited.
    pub seconds: f64,
    /// The clock of each guest compared with the host's.
    pub clocks: Vec<Comparison>,
    /// Whether a guest's clock deviated so far that the run is inconclusive; independent of `ok`.
    pub inconclusive: bool,
    /// Load of the host during the run.
    pub host_load: HostLoad,
    /// One entry per VF.
    pub vfs: Vec<VfLine>,
    /// The steps of a run with inner guests, with their checks.
    pub steps: Vec<arctic_guest_agent::report::StepReport>,
    /// Duration of the phases of a run with VFs.
    pub phases: Vec<Phase>,
    /// Host memory of the card's server process, with and without VFs.
    pub memory: Option<MemoryReport>,
    /// The card as seen by the guest's user space.
    pub guest_card: Option<arctic_guest_agent::report::CardInfo>,
    /// Engines exposed to the guest's user space.
    pub engines: Vec<String>,
    /// Seconds from QEMU's start to the guest's init.
    pub boot_seconds: f64,
    /// The guests' driver for the card.
    pub driver: Driver,
    /// Whether the card is an integrated GPU.
    pub integrated: bool,
    /// Seconds that modprobe took, including the probe of the card.
    pub probe_seconds: f64,
    /// Modules loaded after hotplug.
    pub modules: Vec<String>,
    /// The kernel's taint mask at the end of the job.
    pub taint: Option<u64>,
    /// Trapped accesses by region.
    pub trapped: BTreeMap<String, u64>,
    /// Accessed registers that the card does not model.
    pub unmodelled: Vec<Unmodelled>,
    /// Commands that engines skipped or executed partially, by engine and name.
    pub undone: BTreeMap<String, u64>,
    /// Commands that engines skipped, by function, origin, engine and name.
    pub skipped_commands: Vec<Skipped>,
    /// What each function's kernels did on the execution units, by the card's report.
    pub walkers: Vec<Walkers>,
    /// Versions of the components used.
    pub versions: BTreeMap<String, String>,
    /// Directory with the complete logs of the guests.
    pub log: PrintedPath,
    /// Directory of the card's sockets while the run lasted, for `arctic status` and `arctic trace`.
    pub card_directory: Option<PrintedPath>,
    /// File of the picture that the guest drew.
    pub picture: Option<PrintedPath>,
    /// The kernels of each function, in a run with kernels.
    pub compute: Vec<ComputeLine>,
    /// What is to be said about the versions of the drivers that ran them.
    pub compute_note: Option<String>,
    /// Exit status of the command or shell in the guest.
    pub status: Option<i32>,
}

impl BootReport {
    fn new(options: &Options, setup: &Setup<'_>) -> Self {
        Self {
            schema: SCHEMA,
            kernel: setup.parts.kernel.release.clone(),
            driver: options.driver,
            integrated: options.integrated,
            card: options.card.clone().unwrap_or_else(|| "none".into()),
            versions: setup.versions(),
            compute_note: setup.compute_note().map(str::to_owned),
            log: setup.folder.clone().into(),
            ..Self::default()
        }
    }

    fn add_card(&mut self, card: &CardReport) {
        self.trapped.clone_from(&card.trapped);
        self.unmodelled.clone_from(&card.unmodelled);
        self.undone.clone_from(&card.undone);
        self.skipped_commands.clone_from(&card.skipped_commands);
        self.walkers.clone_from(&card.walkers);
    }
}

/// Runs the boot scenario selected by `options` and `mode`. Returns an error only if no result is available; failed
/// checks are in the report.
pub fn run(options: &Options, mode: &Mode, sink: &mut dyn Sink, progress: &dyn Progress) -> Result<BootReport> {
    let several = *mode == Mode::Work && !options.functions.apart().is_empty();
    if several {
        multi_guest::check_memory(options)?;
    }
    steps::check_memory(options)?;
    compute::check_memory(options)?;
    let setup = Setup::prepare(options, "boot", progress)?;
    let load = Snapshot::take();
    let mut report = match several {
        true => multi_guest::run(options, &setup, sink, progress)?,
        false => match alone(options, mode, &setup, sink, progress) {
            Err(error) if !setup.parts.kernel_is_own && error.downcast_ref().is_some_and(NeverUp::panicked) => {
                progress.print_line(&format!("{error}: the guest had not accessed the card yet; booting again"));
                drop(setup);
                let setup = Setup::prepare(options, "boot", progress)?;
                alone(options, mode, &setup, sink, progress)?
            }
            outcome => outcome?,
        },
    };
    report.host_load = load.until_now();
    report::mark_overload(&mut report.results, &report.host_load);
    report.inconclusive = clocks::inconclusive(&report.clocks).is_some();
    report.totals = Totals::of(&report.results);
    report.ok = report.totals.failed == 0 && (*mode == Mode::Work || report.status == Some(0));
    Ok(report)
}

/// Runs the scenario with one guest.
fn alone(
    options: &Options,
    mode: &Mode,
    setup: &Setup<'_>,
    sink: &mut dyn Sink,
    progress: &dyn Progress,
) -> Result<BootReport> {
    let spec = GuestSpec::only(options.functions);
    let image = setup.build_image(&spec, job::only(mode, options), &[], progress)?;
    let mut report = BootReport::new(options, setup);
    let start = Instant::now();
    let mut server = setup.serve(1, progress)?;
    report.card_directory = server.folder().map(|folder| folder.to_owned().into());
    progress.print_line(&format!("booting {} in QEMU", report.kernel));
    let mut follower = Follower::new(setup, &spec, mode, options.limit)?;
    let mut running = setup.boot(&spec, &server, &image, 1)?;
    let raw = match mode {
        Mode::Shell => Some(terminal::Mode::enter_raw()?),
        _ => None,
    };
    let mut marks = Marks::default();
    loop {
        let event = running.next(&mut server, follower.deadline())?;
        match follower.take(event, &running, sink, progress)? {
            Step::Ended => break,
            Step::Mark(name) => marks.take(&name, server.memory()),
            _ => {}
        }
    }
    drop(raw);
    follower.must_have_come_up(&running)?;
    report.clocks.extend(follower.comparison());
    let guest = follower.guest;
    let console = running.console.clone();
    if let (Some(reason), false) = (&guest.lost, *mode == Mode::Work) {
        let error = anyhow!("{reason} (its log: {})", console.display());
        return Err(match clocks::inconclusive(&report.clocks) {
            Some(line) => error.context(WrongClock(line)),
            None => error,
        });
    }
    running.stop()?;
    let card = server.stop()?;
    report.seconds = start.elapsed().as_secs_f64();
    report.status = guest.status;
    report.boot_seconds = guest.boot_seconds;
    report.probe_seconds = guest.probe_seconds();
    report.modules.clone_from(&guest.modules);
    report.taint = guest.taint;
    report.kernel = guest.kernel.clone().unwrap_or(report.kernel);
    if let Some(card) = &card {
        report.add_card(card);
    }
    if *mode == Mode::Work {
        let vfs = options.functions.vfs();
        let evidence = Evidence {
            name: "",
            driver: options.driver,
            role: match &card {
                None => Role::NoCard,
                Some(_) if options.integrated => Role::Integrated,
                Some(_) => Role::Physical { vfs },
            },
            place: options.place,
            guest: &guest,
            log: &checks::console_text(&console)?,
            results: &setup.results(&spec)?,
            own_kernel: setup.parts.kernel_is_own,
            mei_gsc: modules::has_mei_gsc(&setup.parts)?,
            compute: &if options.compute { compute::together(options.place, vfs) } else { Vec::new() },
        };
        if matches!(options.functions, Functions::Passthrough(_) | Functions::Migrating { .. }) {
            steps::evaluate(&mut report, &evidence);
        } else {
            checks::check_guest(&mut report, &evidence);
        }
        let once = match options.functions {
            Functions::Together(vfs) => Some((vfs, options.compute)),
            Functions::Migrating { vfs, .. } => Some((vfs, true)),
            _ => None,
        };
        if let Some((vfs, once)) = once {
            vf_checks::together(&mut report, &evidence, vfs, &marks, job::steps(once));
        }
        if let Some(card) = &card {
            report.results.push(checks::registers(card));
        }
    }
    Ok(report)
}
