// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest load`: keeps engines busy for a part of the time, and prints how long they were busy by each counter that
//! the driver and the card have.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arctic_mi::{Compare, TIMESTAMP, TIMESTAMP_UDW};
use serde::Serialize;

use super::batch::Batch;
use super::checks::clock::TIMESTAMP_MASK;
use super::checks::observation::{BusyClocks, BusyStream};
use super::device::{Device, Engine};
use super::pmu::{Event, Pmu};
use super::submit::find;
use super::sysfs::Sysfs;
use super::vm::Place;

/// Time from one batch of an engine to the next one.
const PERIOD: Duration = Duration::from_millis(100);
/// Time between the batch of an engine and that of the next one.
const GAP: Duration = Duration::from_micros(500);
/// Time limit of a batch beyond its part of the period.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Offsets of a batch's timestamps in its memory, behind the dword for which it waits.
const FIRST_STAMP: usize = 8;
const LAST_STAMP: usize = 16;

/// Longest load.
const MOST_SECONDS: u64 = 3600;

/// Which engines are loaded, and for how long.
#[derive(Debug, clap::Args)]
pub struct Load {
    /// Engines, each with the percentage of the time that a batch is to be on it, from 1 to 95; `all` is each engine. They are busy one
    /// after the other if that is possible, and otherwise at the same time. `vf1:` in front loads the engine by VF 1 of the device
    #[arg(value_name = "[VF:]ENGINE=PERCENT", required = true)]
    engines: Vec<EngineLoad>,
    /// How long, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u64,
    /// Load the engines until the standard input ends, for at most an hour
    #[arg(long, conflicts_with = "seconds")]
    until_eof: bool,
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
}

/// An engine and its load in percent.
#[derive(Clone, Debug)]
struct EngineLoad {
    /// Number of the VF that loads it; 0 is the device.
    function: u8,
    name: String,
    percent: u32,
}

impl FromStr for EngineLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, percent) = text.split_once('=').ok_or_else(|| format!("`{text}` has no percentage: rcs0=30"))?;
        let (function, name) = match name.split_once(':') {
            None => (0, name),
            Some((function, name)) => {
                let number =
                    function.strip_prefix("vf").and_then(|number| number.parse().ok()).filter(|number| *number != 0);
                (number.ok_or_else(|| format!("`{function}` is not a VF such as vf1"))?, name)
            }
        };
        match percent.parse() {
            Ok(percent @ 1..=95) => Ok(EngineLoad { function, name: name.to_owned(), percent }),
            _ => Err(format!("`{percent}` is not a percentage from 1 to 95")),
        }
    }
}

/// How long an engine was busy, in seconds.
#[derive(Debug, Serialize)]
struct Busy {
    /// Number of the VF; 0 is the device.
    function: u8,
    engine: String,
    /// By the events engine-active-ticks of the kernel's performance monitoring; `None` if the kernel has none.
    pmu: Option<f64>,
    /// By the cycles of the file's entry in `/proc/self/fdinfo`; `None` on a virtual function, whose driver has none (xe:
    /// `xe_drm_client.c`, `show_run_ticks`).
    fdinfo: Option<f64>,
    /// By the timestamps that each batch stores at its start and at its end.
    batches: f64,
}

/// The result.
#[derive(Debug, Serialize)]
struct Report {
    /// Duration of the load.
    seconds: f64,
    engines: Vec<Busy>,
    /// Seconds in which any engine was busy, by counter A0 of the observation unit; `None` on a virtual function.
    a0: Option<f64>,
}

/// Loads the engines and prints the report as JSON. For a second before and after that nothing is submitted, so that the card can be
/// looked at from outside.
pub fn run(load: &Load) -> Result<()> {
    let device = Device::open(load.device.as_deref())?;
    let sysfs = Sysfs::default();
    let address = sysfs.address_of(&device.path).context("the render node has no device")?;
    let mut engines = Vec::new();
    for EngineLoad { function, name, percent } in &load.engines {
        let path = match function {
            0 => device.path.clone(),
            vf => {
                let node = sysfs.virtual_function(&address, *vf).and_then(|address| sysfs.render_node(&address));
                Path::new("/dev/dri").join(node.with_context(|| format!("VF {vf} has no render node"))?)
            }
        };
        let device = Device::open(Some(&path))?;
        let found = if name == "all" { device.engines()? } else { vec![find(&device, name)?] };
        engines.extend(
            found.into_iter().map(|engine| (User { function: *function, path: path.clone(), engine }, *percent)),
        );
    }
    let pmu = Pmu::of_card(&address).ok();
    let seconds = if load.until_eof { MOST_SECONDS } else { load.seconds };
    let duration = Duration::from_secs(seconds.clamp(1, MOST_SECONDS));
    let clock = device.gts()?.first().context("the card has no GT")?.reference_clock;
    println!("loading {}", load.engines.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", "));
    thread::sleep(Duration::from_secs(1));
    let mut stream = BusyStream::open(&device)?;
    let together = engines.iter().map(|(_, percent)| percent).sum::<u32>() > 100;
    let mut before = 0;
    let begin = Instant::now() + Duration::from_millis(100);
    let (mut busy, mut clocks) = (Vec::new(), None);
    let (ends, done) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    if load.until_eof {
        let ends = ends.clone();
        // Not joined: it may wait for the input for ever.
        thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            ends.store(true, Ordering::Relaxed);
        });
    }
    thread::scope(|scope| -> Result<()> {
        let loads: Vec<_> = engines
            .iter()
            .map(|(user, percent)| {
                let offset = if together { Duration::ZERO } else { PERIOD * before / 100 };
                before += percent;
                let of_user =
                    |pmu: &Pmu| pmu.engine_event("engine-active-ticks", user.engine, user.function.into()).ok();
                let event = pmu.as_ref().and_then(of_user);
                let times = Times { begin: begin + offset, duration, ends: &ends, clock };
                scope.spawn(move || keep_busy(user, *percent, event, times))
            })
            .collect();
        let watcher = stream.as_mut().map(|stream| {
            let done = &done;
            scope.spawn(move || stream.follow(done))
        });
        for load in loads {
            busy.push(load.join().expect("a load does not panic")?);
        }
        // The newest report is visible when the next one has been written.
        thread::sleep(Duration::from_millis(50));
        done.store(true, Ordering::Relaxed);
        if let Some(watcher) = watcher {
            clocks = Some(watcher.join().expect("the watcher does not panic")?);
        }
        Ok(())
    })?;
    let a0 = clocks.map(|BusyClocks { busy, seconds }| busy * seconds);
    let seconds = begin.elapsed().min(duration).as_secs_f64();
    println!("{}", serde_json::to_string(&Report { seconds, engines: busy, a0 })?);
    thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// What loads an engine.
struct User {
    /// Number of the VF; 0 is the device.
    function: u8,
    /// The render node.
    path: PathBuf,
    engine: Engine,
}

/// When engines are loaded.
#[derive(Clone, Copy)]
struct Times<'t> {
    begin: Instant,
    duration: Duration,
    /// The load ends before that.
    ends: &'t AtomicBool,
    /// Rate of the timestamps in Hz.
    clock: u32,
}

/// Keeps an engine busy for `percent` of each period, by a batch that waits for the CPU.
fn keep_busy(user: &User, percent: u32, mut event: Option<Event>, times: Times<'_>) -> Result<Busy> {
    let Times { begin, duration, ends, clock } = times;
    let User { function, path, engine } = user;
    let engine = *engine;
    let device = Device::open(Some(path))?;
    let vm = device.vm()?;
    let queue = vm.queue(engine)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let buffer = vm.buffer(Place::System, 4096)?;
    let mut batch = Batch::at(buffer.address());
    let stamp = |batch: &mut Batch, at: usize| {
        let at = memory.address() + at as u64;
        batch.store_register_mem(TIMESTAMP, at).store_register_mem(TIMESTAMP_UDW, at + 4);
    };
    stamp(&mut batch, FIRST_STAMP);
    batch.semaphore_wait(memory.address(), Compare::NotEqual, 0);
    stamp(&mut batch, LAST_STAMP);
    batch.batch_buffer_end();
    buffer.load(&batch)?;
    let mut value = || event.as_mut().map(Event::value).transpose();
    let before = (value()?, cycles(&device, engine)?);
    let mut next = begin;
    let mut ticks = 0;
    while next < begin + duration && !ends.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        memory.mapping().write_u32(0, 0);
        let fence = queue.submit(buffer.address())?;
        let end = next + PERIOD * percent / 100 - GAP;
        thread::sleep(end.saturating_duration_since(Instant::now()));
        memory.mapping().write_u32(0, 1);
        queue.wait(&fence, TIMEOUT)?;
        let [first, last] = [FIRST_STAMP, LAST_STAMP].map(|at| memory.mapping().read_u64(at));
        ticks += last.wrapping_sub(first) & TIMESTAMP_MASK;
        // On a loaded host a period is longer.
        next = (next + PERIOD).max(Instant::now().checked_sub(PERIOD).unwrap_or(next));
    }
    let after = (value()?, cycles(&device, engine)?);
    let seconds = |ticks: u64| ticks as f64 / f64::from(clock);
    let passed = |before: Option<u64>, after: Option<u64>| Some(seconds(after?.saturating_sub(before?)));
    Ok(Busy {
        function: *function,
        engine: engine.name(),
        pmu: passed(before.0, after.0),
        fdinfo: passed(before.1, after.1),
        batches: seconds(ticks),
    })
}

/// Cycles of the engine's class that the device's file has used: `drm-cycles-rcs` and so on.
fn cycles(device: &Device, engine: Engine) -> Result<Option<u64>> {
    let path = format!("/proc/self/fdinfo/{}", device.file().as_raw_fd());
    let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let name = engine.name();
    let class = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    Ok(cycles_in(&text, class))
}

fn cycles_in(fdinfo: &str, class: &str) -> Option<u64> {
    let lines = fdinfo.lines().filter_map(|line| line.strip_prefix("drm-cycles-")?.split_once(':'));
    lines.filter(|(of, _)| *of == class).find_map(|(_, value)| value.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_those_of_the_class() {
        let text = "drm-driver:\txe\ndrm-cycles-rcs:\t120\ndrm-total-cycles-rcs:\t999\ndrm-cycles-ccs:\t7\n";
        assert_eq!(
            [cycles_in(text, "rcs"), cycles_in(text, "ccs"), cycles_in(text, "bcs")],
            [Some(120), Some(7), None]
        );
    }

    #[test]
    fn loads_are_read() {
        let load: EngineLoad = "ccs0=70".parse().unwrap();
        assert_eq!((load.function, load.name.as_str(), load.percent), (0, "ccs0", 70));
        let load: EngineLoad = "vf12:rcs0=30".parse().unwrap();
        assert_eq!((load.function, load.name.as_str(), load.percent), (12, "rcs0", 30));
        for text in ["vf0:ccs0=1", "pf:ccs0=1", "vf256:ccs0=1", "ccs0", "ccs0=", "ccs0=0", "ccs0=96", "ccs0=x"] {
            assert!(text.parse::<EngineLoad>().is_err(), "{text}");
        }
    }
}
