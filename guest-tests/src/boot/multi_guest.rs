// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A run with several guests on one card: one guest per VF, and one for the PF unless the card's server process
//! provisions the VFs.

use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::checks::{self, Evidence, Role};
use super::job::{self, FINISH, GO, Part};
use super::orchestrator::{Conductor, Order, Who};
use super::serial::{Follower, Step};
use super::vf_checks::{self, Marks};
use super::{BootReport, Mode, Sink};
use crate::card::Functions;
use crate::guest_process::{Happening, Life, MEMORY_OF_MANY, Options, Seat, Server, Stand};
use crate::image::modules;
use crate::interrupt;
use crate::progress::Progress;

/// Polling interval of the event loop when no guest has sent anything.
const REST: Duration = Duration::from_millis(10);

/// One guest of the run.
struct Player {
    who: Who,
    seat: Seat,
    follower: Follower,
    life: Option<Life>,
    console: std::path::PathBuf,
}

/// A run in progress.
struct Stage<'a> {
    options: &'a Options,
    stand: &'a Stand<'a>,
    progress: &'a dyn Progress,
    // Fields are dropped in this order: the VMs before the card's server that they are connected to.
    players: Vec<Player>,
    server: Server,
    provider: Option<File>,
    consumer: File,
    conductor: Conductor,
    marks: Marks,
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
    let guests = u64::from(options.functions.vfs()) + u64::from(matches!(options.functions, Functions::Split(_)));
    let each = options.memory.unwrap_or(MEMORY_OF_MANY);
    host_memory().map_or(Ok(()), |total| fits(guests, each, total))
}

/// Runs the guests of `options.functions` and checks them.
pub(super) fn run(
    options: &Options,
    stand: &Stand<'_>,
    sink: &mut dyn Sink,
    progress: &dyn Progress,
) -> Result<BootReport> {
    let vfs = options.functions.vfs();
    let held = matches!(options.functions, Functions::Split(_));
    let image = |part| stand.build_image(job::of_part(part), &[], progress);
    let (provider, consumer) = (held.then(|| image(Part::Provider { vfs })).transpose()?, image(Part::Consumer)?);
    let mut report = BootReport::new(options, stand);
    let start = Instant::now();
    let conductor = Conductor::new(held, vfs);
    let server = stand.serve(1)?;
    let mut stage = Stage {
        options,
        stand,
        progress,
        server,
        provider,
        consumer,
        players: Vec::new(),
        conductor,
        marks: Marks::default(),
    };
    stage.play(sink)?;
    let Stage { server, players, marks, .. } = stage;
    let card = server.stop()?;
    report.seconds = start.elapsed().as_secs_f64();
    for player in &players {
        let (vf, role) = match player.who {
            Who::Physical => (None, Role::Physical { vfs }),
            Who::Virtual(vf) => (Some(vf), Role::Virtual),
        };
        let guest = &player.follower.guest;
        report.clocks.extend(player.follower.comparison());
        if vf.is_none() || !held {
            report.boot_seconds = guest.boot_seconds;
            report.probe_seconds = guest.probe_seconds();
            report.modules.clone_from(&guest.modules);
            report.taint = guest.taint;
            report.status = guest.status;
        }
        let evidence = Evidence {
            driver: options.driver,
            name: &player.seat.name,
            role,
            guest,
            log: &checks::console_text(&player.console)?,
            results: &stand.results(&player.seat)?,
            own_kernel: stand.parts.kernel_is_own,
            mei_gsc: modules::has_mei_gsc(&stand.parts)?,
        };
        let before = report.results.len();
        let card = checks::judge(&mut report, &evidence);
        match vf {
            Some(vf) => vf_checks::apart(&mut report, &evidence, vf, before, card),
            None => vf_checks::provider(&mut report, &evidence),
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

impl Stage<'_> {
    /// Starts the guests as ordered by the conductor and handles their events until the run is over.
    fn play(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let orders = self.conductor.begin();
        if self.provider.is_none() {
            // Recorded here, since no guest runs before the VFs are enabled.
            self.marks.take(job::BEFORE, self.server.memory());
        }
        self.carry_out(&orders)?;
        while !self.conductor.is_over() {
            interrupt::check()?;
            let mut quiet = true;
            for index in 0..self.players.len() {
                while let Some(step) = self.look(index, sink)? {
                    quiet = false;
                    if let Step::Mark(name) = &step {
                        self.marks.take(name, self.server.memory());
                    }
                    let orders = self.conductor.hear(self.players[index].who, &step);
                    self.carry_out(&orders)?;
                }
            }
            if quiet {
                self.server.check()?;
                thread::sleep(REST);
            }
        }
        Ok(())
    }

    /// Returns the next step of a player's guest, or `None` if there is no event. Does not block.
    fn look(&mut self, index: usize, sink: &mut dyn Sink) -> Result<Option<Step>> {
        let player = &mut self.players[index];
        let Some(life) = &mut player.life else { return Ok(None) };
        let silent = player.follower.deadline().is_some_and(|deadline| Instant::now() >= deadline);
        let happening = match life.poll() {
            Some(happening) => happening,
            None if silent => Happening::Silence,
            None => return Ok(None),
        };
        let step = player.follower.take(happening, life, sink, self.progress)?;
        if step == Step::Over {
            player.end()?;
        }
        Ok(Some(step))
    }

    fn carry_out(&mut self, orders: &[Order]) -> Result<()> {
        for order in orders {
            match order {
                Order::Boot(who) => self.boot(*who)?,
                Order::Go => {
                    self.progress.say("all guests are ready and now work at the same time");
                    self.tell(|who| who != Who::Physical, GO, "finish its work")?;
                }
                Order::Finish => self.tell(|who| who == Who::Physical, FINISH, "disable its virtual functions")?,
                Order::Abandon => {
                    for index in 0..self.players.len() {
                        let player = &mut self.players[index];
                        if player.who != Who::Physical && player.life.is_some() {
                            let step = player.follower.lose("the guest of the physical function ended".into());
                            player.end()?;
                            let who = player.who;
                            // No orders follow from this step.
                            self.conductor.hear(who, &step);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn boot(&mut self, who: Who) -> Result<()> {
        let (seat, image) = match (who, &self.provider) {
            (Who::Virtual(vf), _) => (Seat::virtual_function(vf), &self.consumer),
            (Who::Physical, provider) => {
                let image = provider.as_ref().context("the run has no guest for the physical function")?;
                (Seat::physical(self.options.functions), image)
            }
        };
        for file in [GO, FINISH] {
            // May exist from an earlier run in the same directory.
            let _ = fs::remove_file(self.stand.results(&seat)?.join(file));
        }
        let follower = Follower::new(self.stand, &seat, &Mode::Work, self.options.limit)?;
        let life = self.stand.boot(&seat, &self.server, image, 1)?;
        self.progress.say(&format!("{:<5} booting {} in QEMU", seat.name, self.stand.parts.kernel.release));
        self.players.push(Player { who, seat, follower, console: life.console.clone(), life: Some(life) });
        Ok(())
    }

    /// Creates `file` for the selected guests, which wait for it, and enters `stage` for each.
    fn tell(&mut self, whom: impl Fn(Who) -> bool, file: &str, stage: &'static str) -> Result<()> {
        for player in self.players.iter_mut().filter(|player| whom(player.who) && player.life.is_some()) {
            let path = self.stand.results(&player.seat)?.join(file);
            fs::write(&path, []).with_context(|| format!("{} cannot be written", path.display()))?;
            player.follower.enter(stage);
        }
        Ok(())
    }
}

impl Player {
    /// Terminates the VM if it is still running.
    fn end(&mut self) -> Result<()> {
        self.life.take().map_or(Ok(()), Life::stop)
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
