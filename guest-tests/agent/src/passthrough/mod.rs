// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest passthrough`: in a guest with a virtual IOMMU, enables VFs, assigns VF 1 and VF 2 to vfio-pci, and runs
//! inner guests with them.

mod inner;
mod qmp;
mod state;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::checks::CheckEnvironment;
use super::checks::smoke::{brief, one_of_each_class};
use super::device::Device;
use super::mapping::Mapping;
use super::report::{self, CheckResult, StepReport, StepsReport};
use super::sysfs::Sysfs;
use super::vfio::{self, Function};
use crate::pci_address::CARD_ADDRESS;
use inner::{Config, Inner, Memory, POLL, Task};
use state::DeliveredTwice;

/// QEMU's name in the outer guest.
pub const QEMU: &str = "qemu-system-x86_64";
/// The inner guests' kernel in the outer guest.
pub const KERNEL: &str = "/inner/kernel";
/// The inner guests' image in the outer guest.
pub const INITRD: &str = "/inner/initrd";
/// Mount point of hugetlbfs.
const HUGE_PAGES: &str = "/dev/hugepages";
/// Directory of the inner guests' files: a serial port is written byte by byte, which is slow on a shared directory.
const FILES: &str = "/tmp";
/// Time for which an inner guest may write nothing; shorter than the host's default limit for a guest without output.
const LIMIT: Duration = Duration::from_secs(100);
/// Work of an inner guest: all checks, or the stores of each engine.
const ALL: &str = "";
const SHORT: &str = "stores";
/// The scheduler's time slice. On one processor Linux 7.1 and later switch tasks every 0.7 ms (HRTICK). With two inner
/// guests each switch is one between virtual processors, after which an emulated processor has to translate all addresses
/// again: both guests would take twice as long.
const SLICE: (&str, &str) = ("/sys/kernel/debug/sched/base_slice_ns", "10000000");
/// Time limit of one batch of work in the outer guest.
const BATCH_LIMIT: Duration = Duration::from_secs(20);

/// VF_CAP of a VF's GTTMMADR (xe: regs/xe_regs.h, VF_CAP_REG): bit 0 is set on a VF.
const VF_CAP: u64 = 0x19_01f8;
/// IOVA and size in bytes of the memory that is mapped for DMA. The card receives a DMA_MAP for each of its 4 KiB pages.
const DMA_IOVA: u64 = 1 << 32;
const DMA_SIZE: usize = 1 << 20;
/// Bytes of local memory that are written before a reset, one qword per page.
const WRITTEN: usize = 4 << 20;
const PAGE: usize = 4096;

/// The functions, the number of resets and the file for the report.
#[derive(Debug, clap::Args)]
pub struct Passthrough {
    /// PCI address of the physical function
    #[arg(long, value_name = "ADDRESS", default_value = CARD_ADDRESS)]
    pf: String,
    /// Number of virtual functions to enable; VF 1 and VF 2 are passed on
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=63))]
    vfs: u8,
    /// Number of resets of each VF by vfio
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    resets: u32,
    /// Write the results to FILE as JSON, and the inner guests' logs beside it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What the steps work on.
struct Outer<'a> {
    options: &'a Passthrough,
    sysfs: Sysfs,
    /// PCI addresses and IOMMU groups of VF 1 and VF 2.
    vfs: Vec<(String, String)>,
    /// Clock parameters of the outer guest's kernel.
    clock: String,
    /// The inner guests with VF 1 and VF 2 that run from one step to the next.
    running: [Option<Inner>; 2],
}

/// The checks of a step that has run to its end, and what to print about it.
type Done = Result<(Vec<CheckResult>, String)>;

/// A step of the run.
struct Step {
    name: &'static str,
    /// Whether the run ends if this step fails.
    needed: bool,
    run: fn(&mut Outer<'_>) -> Done,
}

const fn step(name: &'static str, run: fn(&mut Outer<'_>) -> Done) -> Step {
    Step { name, needed: false, run }
}

const fn needed(name: &'static str, run: fn(&mut Outer<'_>) -> Done) -> Step {
    Step { name, needed: true, run }
}

const STEPS: &[Step] = &[
    needed("xe works on the PF", |outer| outer.physical()),
    needed("VFs enabled, each in an IOMMU group", |outer| outer.enable()),
    needed("vf1 and vf2 on vfio-pci", |outer| outer.bind_vfio()),
    step("vf1 reset right after it is opened", |outer| outer.resets(0)),
    step("vf2 reset right after it is opened", |outer| outer.resets(1)),
    step("inner guest with vf1, hugetlbfs", |outer| outer.alone(0, Memory::HugePages, ALL, "")),
    step("inner guest with vf2, transparent huge pages", |outer| outer.alone(1, Memory::Transparent, SHORT, "")),
    step("inner guests with vf1 and vf2 at once", |outer| outer.both()),
    step("inner guest with vf1 killed at work", |outer| outer.kill()),
    step("vf2 unplugged from its inner guest, and added again", |outer| outer.unplug()),
    step("next inner guest with vf1", |outer| outer.alone(0, Memory::HugePages, SHORT, "-next")),
    step("vf1 and vf2 on xe again", |outer| outer.bind_xe()),
    step("VFs disabled", |outer| outer.disable()),
];

/// Runs the steps, prints a line for each, and writes the report. Returns true if all checks passed.
pub fn run(options: &Passthrough) -> Result<bool> {
    let mut outer = Outer { options, sysfs: Sysfs::default(), vfs: Vec::new(), clock: clock(), running: [None, None] };
    let mut steps = Vec::new();
    for step in STEPS {
        println!("{}", step.name);
        let start = Instant::now();
        let mut done = (step.run)(&mut outer);
        let stopped = done.as_ref().err().filter(|error| error.is::<DeliveredTwice>()).map(|error| format!("{error}"));
        if let Some(stopped) = &stopped {
            println!("  {stopped}; the step is repeated");
            done = (step.run)(&mut outer);
        }
        let mut report = step_report(step.name, done, start.elapsed().as_secs_f64());
        report.repeated = stopped;
        println!("{}", report.line());
        let end = step.needed && !report.ok;
        steps.push(report);
        if end {
            break;
        }
    }
    let report = StepsReport { ok: steps.len() == STEPS.len() && steps.iter().all(|step| step.ok), steps };
    if let Some(path) = &options.out {
        report::write_json(path, &report).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(report.ok)
}

fn step_report(name: &str, done: Done, seconds: f64) -> StepReport {
    let (checks, detail, problem) = match done {
        Ok((checks, detail)) => {
            let failed = checks.iter().find(|check| !check.ok);
            let problem = failed.map(|check| format!("{}: {}: {}", check.engine, check.what, check.detail));
            (checks, detail, problem)
        }
        Err(error) => (Vec::new(), String::new(), Some(format!("{error:#}"))),
    };
    StepReport { name: name.to_owned(), ok: problem.is_none(), seconds, detail, problem, repeated: None, checks }
}

/// The clock parameters of this kernel's command line, for a nested kernel with the same clock.
fn clock() -> String {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let clock = line.split_whitespace().filter(|word| word.starts_with("tsc_early_khz=") || word.starts_with("lpj="));
    clock.collect::<Vec<_>>().join(" ")
}

/// Runs `check` and returns its outcome for `engine`.
fn checked(engine: &str, what: &str, check: impl FnOnce() -> Result<()>) -> CheckResult {
    let start = Instant::now();
    let result = check();
    let (ok, detail) = (result.is_ok(), result.err().map(|error| format!("{error:#}")).unwrap_or_default());
    let (engine, what, seconds) = (engine.to_owned(), what.to_owned(), start.elapsed().as_secs_f64());
    CheckResult { engine, what, ok, detail, seconds, ..CheckResult::default() }
}

fn modprobe(modules: &[&str]) -> Result<()> {
    let status = Command::new("modprobe").arg("-a").args(modules).status().context("modprobe cannot be started")?;
    ensure!(status.success(), "modprobe {} ended with {status}", modules.join(" "));
    Ok(())
}

impl Outer<'_> {
    fn name(index: usize) -> String {
        format!("vf{}", index + 1)
    }

    /// A store, a copy and a fence on an engine of each class of the function at `address`.
    fn work(&self, name: &str, address: &str) -> Result<Vec<CheckResult>> {
        let node = self.sysfs.render_node(address).with_context(|| format!("{name} has no render node"))?;
        let device = Device::open(Some(&Path::new("/dev/dri").join(node)))?;
        let engines = one_of_each_class(&device.engines()?);
        let env = CheckEnvironment { device: &device, timeout: BATCH_LIMIT, reference_clock: 0 };
        let results = brief(&env, &engines, 1)?;
        let outcome = |(engine, result): (super::device::Engine, Result<()>)| {
            checked(name, &format!("store, copy, fence on {}", engine.name()), || result)
        };
        Ok(results.into_iter().map(outcome).collect())
    }

    fn physical(&mut self) -> Done {
        let pf = &self.options.pf;
        let group = self.sysfs.iommu_group(pf).context("the PF has no IOMMU group: the kernel uses no IOMMU")?;
        let domain = self.sysfs.iommu_domain(&group)?;
        let mut checks = vec![checked("pf", "driver", || {
            let driver = self.sysfs.driver(pf);
            ensure!(driver.as_deref() == Some("xe"), "the driver is {}", driver.as_deref().unwrap_or("none"));
            Ok(())
        })];
        checks.extend(self.work("pf", pf)?);
        Ok((checks, format!("group {group} with the domain {domain}")))
    }

    fn enable(&mut self) -> Done {
        let Passthrough { pf, vfs, .. } = self.options;
        self.sysfs.set_autoprobe(pf, false)?;
        self.sysfs.set_vfs(pf, *vfs)?;
        let mut groups = BTreeSet::from([self.sysfs.iommu_group(pf).context("the PF has no IOMMU group")?]);
        let mut checks = Vec::new();
        for number in 1..=*vfs {
            let address =
                self.sysfs.virtual_function(pf, number).with_context(|| format!("VF {number} did not appear"))?;
            let group = self.sysfs.iommu_group(&address).with_context(|| format!("VF {number} has no IOMMU group"))?;
            let new = groups.insert(group.clone());
            checks.push(checked(&format!("vf{number}"), "own IOMMU group", || {
                ensure!(new, "group {group} has another function of the card");
                Ok(())
            }));
            self.vfs.push((address, group));
        }
        self.vfs.truncate(2);
        let names: Vec<String> = groups.into_iter().collect();
        Ok((checks, format!("{vfs} VFs, groups {}", names.join(", "))))
    }

    fn bind_vfio(&mut self) -> Done {
        modprobe(&["vfio_pci", "vfio_iommu_type1", "kvm_amd"])?;
        // A kernel without this file has longer slices.
        let _ = fs::write(SLICE.0, SLICE.1);
        for (address, _) in &self.vfs {
            self.sysfs.bind(address, "vfio-pci")?;
        }
        ensure!(Path::new("/dev/kvm").exists(), "there is no /dev/kvm: the processor has no virtualisation");
        let pages = 2 * inner::MEMORY.div_ceil(2);
        fs::write("/proc/sys/vm/nr_hugepages", pages.to_string()).context("huge pages cannot be reserved")?;
        let reserved = fs::read_to_string("/proc/sys/vm/nr_hugepages")?;
        ensure!(reserved.trim() == pages.to_string(), "{} of {pages} huge pages are available", reserved.trim());
        fs::create_dir_all(HUGE_PAGES)?;
        let status = Command::new("mount").args(["-t", "hugetlbfs", "hugetlbfs", HUGE_PAGES]).status()?;
        ensure!(status.success(), "hugetlbfs cannot be mounted on {HUGE_PAGES}");
        let transparent = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        Ok((Vec::new(), format!("transparent huge pages: {}", transparent.trim())))
    }

    /// Opens a VF through vfio, writes its local memory and resets it, repeatedly. Nothing of before the reset is
    /// readable afterwards.
    fn resets(&mut self, index: usize) -> Done {
        let (address, group) = &self.vfs[index];
        let name = Self::name(index);
        let mut checks = Vec::new();
        for round in 1..=self.options.resets {
            let what = format!("round {round}");
            checks.push(checked(&name, &what, || vfio_round(address, group, round)));
        }
        let passed = checks.iter().filter(|check| check.ok).count();
        Ok((checks, format!("{passed} of {} rounds", self.options.resets)))
    }

    fn start(&self, index: usize, memory: Memory, task: Task, only: &'static str, suffix: &str) -> Result<Inner> {
        let config = Config {
            name: format!("{}{suffix}", Self::name(index)),
            address: self.vfs[index].0.clone(),
            memory,
            task,
            only,
            clock: self.clock.clone(),
        };
        Inner::start(config, Path::new(FILES), self.options.out.as_ref().and_then(|path| path.parent()))
    }

    fn alone(&mut self, index: usize, memory: Memory, only: &'static str, suffix: &str) -> Done {
        let mut inner = self.start(index, memory, Task::Work, only, suffix)?;
        inner.finish(LIMIT)?;
        done(inner.checks(1)?)
    }

    /// Starts two inner guests and waits until both have worked. They continue to run: the one with VF 1 repeats short
    /// work, the other waits until its VF is unplugged.
    fn both(&mut self) -> Done {
        // Those of a first attempt have the huge pages.
        self.running = [None, None];
        for (index, task) in [(0, Task::Rounds), (1, Task::Unplug)] {
            self.running[index] = Some(self.start(index, Memory::HugePages, task, ALL, "-both")?);
        }
        let mut checks = Vec::new();
        // Both are read in turn, so that each line is printed when it arrives.
        let start = Instant::now();
        loop {
            let mut waits = false;
            for inner in self.running.iter_mut().flatten() {
                waits |= !inner.poll("waiting", start, LIMIT)?;
            }
            if !waits {
                break;
            }
            thread::sleep(POLL);
        }
        for inner in self.running.iter().flatten() {
            checks.extend(inner.checks(1)?);
        }
        done(checks)
    }

    /// Kills the inner guest with VF 1, which repeats short work.
    fn kill(&mut self) -> Done {
        let mut inner = self.running[0].take().context("the inner guest with VF 1 does not run")?;
        inner.check_running()?;
        inner.kill()?;
        Ok((Vec::new(), "SIGKILL".into()))
    }

    /// Unplugs VF 2 from its inner guest and adds it again; the guest works on it again and ends.
    fn unplug(&mut self) -> Done {
        let mut inner = match self.running[1].take() {
            Some(inner) => inner,
            // The one of the step before was stopped by the emulator.
            None => {
                let mut inner = self.start(1, Memory::HugePages, Task::Unplug, SHORT, "-again")?;
                inner.wait_for("waiting", LIMIT)?;
                inner
            }
        };
        // QEMU's monitor has one client at a time: while the guest is awaited, it is free to report the guest's state.
        let mut monitor = inner.monitor(LIMIT)?;
        monitor.execute("device_del", json!({ "id": inner::VF }))?;
        monitor.wait_for("DEVICE_DELETED", inner::VF, LIMIT)?;
        drop(monitor);
        inner.wait_for("gone", LIMIT)?;
        let device = json!({ "driver": "vfio-pci", "host": self.vfs[1].0, "id": inner::VF, "bus": inner::PORT });
        inner.monitor(LIMIT)?.execute("device_add", device)?;
        inner.wait_for("back", LIMIT)?;
        inner.finish(LIMIT)?;
        done(inner.checks(2)?)
    }

    fn bind_xe(&mut self) -> Done {
        let mut checks = Vec::new();
        for (index, (address, _)) in self.vfs.iter().enumerate() {
            self.sysfs.bind(address, "xe")?;
            checks.extend(self.work(&Self::name(index), address)?);
        }
        Ok((checks, String::new()))
    }

    fn disable(&mut self) -> Done {
        self.sysfs.set_vfs(&self.options.pf, 0)?;
        ensure!(self.sysfs.virtual_function(&self.options.pf, 1).is_none(), "VF 1 still exists");
        Ok((Vec::new(), String::new()))
    }
}

/// The result of a step with the checks of inner guests: the number of passed checks and of interrupts.
fn done(checks: Vec<CheckResult>) -> Done {
    let passed = checks.iter().filter(|check| check.ok).count();
    let messages = checks.iter().filter(|check| check.what == "msi").map(|check| check.detail.as_str());
    let detail = format!("{passed} checks, {}", messages.collect::<Vec<_>>().join(", "));
    Ok((checks, detail))
}

/// Opens the VF, which resets it, uses registers, local memory, DMA and MSI, and resets it at once.
fn vfio_round(address: &str, group: &str, round: u32) -> Result<()> {
    let memory_file = tempfile::tempfile().context("no memory for DMA")?;
    memory_file.set_len(DMA_SIZE as u64)?;
    let dma = Mapping::new(&memory_file, 0, DMA_SIZE)?;
    let function = Function::open(address, group)?;
    function.check_info()?;
    let id = function.id()?;
    ensure!(id & 0xffff == 0x8086, "vendor and device ID {id:#x}");
    function.enable()?;
    function.map_dma(DMA_IOVA, &dma)?;
    let capability = function.read_u32(vfio::BAR0, VF_CAP)?;
    let registers = function.map(vfio::BAR0, crate::number::size(VF_CAP).next_multiple_of(PAGE))?;
    let mapped = registers.read_u32(crate::number::size(VF_CAP));
    ensure!(capability & 1 == 1 && mapped == capability, "VF_CAP is {capability:#x} by pread, {mapped:#x} by mmap");
    let memory = function.map(vfio::BAR2, WRITTEN)?;
    let value = |at: usize| (u64::from(round) << 40) | at as u64 | 1;
    let offsets = || (0..WRITTEN).step_by(PAGE);
    offsets().for_each(|at| memory.write_u64(at, value(at)));
    ensure!(offsets().all(|at| memory.read_u64(at) == value(at)), "local memory does not retain written data");
    ensure!(function.msi_loopback()?, "the triggered MSI was not counted once");
    function.reset()?;
    function.enable()?;
    let left = offsets().filter(|at| memory.read_u64(*at) != 0).count();
    ensure!(left == 0, "{left} of {} pages of local memory are not zero after VFIO_DEVICE_RESET", WRITTEN / PAGE);
    function.unmap_dma(DMA_IOVA, DMA_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_first_problem_of_its_checks() {
        let outcome = |ok: bool| CheckResult {
            engine: "rcs0".into(),
            what: "stores".into(),
            ok,
            detail: "byte 4".into(),
            seconds: 0.1,
            ..CheckResult::default()
        };
        let good = step_report("a step", Ok((vec![outcome(true)], "77 checks".into())), 2.0);
        assert_eq!((good.ok, good.line().as_str()), (true, "ok   a step: 77 checks (2.0 s)"));
        let bad = step_report("a step", Ok((vec![outcome(true), outcome(false)], "77 checks".into())), 2.0);
        assert_eq!((bad.ok, bad.line().as_str()), (false, "FAIL a step: rcs0: stores: byte 4 (2.0 s)"));
        let lost = step_report("a step", Err(anyhow::anyhow!("QEMU has ended")), 2.0);
        assert_eq!(lost.line(), "FAIL a step: QEMU has ended (2.0 s)");
    }

    /// Without an IOMMU the first step fails, and the steps that need it do not run.
    #[test]
    fn the_steps_end_where_their_base_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("steps.json");
        let pf = "ffff:ff:1f.7".to_owned();
        let options = Passthrough { pf, vfs: 2, resets: 1, out: Some(out.clone()) };
        assert!(!run(&options).unwrap());
        let report: StepsReport = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
        assert_eq!((report.ok, report.steps.len()), (false, 1));
        assert!(report.steps[0].problem.as_deref().unwrap().contains("no IOMMU group"), "{:?}", report.steps[0]);
    }
}
