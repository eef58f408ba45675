// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Streams of the observation unit and the counters of a context, by xe: reports of the timer, of context switches and of writes
//! of the trigger register, with the counters of the set TestOa, of which the values are known.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use arctic_mi::{self as mi, Process, Reg};

use super::{CheckEnvironment, program};
use crate::device::{Device, DrmError, Engine};
use crate::observation::{OAG_256, OAR_256, Property, Stream, add_config, remove_config};
use crate::vm::Place;

/// The timer's exponent: a report every 213 us.
const EXPONENT: u64 = 12;
/// Distance of two reports of the timer in ticks.
const PERIOD: u32 = 2 << EXPONENT;
/// Reports of the timer that must be read.
const REPORTS: usize = 64;
/// Bytes of a report.
const BYTES: usize = 256;
/// OAG_OATAILPTR and OAG_MMIOTRIGGER.
const TAIL: u32 = 0xdb04;
const TRIGGER: u32 = 0xdb1c;
/// The value that the batch writes to the trigger register.
const MARKER: u32 = 0x00c0_ffee;
/// The set TestOa: NOA_WRITE, GT_NOA_ENABLE, and the comparisons of the B counters.
const TEST_OA: [(u32, u32); 18] = [
    (0xd04, 0x200),
    (0x9888, 0x1008_0ff3),
    (0xd940, 0x4),
    (0xd944, 0xffff),
    (0xd948, 0x3),
    (0xd94c, 0xffff),
    (0xd950, 0x7),
    (0xd954, 0xffff),
    (0xd958, 0x10_0002),
    (0xd95c, 0xfff7),
    (0xd960, 0x10_0002),
    (0xd964, 0xffcf),
    (0xd968, 0x10_0082),
    (0xd96c, 0xffef),
    (0xd970, 0x10_00c2),
    (0xd974, 0xffe7),
    (0xd978, 0x10_0001),
    (0xd97c, 0xffe7),
];
/// Parts of the clocks that its counters have.
const PARTS: [(u32, u32); 8] = [(0, 1), (1, 1), (1, 1), (1, 2), (1, 3), (1, 3), (1, 6), (2, 3)];

/// The timer's exponent of [`BusyStream`]: a report every 3.4 ms.
const BUSY_EXPONENT: u64 = 16;
/// Ticks of the reports' timestamps in a second (`drm_xe_query_oa_units`: oa_timestamp_freq of this card).
const TICKS_PER_SECOND: f64 = 38_400_000.0;

/// Part of the render clocks in which an engine was busy, and the time that the reports cover.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusyClocks {
    /// Part, of 1, of the time.
    pub busy: f64,
    /// Time in seconds.
    pub seconds: f64,
}

impl BusyClocks {
    /// Adds what has passed between two reports: A0 and the clocks, and the timestamps.
    fn add(&mut self, before: &Report, after: &Report) {
        let delta = |dword: usize| f64::from(after.0[dword].wrapping_sub(before.0[dword]));
        let (ticks, clocks, busy) = (delta(1), delta(3), delta(4));
        let seconds = ticks / TICKS_PER_SECOND;
        let part = if clocks > 0.0 { busy / clocks } else { 0.0 };
        let all = self.seconds + seconds;
        if all > 0.0 {
            self.busy = (self.busy * self.seconds + part * seconds) / all;
        }
        self.seconds = all;
    }
}

/// A stream of which counter A0 is read: clocks in which any engine is busy.
pub struct BusyStream<'d> {
    device: &'d Device,
    stream: Stream,
    set: u64,
}

impl<'d> BusyStream<'d> {
    /// Opens the stream. `None` on a virtual function, which has none.
    pub fn open(device: &'d Device) -> Result<Option<Self>> {
        let set = match add_config(device, "7389b9c9-de73-468d-83a8-b27776215e6b", &TEST_OA) {
            Err(DrmError::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            other => other?,
        };
        let properties = [
            (Property::SampleOa, 1),
            (Property::OaMetricSet, set),
            (Property::OaFormat, OAG_256),
            (Property::OaPeriodExponent, BUSY_EXPONENT),
        ];
        let stream = Stream::open(device, &properties)?;
        Ok(Some(BusyStream { device, stream, set }))
    }

    /// Reads the reports until `done`.
    pub fn follow(&mut self, done: &AtomicBool) -> Result<BusyClocks> {
        let (mut clocks, mut last, mut reports) = (BusyClocks::default(), None, Vec::new());
        loop {
            let ends = done.load(Ordering::Relaxed);
            read(&mut self.stream, &mut reports)?;
            for report in reports.drain(..) {
                if let Some(before) = &last {
                    clocks.add(before, &report);
                }
                last = Some(report);
            }
            if ends {
                return Ok(clocks);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for BusyStream<'_> {
    fn drop(&mut self) {
        // The stream still uses the set, which the driver keeps until it is closed. Errors cannot be reported from drop.
        let _ = remove_config(self.device, self.set);
    }
}

/// A report of 64 dwords.
struct Report(Vec<u32>);

impl Report {
    fn reason(&self) -> u32 {
        self.0[0] >> 19 & 0x7f
    }

    /// Whether it is that of a switch to a context.
    fn is_switch(&self) -> bool {
        self.reason() == 8 && self.0[0] >> 16 & 1 != 0 && self.0[2] != 0
    }
}

/// A stream of each kind of report, and the counters of a context. A VF has none.
pub fn streams(env: &CheckEnvironment<'_>, engines: &[Engine]) -> Result<String> {
    let device = env.device;
    let render = engines.iter().find(|engine| engine.class == 0).context("no render engine")?;
    let added = add_config(device, "7389b9c9-de73-468d-83a8-b27776215e6b", &TEST_OA);
    // The driver of a VF may not read an engine's timestamp, and has no observation.
    if device.engine_cycles(*render).is_err() {
        return match added {
            Err(DrmError::Ioctl { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => {
                Ok("none on a virtual function".into())
            }
            other => bail!("the driver of a virtual function must have no observation, got {other:?}"),
        };
    }
    let set = added?;
    let checked = reports(env, *render, set).and_then(|reports| Ok((reports, counters(env, *render, set)?)));
    remove_config(device, set)?;
    let (reports, counters) = checked?;
    Ok(format!("{reports}; {counters}"))
}

/// Reads reports of all kinds and checks them.
fn reports(env: &CheckEnvironment<'_>, render: Engine, set: u64) -> Result<String> {
    let properties = [
        (Property::SampleOa, 1),
        (Property::OaMetricSet, set),
        (Property::OaFormat, OAG_256),
        (Property::OaPeriodExponent, EXPONENT),
        (Property::OaBufferSize, 16 << 20),
    ];
    let mut stream = Stream::open(env.device, &properties)?;
    let tails = trigger(env, render)?;
    ensure!(tails[0] != tails[1], "the write of the trigger register has not moved the tail: {tails:x?}");
    let start = Instant::now();
    let mut all = Vec::new();
    let count = |all: &[Report], is: fn(&Report) -> bool| all.iter().filter(|report| is(report)).count();
    let timers = |all: &[Report]| count(all, |report| report.reason() == 1);
    // On a loaded host the batch runs when the timer has made many reports.
    let is_complete = |all: &[Report]| {
        timers(all) >= REPORTS && count(all, Report::is_switch) > 0 && count(all, |report| report.reason() == 64) > 0
    };
    while !is_complete(&all) {
        ensure!(
            start.elapsed() < env.timeout,
            "{} reports in {:?}: {} of the timer, {} of a switch to a context, {} of the batch",
            all.len(),
            start.elapsed(),
            timers(&all),
            count(&all, Report::is_switch),
            count(&all, |report| report.reason() == 64)
        );
        read(&mut stream, &mut all)?;
        sleep(Duration::from_millis(2));
    }
    let of = |reason: u32| all.iter().filter(move |report| report.reason() == reason);
    let timer: Vec<_> = of(1).collect();
    for pair in timer.windows(2) {
        let ticks = pair[1].0[1].wrapping_sub(pair[0].0[1]);
        ensure!(ticks == PERIOD, "two reports of the timer are {ticks} ticks apart, expected {PERIOD}");
    }
    for pair in all.windows(2) {
        check_test_oa(&pair[0], &pair[1])?;
    }
    let switches = count(&all, Report::is_switch);
    let marked: Vec<_> = of(64).map(|report| (report.0[0] >> 26, report.0[2])).collect();
    ensure!(marked == [(8, MARKER)], "expected one report of the render engine with the marker, got {marked:x?}");
    Ok(format!("{} reports of the timer, {switches} of switches, 1 of a batch", timer.len()))
}

/// The B counters of two consecutive reports have their parts of the clocks, to one clock.
fn check_test_oa(before: &Report, after: &Report) -> Result<()> {
    let delta = |dword: usize| after.0[dword].wrapping_sub(before.0[dword]);
    let clocks = delta(3);
    for (n, (part, of)) in PARTS.into_iter().enumerate() {
        let (found, expected) = (delta(48 + n), u64::from(clocks) * u64::from(part) / u64::from(of));
        ensure!(u64::from(found).abs_diff(expected) <= 1, "B{n}: {found} in {clocks} clocks, expected {expected}");
    }
    Ok(())
}

/// A user's batch writes the trigger register. Returns the tail before and after it.
fn trigger(env: &CheckEnvironment<'_>, render: Engine) -> Result<[u32; 2]> {
    let vm = env.device.vm()?;
    let queue = vm.queue(render)?;
    let memory = vm.buffer(Place::System, 4096)?;
    env.run(&vm, &queue, Place::System, |batch| {
        batch.push(&mi::store_register_mem(Reg::Mmio(TAIL), Process(memory.address())));
        batch.push(&mi::load_register_imm(Reg::Mmio(TRIGGER), MARKER));
        batch.push(&mi::store_register_mem(Reg::Mmio(TAIL), Process(memory.address() + 4)));
    })?;
    Ok([0, 4].map(|at| memory.mapping().read_u32(at)))
}

/// Two reports of a context's own counters, on a queue for which the driver has enabled them.
fn counters(env: &CheckEnvironment<'_>, render: Engine, set: u64) -> Result<String> {
    let vm = env.device.vm()?;
    let queue = vm.queue(render)?;
    let memory = vm.buffer(Place::System, 4096)?;
    let properties =
        [(Property::OaMetricSet, set), (Property::OaFormat, OAR_256), (Property::ExecQueueId, queue.id().into())];
    let _stream = Stream::open(env.device, &properties)?;
    let code = program(&vm, Place::System, |batch| {
        for n in 0..2_u32 {
            let to = Process(memory.address() + u64::from(n) * BYTES as u64);
            batch.push(&mi::report_perf_count(to, 0x100 + n));
        }
    })?;
    let fence = queue.submit(code.address())?;
    queue.wait(&fence, env.timeout)?;
    let report = |n: usize| Report((0..64).map(|dword| memory.mapping().read_u32(BYTES * n + 4 * dword)).collect());
    let (first, second) = (report(0), report(1));
    ensure!((first.0[0], second.0[0]) == (0x100, 0x101), "ids of the command: {:x} {:x}", first.0[0], second.0[0]);
    ensure!(first.0[2] == second.0[2], "both reports are of one context: {:x} {:x}", first.0[2], second.0[2]);
    let delta = |dword: usize| second.0[dword].wrapping_sub(first.0[dword]);
    let (clocks, busy) = (delta(3), delta(4));
    ensure!(busy == clocks, "A0 has {busy} clocks of {clocks}, all of which are the context's");
    check_test_oa(&first, &second)?;
    Ok(format!("A0 of a context has all of its {clocks} clocks"))
}

fn read(stream: &mut Stream, all: &mut Vec<Report>) -> Result<()> {
    let mut bytes = vec![0; 256 * BYTES];
    let read = match stream.file.read(&mut bytes) {
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error).context("read of the stream"),
    };
    let dwords = |report: &[u8]| Report(report.as_chunks().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect());
    all.extend(bytes[..read].chunks_exact(BYTES).map(dwords));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(clocks: u32, b: [u32; 8]) -> Report {
        let mut dwords = vec![0; 64];
        dwords[3] = clocks;
        dwords[48..56].copy_from_slice(&b);
        Report(dwords)
    }

    #[test]
    fn busy_time_is_the_part_of_the_clocks_in_the_time() {
        let report = |ticks, clocks, busy| {
            let mut report = report(clocks, [0; 8]);
            (report.0[1], report.0[4]) = (ticks, busy);
            report
        };
        let mut all = BusyClocks::default();
        // A second at one half, then two seconds at the tenth of the clocks, a quarter of them busy.
        all.add(&report(u32::MAX, u32::MAX, u32::MAX), &report(38_399_999, 999, 499));
        all.add(&report(0, 0, 0), &report(76_800_000, 200, 50));
        assert!((all.seconds - 3.0).abs() < 1e-9 && (all.busy * 3.0 - 1.0).abs() < 1e-9, "{all:?}");
        all.add(&report(0, 7, 7), &report(38_400_000, 7, 7));
        assert!((all.seconds - 4.0).abs() < 1e-9 && (all.busy * 4.0 - 1.0).abs() < 1e-9, "asleep: {all:?}");
    }

    #[test]
    fn a_wrong_counter_is_found() {
        let before = report(u32::MAX, [u32::MAX; 8]);
        let good = [0, 600, 600, 300, 200, 200, 100, 400].map(|b: u32| b.wrapping_sub(1));
        check_test_oa(&before, &report(599, good)).unwrap();
        for n in 0..8 {
            let mut wrong = good;
            wrong[n] = wrong[n].wrapping_add(2);
            check_test_oa(&before, &report(599, wrong)).unwrap_err();
        }
    }
}
