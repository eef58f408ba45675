// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest vfs`: enables VFs through sysfs, waits for their drivers and runs work on each.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::checks::CheckEnvironment;
use super::checks::smoke::{brief, one_of_each_class};
use super::device::Device;
use super::report::{self, VfReport, VfsReport};
use super::sysfs::Sysfs;
use crate::pci_address::CARD_ADDRESS;

/// Number of VFs that work concurrently.
const AT_ONCE: usize = 8;
/// Polling interval while waiting for the next driver.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Minimum interval between progress lines of a long step.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Number of VFs, and options for their drivers and work.
#[derive(Debug, clap::Args)]
pub struct Vfs {
    /// Number of virtual functions to enable; 0 disables all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    count: u8,
    /// PCI address of the physical function
    #[arg(long, value_name = "ADDRESS", default_value = CARD_ADDRESS)]
    pf: String,
    /// Bind no drivers to them, for use by other guests
    #[arg(long)]
    no_driver: bool,
    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Seconds that one batch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
}

/// Enables or disables the VFs, prints a line per step and per failed VF, and writes the report. Returns true on
/// success.
pub fn run(vfs: &Vfs) -> Result<bool> {
    let report = change(vfs, &Sysfs::default(), Path::new("/dev/dri"));
    for problem in report.problems() {
        println!("FAIL {problem}");
    }
    if let Some(path) = &vfs.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

fn change(vfs: &Vfs, sysfs: &Sysfs, nodes: &Path) -> VfsReport {
    let mut report = VfsReport { count: vfs.count, ..VfsReport::default() };
    let done = match vfs.count {
        0 => disable(vfs, sysfs, &mut report),
        _ => enable(vfs, sysfs, &mut report),
    };
    report.problem = done.err().map(|error| format!("{error:#}"));
    if report.problem.is_none() && vfs.count > 0 && !vfs.no_driver {
        let start = Instant::now();
        work(vfs, sysfs, nodes, &mut report.vfs);
        report.work_seconds = start.elapsed().as_secs_f64();
        let well = report.vfs.iter().filter(|vf| vf.problem.is_none()).count();
        println!("{well} of {} virtual functions worked, {:.1} s", vfs.count, report.work_seconds);
    }
    report.ok = report.problems().is_empty();
    report
}

fn disable(vfs: &Vfs, sysfs: &Sysfs, report: &mut VfsReport) -> Result<()> {
    let start = Instant::now();
    sysfs.set_vfs(&vfs.pf, 0)?;
    report.change_seconds = start.elapsed().as_secs_f64();
    println!("virtual functions disabled, {:.1} s", report.change_seconds);
    ensure!(sysfs.virtual_function(&vfs.pf, 1).is_none(), "virtual function 1 still exists");
    Ok(())
}

/// Enables the VFs. The kernel probes their drivers sequentially before the sysfs write returns.
fn enable(vfs: &Vfs, sysfs: &Sysfs, report: &mut VfsReport) -> Result<()> {
    if vfs.no_driver {
        sysfs.set_autoprobe(&vfs.pf, false)?;
    }
    let start = Instant::now();
    let finished = AtomicBool::new(false);
    let moments = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(vfs, sysfs, start, &finished));
        let written = sysfs.set_vfs(&vfs.pf, vfs.count);
        finished.store(true, Ordering::Release);
        let moments = watcher.join().unwrap_or_default();
        written.map(|()| moments)
    })?;
    report.change_seconds = start.elapsed().as_secs_f64();
    for number in 1..=vfs.count {
        let address = sysfs.virtual_function(&vfs.pf, number);
        let address = address.with_context(|| format!("virtual function {number} did not appear"))?;
        let probe_seconds = moments.get(usize::from(number) - 1).map_or(0.0, |moment| moment.as_secs_f64());
        report.vfs.push(VfReport { number, address, probe_seconds, ..VfReport::default() });
    }
    let what = if vfs.no_driver { "without a driver" } else { "and probed" };
    println!("{} virtual functions enabled {what}, {:.1} s", vfs.count, report.change_seconds);
    Ok(())
}

/// Watches the drivers probe in VF order, prints progress, and returns the duration of each probe. The first probe is
/// timed from the appearance of the VFs.
fn watch(vfs: &Vfs, sysfs: &Sysfs, start: Instant, finished: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    let mut begun = None;
    let mut last_progress = start;
    while took.len() < usize::from(vfs.count) {
        // Loaded before the check below, so that a change made before `finished` was set is not missed.
        let is_last = finished.load(Ordering::Acquire);
        let next = u8::try_from(took.len() + 1).ok().and_then(|number| sysfs.virtual_function(&vfs.pf, number));
        if next.is_some() {
            begun.get_or_insert_with(Instant::now);
        }
        match (next.and_then(|address| sysfs.render_node(&address)), begun) {
            (Some(_), Some(before)) => {
                took.push(before.elapsed());
                begun = Some(Instant::now());
                continue;
            }
            _ if is_last => break,
            _ => thread::sleep(POLL_INTERVAL),
        }
        if last_progress.elapsed() >= PROGRESS_INTERVAL {
            last_progress = Instant::now();
            match begun {
                None => println!("enabling, {:.0} s", start.elapsed().as_secs_f64()),
                Some(_) => println!("{} of {} virtual functions probed", took.len(), vfs.count),
            }
        }
    }
    took
}

/// Runs the work of all VFs, up to `AT_ONCE` concurrently.
fn work(vfs: &Vfs, sysfs: &Sysfs, nodes: &Path, reports: &mut [VfReport]) {
    let total = reports.len();
    let done = AtomicU8::new(0);
    let last_progress = Mutex::new(Instant::now());
    let queue = Mutex::new(reports.iter_mut());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(total) {
            scope.spawn(|| {
                // The lock is poisoned if the thread of another VF panicked; that VF then lacks a result.
                while let Some(report) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let start = Instant::now();
                    report.problem = work_of_one(vfs, sysfs, nodes, report).err().map(|error| format!("{error:#}"));
                    report.work_seconds = start.elapsed().as_secs_f64();
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if let Ok(mut last_progress) = last_progress.lock()
                        && last_progress.elapsed() >= PROGRESS_INTERVAL
                    {
                        *last_progress = Instant::now();
                        println!("{done} of {total} virtual functions have worked");
                    }
                }
            });
        }
    });
}

fn work_of_one(vfs: &Vfs, sysfs: &Sysfs, nodes: &Path, report: &mut VfReport) -> Result<()> {
    let driver = sysfs.driver(&report.address);
    ensure!(driver.as_deref() == Some("xe"), "bound driver is {}, expected xe", driver.as_deref().unwrap_or("none"));
    let node = sysfs.render_node(&report.address).context("no render node")?;
    let quota = sysfs.quota(&report.address);
    report.ggtt_bytes = quota.ggtt_bytes;
    report.contexts = quota.contexts;
    report.doorbells = quota.doorbells;
    let device = Device::open(Some(&nodes.join(&node)))?;
    report.node = node;
    let regions = device.mem_regions()?;
    let vram = regions.iter().filter(|region| region.class == "vram").map(|region| region.total_size).sum();
    report.lmem_bytes = quota.lmem_bytes.unwrap_or(vram);
    let env = CheckEnvironment { device: &device, timeout: Duration::from_secs(vfs.timeout), reference_clock: 0 };
    let engines = device.engines()?;
    ensure!(!engines.is_empty(), "no engines");
    report.engines = engines.iter().map(|engine| engine.name()).collect();
    let outcomes = brief(&env, &one_of_each_class(&engines), report.number.into())?;
    report.worked = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(engine, _)| engine.name()).collect();
    match outcomes.into_iter().find_map(|(engine, outcome)| Some((engine, outcome.err()?))) {
        Some((engine, error)) => Err(error.context(engine.name())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn vfs(count: u8, no_driver: bool) -> Vfs {
        Vfs { count, pf: CARD_ADDRESS.into(), no_driver, out: None, timeout: 1 }
    }

    /// Creates a sysfs tree with a PF and `there` VFs.
    fn kernel(there: u8) -> (tempfile::TempDir, Sysfs) {
        let folder = tempfile::tempdir().unwrap();
        let devices = folder.path().join("bus/pci/devices");
        fs::create_dir_all(devices.join(CARD_ADDRESS)).unwrap();
        for number in 1..=there {
            let address = format!("0000:00:01.{number}");
            fs::create_dir_all(devices.join(&address).join(format!("drm/renderD{}", 128 + u32::from(number)))).unwrap();
            symlink("../../../drivers/xe", devices.join(&address).join("driver")).unwrap();
            symlink(format!("../{address}"), devices.join(CARD_ADDRESS).join(format!("virtfn{}", number - 1))).unwrap();
        }
        let sysfs = Sysfs::at(folder.path());
        (folder, sysfs)
    }

    #[test]
    fn functions_are_enabled_and_a_node_that_does_not_open_fails_its_function_alone() {
        let (folder, sysfs) = kernel(3);
        let report = change(&vfs(3, false), &sysfs, folder.path());
        let numvfs = fs::read_to_string(folder.path().join(format!("bus/pci/devices/{CARD_ADDRESS}/sriov_numvfs")));
        assert_eq!(numvfs.unwrap(), "3");
        assert_eq!(report.problem, None);
        assert_eq!(report.vfs.iter().map(|vf| vf.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(report.vfs[2].address, "0000:00:01.3");
        assert!(!report.ok);
        let problem = report.vfs[1].problem.as_deref().unwrap();
        assert!(problem.contains("renderD130"), "{problem}");
        assert_eq!(report.problems().len(), 3);
    }

    #[test]
    fn drivers_are_kept_away_where_other_guests_want_the_functions() {
        let (folder, sysfs) = kernel(2);
        let report = change(&vfs(2, true), &sysfs, folder.path());
        let file = format!("bus/pci/devices/{CARD_ADDRESS}/sriov_drivers_autoprobe");
        assert_eq!(fs::read_to_string(folder.path().join(file)).unwrap(), "0");
        assert!(report.ok && report.vfs.len() == 2);
    }

    #[test]
    fn missing_and_remaining_functions_are_reported() {
        let (folder, sysfs) = kernel(1);
        let report = change(&vfs(2, false), &sysfs, folder.path());
        assert_eq!(report.problem.as_deref(), Some("virtual function 2 did not appear"));
        let report = change(&vfs(0, false), &sysfs, folder.path());
        assert!(!report.ok && report.problem.is_some());
        let (folder, sysfs) = kernel(0);
        assert!(change(&vfs(0, false), &sysfs, folder.path()).ok);
        let nowhere = Sysfs::at(Path::new("/nonexistent"));
        let report = change(&vfs(0, false), &nowhere, folder.path());
        assert!(report.problem.unwrap().contains("sriov_numvfs"));
    }

    #[test]
    fn a_function_without_its_driver_is_reported() {
        let (folder, sysfs) = kernel(1);
        fs::remove_file(folder.path().join("bus/pci/devices/0000:00:01.1/driver")).unwrap();
        let report = change(&vfs(1, false), &sysfs, folder.path());
        assert_eq!(report.vfs[0].problem.as_deref(), Some("bound driver is none, expected xe"));
    }
}
