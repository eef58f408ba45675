// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A run with several guests on one card: one guest per VF, and one for the PF unless the card's server process
//! provisions the VFs.

use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::checks::{self, Evidence, Role};
use super::compute;
use super::job::{self, FINISH, GO, Part};
use super::migration::Requests;
use super::orchestrator::{GuestId, Orchestrator, Order};
use super::serial::{Follower, Step};
use super::steps;
use super::vf_checks::{self, Marks};
use super::{BootReport, Mode, Sink};
use crate::card::Functions;
use crate::guest_process::{GuestEvent, GuestSpec, MEMORY_OF_MANY, Options, RunningGuest, Server, Setup};
use crate::image::modules;
use crate::interrupt;
use crate::progress::Progress;

/// Polling interval of the event loop when no guest has sent anything.
const REST: Duration = Duration::from_millis(10);

/// One guest of the run.
struct GuestRun {
    id: GuestId,
    spec: GuestSpec,
    follower: Follower,
    running: Option<RunningGuest>,
    console: std::path::PathBuf,
}

/// A run in progress.
struct MultiGuestRun<'a> {
    options: &'a Options,
    setup: &'a Setup<'a>,
    progress: &'a dyn Progress,
    // Fields are dropped in this order: the VMs before the card's server that they are connected to.
    guest_runs: Vec<GuestRun>,
    server: Server,
    provider: Option<File>,
    consumer: File,
    orchestrator: Orchestrator,
    marks: Marks,
    /// What the PF's guest requests of the host, and the number of migrations, in a run with migrations.
    requests: Option<(Requests, u32)>,
}

/// Total memory of this host in MiB.
pub(super) fn host_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}

/// Fails if the guests together have more memory than the host; `each` and `total` are in MiB.
pub(super) fn fits(guests: u64, each: u32, total: u64) -> Result<()> {
    if guests * u64::from(each) > total {
        bail!("{guests} guests of {each} MiB do not fit into this host's {total} MiB: reduce --vfs or --memory");
    }
    Ok(())
}

/// Fails if the host has too little memory for the guests of the run.
pub(super) fn check_memory(options: &Options) -> Result<()> {
    let guests = u64::from(*options.functions.apart().end()) + u64::from(options.functions.split());
    let each = options.guest_memory(MEMORY_OF_MANY);
    host_memory().map_or(Ok(()), |total| fits(guests, each, total))
}

/// Runs the guests of `options.functions` and checks them.
pub(super) fn run(
    options: &Options,
    setup: &Setup<'_>,
    sink: &mut dyn Sink,
    progress: &dyn Progress,
) -> Result<BootReport> {
    let functions = options.functions;
    let (vfs, held) = (*functions.apart().end(), functions.split());
    let image = |spec, part| setup.build_image(&spec, job::of_part(part, options), &[], progress);
    let provider = held.then(|| image(GuestSpec::physical(functions), Part::of_pf(functions))).transpose()?;
    let consumer = image(GuestSpec::virtual_function(1), Part::of_vf(functions))?;
    let mut report = BootReport::new(options, setup);
    let start = Instant::now();
    let orchestrator = Orchestrator::new(held, vfs);
    let server = setup.serve(1, progress)?;
    report.card_directory = server.folder().map(|folder| folder.to_owned().into());
    let mut stage = MultiGuestRun {
        options,
        setup,
        progress,
        server,
        provider,
        consumer,
        guest_runs: Vec::new(),
        orchestrator,
        marks: Marks::default(),
        requests: match functions {
            Functions::Migrating { rounds, .. } => {
                let folder = setup.results(&GuestSpec::physical(functions))?;
                Some((Requests::new(&folder)?, rounds))
            }
            _ => None,
        },
    };
    stage.run(sink)?;
    let MultiGuestRun { server, guest_runs, marks, requests, .. } = stage;
    let card = server.stop()?;
    report.seconds = start.elapsed().as_secs_f64();
    for guest_run in &guest_runs {
        let (vf, role) = match guest_run.id {
            GuestId::Physical => (None, Role::Physical { vfs }),
            GuestId::Virtual(vf) => (Some(vf), Role::Virtual),
        };
        let guest = &guest_run.follower.guest;
        report.clocks.extend(guest_run.follower.comparison());
        if vf.is_none() || !held {
            report.boot_seconds = guest.boot_seconds;
            report.probe_seconds = guest.probe_seconds();
            report.modules.clone_from(&guest.modules);
            report.taint = guest.taint;
            report.status = guest.status;
        }
        let parts = setup.parts_of(&guest_run.spec);
        let evidence = Evidence {
            driver: options.driver,
            name: &guest_run.spec.name,
            role,
            place: options.place,
            guest,
            log: &checks::console_text(&guest_run.console)?,
            results: &setup.results(&guest_run.spec)?,
            own_kernel: parts.kernel_is_own,
            mei_gsc: modules::has_mei_gsc(parts)?,
            compute: &if options.compute { compute::alone(options.place, vf.is_none()) } else { Vec::new() },
        };
        let before = report.results.len();
        match (vf, &requests) {
            (Some(vf), migrating) => {
                let card = checks::check_guest(&mut report, &evidence);
                if migrating.is_some() {
                    vf_checks::rounds(&mut report, &evidence, "rounds");
                }
                vf_checks::apart(&mut report, &evidence, vf, before, card);
            }
            (None, None) => {
                checks::check_guest(&mut report, &evidence);
                vf_checks::provider(&mut report, &evidence);
            }
            (None, Some((requests, rounds))) => {
                steps::evaluate(&mut report, &evidence);
                vf_checks::disabled(&mut report, &evidence);
                report.results.push(requests.result(*rounds));
            }
        }
    }
    vf_checks::missing(&mut report, vfs);
    report.phases.extend(marks.phase(vfs));
    report.memory = marks.report(vfs);
    if let Some(card) = &card {
        report.add_card(card);
        report.results.push(checks::registers(card));
    }
    Ok(report)
}

impl MultiGuestRun<'_> {
    /// Starts the guests as ordered by the conductor and handles their events until the run is over.
    fn run(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let orders = self.orchestrator.begin();
        if self.provider.is_none() {
            // Recorded here, since no guest runs before the VFs are enabled.
            self.marks.take(job::BEFORE, self.server.memory());
        }
        self.carry_out(&orders)?;
        while !self.orchestrator.is_over() {
            interrupt::check()?;
            let mut quiet = true;
            for index in 0..self.guest_runs.len() {
                while let Some(step) = self.next_step(index, sink)? {
                    quiet = false;
                    if let Step::Mark(name) = &step {
                        self.marks.take(name, self.server.memory());
                    }
                    let orders = self.orchestrator.advance(self.guest_runs[index].id, &step);
                    self.carry_out(&orders)?;
                }
            }
            self.carry_out_requests();
            if quiet {
                self.server.check()?;
                thread::sleep(REST);
            }
        }
        Ok(())
    }

    /// Stops or continues the guest of VF 1, if the PF's guest requests it.
    fn carry_out_requests(&mut self) {
        let Some((requests, _)) = &mut self.requests else { return };
        let of_vf1 = self.guest_runs.iter_mut().find(|guest_run| guest_run.id == GuestId::Virtual(1));
        if let Some(GuestRun { running: Some(running), follower, .. }) = of_vf1 {
            requests.carry_out(running, follower);
        }
    }

    /// Returns the next step of a player's guest, or `None` if there is no event. Does not block.
    fn next_step(&mut self, index: usize, sink: &mut dyn Sink) -> Result<Option<Step>> {
        let guest_run = &mut self.guest_runs[index];
        let Some(running) = &mut guest_run.running else { return Ok(None) };
        let silent = guest_run.follower.deadline().is_some_and(|deadline| Instant::now() >= deadline);
        let event = match running.poll() {
            Some(event) => event,
            None if silent => GuestEvent::Silence,
            None => return Ok(None),
        };
        let step = guest_run.follower.take(event, running, sink, self.progress)?;
        if step == Step::Ended {
            guest_run.end()?;
        }
        Ok(Some(step))
    }

    fn carry_out(&mut self, orders: &[Order]) -> Result<()> {
        for order in orders {
            match order {
                Order::Boot(id) => self.boot(*id)?,
                Order::Go => {
                    self.progress.print_line("all guests are ready and now work at the same time");
                    let migrating = self.requests.is_some();
                    self.signal(|id| migrating || id != GuestId::Physical, GO, "finish its work")?;
                }
                Order::End => self.signal(|id| id != GuestId::Physical, FINISH, "finish its work")?,
                Order::Finish => self.signal(|id| id == GuestId::Physical, FINISH, "disable its virtual functions")?,
                Order::Abandon => {
                    for index in 0..self.guest_runs.len() {
                        let guest_run = &mut self.guest_runs[index];
                        if guest_run.id != GuestId::Physical && guest_run.running.is_some() {
                            let step = guest_run.follower.lose("the guest of the physical function ended".into());
                            guest_run.end()?;
                            let id = guest_run.id;
                            // No orders follow from this step.
                            self.orchestrator.advance(id, &step);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn boot(&mut self, id: GuestId) -> Result<()> {
        let (spec, image) = match (id, &self.provider) {
            (GuestId::Virtual(vf), _) => (GuestSpec::virtual_function(vf), &self.consumer),
            (GuestId::Physical, provider) => {
                let image = provider.as_ref().context("the run has no guest for the physical function")?;
                (GuestSpec::physical(self.options.functions), image)
            }
        };
        for file in [GO, FINISH] {
            // May exist from an earlier run in the same directory.
            let _ = fs::remove_file(self.setup.results(&spec)?.join(file));
        }
        let follower = Follower::new(self.setup, &spec, &Mode::Work, self.options.limit)?;
        let running = self.setup.boot(&spec, &self.server, image, 1)?;
        let release = &self.setup.parts_of(&spec).kernel.release;
        self.progress.print_line(&format!("{:<5} booting {release} in QEMU", spec.name));
        self.guest_runs.push(GuestRun { id, spec, follower, console: running.console.clone(), running: Some(running) });
        Ok(())
    }

    /// Creates `file` for the selected guests, which wait for it, and enters `stage` for each.
    fn signal(&mut self, selected: impl Fn(GuestId) -> bool, file: &str, stage: &'static str) -> Result<()> {
        for guest_run in
            self.guest_runs.iter_mut().filter(|guest_run| selected(guest_run.id) && guest_run.running.is_some())
        {
            let path = self.setup.results(&guest_run.spec)?.join(file);
            fs::write(&path, []).with_context(|| format!("{} cannot be written", path.display()))?;
            guest_run.follower.enter(stage);
        }
        Ok(())
    }
}

impl GuestRun {
    /// Terminates the VM if it is still running.
    fn end(&mut self) -> Result<()> {
        self.running.take().map_or(Ok(()), RunningGuest::stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_guests_than_the_host_can_hold_are_refused() {
        assert!(fits(4, 1024, 4096).is_ok());
        let error = fits(64, 1024, 24_000).unwrap_err().to_string();
        assert_eq!(error, "64 guests of 1024 MiB do not fit into this host's 24000 MiB: reduce --vfs or --memory");
        assert!(host_memory().is_some_and(|total| total > 0));
    }
}
