// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest migrate`: enables virtual functions, saves the first one, gives it another range of the GGTT, restores and
//! resumes it, by the files that xe's PF driver has in debugfs (`xe_sriov_pf_debugfs.c`, `xe_tile_sriov_pf_debugfs.c`). The
//! function's driver recovers from the migration. If it is in the same guest, the program that uses the function is stopped
//! meanwhile; if it is in a guest of its own, the host stops that guest's processors on request.

mod share;
mod user;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::share::Share;
use self::user::{BusyFunction, GuestOfFunction, Program, User};
pub use self::user::{CONTINUE, FAILED, RECOVERED, RECOVERY, STOP, request_files};
use super::checks::CheckEnvironment;
use super::checks::smoke::{brief, one_of_each_class};
use super::device::Device;
use super::report::{self, StepReport, StepsReport};
use super::sysfs::Sysfs;
use crate::pci_address::CARD_ADDRESS;

/// Largest piece of a stream that is written at once.
const PIECE: usize = 1 << 20;
/// Each migration with such a number is two: the function is migrated again before its driver has recovered. Not where the driver is
/// in this guest, because its processors run: the driver waits 50 ms for the answer of the GuC to a request of the recovery.
const TWICE: u32 = 10;
/// Time for which the share of the second function is measured before the migrations.
const SHARE_BEFORE: Duration = Duration::from_secs(5);

/// The function that is migrated.
const VF: u8 = 1;
/// Size of its range of the GGTT, and the sizes of the range that the spare function has after the first, second and third move. The
/// driver gives out the highest range that is free, and the spare function is given its first one, of size [`GGTT`], before the others.
/// So the range of the migrated function begins elsewhere after each move.
const GGTT: u64 = 256 << 20;
const GGTT_OF_SPARE: [u64; 3] = [GGTT / 2, 0, GGTT];
const GGTT_QUOTA: &str = "tile0/ggtt_quota";
/// What each function is provisioned with: file and value.
const QUOTAS: [(&str, u64); 4] = [
    (GGTT_QUOTA, GGTT),
    ("tile0/vram_quota", 96 << 20),
    ("tile0/gt0/contexts_quota", 256),
    ("tile0/gt0/doorbells_quota", 4),
];

/// How many functions, and how often.
#[derive(Debug, clap::Args)]
pub struct Migrate {
    /// Number of virtual functions to enable. The first one is migrated, the others work on. The card has at least one more, which
    /// takes the range of the GGTT that the first one leaves
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=62))]
    vfs: u8,
    /// Number of migrations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// PCI address of the physical function
    #[arg(long, value_name = "ADDRESS", default_value = CARD_ADDRESS)]
    pf: String,
    /// Only provision and enable the virtual functions, for guests of their own
    #[arg(long)]
    prepare: bool,
    /// The virtual functions are enabled and have guests of their own. The host stops the first one's guest when the file `stop-1`
    /// appears in DIR, and continues it when `continue-1` appears, and so on; it creates `stop-1-done` and `continue-1-done`
    #[arg(long, value_name = "DIR", conflicts_with = "prepare")]
    guests: Option<PathBuf>,
    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Times of a migration in seconds by the guest's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// Until the PF driver has seen that the function is paused.
    pause: f64,
    /// Until the stream is read.
    save: f64,
    /// Until the stream is written and applied.
    restore: f64,
    /// Bytes of the stream.
    bytes: usize,
}

/// Migrates the function, and prints and reports a step for each migration. Returns true if all were right, and so was the work of
/// all functions.
pub fn run(migrate: &Migrate) -> Result<bool> {
    let mut steps = Steps(Vec::new());
    let done = match migrate.prepare {
        true => steps.take("virtual functions enabled", || {
            provision(migrate, &Files::new(&migrate.pf))?;
            let sysfs = Sysfs::default();
            sysfs.set_autoprobe(&migrate.pf, false)?;
            sysfs.set_vfs(&migrate.pf, migrate.vfs)?;
            Ok(((), String::new()))
        }),
        false => Migration::begin(migrate, &mut steps).and_then(|migration| migration.run(migrate, &mut steps)),
    };
    if let Err(error) = done {
        // That of the step that has not ended.
        let name =
            if steps.0.is_empty() { "virtual functions".to_owned() } else { format!("step {}", steps.0.len() + 1) };
        steps.add(StepReport { name, problem: Some(format!("{error:#}")), ..StepReport::default() });
    }
    let report = StepsReport { ok: steps.0.iter().all(|step| step.ok), steps: steps.0 };
    if let Some(path) = &migrate.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

/// The steps that have ended.
struct Steps(Vec<StepReport>);

impl Steps {
    /// Adds a step and prints its line.
    fn add(&mut self, step: StepReport) {
        println!("{}", step.line());
        self.0.push(step);
    }

    /// Carries out a step, which returns its result and figures, and adds it.
    fn take<T>(&mut self, name: &str, step: impl FnOnce() -> Result<(T, String)>) -> Result<T> {
        let begin = Instant::now();
        let (result, detail) = step()?;
        let (name, seconds) = (name.to_owned(), begin.elapsed().as_secs_f64());
        self.add(StepReport { name, ok: true, seconds, detail, ..StepReport::default() });
        Ok(result)
    }
}

/// Gives each function its quotas, and a range of the GGTT to the one that is not enabled.
fn provision(migrate: &Migrate, files: &Files) -> Result<()> {
    files.put(migrate.vfs + 1, GGTT_QUOTA, GGTT)?;
    for (vf, (name, value)) in (1..=migrate.vfs).flat_map(|vf| QUOTAS.map(|quota| (vf, quota))) {
        files.put(vf, name, value)?;
    }
    Ok(())
}

/// The functions with their work.
struct Migration {
    files: Files,
    user: User,
    /// Programs that use the other functions in this guest.
    others: Vec<BusyFunction>,
    /// Render nodes of all functions in this guest, with their PCI addresses.
    nodes: Vec<(String, PathBuf)>,
    /// Of the second function.
    share: Option<Share>,
    /// Number of moves to another range.
    moves: usize,
}

impl Migration {
    /// Enables the functions, unless they have guests, and keeps them busy.
    fn begin(migrate: &Migrate, steps: &mut Steps) -> Result<Migration> {
        let files = Files::new(&migrate.pf);
        let share = if migrate.vfs < 2 { None } else { Some(Share::of_function(&migrate.pf, 2)?) };
        if let Some(folder) = &migrate.guests {
            let user = User::Guest(GuestOfFunction::new(folder));
            return Ok(Migration { files, user, others: Vec::new(), nodes: Vec::new(), share, moves: 0 });
        }
        steps.take("virtual functions enabled and busy", || {
            provision(migrate, &files)?;
            let sysfs = Sysfs::default();
            sysfs.set_vfs(&migrate.pf, migrate.vfs)?;
            let mut nodes = Vec::new();
            for vf in 1..=migrate.vfs {
                let address = sysfs.virtual_function(&migrate.pf, vf);
                let address = address.with_context(|| format!("virtual function {vf} did not appear"))?;
                let node = sysfs.render_node(&address).with_context(|| format!("xe does not drive {address}"))?;
                nodes.push((address, Path::new("/dev/dri").join(node)));
            }
            let mut loads = nodes.iter().map(|(_, node)| BusyFunction::start(node)).collect::<Result<Vec<_>>>()?;
            let others = loads.split_off(1);
            let user = User::Program(Program::new(loads.pop().context("there is no virtual function")?)?);
            Ok((Migration { files, user, others, nodes, share, moves: 0 }, String::new()))
        })
    }

    fn run(mut self, migrate: &Migrate, steps: &mut Steps) -> Result<()> {
        let before = self.share.as_mut().map(|share| share.measure(SHARE_BEFORE)).transpose()?;
        let share = self.share.as_mut().map(Share::begin).transpose()?;
        for number in 1..=migrate.rounds {
            let twice = number % TWICE == 0 && migrate.guests.is_some();
            let name = format!("migration {number}{}", if twice { ", twice" } else { "" });
            let migrated = steps.take(&name, || Ok(((), self.migrate(migrate.vfs + 1, twice)?)));
            if migrated.is_err() {
                self.user.release();
            }
            migrated?;
        }
        if let (Some(share), Some(before), Some(begin)) = (&mut self.share, before, share) {
            let during = share.since(&begin)?;
            steps.add(share::step(before, during));
        }
        if migrate.guests.is_some() {
            return Ok(());
        }
        steps.take("results of all functions", || {
            self.user.end()?;
            for load in self.others {
                load.end()?;
            }
            for (address, node) in &self.nodes {
                works(node).with_context(|| format!("{address} after the migrations"))?;
            }
            Sysfs::default().set_vfs(&migrate.pf, 0)?;
            Ok(((), String::new()))
        })
    }

    /// Migrates the first function. Returns figures.
    fn migrate(&mut self, spare: u8, twice: bool) -> Result<String> {
        self.user.stop()?;
        let mut detail = String::new();
        for _ in 0..if twice { 2 } else { 1 } {
            let before = self.files.range(VF)?;
            let of_spare = GGTT_OF_SPARE[self.moves % GGTT_OF_SPARE.len()];
            self.moves += 1;
            let Times { pause, save, restore, bytes } = self.files.migrate(VF, (spare, of_spare))?;
            let range = self.files.range(VF)?;
            ensure!(range != before, "the range of the GGTT is {before}, as before");
            detail +=
                &format!("{bytes} bytes, pause {pause:.3} s, save {save:.2} s, restore {restore:.2} s, GGTT {range}, ");
        }
        let recovery = self.user.go_on()?;
        Ok(format!("{detail}recovery {recovery:.3} s"))
    }
}

/// A store, a copy and a fence on an engine of each class.
fn works(node: &Path) -> Result<()> {
    let device = Device::open(Some(node))?;
    let engines = one_of_each_class(&device.engines()?);
    let env = CheckEnvironment { device: &device, timeout: Duration::from_secs(20), reference_clock: 0 };
    for (engine, outcome) in brief(&env, &engines, 0)? {
        outcome.with_context(|| engine.name())?;
    }
    Ok(())
}

/// The driver's files.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn new(pf: &str) -> Files {
        Files { folder: Path::new("/sys/kernel/debug/dri").join(pf).join("sriov") }
    }

    fn of(&self, vf: u8, name: &str) -> PathBuf {
        self.folder.join(format!("vf{vf}")).join(name)
    }

    fn put(&self, vf: u8, name: &str, value: u64) -> Result<()> {
        let path = self.of(vf, name);
        fs::write(&path, value.to_string()).with_context(|| format!("write of {value} to {}", path.display()))
    }

    fn get(&self, vf: u8, name: &str) -> Result<Vec<u8>> {
        let path = self.of(vf, name);
        fs::read(&path).with_context(|| format!("read of {}", path.display()))
    }

    /// The range of the GGTT that the function has.
    fn range(&self, vf: u8) -> Result<String> {
        let path = self.folder.join("pf/tile0/ggtt_provisioned");
        let text = fs::read_to_string(&path).with_context(|| format!("read of {}", path.display()))?;
        range_in(&text, vf).with_context(|| format!("no range of VF {vf} in {text:?}"))
    }

    /// Saves the function, moves it, restores and resumes it. The spare function gets a range of this size instead of the one that
    /// it has.
    fn migrate(&self, vf: u8, (spare, of_spare): (u8, u64)) -> Result<Times> {
        let begin = Instant::now();
        let mut last = 0.0;
        let mut since = || {
            let now = begin.elapsed().as_secs_f64();
            now - std::mem::replace(&mut last, now)
        };
        self.put(vf, "pause", 1)?;
        let pause = since();
        self.put(vf, "save", 1)?;
        let stream = self.get(vf, "migration_data")?;
        // Ends the save: an error if not all of it was read.
        self.get(vf, "save")?;
        let save = since();
        for (function, value) in [(vf, 0), (spare, of_spare), (vf, GGTT)] {
            self.put(function, GGTT_QUOTA, value)?;
        }
        self.put(vf, "restore", 1)?;
        let path = self.of(vf, "migration_data");
        let mut file = OpenOptions::new().write(true).open(&path)?;
        for piece in stream.chunks(PIECE) {
            file.write_all(piece).with_context(|| format!("write of {}", path.display()))?;
        }
        drop(file);
        self.get(vf, "restore")?;
        let restore = since();
        self.put(vf, "resume", 1)?;
        Ok(Times { pause, save, restore, bytes: stream.len() })
    }
}

/// The range of a function in the list of the driver, a line each: name, range and size, separated by tabs.
fn range_in(list: &str, vf: u8) -> Option<String> {
    let name = format!("VF{vf}:");
    let line = list.lines().find_map(|line| line.trim().strip_prefix(&name))?;
    Some(line.split_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_that_of_the_function() {
        let list = "VF1:\t0xbee00000-0xfedfffff\t(1.00 GiB)\nVF12:\t0x1000-0x1fff\t(4.00 KiB)\n";
        assert_eq!(range_in(list, 1).as_deref(), Some("0xbee00000-0xfedfffff"));
        assert_eq!(range_in(list, 12).as_deref(), Some("0x1000-0x1fff"));
        assert_eq!(range_in(list, 2), None);
    }

    /// Each move gives the spare function another size, also from one round of the sizes to the next.
    #[test]
    fn the_spare_function_has_another_size_after_each_move() {
        let sizes = GGTT_OF_SPARE.iter().cycle();
        assert!(sizes.clone().zip(sizes.skip(1)).take(6).all(|(one, next)| one != next));
    }
}
